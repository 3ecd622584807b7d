#include "real/execution/training.h"

#include <memory>

#include <fmt/format.h>

#include "real/backends/executable.h"
#include "real/backends/initial_state.h"
#include "real/cpu/cpu_backend.h"
#include "real/execution/execute.h"
#include "real/execution/losses.h"
#include "real/transports/transport_threads.h"
#include "sim/base/error.h"

namespace rehearse {

std::vector<double> Train(const Schedule& schedule, Transport& transport,
                          const TrainingOptions& options) {
  CHECK_EQ(schedule.ranks(), transport.size());
  Schedule executable = Executable(schedule);
  if (DecideBlocking(executable, transport, StreamUse::kAuto)) executable = OnOneStream(executable);
  const RankPlan plan = PlanRank(executable, transport.rank());
  const std::unique_ptr<Backend> backend =
      options.backend ? options.backend(plan, transport)
                      : MakeCpuBackend(plan, transport, options.arithmetic);
  WriteInitialState(plan, options.seed, /*poison=*/true, *backend);
  const bool is_first = transport.rank() == 0;
  const bool tells = options.observer != nullptr && is_first;
  if (tells) options.observer->Begin("training", "steps", options.steps);
  std::vector<double> losses;
  StepFacts facts;
  facts.seed = options.seed;
  facts.tokens = schedule.tokens;
  facts.keep_loss = true;
  for (facts.number = 1; facts.number <= options.steps; ++facts.number) {
    PrepareStep(plan, /*poison=*/true, *backend);
    transport.Barrier();
    std::vector<OpTime> times;
    std::vector<RowLoss> own;
    backend->Step(facts, &times, &own);
    const double loss = GatherLoss(transport, own, schedule.tokens);
    if (is_first) losses.push_back(loss);
    if (tells) {
      options.observer->Note(fmt::format("loss {:.6g}", loss));
      options.observer->Done(facts.number);
    }
    if (AgreeToStop(options.is_stopped, transport)) break;
  }
  return losses;
}

std::vector<double> TrainSerially(const Schedule& serial, const TrainingOptions& options) {
  CHECK_EQ(serial.ranks(), 1u);
  ThreadWorld alone(1);
  TrainingOptions own = options;
  own.backend = nullptr;
  return Train(serial, *alone.Join(0), own);
}

}  // namespace rehearse

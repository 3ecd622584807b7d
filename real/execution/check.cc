#include "real/execution/check.h"

#include <algorithm>
#include <cmath>
#include <limits>
#include <set>
#include <utility>

#include <fmt/format.h>

#include "real/backends/executable.h"
#include "real/backends/initial_state.h"
#include "real/cpu/cpu_backend.h"
#include "real/execution/execute.h"
#include "real/execution/losses.h"
#include "real/transports/control.h"
#include "real/transports/transport_threads.h"
#include "sim/base/error.h"

namespace rehearse {
namespace {

// An array that is compared, and as what.
struct Compared {
  BufferId buffer;
  BufferKind kind;
};

// All parameters, and the gradients that the optimizer gets (all gradients if there is none).
std::vector<Compared> ComparedArrays(const RankPlan& plan) {
  std::vector<Compared> compared;
  const auto add = [&](BufferId id, BufferKind kind) {
    for (const BufferId array : NamedArraysOf(plan, id)) compared.push_back({array, kind});
  };
  const std::vector<BufferId> homes = HomesOf(*plan.role);
  const std::vector<uint32_t> optimizers = OptimizerOps(*plan.role);
  for (uint32_t id = 0; id < plan.buffers.size(); ++id) {
    const Buffer& buffer = plan.role->buffers[id];
    if (buffer.view) continue;
    if (buffer.kind == BufferKind::kParameter) add(BufferId(id), buffer.kind);
    if (buffer.kind == BufferKind::kGradient && optimizers.empty()) add(BufferId(id), buffer.kind);
  }
  for (const uint32_t op : optimizers) {
    const std::vector<BufferId>& reads = plan.role->ops[op].reads;
    for (size_t i = 0; i + 1 < reads.size(); ++i) {
      const bool is_named = IsNamedArray(plan, reads[i]);
      add(is_named ? reads[i] : homes[reads[i].index()], BufferKind::kGradient);
    }
  }
  return compared;
}

// What a rank has after one step: the elements of all compared buffers, one after the other, and
// losses.
struct Outcome {
  std::vector<double> values;
  std::vector<RowLoss> losses;
};

Outcome RunOnce(const RankPlan& plan, Transport& transport, uint64_t seed, double tokens,
                const BackendFactory& make) {
  const std::unique_ptr<Backend> backend =
      make ? make(plan, transport) : MakeCpuBackend(plan, transport, DType::kFp64);
  WriteInitialState(plan, seed, /*poison=*/true, *backend);
  PrepareStep(plan, /*poison=*/true, *backend);
  StepFacts facts;
  facts.seed = seed;
  facts.tokens = tokens;
  facts.keep_loss = true;
  Outcome outcome;
  std::vector<OpTime> times;
  backend->Step(facts, &times, &outcome.losses);
  for (const Compared& array : ComparedArrays(plan)) {
    const std::vector<double> own = backend->Read(array.buffer);
    outcome.values.insert(outcome.values.end(), own.begin(), own.end());
  }
  return outcome;
}

// Calls visit(array, its elements) for the compared arrays, whose elements come one after the
// other.
template <typename Visit>
void ForEachArray(const RankPlan& plan, std::span<const double> values, Visit visit) {
  for (const Compared& array : ComparedArrays(plan)) {
    const uint64_t elements = plan.buffers[array.buffer.index()].elements();
    CHECK_LE(elements, values.size());
    visit(array, values.first(elements));
    values = values.subspan(elements);
  }
  CHECK(values.empty());
}

double RelativeTo(double scale, double difference) {
  if (!std::isfinite(difference)) return std::numeric_limits<double>::infinity();
  return difference == 0 ? 0 : difference / scale;
}

// The largest element of every array of the serial step, with a floor for each kind.
std::map<std::string, double> ScalesOf(const StepNumbers& serial) {
  constexpr double kNoise = 1e-6;
  std::map<std::string, double> scales;
  std::map<BufferKind, double> largest;
  for (const auto& [name, array] : serial.arrays) {
    double& scale = scales[name];
    for (const double value : array.values) scale = std::max(scale, std::abs(value));
    largest[array.kind] = std::max(largest[array.kind], scale);
  }
  for (auto& [name, scale] : scales) {
    scale = std::max(scale, kNoise * largest[serial.arrays.at(name).kind]);
  }
  return scales;
}

class Comparison {
 public:
  explicit Comparison(const StepNumbers& serial) : serial_(serial), scales_(ScalesOf(serial)) {}

  void AddRank(const RankPlan& plan, std::span<const double> values) {
    ForEachArray(plan, values, [&](const Compared& compared, std::span<const double> own) {
      AddArray(plan, compared.buffer, own);
    });
  }

  CheckReport Report() const {
    CheckReport report;
    report.serial_loss = serial_.loss;
    for (const auto& [name, array] : serial_.arrays) {
      const auto found = differences_.find(name);
      if (found == differences_.end()) {
        report.missing.push_back(name);
      } else {
        report.arrays.push_back(found->second);
      }
    }
    return report;
  }

 private:
  void AddArray(const RankPlan& plan, BufferId id, std::span<const double> own) {
    const std::string name = ArrayName(plan, id);
    const ArrayPiece& place = *plan.buffers[id.index()].place;
    const auto found = serial_.arrays.find(name);
    if (found == serial_.arrays.end()) {
      throw Error(fmt::format("the serial schedule has no array \"{}\", which rank {} holds", name,
                              plan.rank));
    }
    const GlobalArray& array = found->second;
    if (array.rows != place.global_rows || array.columns != place.global_columns) {
      throw Error(fmt::format("\"{}\" is {} x {} on rank {}, {} x {} in the serial schedule", name,
                              place.global_rows, place.global_columns, plan.rank, array.rows,
                              array.columns));
    }
    const auto [entry, is_new] =
        differences_.try_emplace(name, ArrayDifference{name, array.kind, 0, plan.rank});
    for (uint64_t i = 0; i < own.size(); ++i) {
      const auto at = place.PositionOf(i);
      if (!at) continue;  // padding
      const double expected = array.values[at->row * array.columns + at->column];
      const double relative = RelativeTo(scales_.at(name), std::abs(own[i] - expected));
      if (relative <= entry->second.relative) continue;
      entry->second.relative = relative;
      entry->second.rank = plan.rank;
    }
  }

  const StepNumbers& serial_;
  std::map<std::string, double> scales_;
  std::map<std::string, ArrayDifference> differences_;
};

}  // namespace

double CheckReport::LossDifference() const { return RelativeDifference(loss, serial_loss); }

double CheckReport::WorstOf(BufferKind kind) const {
  double worst = 0;
  for (const ArrayDifference& array : arrays) {
    if (array.kind == kind) worst = std::max(worst, array.relative);
  }
  return worst;
}

bool CheckReport::Passes(double tolerance) const {
  return missing.empty() && LossDifference() <= tolerance &&
         WorstOf(BufferKind::kParameter) <= tolerance &&
         WorstOf(BufferKind::kGradient) <= tolerance;
}

StepNumbers ComputeSerially(const Schedule& serial, uint64_t seed) {
  if (serial.ranks() != 1) {
    throw Error(fmt::format("the serial schedule has {} ranks, expected 1", serial.ranks()));
  }
  const Schedule schedule = OnOneStream(Executable(serial));
  const RankPlan plan = PlanRank(schedule, 0);
  ThreadWorld alone(1);
  const std::unique_ptr<Transport> transport = alone.Join(0);
  const Outcome outcome = RunOnce(plan, *transport, seed, serial.tokens, nullptr);
  StepNumbers numbers;
  numbers.loss = GatherLoss(*transport, outcome.losses, serial.tokens);
  ForEachArray(plan, outcome.values, [&](const Compared& compared, std::span<const double> own) {
    const ArrayPiece& place = *plan.buffers[compared.buffer.index()].place;
    GlobalArray array{compared.kind, place.global_rows, place.global_columns, {}};
    array.values.assign(own.begin(), own.end());
    CHECK_EQ(array.values.size(), array.rows * array.columns);
    numbers.arrays.emplace(ArrayName(plan, compared.buffer), std::move(array));
  });
  return numbers;
}

CheckReport CheckAgainst(const StepNumbers& serial, const Schedule& planned, Transport& transport,
                         uint64_t seed, const BackendFactory& backend) {
  CHECK_EQ(planned.ranks(), transport.size());
  const Schedule schedule = Executable(planned);
  const RankPlan plan = PlanRank(schedule, transport.rank());
  const Outcome own = RunOnce(plan, transport, seed, schedule.tokens, backend);
  const auto values = GatherBytes(transport, ToBytes(std::span<const double>(own.values)));
  const double loss = GatherLoss(transport, own.losses, schedule.tokens);
  if (transport.rank() != 0) return {};
  Comparison comparison(serial);
  for (uint32_t rank = 0; rank < values.size(); ++rank) {
    comparison.AddRank(PlanRank(schedule, rank), FromBytes<double>(values[rank]));
  }
  CheckReport report = comparison.Report();
  report.loss = loss;
  return report;
}

}  // namespace rehearse

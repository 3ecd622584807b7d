#include "tests/support/gpu_run.h"

#include <algorithm>
#include <cmath>
#include <limits>
#include <mutex>

#include <fmt/format.h>

#include "real/backends/initial_state.h"
#include "real/cpu/cpu_backend.h"
#include "real/cuda/cuda_backend.h"
#include "real/kernels/numbers.h"
#include "real/kernels/storage.h"
#include "real/transports/transport_threads.h"
#include "sim/base/error.h"

namespace rehearse {
namespace {

void WriteRandom(const RankPlan& plan, Backend& backend) {
  for (uint32_t id = 0; id < plan.buffers.size(); ++id) {
    const Buffer& buffer = plan.role->buffers[id];
    if (buffer.view) continue;
    std::vector<double> values(plan.buffers[id].elements());
    const uint64_t seed = SeedOf(plan.rank, buffer.name);
    for (size_t i = 0; i < values.size(); ++i)
      values[i] = FromBf16(ToBf16(static_cast<float>(2 * UnitAt(seed, i) - 1)));
    backend.Fill(BufferId(id), 0);  // padding
    backend.Write(BufferId(id), values);
  }
}

}  // namespace

RunResult RunStep(const Schedule& schedule, const BackendFactory& make, StartWith start) {
  RunResult result;
  result.times.resize(schedule.ranks());
  result.choices.resize(schedule.ranks());
  std::mutex mutex;
  RunAsThreads(schedule.ranks(), [&](Transport& transport) {
    const RankPlan plan = PlanRank(schedule, transport.rank());
    const auto backend = make(plan, transport);
    if (start == StartWith::kRandom) {
      WriteRandom(plan, *backend);
    } else {
      WriteInitialState(plan, 1, /*poison=*/true, *backend);
      PrepareStep(plan, /*poison=*/true, *backend);
    }
    StepFacts facts;
    facts.seed = 1;
    facts.tokens = std::max(1.0, schedule.tokens);
    std::vector<OpTime> times;
    std::vector<RowLoss> losses;
    backend->Step(facts, &times, &losses);
    const std::lock_guard<std::mutex> lock(mutex);
    for (uint32_t id = 0; id < plan.buffers.size(); ++id) {
      result.contents[{transport.rank(), plan.role->buffers[id].name}] =
          backend->Read(BufferId(id));
    }
    result.times[transport.rank()] = times;
    result.choices[transport.rank()] = backend->Choices();
  });
  return result;
}

BackendFactory OnCpu() {
  return [](const RankPlan& plan, Transport& transport) {
    return MakeCpuBackend(plan, transport, DType::kFp32);
  };
}

BackendFactory OnGpus(const CudaOptions& options, int devices) {
  return [options, devices](const RankPlan& plan, Transport& transport) {
    CudaOptions own = options;
    own.device = static_cast<int>(transport.rank()) % devices;
    return MakeCudaBackend(LoadGpuLibraries(), plan, transport, own);
  };
}

WorstDifference Compare(const Contents& got, const Contents& expected) {
  CHECK_EQ(got.size(), expected.size());
  WorstDifference worst;
  for (const auto& [key, values] : expected) {
    const std::vector<double>& own = got.at(key);
    CHECK_EQ(own.size(), values.size());
    double largest = 1e-30;
    for (const double value : values) {
      if (!std::isnan(value)) largest = std::max(largest, std::abs(value));
    }
    for (size_t i = 0; i < values.size(); ++i) {
      if (std::isnan(values[i]) && std::isnan(own[i])) continue;  // never written
      double relative = std::abs(own[i] - values[i]) / largest;
      if (std::isnan(relative)) relative = std::numeric_limits<double>::infinity();
      if (relative <= worst.relative) continue;
      worst = {relative, fmt::format("element {} of \"{}\" on rank {}: {} instead of {}", i,
                                     key.second, key.first, own[i], values[i])};
    }
  }
  return worst;
}

}  // namespace rehearse

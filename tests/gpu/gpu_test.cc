// On real GPUs: our kernels and NCCL against the CPU backend. Skips if there is none;
// tools/gpu-check runs it on a machine that has some.
#include <cmath>

#include <gtest/gtest.h>

#include "real/cuda/cuda_backend.h"
#include "real/cuda/machine.h"
#include "sim/base/error.h"
#include "tests/support/gpu_kernel_cases.h"
#include "tests/support/gpu_run.h"
#include "tests/support/gpu_schedules.h"

namespace rehearse {
namespace gpu_test {

class GpuTest : public ::testing::Test {
 protected:
  void SetUp() override {
    try {
      RequireGpus(LoadGpuLibraries(), 1);
      LoadGpuLibraries().cuda.GetDeviceCount(&devices_);
    } catch (const Error& error) {
      GTEST_SKIP() << error.what();
    }
  }

  void ExpectSame(const Schedule& schedule, StartWith start, double tolerance,
                  const std::string& name, const CudaOptions& options = {}) const {
    const RunResult expected = RunStep(schedule, OnCpu(), start);
    const RunResult got = RunStep(schedule, OnGpus(options, devices_), start);
    const WorstDifference worst = Compare(got.contents, expected.contents);
    EXPECT_LE(worst.relative, tolerance) << name << ": " << worst.where;
  }

  int devices_ = 0;
};

// Inputs are bf16 numbers, the same in every type, so only arithmetic and the rounding of results
// differ: by half a unit in the last place of the largest element, or a few of them where a kernel
// adds to what was there.
struct Precision {
  DType dtype;
  double tolerance;
};
const Precision kPrecisions[] = {{DType::kFp32, 3e-5}, {DType::kBf16, 8e-3}, {DType::kFp16, 1e-3}};

TEST_F(GpuTest, EveryKernelAgreesWithTheCpu) {
  for (const auto& [dtype, tolerance] : kPrecisions) {
    for (const KernelCase& kernel : EveryKernel(dtype)) {
      ExpectSame(kernel.schedule, StartWith::kRandom, tolerance,
                 kernel.name + " in " + Name(dtype));
    }
  }
}

TEST_F(GpuTest, TunedProductsAgreeWithTheCpu) {
  CudaOptions options;
  options.tune_gemms = true;
  for (const KernelCase& kernel : EveryKernel(DType::kFp32)) {
    if (kernel.name.rfind("gemm", 0) != 0) continue;
    ExpectSame(kernel.schedule, StartWith::kRandom, 3e-5, kernel.name + ", tuned", options);
  }
}

TEST_F(GpuTest, AStepOfOneRankGivesTheCpusNumbers) {
  ExpectSame(TensorParallelStep(1, DType::kFp32), StartWith::kInitialState, 1e-5, "step");
  ExpectSame(EveryCollective(1), StartWith::kInitialState, 1e-6, "collectives");
}

TEST_F(GpuTest, SeveralRanksGiveTheCpusNumbers) {
  if (devices_ < 2) GTEST_SKIP() << "one GPU; NCCL needs one for each rank";
  const auto ranks = static_cast<uint32_t>(std::min(devices_, 8));
  ExpectSame(TensorParallelStep(ranks == 5 || ranks == 7 ? 4 : ranks, DType::kFp32),
             StartWith::kInitialState, 1e-5, "step");
  ExpectSame(EveryCollective(ranks), StartWith::kInitialState, 1e-6, "collectives");
  ExpectSame(RingOfMessages(ranks), StartWith::kInitialState, 0, "messages");
}

TEST_F(GpuTest, AGraphGivesTheNumbersOfTheStep) {
  CudaOptions options;
  options.mode = StepMode::kGraph;
  const Schedule step = TensorParallelStep(1, DType::kBf16);
  const RunResult expected = RunStep(step, OnGpus({}, 1));
  EXPECT_EQ(Compare(RunStep(step, OnGpus(options, 1)).contents, expected.contents).relative, 0);
  const auto ranks = static_cast<uint32_t>(std::min(devices_, 8));
  ExpectSame(EveryCollective(ranks), StartWith::kInitialState, 1e-6, "collectives", options);
  if (ranks > 1)
    ExpectSame(RingOfMessages(ranks), StartWith::kInitialState, 0, "messages", options);
}

TEST_F(GpuTest, TwoStepsGiveTheSameBits) {
  // Sums have a fixed order and cuBLAS a workspace of its own.
  const Schedule schedule = TensorParallelStep(1, DType::kBf16);
  const RunResult first = RunStep(schedule, OnGpus({}, 1));
  const RunResult second = RunStep(schedule, OnGpus({}, 1));
  EXPECT_EQ(Compare(first.contents, second.contents).relative, 0);
}

TEST_F(GpuTest, OpsAreTimedInTheOrderOfTheirStreamsAndEdges) {
  const Schedule schedule = TensorParallelStep(1, DType::kFp32);
  const std::vector<std::vector<OpTime>> times = RunStep(schedule, OnGpus({}, 1)).times;
  const std::vector<Op>& ops = schedule.roles[0].ops;
  constexpr int64_t kResolution = 1000;  // of events: half a microsecond
  for (size_t id = 0; id < ops.size(); ++id) {
    EXPECT_LE(times[0][id].ready, times[0][id].end);
    for (const OpId after : ops[id].after) {
      EXPECT_GE(times[0][id].ready, times[0][after.index()].end - kResolution);
    }
  }
}

}  // namespace gpu_test
}  // namespace rehearse

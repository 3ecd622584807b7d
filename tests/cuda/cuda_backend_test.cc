// The unmodified CUDA backend on fake GPUs (tests/doubles).
#include "real/cuda/cuda_backend.h"

#include <algorithm>
#include <atomic>
#include <chrono>
#include <fstream>
#include <functional>
#include <regex>
#include <set>
#include <sstream>
#include <thread>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "real/backends/initial_state.h"
#include "real/cuda/machine.h"
#include "real/cuda/overheads.h"
#include "real/cuda/step_graph.h"
#include "real/execution/check.h"
#include "real/execution/execute.h"
#include "real/transports/transport_threads.h"
#include "sim/schedule/schedule_check.h"
#include "tests/support/gpu_double.h"
#include "tests/support/gpu_kernel_cases.h"
#include "tests/support/gpu_run.h"
#include "tests/support/gpu_schedules.h"
#include "tests/support/places.h"
#include "tests/support/sanitizers.h"

namespace rehearse {
namespace cuda_backend_test {

using ::testing::AllOf;
using ::testing::Contains;
using ::testing::HasSubstr;
using ::testing::IsEmpty;

class CudaBackendTest : public ::testing::Test {
 protected:
  void SetUp() override {
    door_ = gpu_double::OpenGpuDouble();
    door_->Reset();
  }

  // Each rank on a device of its own.
  static BackendFactory OnGpus(const CudaOptions& options = {}) {
    return ::rehearse::OnGpus(options, 8);
  }

  static void ExpectSame(const RunResult& got, const RunResult& expected, double tolerance) {
    const WorstDifference worst = Compare(got.contents, expected.contents);
    EXPECT_LE(worst.relative, tolerance) << worst.where;
  }

  CheckReport Check(const Schedule& schedule, const Schedule& serial, const CudaOptions& options) {
    const StepNumbers numbers = ComputeSerially(serial, 1);
    CheckReport report;
    RunAsThreads(schedule.ranks(), [&](Transport& transport) {
      CheckReport own = CheckAgainst(numbers, schedule, transport, 1, OnGpus(options));
      if (transport.rank() == 0) report = own;
    });
    return report;
  }

  std::string FailureOf(const Schedule& schedule, const CudaOptions& options = {}) {
    try {
      RunStep(schedule, OnGpus(options));
    } catch (const Error& error) {
      return error.what();
    } catch (const RankLost& error) {
      return error.what();
    }
    return "";
  }

  gpu_double::Door* door_ = nullptr;
};

TEST_F(CudaBackendTest, ATensorParallelStepGivesTheSerialLossAndGradients) {
  const Schedule serial = TensorParallelStep(1, DType::kFp32);
  for (const uint32_t ranks : {1u, 2u, 3u, 8u}) {
    const CheckReport report = Check(TensorParallelStep(ranks, DType::kFp32), serial, {});
    // fp32 sums of at most 48 products: 48 · 6e-8.
    EXPECT_TRUE(report.Passes(5e-6))
        << ranks << " ranks, gradients off by " << report.WorstOf(BufferKind::kGradient);
    EXPECT_THAT(door_->Findings(), IsEmpty());
  }
}

TEST_F(CudaBackendTest, HalfPrecisionStepsAreRightToItsDigits) {
  const Schedule serial = TensorParallelStep(1, DType::kFp32);
  // Each of a handful of roundings of an activation is half of 2^-7 (bf16) or 2^-10 (fp16).
  EXPECT_TRUE(Check(TensorParallelStep(4, DType::kBf16), serial, {}).Passes(0.04));
  EXPECT_TRUE(Check(TensorParallelStep(4, DType::kFp16), serial, {}).Passes(0.005));
  CudaOptions all_fp32;
  all_fp32.all_fp32 = true;
  EXPECT_TRUE(Check(TensorParallelStep(4, DType::kBf16), serial, all_fp32).Passes(5e-6));
}

TEST_F(CudaBackendTest, EveryCollectiveAgreesWithTheCpuBackend) {
  for (const uint32_t ranks : {2u, 3u, 4u}) {
    const Schedule schedule = EveryCollective(ranks);
    CheckSchedule(schedule);
    ExpectSame(RunStep(schedule, OnGpus()), RunStep(schedule, OnCpu()), 1e-6);
    EXPECT_THAT(door_->Findings(), IsEmpty());
  }
}

TEST_F(CudaBackendTest, MessagesBothWaysPassEachOther) {
  for (const uint32_t ranks : {2u, 3u, 5u}) {
    const Schedule schedule = RingOfMessages(ranks);
    CheckSchedule(schedule);
    ExpectSame(RunStep(schedule, OnGpus()), RunStep(schedule, OnCpu()), 0);
    EXPECT_THAT(door_->Findings(), IsEmpty());
  }
}

TEST_F(CudaBackendTest, OpsAreTimedInTheOrderOfTheirStreamsAndEdges) {
  const Schedule schedule = TensorParallelStep(2, DType::kFp32);
  const std::vector<std::vector<OpTime>> times = RunStep(schedule, OnGpus()).times;
  const std::vector<Op>& ops = schedule.roles[0].ops;
  for (const std::vector<OpTime>& own : times) {
    ASSERT_EQ(own.size(), ops.size());
    // Events become nanoseconds via milliseconds in a float: 24 bits of at most a second.
    constexpr int64_t kRounding = 100;
    std::map<uint32_t, int64_t> end_of_stream;
    for (size_t id = 0; id < ops.size(); ++id) {
      EXPECT_LE(own[id].ready, own[id].end + kRounding);
      int64_t& before = end_of_stream[ops[id].stream.index()];
      EXPECT_GE(own[id].ready, before - kRounding);
      before = own[id].end;
      for (const OpId after : ops[id].after) {
        EXPECT_GE(own[id].ready, own[after.index()].end - kRounding);
      }
    }
  }
}

TEST_F(CudaBackendTest, WithoutTimingTheResultIsTheSame) {
  CudaOptions options;
  options.mode = StepMode::kWhole;
  const Schedule schedule = TensorParallelStep(2, DType::kFp32);
  ExpectSame(RunStep(schedule, OnGpus(options)), RunStep(schedule, OnGpus()), 0);
  EXPECT_THAT(door_->Findings(), IsEmpty());
}

// ---- graphs -------------------------------------------------------------------------------------

CudaOptions ByGraph() {
  CudaOptions options;
  options.mode = StepMode::kGraph;
  options.stall_seconds = 5;
  return options;
}

TEST_F(CudaBackendTest, AGraphGivesTheNumbersOfTheStep) {
  for (const Schedule& schedule :
       {TensorParallelStep(1, DType::kBf16), TensorParallelStep(3, DType::kFp32),
        EveryCollective(2), RingOfMessages(3)}) {
    const RunResult expected = RunStep(schedule, OnGpus());
    ExpectSame(RunStep(schedule, OnGpus(ByGraph())), expected, 0);
    EXPECT_THAT(door_->Findings(), IsEmpty());
  }
  EXPECT_EQ(door_->Calls()["cudaGraphLaunch"], 1u + 3 + 2 + 3);
}

TEST_F(CudaBackendTest, AGraphsCheckPassesAgainstTheSerialStep) {
  const CheckReport report =
      Check(TensorParallelStep(2, DType::kFp32), TensorParallelStep(1, DType::kFp32), ByGraph());
  EXPECT_TRUE(report.Passes(5e-6));  // as without
}

// Replays repeat the step that was captured; one with other facts is captured anew.
TEST_F(CudaBackendTest, AGraphIsReplayedUntilTheFactsChange) {
  const Schedule schedule = TensorParallelStep(2, DType::kFp32);
  const auto numbers_of = [&](StepMode mode) {
    std::vector<double> weights;
    RunAsThreads(2, [&](Transport& transport) {
      const RankPlan plan = PlanRank(schedule, transport.rank());
      const auto backend = OnGpus()(plan, transport);
      WriteInitialState(plan, 1, false, *backend);
      backend->Use(mode);
      std::vector<OpTime> times;
      for (const uint32_t number : {1u, 1u, 1u, 2u})
        backend->Step({.seed = 1, .tokens = 12, .number = number}, &times, nullptr);
      for (uint32_t id = 0; id < plan.buffers.size() && transport.rank() == 0; ++id) {
        const std::vector<double> values = backend->Read(BufferId(id));
        weights.insert(weights.end(), values.begin(), values.end());
      }
      EXPECT_GT(times.back().end, times.back().ready);
    });
    return weights;
  };
  const std::vector<double> expected = numbers_of(StepMode::kTimedOps);
  EXPECT_EQ(numbers_of(StepMode::kGraph), expected);
  EXPECT_EQ(door_->Calls()["cudaStreamBeginCapture"], 2u * 2);  // ranks · facts
  EXPECT_EQ(door_->Calls()["cudaGraphLaunch"], 2u * 4);
  EXPECT_THAT(door_->Findings(), IsEmpty());
}

TEST_F(CudaBackendTest, WhatACaptureDoesNotAllowFails) {
  const CudaRuntime& cuda = LoadGpuLibraries().cuda;
  cuda.SetDevice(0);
  const GpuStream first = MakeStream(cuda);
  const GpuStream second = MakeStream(cuda);
  const GpuEvent fork = MakeEvent(cuda, EventUse::kOrder);
  const auto capture = [&](const std::function<void()>& work) {
    const StepGraph graph(cuda, {first.get()}, work);
  };
  EXPECT_THROW(capture([&] { cuda.StreamSynchronize(first.get()); }), Error);
  EXPECT_THROW(capture([&] { AllocateGpuMemory(cuda, 16); }), Error);
  EXPECT_THROW(capture([&] {
                 cuda.EventRecord(fork.get(), first.get());
                 cuda.EventSynchronize(fork.get());
               }),
               Error);
  // A stream that joined the capture and does not come back.
  EXPECT_THROW(capture([&] {
                 cuda.EventRecord(fork.get(), first.get());
                 cuda.StreamWaitEvent(second.get(), fork.get(), 0);
               }),
               Error);
  // Work from outside the capture cannot be waited for in it.
  cuda.EventRecord(fork.get(), second.get());
  EXPECT_THROW(capture([&] { cuda.StreamWaitEvent(first.get(), fork.get(), 0); }), Error);
  EXPECT_NO_THROW(capture([] {}));
}

TEST_F(CudaBackendTest, AGraphThatHangsIsReported) {
  const Schedule schedule = TensorParallelStep(2, DType::kFp32);
  CudaOptions options = ByGraph();
  options.stall_seconds = 1;
  std::string failure;
  std::atomic<bool> is_over = false;
  RunAsThreads(2, [&](Transport& transport) {
    const RankPlan plan = PlanRank(schedule, transport.rank());
    const auto backend = OnGpus(options)(plan, transport);
    WriteInitialState(plan, 1, false, *backend);
    std::vector<OpTime> times;
    backend->Step({.seed = 1, .tokens = 12}, &times, nullptr);
    if (transport.rank() == 1) {  // comes to one step only
      while (!is_over) std::this_thread::yield();
      return;
    }
    try {
      backend->Step({.seed = 1, .tokens = 12}, &times, nullptr);
    } catch (const Error& error) {
      failure = error.what();
    }
    is_over = true;
  });
  EXPECT_THAT(failure,
              AllOf(HasSubstr("rank 0"), HasSubstr("stood still"), HasSubstr("graph of the step")));
}

TEST_F(CudaBackendTest, EveryKernelIsGivenItsOperands) {
  // fp32 sums; half a unit in the last place of what is kept in bf16 and fp16, a few of them where
  // it is added to.
  constexpr std::pair<DType, double> kPrecisions[] = {
      {DType::kFp32, 1e-5}, {DType::kBf16, 8e-3}, {DType::kFp16, 1e-3}};
  for (const auto& [dtype, tolerance] : kPrecisions) {
    for (const KernelCase& kernel : EveryKernel(dtype)) {
      const RunResult expected = RunStep(kernel.schedule, OnCpu(), StartWith::kRandom);
      const RunResult got = RunStep(kernel.schedule, OnGpus(), StartWith::kRandom);
      const WorstDifference worst = Compare(got.contents, expected.contents);
      EXPECT_LE(worst.relative, tolerance)
          << kernel.name << " in " << Name(dtype) << ": " << worst.where;
      EXPECT_THAT(door_->Findings(), IsEmpty()) << kernel.name;
    }
  }
}

// What runs is the source of our kernels, block by block (tests/doubles/device_source.h).
TEST_F(CudaBackendTest, EveryKernelsOwnSourceAgreesWithTheCpu) {
  if (kIsSanitized) GTEST_SKIP() << "threads of a block take turns on stacks of their own";
  door_->control().runs_source = true;
  constexpr std::pair<DType, double> kPrecisions[] = {
      {DType::kFp32, 3e-5}, {DType::kBf16, 8e-3}, {DType::kFp16, 1e-3}};
  for (const auto& [dtype, tolerance] : kPrecisions) {
    for (const KernelCase& kernel : EveryKernel(dtype)) {
      const bool is_slow = kernel.name.find("attention") == 0;
      if (is_slow && (dtype != DType::kFp32 || kernel.name.find(" by 1") != kernel.name.npos))
        continue;
      const RunResult expected = RunStep(kernel.schedule, OnCpu(), StartWith::kRandom);
      const RunResult got = RunStep(kernel.schedule, OnGpus(), StartWith::kRandom);
      const WorstDifference worst = Compare(got.contents, expected.contents);
      EXPECT_LE(worst.relative, tolerance)
          << kernel.name << " in " << Name(dtype) << ": " << worst.where;
      EXPECT_THAT(door_->Findings(), IsEmpty()) << kernel.name;
    }
  }
}

// ---- faults -------------------------------------------------------------------------------------

TEST_F(CudaBackendTest, AMissingEventIsARace) {
  // The loss reads what the all-reduce on the other stream writes; without the edge, nothing orders
  // them.
  Schedule schedule = TensorParallelStep(2, DType::kFp32);
  for (Op& op : schedule.roles[0].ops) {
    if (op.name == "loss") op.after.clear();
  }
  RunStep(schedule, OnGpus());
  EXPECT_THAT(door_->Findings(), Contains(AllOf(HasSubstr("race"), HasSubstr("SquaredError"),
                                                HasSubstr("all-reduce"))));
}

TEST_F(CudaBackendTest, CollectivesOutOfOrderAreFound) {
  Schedule schedule = EveryCollective(2);
  schedule.roles.push_back(schedule.roles[0]);
  schedule.role_of_rank[1] = 1;
  std::vector<Op>& ops = schedule.roles[1].ops;
  const auto is = [](const char* name) { return [name](const Op& op) { return op.name == name; }; };
  std::iter_swap(std::find_if(ops.begin(), ops.end(), is("gather")),
                 std::find_if(ops.begin(), ops.end(), is("broadcast")));
  const std::string failure = FailureOf(schedule, {.stall_seconds = 2});
  EXPECT_THAT(failure, HasSubstr("failed"));  // as ncclCommGetAsyncError says
  EXPECT_THAT(door_->Findings(), Contains(HasSubstr("on a communicator is")));
}

TEST_F(CudaBackendTest, ADeadlockIsReportedWithTheOpsThatHang) {
  // Rank 1 never gets to the last all-reduce.
  Schedule schedule = TensorParallelStep(2, DType::kFp32);
  schedule.roles.push_back(schedule.roles[0]);
  schedule.role_of_rank[1] = 1;
  std::vector<Op>& ops = schedule.roles[1].ops;
  ops.erase(std::find_if(ops.begin(), ops.end(),
                         [](const Op& op) { return op.name == "all-reduce d x"; }));
  const auto begin = std::chrono::steady_clock::now();
  const std::string failure = FailureOf(schedule, {.stall_seconds = 1});
  const std::chrono::duration<double> took = std::chrono::steady_clock::now() - begin;
  EXPECT_THAT(failure, AllOf(HasSubstr("rank 0"), HasSubstr("stood still"),
                             HasSubstr("\"all-reduce d x\" on stream \"all\"")));
  EXPECT_LT(took.count(), 20);
}

TEST_F(CudaBackendTest, ALostRankEndsTheOthers) {
  const Schedule schedule = TensorParallelStep(3, DType::kFp32);
  std::atomic<int> lost = 0;
  const auto run = [&](Transport& transport) {
    const RankPlan plan = PlanRank(schedule, transport.rank());
    const auto backend = OnGpus()(plan, transport);
    WriteInitialState(plan, 1, false, *backend);
    if (transport.rank() == 1) throw Error("this rank had enough");
    std::vector<OpTime> times;
    try {
      backend->Step({.seed = 1, .tokens = 12}, &times, nullptr);
    } catch (const RankLost&) {
      ++lost;
      throw;
    }
  };
  EXPECT_THROW(RunAsThreads(3, run), Error);
  EXPECT_EQ(lost, 2);
}

std::string ReadSource(const std::string& path) {
  std::stringstream text;
  text << std::ifstream(SourceDir() + "/" + path).rdbuf();
  return text.str();
}

// Freeing does not fail loudly: what it frees is gone all the same.
bool IsRelease(const std::string& entry) {
  static const std::set<std::string> releases = {
      "cudaFree",         "cudaStreamDestroy",   "cudaEventDestroy", "cudaLibraryUnload",
      "cublasDestroy_v2", "ncclCommDestroy",     "ncclCommAbort",    "cudaFreeHost",
      "cudaGraphDestroy", "cudaGraphExecDestroy"};
  return releases.count(entry) > 0;
}

// Makes the first and the last call fail of every entry point that `run` calls and that is not in
// `tested`.
void ExpectEveryFailureIsNamed(gpu_double::Door* door, const std::function<void()>& run,
                               std::set<std::string>* tested) {
  const std::set<std::string> polled = {"cudaEventQuery",
                                        "ncclCommGetAsyncError"};  // as often as it takes
  door->Reset();
  run();
  for (const auto& [entry, count] : door->Calls()) {
    if (!tested->insert(entry).second) continue;
    for (const uint64_t call : {uint64_t{1}, polled.count(entry) > 0 ? 1 : count}) {
      door->Reset();
      door->control().fail = entry;
      door->control().patience_seconds = 0.5;
      door->control().fail_call = call;
      std::string failure;
      try {
        run();
      } catch (const std::exception& error) {
        failure = error.what();
      }
      if (IsRelease(entry)) {
        EXPECT_EQ(failure, "") << entry;
      } else {
        EXPECT_THAT(failure, HasSubstr(entry + " failed")) << "at call " << call << " of " << count;
      }
    }
  }
  door->Reset();
}

TEST_F(CudaBackendTest, EveryEntryPointThatFailsIsReportedByName) {
  CudaOptions options;
  options.stall_seconds = 5;
  std::set<std::string> tested;
  const GpuLibraries& gpu = LoadGpuLibraries();
  ExpectEveryFailureIsNamed(
      door_, [&] { RunStep(EveryCollective(2), OnGpus(options)); }, &tested);
  ExpectEveryFailureIsNamed(
      door_, [&] { RunStep(TensorParallelStep(1, DType::kFp32), OnGpus(options)); }, &tested);
  ExpectEveryFailureIsNamed(
      door_, [&] { RunStep(TensorParallelStep(2, DType::kFp32), OnGpus(ByGraph())); }, &tested);
  ExpectEveryFailureIsNamed(
      door_,
      [&] {
        int devices = 0;
        gpu.cuda.GetDeviceCount(&devices);
        ReadGpu(gpu, 0);
        ReadGpuMachine(gpu);
      },
      &tested);
  ExpectEveryFailureIsNamed(
      door_, [&] { MeasureOverheads(gpu, 0, Bytes(4096)); }, &tested);
  // All functions that real/cuda/libraries.h has of the three libraries that a run needs.
  std::set<std::string> all;
  const std::regex entry("\"((cuda|cublas|nccl)[A-Z]\\w+)\"");
  const std::string header = ReadSource("real/cuda/libraries.h");
  for (std::sregex_iterator found(header.begin(), header.end(), entry), end; found != end; ++found)
    all.insert((*found)[1]);
  EXPECT_GT(all.size(), 40u);
  all.erase("ncclCommAbort");  // only called when something else has failed: in each of these
  for (const std::string& name : all) EXPECT_EQ(tested.count(name), 1u) << name;
}

TEST_F(CudaBackendTest, TooLittleMemoryIsSaidBeforeAnythingIsAllocated) {
  door_->control().memory_bytes = 1024;
  EXPECT_THAT(FailureOf(TensorParallelStep(1, DType::kFp32)),
              AllOf(HasSubstr("rank 0 needs"), HasSubstr("GiB free")));
  EXPECT_EQ(door_->Calls()["cudaMalloc"], 0u);
}

TEST_F(CudaBackendTest, TooFewGpusAndAnOldDriverAreRefused) {
  const auto failure = [&] {
    try {
      RequireGpus(LoadGpuLibraries(), 4);
    } catch (const Error& error) {
      return std::string(error.what());
    }
    return std::string();
  };
  door_->control().devices = 2;
  EXPECT_THAT(failure(), HasSubstr("found 2 GPUs, expected at least 4"));
  door_->control().devices = 8;
  door_->control().driver_version = 12040;
  EXPECT_THAT(failure(),
              HasSubstr("driver knows CUDA 12.4, which is too old for the runtime's 13.0"));
  door_->control().driver_version = 0;
  EXPECT_THAT(failure(), HasSubstr("no NVIDIA driver"));
}

TEST(LibraryTest, AMissingLibraryIsNamedWithWhatItIsFor) {
  try {
    const Library library({"libnothing.so.7"}, "REHEARSE_NOTHING", "tests");
    FAIL();
  } catch (const Error& error) {
    EXPECT_THAT(error.what(), AllOf(HasSubstr("no libnothing.so.7"), HasSubstr("needed for tests"),
                                    HasSubstr("REHEARSE_NOTHING")));
  }
}

}  // namespace cuda_backend_test
}  // namespace rehearse

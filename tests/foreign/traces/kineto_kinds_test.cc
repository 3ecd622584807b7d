// Kinds of profiles that people have: one rank of many, steps that overlap, older profilers,
// kernels of other libraries.
#include <filesystem>
#include <fstream>
#include <string>
#include <vector>

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <nlohmann/json.hpp>
#include <sys/resource.h>
#include <unistd.h>

#include "sim/base/error.h"
#include "sim/base/gzip.h"
#include "sim/base/json_document.h"
#include "sim/base/json_reader.h"
#include "sim/report/comparison.h"
#include "sim/report/fixed_ops.h"
#include "sim/report/timeline_record.h"
#include "sim/schedule/schedule_json.h"
#include "tests/foreign/traces/kineto_traces.h"
#include "tests/support/sanitizers.h"
#include "tools/foreign/traces/kernel_names.h"
#include "tools/foreign/traces/kineto/kineto_file.h"
#include "tools/foreign/traces/kineto/kineto_read.h"

namespace rehearse {
namespace kineto_kinds_test {

namespace fs = std::filesystem;
using ::testing::Contains;
using ::testing::HasSubstr;
using ::testing::Not;

class KinetoKindsTest : public ::testing::Test {
 protected:
  KinetoKindsTest() {
    const auto* info = ::testing::UnitTest::GetInstance()->current_test_info();
    folder_ = fs::temp_directory_path() /
              (std::string("kineto-kinds-") + info->name() + "-" + std::to_string(getpid()));
    fs::create_directories(folder_);
  }
  ~KinetoKindsTest() override { fs::remove_all(folder_); }

  void Write(const std::string& name, const std::string& content) const {
    std::ofstream(folder_ / name, std::ios::binary) << content;
  }
  ImportedKineto Import(const KinetoOptions& options = {},
                        KinetoResult result = KinetoResult::kTimeline) const {
    return ImportKineto({folder_.string()}, result, options);
  }
  TimelineRecord Timeline(const KinetoOptions& options = {}) const {
    const std::string text = Import(options).text;
    const JsonDocument document = JsonDocument::FromText(text, "imported");
    return ReadTimelineRecord(document.Root());
  }
  Schedule ImportedSchedule(const KinetoOptions& options = {}) const {
    const std::string text = Import(options, KinetoResult::kSchedule).text;
    const JsonDocument document = JsonDocument::FromText(text, "imported");
    return ReadSchedule(document.Root());
  }
  std::string MistakeOf(const KinetoOptions& options) const {
    try {
      Import(options);
    } catch (const Error& error) {
      return error.what();
    }
    return "";
  }

  fs::path folder_;
};

Time Us(double microseconds) { return ToTime(Seconds(microseconds * 1e-6)); }

// Ranks 1 and 3 of 4: what they do with each other is played, with the others as long as measured.
TEST_F(KinetoKindsTest, SomeRanksOfMany) {
  for (const uint32_t rank : {1u, 3u}) {
    KinetoText trace(rank, 4);
    trace.Kernel("gemm", 7, 0, 10, 100)
        .Collective("allreduce", 20, 5, 120, 40, 64, 64, "odd", 2, "[1, 3]")
        .Collective("allreduce", 20, 6, 170, 30, 64, 64, "0", 4, "[0, 1, 2, 3]");
    Write("rank" + std::to_string(rank) + ".json", trace.text());
  }
  EXPECT_THAT(Import().remarks, Contains(HasSubstr("found ranks 1, 3 of 4")));
  EXPECT_THAT(Import().remarks, Contains(HasSubstr("waiting for others is unknown")));
  const TimelineRecord record = Timeline();
  EXPECT_EQ(record.ranks(), 2u);
  ASSERT_EQ(record.roles[0].ops.size(), 3u);
  EXPECT_EQ(record.roles[0].name, "as rank 1");
  EXPECT_EQ(record.roles[0].ops[2].kind, "all-reduce");
  EXPECT_EQ(record.roles[0].ops[2].axis, "group 0");
  const Schedule schedule = ImportedSchedule();
  ASSERT_EQ(schedule.communicators.size(), 1u);
  EXPECT_EQ(schedule.communicators[0].name(), "group odd");
  EXPECT_EQ(schedule.communicators[0].Rank(0, 1), 1u);  // of those that there are
  EXPECT_EQ(schedule.roles[1].name, "rank 3");
  uint32_t collectives = 0;
  Seconds measured;
  for (const Op& op : schedule.roles[0].ops) {
    collectives += std::holds_alternative<Collective>(op.work) ? 1 : 0;
    const auto* compute = std::get_if<Compute>(&op.work);
    if (compute != nullptr && op.name.starts_with("nccl")) measured += compute->duration;
  }
  EXPECT_EQ(collectives, 1u);
  EXPECT_EQ(measured, Seconds(30e-6));
}

// A copy that is launched at the end of a step runs in the next one: 1 ms after 1 ms.
void AddSteps(uint32_t steps, double drift, KinetoText* trace) {
  for (uint32_t step = 0; step < steps; ++step) {
    const double at = 1000.0 * step;
    trace->Step(step, at, 1000)
        .Kernel("forward", 7, at + 10, at + 20, 400)
        .Kernel("backward", 7, at + 11, at + 430, 500 + drift * step)
        .Kernel("prefetch", 9, at + 990, at + 1500, 100);
  }
}

TEST_F(KinetoKindsTest, StepsThatOverlapAreToldByTheirPeriod) {
  KinetoText trace(0, 1);
  AddSteps(4, 1, &trace);
  Write("rank0.json", trace.text());
  const ImportedKineto imported = Import();
  EXPECT_EQ(imported.steps, 4u);
  EXPECT_THAT(imported.remarks, Contains(HasSubstr("steps overlap on the devices")));
  EXPECT_THAT(imported.remarks, Contains(HasSubstr("1.000 ms; 1 kernels and copies")));
  const TimelineRecord record = Timeline();
  for (const RecordedStep& step : record.steps) EXPECT_EQ(step.timeline.step, Us(1000));
  // From 20 on, it began at 1500: 480 into the next.
  bool is_found = false;
  for (const Span& span : record.Median().spans) {
    if (record.OpOf(span).name != "prefetch") continue;
    is_found = true;
    EXPECT_EQ(span.begin, Us(480));
    EXPECT_EQ(span.end, Us(580));
  }
  EXPECT_TRUE(is_found);
  // The schedule is as long: a gap ends it.
  const Schedule schedule = ImportedSchedule();
  EXPECT_EQ(schedule.roles[0].ops.back().name, "gap");
}

TEST_F(KinetoKindsTest, StepsThatDoNotOverlapEndWithTheirLastKernel) {
  KinetoText trace(0, 1);
  for (uint32_t step = 0; step < 3; ++step)
    trace.Step(step, 1000.0 * step, 1000).Kernel("k", 7, 1000.0 * step, 1000.0 * step + 50, 700);
  Write("rank0.json", trace.text());
  EXPECT_EQ(Timeline().Median().step, Us(700));
}

TEST_F(KinetoKindsTest, TheMostFrequentStepIsTheModel) {
  KinetoText trace(0, 1);
  trace.Step(7, 0, 900).Kernel("warms up", 7, 1, 10, 100);
  for (const uint32_t step : {8u, 9u})
    trace.Step(step, 1000.0 * step, 900)
        .Kernel("a", 7, 1000.0 * step + 1, 1000.0 * step + 10, 100)
        .Kernel("b", 7, 1000.0 * step + 2, 1000.0 * step + 200, 100);
  trace.Step(10, 10000, 900).Kernel("a", 7, 10001, 10010, 100);  // cut off
  trace.Step(11, 11000, 40);                                     // a stub
  Write("rank0.json", trace.text());
  const ImportedKineto imported = Import();
  EXPECT_EQ(imported.steps, 2u);
  EXPECT_THAT(imported.remarks, Contains(HasSubstr("ProfilerStep#7 left out")));
  EXPECT_THAT(imported.remarks, Contains(HasSubstr("ProfilerStep#10 left out")));
  EXPECT_THAT(imported.remarks, Contains("ProfilerStep#11 left out: nothing was launched in it"));
  // The user may want another.
  KinetoOptions options;
  options.step = 7;
  const TimelineRecord first = Timeline(options);
  ASSERT_EQ(first.roles[0].ops.size(), 1u);
  EXPECT_EQ(first.roles[0].ops[0].name, "warms up");
  options.step = 3;
  EXPECT_THAT(MistakeOf(options), HasSubstr("--step: found no step 3"));
  options.step = 11;
  EXPECT_THAT(MistakeOf(options), HasSubstr("found no kernels in ProfilerStep#11"));
}

// One whole step, and the stub of the next.
TEST_F(KinetoKindsTest, AStubIsNotTheModel) {
  KinetoText trace(0, 1);
  trace.Step(1, 0, 900)
      .Kernel("a", 7, 1, 10, 100)
      .Kernel("b", 7, 2, 200, 100)
      .Kernel("c", 7, 3, 400, 100);
  trace.Step(2, 1000, 40).Kernel("a", 7, 1001, 1010, 100);
  Write("rank0.json", trace.text());
  EXPECT_EQ(Timeline().roles[0].ops.size(), 3u);
}

TEST_F(KinetoKindsTest, StepsMayHaveOtherNames) {
  KinetoText trace(0, 1);
  for (uint32_t step = 0; step < 2; ++step)
    trace.Event("user_annotation", "train iteration " + std::to_string(step), 1000.0 * step, 900)
        .Event("user_annotation", "train iteration inner", 1000.0 * step + 5, 100)
        .Kernel("k", 7, 1000.0 * step, 1000.0 * step + 50, 700);
  Write("rank0.json", trace.text());
  EXPECT_EQ(Import().steps, 1u);
  KinetoOptions options;
  options.step_name = "^train iteration";
  EXPECT_EQ(Import(options).steps, 2u);
  options.step_name = "(";
  EXPECT_THAT(MistakeOf(options), HasSubstr("--step-name: found \"(\""));
}

TEST_F(KinetoKindsTest, OlderProfilersNameCategoriesOtherwise) {
  KinetoText trace(0, 1);
  trace.Event("Operator", "ProfilerStep#1", 0, 1000)
      .Event("Runtime", "cudaLaunchKernel", 10, 2, R"({"correlation": 1})")
      .Event("Kernel", "gemm", 20, 100, R"({"stream": 7, "device": 0, "correlation": 1})")
      .Event("Memcpy", "Memcpy HtoD", 130, 10, R"({"stream": 7, "device": 0, "correlation": 2})");
  Write("rank0.json", trace.text());
  const TimelineRecord record = Timeline();
  ASSERT_EQ(record.roles[0].ops.size(), 2u);
  EXPECT_EQ(record.roles[0].ops[0].kind, "gemm");
}

TEST_F(KinetoKindsTest, NamesSayWhatCommunicates) {
  const auto kind = [](const char* name) { return CommunicationOfKernel(name).value_or(""); };
  EXPECT_EQ(kind("void deep_ep::internode::dispatch<false, 8>(int4*)"), "all-to-all");
  EXPECT_EQ(kind("void deep_ep::intranode::combine<__nv_bfloat16, 8>(int4*)"), "all-to-all");
  EXPECT_EQ(kind("void deep_ep::layout::get_dispatch_layout<256>(long const*)"), "");
  EXPECT_EQ(kind("nvshmemi_entrypoint_put"), "communication");
  EXPECT_EQ(kind("void (anonymous namespace)::multimem_all_reduce_kernel<float>(float*)"),
            "all-reduce");
  EXPECT_EQ(kind("void vllm::cross_device_reduce_1stage<__half, 8>(vllm::RankData*)"),
            "all-reduce");
  EXPECT_EQ(kind("one_shot_all_reduce_kernel<4>"), "all-reduce");
  EXPECT_EQ(kind("void cutlass::device_kernel<bytedance::flux::GemmRS>(int)"), "reduce-scatter");
  EXPECT_EQ(kind("mscclpp::allreduce6<half>"), "all-reduce");
  EXPECT_EQ(kind("ncclDevKernel_ReduceScatter_Sum_bf16_RING_LL"), "reduce-scatter");
  EXPECT_EQ(kind("ncclKernel_Reduce_RING_LL_Sum_float"), "reduce");
  EXPECT_EQ(kind("ncclDevKernel_SendRecv"), "send-receive");
  EXPECT_EQ(kind("ncclDevKernel_Generic(ncclDevKernelArgsStorage<4096ul>)"), "communication");
  EXPECT_EQ(kind("triton_red_fused_all_reduce_add_0"), "");
  EXPECT_EQ(kind("ampere_bf16_s16816gemm"), "");
  EXPECT_EQ(kind("void flash_fwd_splitkv_combine_kernel<128>(Params)"), "");
  EXPECT_STREQ(ComputeOfKernel("split_embedding_codegen_forward<float>(fbgemm_gpu::pta)"),
               "memory");
  EXPECT_STREQ(ComputeOfKernel("fbgemm_gpu::f8f8bf16_cutlass_gemm"), "gemm");
  EXPECT_EQ(CollectiveOfWord("all_gather"), CollectiveKind::kAllGather);
  EXPECT_EQ(CollectiveOfWord("_reduce_scatter_base"), CollectiveKind::kReduceScatter);
  EXPECT_EQ(CollectiveOfWord("allgather_into_tensor_coalesced"), CollectiveKind::kAllGather);
  EXPECT_EQ(CollectiveOfWord("nccl:all_to_all"), CollectiveKind::kAllToAll);
  EXPECT_FALSE(CollectiveOfWord("gather_of_tomorrow"));
}

// RCCL has one kernel for all; what c10d says around its launch, or around it, tells them apart.
TEST_F(KinetoKindsTest, KernelsTakeTheNameOfTheCollectiveAroundThem) {
  const std::string generic = "ncclDevKernel_Generic(ncclDevKernelArgsStorage<4096ul>)";
  KinetoText trace(0, 1);
  trace.Event("cpu_op", "record_param_comms", 90, 20,
              R"({"Collective name": "_allgather_base", "dtype": "BFloat16", "In msg nelems": 64,)"
              R"( "Out msg nelems": 64, "Group size": 1, "Process Group Name": "0",)"
              R"( "Process Group Ranks": "[0]"})");
  trace.Kernel(generic, 20, 100, 150, 10);
  trace.Event("gpu_user_annotation", "nccl:all_reduce", 199, 20, "{}", 20);
  trace.Kernel(generic, 20, 120, 200, 10);
  trace.Kernel(generic, 20, 130, 300, 10);
  Write("rank0.json", trace.text());
  const TimelineRecord record = Timeline();
  ASSERT_EQ(record.roles[0].ops.size(), 3u);
  EXPECT_EQ(record.roles[0].ops[0].kind, "all-gather");
  EXPECT_EQ(record.roles[0].ops[0].axis, "group 0");
  EXPECT_EQ(record.roles[0].ops[1].kind, "all-reduce");
  EXPECT_EQ(record.roles[0].ops[2].kind, "communication");
}

TEST_F(KinetoKindsTest, TheUserMaySayWhatCommunicates) {
  KinetoText trace(0, 1);
  trace.Kernel("my_halo_exchange", 7, 0, 10, 100).Kernel("gemm", 7, 1, 120, 50);
  Write("rank0.json", trace.text());
  EXPECT_EQ(Timeline().roles[0].ops[0].kind, "memory");
  KinetoOptions options;
  options.communication = "halo|ghost";
  const TimelineRecord record = Timeline(options);
  EXPECT_EQ(record.roles[0].ops[0].kind, "communication");
  EXPECT_EQ(record.roles[0].ops[0].axis, "group not told");
  EXPECT_EQ(record.roles[0].ops[1].kind, "gemm");
}

// A schedule's timeline and the one that was measured have the same ops, whatever their kind.
TEST_F(KinetoKindsTest, TheScheduleHasTheOpsOfTheTimeline) {
  KinetoText trace(0, 4);
  trace.Kernel("gemm", 7, 0, 10, 100)
      .Kernel("norm", 7, 1, 130, 20)
      .Collective("allreduce", 20, 6, 170, 30, 64, 64, "0", 4, "[0, 1, 2, 3]");
  Write("rank0.json", trace.text());
  const TimelineRecord measured = Timeline();
  const Schedule schedule = ImportedSchedule();
  // As it was: the ops one after the other.
  rehearse::Timeline timeline;
  timeline.ranks = 1;
  for (uint32_t op = 0; op < schedule.roles[0].ops.size(); ++op)
    timeline.spans.push_back({0, op, Us(op), Us(op), Us(op + 1.0)});
  timeline.step = timeline.spans.back().end;
  TimelineRecord simulated = MakeRecord("simulated", schedule, timeline);
  TellFixedOps(measured, &simulated);
  const Comparison comparison = Compare(simulated, measured);
  EXPECT_EQ(comparison.ops.size(), 3u);
  EXPECT_EQ(comparison.only_in_a, 0u);
  EXPECT_EQ(comparison.only_in_b, 0u);
  ASSERT_EQ(comparison.axes.size(), 1u);
  EXPECT_EQ(comparison.axes[0].name, "group 0");
  // Nobody knows how long the rank waited for the others.
  EXPECT_EQ(comparison.a_waiting, "");
  EXPECT_EQ(comparison.b_waiting, kWaitingUnknown);
  EXPECT_THAT(ToText(comparison, false), HasSubstr("unknown             what is not known counts"));
  EXPECT_TRUE(ToJson(comparison)["gap"]["waiting_seconds"]["b"].is_null());
  EXPECT_FALSE(ToJson(comparison)["gap"]["waiting_seconds"]["a"].is_null());
  // Gaps are neither compute nor communication.
  EXPECT_DOUBLE_EQ(comparison.a_shares.compute.value(), 2e-6);
  EXPECT_DOUBLE_EQ(comparison.a_shares.communication.value(), 1e-6);
}

// A gibibyte of blanks is a megabyte when packed: here 20 MiB of each kind that a parser would
// keep.
TEST_F(KinetoKindsTest, WhatIsLongIsNotKept) {
  constexpr size_t kLong = size_t{20} << 20;
  const std::string event =
      R"({"ph": "X", "cat": "kernel", "name": "k", "ts": 0, "dur": 5, "args": {"stream": 7}})";
  Write("a.json.gz", Gzip("{\"traceEvents\": [" + std::string(kLong, ' ') + event + "]}"));
  EXPECT_EQ(Import().steps, 1u);
  Write("a.json.gz",
        Gzip("{\"traceEvents\": [" + event + "], \"x\": \"" + std::string(kLong, 'x') + "\"}"));
  EXPECT_THAT(MistakeOf({}), HasSubstr("of more than 4 MiB"));
  std::string lists = "[";
  for (size_t i = 0; i < kLong / 2; ++i) lists += "[],";
  Write("a.json.gz", Gzip("{\"x\": " + lists + "[]], \"traceEvents\": [" + event + "]}"));
  EXPECT_THAT(MistakeOf({}), HasSubstr("of more than 4 MiB"));
  std::string ranks = "0";
  for (size_t i = 0; i < kLong / 4; ++i) ranks += ",0";
  Write("a.json.gz", Gzip(R"({"distributedInfo": {"pg_config": [{"pg_name": "0", "ranks": [)" +
                          ranks + "]}]}, \"traceEvents\": [" + event + "]}"));
  EXPECT_THAT(MistakeOf({}), HasSubstr("a list of ranks of more than 4 MiB"));
}

// 140,000 kernels, each with a name of its own: just more than a list has room for that doubles. At
// the bound of 512 MiB this is the difference between less than 1 GiB and more.
TEST_F(KinetoKindsTest, WhatIsKeptTakesLessThanTwiceAsMuchMemory) {
  if (kIsSanitized) GTEST_SKIP() << "sanitizers take memory of their own";
  constexpr size_t kKernels = 140'000;
  const fs::path path = folder_ / "a.json";
  std::ofstream file(path, std::ios::binary);
  file << "{\"traceEvents\": [";
  for (size_t i = 0; i < kKernels; ++i) {
    file << (i == 0 ? "" : ",") << R"({"ph": "X", "cat": "kernel", "name": "kernel_number_)"
         << 100'000 + i << R"(", "ts": )" << i << R"(, "dur": 1, "args": {"stream": 7}})";
  }
  file << "]}";
  file.close();
  struct rusage before {};
  getrusage(RUSAGE_SELF, &before);
  const KinetoTrace trace = ReadKineto(path.string());
  struct rusage after {};
  getrusage(RUSAGE_SELF, &after);
  EXPECT_EQ(trace.events.size(), kKernels);
  EXPECT_EQ(trace.names.size(), kKernels);
  EXPECT_EQ(trace.names[trace.events[kKernels - 1].name], "kernel_number_239999");
  // The event; a text twice, 20 bytes long, and a node (as KeptBytes counts them).
  const size_t kept = kKernels * (sizeof(KinetoEvent) + sizeof(std::string) + 32 + 2 * 20);
  EXPECT_LT(static_cast<size_t>(after.ru_maxrss - before.ru_maxrss) << 10, 2 * kept);
}

}  // namespace kineto_kinds_test
}  // namespace rehearse

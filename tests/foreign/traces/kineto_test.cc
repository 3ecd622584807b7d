// Traces of PyTorch's profiler, as it could have written them: whole, cut off and wrong.
#include <filesystem>
#include <fstream>
#include <string>
#include <tuple>
#include <vector>

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <unistd.h>

#include "sim/base/error.h"
#include "sim/base/gzip.h"
#include "sim/base/json_document.h"
#include "sim/base/json_reader.h"
#include "sim/report/timeline_record.h"
#include "sim/schedule/schedule_json.h"
#include "tests/foreign/traces/kineto_traces.h"
#include "tests/sim/sample_step.h"
#include "tools/foreign/traces/kineto/kineto_read.h"
#include "tools/foreign/traces/kineto/kineto_write.h"

namespace rehearse {
namespace kineto_test {

namespace fs = std::filesystem;
using ::testing::Contains;
using ::testing::HasSubstr;
using ::testing::Not;

class KinetoTest : public ::testing::Test {
 protected:
  KinetoTest() {
    const auto* info = ::testing::UnitTest::GetInstance()->current_test_info();
    folder_ = fs::temp_directory_path() /
              (std::string("kineto-") + info->name() + "-" + std::to_string(getpid()));
    fs::create_directories(folder_);
  }
  ~KinetoTest() override { fs::remove_all(folder_); }

  void Write(const std::string& name, const std::string& content) const {
    std::ofstream(folder_ / name, std::ios::binary) << content;
  }
  ImportedKineto Import(KinetoResult result = KinetoResult::kTimeline) const {
    return ImportKineto({folder_.string()}, result);
  }
  TimelineRecord ImportedTimeline() const {
    const std::string text = Import().text;
    const JsonDocument document = JsonDocument::FromText(text, "imported");
    return ReadTimelineRecord(document.Root());
  }
  Schedule ImportedSchedule() const {
    const std::string text = Import(KinetoResult::kSchedule).text;
    const JsonDocument document = JsonDocument::FromText(text, "imported");
    return ReadSchedule(document.Root());
  }
  void ExpectMistake(const std::vector<std::string>& parts,
                     KinetoResult result = KinetoResult::kTimeline) const {
    try {
      Import(result);
      ADD_FAILURE() << "expected a mistake with " << parts[0];
    } catch (const Error& error) {
      for (const std::string& part : parts) EXPECT_THAT(error.what(), HasSubstr(part));
    }
  }

  // Two ranks: a product, an all-reduce beside another product, and what reads the sum. Rank 1
  // arrives 30 us later at the all-reduce; its clock is `ahead` of rank 0's.
  void WriteTwoRanks(double ahead, int64_t elements = 1024) const {
    for (uint32_t rank = 0; rank < 2; ++rank) {
      KinetoText trace(rank, 2);
      trace.clock = rank == 1 ? ahead : 0;
      const double late = rank * 30.0;
      trace.Kernel("ampere_bf16_gemm", 7, 0, 10, 100 + late)
          .Collective("allreduce", 20, 5, 112 + late, 88 - late, 1024, elements, "0", 2, "[0, 1]")
          .Kernel("vectorized_elementwise", 7, 6, 110 + late, 20)
          .Kernel("reads the sum", 7, 8, 203, 10)
          .Event("cpu_op", "aten::mm", 0, 3);
      Write("rank" + std::to_string(rank) + ".json", trace.text());
    }
  }

  fs::path folder_;
};

Time Us(double microseconds) { return ToTime(Seconds(microseconds * 1e-6)); }

TEST_F(KinetoTest, WhatWasMeasuredIsATimelineOnOneClock) {
  WriteTwoRanks(123'456.5);
  const ImportedKineto imported = Import();
  EXPECT_EQ(imported.ranks, 2u);
  EXPECT_EQ(imported.steps, 1u);
  EXPECT_THAT(imported.remarks, Contains(HasSubstr("aligned on 1 collectives")));
  EXPECT_THAT(imported.remarks, Contains("events not used: 2 of cpu_op"));
  const TimelineRecord record = ImportedTimeline();
  EXPECT_EQ(record.provenance, Provenance::kMeasured);
  ASSERT_EQ(record.roles.size(), 1u);  // both do the same
  const RecordedRole& role = record.roles[0];
  ASSERT_EQ(role.ops.size(), 4u);
  EXPECT_EQ(role.ops[0].kind, "gemm");
  EXPECT_EQ(role.ops[1].kind, "memory");
  EXPECT_EQ(role.ops[2].kind, "all-reduce");
  EXPECT_EQ(role.ops[2].axis, "group 0");
  const Timeline& timeline = record.Median();
  // From the first kernel at 10 us to 213.
  EXPECT_EQ(timeline.step, Us(203));
  ASSERT_EQ(timeline.spans.size(), 8u);
  const Span& first = timeline.spans[2];
  const Span& second = timeline.spans[6];
  // Rank 0 is there at 112, rank 1 at 142: 10 less each.
  EXPECT_EQ(first.ready, Us(102));
  EXPECT_EQ(first.begin, Us(132));
  EXPECT_EQ(second.ready, Us(132));
  EXPECT_EQ(second.begin, Us(132));
  EXPECT_EQ(first.end, Us(190));
  EXPECT_EQ(second.end, Us(190));
}

// On stream 7, after one in 10..110 us: one that begins at 100, and one that is over before.
TEST_F(KinetoTest, KernelsOfAStreamThatOverlapFollowEachOther) {
  KinetoText trace(0, 1);
  trace.Kernel("gemm", 7, 0, 10, 100)
      .Kernel("launched early", 7, 1, 100, 30)
      .Kernel("inside", 7, 2, 105, 3)
      .Kernel("beside", 8, 3, 100, 15);
  Write("rank0.json", trace.text());
  EXPECT_THAT(Import().remarks,
              Contains(HasSubstr("2 kernels and copies begin before the previous one")));
  const TimelineRecord record = ImportedTimeline();
  const Timeline& timeline = record.Median();
  std::map<std::string, const Span*> spans;
  for (const Span& span : timeline.spans) spans[record.OpOf(span).name] = &span;
  ASSERT_EQ(spans.size(), 4u);
  // The first begins at 0 now.
  EXPECT_EQ(spans["gemm"]->end, Us(100));
  EXPECT_EQ(spans["launched early"]->ready, Us(100));
  EXPECT_EQ(spans["launched early"]->begin, Us(100));
  EXPECT_EQ(spans["launched early"]->end, Us(120));
  EXPECT_EQ(spans["inside"]->begin, Us(120));
  EXPECT_EQ(spans["inside"]->end, Us(120));
  EXPECT_EQ(spans["beside"]->begin, Us(90));  // streams may overlap
  EXPECT_EQ(timeline.step, Us(120));
}

// To the picosecond, with what each op waited for; also rank by rank in a folded timeline.
TEST_F(KinetoTest, WhatRehearseWritesComesBackAsItWas) {
  TwoRankStep step;
  step.timeline.spans[1].begin = step.timeline.spans[1].begin + Time(1);
  step.schedule.roles[0].ops[2] =
      CollectiveOp("reduce-scatter g", CollectiveKind::kReduceScatter, 1, 600);
  for (const uint32_t rank : {0u, 1u})
    Write(KinetoFileName(rank), KinetoTraceOf(step.schedule, step.timeline, {}, rank));
  const TimelineRecord record = ImportedTimeline();
  ASSERT_EQ(record.roles.size(), 1u);
  ASSERT_EQ(record.roles[0].ops.size(), 5u);
  for (size_t i = 0; i < 5; ++i) {
    EXPECT_EQ(record.roles[0].ops[i].name, step.schedule.roles[0].ops[i].name);
    EXPECT_EQ(record.roles[0].ops[i].phase, step.schedule.roles[0].ops[i].tag.phase);
    EXPECT_EQ(record.roles[0].ops[i].layer, step.schedule.roles[0].ops[i].tag.layer);
  }
  EXPECT_EQ(HashOf(record.Median()), HashOf(step.timeline));
  // 600 bytes of bfloat16 are 300 elements, of which each of two ranks keeps half; the all-reduce
  // of 1000 bytes has 500 before and after.
  const std::string text = Gunzip(KinetoTraceOf(step.schedule, step.timeline, {}, 0), 1u << 20);
  EXPECT_THAT(text, HasSubstr(R"("In msg nelems": 300, "Out msg nelems": 150, "Group size": 2)"));
  EXPECT_THAT(text, HasSubstr(R"("In msg nelems": 500, "Out msg nelems": 500, "Group size": 2)"));
  // Gathered, each gives half. The only group of its communicator has its name.
  step.schedule.roles[0].ops[2] = CollectiveOp("gather w", CollectiveKind::kAllGather, 1, 600);
  const std::string gathers = Gunzip(KinetoTraceOf(step.schedule, step.timeline, {}, 0), 1u << 20);
  EXPECT_THAT(gathers,
              HasSubstr(R"("In msg nelems": 150, "Out msg nelems": 300, "Group size": 2)"));
  for (const Communicator& communicator : step.schedule.communicators) {
    if (communicator.group_count() != 1) continue;
    EXPECT_THAT(gathers, HasSubstr(fmt::format(R"("pg_name": "{}", )", communicator.name())));
  }
}

TEST_F(KinetoTest, AScheduleKeepsKernelsAndPlaysCollectives) {
  WriteTwoRanks(0);
  const Schedule schedule = ImportedSchedule();
  ASSERT_EQ(schedule.ranks(), 2u);
  ASSERT_EQ(schedule.communicators.size(), 1u);
  EXPECT_EQ(schedule.communicators[0].size(), 2u);
  const Role& role = schedule.roles[0];
  std::vector<std::string> names;
  for (const Op& op : role.ops) names.push_back(op.name);
  // The gaps are before the sum (2 us after the product) and before what reads it (3 us).
  ASSERT_EQ(names.size(), 6u);
  EXPECT_EQ(names[0], "ampere_bf16_gemm");
  EXPECT_EQ(std::get<Compute>(role.ops[0].work).duration, Seconds(100e-6));
  EXPECT_EQ(names[2], "gap");
  EXPECT_EQ(names[4], "gap");
  const auto& sum = std::get<Collective>(role.ops[3].work);
  EXPECT_EQ(sum.kind, CollectiveKind::kAllReduce);
  EXPECT_EQ(sum.bytes, Bytes(2048));  // of bfloat16
  EXPECT_EQ(names[5], "reads the sum");
  // It was launched long before, so the sum is what it waited for.
  EXPECT_THAT(role.ops[5].after, Contains(OpId(3)));
}

TEST_F(KinetoTest, StepsOfTheProfilerAreSteps) {
  for (uint32_t rank = 0; rank < 2; ++rank) {
    KinetoText trace(rank, 2);
    for (uint32_t step = 0; step < 3; ++step) {
      const double at = 1000.0 * step;
      trace.Step(4 + step, at, 1000).Kernel("gemm", 7, at + 5, at + 10, 100 + 10 * step);
      if (step == 0) trace.Kernel("warms up", 7, at + 5, at + 200, 10);
      trace.Collective("_allgather_base", 20, at + 6, at + 150, 50, 512, 1024, "0", 2, "[0, 1]",
                       step);
    }
    trace.Kernel("after all", 7, 3500, 3600, 1);
    Write("rank" + std::to_string(rank) + ".json.gz", Gzip(trace.text()));
  }
  const ImportedKineto imported = Import();
  EXPECT_EQ(imported.steps, 2u);
  EXPECT_THAT(imported.remarks, Contains(HasSubstr("ProfilerStep#4 left out")));
  EXPECT_THAT(imported.remarks, Contains(HasSubstr("2 kernels and copies left out: outside")));
}

TEST_F(KinetoTest, ListsOfRanksThatPyTorchCutsOffArePutTogether) {
  constexpr uint32_t kRanks = 40;
  // The even ranks, of which PyTorch would list the first, and the last.
  for (uint32_t rank = 0; rank < kRanks; ++rank) {
    KinetoText trace(rank, kRanks);
    trace.Kernel("gemm", 7, 0, 10, 100);
    if (rank % 2 == 0) {
      trace.Collective("allreduce", 20, 5, 112, 88, 1024, 1024, "even", kRanks / 2,
                       "[0, 2, 4, ..., 38]");
    }
    Write(fmt::format("rank{:02}.json", rank), trace.text());
  }
  const Schedule schedule = ImportedSchedule();
  ASSERT_EQ(schedule.communicators.size(), 1u);
  EXPECT_EQ(schedule.communicators[0].size(), 20u);
  EXPECT_EQ(schedule.communicators[0].Rank(0, 3), 6u);
}

TEST_F(KinetoTest, WhatIsNotUnderstoodIsAWaitAndListed) {
  WriteTwoRanks(0);
  for (uint32_t rank = 0; rank < 2; ++rank) {
    KinetoText trace(rank, 2);
    trace.Collective("gather_of_tomorrow", 20, 5, 112, 88, 1024, 1024, "0", 2, "[0, 1]");
    Write("rank" + std::to_string(rank) + ".json", trace.text());
  }
  EXPECT_THAT(Import(KinetoResult::kSchedule).remarks,
              Contains(HasSubstr("2 of \"gather_of_tomorrow\" not understood")));
}

TEST_F(KinetoTest, MessagesOfPipelinesMeet) {
  for (uint32_t rank = 0; rank < 2; ++rank) {
    KinetoText trace(rank, 2);
    trace.Kernel(
        "ncclDevKernel_SendRecv", 20, 0, 10, 50,
        fmt::format(R"(, "Collective name": "{}", "In msg nelems": 8, "Out msg nelems": 8,)"
                    R"( "Group size": 2, "dtype": "Float", "Process Group Name": "pp",)"
                    R"( "Process Group Ranks": [0, 1], "Src Rank": 0, "Dst Rank": 1,)"
                    R"( "block": [640, 1, 1])",
                    rank == 0 ? "send" : "recv"));
    Write("rank" + std::to_string(rank) + ".json", trace.text());
  }
  const Schedule schedule = ImportedSchedule();
  EXPECT_EQ(std::get<Send>(schedule.roles[0].ops[0].work).bytes, Bytes(32));
  EXPECT_EQ(std::get<Receive>(schedule.roles[1].ops[0].work).peer, 0u);
}

TEST_F(KinetoTest, ATruncatedTraceIsRefusedWhereverItEnds) {
  WriteTwoRanks(0);
  KinetoText trace(0, 1);
  trace.Kernel("gemm", 7, 0, 10, 100);
  fs::remove(folder_ / "rank1.json");
  const std::string whole = trace.text();
  const size_t end = whole.rfind('}');
  for (size_t size = 0; size < end; size += 3) {
    Write("rank0.json", whole.substr(0, size));
    ExpectMistake({"rank0.json", "may be truncated"});
  }
  const std::string packed = Gzip(whole);
  fs::remove(folder_ / "rank0.json");
  for (size_t size = 20; size < packed.size(); size += 7) {
    Write("rank0.json.gz", packed.substr(0, size));
    ExpectMistake({"rank0.json.gz", "may be truncated"});
  }
  Write("rank0.json.gz", packed);
  EXPECT_EQ(Import().ranks, 1u);
}

TEST_F(KinetoTest, MistakesNameFileRankAndEvent) {
  WriteTwoRanks(0);
  Write("rank0.json", "{\"schemaVersion\": 1}");
  ExpectMistake({"rank0.json", "found no \"traceEvents\""});
  Write("rank0.json", "[1, }");
  ExpectMistake({"rank0.json", "byte "});
  KinetoText backwards(0, 2);
  backwards.Kernel("gemm", 7, 0, 10, -5);
  Write("rank0.json", backwards.text());
  ExpectMistake({"rank0.json: rank 0, event \"gemm\"", "5 us", "runs backwards"});
  KinetoText other(0, 2);
  other.Collective("allreduce", 20, 5, 112, 88, 512, 512, "0", 2, "[0, 1]");
  Write("rank0.json", other.text());
  ExpectMistake({"rank1.json: rank 1, event \"nccl", "collective 1 of group \"0\"", "2048 bytes",
                 "1024 bytes on rank 0"});
  KinetoText none(0, 2);
  none.Kernel("gemm", 7, 0, 10, 5);
  Write("rank0.json", none.text());
  ExpectMistake({"rank1.json", "rank 0 has only 0"});
  KinetoText stranger(0, 2);
  stranger.Collective("allreduce", 20, 5, 112, 88, 512, 512, "x", 2, "[0, 5]");
  Write("rank0.json", stranger.text());
  ExpectMistake({"rank 0, group \"x\"", "rank 5, whose trace is missing"});
}

// Rank 2 meets rank 1 only, whose clock is 5 ms ahead of rank 0's; its own is 9 ms ahead of that.
TEST_F(KinetoTest, ClocksAreAlignedFromRankToRank) {
  for (uint32_t rank = 0; rank < 3; ++rank) {
    KinetoText trace(rank, 3);
    trace.clock = rank == 0 ? 0 : rank == 1 ? 5e3 : 14e3;
    trace.Kernel("gemm", 7, 0, 10, 30);
    if (rank < 2) trace.Collective("allreduce", 20, 5, 100, 50, 8, 8, "a", 2, "[0, 1]");
    if (rank > 0) trace.Collective("allreduce", 20, 160, 200, 50, 8, 8, "b", 2, "[1, 2]");
    Write("rank" + std::to_string(rank) + ".json", trace.text());
  }
  EXPECT_THAT(Import().remarks, Contains(HasSubstr("0.0 us apart in the median, 0.0 us at most")));
  const TimelineRecord record = ImportedTimeline();
  // From the kernels, all at 10 us, to the end of the last sum at 250.
  EXPECT_EQ(record.Median().step, Us(240));
  for (const Span& span : record.Median().spans) {
    if (record.OpOf(span).kind == "gemm") {
      EXPECT_EQ(span.begin, Us(0));
    }
  }
}

// NCCL chooses how all-reduces, all-gathers and reduce-scatters run; a broadcast has one way.
TEST_F(KinetoTest, WhatNcclChoosesIsLeftToItsModel) {
  for (uint32_t rank = 0; rank < 2; ++rank) {
    KinetoText trace(rank, 2);
    double at = 100;
    for (const auto& [name, in, out] : {std::tuple("allreduce", 8, 8),
                                        {"_allgather_base", 8, 16},
                                        {"_reduce_scatter_base", 16, 8},
                                        {"broadcast", 8, 8}}) {
      trace.Collective(name, 20, at - 50, at, 50, in, out, "0", 2, "[0, 1]");
      at += 100;
    }
    Write("rank" + std::to_string(rank) + ".json", trace.text());
  }
  const Schedule schedule = ImportedSchedule();
  uint32_t collectives = 0;
  for (const Op& op : schedule.roles[0].ops) {
    const auto* collective = std::get_if<Collective>(&op.work);
    if (collective == nullptr) continue;
    ++collectives;
    const bool is_chosen = collective->kind != CollectiveKind::kBroadcast;
    EXPECT_EQ(collective->algorithm == AlgorithmId::kAuto, is_chosen) << Name(collective->kind);
    EXPECT_EQ(collective->protocol == Protocol::kAuto, is_chosen) << Name(collective->kind);
  }
  EXPECT_EQ(collectives, 4u);
}

// Keys that we do not know may have anything inside, also what stands in "args".
TEST_F(KinetoTest, OnlyArgumentsAreArguments) {
  WriteTwoRanks(0);
  KinetoText trace(0, 1);
  trace.Kernel("gemm", 7, 0, 10, 100);
  std::string text = trace.text();
  const size_t at = text.find(R"("grid": [1, 1, 1]})");
  ASSERT_NE(at, std::string::npos);
  text.insert(at + 18, R"(, "more": {"stream": 99, "device": 5})");
  fs::remove(folder_ / "rank1.json");
  Write("rank0.json", text);
  const Schedule schedule = ImportedSchedule();
  for (const Stream& stream : schedule.roles[0].streams)
    EXPECT_THAT(stream.name, Not(HasSubstr("99")));
}

TEST_F(KinetoTest, ClocksThatJumpAreFound) {
  for (uint32_t rank = 0; rank < 2; ++rank) {
    KinetoText trace(rank, 2);
    for (uint32_t i = 0; i < 5; ++i) {
      // One second behind from the fourth on.
      trace.clock = rank == 1 && i >= 3 ? -1e6 : 0;
      const double at = 2e6 * i;
      trace.Collective("allreduce", 20, at, at + 10, 50, 8, 8, "0", 2, "[0, 1]");
    }
    Write("rank" + std::to_string(rank) + ".json", trace.text());
  }
  ExpectMistake({"rank1.json: rank 1, event", "before rank 0 begins it", "run backwards"});
}

}  // namespace kineto_test
}  // namespace rehearse

// A job from the profiles of some of its ranks.
#include <filesystem>
#include <fstream>
#include <string>
#include <vector>

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <unistd.h>

#include "sim/base/error.h"
#include "sim/base/json_document.h"
#include "sim/base/json_reader.h"
#include "sim/schedule/schedule_json.h"
#include "tests/foreign/traces/kineto_traces.h"
#include "tools/foreign/traces/kineto/kineto_read.h"

namespace rehearse {
namespace kineto_extrapolate_test {

namespace fs = std::filesystem;
using ::testing::Contains;
using ::testing::ElementsAre;
using ::testing::HasSubstr;

class KinetoExtrapolateTest : public ::testing::Test {
 protected:
  KinetoExtrapolateTest() {
    const auto* info = ::testing::UnitTest::GetInstance()->current_test_info();
    folder_ = fs::temp_directory_path() /
              (std::string("extrapolate-") + info->name() + "-" + std::to_string(getpid()));
    fs::create_directories(folder_);
  }
  ~KinetoExtrapolateTest() override { fs::remove_all(folder_); }

  void Write(uint32_t rank, const KinetoText& trace) const {
    std::ofstream(folder_ / ("rank" + std::to_string(rank) + ".json")) << trace.text();
  }
  Schedule Extrapolated(uint32_t world) {
    KinetoOptions options;
    options.extrapolate = world;
    ImportedKineto imported = ImportKineto({folder_.string()}, KinetoResult::kSchedule, options);
    remarks_ = imported.remarks;
    EXPECT_EQ(imported.ranks, world);
    const JsonDocument document = JsonDocument::FromText(imported.text, "imported");
    return ReadSchedule(document.Root());
  }
  std::string Mistake(uint32_t world) {
    try {
      Extrapolated(world);
    } catch (const Error& error) {
      return error.what();
    }
    return "";
  }

  fs::path folder_;
  std::vector<std::string> remarks_;
};

// The ranks that meet a rank on the communicator that is called so.
std::vector<uint32_t> GroupOf(const Schedule& schedule, const std::string& name, uint32_t rank) {
  std::vector<uint32_t> members;
  for (const Communicator& communicator : schedule.communicators) {
    if (communicator.name() != name) continue;
    const uint32_t group = communicator.PositionOf(rank)->group;
    for (uint32_t i = 0; i < communicator.size(); ++i)
      members.push_back(communicator.Rank(group, i));
  }
  return members;
}

template <typename Kind>
uint64_t Count(const Schedule& schedule, uint32_t rank) {
  uint64_t count = 0;
  for (const Op& op : schedule.roles[schedule.role_of_rank[rank]].ops)
    count += std::holds_alternative<Kind>(op.work) ? 1 : 0;
  return count;
}

KinetoText& AllReduce(KinetoText& trace, double begin, const std::string& group, uint32_t size,
                      const std::string& ranks, int64_t elements = 1024) {
  return trace.Collective("allreduce", 20, begin - 50, begin, 50, elements, elements, group, size,
                          ranks);
}

// Rank 5 of 64, whose tensor ranks are its box and whose replicas have its place in the others.
TEST_F(KinetoExtrapolateTest, OneRankOfMany) {
  KinetoText trace(5, 64);
  trace.Kernel("gemm", 7, 0, 10, 100);
  AllReduce(trace, 200, "1", 8, "[0, 1, 2, 3, 4, 5, 6, 7]");
  AllReduce(trace, 300, "9", 8, "[5, 13, 21, 29, 37, 45, 53, 61]");
  AllReduce(trace, 400, "0", 64, "");
  Write(5, trace);
  const Schedule schedule = Extrapolated(64);
  ASSERT_EQ(schedule.ranks(), 64u);
  EXPECT_EQ(schedule.roles.size(), 1u);
  EXPECT_EQ(Count<Collective>(schedule, 17), 3u);
  EXPECT_THAT(GroupOf(schedule, "group 1", 17), ElementsAre(16, 17, 18, 19, 20, 21, 22, 23));
  EXPECT_THAT(GroupOf(schedule, "group 9", 17), ElementsAre(1, 9, 17, 25, 33, 41, 49, 57));
  EXPECT_EQ(GroupOf(schedule, "group 0", 17).size(), 64u);
  EXPECT_THAT(remarks_, Contains(HasSubstr("all 64 ranks do what the traced one did")));
}

// Replicas in twice as many boxes; the boxes stay as they are.
TEST_F(KinetoExtrapolateTest, AJobOfAnotherSize) {
  KinetoText trace(0, 16);
  AllReduce(trace, 200, "1", 8, "[0, 1, 2, 3, 4, 5, 6, 7]");
  AllReduce(trace, 300, "2", 2, "[0, 8]");
  Write(0, trace);
  const Schedule larger = Extrapolated(32);
  EXPECT_THAT(GroupOf(larger, "group 2", 9), ElementsAre(1, 9, 17, 25));
  EXPECT_EQ(GroupOf(larger, "group 1", 9).size(), 8u);
  EXPECT_THAT(remarks_, Contains(HasSubstr("reaches across 32 instead of 16")));
  EXPECT_THAT(GroupOf(Extrapolated(8), "group 2", 3), ElementsAre(3));
  EXPECT_THAT(Mistake(12), HasSubstr("--extrapolate: found 12"));
  EXPECT_THAT(Mistake(4), HasSubstr("--extrapolate: found 4"));
}

// Experts' replicas are often two by two: {0, 1, 8, 9} of 16.
TEST_F(KinetoExtrapolateTest, GroupsThatAreGrids) {
  KinetoText trace(0, 16);
  AllReduce(trace, 200, "3", 4, "[0, 1, 8, 9]");
  Write(0, trace);
  const Schedule schedule = Extrapolated(16);
  EXPECT_THAT(GroupOf(schedule, "group 3", 6), ElementsAre(6, 7, 14, 15));
}

// PyTorch cuts long lists off in the middle.
TEST_F(KinetoExtrapolateTest, AListThatIsCutOff) {
  KinetoText trace(2, 256);
  AllReduce(trace, 200, "4", 64, "[2, 6, 10, ..., 250, 254]");
  Write(2, trace);
  const Schedule schedule = Extrapolated(256);
  EXPECT_EQ(GroupOf(schedule, "group 4", 7).size(), 64u);
  EXPECT_EQ(GroupOf(schedule, "group 4", 7)[1], 7u);
  EXPECT_EQ(Count<Collective>(schedule, 7), 1u);
}

// Where only sizes are known, the most used group is the innermost.
TEST_F(KinetoExtrapolateTest, OnlySizesAreKnown) {
  KinetoText trace(0, 32);
  AllReduce(trace, 200, "tensor", 4, "");
  AllReduce(trace, 300, "tensor", 4, "");
  AllReduce(trace, 400, "data", 8, "");
  Write(0, trace);
  const Schedule schedule = Extrapolated(32);
  EXPECT_THAT(GroupOf(schedule, "group tensor", 5), ElementsAre(4, 5, 6, 7));
  EXPECT_THAT(GroupOf(schedule, "group data", 5), ElementsAre(1, 5, 9, 13, 17, 21, 25, 29));
  EXPECT_THAT(remarks_, Contains(HasSubstr("only the size is known")));
}

void Message(KinetoText& trace, bool sends, double begin, uint32_t peer, const std::string& group,
             const std::string& ranks, int64_t elements = 512) {
  trace.Kernel("ncclDevKernel_SendRecv(ncclDevKernelArgsStorage<4096ul>)", sends ? 30 : 31,
               begin - 40, begin, 20,
               fmt::format(R"(, "Collective name": "{}", "In msg nelems": {}, "Out msg nelems": )"
                           R"({}, "Group size": 2, "dtype": "BFloat16", "Process Group Name": )"
                           R"("{}", "Process Group Ranks": "{}", "{} Rank": {})",
                           sends ? "send" : "recv", elements, elements, group, ranks,
                           sends ? "Dst" : "Src", peer));
}

// Two stages of four ranks, of each of which another rank was traced. Their groups have different
// names, since they are not the same one.
TEST_F(KinetoExtrapolateTest, OneRankOfEachStage) {
  KinetoText first(0, 8);
  Message(first, true, 100, 1, "20", "[0, 4]");
  AllReduce(first, 300, "10", 4, "[0, 1, 2, 3]");
  Write(0, first);
  KinetoText second(6, 8);
  Message(second, false, 100, 0, "22", "[2, 6]");
  AllReduce(second, 300, "11", 4, "[4, 5, 6, 7]", 4096);
  Write(6, second);
  const Schedule schedule = Extrapolated(8);
  EXPECT_THAT(schedule.role_of_rank, ElementsAre(0, 0, 0, 0, 1, 1, 1, 1));
  EXPECT_EQ(Count<Send>(schedule, 3), 1u);
  EXPECT_EQ(Count<Receive>(schedule, 7), 1u);
  EXPECT_EQ(Count<Collective>(schedule, 7), 1u);
  EXPECT_THAT(GroupOf(schedule, "group 20", 5), ElementsAre(1, 5));
}

// Of a stage that was not traced nothing is known: what was sent there takes as long as it did.
TEST_F(KinetoExtrapolateTest, StagesThatWereNotTraced) {
  KinetoText trace(0, 8);
  Message(trace, true, 100, 1, "20", "[0, 4]");
  AllReduce(trace, 300, "10", 4, "[0, 1, 2, 3]");
  Write(0, trace);
  const Schedule schedule = Extrapolated(8);
  EXPECT_EQ(Count<Send>(schedule, 0), 0u);
  EXPECT_EQ(Count<Collective>(schedule, 7), 1u);
  EXPECT_THAT(remarks_, Contains(HasSubstr("1 message of group 20 of stages of which no rank")));
}

// Two ranks of one group that differ cannot both be right for all others.
TEST_F(KinetoExtrapolateTest, RanksThatDoNotAgree) {
  KinetoText first(0, 8);
  AllReduce(first, 300, "10", 4, "[0, 1, 2, 3]");
  Write(0, first);
  KinetoText second(6, 8);
  AllReduce(second, 300, "11", 4, "[4, 5, 6, 7]", 4096);
  Write(6, second);
  const Schedule schedule = Extrapolated(8);  // 4 and 5 do what 0 did, 6 and 7 what 6 did
  EXPECT_EQ(Count<Collective>(schedule, 0), 0u);
  EXPECT_THAT(remarks_, Contains(HasSubstr("on which the ranks do not agree")));
}

}  // namespace kineto_extrapolate_test
}  // namespace rehearse

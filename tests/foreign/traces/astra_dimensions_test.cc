// Collectives dimension by dimension, against ASTRA-sim's own reference and the equations of its
// analytical network written out here.
#include <algorithm>
#include <map>

#include <fmt/format.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "collectives/lowering/lower.h"
#include "sim/base/error.h"
#include "sim/base/json_document.h"
#include "sim/base/json_reader.h"
#include "sim/engine/simulate.h"
#include "sim/schedule/schedule_json.h"
#include "tools/foreign/machines/infragraph/yaml_text.h"
#include "tools/foreign/traces/astra_sim/dimension_collectives.h"
#include "topology/fabrics/router.h"

namespace rehearse {
namespace astra_dimensions_test {

using ::testing::Contains;
using ::testing::ElementsAre;
using ::testing::HasSubstr;

AstraSystem System(const std::string& text) {
  return ReadAstraSystem(JsonDocument::FromText(text, "system.json").Root());
}

std::string One(const std::string& kind, const std::string& bytes, const std::string& group) {
  return fmt::format(
      R"({{"name": "sum", "collective": "{}", "communicator": "{}", "bytes": "{}"}})", kind, group,
      bytes);
}

Schedule StepOf(uint32_t ranks, const std::string& ops) {
  const std::string text = fmt::format(
      R"({{"schema": "rehearse.schedule.v1", "ranks": {}, "communicators": [
        {{"name": "all", "ranks": "all"}},
        {{"name": "pairs", "mesh": {{"members": [[2, 1]], "groups": [[{}, 2]]}}}}],
        "ops": [{}]}})",
      ranks, ranks / 2, ops);
  const JsonDocument document = JsonDocument::FromText(text, "step");
  return ReadSchedule(document.Root());
}

// Nanoseconds.
double Played(const std::string& network, const std::string& system, Schedule schedule,
              Fidelity fidelity = Fidelity::kStep) {
  const std::vector<AstraDimension> dimensions = ReadAstraDimensions(network, "network.yml");
  std::vector<std::string> remarks;
  GoByDimension(dimensions, System(system), &schedule, &remarks);
  // What is written is a schedule that can be read.
  const JsonDocument written = JsonDocument::FromText(WriteSchedule(schedule), "written");
  const Schedule read = ReadSchedule(written.Root());
  const ImportedCluster imported = ImportAstraNetwork(network, "network.yml", "h100");
  Router router(*imported.cluster);
  const Lowered lowered = Lower(read, router, {.fidelity = fidelity});
  return 1e9 * ToSeconds(Simulate(lowered.program, read.ranks()).timeline.step).value();
}

class AstraDimensionsTest : public ::testing::Test {
 protected:
  void SetUp() override {
    if (!HasYaml()) GTEST_SKIP() << "built without yaml-cpp";
  }
};

constexpr const char* kEightInARing =
    "topology: [ Ring ]\nnpus_count: [ 8 ]\nbandwidth: [ 50.0 ]\nlatency: [ 500.0 ]\n";

// ASTRA-sim's regression test (tests/rt_template/refs/stdout.txt): 1 MiB over a ring of 8 in 4
// chunks takes 117,780 cycles of a nanosecond. It rounds each message down.
TEST_F(AstraDimensionsTest, TheirOwnReferenceComesOut) {
  const double time = Played(kEightInARing,
                             R"({"scheduling-policy": "LIFO", "endpoint-delay": 10,
      "active-chunks-per-dimension": 1, "preferred-dataset-splits": 4, "boost-mode": 0,
      "all-reduce-implementation": ["ring"], "collective-optimization": "localBWAware",
      "local-mem-bw": 50})",
                             StepOf(8, One("all-reduce", "1MiB", "all")));
  EXPECT_NEAR(time, 117780, 0.0005 * 117780);
}

// ---- The equations ------------------------------------------------------------------------------

struct Dimension {
  std::string topology;
  double npus;
  double gigabytes_per_second;
  double latency;  // ns

  double Message(double bytes) const {
    return (topology == "Switch" ? 2 : 1) * latency + bytes / (gigabytes_per_second * 0x1p30 / 1e9);
  }
};

constexpr double kDelay = 7;     // at the ends, ns
constexpr double kMemory = 200;  // GB/s, bytes/ns
double SumOf(double bytes) { return 3 * bytes / kMemory; }

// Scatter (or gather, which adds nothing) of `bytes`, the larger side.
double Half(const Dimension& dimension, const std::string& by, double bytes, bool adds) {
  const double p = dimension.npus;
  const double message = bytes / p;
  if (by == "ring")
    return (p - 1) * dimension.Message(message) + p * kDelay +
           (adds ? (p - 1) * SumOf(message) : 0);
  if (by == "direct") {
    // Peers share a port of a switch.
    const double sent = dimension.topology == "Switch" ? (p - 1) * message : message;
    return dimension.Message(sent) + 2 * kDelay + (adds ? SumOf(message) : 0);
  }
  double time = kDelay;
  for (double part = bytes / 2; part > message / 1.5; part /= 2)
    time += dimension.Message(part) + kDelay + (adds ? SumOf(part) : 0);
  return time;
}
// Both halves are one phase, which begins once.
double Both(const Dimension& dimension, const std::string& by, double bytes) {
  return Half(dimension, by, bytes, true) + Half(dimension, by, bytes, false) - kDelay;
}

std::string Text(const std::vector<Dimension>& dimensions) {
  std::string topology, npus, bandwidth, latency;
  for (const Dimension& one : dimensions) {
    const char* comma = topology.empty() ? "" : ", ";
    topology += comma + one.topology;
    npus += fmt::format("{}{}", comma, one.npus);
    bandwidth += fmt::format("{}{}", comma, one.gigabytes_per_second);
    latency += fmt::format("{}{}", comma, one.latency);
  }
  return fmt::format("topology: [{}]\nnpus_count: [{}]\nbandwidth: [{}]\nlatency: [{}]\n", topology,
                     npus, bandwidth, latency);
}

std::string SystemOf(const std::string& kind, const std::vector<std::string>& by, int splits,
                     const char* optimization = "localBWAware") {
  std::string list;
  for (const std::string& one : by) list += fmt::format("{}\"{}\"", list.empty() ? "" : ", ", one);
  return fmt::format(R"({{"{}-implementation": [{}], "preferred-dataset-splits": {},
    "endpoint-delay": 7, "local-mem-bw": 200, "collective-optimization": "{}"}})",
                     kind, list, splits, optimization);
}

const std::vector<Dimension> kThree = {
    {"FullyConnected", 4, 100, 300}, {"Switch", 4, 50, 500}, {"Ring", 2, 25, 900}};
const std::vector<std::vector<std::string>> kWays = {{"ring", "ring", "ring"},
                                                     {"direct", "halvingDoubling", "ring"},
                                                     {"halvingDoubling", "direct", "direct"}};
constexpr double kMega = 3 * 0x1p20;
constexpr double kRounded = 1e-4;

// Down through the dimensions, an all-reduce in the last, back up.
TEST_F(AstraDimensionsTest, AnAllReduceIsScatteredAndGatheredBack) {
  for (const std::vector<std::string>& by : kWays) {
    double time = 0;
    double bytes = kMega;
    for (size_t d = 0; d < 2; ++d) {
      time += Half(kThree[d], by[d], bytes, true) + Half(kThree[d], by[d], bytes, false);
      bytes /= kThree[d].npus;
    }
    time += Both(kThree[2], by[2], bytes);
    const double ours = Played(Text(kThree), SystemOf("all-reduce", by, 1),
                               StepOf(32, One("all-reduce", "3MiB", "all")));
    EXPECT_NEAR(ours, time, kRounded * time) << by[0];
  }
}

TEST_F(AstraDimensionsTest, ByBaselineEachDimensionReducesAll) {
  const double time = Both(kThree[0], "ring", kMega) + Both(kThree[1], "ring", kMega) +
                      Both(kThree[2], "ring", kMega);
  const double ours =
      Played(Text(kThree), SystemOf("all-reduce", {"ring", "ring", "ring"}, 1, "baseline"),
             StepOf(32, One("all-reduce", "3MiB", "all")));
  EXPECT_NEAR(ours, time, kRounded * time);
}

// Gathers begin with the last dimension.
TEST_F(AstraDimensionsTest, HalvesGoOneWay) {
  for (const std::vector<std::string>& by : kWays) {
    double scatter = 0;
    double gather = 0;
    double bytes = kMega;
    for (size_t d = 0; d < 3; bytes /= kThree[d++].npus) {
      scatter += Half(kThree[d], by[d], bytes, true);
      gather += Half(kThree[d], by[d], bytes, false);
    }
    EXPECT_NEAR(Played(Text(kThree), SystemOf("reduce-scatter", by, 1),
                       StepOf(32, One("reduce-scatter", "3MiB", "all"))),
                scatter, kRounded * scatter)
        << by[0];
    EXPECT_NEAR(Played(Text(kThree), SystemOf("all-gather", by, 1),
                       StepOf(32, One("all-gather", "3MiB", "all"))),
                gather, kRounded * gather)
        << by[0];
  }
}

// p(p-1)/2 messages around a ring; at once where each pair has a link.
TEST_F(AstraDimensionsTest, AnAllToAllCrossesEachDimensionWithAllItsBytes) {
  const std::vector<Dimension> two = {{"FullyConnected", 4, 100, 300}, {"Ring", 8, 25, 900}};
  const double time =
      two[0].Message(kMega / 4) + 2 * kDelay + 28 * two[1].Message(kMega / 8) + 29 * kDelay;
  EXPECT_NEAR(Played(Text(two), SystemOf("all-to-all", {"direct", "ring"}, 1),
                     StepOf(32, One("all-to-all", "3MiB", "all"))),
              time, kRounded * time);
}

// Chunks follow each other through the dimensions: in the first all are scattered before any comes
// back to be gathered.
TEST_F(AstraDimensionsTest, ChunksFollowEachOther) {
  const std::vector<Dimension> two = {{"Switch", 4, 50, 500}, {"Ring", 2, 25, 900}};
  constexpr int kChunks = 6;
  for (const double last_rate : {5.0, 25.0, 400.0}) {
    std::vector<Dimension> dimensions = two;
    dimensions[1].gigabytes_per_second = last_rate;
    const double bytes = kMega / kChunks;
    const double down = Half(dimensions[0], "ring", bytes, true);
    const double across = Both(dimensions[1], "ring", bytes / 4);
    const double up = Half(dimensions[0], "ring", bytes, false);
    double crossed = 0;
    double gathered = kChunks * down;
    for (int i = 1; i <= kChunks; ++i) {
      crossed = std::max(crossed, i * down) + across;
      gathered = std::max(gathered, crossed) + up;
    }
    const double ours = Played(Text(dimensions), SystemOf("all-reduce", {"ring", "ring"}, kChunks),
                               StepOf(8, One("all-reduce", "3MiB", "all")));
    EXPECT_NEAR(ours, gathered, kRounded * gathered) << last_rate;
  }
}

// ---- What is not by dimension -------------------------------------------------------------------

std::vector<std::string> GroupsOf(const Schedule& schedule) {
  std::vector<std::string> groups;
  for (const Op& op : schedule.roles.front().ops)
    if (const auto* collective = std::get_if<Collective>(&op.work))
      groups.push_back(schedule.communicators[collective->communicator.index()].name());
  return groups;
}

TEST_F(AstraDimensionsTest, WhatSomeRanksDoIsOnePhaseAndOthersWaitForIt) {
  Schedule schedule =
      StepOf(8, One("all-reduce", "1MiB", "pairs") + R"(, {"name": "work", "duration": "5us"}, )" +
                    One("all-gather", "1MiB", "all") +
                    R"(, {"name": "last", "duration": "5us", "after": [2]})");
  std::vector<std::string> remarks;
  AstraSystem system = System(R"({"preferred-dataset-splits": 2})");
  GoByDimension(ReadAstraDimensions(kEightInARing, "n"), system, &schedule, &remarks);
  EXPECT_THAT(GroupsOf(schedule), ElementsAre("pairs", "pairs", "dimension 1", "dimension 1"));
  EXPECT_EQ(schedule.roles.front().ops.back().after.size(), 2u);  // both chunks
  EXPECT_THAT(remarks, Contains(HasSubstr("without an implementation go around rings")));
}

TEST_F(AstraDimensionsTest, ALogicalTopologyIsAsGoodAsANetwork) {
  const std::vector<AstraDimension> dimensions =
      ReadAstraDimensions(R"({"logical-dims": ["8", "2"]})", "logical.json");
  ASSERT_EQ(dimensions.size(), 2u);
  EXPECT_EQ(dimensions[0].size, 8u);
  EXPECT_EQ(dimensions[1].size, 2u);
  EXPECT_EQ(ReadAstraDimensions("5 1 4\n4\n", "links.txt").front().size, 4u);
}

std::string ErrorOf(const std::string& system, uint32_t ranks = 8) {
  try {
    Schedule schedule = StepOf(ranks, One("all-reduce", "1MiB", "all"));
    std::vector<std::string> remarks;
    GoByDimension(ReadAstraDimensions(kEightInARing, "n"), System(system), &schedule, &remarks);
  } catch (const Error& error) {
    return error.what();
  }
  return "";
}

TEST_F(AstraDimensionsTest, WhatDoesNotFitIsSaid) {
  EXPECT_THAT(ErrorOf(R"({"all-reduce-implementation": ["rings"]})"),
              HasSubstr("expected ring, direct, halvingDoubling"));
  EXPECT_THAT(ErrorOf(R"({"all-reduce-implementation": ["ring", "ring"]})"),
              HasSubstr("all-reduce names 2 algorithms for 1 dimensions"));
  EXPECT_THAT(ErrorOf("{}", 16), HasSubstr("16 ranks, the dimensions of the network 8 NPUs"));
  EXPECT_THAT(ErrorOf("[]"), HasSubstr("the system of ASTRA-sim"));
  EXPECT_THAT(ErrorOf(R"({"endpoint-delay": 1e9, "preferred-dataset-splits": 5000})"),
              HasSubstr("4096"));
}

}  // namespace astra_dimensions_test
}  // namespace rehearse

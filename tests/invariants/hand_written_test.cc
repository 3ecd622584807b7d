// Clusters written by hand, figures in any order: no collective is quicker than what the wires
// allow, and none is slower on better hardware while nothing is chosen anew. Where NCCL's model
// chooses anew, it expects what it takes to be no slower than what it took before.
#include <algorithm>
#include <map>
#include <numeric>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include <fmt/format.h>
#include <gtest/gtest.h>

#include "collectives/algorithms/algorithm.h"
#include "collectives/algorithms/channels.h"
#include "collectives/lowering/trial.h"
#include "collectives/lowering/wire_bound.h"
#include "sim/base/error.h"
#include "sim/base/json_document.h"
#include "tests/invariants/cases.h"
#include "tests/support/hand_written_cluster.h"
#include "tests/support/random_program.h"
#include "topology/files/cluster_file.h"
#include "topology/files/edits.h"

namespace rehearse {
namespace hand_written_test {

constexpr CollectiveKind kKinds[] = {CollectiveKind::kAllReduce,     CollectiveKind::kAllGather,
                                     CollectiveKind::kReduceScatter, CollectiveKind::kAllToAll,
                                     CollectiveKind::kBroadcast,     CollectiveKind::kReduce,
                                     CollectiveKind::kSendReceive};

// All ranks, those of one machine, or some of them in any order.
std::vector<uint32_t> AnyGroup(Random& random, const Cluster& cluster) {
  std::vector<uint32_t> ranks(cluster.device_count());
  std::iota(ranks.begin(), ranks.end(), 0u);
  if (random.Chance(50)) return ranks;
  if (random.Chance(30)) {
    const uint32_t machine = cluster.NodeIndexOf(random.Below(cluster.device_count()));
    std::vector<uint32_t> box;
    for (const uint32_t rank : ranks)
      if (cluster.NodeIndexOf(rank) == machine) box.push_back(rank);
    if (box.size() > 1) return box;
  }
  for (uint32_t i = cluster.device_count() - 1; i > 0; --i)
    std::swap(ranks[i], ranks[random.Below(i + 1)]);
  ranks.resize(random.Between(2, cluster.device_count()));
  return ranks;
}

// An algorithm that can do the kind; kAuto in so many of a hundred cases.
AlgorithmId AnyAlgorithm(Random& random, CollectiveKind kind, uint32_t automatic) {
  std::vector<AlgorithmId> able;
  for (const Algorithm& row : Algorithms())
    if (row.kinds.Has(kind) && !row.forwards) able.push_back(row.id);
  const uint32_t drawn = random.Below(static_cast<uint32_t>(able.size()));
  return random.Chance(automatic) ? AlgorithmId::kAuto : able[drawn];
}

struct DrawnTrial {
  Trial trial;
  Bytes bytes;

  std::string Text() const {
    return fmt::format(
        "{} of {} B over ranks {}, root {}, algorithm {}, protocol {}, {} channels, {}",
        Name(trial.kind), bytes.value(), fmt::join(trial.groups.front(), ","), trial.root,
        Name(trial.algorithm), Name(trial.protocol), trial.channels, Name(trial.fidelity));
  }
};

DrawnTrial AnyTrial(Random& random, const std::vector<uint32_t>& group, uint32_t automatic) {
  DrawnTrial drawn;
  Trial& trial = drawn.trial;
  trial.kind = kKinds[random.Below(static_cast<uint32_t>(std::size(kKinds)))];
  trial.groups = {group};
  trial.algorithm = AnyAlgorithm(random, trial.kind, automatic);
  trial.protocol = random.Chance(50) && automatic > 0 ? Protocol::kAuto : Protocol::kNone;
  if (trial.algorithm == AlgorithmId::kAuto) trial.protocol = Protocol::kAuto;
  trial.channels = random.Chance(70) ? 0 : random.Between(1, 3);
  constexpr Fidelity kFidelities[] = {Fidelity::kFormula, Fidelity::kFluid, Fidelity::kStep};
  trial.fidelity = kFidelities[random.Below(3)];
  const bool has_root =
      trial.kind == CollectiveKind::kBroadcast || trial.kind == CollectiveKind::kReduce;
  const uint32_t root = random.Below(static_cast<uint32_t>(group.size()));
  if (has_root) trial.root = root;
  drawn.bytes = Bytes(static_cast<double>(uint64_t{1} << random.Between(10, 28)));
  return drawn;
}

// Nothing where the algorithm does not suit the group; `why` is then told.
std::optional<Seconds> Try(const DrawnTrial& drawn, const Cluster& cluster,
                           std::string* why = nullptr) {
  try {
    Router router(cluster);
    return TimeOf(drawn.trial, drawn.bytes, router);
  } catch (const Error& error) {
    if (why != nullptr) *why = error.what();
    return std::nullopt;
  } catch (const InternalError& fault) {
    ADD_FAILURE() << drawn.Text() << ": " << fault.what();
    return std::nullopt;
  }
}

// Nothing is sent over what was cut.
void ExpectWholeRoutes(const Cluster& cluster, const std::vector<uint32_t>& group) {
  Router router(cluster);
  for (const uint32_t from : group)
    for (const uint32_t to : group) {
      if (from == to) continue;
      ForEachCrossing(router.Between(from, to), router.ways(), [&](uint32_t link, uint32_t) {
        EXPECT_GT(cluster.Link(link).Capacity().value(), 0) << cluster.LinkName(link);
      });
    }
}

constexpr double kRounding = 1e-6;
constexpr double kTicks = 4e-12;  // seconds

TEST(HandWrittenTest, NothingIsQuickerThanTheWiresAllow) {
  uint64_t tried = 0;
  const Cases cases = CasesOf();
  for (uint64_t seed = cases.first; seed < cases.end; ++seed) {
    const HandWrittenCluster drawn = DrawHandWrittenCluster(seed);
    SCOPED_TRACE(seed);
    Random random(~seed);
    const std::vector<uint32_t> group = AnyGroup(random, *drawn.cluster);
    ExpectWholeRoutes(*drawn.cluster, group);
    const WireBounds bounds(*drawn.cluster, group);
    for (int i = 0; i < 6; ++i) {
      const DrawnTrial trial = AnyTrial(random, group, 40);
      const std::optional<Seconds> time = Try(trial, *drawn.cluster);
      if (!time) continue;
      ++tried;
      Router router(*drawn.cluster);
      Tuner tuner(router);
      const Choice choice = ChoiceOf(trial.trial, trial.bytes, tuner);
      const WireBound bound = bounds.Of(trial.trial.kind, trial.bytes, trial.trial.root,
                                        SwitchesOf(choice.algorithm->id));
      EXPECT_GE(time->value(), bound.time.value() * (1 - kRounding) - kTicks) << fmt::format(
          "case {}: {} ({}) beats {} by {:.4f}, cut {}\n{}", seed, trial.Text(),
          choice.algorithm->name(), bound.time.value(), bound.time / *time, bound.cut, drawn.text);
    }
  }
  EXPECT_GT(tried, 3 * (cases.end - cases.first));
}

// Bundles of cables without a cable: what was found above, on the smallest machines that have them.
TEST(HandWrittenTest, ABundleWithoutCablesIsNoFault) {
  const std::string node =
      R"("node": {"kind": "nvswitch", "devices": 2, "device": "a100-40g",
                  "nvlink": {"bandwidth": "100GBps", "latency": "1us"},
                  "pcie": {"bandwidth": "20GBps", "latency": "1us"}, "nics": 2,
                  "cable": {"bandwidth": "10GBps", "latency": "1us"}})";
  const std::string alone = R"("node": {"kind": "pcie", "devices": 1, "device": "a100-40g",
                  "cable": {"bandwidth": "10GBps", "latency": "1us"}})";
  const std::string cable = R"("cable": {"bandwidth": "10GBps", "latency": "1us"})";
  // A leaf has two ports down and two up, and of node 0 one NIC: its cables up are all down.
  const std::string leaf = R"({"name": "leaf", "nodes": 4, )" + node +
                           R"(, "fabric": {"kind": "rails", "radix": 4, )" + cable +
                           R"(}, "edits": [{"links": "rail0/leaf0->**spine*", "down": true}]})";
  const std::string groups =
      R"({"name": "groups of one switch", "nodes": 3, )" + alone +
      R"(, "fabric": {"kind": "dragonfly", "nodes_per_switch": 1, "global_cables": 4,
          "local": [{"size": 1, "link": {"bandwidth": "10GBps", "latency": "1us"}}], )" +
      cable + "}}";
  for (const std::string& text : {leaf, groups}) {
    const auto cluster = ReadCluster(
        JsonDocument::FromText("{\"cluster\": " + text + "}", "by-hand.json").Root().At("cluster"));
    std::vector<uint32_t> ranks(cluster->device_count());
    std::iota(ranks.begin(), ranks.end(), 0u);
    ExpectWholeRoutes(*cluster, ranks);
    Router router(*cluster);
    Trial trial;
    trial.groups = {ranks};
    EXPECT_GT(TimeOf(trial, Bytes(1e6), router).value(), 0) << text;
  }
}

// ---- Better hardware ----------------------------------------------------------------------------

Edit OfLinks(const std::string& selector = "**") {
  Edit edit;
  edit.selector = selector;
  return edit;
}

// What makes a cluster better: all links, those of a kind, those of one vertex.
Edit AnyImprovement(Random& random, const Cluster& cluster, std::string* text) {
  Edit edit = OfLinks();
  const uint32_t of = random.Below(3);
  if (of == 1) edit.kind = cluster.KindOf(random.Below(cluster.link_count()));
  if (of == 2)
    edit.selector = cluster.VertexAt(cluster.SourceOf(random.Below(cluster.link_count()))).name;
  const uint32_t how = random.Below(4);
  if (how == 0) edit.bandwidth = Change{.factor = 1.1};
  if (how == 1) edit.bandwidth = Change{.factor = 2};
  if (how == 2) edit.bandwidth = Change{.factor = 8};
  if (how == 3) edit.latency = Change{.factor = 0.5};
  *text = fmt::format("{} {}: {}", edit.selector, edit.kind ? Name(*edit.kind) : "links",
                      std::array{"1.1x", "2x", "8x", "half the latency"}[how]);
  return edit;
}

struct Improved {
  std::string text;
  bool of_all = false;  // of all links alike
  std::unique_ptr<Cluster> cluster;
};

Improved Improve(Random& random, const Cluster& cluster) {
  Improved improved;
  const Edit edit = AnyImprovement(random, cluster, &improved.text);
  improved.of_all = edit.selector == "**" && !edit.kind;
  improved.cluster = ApplyEdits(cluster, {edit});
  return improved;
}

// A trial of a group on a drawn cluster, and on one whose links are better.
struct ImprovedTrial {
  uint64_t seed;
  const std::string& text;  // of the cluster
  const Cluster& cluster;
  const Cluster& improved;
  const std::string& improvement;
  bool of_all;  // all links are better alike
  const DrawnTrial& trial;
  Seconds before;
  Seconds after;
};

// Visits `count` trials on every cluster, of which so many in a hundred leave the choice to the
// library. What can be done before must be possible after.
template <typename Visit>
void ForEachImprovement(uint32_t automatic, int count, Visit visit) {
  const Cases cases = CasesOf();
  for (uint64_t seed = cases.first; seed < cases.end; ++seed) {
    const HandWrittenCluster drawn = DrawHandWrittenCluster(seed);
    SCOPED_TRACE(seed);
    Random random(~seed);
    const std::vector<uint32_t> group = AnyGroup(random, *drawn.cluster);
    const Improved improved = Improve(random, *drawn.cluster);
    for (int i = 0; i < count; ++i) {
      DrawnTrial trial = AnyTrial(random, group, automatic);
      // A cap is a share of the channels that NCCL finds.
      if (automatic > 0) trial.trial.channels = 0;
      const std::optional<Seconds> before = Try(trial, *drawn.cluster);
      if (!before) continue;
      std::string why;
      const std::optional<Seconds> after = Try(trial, *improved.cluster, &why);
      EXPECT_TRUE(after.has_value()) << trial.Text() << " on " << improved.text << ": " << why;
      if (!after) continue;
      visit(ImprovedTrial{seed, drawn.text, *drawn.cluster, *improved.cluster, improved.text,
                          improved.of_all, trial, *before, *after});
    }
  }
}

// Which rings the group has, and what they carry together.
struct Rings {
  std::vector<std::pair<double, std::vector<uint32_t>>> shares;
  BytesPerSecond rate;
};
Rings RingsOf(const Cluster& cluster, const Trial& trial) {
  Router router(cluster);
  ChannelFinder finder(router);
  Rings rings;
  std::vector<Channel> channels = finder.Find(trial.groups.front(), trial.channels);
  for (const Channel& channel : channels) rings.shares.emplace_back(channel.share, channel.ranks);
  rings.rate = TotalRate(cluster, std::move(channels));
  return rings;
}

// How often better links were slower, and the worst of it.
struct Losses {
  uint64_t tried = 0;
  uint64_t slower = 0;
  double worst = 0;
  uint64_t worst_case = 0;

  void Add(uint64_t seed, double loss) {
    ++tried;
    if (loss <= kRounding) return;
    ++slower;
    if (loss <= worst) return;
    worst = loss;
    worst_case = seed;
  }
  void Show(const char* what) const {
    std::fputs(fmt::format("{}: slower in {} of {}, by {:.4f} % at most (case {})\n", what, slower,
                           tried, 100 * worst, worst_case)
                   .c_str(),
               stdout);
  }
};

double LossOf(Seconds after, Seconds before) {
  return (after.value() - kTicks) / before.value() - 1;
}

// Where all links are better alike, nothing is shared otherwise.
constexpr double kMostOfAll = 0.005;
// Where some are, others' flows get less of what they share with flows that are quicker now, and a
// pipeline has another number of pieces, which is only about the best.
constexpr double kMostOfSome = 0.1;
constexpr double kFewSlower = 0.02;
// Rings are packed greedily: once in 5,000 clusters other ones carried half as much.
constexpr double kMostOfRings = 1.01;

TEST(HandWrittenTest, ACollectiveIsNoSlowerOnBetterLinksWhereNothingIsChosen) {
  Losses all;
  Losses some;
  Losses rates;
  ForEachImprovement(0, 4, [&](const ImprovedTrial& on) {
    const DrawnTrial& trial = on.trial;
    const Rings rings = RingsOf(on.cluster, trial.trial);
    const Rings other = RingsOf(on.improved, trial.trial);
    const std::string text = fmt::format("{}\non {}: {} s, {} s\n{}", trial.Text(), on.improvement,
                                         on.before.value(), on.after.value(), on.text);
    if (rings.shares != other.shares) {  // chosen by what they carry
      const double loss = rings.rate / other.rate - 1;
      rates.Add(on.seed, loss);
      EXPECT_LE(loss, kMostOfRings) << text;
      return;
    }
    const double loss = LossOf(on.after, on.before);
    (on.of_all ? all : some).Add(on.seed, loss);
    EXPECT_LE(loss, on.of_all ? kMostOfAll : kMostOfSome) << text;
  });
  all.Show("all links better");
  some.Show("some links better");
  rates.Show("other rings, by their rates");
  EXPECT_GT(all.tried + some.tried, 2 * CasesOf().count());
  EXPECT_LT(static_cast<double>(some.slower), 1 + kFewSlower * static_cast<double>(some.tried));
}

// ---- Where NCCL's model chooses -----------------------------------------------------------------

struct Chosen {
  Choice choice;
  std::vector<NcclCost> costs;
};
Chosen ChooseOn(const Cluster& cluster, const DrawnTrial& trial) {
  Router router(cluster);
  Tuner tuner(router);
  return {ChoiceOf(trial.trial, trial.bytes, tuner),
          tuner.CostsOf(trial.trial.groups.front(), trial.trial.kind, trial.bytes)};
}
bool IsSame(const Choice& a, const Choice& b) {
  return a.algorithm == b.algorithm && a.protocol == b.protocol;
}
// What the model expects the choice to take, if it knows it.
std::optional<Seconds> Expected(const Chosen& on, const Choice& choice, Bytes bytes) {
  for (const NcclCost& cost : on.costs)
    if (IdOf(cost.algorithm) == choice.algorithm->id && cost.protocol == choice.protocol)
      return cost.Time(bytes);
  return std::nullopt;
}

// What is slower on better links is slower because another algorithm or protocol was chosen, which
// NCCL's model expects to be no slower there than the one before: the loss is at most the error
// that the model makes between the two.
TEST(HandWrittenTest, WhereTheModelChoosesTheLossIsItsOwnError) {
  Losses kept;
  Losses changed;
  ForEachImprovement(100, 3, [&](const ImprovedTrial& on) {
    DrawnTrial trial = on.trial;
    const Chosen then = ChooseOn(on.cluster, trial);
    const Chosen now = ChooseOn(on.improved, trial);
    const double loss = LossOf(on.after, on.before);
    const std::string text = fmt::format(
        "{}\non {}: {} s with {} {}, {} s with {} {}\n{}", trial.Text(), on.improvement,
        on.before.value(), then.choice.algorithm->name(), Name(then.choice.protocol),
        on.after.value(), now.choice.algorithm->name(), Name(now.choice.protocol), on.text);
    if (IsSame(then.choice, now.choice)) {
      if (RingsOf(on.cluster, trial.trial).shares != RingsOf(on.improved, trial.trial).shares)
        return;
      kept.Add(on.seed, loss);
      // Steps of Simple rings hide half of what moves inside a machine, which is less now.
      const Seconds longer = std::max(now.choice.start - then.choice.start, Seconds(0));
      EXPECT_LE(LossOf(on.after - longer, on.before), kMostOfSome) << text;
      return;
    }
    changed.Add(on.seed, loss);
    const std::optional<Seconds> old_expected = Expected(now, then.choice, trial.bytes);
    const std::optional<Seconds> new_expected = Expected(now, now.choice, trial.bytes);
    if (!new_expected) {
      ADD_FAILURE() << "the model does not know what it chose\n" << text;
      return;
    }
    if (old_expected) {
      EXPECT_LE(*new_expected, *old_expected) << text;
    }
    if (loss <= kRounding || !old_expected) return;
    trial.trial.algorithm = then.choice.algorithm->id;
    trial.trial.protocol = then.choice.protocol;
    const std::optional<Seconds> old_after = Try(trial, on.improved);
    EXPECT_TRUE(old_after.has_value()) << text;
    if (!old_after) return;
    const double error = (on.after / *new_expected) / (*old_after / *old_expected);
    EXPECT_LE(on.after / on.before, (1 + kMostOfSome) * error) << text;
  });
  kept.Show("the same choice");
  changed.Show("another choice");
  EXPECT_GT(kept.tried, CasesOf().count());
}

}  // namespace hand_written_test
}  // namespace rehearse

// What is written is read by a separate reader and played on a machine without latency, where each
// rank sends one message at a time to each peer at one rate.
#include "tools/foreign/traces/goal/goal.h"

#include <deque>
#include <map>
#include <numeric>
#include <regex>
#include <sstream>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "collectives/algorithms/algorithm.h"
#include "sim/base/error.h"
#include "tests/collectives/schedules.h"

namespace rehearse {
namespace goal_test {

using ::testing::HasSubstr;
using testing::OneCollective;
using testing::Preset;

struct GoalOp {
  char kind = 'c';  // calc, send, recv
  uint64_t amount = 0;
  uint32_t peer = 0;
  uint64_t tag = 0;
  uint32_t cpu = 0;
  std::vector<uint64_t> before;
};
using GoalRanks = std::vector<std::vector<GoalOp>>;

GoalRanks ReadGoal(const std::string& text) {
  std::istringstream lines(text);
  std::string line;
  GoalRanks ranks;
  uint64_t expected_ranks = 0;
  const std::regex calc(R"(l(\d+): calc (\d+) cpu (\d+))");
  const std::regex message(R"(l(\d+): (send|recv) (\d+)b (to|from) (\d+) tag (\d+) cpu (\d+))");
  const std::regex requires_line(R"(l(\d+) requires l(\d+))");
  std::smatch match;
  while (std::getline(lines, line)) {
    if (line.starts_with("num_ranks ")) {
      expected_ranks = std::stoull(line.substr(10));
    } else if (line.starts_with("rank ")) {
      EXPECT_EQ(line, "rank " + std::to_string(ranks.size()) + " {");
      ranks.emplace_back();
    } else if (std::regex_match(line, match, calc)) {
      EXPECT_EQ(std::stoull(match[1]), ranks.back().size());
      GoalOp op;
      op.amount = std::stoull(match[2]);
      op.cpu = static_cast<uint32_t>(std::stoul(match[3]));
      ranks.back().push_back(op);
    } else if (std::regex_match(line, match, message)) {
      EXPECT_EQ(std::stoull(match[1]), ranks.back().size());
      EXPECT_EQ(match[2] == "send", match[4] == "to");
      GoalOp op;
      op.kind = match[2] == "send" ? 's' : 'r';
      op.amount = std::stoull(match[3]);
      op.peer = static_cast<uint32_t>(std::stoul(match[5]));
      op.tag = std::stoull(match[6]);
      ranks.back().push_back(op);
    } else if (std::regex_match(line, match, requires_line)) {
      EXPECT_LT(std::stoull(match[2]), std::stoull(match[1])) << "what is required stands before";
      ranks.back()[std::stoull(match[1])].before.push_back(std::stoull(match[2]));
    } else {
      EXPECT_EQ(line, "}");
    }
  }
  EXPECT_EQ(ranks.size(), expected_ranks);
  return ranks;
}

// When everything is done, in nanoseconds; a message takes `per_byte` for each byte once both its
// ends are ready and its sender is free. Fails where two never meet, or meet with different sizes.
double PlayGoal(const GoalRanks& ranks, double per_byte) {
  struct End {
    uint32_t rank;
    uint64_t op;
  };
  std::map<std::tuple<uint32_t, uint32_t, uint64_t>, std::pair<std::deque<End>, std::deque<End>>>
      waiting;  // by sender, receiver, tag
  std::vector<std::vector<double>> done;
  std::vector<std::vector<double>> ready;
  for (const auto& ops : ranks) {
    done.emplace_back(ops.size(), -1.0);
    ready.emplace_back(ops.size(), -1.0);
  }
  std::vector<std::map<uint32_t, double>> is_free(ranks.size());  // of a sender, by peer
  double last = 0;
  for (bool moved = true; moved;) {
    moved = false;
    for (uint32_t rank = 0; rank < ranks.size(); ++rank) {
      for (uint64_t i = 0; i < ranks[rank].size(); ++i) {
        if (ready[rank][i] >= 0) continue;
        const GoalOp& op = ranks[rank][i];
        double begin = 0;
        bool is_ready = true;
        for (const uint64_t before : op.before) {
          is_ready = is_ready && done[rank][before] >= 0;
          begin = std::max(begin, done[rank][before]);
        }
        if (!is_ready) continue;
        moved = true;
        ready[rank][i] = begin;
        if (op.kind == 'c') {
          done[rank][i] = begin + static_cast<double>(op.amount);
          last = std::max(last, done[rank][i]);
          continue;
        }
        const bool sends = op.kind == 's';
        auto& [senders, receivers] =
            waiting[{sends ? rank : op.peer, sends ? op.peer : rank, op.tag}];
        (sends ? senders : receivers).push_back({rank, i});
        while (!senders.empty() && !receivers.empty()) {
          const End from = senders.front();
          const End to = receivers.front();
          senders.pop_front();
          receivers.pop_front();
          const uint64_t bytes = ranks[from.rank][from.op].amount;
          EXPECT_EQ(bytes, ranks[to.rank][to.op].amount);
          double& line = is_free[from.rank][to.rank];
          const double start = std::max({line, ready[from.rank][from.op], ready[to.rank][to.op]});
          line = start + per_byte * static_cast<double>(bytes);
          done[from.rank][from.op] = done[to.rank][to.op] = line;
          last = std::max(last, line);
        }
      }
    }
  }
  for (uint32_t rank = 0; rank < ranks.size(); ++rank)
    for (uint64_t i = 0; i < ranks[rank].size(); ++i)
      EXPECT_GE(done[rank][i], 0) << "rank " << rank << " l" << i << " never ends";
  return last;
}

GoalText GoalOf(const Schedule& schedule, const Cluster& cluster) {
  Router router(cluster);
  return WriteGoal(schedule, router, 1, {}, [](uint32_t, const Op&) { return Seconds(1e-6); });
}

std::vector<uint32_t> AllOf(uint32_t count) {
  std::vector<uint32_t> ranks(count);
  std::iota(ranks.begin(), ranks.end(), 0u);
  return ranks;
}

TEST(GoalTest, ARingTakesItsClosedForm) {
  // 8 ranks, 8 MB: an all-reduce sends 14 messages of 1 MB one after the other, 1 ns a byte.
  const auto cluster = Preset("switch", "devices", 8);
  const GoalText goal =
      GoalOf(OneCollective(CollectiveKind::kAllReduce, 8e6, {AllOf(8)}), *cluster);
  EXPECT_EQ(goal.messages, 8u * 14u);
  // Each sends to the next one.
  const GoalRanks ranks = ReadGoal(goal.text);
  for (uint32_t rank = 0; rank < 8; ++rank) {
    for (const GoalOp& op : ranks[rank]) {
      if (op.kind != 'c') {
        EXPECT_EQ(op.peer, (rank + (op.kind == 's' ? 1 : 7)) % 8);
      }
    }
  }
  EXPECT_DOUBLE_EQ(PlayGoal(ReadGoal(goal.text), 1), 14e6);
  EXPECT_DOUBLE_EQ(
      PlayGoal(
          ReadGoal(
              GoalOf(OneCollective(CollectiveKind::kAllGather, 8e6, {AllOf(8)}), *cluster).text),
          1),
      7e6);
}

// For every algorithm without switches: all messages meet, with one size, and nobody waits forever.
// An all-reduce sends at least 2(p-1) times its bytes.
TEST(GoalTest, MessagesOfEveryAlgorithmMeet) {
  const auto cluster = Preset("switch", "devices", 8);
  uint32_t written = 0;
  for (const Algorithm& algorithm : Algorithms()) {
    for (const CollectiveKind kind : kCollectiveKinds) {
      if (!algorithm.kinds.Has(kind)) continue;
      SCOPED_TRACE(std::string(algorithm.name()) + " " + Name(kind));
      Schedule schedule = OneCollective(kind, 8e6, {AllOf(8)});
      std::get<Collective>(schedule.roles[0].ops[0].work).algorithm =
          ParseAlgorithm(algorithm.name());
      GoalText goal;
      try {
        goal = GoalOf(schedule, *cluster);
      } catch (const Error&) {  // it does not suit this machine, or has switches
        continue;
      }
      ++written;
      const GoalRanks ranks = ReadGoal(goal.text);
      EXPECT_GT(PlayGoal(ranks, 1), 0);
      uint64_t sent = 0;
      for (const auto& ops : ranks)
        for (const GoalOp& op : ops) sent += op.kind == 's' ? op.amount : 0;
      if (kind == CollectiveKind::kAllReduce) {
        EXPECT_GE(static_cast<double>(sent), 14 * 8e6 * (1 - 1e-6));
      }
    }
  }
  EXPECT_GE(written, 15u);
}

TEST(GoalTest, OpsOfOneStreamFollowEachOther) {
  const auto cluster = Preset("switch", "devices", 2);
  Schedule schedule = OneCollective(CollectiveKind::kAllReduce, 2e6, {AllOf(2)});
  Role& role = schedule.roles[0];
  role.streams.push_back({"compute", StreamKind::kCompute});
  Op op;
  op.name = "compute";
  op.stream = StreamId(1);
  op.work = Compute{};
  role.ops.push_back(op);  // beside the collective
  op.after = {OpId(0)};
  role.ops.push_back(op);  // after it, and after the first
  const GoalText goal = GoalOf(schedule, *cluster);
  EXPECT_EQ(goal.computations, 4u);
  // Two messages of 1 MB, then 1 us.
  EXPECT_DOUBLE_EQ(PlayGoal(ReadGoal(goal.text), 1), 2e6 + 1e3);
}

// Two communicators of the same ranks, each with a stream of its own. Rank 1 writes them the other
// way round; still each message meets its own, since the tags of communicators differ.
TEST(GoalTest, CommunicatorsThatRunSideBySideDoNotMeet) {
  const auto cluster = Preset("switch", "devices", 2);
  Schedule schedule = OneCollective(CollectiveKind::kAllReduce, 2e6, {AllOf(2)});
  schedule.communicators.push_back(Communicator::Explicit("second", {AllOf(2)}));
  Role& role = schedule.roles[0];
  role.streams.push_back({"second", StreamKind::kCommunication});
  Op op = role.ops[0];
  op.stream = StreamId(1);
  std::get<Collective>(op.work).communicator = CommunicatorId(1);
  std::get<Collective>(op.work).bytes = Bytes(6e6);
  role.ops.push_back(op);
  Role other = role;
  std::swap(other.ops[0], other.ops[1]);
  schedule.roles.push_back(other);
  schedule.role_of_rank[1] = 1;
  // Both ways, 2 messages of 1 MB and 2 of 3 MB, one after the other at 1 ns a byte.
  EXPECT_DOUBLE_EQ(PlayGoal(ReadGoal(GoalOf(schedule, *cluster).text), 1), 8e6);
}

TEST(GoalTest, SwitchesThatAddHaveNoWord) {
  const auto cluster = Preset("dgx-h100", "nodes", 1);
  Schedule schedule = OneCollective(CollectiveKind::kAllReduce, 8e6, {AllOf(8)});
  std::get<Collective>(schedule.roles[0].ops[0].work).algorithm = AlgorithmId::kNvls;
  try {
    GoalOf(schedule, *cluster);
    FAIL() << "no error";
  } catch (const Error& error) {
    EXPECT_THAT(error.what(), HasSubstr("GOAL has no word for switches that add"));
    EXPECT_THAT(error.what(), HasSubstr("\"nvls\""));
  }
}

}  // namespace goal_test
}  // namespace rehearse

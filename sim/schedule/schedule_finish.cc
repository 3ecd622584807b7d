#include "sim/schedule/schedule_finish.h"

#include <algorithm>
#include <cstdint>
#include <map>
#include <numeric>
#include <optional>
#include <string>
#include <unordered_map>
#include <utility>
#include <variant>

#include <fmt/format.h>

#include "sim/base/error.h"
#include "sim/schedule/op_error.h"

namespace rehearse {
namespace {

// The quotient of the graph of waits: one node for all ops that meet, whatever their ranks. The
// graph of the ranks maps onto it, so if the quotient has no cycle, neither has the ranks' graph.
// The converse does not hold.
bool QuotientHasCycle(const Schedule& schedule, const Meetings& meetings) {
  std::vector<size_t> first_op;  // of each role, in one numbering of all ops
  size_t count = 0;
  for (const Role& role : schedule.roles) {
    first_op.push_back(count);
    count += role.ops.size();
  }

  std::vector<size_t> parent(count);
  std::iota(parent.begin(), parent.end(), size_t{0});
  const auto find = [&](size_t node) {
    while (parent[node] != node) node = parent[node] = parent[parent[node]];
    return node;
  };
  for (const auto& [a, b] : meetings) {
    const size_t root_a = find(first_op[a.role] + a.op);
    const size_t root_b = find(first_op[b.role] + b.op);
    parent[std::max(root_a, root_b)] = std::min(root_a, root_b);
  }

  // Kahn's algorithm on the nodes that are their own parent.
  std::vector<std::pair<size_t, size_t>> edges;
  for (size_t r = 0; r < schedule.roles.size(); ++r) {
    const Role& role = schedule.roles[r];
    std::vector<std::optional<size_t>> latest(role.streams.size());
    for (size_t i = 0; i < role.ops.size(); ++i) {
      const size_t node = find(first_op[r] + i);
      for (const OpId before : role.ops[i].after)
        edges.emplace_back(find(first_op[r] + before.index()), node);
      std::optional<size_t>& previous = latest[role.ops[i].stream.index()];
      if (previous) edges.emplace_back(*previous, node);
      previous = node;
    }
  }
  std::vector<size_t> edge_begin(count + 1);
  std::vector<uint32_t> waits_for(count);
  for (const auto& [before, after] : edges) {
    ++edge_begin[before + 1];
    ++waits_for[after];
  }
  std::partial_sum(edge_begin.begin(), edge_begin.end(), edge_begin.begin());
  std::vector<size_t> next(edge_begin.begin(), edge_begin.end() - 1);
  std::vector<size_t> followers(edges.size());
  for (const auto& [before, after] : edges) followers[next[before]++] = after;

  std::vector<size_t> free;
  size_t left = 0;
  for (size_t node = 0; node < count; ++node) {
    if (parent[node] != node) continue;
    ++left;
    if (waits_for[node] == 0) free.push_back(node);
  }
  while (!free.empty()) {
    const size_t node = free.back();
    free.pop_back();
    --left;
    for (size_t i = edge_begin[node]; i < edge_begin[node + 1]; ++i) {
      if (--waits_for[followers[i]] == 0) free.push_back(followers[i]);
    }
  }
  return left > 0;
}

// Plays the schedule rank by rank without time, and names the cycle when it gets stuck.
class UntimedRun {
 public:
  UntimedRun(const Schedule& schedule, const std::vector<RolePosts>& posts)
      : schedule_(schedule), posts_(posts) {
    for (size_t r = 0; r < schedule.roles.size(); ++r) PrepareRole(schedule.roles[r], posts[r]);
    for (const uint32_t role : schedule.role_of_rank) {
      ranks_.emplace_back(plans_[role].ops_of_stream.size());
    }
  }

  // Throws Error when a rank cannot finish.
  void Run() {
    for (uint32_t rank = 0; rank < schedule_.ranks(); ++rank) {
      awake_.push_back(rank);
      while (!awake_.empty()) {
        const uint32_t next = awake_.back();
        awake_.pop_back();
        while (Advance(next)) continue;
      }
    }
    for (uint32_t rank = 0; rank < schedule_.ranks(); ++rank) {
      for (uint32_t op = 0; op < RoleOf(rank).ops.size(); ++op) {
        if (StateOf({rank, op}) != State::kDone) FailWithCycle({rank, op});
      }
    }
  }

 private:
  enum class State : uint8_t {
    kWaiting,  // for its stream or `after`
    kPosted,   // waits for other ranks
    kDone,
  };

  struct RolePlan {
    std::vector<OpList> ops_of_stream;
    OpList position_in_stream;  // by op
    OpList number;  // by op: k of the k-th collective, or of the k-th message to the peer
  };
  // One stream of one rank. All ops before `head` are done, all after it are waiting.
  struct StreamState {
    uint32_t head = 0;
    bool head_is_posted = false;
  };
  struct RankOp {
    uint32_t rank;
    uint32_t op;
  };

  void PrepareRole(const Role& role, const RolePosts& posts) {
    RolePlan plan;
    plan.ops_of_stream.resize(role.streams.size());
    plan.number.resize(role.ops.size());
    for (uint32_t op = 0; op < role.ops.size(); ++op) {
      OpList& stream = plan.ops_of_stream[role.ops[op].stream.index()];
      plan.position_in_stream.push_back(static_cast<uint32_t>(stream.size()));
      stream.push_back(op);
    }
    const auto number = [&](const OpList& ops) {
      for (uint32_t k = 0; k < ops.size(); ++k) plan.number[ops[k]] = k;
    };
    for (const auto& [communicator, own] : posts) {
      number(own.collectives);
      for (const auto& [peer, ops] : own.sends) number(ops);
      for (const auto& [peer, ops] : own.receives) number(ops);
    }
    plans_.push_back(std::move(plan));
  }

  const Op& OpOf(const RankOp& at) const { return RoleOf(at.rank).ops[at.op]; }
  const Role& RoleOf(uint32_t rank) const { return schedule_.roles[schedule_.role_of_rank[rank]]; }
  const RolePlan& PlanOf(uint32_t rank) const { return plans_[schedule_.role_of_rank[rank]]; }

  // The op of `rank` that the communication `at` meets there.
  RankOp Partner(const RankOp& at, uint32_t rank) const {
    const uint32_t id = CommunicatorOf(OpOf(at).work).index();
    const uint32_t k = PlanOf(at.rank).number[at.op];
    const Posts& other = posts_[schedule_.role_of_rank[rank]].at(id);
    if (std::holds_alternative<Collective>(OpOf(at).work)) return {rank, other.collectives[k]};
    const uint32_t member = schedule_.communicators[id].PositionOf(at.rank)->member;
    const bool sends = std::holds_alternative<Send>(OpOf(at).work);
    return {rank, (sends ? other.receives : other.sends).at(member)[k]};
  }

  // All ops that meet `at`, itself included.
  std::vector<RankOp> Meeting(const RankOp& at) const {
    const Work& work = OpOf(at).work;
    const CommunicatorId id = CommunicatorOf(work);
    if (!id.IsSet()) return {at};
    const Communicator& communicator = schedule_.communicators[id.index()];
    const uint32_t group = communicator.PositionOf(at.rank)->group;
    std::vector<RankOp> all;
    if (const auto* send = std::get_if<Send>(&work)) {
      all = {at, Partner(at, communicator.Rank(group, send->peer))};
    } else if (const auto* receive = std::get_if<Receive>(&work)) {
      all = {at, Partner(at, communicator.Rank(group, receive->peer))};
    } else {
      for (uint32_t member = 0; member < communicator.size(); ++member)
        all.push_back(Partner(at, communicator.Rank(group, member)));
    }
    return all;
  }

  // Whether all others have posted. Counts the posts of a collective, so that each costs
  // constant time.
  bool PostCompletes(const RankOp& at) {
    const Work& work = OpOf(at).work;
    if (!std::holds_alternative<Collective>(work)) {
      const std::vector<RankOp> both = Meeting(at);
      return StateOf(both[1]) == State::kPosted;
    }
    const CommunicatorId id = CommunicatorOf(work);
    const Communicator& communicator = schedule_.communicators[id.index()];
    const uint32_t group = communicator.PositionOf(at.rank)->group;
    std::unordered_map<uint64_t, uint32_t>& counts = posted_[id.index()];
    const uint64_t key = uint64_t{group} << 32 | PlanOf(at.rank).number[at.op];
    if (++counts[key] < communicator.size()) return false;
    counts.erase(key);
    return true;
  }

  StreamState& StreamOf(const RankOp& at) { return ranks_[at.rank][OpOf(at).stream.index()]; }
  State StateOf(const RankOp& at) const {
    const StreamState& stream = ranks_[at.rank][OpOf(at).stream.index()];
    const uint32_t position = PlanOf(at.rank).position_in_stream[at.op];
    if (position < stream.head) return State::kDone;
    return position == stream.head && stream.head_is_posted ? State::kPosted : State::kWaiting;
  }

  // Posts what is ready at the heads of the rank's streams; true when something happened here.
  bool Advance(uint32_t rank) {
    bool advanced = false;
    for (size_t stream = 0; stream < ranks_[rank].size(); ++stream) {
      StreamState& state = ranks_[rank][stream];
      const OpList& ops = PlanOf(rank).ops_of_stream[stream];
      if (state.head == ops.size() || state.head_is_posted) continue;
      const RankOp at{rank, ops[state.head]};
      if (UnfinishedBefore(at)) continue;
      advanced = true;
      state.head_is_posted = true;
      const bool is_compute = std::holds_alternative<Compute>(OpOf(at).work);
      if (!is_compute && !PostCompletes(at)) continue;
      for (const RankOp& done : Meeting(at)) {
        ++StreamOf(done).head;
        StreamOf(done).head_is_posted = false;
        if (done.rank != rank) awake_.push_back(done.rank);
      }
    }
    return advanced;
  }

  // An op of the same rank that must be done before `at`.
  std::optional<RankOp> UnfinishedBefore(const RankOp& at) const {
    const RolePlan& plan = PlanOf(at.rank);
    const uint32_t stream = OpOf(at).stream.index();
    const uint32_t head = ranks_[at.rank][stream].head;
    if (head < plan.position_in_stream[at.op])
      return RankOp{at.rank, plan.ops_of_stream[stream][head]};
    for (const OpId before : OpOf(at).after) {
      if (StateOf({at.rank, before.index()}) != State::kDone)
        return RankOp{at.rank, before.index()};
    }
    return std::nullopt;
  }

  // What an unfinished op waits for: an earlier op of its rank, or another rank's op that it meets.
  RankOp WaitsFor(const RankOp& at) const {
    if (const auto before = UnfinishedBefore(at)) return *before;
    for (const RankOp& other : Meeting(at)) {
      if (StateOf(other) == State::kWaiting) return other;
    }
    internal::FailCheck(__FILE__, __LINE__, "a stuck op waits for something");
  }

  [[noreturn]] void FailWithCycle(RankOp at) const {
    // Every unfinished op waits for another one, so the walk must come back.
    std::vector<RankOp> path;
    std::map<std::pair<uint32_t, uint32_t>, size_t> position;
    while (position.emplace(std::pair{at.rank, at.op}, path.size()).second) {
      path.push_back(at);
      at = WaitsFor(at);
    }
    path.erase(path.begin(), path.begin() + static_cast<ptrdiff_t>(position.at({at.rank, at.op})));

    // Keep those that wait for another rank; begin with the lowest rank.
    std::vector<RankOp> waits;
    for (const RankOp& op : path) {
      if (StateOf(op) == State::kPosted) waits.push_back(op);
    }
    CHECK(!waits.empty());
    const auto lowest =
        std::min_element(waits.begin(), waits.end(), [](const RankOp& a, const RankOp& b) {
          return std::pair(a.rank, a.op) < std::pair(b.rank, b.op);
        });
    std::rotate(waits.begin(), lowest, waits.end());

    constexpr size_t kMostNamed = 4;
    const size_t named = std::min(waits.size(), kMostNamed);
    std::string text = fmt::format("schedule never finishes: {} waits", Named(waits[0].rank));
    for (size_t i = 0; i < named; ++i) {
      const RankOp& next = waits[(i + 1) % waits.size()];
      const bool is_last = i + 1 == waits.size();
      text += fmt::format(" in {} for {}", Named(waits[i]),
                          is_last ? fmt::format("rank {}", next.rank) : Named(next.rank));
      if (!is_last) text += ", which waits";
    }
    if (named < waits.size())
      text += fmt::format(" likewise, and so on through {} waits back to rank {}", waits.size(),
                          waits[0].rank);
    throw OpError(schedule_.role_of_rank[waits[0].rank], waits[0].op, text);
  }

  std::string Named(uint32_t rank) const {
    if (schedule_.roles.size() == 1) return fmt::format("rank {}", rank);
    return fmt::format("rank {} (role \"{}\")", rank, RoleOf(rank).name);
  }
  std::string Named(const RankOp& at) const {
    const Op& op = OpOf(at);
    return fmt::format("\"{}\" ({})", op.name,
                       schedule_.communicators[CommunicatorOf(op.work).index()].name());
  }

  const Schedule& schedule_;
  const std::vector<RolePosts>& posts_;
  std::vector<RolePlan> plans_;                                        // by role
  std::vector<std::vector<StreamState>> ranks_;                        // by rank, by stream
  std::map<uint32_t, std::unordered_map<uint64_t, uint32_t>> posted_;  // by communicator
  std::vector<uint32_t> awake_;
};

}  // namespace

void CheckThatItFinishes(const Schedule& schedule, const std::vector<RolePosts>& posts,
                         const Meetings& meetings) {
  if (QuotientHasCycle(schedule, meetings)) UntimedRun(schedule, posts).Run();
}

}  // namespace rehearse

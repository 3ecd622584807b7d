#include "sim/schedule_check.h"

#include <algorithm>
#include <cmath>
#include <limits>
#include <map>
#include <numeric>
#include <optional>
#include <set>
#include <string>
#include <tuple>
#include <unordered_map>
#include <utility>
#include <vector>

#include <fmt/format.h>

#include "sim/error.h"
#include "sim/units.h"

namespace rehearse {
namespace {

// ---- Every name exists ------------------------------------------------------------------------------

// What is wrong with a collective of `size` members, or "".
std::string MistakeIn(const Collective& collective, uint32_t size) {
  const bool has_root =
      collective.kind == CollectiveKind::kBroadcast || collective.kind == CollectiveKind::kReduce;
  if (has_root && collective.root >= size)
    return fmt::format("has member {} as its root, but there are {}", collective.root, size);
  if (collective.kind == CollectiveKind::kBarrier && collective.bytes > Bytes(0))
    return fmt::format("is a barrier of {}, expected no bytes", Print(collective.bytes));
  const std::vector<Bytes>& pairs = collective.pair_bytes;
  if (pairs.empty()) return "";
  if (collective.kind != CollectiveKind::kAllToAll)
    return fmt::format("gives sizes for pairs, but only all-to-alls have them, not {}",
                       Name(collective.kind));
  if (pairs.size() != size_t{size} * size)
    return fmt::format("gives sizes for {} pairs, expected {} for {} members", pairs.size(),
                       size_t{size} * size, size);
  double most = 0;
  for (uint32_t from = 0; from < size; ++from) {
    double sum = 0;
    for (uint32_t to = 0; to < size; ++to) {
      const double bytes = pairs[size_t{from} * size + to].value();
      if (!std::isfinite(bytes) || bytes < 0)
        return fmt::format("sends {} bytes from member {} to {}, expected zero or more", bytes,
                           from, to);
      sum += bytes;
    }
    most = std::max(most, sum);
  }
  constexpr double kTolerance = 1e-9;
  if (std::abs(most - collective.bytes.value()) > kTolerance * most)
    return fmt::format("has {} bytes, but its largest send buffer has {}", collective.bytes.value(),
                       most);
  return "";
}

void CheckOp(const Schedule& schedule, const Role& role, uint32_t index) {
  const Op& op = role.ops[index];
  const auto fail = [&](const std::string& message) {
    throw Error(fmt::format("role \"{}\": op {} \"{}\" {}", role.name, index, op.name, message));
  };
  const auto check_id = [&](uint32_t id, size_t count, const char* verb, const char* what) {
    if (id >= count)
      fail(fmt::format("{} {} {}, but there are {}", verb, what,
                       id == Id<OpTag>::kNone ? "that is not set" : std::to_string(id), count));
  };
  check_id(op.stream.index(), role.streams.size(), "is on", "stream");
  for (const BufferId buffer : op.reads)
    check_id(buffer.index(), role.buffers.size(), "reads", "buffer");
  for (const BufferId buffer : op.writes)
    check_id(buffer.index(), role.buffers.size(), "writes", "buffer");
  // A view must lie inside of a buffer that is none.
  for (const auto* touched : {&op.reads, &op.writes}) {
    for (const BufferId buffer : *touched) {
      const std::optional<View>& view = role.buffers[buffer.index()].view;
      if (!view) continue;
      check_id(view->of.index(), role.buffers.size(), "touches a view of", "buffer");
      if (role.buffers[view->of.index()].view)
        fail(fmt::format("touches buffer \"{}\", a view of a view",
                         role.buffers[buffer.index()].name));
    }
  }
  for (const OpId before : op.after) {
    check_id(before.index(), role.ops.size(), "is after", "op");
    if (before.index() >= index)
      fail(fmt::format("is after op {} \"{}\", which is not earlier in the list", before.index(),
                       role.ops[before.index()].name));
  }
  if (std::holds_alternative<Compute>(op.work)) return;
  const CommunicatorId communicator = CommunicatorOf(op.work);
  check_id(communicator.index(), schedule.communicators.size(), "is on", "communicator");
  const double bytes = CommunicationBytes(op.work).value();
  if (!std::isfinite(bytes) || bytes < 0)
    fail(fmt::format("communicates {} bytes, expected a finite number of zero or more", bytes));
  const uint32_t size = schedule.communicators[communicator.index()].size();
  if (const auto* send = std::get_if<Send>(&op.work))
    check_id(send->peer, size, "sends to", "member");
  if (const auto* receive = std::get_if<Receive>(&op.work))
    check_id(receive->peer, size, "receives from", "member");
  if (const auto* collective = std::get_if<Collective>(&op.work)) {
    const std::string mistake = MistakeIn(*collective, size);
    if (!mistake.empty()) fail(mistake);
  }
}

void CheckNames(const Schedule& schedule) {
  for (uint32_t rank = 0; rank < schedule.ranks(); ++rank) {
    if (schedule.role_of_rank[rank] >= schedule.roles.size())
      throw Error(fmt::format("rank {} has role {}, but there are {}", rank,
                              schedule.role_of_rank[rank], schedule.roles.size()));
  }
  for (const Role& role : schedule.roles) {
    for (uint32_t op = 0; op < role.ops.size(); ++op) CheckOp(schedule, role, op);
  }
}

// ---- What each role posts ---------------------------------------------------------------------------

using OpList = std::vector<uint32_t>;  // positions in Role::ops

// The communication of one role on one communicator, in list order.
struct Posts {
  OpList collectives;
  std::map<uint32_t, OpList> sends;     // by peer
  std::map<uint32_t, OpList> receives;  // by peer
};

// By communicator.
using RolePosts = std::map<uint32_t, Posts>;

std::vector<RolePosts> CollectPosts(const Schedule& schedule) {
  std::vector<RolePosts> posts(schedule.roles.size());
  for (size_t role = 0; role < schedule.roles.size(); ++role) {
    const std::vector<Op>& ops = schedule.roles[role].ops;
    for (uint32_t op = 0; op < ops.size(); ++op) {
      const Work& work = ops[op].work;
      if (std::holds_alternative<Compute>(work)) continue;
      Posts& own = posts[role][CommunicatorOf(work).index()];
      if (const auto* send = std::get_if<Send>(&work))
        own.sends[send->peer].push_back(op);
      else if (const auto* receive = std::get_if<Receive>(&work))
        own.receives[receive->peer].push_back(op);
      else
        own.collectives.push_back(op);
    }
  }
  return posts;
}

// ---- Who meets whom ---------------------------------------------------------------------------------

// Ops that take place together, as pairs of (role, op). Ops of all ranks of a role are one here.
struct RoleOp {
  uint32_t role;
  uint32_t op;
};
using Meetings = std::vector<std::pair<RoleOp, RoleOp>>;

// Compares what the ranks of each group post, once for each distinct combination of roles.
class Matcher {
 public:
  Matcher(const Schedule& schedule, const std::vector<RolePosts>& posts)
      : schedule_(schedule), posts_(posts) {}

  Meetings Match() {
    std::set<uint32_t> used;
    for (const RolePosts& role : posts_) {
      for (const auto& [communicator, unused] : role) used.insert(communicator);
    }
    for (const uint32_t communicator : used) {
      CheckMembership(communicator);
      MatchGroups(communicator);
    }
    return std::move(meetings_);
  }

 private:
  const Posts& PostsOf(uint32_t role, uint32_t communicator) const {
    static const Posts kNothing;
    const auto found = posts_[role].find(communicator);
    return found == posts_[role].end() ? kNothing : found->second;
  }

  std::string Named(const RoleOp& op) const {
    const Op& named = schedule_.roles[op.role].ops[op.op];
    return fmt::format("op {} \"{}\"", op.op, named.name);
  }
  // With everything that has to agree; exact bytes only where the rounded ones hide the difference.
  std::string Described(const RoleOp& op, const RoleOp& other) const {
    const Work& work = schedule_.roles[op.role].ops[op.op].work;
    const Work& other_work = schedule_.roles[other.role].ops[other.op].work;
    const double bytes = CommunicationBytes(work).value();
    const double other_bytes = CommunicationBytes(other_work).value();
    std::string size = Print(Bytes(bytes));
    if (bytes != other_bytes && size == Print(Bytes(other_bytes)))
      size = fmt::format("{} B", bytes);
    const auto* collective = std::get_if<Collective>(&work);
    const auto* other_collective = std::get_if<Collective>(&other_work);
    std::string what = std::holds_alternative<Send>(work) ? "send" : "receive";
    std::string how;
    if (collective != nullptr) {
      what = Name(collective->kind);
      if (other_collective != nullptr && collective->algorithm != other_collective->algorithm)
        how = fmt::format(" by {}", collective->algorithm);
      if (other_collective != nullptr && collective->protocol != other_collective->protocol)
        how += fmt::format(" with {}", collective->protocol);
      if (other_collective != nullptr && collective->root != other_collective->root)
        how += fmt::format(" with root {}", collective->root);
      if (other_collective != nullptr && collective->pair_bytes != other_collective->pair_bytes)
        how += " with sizes of its own";
    }
    return fmt::format("{} ({} of {}{})", Named(op), what, size, how);
  }

  // Every rank that posts something is in a group, and every member is a rank of the schedule.
  void CheckMembership(uint32_t id) const {
    const Communicator& communicator = schedule_.communicators[id];
    std::vector<bool> is_member(schedule_.ranks());
    for (uint32_t group = 0; group < communicator.group_count(); ++group) {
      for (uint32_t member = 0; member < communicator.size(); ++member) {
        const uint32_t rank = communicator.Rank(group, member);
        if (rank >= schedule_.ranks())
          throw Error(fmt::format("communicator \"{}\" has rank {}, but there are {} ranks",
                                  communicator.name(), rank, schedule_.ranks()));
        is_member[rank] = true;
      }
    }
    for (uint32_t rank = 0; rank < schedule_.ranks(); ++rank) {
      const uint32_t role = schedule_.role_of_rank[rank];
      if (is_member[rank] || !posts_[role].contains(id)) continue;
      const Posts& own = PostsOf(role, id);
      uint32_t op = std::numeric_limits<uint32_t>::max();
      if (!own.collectives.empty()) op = own.collectives.front();
      for (const auto* by_peer : {&own.sends, &own.receives}) {
        for (const auto& [peer, ops] : *by_peer) op = std::min(op, ops.front());
      }
      throw Error(
          fmt::format("rank {} posts {} on communicator \"{}\", but is in none of its groups", rank,
                      Named({role, op}), communicator.name()));
    }
  }

  void MatchGroups(uint32_t id) {
    const Communicator& communicator = schedule_.communicators[id];
    std::set<std::pair<uint32_t, uint32_t>> role_pairs;  // of the first and another member
    std::set<std::tuple<uint32_t, uint32_t, uint32_t, uint32_t>> member_pairs;
    for (uint32_t group = 0; group < communicator.group_count(); ++group) {
      const uint32_t first = communicator.Rank(group, 0);
      const uint32_t first_role = schedule_.role_of_rank[first];
      uint32_t latest = first_role;
      for (uint32_t member = 0; member < communicator.size(); ++member) {
        const uint32_t rank = communicator.Rank(group, member);
        const uint32_t role = schedule_.role_of_rank[rank];
        if (role != first_role && role != latest && role_pairs.emplace(first_role, role).second)
          MatchCollectives(id, first, rank);
        latest = role;

        const Posts& own = PostsOf(role, id);
        for (const auto* by_peer : {&own.sends, &own.receives}) {
          const bool sends = by_peer == &own.sends;
          for (const auto& [peer, unused] : *by_peer) {
            const uint32_t peer_rank = communicator.Rank(group, peer);
            const uint32_t sender = sends ? rank : peer_rank;
            const uint32_t receiver = sends ? peer_rank : rank;
            const bool is_new =
                member_pairs
                    .emplace(schedule_.role_of_rank[sender], sends ? member : peer,
                             schedule_.role_of_rank[receiver], sends ? peer : member)
                    .second;
            if (is_new)
              MatchMessages(id, sender, sends ? member : peer, receiver, sends ? peer : member);
          }
        }
      }
    }
  }

  void MatchCollectives(uint32_t id, uint32_t rank_a, uint32_t rank_b) {
    const uint32_t role_a = schedule_.role_of_rank[rank_a];
    const uint32_t role_b = schedule_.role_of_rank[rank_b];
    const OpList& a = PostsOf(role_a, id).collectives;
    const OpList& b = PostsOf(role_b, id).collectives;
    const std::string& name = schedule_.communicators[id].name();
    for (size_t k = 0; k < std::min(a.size(), b.size()); ++k) {
      const RoleOp op_a{role_a, a[k]};
      const RoleOp op_b{role_b, b[k]};
      const auto& work_a = std::get<Collective>(schedule_.roles[role_a].ops[a[k]].work);
      const auto& work_b = std::get<Collective>(schedule_.roles[role_b].ops[b[k]].work);
      if (work_a.kind != work_b.kind || work_a.bytes != work_b.bytes ||
          work_a.algorithm != work_b.algorithm || work_a.protocol != work_b.protocol ||
          work_a.root != work_b.root || work_a.pair_bytes != work_b.pair_bytes)
        throw Error(fmt::format("ranks {} and {} disagree on communicator \"{}\": {} meets {}",
                                rank_a, rank_b, name, Described(op_a, op_b),
                                Described(op_b, op_a)));
      meetings_.emplace_back(op_a, op_b);
    }
    if (a.size() == b.size()) return;
    const bool a_has_more = a.size() > b.size();
    const RoleOp extra = a_has_more ? RoleOp{role_a, a[b.size()]} : RoleOp{role_b, b[a.size()]};
    throw Error(
        fmt::format("ranks {} and {} disagree on communicator \"{}\": {} of rank {} meets nothing, "
                    "because rank "
                    "{} posts only {} collectives there",
                    rank_a, rank_b, name, Described(extra, extra), a_has_more ? rank_a : rank_b,
                    a_has_more ? rank_b : rank_a, std::min(a.size(), b.size())));
  }

  void MatchMessages(uint32_t id, uint32_t sender, uint32_t sending_member, uint32_t receiver,
                     uint32_t receiving_member) {
    static const OpList kNothing;
    const uint32_t from = schedule_.role_of_rank[sender];
    const uint32_t to = schedule_.role_of_rank[receiver];
    const auto list = [](const std::map<uint32_t, OpList>& by_peer,
                         uint32_t peer) -> const OpList& {
      const auto found = by_peer.find(peer);
      return found == by_peer.end() ? kNothing : found->second;
    };
    const OpList& sends = list(PostsOf(from, id).sends, receiving_member);
    const OpList& receives = list(PostsOf(to, id).receives, sending_member);
    const std::string where = fmt::format("ranks {} and {} disagree on communicator \"{}\"", sender,
                                          receiver, schedule_.communicators[id].name());
    for (size_t k = 0; k < std::min(sends.size(), receives.size()); ++k) {
      const RoleOp send{from, sends[k]};
      const RoleOp receive{to, receives[k]};
      if (CommunicationBytes(schedule_.roles[from].ops[sends[k]].work) !=
          CommunicationBytes(schedule_.roles[to].ops[receives[k]].work))
        throw Error(fmt::format("{}: {} meets {}", where, Described(send, receive),
                                Described(receive, send)));
      meetings_.emplace_back(send, receive);
    }
    if (sends.size() > receives.size()) {
      const RoleOp extra{from, sends[receives.size()]};
      throw Error(fmt::format("{}: {} of rank {} meets no receive", where, Described(extra, extra),
                              sender));
    }
    if (receives.size() > sends.size()) {
      const RoleOp extra{to, receives[sends.size()]};
      throw Error(
          fmt::format("{}: {} of rank {} meets no send", where, Described(extra, extra), receiver));
    }
  }

  const Schedule& schedule_;
  const std::vector<RolePosts>& posts_;
  Meetings meetings_;
};

// ---- Does it finish? --------------------------------------------------------------------------------

// The quotient of the graph of waits: one node for all ops that meet, whatever their ranks. The graph of
// the ranks maps onto it, so that if the quotient has no cycle, the ranks' graph has none. The converse
// does not hold.
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
  // One stream of one rank. All ops before `head` are done, all behind it are waiting.
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

  // Whether all others have posted. Counts the posts of a collective, so that each costs constant time.
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

  // An op of the same rank that has to be done before `at`.
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

  // What an unfinished op waits for: an earlier op of its rank, or the op of another that it meets.
  RankOp WaitsFor(const RankOp& at) const {
    if (const auto before = UnfinishedBefore(at)) return *before;
    for (const RankOp& other : Meeting(at)) {
      if (StateOf(other) == State::kWaiting) return other;
    }
    internal::FailCheck(__FILE__, __LINE__, "a stuck op waits for something");
  }

  [[noreturn]] void FailWithCycle(RankOp at) const {
    // Every unfinished op waits for another one, so that the walk must come back.
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
    throw Error(text);
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

void CheckSchedule(const Schedule& schedule) {
  CheckNames(schedule);
  const std::vector<RolePosts> posts = CollectPosts(schedule);
  const Meetings meetings = Matcher(schedule, posts).Match();
  if (QuotientHasCycle(schedule, meetings)) UntimedRun(schedule, posts).Run();
}

// ---- Data races -------------------------------------------------------------------------------------

namespace {

// Vector clocks: clock[op][s] counts the ops of stream s that are done when `op` is done.
class RaceFinder {
 public:
  explicit RaceFinder(const Role& role) : role_(role), streams_(role.streams.size()) {
    clocks_.resize(role.ops.size() * streams_);
    position_.resize(role.ops.size());
    accesses_.resize(role.buffers.size());
  }

  void Run() {
    std::vector<uint32_t> latest(streams_, kNoOp);
    for (uint32_t op = 0; op < role_.ops.size(); ++op) {
      const uint32_t stream = role_.ops[op].stream.index();
      CHECK_LT(stream, streams_);
      if (latest[stream] != kNoOp) Join(op, latest[stream]);
      for (const OpId before : role_.ops[op].after) {
        CHECK_LT(before.index(), op);
        Join(op, before.index());
      }
      position_[op] = ++clocks_[op * streams_ + stream];
      latest[stream] = op;
      for (const BufferId buffer : role_.ops[op].reads) Touch(op, buffer, /*writes=*/false);
      for (const BufferId buffer : role_.ops[op].writes) Touch(op, buffer, /*writes=*/true);
    }
  }

 private:
  static constexpr uint32_t kNoOp = std::numeric_limits<uint32_t>::max();

  // The latest accesses of a part from one stream. They stand for all earlier ones, because a stream is ordered.
  struct Access {
    uint32_t stream;
    Footprint part;
    uint32_t read = kNoOp;
    uint32_t write = kNoOp;
  };

  void Join(uint32_t op, uint32_t before) {
    for (size_t s = 0; s < streams_; ++s) {
      uint32_t& own = clocks_[op * streams_ + s];
      own = std::max(own, clocks_[before * streams_ + s]);
    }
  }

  bool IsBefore(uint32_t earlier, uint32_t op) const {
    return clocks_[op * streams_ + role_.ops[earlier].stream.index()] >= position_[earlier];
  }

  void Touch(uint32_t op, BufferId buffer, bool writes) {
    CHECK_LT(buffer.index(), accesses_.size());
    const uint32_t stream = role_.ops[op].stream.index();
    const Footprint part = FootprintOf(role_.buffers, buffer);
    std::vector<Access>& accesses = accesses_[part.buffer.index()];
    Access* own = nullptr;
    for (Access& access : accesses) {
      if (access.stream == stream) {
        if (access.part == part) own = &access;
        continue;
      }
      if (!access.part.Overlaps(part)) continue;
      if (access.write != kNoOp && !IsBefore(access.write, op))
        Fail(buffer, access.write, true, op, writes);
      if (writes && access.read != kNoOp && !IsBefore(access.read, op))
        Fail(buffer, access.read, false, op, true);
    }
    if (own == nullptr) own = &accesses.emplace_back(Access{stream, part, kNoOp, kNoOp});
    (writes ? own->write : own->read) = op;
  }

  [[noreturn]] void Fail(BufferId buffer, uint32_t a, bool a_writes, uint32_t b,
                         bool b_writes) const {
    const auto name = [&](uint32_t op, bool writes) {
      return fmt::format("op {} \"{}\" (stream \"{}\") {}", op, role_.ops[op].name,
                         role_.streams[role_.ops[op].stream.index()].name,
                         writes ? "writes it" : "reads it");
    };
    throw Error(fmt::format(
        "role \"{}\": race on buffer \"{}\": {} and {}, and neither is ordered "
        "before the other",
        role_.name, role_.buffers[buffer.index()].name, name(a, a_writes), name(b, b_writes)));
  }

  const Role& role_;
  size_t streams_;
  std::vector<uint32_t> clocks_;               // [op][stream]
  std::vector<uint32_t> position_;             // by op: 1 for the first of its stream
  std::vector<std::vector<Access>> accesses_;  // by buffer
};

}  // namespace

void CheckBuffers(const Schedule& schedule) {
  for (const Role& role : schedule.roles) RaceFinder(role).Run();
}

}  // namespace rehearse

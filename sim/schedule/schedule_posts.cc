#include "sim/schedule/schedule_posts.h"

#include <algorithm>
#include <limits>
#include <set>
#include <string>
#include <tuple>
#include <variant>

#include <fmt/format.h>

#include "sim/base/error.h"
#include "sim/base/units.h"
#include "sim/schedule/op_error.h"

namespace rehearse {
namespace {

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
  // With everything that must agree; exact bytes only if the rounded ones hide the difference.
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
        how = fmt::format(" by {}", Name(collective->algorithm));
      if (other_collective != nullptr && collective->protocol != other_collective->protocol)
        how += fmt::format(" with {}", Name(collective->protocol));
      if (other_collective != nullptr && collective->root != other_collective->root)
        how += fmt::format(" with root {}", collective->root);
      if (other_collective != nullptr && collective->pair_bytes != other_collective->pair_bytes)
        how += " with its own sizes";
      if (other_collective != nullptr &&
          (collective->rank_share != other_collective->rank_share ||
           collective->machine_share != other_collective->machine_share))
        how += fmt::format(", {} of it to ranks and {} to machines", collective->rank_share,
                           collective->machine_share);
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
      throw OpError(
          role, op,
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
          work_a.root != work_b.root || work_a.pair_bytes != work_b.pair_bytes ||
          work_a.rank_share != work_b.rank_share || work_a.machine_share != work_b.machine_share)
        throw OpError(
            op_a.role, op_a.op,
            fmt::format("ranks {} and {} disagree on communicator \"{}\": {} meets {}", rank_a,
                        rank_b, name, Described(op_a, op_b), Described(op_b, op_a)));
      meetings_.emplace_back(op_a, op_b);
    }
    if (a.size() == b.size()) return;
    const bool a_has_more = a.size() > b.size();
    const RoleOp extra = a_has_more ? RoleOp{role_a, a[b.size()]} : RoleOp{role_b, b[a.size()]};
    throw OpError(
        extra.role, extra.op,
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
        throw OpError(send.role, send.op,
                      fmt::format("{}: {} meets {}", where, Described(send, receive),
                                  Described(receive, send)));
      meetings_.emplace_back(send, receive);
    }
    if (sends.size() > receives.size()) {
      const RoleOp extra{from, sends[receives.size()]};
      throw OpError(extra.role, extra.op,
                    fmt::format("{}: {} of rank {} meets no receive", where,
                                Described(extra, extra), sender));
    }
    if (receives.size() > sends.size()) {
      const RoleOp extra{to, receives[sends.size()]};
      throw OpError(
          extra.role, extra.op,
          fmt::format("{}: {} of rank {} meets no send", where, Described(extra, extra), receiver));
    }
  }

  const Schedule& schedule_;
  const std::vector<RolePosts>& posts_;
  Meetings meetings_;
};

}  // namespace

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

Meetings MatchPosts(const Schedule& schedule, const std::vector<RolePosts>& posts) {
  return Matcher(schedule, posts).Match();
}

}  // namespace rehearse

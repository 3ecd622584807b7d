// What the roles of a schedule post on their communicators, and which of these ops take
// place together.
#pragma once

#include <cstdint>
#include <map>
#include <utility>
#include <vector>

#include "sim/schedule/schedule.h"

namespace rehearse {

using OpList = std::vector<uint32_t>;  // positions in Role::ops

// The communication of one role on one communicator, in list order.
struct Posts {
  OpList collectives;
  std::map<uint32_t, OpList> sends;     // by peer
  std::map<uint32_t, OpList> receives;  // by peer
};

// By communicator.
using RolePosts = std::map<uint32_t, Posts>;

// By role. Everything that ops name must exist.
std::vector<RolePosts> CollectPosts(const Schedule& schedule);

// Ops that take place together, as pairs of (role, op). An op counts once for all ranks of its
// role.
struct RoleOp {
  uint32_t role;
  uint32_t op;
};
using Meetings = std::vector<std::pair<RoleOp, RoleOp>>;

// Throws Error, naming both ranks and ops, unless the ranks of each group post the same collectives
// in the same order and sends and receives pair up; compared once for each distinct combination of
// roles in a group.
Meetings MatchPosts(const Schedule& schedule, const std::vector<RolePosts>& posts);

}  // namespace rehearse

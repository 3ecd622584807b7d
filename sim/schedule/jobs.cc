#include "sim/schedule/jobs.h"

#include <optional>
#include <utility>

#include <fmt/format.h>

#include "sim/base/error.h"
#include "sim/schedule/repeats.h"

namespace rehearse {
namespace {

constexpr uint32_t kSpare = 0xffffffffu;

bool IsIdentity(const std::vector<uint32_t>& placement) {
  for (uint32_t rank = 0; rank < placement.size(); ++rank) {
    if (placement[rank] != rank) return false;
  }
  return true;
}

Communicator OnDevices(const Communicator& communicator, std::string name,
                       const std::vector<uint32_t>& placement) {
  std::vector<std::vector<uint32_t>> groups(communicator.group_count());
  for (uint32_t group = 0; group < groups.size(); ++group) {
    groups[group].reserve(communicator.size());
    for (uint32_t member = 0; member < communicator.size(); ++member)
      groups[group].push_back(placement[communicator.Rank(group, member)]);
  }
  return Communicator::Explicit(std::move(name), groups);
}

void MoveOn(std::vector<CommunicatorId>* ids, uint32_t by) {
  for (CommunicatorId& id : *ids) id = CommunicatorId(id.index() + by);
}

// Moves the role's communicators on by `by`.
void MoveCommunicators(Role* role, uint32_t by) {
  if (by == 0) return;
  for (Op& op : role->ops) {
    if (auto* collective = std::get_if<Collective>(&op.work))
      collective->communicator = CommunicatorId(collective->communicator.index() + by);
    if (auto* send = std::get_if<Send>(&op.work))
      send->communicator = CommunicatorId(send->communicator.index() + by);
    if (auto* receive = std::get_if<Receive>(&op.work))
      receive->communicator = CommunicatorId(receive->communicator.index() + by);
  }
  for (Region& region : role->regions) {
    MoveOn(&region.rows.cut_by, by);
    MoveOn(&region.columns.cut_by, by);
    MoveOn(&region.flat_by, by);
  }
  for (Buffer& buffer : role->buffers) {
    if (!buffer.view) continue;
    MoveOn(&buffer.view->rows_cut_by, by);
    MoveOn(&buffer.view->columns_cut_by, by);
  }
}

Op Wait(Seconds duration, StreamId stream) {
  Compute compute;
  compute.kind = ComputeKind::kFixed;
  compute.duration = duration;
  compute.kernels = 0;
  Op op;
  op.name = "start";
  op.stream = stream;
  op.tag.phase = Phase::kSynchronize;
  op.work = std::move(compute);
  return op;
}

// The last op of each stream, in the order of streams.
std::vector<uint32_t> LastOps(const Role& role) {
  std::vector<std::optional<uint32_t>> last(role.streams.size());
  for (uint32_t op = 0; op < role.ops.size(); ++op) last[role.ops[op].stream.index()] = op;
  std::vector<uint32_t> ops;
  for (const std::optional<uint32_t>& op : last) {
    if (op) ops.push_back(*op);
  }
  return ops;
}

// Waits until `start`, then does the ops `repeat` times.
Role OverTime(Role role, Seconds start, uint32_t repeat) {
  if (role.ops.empty() || (start == Seconds(0) && repeat == 1)) return role;
  // The first op on a stream may lie in a body that is repeated, and such an op cannot wait for one
  // from before the body.
  if (!role.repeats.empty()) role = Expanded(role);
  const std::vector<Op> step = std::exchange(role.ops, {});
  role.ops.reserve(1 + repeat * step.size());
  if (start > Seconds(0)) role.ops.push_back(Wait(start, step.front().stream));
  // What the first ops of a step wait for: after these, the rank has nothing left to do.
  std::vector<uint32_t> before;
  if (!role.ops.empty()) before.push_back(0);
  for (uint32_t copy = 0; copy < repeat; ++copy) {
    const auto moved_by = static_cast<uint32_t>(role.ops.size());
    std::vector<bool> has_begun(role.streams.size());
    for (const Op& given : step) {
      Op op = given;
      for (OpId& id : op.after) id = OpId(id.index() + moved_by);
      if (!has_begun[op.stream.index()]) {
        has_begun[op.stream.index()] = true;
        for (const uint32_t earlier : before) {
          // Its own stream keeps the order anyway.
          if (role.ops[earlier].stream != op.stream) op.after.emplace_back(earlier);
        }
      }
      role.ops.push_back(std::move(op));
    }
    before = LastOps(role);
  }
  return role;
}

}  // namespace

bool IsOneStep(const std::vector<Job>& jobs) {
  const Job& job = jobs.front();
  return jobs.size() == 1 && job.start == Seconds(0) && job.repeat == 1;
}

bool IsWhole(const std::vector<Job>& jobs, uint32_t devices) {
  const Job& job = jobs.front();
  return IsOneStep(jobs) && job.placement.size() == devices && IsIdentity(job.placement);
}

std::string JointName(const std::vector<Job>& jobs, const Job& job, const std::string& name) {
  return jobs.size() == 1 ? name : fmt::format("{}/{}", job.name, name);
}

uint32_t FirstOp(const Job& job) { return job.start > Seconds(0) ? 1 : 0; }

Schedule StepsOf(const Job& job) {
  Schedule steps = job.schedule;
  for (Role& role : steps.roles) role = OverTime(std::move(role), Seconds(0), job.repeat);
  steps.model_flops *= job.repeat;
  steps.hardware_flops *= job.repeat;
  steps.tokens *= job.repeat;
  return steps;
}

Schedule Join(const std::vector<Job>& jobs, uint32_t devices) {
  CHECK(!jobs.empty());
  if (IsWhole(jobs, devices)) return jobs.front().schedule;
  Schedule joint;
  joint.role_of_rank.assign(devices, kSpare);
  joint.token_name = jobs.front().schedule.token_name;
  for (const Job& job : jobs) {
    const Schedule& own = job.schedule;
    CHECK_EQ(job.placement.size(), own.role_of_rank.size());
    CHECK_GE(job.repeat, 1u);
    const auto first_communicator = static_cast<uint32_t>(joint.communicators.size());
    const auto first_role = static_cast<uint32_t>(joint.roles.size());
    for (const Communicator& communicator : own.communicators) {
      joint.communicators.push_back(
          OnDevices(communicator, JointName(jobs, job, communicator.name()), job.placement));
    }
    for (const Role& role : own.roles) {
      Role played = OverTime(role, job.start, job.repeat);
      played.name = JointName(jobs, job, role.name);
      MoveCommunicators(&played, first_communicator);
      joint.roles.push_back(std::move(played));
    }
    for (uint32_t rank = 0; rank < own.ranks(); ++rank) {
      CHECK_LT(job.placement[rank], devices);
      uint32_t& role = joint.role_of_rank[job.placement[rank]];
      CHECK_EQ(role, kSpare);
      role = first_role + own.role_of_rank[rank];
    }
    joint.model_flops += job.repeat * own.model_flops;
    joint.hardware_flops += job.repeat * own.hardware_flops;
    // Images and tokens do not add up.
    if (own.token_name == joint.token_name) joint.tokens += job.repeat * own.tokens;
  }
  const auto spare = static_cast<uint32_t>(joint.roles.size());
  bool is_spare = false;
  for (uint32_t& role : joint.role_of_rank) {
    if (role != kSpare) continue;
    role = spare;
    is_spare = true;
  }
  if (is_spare) {
    joint.roles.emplace_back();
    joint.roles.back().name = "spare";
  }
  return joint;
}

}  // namespace rehearse

#include "sim/schedule/schedule_check.h"

#include <algorithm>
#include <cmath>
#include <optional>
#include <string>
#include <variant>
#include <vector>

#include <fmt/format.h>

#include "sim/base/error.h"
#include "sim/base/units.h"
#include "sim/schedule/done_ops.h"
#include "sim/schedule/op_error.h"
#include "sim/schedule/repeats.h"
#include "sim/schedule/schedule_finish.h"
#include "sim/schedule/schedule_posts.h"
#include "sim/schedule/stream_waits.h"

namespace rehearse {
namespace {

// What is wrong with a collective of `size` members, or "".
std::string MistakeIn(const Collective& collective, uint32_t size) {
  const bool has_root =
      collective.kind == CollectiveKind::kBroadcast || collective.kind == CollectiveKind::kReduce;
  if (has_root && collective.root >= size)
    return fmt::format("has member {} as its root, but there are {}", collective.root, size);
  if (collective.kind == CollectiveKind::kBarrier && collective.bytes > Bytes(0))
    return fmt::format("is a barrier of {}, expected no bytes", Print(collective.bytes));
  const auto is_share = [](double share) { return share > 0 && share <= 1; };
  if (!is_share(collective.rank_share) || !is_share(collective.machine_share))
    return fmt::format(
        "sends {} of its bytes to ranks and {} to machines, expected shares from 0 "
        "to 1",
        collective.rank_share, collective.machine_share);
  if ((collective.rank_share != 1 || collective.machine_share != 1) &&
      collective.kind != CollectiveKind::kAllToAll)
    return fmt::format("sends shares of its bytes, but only all-to-alls do, not {}",
                       Name(collective.kind));
  if (IsHostCopy(collective.kind) && size != 1)
    return fmt::format("copies between a device and its host in groups of {}, expected of one",
                       size);
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

// How the op's host buffers are misused, or "". `Buffer` ids must be valid.
std::string MisuseOfHost(const Role& role, const Op& op) {
  const auto* collective = std::get_if<Collective>(&op.work);
  const bool to_host = collective != nullptr && collective->kind == CollectiveKind::kToHost;
  const bool from_host = collective != nullptr && collective->kind == CollectiveKind::kFromHost;
  const bool by_host = IsHostWork(op.work);
  const auto mistake = [&](const std::vector<BufferId>& buffers, const char* verb,
                           bool expects_host) -> std::string {
    for (const BufferId id : buffers) {
      const Buffer& buffer = role.buffers[id.index()];
      if (buffer.on_host == expects_host) continue;
      if (!IsHostCopy(op.work) && !by_host)
        return fmt::format(
            "{} buffer \"{}\", which is on the host: only host copies and work reach it", verb,
            buffer.name);
      return fmt::format("{} buffer \"{}\", expected one on the {}", verb, buffer.name,
                         expects_host ? "host" : "device");
    }
    return "";
  };
  const std::string reads = mistake(op.reads, "reads", from_host || by_host);
  return reads.empty() ? mistake(op.writes, "writes", to_host || by_host) : reads;
}

// Whether the sizes of the kernel that it is a part of, and the parts, are numbers that we have.
bool HasCountableKernel(const Compute& part) {
  constexpr double kMost = 0x1p63;
  const double rows = part.row_parts;
  const double columns = part.column_parts;
  return rows * columns <= 0x1p31 && rows * static_cast<double>(part.gemm.m) < kMost &&
         columns * static_cast<double>(part.gemm.n) < kMost;
}

void CheckOp(const Schedule& schedule, uint32_t role_index, uint32_t index) {
  const Role& role = schedule.roles[role_index];
  const Op& op = role.ops[index];
  const auto fail = [&](const std::string& message) {
    throw OpError(role_index, index,
                  fmt::format("role \"{}\": op {} \"{}\" {}", role.name, index, op.name, message));
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
  // A view must lie inside a buffer that is not a view itself.
  for (const auto* touched : {&op.reads, &op.writes}) {
    for (const BufferId buffer : *touched) {
      const std::optional<View>& view = role.buffers[buffer.index()].view;
      if (!view) continue;
      check_id(view->of.index(), role.buffers.size(), "touches a view of", "buffer");
      if (role.buffers[view->of.index()].view)
        fail(fmt::format("touches buffer \"{}\", a view of a view",
                         role.buffers[buffer.index()].name));
      if (view->rows_turned == 0) continue;
      uint64_t pieces = 1;
      for (const CommunicatorId cut : view->rows_cut_by) {
        check_id(cut.index(), schedule.communicators.size(), "touches a view cut by",
                 "communicator");
        pieces *= schedule.communicators[cut.index()].size();
      }
      if (view->rows_turned >= pieces)
        fail(fmt::format("touches buffer \"{}\", a view turned by {} of {} pieces, expected fewer",
                         role.buffers[buffer.index()].name, view->rows_turned, pieces));
    }
  }
  if (const std::string misuse = MisuseOfHost(role, op); !misuse.empty()) fail(misuse);
  for (const OpId before : op.after) {
    check_id(before.index(), role.ops.size(), "is after", "op");
    if (before.index() >= index)
      fail(fmt::format("is after op {} \"{}\", which is not earlier in the list", before.index(),
                       role.ops[before.index()].name));
  }
  if (const auto* compute = std::get_if<Compute>(&op.work)) {
    if (!HasCountableKernel(*compute))
      fail(fmt::format("is one of {} x {} parts of a kernel whose sizes cannot be counted",
                       compute->row_parts, compute->column_parts));
    return;
  }
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
  for (uint32_t role = 0; role < schedule.roles.size(); ++role) {
    for (uint32_t op = 0; op < schedule.roles[role].ops.size(); ++op) CheckOp(schedule, role, op);
    CheckRepeats(schedule.roles[role]);
  }
}

// What decides whether the schedule finishes, with copies written out: ops that communicate, and
// those at which streams wait for each other. Names are left out.
Schedule Skeleton(const Schedule& schedule, const std::vector<std::vector<Repeat>>& repeats) {
  Schedule skeleton;
  skeleton.communicators = schedule.communicators;
  skeleton.role_of_rank = schedule.role_of_rank;
  for (size_t i = 0; i < schedule.roles.size(); ++i) {
    const Role& role = schedule.roles[i];
    const StreamWaits streams = StreamWaitsOf(role);
    const DoneOps all(repeats[i], role.ops.size());
    constexpr uint32_t kLeftOut = Id<OpTag>::kNone;
    std::vector<uint32_t> number;  // by position
    number.reserve(all.size());
    Role& bare = skeleton.roles.emplace_back();
    bare.streams = role.streams;
    for (const DoneOp& done : all) {
      const Op& op = role.ops[done.place];
      const bool computes = std::holds_alternative<Compute>(op.work);
      if (computes && !streams.waits[done.place] && !streams.awaited[done.place]) {
        number.push_back(kLeftOut);
        continue;
      }
      number.push_back(static_cast<uint32_t>(bare.ops.size()));
      Op& own = bare.ops.emplace_back();
      own.stream = op.stream;
      if (!computes) own.work = op.work;
      for (const OpId before : op.after) {
        const uint32_t earlier = number[all.PositionOf(before, done)];
        if (earlier != kLeftOut) own.after.emplace_back(earlier);
      }
    }
  }
  return skeleton;
}

bool AreAsMany(const std::vector<std::vector<Repeat>>& a,
               const std::vector<std::vector<Repeat>>& b) {
  const auto same_times = [](const Repeat& one, const Repeat& other) {
    return one.times == other.times;
  };
  return std::equal(
      a.begin(), a.end(), b.begin(), b.end(), [&](const auto& one, const auto& other) {
        return std::equal(one.begin(), one.end(), other.begin(), other.end(), same_times);
      });
}

// For schedules without repeats.
void CheckMeetings(const Schedule& schedule) {
  const std::vector<RolePosts> posts = CollectPosts(schedule);
  CheckThatItFinishes(schedule, posts, MatchPosts(schedule, posts));
}

}  // namespace

void CheckSchedule(const Schedule& schedule) {
  CheckNames(schedule);
  if (!HasRepeats(schedule)) {
    CheckMeetings(schedule);
    return;
  }
  // Ops that match with n copies and with n + 1 match with any number, since equally many ops of
  // each body meet. If they do not, roles may repeat pieces of different length, and only the whole
  // schedule tells.
  try {
    const auto few = FewerCopies(schedule, kCopiesThatShowAll);
    const auto more = FewerCopies(schedule, kCopiesThatShowAll + 1);
    CheckMeetings(Skeleton(schedule, few));
    if (!AreAsMany(few, more)) CheckMeetings(Skeleton(schedule, more));
  } catch (const Error&) {
    CheckMeetings(Expanded(schedule));
  }
}

}  // namespace rehearse

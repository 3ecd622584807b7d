#include "real/backends/executable.h"

#include <algorithm>
#include <cmath>
#include <map>
#include <utility>

#include <fmt/format.h>

#include "sim/base/error.h"
#include "sim/schedule/repeats.h"

namespace rehearse {
namespace {

bool NamesNoBuffers(const Op& op) {
  return !std::holds_alternative<Compute>(op.work) && op.reads.empty() && op.writes.empty();
}

// How many elements a rank of the op's group has before and after.
struct MessageSize {
  uint64_t from = 0;
  uint64_t to = 0;
  bool in_place = false;
};

MessageSize ElementsOf(const Op& op, uint64_t members) {
  const double bytes = CommunicationBytes(op.work).value();
  const uint64_t whole =
      std::max<uint64_t>(1, static_cast<uint64_t>(std::ceil(bytes / SizeOf(DType::kFp32).value())));
  const uint64_t share = (whole + members - 1) / members;
  if (std::holds_alternative<Send>(op.work)) return {whole, 0, false};
  if (std::holds_alternative<Receive>(op.work)) return {0, whole, false};
  switch (std::get<Collective>(op.work).kind) {
    case CollectiveKind::kAllGather:
      return {share, members * share, false};
    case CollectiveKind::kReduceScatter:
      return {members * share, share, false};
    case CollectiveKind::kAllToAll:
      return {members * share, members * share, false};
    case CollectiveKind::kSendReceive:
    case CollectiveKind::kToHost:
    case CollectiveKind::kFromHost:
      return {whole, whole, false};
    case CollectiveKind::kAllReduce:
    case CollectiveKind::kBroadcast:
    case CollectiveKind::kReduce:
    case CollectiveKind::kBarrier:
      return {whole, whole, true};
  }
  internal::FailCheck(__FILE__, __LINE__, "unknown kind of collective");
}

// Gives memory to the messages of one role: on each stream one buffer for what is sent and one for
// what is received, and a view of it for each size.
class MessageMemory {
 public:
  MessageMemory(const Schedule& schedule, Role* role) : schedule_(schedule), role_(*role) {}

  void Run() {
    for (Op& op : role_.ops) {
      if (NamesNoBuffers(op)) AddTo(&op);
    }
  }

 private:
  void AddTo(Op* op) {
    const auto* collective = std::get_if<Collective>(&op->work);
    if (collective != nullptr && !collective->pair_bytes.empty()) {
      throw Error(
          fmt::format("role \"{}\": op \"{}\" gives sizes of pairs and no buffers: that is only "
                      "simulated",
                      role_.name, op->name));
    }
    const uint32_t members = schedule_.communicators[CommunicatorOf(op->work).index()].size();
    const MessageSize size = ElementsOf(*op, members);
    const uint32_t stream = op->stream.index();
    if (size.from > 0) op->reads = {Part(stream, true, size.from)};
    if (size.in_place)
      op->writes = op->reads;
    else if (size.to > 0)
      op->writes = {Part(stream, false, size.to)};
  }

  BufferId AddBuffer(const char* name, uint64_t elements) {
    role_.buffers.push_back({.name = name,
                             .kind = BufferKind::kBuffer,
                             .bytes = Bytes(0),
                             .dtype = DType::kFp32,
                             .rows = 1,
                             .columns = elements});
    return BufferId(static_cast<uint32_t>(role_.buffers.size() - 1));
  }

  BufferId Part(uint32_t stream, bool goes, uint64_t elements) {
    const auto [whole, is_new] = wholes_.try_emplace({stream, goes});
    if (is_new) whole->second = AddBuffer(goes ? "made up to send" : "made up to receive", 0);
    Buffer& memory = role_.buffers[whole->second.index()];
    memory.columns = std::max(memory.columns, elements);
    memory.bytes = static_cast<double>(memory.columns) * SizeOf(memory.dtype);
    const auto [part, is_first] = parts_.try_emplace({whole->second.index(), elements});
    if (is_first) {
      part->second = AddBuffer("made up", elements);
      role_.buffers.back().view = View{whole->second, 0, 0, {}, {}};
    }
    return part->second;
  }

  const Schedule& schedule_;
  Role& role_;
  std::map<std::pair<uint32_t, bool>, BufferId> wholes_;     // by stream and whether it is sent
  std::map<std::pair<uint32_t, uint64_t>, BufferId> parts_;  // by buffer and elements
};

template <typename Wanted>
bool HasOp(const Schedule& schedule, Wanted wanted) {
  return std::any_of(schedule.roles.begin(), schedule.roles.end(), [&](const Role& role) {
    return std::any_of(role.ops.begin(), role.ops.end(), wanted);
  });
}

}  // namespace

bool IsWaitedFor(const Compute& compute) {
  return compute.kind == ComputeKind::kFixed && compute.kernel == Kernel::kNone;
}

bool WaitsForOps(const Schedule& schedule) {
  return HasOp(schedule, [](const Op& op) {
    const auto* compute = std::get_if<Compute>(&op.work);
    return compute != nullptr && IsWaitedFor(*compute);
  });
}

bool MakesUpMessages(const Schedule& schedule) { return HasOp(schedule, NamesNoBuffers); }

Schedule Executable(const Schedule& schedule) {
  Schedule result = HasRepeats(schedule) ? Expanded(schedule) : schedule;
  for (Role& role : result.roles) MessageMemory(result, &role).Run();
  return result;
}

}  // namespace rehearse

// NCCL's entry points, for ranks of one process or of several on this machine.
#include <unistd.h>

#include "tests/doubles/graphs.h"
#include "tests/doubles/nccl_meeting.h"
#include "tests/doubles/nccl_processes.h"
#include "tests/doubles/nccl_profiler.h"

namespace rehearse::gpu_double {
namespace {

World& world() { return World::Get(); }

// Its number is that of its turn, which in a graph differs with every launch.
void Launch(Communicator* communicator, const char* name, const std::vector<Touch>& touches,
            const Operation& operation, Stream* stream) {
  const uint64_t number = communicator->posted++;
  const auto own = std::make_shared<Operation>(operation);
  world().Enqueue(stream, name, touches, [communicator, number, own] {
    if (communicator->elsewhere) {
      MeetElsewhere(communicator, number, own.get());
    } else {
      Meet(communicator, number, own.get());
    }
  });
}

// The group that the thread has open: its messages, and the collectives that are reported to
// profilers when it is closed.
struct Group {
  int depth = 0;
  std::vector<std::pair<Communicator*, Message>> messages;
  std::vector<std::pair<Communicator*, Operation>> untold;
};
Group& OpenGroup() {
  thread_local Group group;
  return group;
}

void Enqueue(Communicator* communicator, const char* name, const std::vector<Touch>& touches,
             const Operation& operation, Stream* stream) {
  if (OpenGroup().depth > 0) {
    OpenGroup().untold.emplace_back(communicator, operation);
  } else {
    TellProfiler(*communicator, operation);
  }
  const auto launch = [=](Stream* own) { Launch(communicator, name, touches, operation, own); };
  if (!KeepForReplay(stream, launch)) launch(stream);
}

void Post(Communicator* communicator, const Operation& operation, Stream* stream) {
  const uint64_t size = SizeOf(operation.type);
  const uint64_t from = ElementsFrom(operation, communicator->rank, communicator->size) * size;
  const uint64_t to = ElementsTo(operation, communicator->rank, communicator->size) * size;
  Enqueue(communicator, NameOf(operation.kind),
          {{operation.from, 1, from, from, false}, {operation.to, 1, to, to, true}}, operation,
          stream);
}

void CloseGroup() {
  Group& group = OpenGroup();
  for (const auto& [communicator, operation] : group.untold) TellProfiler(*communicator, operation);
  group.untold.clear();
  while (!group.messages.empty()) {
    Communicator* communicator = group.messages.front().first;
    Stream* stream = group.messages.front().second.stream;
    Operation operation;
    operation.kind = Kind::kMessages;
    std::vector<Touch> touches;
    std::vector<std::pair<Communicator*, Message>> others;
    for (const auto& entry : group.messages) {
      if (entry.first != communicator) {
        others.push_back(entry);
        continue;
      }
      const Message& message = entry.second;
      operation.messages.push_back(message);
      touches.push_back({message.data, 1, message.bytes, message.bytes, !message.sends});
    }
    group.messages = others;
    Enqueue(communicator, NameOf(Kind::kMessages), touches, operation, stream);
  }
}

int PostMessage(Communicator* communicator, const Message& message) {
  OpenGroup().messages.emplace_back(communicator, message);
  if (OpenGroup().depth == 0) CloseGroup();
  return kSuccess;
}

}  // namespace

#define FAIL_IF_TOLD(name) \
  if (world().ShouldFail(#name)) return kPretendedFailure

GPU_DOUBLE_ENTRY ncclGetVersion(int* version) {
  FAIL_IF_TOLD(ncclGetVersion);
  *version = world().control.nccl_version;
  return kSuccess;
}

GPU_DOUBLE_ENTRY ncclGetUniqueId(NcclUniqueId* id) {
  FAIL_IF_TOLD(ncclGetUniqueId);
  static std::atomic<uint64_t> next{1};
  *id = WriteInvitation(next++);
  return kSuccess;
}

GPU_DOUBLE_ENTRY ncclCommInitRank(Communicator** made, int size, NcclUniqueId id, int rank) {
  FAIL_IF_TOLD(ncclCommInitRank);
  const Invitation invitation = ReadInvitation(id);
  const int status = invitation.process != getpid()
                         ? JoinElsewhere(invitation, static_cast<size_t>(size), rank, made)
                         : JoinById(invitation.number, static_cast<size_t>(size), rank, made);
  if (status == kSuccess) GreetProfiler(*made);
  return status;
}

GPU_DOUBLE_ENTRY ncclCommSplit(Communicator* parent, int color, int key, Communicator** made,
                               void*) {
  FAIL_IF_TOLD(ncclCommSplit);
  const int status = parent->elsewhere ? SplitElsewhere(parent, color, key, made)
                                       : SplitHere(parent, color, key, made);
  if (status == kSuccess && *made != nullptr) GreetProfiler(*made);
  return status;
}

GPU_DOUBLE_ENTRY ncclCommAbort(Communicator* communicator) {
  if (communicator->elsewhere) {
    AbortElsewhere(communicator);
  } else {
    AbortHere(communicator);
  }
  FAIL_IF_TOLD(ncclCommAbort);
  return kSuccess;  // streams may still look at it: it is not freed
}

GPU_DOUBLE_ENTRY ncclCommDestroy(Communicator* communicator) {
  DismissProfiler(communicator);
  Destroy(communicator);
  FAIL_IF_TOLD(ncclCommDestroy);
  return kSuccess;
}

GPU_DOUBLE_ENTRY ncclCommGetAsyncError(Communicator* communicator, int* status) {
  FAIL_IF_TOLD(ncclCommGetAsyncError);
  *status = communicator->elsewhere ? FaultElsewhere(communicator) : communicator->fault.load();
  return kSuccess;
}

GPU_DOUBLE_ENTRY ncclGroupStart() {
  FAIL_IF_TOLD(ncclGroupStart);
  ++OpenGroup().depth;
  return kSuccess;
}

GPU_DOUBLE_ENTRY ncclGroupEnd() {
  FAIL_IF_TOLD(ncclGroupEnd);
  if (--OpenGroup().depth == 0) CloseGroup();
  return kSuccess;
}

GPU_DOUBLE_ENTRY ncclAllReduce(const char* from, char* to, size_t elements, NcclType type,
                               NcclReduction reduction, Communicator* communicator,
                               Stream* stream) {
  FAIL_IF_TOLD(ncclAllReduce);
  Post(communicator, {Kind::kAllReduce, from, to, elements, type, reduction, 0, {}}, stream);
  return kSuccess;
}

GPU_DOUBLE_ENTRY ncclBroadcast(const char* from, char* to, size_t elements, NcclType type, int root,
                               Communicator* communicator, Stream* stream) {
  FAIL_IF_TOLD(ncclBroadcast);
  Post(communicator, {Kind::kBroadcast, from, to, elements, type, NcclReduction::kSum, root, {}},
       stream);
  return kSuccess;
}

GPU_DOUBLE_ENTRY ncclReduce(const char* from, char* to, size_t elements, NcclType type,
                            NcclReduction reduction, int root, Communicator* communicator,
                            Stream* stream) {
  FAIL_IF_TOLD(ncclReduce);
  Post(communicator, {Kind::kReduce, from, to, elements, type, reduction, root, {}}, stream);
  return kSuccess;
}

GPU_DOUBLE_ENTRY ncclAllGather(const char* from, char* to, size_t elements, NcclType type,
                               Communicator* communicator, Stream* stream) {
  FAIL_IF_TOLD(ncclAllGather);
  Post(communicator, {Kind::kAllGather, from, to, elements, type, NcclReduction::kSum, 0, {}},
       stream);
  return kSuccess;
}

GPU_DOUBLE_ENTRY ncclReduceScatter(const char* from, char* to, size_t elements, NcclType type,
                                   NcclReduction reduction, Communicator* communicator,
                                   Stream* stream) {
  FAIL_IF_TOLD(ncclReduceScatter);
  Post(communicator, {Kind::kReduceScatter, from, to, elements, type, reduction, 0, {}}, stream);
  return kSuccess;
}

GPU_DOUBLE_ENTRY ncclSend(char* data, size_t elements, NcclType type, int peer,
                          Communicator* communicator, Stream* stream) {
  FAIL_IF_TOLD(ncclSend);
  return PostMessage(communicator, {true, peer, data, elements * SizeOf(type), stream});
}

GPU_DOUBLE_ENTRY ncclRecv(char* data, size_t elements, NcclType type, int peer,
                          Communicator* communicator, Stream* stream) {
  FAIL_IF_TOLD(ncclRecv);
  return PostMessage(communicator, {false, peer, data, elements * SizeOf(type), stream});
}

extern "C" __attribute__((visibility("default"))) const char* ncclGetErrorString(int status) {
  return status == kPretendedFailure ? "a failure was pretended, or found" : "invalid usage";
}

}  // namespace rehearse::gpu_double

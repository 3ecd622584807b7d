// NCCL's entry points, for ranks in one process.
//
// As in NCCL: communicators are made by all ranks together; the k-th operation that a rank puts on a
// communicator meets the k-th of the others, and does not begin before the rank's (k-1)-th has ended, on
// whatever streams they are. A group of sends and receives is one operation.
#include <algorithm>
#include <chrono>
#include <cstring>

#include <fmt/format.h>

#include "real/cuda/libraries.h"
#include "real/storage.h"
#include "tests/doubles/world.h"

namespace rehearse::gpu_double {
namespace {

World& world() { return World::Get(); }

enum class Kind : uint8_t {
  kAllReduce,
  kAllGather,
  kReduceScatter,
  kBroadcast,
  kReduce,
  kMessages
};

const char* NameOf(Kind kind) {
  constexpr const char* kNames[] = {"all-reduce", "all-gather", "reduce-scatter",
                                    "broadcast",  "reduce",     "sends and receives"};
  return kNames[static_cast<size_t>(kind)];
}

struct Message {
  bool sends = false;
  int peer = 0;
  char* data = nullptr;
  uint64_t bytes = 0;
  Stream* stream = nullptr;
  bool done = false;
};

struct Operation {
  Kind kind = Kind::kAllReduce;
  const char* from = nullptr;
  char* to = nullptr;
  uint64_t elements = 0;
  NcclType type = NcclType::kFp32;
  NcclReduction reduction = NcclReduction::kSum;
  int root = 0;
  std::vector<Message> messages;

  bool Meets(const Operation& other) const {
    return kind == other.kind &&
           (kind == Kind::kMessages || (elements == other.elements && type == other.type &&
                                        reduction == other.reduction && root == other.root));
  }
};

// The ranks of one communicator.
struct Clique {
  struct Meeting {
    std::vector<Operation*> by_rank;
    size_t arrived = 0;
    bool done = false;
  };
  struct Split {
    std::vector<std::pair<int, int>> asked;  // (color, key) by rank
    size_t arrived = 0;
    std::map<int, std::shared_ptr<Clique>> made;
    bool done = false;
  };

  explicit Clique(size_t the_size) : size(the_size), splits_of_rank(the_size) {}

  const size_t size;
  std::mutex mutex;
  std::condition_variable changed;
  size_t joined = 0;
  std::map<uint64_t, Meeting> meetings;  // by number
  std::vector<std::vector<Message*>> waiting =
      std::vector<std::vector<Message*>>(size);  // sends, by sender
  std::map<uint64_t, Split> splits;
  std::vector<uint64_t> splits_of_rank;
};

struct Communicator {
  Communicator(std::shared_ptr<Clique> the_clique, int the_rank)
      : clique(std::move(the_clique)), rank(the_rank) {}

  const std::shared_ptr<Clique> clique;
  const int rank;
  uint64_t posted = 0;             // operations, by the host
  std::atomic<uint64_t> ended{0};  // by streams
  std::atomic<bool> is_aborted{false};
  std::atomic<int> fault{0};
};

uint64_t SizeOf(NcclType type) { return type == NcclType::kFp32 ? 4 : 2; }

Storage StorageOf(NcclType type) {
  if (type == NcclType::kBf16) return Storage::kBf16;
  return type == NcclType::kFp16 ? Storage::kFp16 : Storage::kFp32;
}

// Element i of the reduction over all ranks' inputs, in fp32 and in the order of ranks.
float Reduced(const Clique::Meeting& meeting, uint64_t i) {
  const Operation& first = *meeting.by_rank[0];
  const Storage storage = StorageOf(first.type);
  float value = LoadStored(storage, first.from, i);
  for (size_t rank = 1; rank < meeting.by_rank.size(); ++rank) {
    const float next = LoadStored(storage, meeting.by_rank[rank]->from, i);
    value = first.reduction == NcclReduction::kMaximum ? std::max(value, next) : value + next;
  }
  return value;
}

// All ranks' parts at once, by the last that came. Inputs may be outputs, so results are kept first.
void Compute(const Clique::Meeting& meeting) {
  const Operation& first = *meeting.by_rank[0];
  const uint64_t ranks = meeting.by_rank.size();
  const uint64_t size = SizeOf(first.type);
  const Storage storage = StorageOf(first.type);
  std::vector<char> result;
  switch (first.kind) {
    case Kind::kAllReduce:
    case Kind::kReduce:
    case Kind::kReduceScatter: {
      const uint64_t all = first.elements * (first.kind == Kind::kReduceScatter ? ranks : 1);
      result.resize(all * size);
      for (uint64_t i = 0; i < all; ++i) Store(storage, result.data(), i, Reduced(meeting, i));
      break;
    }
    case Kind::kAllGather:
      for (const Operation* own : meeting.by_rank) {
        result.insert(result.end(), own->from, own->from + first.elements * size);
      }
      break;
    case Kind::kBroadcast: {
      const Operation& root = *meeting.by_rank[static_cast<size_t>(first.root)];
      result.assign(root.from, root.from + first.elements * size);
      break;
    }
    case Kind::kMessages:
      return;
  }
  for (uint64_t rank = 0; rank < ranks; ++rank) {
    const Operation& own = *meeting.by_rank[rank];
    const bool scatters = first.kind == Kind::kReduceScatter;
    if (first.kind == Kind::kReduce && rank != static_cast<uint64_t>(first.root)) continue;
    const char* from = result.data() + (scatters ? rank * first.elements * size : 0);
    const uint64_t bytes = scatters ? first.elements * size : result.size();
    std::memcpy(own.to, from, bytes);
  }
}

// A rank's part of its k-th operation, on a stream's thread.
void Meet(Communicator* communicator, uint64_t number, Operation* own) {
  Clique& clique = *communicator->clique;
  std::unique_lock<std::mutex> lock(clique.mutex);
  const auto wait = [&](auto ready) {
    clique.changed.wait(lock, [&] { return ready() || communicator->is_aborted.load(); });
    return !communicator->is_aborted.load();
  };
  if (!wait([&] { return communicator->ended.load() == number; })) return;
  Clique::Meeting& meeting = clique.meetings[number];
  meeting.by_rank.resize(clique.size);
  for (size_t rank = 0; rank < clique.size; ++rank) {
    const Operation* other = meeting.by_rank[rank];
    if (other == nullptr || own->Meets(*other)) continue;
    world().Report(
        fmt::format("operation {} on a communicator is {} of {} elements on rank {} and {} of {} "
                    "elements on rank {}",
                    number, NameOf(own->kind), own->elements, communicator->rank,
                    NameOf(other->kind), other->elements, rank));
    communicator->fault = kPretendedFailure;
    wait([] { return false; });  // as NCCL: it hangs until it is aborted
    return;
  }
  meeting.by_rank[static_cast<size_t>(communicator->rank)] = own;
  if (++meeting.arrived == clique.size) {
    Compute(meeting);
    meeting.done = true;
    clique.changed.notify_all();
  }
  if (!wait([&] { return meeting.done; })) {
    if (!meeting.done) {  // aborted: the others must not look at what is gone
      meeting.by_rank[static_cast<size_t>(communicator->rank)] = nullptr;
      --meeting.arrived;
    }
    return;
  }
  ++communicator->ended;
  clique.changed.notify_all();
}

// Takes back what nobody has taken, when the communicator was aborted.
void Withdraw(Clique* clique, int rank, Operation* own) {
  std::vector<Message*>& sends = clique->waiting[static_cast<size_t>(rank)];
  for (Message& message : own->messages) {
    sends.erase(std::remove(sends.begin(), sends.end(), &message), sends.end());
  }
}

// A group of messages needs only its partners, not all ranks.
void Exchange(Communicator* communicator, uint64_t number, Operation* own) {
  Clique& clique = *communicator->clique;
  std::unique_lock<std::mutex> lock(clique.mutex);
  const auto wait = [&](auto ready) {
    clique.changed.wait(lock, [&] { return ready() || communicator->is_aborted.load(); });
    if (communicator->is_aborted.load()) Withdraw(&clique, communicator->rank, own);
    return !communicator->is_aborted.load();
  };
  if (!wait([&] { return communicator->ended.load() == number; })) return;
  for (Message& message : own->messages) {
    if (message.sends) clique.waiting[static_cast<size_t>(communicator->rank)].push_back(&message);
  }
  clique.changed.notify_all();
  for (Message& message : own->messages) {
    if (message.sends) continue;
    std::vector<Message*>& sends = clique.waiting[static_cast<size_t>(message.peer)];
    const auto find = [&] {
      return std::find_if(sends.begin(), sends.end(),
                          [&](const Message* m) { return m->peer == communicator->rank; });
    };
    if (!wait([&] { return find() != sends.end(); })) return;
    Message* sent = *find();
    if (sent->bytes != message.bytes) {
      world().Report(fmt::format("rank {} sends {} bytes to rank {}, which expects {}",
                                 message.peer, sent->bytes, communicator->rank, message.bytes));
    } else {
      std::memcpy(message.data, sent->data, message.bytes);
    }
    sends.erase(find());
    sent->done = true;
    clique.changed.notify_all();
  }
  const auto all_taken = [&] {
    return std::all_of(own->messages.begin(), own->messages.end(),
                       [](const Message& m) { return !m.sends || m.done; });
  };
  if (!wait(all_taken)) return;
  ++communicator->ended;
  clique.changed.notify_all();
}

void Post(Communicator* communicator, Operation operation, uint64_t from_elements,
          uint64_t to_elements, Stream* stream) {
  const uint64_t size = SizeOf(operation.type);
  const std::vector<Touch> touches = {
      {operation.from, 1, from_elements * size, from_elements * size, false},
      {operation.to, 1, to_elements * size, to_elements * size, true}};
  const uint64_t number = communicator->posted++;
  auto kept = std::make_shared<Operation>(std::move(operation));
  world().Enqueue(stream, NameOf(kept->kind), touches,
                  [communicator, number, kept] { Meet(communicator, number, kept.get()); });
}

// Messages of the group that the thread has open.
struct Group {
  int depth = 0;
  std::vector<std::pair<Communicator*, Message>> messages;
};
Group& OpenGroup() {
  thread_local Group group;
  return group;
}

void CloseGroup() {
  Group& group = OpenGroup();
  while (!group.messages.empty()) {
    Communicator* communicator = group.messages.front().first;
    Stream* stream = group.messages.front().second.stream;
    auto operation = std::make_shared<Operation>();
    operation->kind = Kind::kMessages;
    std::vector<Touch> touches;
    std::vector<std::pair<Communicator*, Message>> others;
    for (const auto& entry : group.messages) {
      if (entry.first != communicator) {
        others.push_back(entry);
        continue;
      }
      const Message& message = entry.second;
      operation->messages.push_back(message);
      touches.push_back({message.data, 1, message.bytes, message.bytes, !message.sends});
    }
    group.messages = others;
    const uint64_t number = communicator->posted++;
    world().Enqueue(stream, "sends and receives", touches, [communicator, number, operation] {
      Exchange(communicator, number, operation.get());
    });
  }
}

int PostMessage(Communicator* communicator, const Message& message) {
  OpenGroup().messages.emplace_back(communicator, message);
  if (OpenGroup().depth == 0) CloseGroup();
  return kSuccess;
}

// All that was made and not destroyed. Never destroyed itself: streams may outlive main.
struct Registry {
  std::mutex mutex;
  std::map<uint64_t, std::shared_ptr<Clique>> cliques;  // by unique id
  std::map<Communicator*, std::unique_ptr<Communicator>> communicators;
};
Registry& registry() {
  static auto* const made = new Registry;
  return *made;
}

Communicator* Join(const std::shared_ptr<Clique>& clique, int rank) {
  auto made = std::make_unique<Communicator>(clique, rank);
  Communicator* communicator = made.get();
  const std::lock_guard<std::mutex> lock(registry().mutex);
  registry().communicators[communicator] = std::move(made);
  return communicator;
}

// Ranks that never come are not waited for without end.
std::chrono::duration<double> Patience() {
  return std::chrono::duration<double>(world().control.patience_seconds);
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
  const uint64_t number = next++;
  std::memset(id, 0, sizeof *id);
  std::memcpy(id, &number, sizeof number);
  return kSuccess;
}

GPU_DOUBLE_ENTRY ncclCommInitRank(Communicator** made, int size, NcclUniqueId id, int rank) {
  FAIL_IF_TOLD(ncclCommInitRank);
  uint64_t number = 0;
  std::memcpy(&number, &id, sizeof number);
  std::shared_ptr<Clique> clique;
  {
    const std::lock_guard<std::mutex> lock(registry().mutex);
    std::shared_ptr<Clique>& known = registry().cliques[number];
    if (known == nullptr) known = std::make_shared<Clique>(static_cast<size_t>(size));
    clique = known;
  }
  std::unique_lock<std::mutex> lock(clique->mutex);
  ++clique->joined;
  clique->changed.notify_all();
  if (!clique->changed.wait_for(lock, Patience(), [&] { return clique->joined == clique->size; })) {
    return kPretendedFailure;
  }
  *made = Join(clique, rank);
  return kSuccess;
}

GPU_DOUBLE_ENTRY ncclCommSplit(Communicator* parent, int color, int key, Communicator** made,
                               void*) {
  FAIL_IF_TOLD(ncclCommSplit);
  Clique& clique = *parent->clique;
  std::unique_lock<std::mutex> lock(clique.mutex);
  Clique::Split& split = clique.splits[clique.splits_of_rank[static_cast<size_t>(parent->rank)]++];
  split.asked.resize(clique.size);
  split.asked[static_cast<size_t>(parent->rank)] = {color, key};
  if (++split.arrived == clique.size) {
    for (const auto& [own_color, own_key] : split.asked) {
      if (split.made.count(own_color) > 0) continue;
      const auto members = std::count_if(split.asked.begin(), split.asked.end(),
                                         [c = own_color](const auto& a) { return a.first == c; });
      split.made[own_color] = std::make_shared<Clique>(static_cast<size_t>(members));
    }
    split.done = true;
    clique.changed.notify_all();
  }
  if (!clique.changed.wait_for(lock, Patience(), [&] { return split.done; }))
    return kPretendedFailure;
  if (color == kNcclNoColor) {
    *made = nullptr;
    return kSuccess;
  }
  // Members in the order of their keys; of equal ones, of their ranks in the parent.
  int rank = 0;
  for (size_t other = 0; other < clique.size; ++other) {
    const auto [other_color, other_key] = split.asked[other];
    if (other_color != color) continue;
    if (other_key < key || (other_key == key && static_cast<int>(other) < parent->rank)) ++rank;
  }
  *made = Join(split.made.at(color), rank);
  return kSuccess;
}

GPU_DOUBLE_ENTRY ncclCommAbort(Communicator* communicator) {
  const std::lock_guard<std::mutex> lock(communicator->clique->mutex);
  communicator->is_aborted = true;
  communicator->clique->changed.notify_all();
  FAIL_IF_TOLD(ncclCommAbort);
  return kSuccess;  // streams may still look at it: it is not freed
}

GPU_DOUBLE_ENTRY ncclCommDestroy(Communicator* communicator) {
  const std::lock_guard<std::mutex> lock(registry().mutex);
  registry().communicators.erase(communicator);
  FAIL_IF_TOLD(ncclCommDestroy);
  return kSuccess;
}

GPU_DOUBLE_ENTRY ncclCommGetAsyncError(Communicator* communicator, int* status) {
  FAIL_IF_TOLD(ncclCommGetAsyncError);
  *status = communicator->fault;
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
  Post(communicator, {Kind::kAllReduce, from, to, elements, type, reduction, 0, {}}, elements,
       elements, stream);
  return kSuccess;
}

GPU_DOUBLE_ENTRY ncclBroadcast(const char* from, char* to, size_t elements, NcclType type, int root,
                               Communicator* communicator, Stream* stream) {
  FAIL_IF_TOLD(ncclBroadcast);
  Post(communicator, {Kind::kBroadcast, from, to, elements, type, NcclReduction::kSum, root, {}},
       communicator->rank == root ? elements : 0, elements, stream);
  return kSuccess;
}

GPU_DOUBLE_ENTRY ncclReduce(const char* from, char* to, size_t elements, NcclType type,
                            NcclReduction reduction, int root, Communicator* communicator,
                            Stream* stream) {
  FAIL_IF_TOLD(ncclReduce);
  Post(communicator, {Kind::kReduce, from, to, elements, type, reduction, root, {}}, elements,
       communicator->rank == root ? elements : 0, stream);
  return kSuccess;
}

GPU_DOUBLE_ENTRY ncclAllGather(const char* from, char* to, size_t elements, NcclType type,
                               Communicator* communicator, Stream* stream) {
  FAIL_IF_TOLD(ncclAllGather);
  Post(communicator, {Kind::kAllGather, from, to, elements, type, NcclReduction::kSum, 0, {}},
       elements, elements * communicator->clique->size, stream);
  return kSuccess;
}

GPU_DOUBLE_ENTRY ncclReduceScatter(const char* from, char* to, size_t elements, NcclType type,
                                   NcclReduction reduction, Communicator* communicator,
                                   Stream* stream) {
  FAIL_IF_TOLD(ncclReduceScatter);
  Post(communicator, {Kind::kReduceScatter, from, to, elements, type, reduction, 0, {}},
       elements * communicator->clique->size, elements, stream);
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

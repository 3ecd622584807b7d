#include "tests/doubles/nccl_meeting.h"

#include <algorithm>
#include <cstring>

#include <fmt/format.h>

#include "real/kernels/storage.h"

namespace rehearse::gpu_double {
namespace {

World& world() { return World::Get(); }

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

// All ranks' parts at once, computed by the last to arrive. Inputs may be outputs, so results are
// kept first.
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
void MeetAll(Communicator* communicator, uint64_t number, Operation* own) {
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

// Takes back what nobody has taken, if the communicator was aborted.
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

// Ranks that never come are not waited for forever.
std::chrono::duration<double> Patience() {
  return std::chrono::duration<double>(world().control.patience_seconds);
}

// Everything that was made and not destroyed. Never destroyed itself: streams may outlive main.
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
  auto made = std::make_unique<Communicator>();
  made->clique = clique;
  made->rank = rank;
  made->size = clique->size;
  return Keep(std::move(made));
}

}  // namespace

const char* NameOf(Kind kind) {
  constexpr const char* kNames[] = {"all-reduce", "all-gather", "reduce-scatter",
                                    "broadcast",  "reduce",     "sends and receives"};
  return kNames[static_cast<size_t>(kind)];
}

uint64_t SizeOf(NcclType type) { return type == NcclType::kFp32 ? 4 : 2; }

uint64_t ElementsFrom(const Operation& operation, int rank, uint64_t ranks) {
  if (operation.kind == Kind::kReduceScatter) return operation.elements * ranks;
  return operation.kind == Kind::kBroadcast && rank != operation.root ? 0 : operation.elements;
}

uint64_t ElementsTo(const Operation& operation, int rank, uint64_t ranks) {
  if (operation.kind == Kind::kAllGather) return operation.elements * ranks;
  return operation.kind == Kind::kReduce && rank != operation.root ? 0 : operation.elements;
}

void Meet(Communicator* communicator, uint64_t number, Operation* own) {
  if (own->kind == Kind::kMessages) {
    Exchange(communicator, number, own);
  } else {
    MeetAll(communicator, number, own);
  }
}

Communicator* Keep(std::unique_ptr<Communicator> communicator) {
  Communicator* kept = communicator.get();
  const std::lock_guard<std::mutex> lock(registry().mutex);
  registry().communicators[kept] = std::move(communicator);
  return kept;
}

void Destroy(Communicator* communicator) {
  const std::lock_guard<std::mutex> lock(registry().mutex);
  registry().communicators.erase(communicator);
}

int JoinById(uint64_t id, size_t size, int rank, Communicator** made) {
  std::shared_ptr<Clique> clique;
  {
    const std::lock_guard<std::mutex> lock(registry().mutex);
    std::shared_ptr<Clique>& known = registry().cliques[id];
    if (known == nullptr) known = std::make_shared<Clique>(size);
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

int SplitHere(Communicator* parent, int color, int key, Communicator** made) {
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

void AbortHere(Communicator* communicator) {
  const std::lock_guard<std::mutex> lock(communicator->clique->mutex);
  communicator->is_aborted = true;
  communicator->clique->changed.notify_all();
}

}  // namespace rehearse::gpu_double

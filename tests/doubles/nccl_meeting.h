// How ranks meet on a fake NCCL communicator.
//
// As in NCCL: communicators are made by all ranks together; the k-th operation that a rank puts on
// a communicator meets the k-th of the others, and does not begin before the rank's (k-1)-th has
// ended, whatever streams they are on. A group of sends and receives is one operation. Ranks of
// other processes are represented by communicators of their own in the process of rank 0
// (nccl_processes.h).
#pragma once

#include <atomic>
#include <chrono>
#include <condition_variable>
#include <map>
#include <memory>
#include <mutex>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "real/cuda/libraries.h"
#include "tests/doubles/world.h"

namespace rehearse::gpu_double {

enum class Kind : uint8_t {
  kAllReduce,
  kAllGather,
  kReduceScatter,
  kBroadcast,
  kReduce,
  kMessages
};

const char* NameOf(Kind kind);

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
  // Sends, by sender.
  std::vector<std::vector<Message*>> waiting = std::vector<std::vector<Message*>>(size);
  std::map<uint64_t, Split> splits;
  std::vector<uint64_t> splits_of_rank;
};

// Where the ranks meet, when that is another process.
struct Elsewhere {
  std::string path;           // of its socket
  uint64_t communicator = 0;  // that stands for this one there
};

struct Communicator {
  std::shared_ptr<Clique> clique;  // null where ranks meet elsewhere
  std::optional<Elsewhere> elsewhere;
  int rank = 0;
  size_t size = 1;
  uint64_t posted = 0;             // operations, by the host
  std::atomic<uint64_t> ended{0};  // by streams
  std::atomic<bool> is_aborted{false};
  std::atomic<int> fault{0};
  void* profiler_context = nullptr;  // the plugin's (nccl_profiler.h)
  int profiler_wants = 0;            // kinds of events, as bits
};

uint64_t SizeOf(NcclType type);
// Elements that a rank gives to a collective, and gets from it.
uint64_t ElementsFrom(const Operation& operation, int rank, uint64_t ranks);
uint64_t ElementsTo(const Operation& operation, int rank, uint64_t ranks);

// A rank's part of its `number`-th operation, on a thread that may wait.
void Meet(Communicator* communicator, uint64_t number, Operation* own);

// Statuses of the entry points.
int JoinById(uint64_t id, size_t size, int rank, Communicator** made);
int SplitHere(Communicator* parent, int color, int key, Communicator** made);
void AbortHere(Communicator* communicator);

// Kept until it is destroyed.
Communicator* Keep(std::unique_ptr<Communicator> communicator);
void Destroy(Communicator* communicator);

}  // namespace rehearse::gpu_double

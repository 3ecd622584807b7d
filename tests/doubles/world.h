// What the fake GPUs of one process share: devices, memory, streams with their vector clocks, the
// faults found and the faults to inject. Everything is behind one mutex; streams work without it.
#pragma once

#include <atomic>
#include <condition_variable>
#include <cstdint>
#include <deque>
#include <functional>
#include <map>
#include <memory>
#include <mutex>
#include <string>
#include <thread>
#include <vector>

#include "tests/support/gpu_double.h"

namespace rehearse::gpu_double {

#define GPU_DOUBLE_ENTRY extern "C" __attribute__((visibility("default"))) int

// Statuses that the entry points give; the libraries number theirs alike where we need them.
inline constexpr int kSuccess = 0;
inline constexpr int kInvalidValue = 1;
inline constexpr int kPretendedFailure = 2;  // out of memory, for the runtime
inline constexpr int kNotReady = 600;
// The call is not allowed while the thread captures.
inline constexpr int kCaptureUnsupported = 900;
inline constexpr int kCaptureUnjoined = 904;   // streams did not come back to the first one
inline constexpr int kCaptureIsolation = 905;  // waits for what is not in the capture
inline constexpr int kCapturedEvent = 907;     // nothing has been done yet that could be asked for

// By stream: how many of its operations are known to be done before what comes next.
using Clock = std::map<uint32_t, uint64_t>;
void Join(Clock* clock, const Clock& other);

// Memory that an operation touches: `rows` runs of `bytes`, `pitch` apart.
struct Touch {
  const void* data = nullptr;
  uint64_t rows = 0;
  uint64_t bytes = 0;
  uint64_t pitch = 0;
  bool writes = false;
};

struct Capture;

class Stream {
 public:
  Stream(uint32_t id, int device, uint64_t seed);
  ~Stream();

  void Push(std::function<void()> task);
  void Synchronize();

  const uint32_t id;
  const int device;
  Clock clock;                       // of what was enqueued; World's mutex
  std::shared_ptr<Capture> capture;  // while it is part of one

 private:
  void Work(uint64_t seed);

  std::mutex mutex_;
  std::condition_variable changed_;
  std::deque<std::function<void()>> tasks_;
  bool is_busy_ = false;
  bool ends_ = false;
  std::thread thread_;
};

// What one record of an event stands for: later records do not affect those who wait for earlier
// ones.
struct Mark {
  std::atomic<bool> done{false};
  std::atomic<int64_t> nanoseconds{0};
  Clock clock;
};
struct Event {
  std::shared_ptr<Mark> mark;        // null before the first record
  std::shared_ptr<Capture> capture;  // that it was recorded in, instead
  size_t captured_mark = 0;          // which of its marks it is
};

struct Allocation {
  struct Access {
    Touch touch;
    uint32_t stream;
    uint64_t tick;  // of the stream's own operations
    std::string what;
  };
  uint64_t bytes = 0;
  int device = 0;
  std::vector<Access> accesses;
};

class World {
 public:
  static World& Get();

  Control control;

  // Whether this call of an entry point is to fail. Counts calls.
  bool ShouldFail(const char* entry);
  std::map<std::string, uint64_t> Calls();
  void Reset();

  void Report(const std::string& finding);
  std::vector<std::string> Findings();

  int Malloc(void** memory, uint64_t bytes);
  int Free(void* memory);
  uint64_t allocated();

  Stream* MakeStream();
  void DestroyStream(Stream* stream);
  // Enqueues `task`, which touches the given memory; checks that against everything before. `what`
  // names it.
  void Enqueue(Stream* stream, const std::string& what, const std::vector<Touch>& touches,
               std::function<void()> task);
  // Order without work: an event is recorded, waited for, or the host has waited.
  void Record(Event* event, Stream* stream);
  int Wait(Stream* stream, const Event& event);
  void HostHasSeen(const Clock& clock);
  void HostHasSeen(Stream* stream);

 private:
  void Check(const Stream& stream, const std::string& what, const Touch& touch);
  Allocation* Find(const void* data, const char** base);

  std::mutex mutex_;
  std::map<std::string, uint64_t> calls_;
  std::vector<std::string> findings_;
  std::map<const char*, Allocation> allocations_;  // by address
  uint64_t allocated_ = 0;
  uint32_t next_stream_ = 1;
  std::map<Stream*, std::unique_ptr<Stream>> streams_;
};

// The calling thread's device.
int& CurrentDevice();

int64_t Now();

}  // namespace rehearse::gpu_double

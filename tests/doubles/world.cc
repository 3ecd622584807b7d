#include "tests/doubles/world.h"

#include <algorithm>
#include <chrono>
#include <cstdlib>
#include <cstring>
#include <new>
#include <random>

#include <fmt/format.h>

#include "tests/doubles/graphs.h"

namespace rehearse::gpu_double {
namespace {

// What the calling thread knows to be done.
Clock& HostClock() {
  thread_local Clock clock;
  return clock;
}

// Whether two accesses have a byte in common. Runs of equal pitch (pieces of one matrix) are
// compared exactly, others by their extent.
bool Overlap(const Touch& a, const Touch& b) {
  const auto begin = [](const Touch& t) { return reinterpret_cast<uintptr_t>(t.data); };
  const auto end = [&](const Touch& t) {
    return begin(t) + (t.rows == 0 ? 0 : (t.rows - 1) * t.pitch + t.bytes);
  };
  if (begin(a) >= end(b) || begin(b) >= end(a)) return false;
  if (a.rows <= 1 || b.rows <= 1 || a.pitch != b.pitch) return true;
  const uintptr_t base = std::min(begin(a), begin(b));
  const uint64_t first = (begin(a) - base) % a.pitch;
  const uint64_t second = (begin(b) - base) % b.pitch;
  // Columns [first, first + bytes) of the pitch, perhaps around its end.
  const auto covers = [&](uint64_t from, uint64_t bytes, uint64_t column) {
    return (column + a.pitch - from) % a.pitch < bytes;
  };
  return covers(first, a.bytes, second) || covers(second, b.bytes, first);
}

}  // namespace

void Join(Clock* clock, const Clock& other) {
  for (const auto& [stream, tick] : other) {
    uint64_t& own = (*clock)[stream];
    own = std::max(own, tick);
  }
}

int& CurrentDevice() {
  thread_local int device = 0;
  return device;
}

int64_t Now() {
  return std::chrono::steady_clock::now().time_since_epoch() / std::chrono::nanoseconds(1);
}

// ---- streams ------------------------------------------------------------------------------------

Stream::Stream(uint32_t the_id, int the_device, uint64_t seed)
    : id(the_id), device(the_device), thread_([this, seed] { Work(seed); }) {}

Stream::~Stream() {
  {
    const std::lock_guard<std::mutex> lock(mutex_);
    ends_ = true;
  }
  changed_.notify_all();
  thread_.join();
}

void Stream::Push(std::function<void()> task) {
  {
    const std::lock_guard<std::mutex> lock(mutex_);
    tasks_.push_back(std::move(task));
  }
  changed_.notify_all();
}

void Stream::Synchronize() {
  std::unique_lock<std::mutex> lock(mutex_);
  changed_.wait(lock, [&] { return tasks_.empty() && !is_busy_; });
}

void Stream::Work(uint64_t seed) {
  std::mt19937_64 random(seed + id);
  std::unique_lock<std::mutex> lock(mutex_);
  while (true) {
    changed_.wait(lock, [&] { return !tasks_.empty() || ends_; });
    if (tasks_.empty()) return;
    const std::function<void()> task = std::move(tasks_.front());
    tasks_.pop_front();
    is_busy_ = true;
    lock.unlock();
    if (random() % 4 == 0) std::this_thread::sleep_for(std::chrono::microseconds(random() % 50));
    task();
    lock.lock();
    is_busy_ = false;
    changed_.notify_all();
  }
}

// ---- the world ----------------------------------------------------------------------------------

World& World::Get() {
  static World* const world = [] {  // never destroyed: streams may outlive main
    auto* made = new World;
    const auto number = [](const char* name, auto* value) {
      if (const char* text = std::getenv(name)) *value = std::strtol(text, nullptr, 10);
    };
    number("REHEARSE_DOUBLE_DEVICES", &made->control.devices);
    number("REHEARSE_DOUBLE_DRIVER", &made->control.driver_version);
    number("REHEARSE_DOUBLE_MEMORY", &made->control.memory_bytes);
    number("REHEARSE_DOUBLE_NCCL_VERSION", &made->control.nccl_version);
    if (const char* text = std::getenv("REHEARSE_DOUBLE_FAIL")) made->control.fail = text;
    return made;
  }();
  return *world;
}

bool World::ShouldFail(const char* entry) {
  const std::lock_guard<std::mutex> lock(mutex_);
  const uint64_t call = ++calls_[entry];
  return control.fail == entry && control.fail_call == call;
}

std::map<std::string, uint64_t> World::Calls() {
  const std::lock_guard<std::mutex> lock(mutex_);
  return calls_;
}

void World::Reset() {
  const std::lock_guard<std::mutex> lock(mutex_);
  control = {};
  calls_.clear();
  findings_.clear();
}

void World::Report(const std::string& finding) {
  const std::lock_guard<std::mutex> lock(mutex_);
  if (findings_.size() < 20) findings_.push_back(finding);
}

std::vector<std::string> World::Findings() {
  const std::lock_guard<std::mutex> lock(mutex_);
  return findings_;
}

uint64_t World::allocated() {
  const std::lock_guard<std::mutex> lock(mutex_);
  return allocated_;
}

int World::Malloc(void** memory, uint64_t bytes) {
  constexpr std::align_val_t kAlignment{256};
  constexpr int kPoison = 0xff;  // NaN in every type
  const std::lock_guard<std::mutex> lock(mutex_);
  if (allocated_ + bytes > control.memory_bytes) return kPretendedFailure;
  auto* data = static_cast<char*>(::operator new(std::max<uint64_t>(bytes, 1), kAlignment));
  std::memset(data, kPoison, bytes);
  allocations_[data] = {bytes, CurrentDevice(), {}};
  allocated_ += bytes;
  *memory = data;
  return kSuccess;
}

int World::Free(void* memory) {
  constexpr std::align_val_t kAlignment{256};
  // As cudaFree: waits for everything on the device.
  std::vector<Stream*> streams;
  {
    const std::lock_guard<std::mutex> lock(mutex_);
    const auto found = allocations_.find(static_cast<const char*>(memory));
    if (found == allocations_.end()) return kInvalidValue;
    for (const auto& [stream, owner] : streams_) {
      if (stream->device == found->second.device) streams.push_back(stream);
    }
  }
  for (Stream* stream : streams) stream->Synchronize();
  const std::lock_guard<std::mutex> lock(mutex_);
  const auto found = allocations_.find(static_cast<const char*>(memory));
  allocated_ -= found->second.bytes;
  allocations_.erase(found);
  ::operator delete(memory, kAlignment);
  return kSuccess;
}

Stream* World::MakeStream() {
  const std::lock_guard<std::mutex> lock(mutex_);
  auto made = std::make_unique<Stream>(next_stream_++, CurrentDevice(), control.seed);
  Stream* stream = made.get();
  streams_[stream] = std::move(made);
  return stream;
}

void World::DestroyStream(Stream* stream) {
  std::unique_ptr<Stream> owner;
  {
    const std::lock_guard<std::mutex> lock(mutex_);
    const auto found = streams_.find(stream);
    if (found == streams_.end()) return;
    owner = std::move(found->second);
    streams_.erase(found);
  }
  // Ends after what it still has to do.
}

void World::Enqueue(Stream* stream, const std::string& what, const std::vector<Touch>& touches,
                    std::function<void()> task) {
  const auto again = [=, this](Stream* own) { Enqueue(own, what, touches, task); };
  if (KeepForReplay(stream, again)) return;
  {
    const std::lock_guard<std::mutex> lock(mutex_);
    if (CurrentDevice() != stream->device) {
      findings_.push_back(
          fmt::format("{} is put on a stream of device {} while device {} is current", what,
                      stream->device, CurrentDevice()));
    }
    Join(&stream->clock, HostClock());
    ++stream->clock[stream->id];
    if (control.checks_races) {
      for (const Touch& touch : touches) Check(*stream, what, touch);
    }
  }
  stream->Push(std::move(task));
}

void World::Record(Event* event, Stream* stream) {
  event->capture = stream->capture;
  if (Capture* capture = stream->capture.get()) {
    event->captured_mark = capture->marks++;
    capture->Add(stream, [this, stream, mark = event->captured_mark](Replay* replay) {
      Record(&replay->marks[mark], replay->streams.at(stream));
    });
    capture->clock_of_mark.push_back(capture->clocks[stream]);
    return;
  }
  auto mark = std::make_shared<Mark>();
  {
    const std::lock_guard<std::mutex> lock(mutex_);
    Join(&stream->clock, HostClock());
    mark->clock = stream->clock;
  }
  event->mark = mark;
  stream->Push([mark] {
    mark->nanoseconds = Now();
    mark->done.store(true);
    mark->done.notify_all();
  });
}

int World::Wait(Stream* stream, const Event& event) {
  if (stream->capture != nullptr && stream->capture != event.capture) return kCaptureIsolation;
  if (Capture* capture = event.capture.get()) {
    if (capture->first->capture != event.capture) return kCapturedEvent;  // that capture is over
    stream->capture = event.capture;                                      // takes the stream in
    Join(&capture->clocks[stream], capture->clock_of_mark[event.captured_mark]);
    capture->Add(stream, [this, stream, mark = event.captured_mark](Replay* replay) {
      Wait(replay->streams.at(stream), replay->marks[mark]);
    });
    return kSuccess;
  }
  if (event.mark == nullptr) return kSuccess;  // as CUDA: an event that was never recorded is done
  {
    const std::lock_guard<std::mutex> lock(mutex_);
    Join(&stream->clock, event.mark->clock);
  }
  stream->Push([mark = event.mark] { mark->done.wait(false); });
  return kSuccess;
}

void World::HostHasSeen(const Clock& clock) { Join(&HostClock(), clock); }

void World::HostHasSeen(Stream* stream) {
  const std::lock_guard<std::mutex> lock(mutex_);
  Join(&HostClock(), stream->clock);
}

// ---- races --------------------------------------------------------------------------------------

Allocation* World::Find(const void* data, const char** base) {
  auto found = allocations_.upper_bound(static_cast<const char*>(data));
  if (found == allocations_.begin()) return nullptr;
  --found;
  *base = found->first;
  return &found->second;
}

void World::Check(const Stream& stream, const std::string& what, const Touch& touch) {
  if (touch.rows == 0 || touch.bytes == 0) return;
  const char* base = nullptr;
  Allocation* allocation = Find(touch.data, &base);
  const char* end =
      static_cast<const char*>(touch.data) + (touch.rows - 1) * touch.pitch + touch.bytes;
  if (allocation == nullptr || end > base + allocation->bytes) {
    findings_.push_back(fmt::format("{} touches memory outside of what was allocated", what));
    return;
  }
  if (allocation->device != stream.device) {
    findings_.push_back(fmt::format("{} on device {} touches memory of device {}", what,
                                    stream.device, allocation->device));
  }
  Allocation::Access* same = nullptr;
  for (Allocation::Access& before : allocation->accesses) {
    if (before.stream == stream.id) {
      if (before.touch.data == touch.data && before.touch.bytes == touch.bytes &&
          before.touch.rows == touch.rows && before.touch.writes == touch.writes) {
        same = &before;
      }
      continue;
    }
    if (!before.touch.writes && !touch.writes) continue;
    const auto seen = stream.clock.find(before.stream);
    if (seen != stream.clock.end() && seen->second >= before.tick) continue;
    if (!Overlap(before.touch, touch)) continue;
    if (findings_.size() < 20) {
      findings_.push_back(fmt::format("race: {} {} memory that {} {}, and nothing orders them",
                                      what, touch.writes ? "writes" : "reads", before.what,
                                      before.touch.writes ? "writes" : "reads"));
    }
  }
  const Allocation::Access access{touch, stream.id, stream.clock.at(stream.id), what};
  if (same != nullptr) {
    *same = access;
  } else {
    allocation->accesses.push_back(access);
  }
}

}  // namespace rehearse::gpu_double

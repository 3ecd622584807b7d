#include "real/transports/transport_threads.h"

#include <algorithm>
#include <atomic>
#include <condition_variable>
#include <cstring>
#include <deque>
#include <exception>
#include <mutex>
#include <thread>

#include <fmt/format.h>

#include "sim/base/error.h"
#include "sim/base/threads.h"

namespace rehearse {
namespace {

// A send that waits for its receive, in the receiver's letter box.
struct Letter {
  uint32_t from;
  uint32_t tag;
  const void* data;
  size_t bytes;
  std::atomic<bool>* taken;  // of the sender
};

// Counts what happens to a rank: its threads sleep until the count changes.
struct LetterBox {
  std::mutex mutex;
  std::deque<Letter> letters;
  std::atomic<uint32_t> changes{0};

  void Notify() {
    changes.fetch_add(1, std::memory_order_release);
    changes.notify_all();
  }
};

}  // namespace

struct ThreadWorld::State {
  explicit State(uint32_t count) : ranks(count), boxes(count) {
    // With a core for each rank, it is quicker to poll than to sleep.
    const uint32_t cores = std::max(1u, std::thread::hardware_concurrency());
    spins = count <= cores ? 2000 : 0;
  }

  // Returns when ready() does; threads of rank `rank` must be notified when that may have changed.
  template <typename Ready>
  void WaitUntil(uint32_t rank, Ready ready) {
    std::atomic<uint32_t>& changes = boxes[rank].changes;
    for (uint32_t spin = 0;; ++spin) {
      const uint32_t seen = changes.load(std::memory_order_acquire);
      if (ready()) return;
      ThrowIfAborted();
      if (spin >= spins) changes.wait(seen, std::memory_order_acquire);
    }
  }

  void ThrowIfAborted() {
    if (!aborted.load(std::memory_order_acquire)) return;
    const std::lock_guard<std::mutex> lock(reason_mutex);
    throw RankLost(reason);
  }

  void Abort(const std::string& why) {
    {
      const std::lock_guard<std::mutex> lock(reason_mutex);
      if (aborted.load()) return;
      reason = why;
      aborted.store(true, std::memory_order_release);
    }
    for (LetterBox& box : boxes) box.Notify();
  }

  uint32_t ranks;
  uint32_t spins;
  std::deque<LetterBox> boxes;  // by rank
  std::atomic<uint32_t> arrived{0};
  std::atomic<uint32_t> barriers{0};
  std::atomic<bool> aborted{false};
  std::mutex reason_mutex;
  std::string reason;
};

namespace {

// The receiver reads the data and writes to `taken`; a letter that nobody took is withdrawn at the
// end.
struct SentLetter : Transport::Message {
  explicit SentLetter(LetterBox* the_box) : box(the_box) {}
  SentLetter(const SentLetter&) = delete;
  SentLetter& operator=(const SentLetter&) = delete;
  ~SentLetter() override {
    if (taken.load(std::memory_order_acquire)) return;
    {
      const std::lock_guard<std::mutex> lock(box->mutex);
      const auto found = std::find_if(box->letters.begin(), box->letters.end(),
                                      [&](const Letter& l) { return l.taken == &taken; });
      if (found != box->letters.end()) {
        box->letters.erase(found);
        return;
      }
    }
    while (!taken.load(std::memory_order_acquire)) std::this_thread::yield();  // it is being copied
  }

  LetterBox* box;
  std::atomic<bool> taken{false};
};

struct AwaitedLetter : Transport::Message {
  uint32_t from = 0;
  uint32_t tag = 0;
  void* data = nullptr;
  size_t bytes = 0;
};

class ThreadTransport : public Transport {
 public:
  ThreadTransport(ThreadWorld::State* state, uint32_t rank) : state_(state), rank_(rank) {}

  const char* name() const override { return "threads"; }
  uint32_t rank() const override { return rank_; }
  uint32_t size() const override { return state_->ranks; }
  uint32_t ranks_on_host() const override { return state_->ranks; }
  bool has_common_clock() const override { return true; }

  Handle Send(uint32_t to, uint32_t tag, const void* data, size_t bytes) override {
    LetterBox& box = state_->boxes[to];
    auto sent = std::make_unique<SentLetter>(&box);
    {
      const std::lock_guard<std::mutex> lock(box.mutex);
      box.letters.push_back({rank_, tag, data, bytes, &sent->taken});
    }
    box.Notify();
    return sent;
  }

  Handle Receive(uint32_t from, uint32_t tag, void* data, size_t bytes) override {
    auto awaited = std::make_unique<AwaitedLetter>();
    awaited->from = from;
    awaited->tag = tag;
    awaited->data = data;
    awaited->bytes = bytes;
    return awaited;
  }

  void Wait(Handle handle) override {
    if (auto* sent = dynamic_cast<SentLetter*>(handle.get())) {
      state_->WaitUntil(rank_, [&] { return sent->taken.load(std::memory_order_acquire); });
      return;
    }
    const auto& awaited = dynamic_cast<AwaitedLetter&>(*handle);
    Letter letter{};
    state_->WaitUntil(rank_, [&] { return Take(awaited, &letter); });
    CHECK_EQ(letter.bytes, awaited.bytes);
    std::memcpy(awaited.data, letter.data, letter.bytes);
    letter.taken->store(true, std::memory_order_release);  // the sender may be gone after this
    state_->boxes[letter.from].Notify();
  }

  void Barrier() override {
    const uint32_t number = state_->barriers.load(std::memory_order_acquire);
    if (state_->arrived.fetch_add(1, std::memory_order_acq_rel) + 1 == state_->ranks) {
      state_->arrived.store(0, std::memory_order_relaxed);
      state_->barriers.store(number + 1, std::memory_order_release);
      for (LetterBox& box : state_->boxes) box.Notify();
      return;
    }
    state_->WaitUntil(rank_, [&] { return state_->barriers.load() != number; });
  }

  void Check() override { state_->ThrowIfAborted(); }
  void Abort(const std::string& reason) noexcept override { state_->Abort(reason); }
  void set_activity(const char*) noexcept override {}  // a thread is never lost silently

 private:
  // Takes the oldest letter that fits out of the box.
  bool Take(const AwaitedLetter& awaited, Letter* letter) {
    LetterBox& box = state_->boxes[rank_];
    const std::lock_guard<std::mutex> lock(box.mutex);
    const auto found = std::find_if(box.letters.begin(), box.letters.end(), [&](const Letter& l) {
      return l.from == awaited.from && l.tag == awaited.tag;
    });
    if (found == box.letters.end()) return false;
    *letter = *found;
    box.letters.erase(found);
    return true;
  }

  ThreadWorld::State* state_;
  uint32_t rank_;
};

}  // namespace

ThreadWorld::ThreadWorld(uint32_t ranks) : state_(std::make_unique<State>(ranks)) {}
ThreadWorld::~ThreadWorld() = default;

std::unique_ptr<Transport> ThreadWorld::Join(uint32_t rank) {
  return std::make_unique<ThreadTransport>(state_.get(), rank);
}

void RunAsThreads(uint32_t ranks, const std::function<void(Transport&)>& body) {
  ThreadWorld world(ranks);
  std::mutex mutex;
  std::exception_ptr first;
  bool is_cause = false;  // `first` is not RankLost
  std::vector<std::unique_ptr<Transport>> transports;
  for (uint32_t rank = 0; rank < ranks; ++rank) transports.push_back(world.Join(rank));
  const auto run = [&](uint32_t rank) {
    Transport& transport = *transports[rank];
    const auto keep = [&](bool cause) {
      const std::lock_guard<std::mutex> lock(mutex);
      if (first == nullptr || (cause && !is_cause)) first = std::current_exception();
      is_cause = is_cause || cause;
    };
    try {
      body(transport);
    } catch (const RankLost&) {
      keep(/*cause=*/false);
    } catch (const std::exception& error) {
      keep(/*cause=*/true);
      transport.Abort(error.what());
    }
  };
  Threads threads;
  for (uint32_t rank = 0; rank < ranks; ++rank) {
    if (threads.TryAdd([&run, rank] { run(rank); })) continue;
    const std::string why = fmt::format(
        "the machine has no room for {} threads, one for each rank: after {} there is "
        "none (ulimit -u, -v)",
        ranks, rank);
    transports[rank]->Abort(why);  // those that run wait for the others
    threads.Join();
    throw Error(why);
  }
  threads.Join();
  if (first != nullptr) std::rethrow_exception(first);
}

}  // namespace rehearse

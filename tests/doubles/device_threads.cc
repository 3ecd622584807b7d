#include "tests/doubles/device_threads.h"

#include <algorithm>
#include <memory>
#include <mutex>
#include <vector>

#include <fmt/format.h>
#include <setjmp.h>
#include <ucontext.h>

namespace rehearse::gpu_double {
namespace {

constexpr unsigned kWarp = 32;
constexpr size_t kStackBytes = 128 << 10;

enum class State : uint8_t { kReady, kAtBlock, kAtWarp, kEnded };

struct Thread {
  ucontext_t context;  // where it begins
  jmp_buf place;       // where it goes on; jumps, unlike contexts, need no call of the system
  bool has_begun = false;
  std::unique_ptr<char[]> stack = std::make_unique<char[]>(kStackBytes);
  State state = State::kReady;
  // What it gave to its warp, in turns: nobody is two exchanges ahead.
  float given[2] = {};
  unsigned exchanges = 0;
};

class Block {
 public:
  std::string Run(unsigned threads, const std::function<void()>& body) {
    while (threads_.size() < threads) threads_.push_back(std::make_unique<Thread>());
    count_ = threads;
    body_ = &body;
    for (unsigned i = 0; i < count_; ++i) Start(i);
    while (true) {
      for (unsigned first = 0; first < count_; first += kWarp) {
        const unsigned end = std::min(first + kWarp, count_);
        do {
          for (now_ = first; now_ < end; ++now_) Resume();
        } while (ReleaseWarp(first, end));
      }
      if (Count(State::kEnded) == count_) return "";
      if (!ReleaseBlock()) {
        return fmt::format(
            "{} threads of a block wait, {} of them for others of their warp, and {} have ended",
            count_ - Count(State::kEnded), Count(State::kAtWarp), Count(State::kEnded));
      }
    }
  }

  void Wait(State state) {
    Thread& thread = At(now_);
    thread.state = state;
    if (_setjmp(thread.place) == 0) _longjmp(outside_, 1);
  }
  float FromLane(float value, unsigned lane_xor) {
    Thread& own = At(now_);
    const unsigned turn = own.exchanges++ % 2;
    own.given[turn] = value;
    Wait(State::kAtWarp);
    return At(now_ ^ lane_xor).given[turn];
  }

  static Block& Only() {
    static Block block;
    return block;
  }

 private:
  Thread& At(unsigned i) { return *threads_[i]; }

  void Start(unsigned i) {
    Thread& thread = At(i);
    thread.state = State::kReady;
    thread.exchanges = 0;
    thread.has_begun = false;
  }
  static void Enter() {
    Block& block = Only();
    (*block.body_)();
    block.At(block.now_).state = State::kEnded;
    _longjmp(block.outside_, 1);
  }
  // Until it waits or ends.
  void Resume() {
    Thread& thread = At(now_);
    if (thread.state != State::kReady) return;
    thread_place.x = now_;
    if (_setjmp(outside_) != 0) return;
    if (thread.has_begun) _longjmp(thread.place, 1);
    thread.has_begun = true;
    getcontext(&thread.context);
    thread.context.uc_stack.ss_sp = thread.stack.get();
    thread.context.uc_stack.ss_size = kStackBytes;
    thread.context.uc_link = nullptr;
    makecontext(&thread.context, &Block::Enter, 0);
    setcontext(&thread.context);
  }

  unsigned Count(State state) const {
    return static_cast<unsigned>(std::count_if(
        threads_.begin(), threads_.begin() + count_,
        [&](const std::unique_ptr<Thread>& thread) { return thread->state == state; }));
  }

  bool ReleaseWarp(unsigned first, unsigned end) {
    for (unsigned i = first; i < end; ++i) {
      if (At(i).state != State::kAtWarp) return false;
    }
    for (unsigned i = first; i < end; ++i) At(i).state = State::kReady;
    return true;
  }
  // All that have not ended.
  bool ReleaseBlock() {
    if (Count(State::kAtBlock) + Count(State::kEnded) != count_) return false;
    for (unsigned i = 0; i < count_; ++i) {
      if (At(i).state == State::kAtBlock) At(i).state = State::kReady;
    }
    return true;
  }

  std::vector<std::unique_ptr<Thread>> threads_;
  jmp_buf outside_;
  const std::function<void()>* body_ = nullptr;
  unsigned count_ = 0;
  unsigned now_ = 0;
};

}  // namespace

Place thread_place;
Place block_place;
Place block_size;
Place grid_size;

std::string RunGrid(Dim3 grid, Dim3 block, const std::function<void()>& body) {
  static std::mutex mutex;
  const std::lock_guard<std::mutex> lock(mutex);
  grid_size = {grid.x, grid.y, grid.z};
  block_size = {block.x, 1, 1};
  for (unsigned z = 0; z < grid.z; ++z) {
    for (unsigned y = 0; y < grid.y; ++y) {
      for (unsigned x = 0; x < grid.x; ++x) {
        block_place = {x, y, z};
        const std::string wrong = Block::Only().Run(block.x, body);
        if (!wrong.empty()) return wrong;
      }
    }
  }
  return "";
}

void WaitForBlock() { Block::Only().Wait(State::kAtBlock); }
float FromLane(float value, unsigned lane_xor) { return Block::Only().FromLane(value, lane_xor); }

}  // namespace rehearse::gpu_double

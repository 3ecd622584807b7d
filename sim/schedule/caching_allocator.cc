#include "sim/schedule/caching_allocator.h"

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <list>
#include <map>
#include <set>
#include <utility>
#include <vector>

#include "sim/base/error.h"
#include "sim/schedule/memory_lives.h"
#include "sim/schedule/repeats.h"
#include "sim/schedule/written_out.h"

namespace rehearse {
namespace {

constexpr uint64_t kKibi = 1024;
constexpr uint64_t kMebi = kKibi * kKibi;
constexpr uint64_t kUnit = 512;
constexpr uint64_t kMostSmall = kMebi;
constexpr uint64_t kSmallSegment = 2 * kMebi;
constexpr uint64_t kLeastLarge = 10 * kMebi;  // with a segment of its own
constexpr uint64_t kLargeSegment = 20 * kMebi;
constexpr uint64_t kPage = 2 * kMebi;

uint64_t RoundUp(uint64_t size, uint64_t unit) { return (size + unit - 1) / unit * unit; }

uint64_t SegmentFor(uint64_t size) {
  if (size <= kMostSmall) return kSmallSegment;
  if (size < kLeastLarge) return kLargeSegment;
  return RoundUp(size, kPage);
}

// Blocks of the segments of small arrays, or of others.
class Pool {
 public:
  struct Block {
    uint64_t size = 0;
    uint32_t segment = 0;
    bool is_free = true;
  };
  using Blocks = std::list<Block>;
  using Place = Blocks::iterator;

  Pool(bool is_small, bool grows) : is_small_(is_small), grows_(grows) {}

  uint64_t Unit() const { return is_small_ ? kSmallSegment : kLargeSegment; }

  // The one segment grows until its end has a free block of that size. Returns by how much.
  uint64_t Grow(uint64_t size) {
    if (segments_.empty()) segments_.emplace_back();
    Blocks& blocks = segments_.front();
    const bool has_end = !blocks.empty() && blocks.back().is_free;
    const uint64_t more = RoundUp(size - (has_end ? blocks.back().size : 0), Unit());
    if (has_end) {
      const Place last = std::prev(blocks.end());
      Forget(last);
      last->size += more;
      NoteFree(last);
    } else {
      blocks.push_back({more, 0, true});
      NoteFree(std::prev(blocks.end()));
    }
    return more;
  }

  // A free block that is large enough, if there is one; it is in use from then on.
  std::optional<Place> Take(uint64_t size) {
    const auto found = free_.lower_bound({size, 0});
    if (found == free_.end()) return std::nullopt;
    const Place block = places_.at(found->second);
    Use(block, size);
    return block;
  }

  // A segment, all of it free.
  void AddSegment(uint64_t size) {
    segments_.emplace_back();
    segments_.back().push_back({size, static_cast<uint32_t>(segments_.size() - 1), true});
    NoteFree(segments_.back().begin());
  }

  void Give(Place block) {
    Blocks& blocks = segments_[block->segment];
    block->is_free = true;
    if (block != blocks.begin() && std::prev(block)->is_free) {
      const Place before = std::prev(block);
      Forget(before);
      block->size += before->size;
      blocks.erase(before);
    }
    if (std::next(block) != blocks.end() && std::next(block)->is_free) {
      const Place behind = std::next(block);
      Forget(behind);
      block->size += behind->size;
      blocks.erase(behind);
    }
    NoteFree(block);
  }

  // Gives segments back that are wholly free. Returns their size.
  uint64_t Release() {
    uint64_t released = 0;
    if (grows_) {
      // Pages that are wholly free; their addresses are not used again.
      while (!free_.empty()) {
        const Place block = places_.at(free_.begin()->second);
        Forget(block);
        block->is_free = false;
        released += block->size / kPage * kPage;
      }
      return released;
    }
    for (Blocks& blocks : segments_) {
      if (blocks.size() != 1 || !blocks.front().is_free) continue;
      released += blocks.front().size;
      Forget(blocks.begin());
      blocks.clear();
    }
    return released;
  }

 private:
  void NoteFree(Place block) {
    const uint64_t number = next_++;
    numbers_[&*block] = number;
    places_.emplace(number, block);
    free_.emplace(block->size, number);
  }
  void Forget(Place block) {
    const auto number = numbers_.find(&*block);
    CHECK(number != numbers_.end());
    free_.erase({block->size, number->second});
    places_.erase(number->second);
    numbers_.erase(number);
  }
  void Use(Place block, uint64_t size) {
    Forget(block);
    block->is_free = false;
    const uint64_t left = block->size - size;
    if (is_small_ || grows_ ? left < kUnit : left <= kMostSmall) return;
    block->size = size;
    NoteFree(segments_[block->segment].insert(std::next(block), {left, block->segment, true}));
  }

  const bool is_small_;
  const bool grows_;
  std::vector<Blocks> segments_;
  std::set<std::pair<uint64_t, uint64_t>> free_;  // by size, then by age
  std::map<uint64_t, Place> places_;
  std::map<const Block*, uint64_t> numbers_;
  uint64_t next_ = 0;
};

class Allocator {
 public:
  explicit Allocator(const AllocatorRules& rules) : rules_(rules) {}

  struct Taken {
    Pool::Place place = {};
    uint64_t size = 0;
    Pool* pool = nullptr;
  };

  Taken Take(Bytes bytes, StreamId stream) {
    const auto size =
        RoundUp(std::max<uint64_t>(1, static_cast<uint64_t>(std::ceil(bytes.value()))), kUnit);
    const bool is_small = size <= kMostSmall;
    Pool& pool = PoolOf(stream, is_small);
    std::optional<Pool::Place> place = pool.Take(size);
    if (!place) {
      Reserve(rules_.expandable ? size : SegmentFor(size), &pool);
      place = pool.Take(size);
    }
    CHECK(place.has_value());
    active_ += (*place)->size;
    result_.active = std::max(result_.active, Bytes(static_cast<double>(active_)));
    return {*place, (*place)->size, &pool};
  }

  void Give(const Taken& taken) {
    active_ -= taken.size;
    taken.pool->Give(taken.place);
  }

  const AllocatedMemory& result() const { return result_; }

 private:
  // Streams have pools of their own; no stream: the one of the kernels.
  Pool& PoolOf(StreamId stream, bool is_small) {
    const uint32_t number = stream.IsSet() ? stream.index() + 1 : 0;
    return pools_.try_emplace({number, is_small}, is_small, rules_.expandable).first->second;
  }
  bool HasRoomFor(uint64_t size) const {
    return !rules_.room || static_cast<double>(reserved_ + size) <= rules_.room->value();
  }
  void Reserve(uint64_t size, Pool* pool) {
    if (!HasRoomFor(size)) {
      for (auto& [key, other] : pools_) reserved_ -= other.Release();
    }
    result_.fits = result_.fits && HasRoomFor(size);
    if (rules_.expandable) {
      reserved_ += pool->Grow(size);
    } else {
      reserved_ += size;
      pool->AddSegment(size);
    }
    result_.reserved = std::max(result_.reserved, Bytes(static_cast<double>(reserved_)));
  }

  const AllocatorRules& rules_;
  std::map<std::pair<uint32_t, bool>, Pool> pools_;
  uint64_t active_ = 0;
  uint64_t reserved_ = 0;
  AllocatedMemory result_;
};

}  // namespace

namespace {

constexpr int kSteps = 3;

// The sizes that an optimizer's state of so many bytes is allocated in: two arrays for each
// parameter.
std::vector<Bytes> PiecesOfState(const Role& role, Bytes state) {
  std::vector<Bytes> pieces;
  Bytes parameters;
  for (const Buffer& buffer : role.buffers)
    if (buffer.kind == BufferKind::kParameter && !buffer.on_host) parameters += buffer.bytes;
  for (const Buffer& buffer : role.buffers) {
    if (buffer.kind != BufferKind::kParameter || buffer.on_host) continue;
    if (!(buffer.bytes > Bytes(0))) continue;
    const Bytes piece = (buffer.bytes.value() / parameters.value() / 2) * state;
    pieces.insert(pieces.end(), {piece, piece});
  }
  if (pieces.empty()) pieces.push_back(state);
  return pieces;
}

}  // namespace

AllocatedMemory PlayAllocations(const Role& role, const AllocatorRules& rules) {
  const WrittenOut all(role, FewerCopies(role, kCopiesThatShowAll));
  std::vector<LivingBuffer> living = LivingBuffers(role, all);
  const size_t positions = std::max<size_t>(1, all.ops().size());
  const auto lasts = [&](const LivingBuffer& one) {
    return one.begin == 0 && one.end + 1 == positions;
  };
  std::vector<std::vector<Bytes>> states(positions);  // by the op that makes them, in a first step
  std::vector<LivingBuffer> of_step;
  Allocator allocator(rules);
  for (const LivingBuffer& one : living) {
    const BufferKind kind = role.buffers[one.buffer.index()].kind;
    if (kind == BufferKind::kActivation || kind == BufferKind::kBuffer || !lasts(one)) {
      of_step.push_back(one);
    } else if (kind == BufferKind::kOptimizer) {
      const std::vector<Bytes> pieces = PiecesOfState(role, one.bytes);
      states[one.first_use].insert(states[one.first_use].end(), pieces.begin(), pieces.end());
    } else {
      allocator.Take(one.bytes, one.stream);
    }
  }
  std::vector<std::vector<size_t>> ending(positions);
  for (size_t i = 0; i < of_step.size(); ++i) ending[of_step[i].end].push_back(i);
  std::vector<Allocator::Taken> taken(of_step.size());
  for (int step = 0; step < kSteps; ++step) {
    size_t next = 0;
    for (size_t position = 0; position < positions; ++position) {
      for (; next < of_step.size() && of_step[next].begin <= position; ++next)
        taken[next] = allocator.Take(of_step[next].bytes, of_step[next].stream);
      if (step == 0)
        for (const Bytes piece : states[position]) allocator.Take(piece, {});
      for (const size_t i : ending[position]) allocator.Give(taken[i]);
    }
  }
  return allocator.result();
}

}  // namespace rehearse

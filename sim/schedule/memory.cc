#include "sim/schedule/memory.h"

#include <algorithm>
#include <optional>
#include <variant>

#include "sim/base/error.h"
#include "sim/schedule/memory_lives.h"
#include "sim/schedule/repeats.h"
#include "sim/schedule/written_out.h"

namespace rehearse {
namespace {

constexpr size_t kNever = static_cast<size_t>(-1);

struct Life {
  size_t first = kNever;
  size_t last = 0;
  size_t to_host = kNever;  // copied to the host, and back from there
  size_t from_host = kNever;
  StreamId stream;  // of the collective that touches it first, and writes it

  bool IsAwayForATime() const { return to_host < from_host && from_host != kNever; }
};

std::optional<CollectiveKind> KindOf(const Op& op) {
  const auto* collective = std::get_if<Collective>(&op.work);
  return collective != nullptr ? std::optional(collective->kind) : std::nullopt;
}

// Whether it gathers parameters or reduces gradients into shares beside the kernels, if it does so
// with buffers.
bool MovesShares(const Role& role, const Op& op) {
  const std::optional<CollectiveKind> kind = KindOf(op);
  return (kind == CollectiveKind::kAllGather || kind == CollectiveKind::kReduceScatter) &&
         role.streams[op.stream.index()].kind == StreamKind::kCommunication;
}

// By number.
std::vector<Life> LivesOf(const Role& role, const WrittenOut& all) {
  std::vector<Life> lives(all.buffer_count());
  const DoneOps ops = all.ops();
  for (const DoneOp& done : ops) {
    const Op& op = role.ops[done.place];
    const size_t position = done.position;
    for (const auto* touched : {&op.reads, &op.writes}) {
      for (const BufferId buffer : *touched) {
        CHECK_LT(buffer.index(), role.buffers.size());
        Life& life = lives[all.RootOf(all.NumberOf(buffer, done))];
        if (life.first == kNever && touched == &op.writes && MovesShares(role, op))
          life.stream = op.stream;
        life.first = std::min(life.first, position);
        life.last = position;
        if (touched == &op.reads && KindOf(op) == CollectiveKind::kToHost)
          life.to_host = std::min(life.to_host, position);
        if (touched == &op.writes && KindOf(op) == CollectiveKind::kFromHost)
          life.from_host = position;
      }
    }
  }
  return lives;
}

MemoryChanges ChangesOf(const Role& role, const WrittenOut& all) {
  const std::vector<Life> lives = LivesOf(role, all);
  const DoneOps ops = all.ops();
  MemoryChanges changes;
  MemoryUse& kept = changes.kept;
  changes.gained.resize(ops.size());
  changes.lost.resize(ops.size());
  for (uint32_t i = 0; i < all.buffer_count(); ++i) {
    const Buffer& buffer = all.KeptBuffer(i);
    if (buffer.borrowed) continue;
    if (buffer.on_host) {
      const bool is_kept =
          buffer.kind != BufferKind::kActivation && buffer.kind != BufferKind::kBuffer;
      if (is_kept) {
        kept.host += buffer.bytes;
      } else if (lives[i].first != kNever) {
        changes.gained[lives[i].first].host += buffer.bytes;
        changes.lost[lives[i].last].host += buffer.bytes;
      }
      continue;
    }
    switch (buffer.kind) {
      case BufferKind::kParameter:
        kept.parameters += buffer.bytes;
        break;
      case BufferKind::kGradient:
        kept.gradients += buffer.bytes;
        break;
      case BufferKind::kOptimizer:
        kept.optimizer += buffer.bytes;
        if (!lives[i].IsAwayForATime()) break;
        changes.lost[lives[i].to_host].optimizer += buffer.bytes;
        changes.gained[lives[i].from_host].optimizer += buffer.bytes;
        break;
      case BufferKind::kActivation:
        if (lives[i].first == kNever) break;
        changes.gained[lives[i].first].activations += buffer.bytes;
        changes.lost[lives[i].last].activations += buffer.bytes;
        break;
      case BufferKind::kBuffer:
        if (lives[i].first == kNever) break;
        changes.gained[lives[i].first].buffers += buffer.bytes;
        changes.lost[lives[i].last].buffers += buffer.bytes;
        break;
    }
  }
  return changes;
}

}  // namespace

std::vector<LivingBuffer> LivingBuffers(const Role& role, const WrittenOut& all) {
  const std::vector<Life> lives = LivesOf(role, all);
  const auto steps = static_cast<uint32_t>(all.ops().size());
  const uint32_t last = steps > 0 ? steps - 1 : 0;
  std::vector<LivingBuffer> living;
  std::vector<LivingBuffer> for_a_time;
  for (uint32_t i = 0; i < all.buffer_count(); ++i) {
    const Buffer& buffer = all.KeptBuffer(i);
    if (buffer.on_host || buffer.borrowed || !(buffer.bytes > Bytes(0))) continue;
    const Life& life = lives[i];
    LivingBuffer one{all.KeptId(i), buffer.bytes, 0, last};
    if (buffer.kind == BufferKind::kActivation || buffer.kind == BufferKind::kBuffer) {
      if (life.first == kNever) continue;
      one.begin = static_cast<uint32_t>(life.first);
      one.end = static_cast<uint32_t>(life.last);
      if (buffer.kind == BufferKind::kBuffer) one.stream = life.stream;
      for_a_time.push_back(one);
    } else if (buffer.kind == BufferKind::kOptimizer && life.IsAwayForATime()) {
      LivingBuffer back = one;
      one.end = static_cast<uint32_t>(life.to_host);
      back.begin = static_cast<uint32_t>(life.from_host);
      living.push_back(one);
      for_a_time.push_back(back);
    } else {
      one.first_use = life.first == kNever ? 0 : static_cast<uint32_t>(life.first);
      living.push_back(one);
    }
  }
  std::stable_sort(for_a_time.begin(), for_a_time.end(),
                   [](const LivingBuffer& a, const LivingBuffer& b) { return a.begin < b.begin; });
  living.insert(living.end(), for_a_time.begin(), for_a_time.end());
  return living;
}

MemoryChanges MemoryChangesOf(const Role& role) { return ChangesOf(role, WrittenOut(role)); }

MemoryUse MemoryOf(const Role& role) {
  // Copies live as long as each other: what is in use at the same time shows in a few.
  const MemoryChanges changes =
      ChangesOf(role, WrittenOut(role, FewerCopies(role, kCopiesThatShowAll)));
  MemoryUse use = changes.kept;
  MemoryChange now;
  now.optimizer = use.optimizer;
  now.host = use.host;
  for (size_t op = 0; op < changes.gained.size(); ++op) {
    const MemoryChange& gained = changes.gained[op];
    now.optimizer += gained.optimizer;
    now.activations += gained.activations;
    now.buffers += gained.buffers;
    now.host += gained.host;
    use.host = std::max(use.host, now.host);
    if (now.OnDevice() > use.optimizer + use.activations + use.buffers) {
      use.optimizer = now.optimizer;
      use.activations = now.activations;
      use.buffers = now.buffers;
    }
    const MemoryChange& lost = changes.lost[op];
    now.optimizer -= lost.optimizer;
    now.activations -= lost.activations;
    now.buffers -= lost.buffers;
    now.host -= lost.host;
  }
  return use;
}

MemoryUse MemoryOfFullestRank(const Schedule& schedule) {
  std::vector<bool> played(schedule.roles.size());
  for (const uint32_t role : schedule.role_of_rank) {
    CHECK_LT(role, schedule.roles.size());
    played[role] = true;
  }
  MemoryUse fullest;
  for (size_t role = 0; role < schedule.roles.size(); ++role) {
    if (!played[role]) continue;
    const MemoryUse use = MemoryOf(schedule.roles[role]);
    if (use.Total() > fullest.Total()) fullest = use;
  }
  return fullest;
}

}  // namespace rehearse

#include "sim/schedule/memory.h"

#include <algorithm>

#include "sim/base/error.h"
#include "sim/schedule/repeats.h"

namespace rehearse {
namespace {

constexpr size_t kNever = static_cast<size_t>(-1);

struct Life {
  size_t first = kNever;
  size_t last = 0;
};

MemoryUse MemoryOfPlain(const Role& role) {
  const MemoryChanges changes = MemoryChangesOf(role);
  MemoryUse use = changes.kept;
  MemoryChange now;
  for (size_t op = 0; op < role.ops.size(); ++op) {
    now.activations += changes.gained[op].activations;
    now.buffers += changes.gained[op].buffers;
    if (now.activations + now.buffers > use.activations + use.buffers) {
      use.activations = now.activations;
      use.buffers = now.buffers;
    }
    now.activations -= changes.lost[op].activations;
    now.buffers -= changes.lost[op].buffers;
  }
  return use;
}

}  // namespace

MemoryChanges MemoryChangesOf(const Role& role) {
  std::vector<Life> lives(role.buffers.size());
  for (size_t op = 0; op < role.ops.size(); ++op) {
    for (const auto* touched : {&role.ops[op].reads, &role.ops[op].writes}) {
      for (const BufferId buffer : *touched) {
        CHECK_LT(buffer.index(), role.buffers.size());
        const auto& view = role.buffers[buffer.index()].view;
        Life& life = lives[view ? view->of.index() : buffer.index()];
        life.first = std::min(life.first, op);
        life.last = op;
      }
    }
  }

  MemoryChanges changes;
  MemoryUse& kept = changes.kept;
  changes.gained.resize(role.ops.size());
  changes.lost.resize(role.ops.size());
  for (size_t i = 0; i < role.buffers.size(); ++i) {
    const Buffer& buffer = role.buffers[i];
    switch (buffer.kind) {
      case BufferKind::kParameter:
        kept.parameters += buffer.bytes;
        break;
      case BufferKind::kGradient:
        kept.gradients += buffer.bytes;
        break;
      case BufferKind::kOptimizer:
        kept.optimizer += buffer.bytes;
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

MemoryUse MemoryOf(const Role& role) {
  if (role.repeats.empty()) return MemoryOfPlain(role);
  // Copies live as long as each other: what is in use at the same time shows in a few.
  return MemoryOfPlain(Expanded(WithFewerCopies(role, kCopiesThatShowAll)));
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

#include "scenarios/playing/group_memories.h"

#include <algorithm>
#include <utility>

namespace rehearse {
namespace {

// Some megabytes each, at most.
constexpr size_t kMostIdle = 64;

}  // namespace

GroupMemories::Taken::Taken(GroupMemories& all, const Scenario& scenario) : all_(all) {
  const LowerOptions& lowering = scenario.lowering;
  if (!lowering.perturbation.events.empty()) return;
  {
    const std::lock_guard lock(all.mutex_);
    const auto own = std::find_if(all.idle_.rbegin(), all.idle_.rend(), [&](const auto& memory) {
      return memory->IsOf(*scenario.cluster, scenario.routing, lowering.nccl);
    });
    if (own != all.idle_.rend()) {
      memory_ = std::move(*own);
      all.idle_.erase(std::next(own).base());
    }
  }
  if (!memory_)
    memory_ = std::make_unique<GroupMemory>(scenario.cluster, scenario.routing, lowering.nccl);
  memory_->Begin();
}

GroupMemories::Taken::~Taken() {
  if (!memory_) return;
  const std::lock_guard lock(all_.mutex_);
  if (all_.idle_.size() == kMostIdle) all_.idle_.erase(all_.idle_.begin());
  all_.idle_.push_back(std::move(memory_));
}

}  // namespace rehearse

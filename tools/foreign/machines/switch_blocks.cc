#include "tools/foreign/machines/switch_blocks.h"

#include <algorithm>
#include <cstddef>
#include <map>
#include <utility>

namespace rehearse {

SwitchBlocks::SwitchBlocks(const FabricPlan& plan) : plan_(plan) {
  const size_t count = plan.switches.size();
  neighbours_.resize(count);
  for (const FabricPlan::Trunk& trunk : plan.trunks) {
    neighbours_[trunk.a].push_back(trunk.b);
    neighbours_[trunk.b].push_back(trunk.a);
  }
  FindLevels();
  block_of_.assign(count, kNoBlock);
  for (size_t begin = 0; begin < by_level_.size();) {
    const uint32_t level = levels_[by_level_[begin]];
    size_t end = begin;
    while (end < by_level_.size() && levels_[by_level_[end]] == level) ++end;
    JoinLevel(begin, end, level);
    begin = end;
  }
}

void SwitchBlocks::FindLevels() {
  levels_.assign(plan_.switches.size(), kNoBlock);
  for (const FabricPlan::Node& node : plan_.nodes)
    for (const FabricPlan::Port& port : node.ports) levels_[port.to] = 1;
  for (uint32_t i = 0; i < levels_.size(); ++i)
    if (levels_[i] == 1) by_level_.push_back(i);
  for (size_t next = 0; next < by_level_.size(); ++next) {
    for (const uint32_t other : neighbours_[by_level_[next]]) {
      if (levels_[other] != kNoBlock) continue;
      levels_[other] = levels_[by_level_[next]] + 1;
      by_level_.push_back(other);
    }
  }
}

void SwitchBlocks::JoinLevel(size_t begin, size_t end, uint32_t level) {
  // In the order of the file.
  std::sort(by_level_.begin() + static_cast<std::ptrdiff_t>(begin),
            by_level_.begin() + static_cast<std::ptrdiff_t>(end));
  std::map<std::vector<uint32_t>, uint32_t> blocks;  // by the blocks below
  for (size_t i = begin; i < end; ++i) {
    const uint32_t of_switch = by_level_[i];
    auto block = static_cast<uint32_t>(members_.size());
    if (level > 1) {
      std::vector<uint32_t> below;
      for (const uint32_t other : neighbours_[of_switch])
        if (levels_[other] + 1 == level) below.push_back(block_of_[other]);
      std::sort(below.begin(), below.end());
      below.erase(std::unique(below.begin(), below.end()), below.end());
      block = blocks.emplace(std::move(below), block).first->second;
    }
    if (block == members_.size()) members_.emplace_back();
    members_[block].push_back(of_switch);
    block_of_[of_switch] = block;
  }
}

}  // namespace rehearse

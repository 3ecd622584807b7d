// Which switches of a fabric are drawn as one, as tools/foreign/machines/fabric_plan.h says it.
#pragma once

#include <cstdint>
#include <limits>
#include <vector>

#include "tools/foreign/machines/fabric_plan.h"

namespace rehearse {

// Of a switch that no node reaches.
inline constexpr uint32_t kNoBlock = std::numeric_limits<uint32_t>::max();

class SwitchBlocks {
 public:
  explicit SwitchBlocks(const FabricPlan& plan);  // must outlive this

  // By block, the members.
  const std::vector<std::vector<uint32_t>>& members() const { return members_; }
  uint32_t BlockOf(uint32_t of_switch) const { return block_of_[of_switch]; }
  uint32_t LevelOf(uint32_t of_switch) const { return levels_[of_switch]; }

 private:
  void FindLevels();
  void JoinLevel(size_t begin, size_t end, uint32_t level);

  const FabricPlan& plan_;
  std::vector<std::vector<uint32_t>> neighbours_;
  std::vector<uint32_t> levels_;    // by switch
  std::vector<uint32_t> by_level_;  // switches, lowest level first
  std::vector<uint32_t> block_of_;  // by switch
  std::vector<std::vector<uint32_t>> members_;
};

}  // namespace rehearse

// Which groups are alike: their members are at the same places of machines that neighbour each
// other in the same way, so that whatever one group does on its own takes equally long in the
// other. They do not use the same links.
//
// On equal machines below fat trees and dragonflies that spray, it only matters which members share
// a machine, which machines share a switch, and so on upwards; elsewhere no two groups are alike.
#pragma once

#include <cstdint>
#include <map>
#include <vector>

#include "topology/fabrics/router.h"

namespace rehearse {

class GroupShapes {
 public:
  // The router must outlive it.
  explicit GroupShapes(const Router& router);

  // The same number for groups that are alike.
  uint32_t Of(const std::vector<uint32_t>& ranks);
  // Whether different groups can be alike.
  bool AreShared() const { return are_shared_; }

 private:
  std::vector<uint32_t> SignatureOf(const std::vector<uint32_t>& ranks) const;

  const Router& router_;
  const bool are_shared_;
  std::map<std::vector<uint32_t>, uint32_t> numbers_;  // by signature
};

}  // namespace rehearse

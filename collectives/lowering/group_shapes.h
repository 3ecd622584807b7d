// Which groups are alike: their members are at the same places of machines of which the same are
// neighbours, so that whatever one does on its own takes as long as with the other. Which links
// they use is not the same.
//
// On equal machines below fat trees and dragonflies that spray, only that counts which members
// share a machine, which machines a switch, and so on upwards; elsewhere every group is its own.
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
  // Whether different groups can be.
  bool AreShared() const { return are_shared_; }

 private:
  std::vector<uint32_t> SignatureOf(const std::vector<uint32_t>& ranks) const;

  const Router& router_;
  const bool are_shared_;
  std::map<std::vector<uint32_t>, uint32_t> numbers_;  // by signature
};

}  // namespace rehearse

// Whether every device reaches every other without passing through a third.
#pragma once

#include "topology/cluster/wiring.h"

namespace rehearse {

// Throws Error if one does not, naming both ends and all ranks that are cut off. CHECKs that there
// is a device.
void CheckConnected(const Wiring& wiring);

}  // namespace rehearse

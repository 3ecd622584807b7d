// Whether every device reaches every other without passing through a third, except over NVLink or
// xGMI where the way begins and where it ends: on a mesh of devices without a host, and where the
// NIC of a device is down.
#pragma once

#include "topology/cluster/wiring.h"

namespace rehearse {

// Throws Error if one does not, naming both ends and all ranks that are cut off. CHECKs that there
// is a device.
void CheckConnected(const Wiring& wiring);

}  // namespace rehearse

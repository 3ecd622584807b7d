// AMD's boxes of 8 accelerators: every two joined by one xGMI link.
#pragma once

#include "topology/presets/node.h"

namespace rehearse {

// 8 MI300X, each with 7 links of 64 GB/s per direction (AMD Instinct MI300X platform data sheet:
// 128 GB/s both ways), 8 NICs of 400 Gb/s on PCIe 5 switches of their own, 2 sockets.
NodeSpec Mi300xNode();

// 8 MI355X, each with 7 links of 76.8 GB/s per direction (AMD Instinct MI355X platform data sheet:
// 153.6 GB/s both ways); NICs (Pollara 400) as the MI300X has them.
NodeSpec Mi355xNode();

}  // namespace rehearse

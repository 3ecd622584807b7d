// Ports that only pass on what one other port sends or brings.
//
// On its way from a device to its NIC a packet crosses ports of the machine (PCIe) that carry
// nothing else. Where such a port is no slower than the port of the cable behind it, nothing ever
// waits because of it: the first packet of a message is later by its time, and all others leave the
// cable's port one after the other, as they would without it. Likewise behind the last cable. Such
// ports are taken out, and their time is added to the cable's delay: for each message that of its
// first packet. That halves what a step has to play, or better: of the eight ports from device to
// device across two levels of switches, four are left.
//
// A NIC no longer holds what its port of PCIe brought ahead of its cable (up to the threshold of
// pauses), and so nothing of that stands before a message that begins later: NICs fetch what they
// send.
//
// Kept are ports of cables, of bundles, whatever several flows reach on different ways, all that is
// slower than its neighbour, and everything where cables have lanes.
#pragma once

#include "sim/packets/packet_network.h"

namespace rehearse {

PacketWiring WithoutChains(PacketWiring wiring);

}  // namespace rehearse

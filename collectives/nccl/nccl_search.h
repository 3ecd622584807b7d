// What NCCL's search finds in a domain of NVSwitches (NVIDIA/nccl v2.28.3-1, src/graph/search.cc),
// and so what its model takes as the bandwidth of rings and of NVLS.
//
// NCCL counts a bandwidth for each NVLink (src/graph/topo.h), and tries a list of bandwidths that a
// channel may have, from the largest down:
//   rings  the bandwidth b whose ⌊links/b⌋ channels carry the most; doubled then, at half of b
//          each, unless they are slow (less than 25 GB/s; after Ampere less than 50 with more than
//          four)
//   NVLS   up to 32 members are heads. A head's share passes its own links twice and those of every
//          other member once, so that with h heads the largest b counts that fits (h+1)·b ≤ links.
// Between machines a NIC has one channel, at 48 GB/s of 50; by the same rule it is doubled, unless
// it is slow.
// So 4 H100 have 6 rings of 60 GB/s, but of NVLS only 4 heads of 60, which is why NCCL takes rings
// there; 8 have 8 heads of 40. Five B200 have less by NVLS than by rings, eight have more.
#pragma once

#include <cstdint>

#include "collectives/nccl/nccl_constants.h"

namespace rehearse {

// Of one graph; NCCL then runs twice as many.
inline constexpr uint32_t kMostGraphChannels = 16;

struct NvSwitchSearch {
  BytesPerSecond rings;   // all rings together
  uint32_t channels = 0;  // of them; 0 if there are not enough links
  uint32_t heads = 0;     // of NVLS
  BytesPerSecond head;    // each
};

// Each of the members, at least two, has `nvlinks` NVLinks.
NvSwitchSearch SearchNvSwitch(NcclGeneration generation, uint32_t nvlinks, uint32_t members);

// How many channels a ring has for each of the NICs that it passes in a machine.
uint32_t ChannelsOfANic(NcclGeneration generation, BytesPerSecond nic, uint32_t nics);

// Bandwidth of one NVLink each way, as its maker states it.
BytesPerSecond NvLinkBandwidth(NcclGeneration generation);

}  // namespace rehearse

// How near two parts of a machine are, as NCCL's PATH types tell it (NVL, PIX and PXB, PHB, SYS and
// NET of its src/graph/topo.h): by the worst step between them. A path of a nearer class is taken
// whatever its latency: a GPU whose NVLink is slower to answer than its PCIe talks over NVLink.
#pragma once

#include <algorithm>
#include <cstdint>

#include "topology/cluster/equal_machines.h"

namespace rehearse {

enum class PathClass : uint8_t {
  kNvLink,   // NVLink or xGMI, NVSwitches included
  kPcie,     // PCIe and its switches
  kHost,     // through a socket: its host bridge, its memory
  kSockets,  // from one socket to another
  kNetwork,
};
inline constexpr PathClass kPathClasses[] = {PathClass::kNvLink, PathClass::kPcie, PathClass::kHost,
                                             PathClass::kSockets, PathClass::kNetwork};

// Of the step over a link of this kind into a vertex of this kind.
constexpr PathClass ClassOfStep(LinkKind link, VertexKind to) {
  const PathClass least = to == VertexKind::kSocket ? PathClass::kHost : PathClass::kNvLink;
  switch (link) {
    case LinkKind::kNvLink:
    case LinkKind::kXgmi:
      return least;
    case LinkKind::kPcie:
      return std::max(least, PathClass::kPcie);
    case LinkKind::kMemory:
      return PathClass::kHost;
    case LinkKind::kSocket:
      return PathClass::kSockets;
    case LinkKind::kNetwork:
      return PathClass::kNetwork;
  }
  return PathClass::kNetwork;
}

}  // namespace rehearse

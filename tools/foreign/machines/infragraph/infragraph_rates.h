// What kind of link an edge of InfraGraph is, and how fast: of what the file gives as figures, of
// what the link's name and description say ("nvlink_3", "PCIe Gen4 x16", "400GbE"), and of what
// imported machines have otherwise (tools/foreign/machines/import_rates.h).
#pragma once

#include <optional>
#include <string>

#include "tools/foreign/machines/import_devices.h"
#include "tools/foreign/machines/infragraph/infragraph_expand.h"
#include "topology/cluster/cluster.h"

namespace rehearse {

// Of a name or a description in small letters. Nothing when it does not say.
std::optional<LinkKind> LinkKindOfText(const std::string& text);
// NVSwitch or PCIe switch, likewise.
std::optional<VertexKind> SwitchKindOfText(const std::string& text);

// Between these two, whose kinds are known.
LinkKind InfraLinkKind(const InfraLink& link, const InfraVertex& a, const InfraVertex& b);

struct InfraRate {
  ClusterLink link;
  std::string assumed;  // what was filled in, for a remark; "" for nothing
};

// `gpu` is of what kind the devices are, `nvlinks` over how many edges of one they spread their
// NVLinks. The rate is that of one edge.
InfraRate InfraRateOf(const InfraLink& link, LinkKind kind, const InfraVertex& a,
                      const InfraVertex& b, const GpuKind& gpu, uint32_t nvlinks);

}  // namespace rehearse

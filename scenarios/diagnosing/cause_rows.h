// The rows of the table of causes, in cause_*.cc, gathered in collective_cause.cc; and what they
// share.
#pragma once

#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "scenarios/diagnosing/collective_cause.h"

namespace rehearse {

CollectiveCause SlowCableRow();
CollectiveCause SlowNetworkRow();
CollectiveCause FewerNicsRow();
CollectiveCause NicDownRow();
CollectiveCause SlowPcieRow();
CollectiveCause SlowNvLinkRow();
CollectiveCause NoPeerToPeerRow();
CollectiveCause NoGpuDirectRow();
CollectiveCause WrongNicRow();
CollectiveCause SocketsRow();
CollectiveCause HashCollisionsRow();
CollectiveCause SpineRow();
CollectiveCause BoxOrderRow();
CollectiveCause PxnOffRow();
CollectiveCause AlgorithmPinnedRow();
CollectiveCause ProtocolPinnedRow();
CollectiveCause NvlsOffRow();
CollectiveCause FewChannelsRow();
CollectiveCause OldLibraryRow();
CollectiveCause SlowLaunchRow();
CollectiveCause NetworkLatencyRow();

// ---- What rows share ----------------------------------------------------------------------------

// The way from the group's first rank to the first that is on another machine; nothing if all are
// on one.
struct FirstCrossing {
  VertexId device = 0;
  VertexId port = 0;  // the NIC, or the device itself, whose cable the way takes first
};
std::optional<FirstCrossing> FindCrossing(const CollectiveRun& run);

bool HasSeveralMachines(const CollectiveRun& run);
bool IsBetweenSwitches(const Cluster& cluster, uint32_t link);
// Whether switches offer several equal ways.
bool HasEqualWays(const CollectiveRun& run);

// The run with the links for which `is_meant` says so at a share of their bandwidth, and with that
// much more latency. Nothing if there are none.
std::optional<CollectiveRun> WithSlowLinks(const CollectiveRun& run, double share, Seconds latency,
                                           const std::function<bool(uint32_t link)>& is_meant);
// Hosts copy what NICs send and get: so much of the cables' bandwidth is left, each takes longer,
// and NCCL has no LL128 between machines. Nothing if no cable leads to a NIC.
std::optional<CollectiveRun> ThroughTheHost(const CollectiveRun& run, double share,
                                            Seconds latency);
// All links between the two kinds of places are gone: their names as patterns, and their kind.
CollectiveRun WithoutLinksOf(const CollectiveRun& run, const std::vector<std::string>& patterns,
                             LinkKind kind);

// Numbers from `most` down to `least` or up to it, each the same factor from the one before.
std::vector<double> Geometric(double first, double last, size_t count);

// For strengths that are shares, and for those in seconds.
std::string ShareWords(double share);
std::string AdditionWords(double seconds);

}  // namespace rehearse

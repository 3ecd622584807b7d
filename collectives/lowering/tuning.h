// Which algorithm, protocol and channels a collective takes, and what that costs besides
// moving its bytes.
//
// Lowering asks once for every collective of every group. Names that a user pinned are taken as
// they are; "auto" is chosen here:
// - On NVIDIA's devices as NCCL chooses (collectives/nccl/nccl_model.h), on AMD's as RCCL does
//   (collectives/nccl/rccl_model.h): the combination of the least expected time among those that
//   are not pinned away. What it takes then is collectives/nccl/pace.h's business. Grouped sends
//   (all-to-all, send-receive) have no protocol to choose.
// - Elsewhere, and for what NCCL does not have: the first row of the table that can, on bare links.
// Protocol "none" (a schedule's default) means bare links: every step takes the latency of its
// route, nothing else.
//
// Launching takes the host overhead + channels · channel overhead (topology/files/calibration.h):
// it is once for the collective, and again for each channel's share of the work. NCCL's own
// latencies were measured with launches, so that the longer of the two counts, not both. Grouped
// sends run on all of their channels, however short the messages.
//
// What the answer means in lowering, at every fidelity:
//   the collective as a whole first waits `start`, once: launching or the library's latency;
//   if steps_wait, a step from a to b waits  (latency of the route) + step_overhead,  else nothing:
//   then `start` holds all the latency that there is;
//   a step puts  bytes / bandwidth_share  on the links of the route. So the flags of a protocol,
//   and what a channel cannot push, show up as bytes on the wire, and an idle machine takes the
//   time that NCCL's model says.
#pragma once

#include <cstdint>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <tuple>
#include <vector>

#include "collectives/algorithms/algorithm.h"
#include "collectives/algorithms/channels.h"
#include "collectives/nccl/nccl_model.h"
#include "collectives/nccl/protocol.h"
#include "collectives/nccl/rccl_model.h"
#include "sim/base/quantity.h"
#include "topology/fabrics/router.h"

namespace rehearse {

struct ChoiceQuestion {
  const Collective& collective;
  const std::vector<uint32_t>& ranks;  // the group, in member order; at least two
  uint32_t channels = 0;               // > 0 caps them
};

struct Choice {
  const Algorithm* algorithm = nullptr;
  std::optional<Protocol> protocol;  // nothing: bare links
  uint32_t channels = 0;             // > 0 caps those of the algorithm
  uint32_t nccl_channels = 0;        // what NCCL would use; 0 on bare links
  Seconds latency;                   // of NCCL's model, all of it
  Seconds start;                     // max(launching, latency)
  bool steps_wait = true;
  Seconds step_overhead;
  double bandwidth_share = 1;  // of the bytes on the wire that are data; in (0, 1]

  friend bool operator==(const Choice&, const Choice&) = default;
};

// What launching a collective takes that runs on so many of NCCL's channels.
Seconds LaunchTime(const Cluster& cluster, uint32_t channels);

// What a library's model has to know of a group; neither on other makers' devices.
struct LibraryGroup {
  std::optional<NcclGroup> nccl;
  std::optional<RcclGroup> rccl;

  bool Exists() const { return nccl.has_value() || rccl.has_value(); }
};

// Remembers what it found of each group. Router and finder must outlive it. Libraries do not see
// which cables a switch hashes their flows to: where the router's ways are hashed or balanced, what
// rings and trees reach is taken from sprayed ones.
class Tuner {
 public:
  Tuner(Router& router, ChannelFinder& finder, NcclVersion version = kNewestNccl);

  // Throws Error for names that are not known, an algorithm that cannot do the kind, and a
  // protocol where there is none. Whether the group suits a pinned algorithm is checked when its
  // steps are laid out.
  Choice Choose(const ChoiceQuestion& question);

  const LibraryGroup& GroupOf(const std::vector<uint32_t>& ranks);
  // All that the library would weigh; none on other makers' devices and for grouped sends.
  std::vector<NcclCost> CostsOf(const std::vector<uint32_t>& ranks, CollectiveKind kind,
                                Bytes bytes);
  // "NCCL 2.28", "RCCL"; "" on other makers' devices.
  std::string LibraryOf(const std::vector<uint32_t>& ranks);

 private:
  Choice WithoutLaunch(const ChoiceQuestion& question);
  std::optional<NcclCost> Cheapest(const ChoiceQuestion& question, const LibraryGroup& group) const;
  // What the steps themselves reach on these links, without a protocol, in bytes of the
  // collective a second.
  BytesPerSecond BareRate(const ChoiceQuestion& question, NcclAlgorithm algorithm,
                          uint32_t channels);
  double ShareOf(const ChoiceQuestion& question, const LibraryGroup& group, const NcclCost& cost,
                 BytesPerSecond wanted);
  void ChooseSends(const ChoiceQuestion& question, const LibraryGroup& group, Choice* choice);

  std::unique_ptr<Router> sprayed_;  // null where the caller's is
  std::unique_ptr<ChannelFinder> sprayed_finder_;
  Router& router_;
  ChannelFinder& finder_;
  const NcclVersion version_;
  std::map<std::vector<uint32_t>, LibraryGroup> groups_;
  std::map<std::tuple<std::vector<uint32_t>, CollectiveKind, uint32_t, NcclAlgorithm, uint32_t>,
           BytesPerSecond>
      bare_rates_;
};

const char* Name(const std::optional<Protocol>& protocol);  // "none" for nothing

}  // namespace rehearse

// Which algorithm, protocol and channels a collective takes, and what that costs besides
// moving its bytes.
//
// Lowering asks once for every collective of every group. Names that a user pinned are taken as
// they are; "auto" is chosen here:
// - On NVIDIA's devices as NCCL chooses (collectives/nccl/nccl_model.h), on AMD's as RCCL does
//   (collectives/nccl/rccl_model.h): the combination with the least expected time among those that
//   pins leave. How long it then takes is up to collectives/nccl/pace.h. Grouped sends (all-to-all,
//   send-receive) have no protocol to choose.
// - Kinds that the libraries do not have take the first row of the table that can do them, on bare
//   links. Other devices take each kind's usual algorithm (sim/schedule/schedule.h), as CPU ranks
//   run it.
// Protocol "none" (a schedule's default) means bare links: every step takes the latency of its
// route, nothing else.
//
// Launching takes the host overhead + channels · channel overhead (topology/files/calibration.h):
// once for the collective, and once more for each channel's share of the work. NCCL's own latencies
// were measured with launches, so the longer of the two counts, not both. Grouped sends run on all
// of their channels, however short the messages.
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
#include "collectives/lowering/choice.h"
#include "collectives/lowering/group_memory.h"
#include "collectives/lowering/group_shapes.h"
#include "collectives/lowering/rounds.h"
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

// How long it takes to launch a collective that runs on this many of NCCL's channels.
Seconds LaunchTime(const Cluster& cluster, uint32_t channels);

// Remembers what it found for each group. Router and finder must outlive it, and so must the memory
// of what others found with the same router and settings, if there is one. Libraries do not see
// which cables a switch hashes their flows to: where the router's ways are hashed or balanced, the
// rates of rings and trees are taken from sprayed ones.
class Tuner {
 public:
  Tuner(Router& router, ChannelFinder& finder, const NcclSettings& settings = {},
        GroupMemory* memory = nullptr);

  // Throws Error for names that are not known, an algorithm that cannot do the kind, and a protocol
  // where none can be used. Whether the group suits a pinned algorithm is checked when its steps
  // are laid out.
  Choice Choose(const ChoiceQuestion& question);

  const LibraryGroup& GroupOf(const std::vector<uint32_t>& ranks);
  // The same number for groups that get the same answers.
  uint32_t ShapeOf(const std::vector<uint32_t>& ranks) {
    return memory_ != nullptr ? memory_->ShapeOf(ranks) : shapes_.Of(ranks);
  }
  // Whether such groups take the same time also on the caller's routes.
  bool ShapesAreExact() const { return !sprayed_ && shapes_.AreShared(); }
  // All combinations that the library would weigh; none on other makers' devices and for grouped
  // sends.
  std::vector<NcclCost> CostsOf(const std::vector<uint32_t>& ranks, CollectiveKind kind,
                                Bytes bytes);
  // "NCCL 2.28", "RCCL"; "" on other makers' devices.
  std::string LibraryOf(const std::vector<uint32_t>& ranks);

  // What the last choice was made from: moves out the parts of this plan and their rounds. Returns
  // false, and writes nothing, if that was another plan or if steps wait.
  bool TakeArrangement(const Collective& collective, GroupPlan* plan,
                       std::vector<std::vector<RoundFlow>>* rounds);

 private:
  struct Arrangement {
    GroupPlan plan;
    uint32_t root = 0;
    std::vector<std::vector<RoundFlow>> rounds;
  };

  const LibraryGroup& GroupOf(uint32_t shape, const std::vector<uint32_t>& ranks);
  Choice WithoutLaunch(const ChoiceQuestion& question);
  std::optional<NcclCost> Cheapest(const ChoiceQuestion& question, const LibraryGroup& group) const;
  // What the steps themselves reach on these links, without a protocol, in bytes of the collective
  // per second.
  BytesPerSecond FindBareRate(const ChoiceQuestion& question, NcclAlgorithm algorithm,
                              uint32_t channels);
  // The same, remembered; that of all rings together is known from the group.
  BytesPerSecond BareRate(const ChoiceQuestion& question, uint32_t shape, NcclAlgorithm algorithm,
                          uint32_t channels);
  double ShareOf(const ChoiceQuestion& question, uint32_t shape, const LibraryGroup& group,
                 const NcclCost& cost, BytesPerSecond wanted);
  void ChooseSends(const ChoiceQuestion& question, const LibraryGroup& group, Choice* choice);

  std::unique_ptr<Router> sprayed_;  // null where the caller's is
  std::unique_ptr<ChannelFinder> sprayed_finder_;
  Router& router_;
  ChannelFinder& finder_;
  const NcclSettings settings_;
  GroupMemory* const memory_;  // may be null
  GroupShapes shapes_;
  std::map<uint32_t, LibraryGroup> groups_;  // by shape
  std::map<std::tuple<uint32_t, CollectiveKind, uint32_t, NcclAlgorithm, uint32_t>, BytesPerSecond>
      bare_rates_;           // by shape, ...
  Arrangement arrangement_;  // the last one
};

}  // namespace rehearse

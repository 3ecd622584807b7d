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
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "collectives/algorithms/algorithm.h"
#include "collectives/lowering/choice.h"
#include "collectives/lowering/group_memory.h"
#include "collectives/lowering/rounds.h"
#include "collectives/nccl/nccl_model.h"
#include "collectives/nccl/rccl_model.h"
#include "sim/base/quantity.h"
#include "sim/schedule/collective_choice.h"
#include "topology/fabrics/router.h"

namespace rehearse {

struct ChoiceQuestion {
  const Collective& collective;
  const std::vector<uint32_t>& ranks;  // the group, in member order; at least two
  uint32_t channels = 0;               // > 0 caps them
};

// How long it takes to launch a collective that runs on this many of NCCL's channels.
Seconds LaunchTime(const Cluster& cluster, uint32_t channels);

// Remembers what it found for each shape of groups. Libraries do not see which cables a switch
// hashes their flows to: where the router's ways are hashed or balanced, the rates of rings and
// trees are taken from sprayed ones.
class Tuner {
 public:
  // The memory, or the router, must outlive it.
  explicit Tuner(GroupMemory& memory);
  explicit Tuner(Router& router, const NcclSettings& settings = {});

  // Throws Error for names that are not known, an algorithm that cannot do the kind, and a protocol
  // where none can be used. Whether the group suits a pinned algorithm is checked when its steps
  // are laid out.
  // `layout`, unless it is null, gets the one that the choice was made from, if there is one.
  Choice Choose(const ChoiceQuestion& question, std::shared_ptr<GroupLayout>* layout = nullptr);

  const LibraryGroup& GroupOf(const std::vector<uint32_t>& ranks);
  // Whether groups of one shape take the same time also on the caller's routes.
  bool ShapesAreExact() const { return !sprayed_ && memory_.SharesShapes(); }
  // All combinations that the library would weigh; none on other makers' devices and for grouped
  // sends.
  std::vector<NcclCost> CostsOf(const std::vector<uint32_t>& ranks, CollectiveKind kind,
                                Bytes bytes);
  // "NCCL 2.28", "RCCL"; "" on other makers' devices.
  std::string LibraryOf(const std::vector<uint32_t>& ranks);

 private:
  Choice WithoutLaunch(const ChoiceQuestion& question, std::shared_ptr<GroupLayout>* layout);
  std::optional<NcclCost> Cheapest(const ChoiceQuestion& question, const LibraryGroup& group) const;
  // What the steps themselves reach on these links, without a protocol, in bytes of the collective
  // per second. Remembered; that of all rings together is known from the group.
  BytesPerSecond BareRate(const ChoiceQuestion& question, NcclAlgorithm algorithm,
                          uint32_t channels, std::shared_ptr<GroupLayout>* layout = nullptr);
  BytesPerSecond FindBareRate(const ChoiceQuestion& question, NcclAlgorithm algorithm,
                              uint32_t channels, std::shared_ptr<GroupLayout>* layout);
  double ShareOf(const ChoiceQuestion& question, const LibraryGroup& group, const NcclCost& cost,
                 BytesPerSecond wanted, std::shared_ptr<GroupLayout>* layout);
  // What grouped sends reach on these links, likewise. Remembered.
  BytesPerSecond BareRateOfSends(const ChoiceQuestion& question);
  void ChooseSends(const ChoiceQuestion& question, const LibraryGroup& group, Choice* choice);

  std::unique_ptr<Router> sprayed_;          // null where the caller's is
  std::unique_ptr<GroupMemory> own_memory_;  // null where the caller's serves
  GroupMemory& memory_;
};

}  // namespace rehearse

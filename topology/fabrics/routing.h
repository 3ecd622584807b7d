// How a fabric chooses among equal ways, and which choices each fabric has: one table.
//
//   spray      every equal way carries the same share, packet by packet: what adaptive routing of
//              InfiniBand, Slingshot and Spectrum-X and Ultra Ethernet's spraying come close to
//   flowlet    switches that give a flow the least loaded way when it starts or pauses (CONGA,
//              Alizadeh et al. 2014; Broadcom's and NVIDIA's dynamic load balancing). Of the
//              transfers of a collective that run at the same time (a round of it, in all its
//              groups) each is hashed, since queues are empty when a round starts, and every other
//              one then moves to the way that the fewest others have; those that share a cable have
//              always something to send, and no pause to move in. sim/packets plays it out, and
//              scenarios/STUDIES.md has both side by side. What other collectives have under way
//              is not looked at
//   ecmp       a hash of the pair, seed included, at every switch; one for each of the pair's
//              `queue_pairs` (NCCL_IB_QPS_PER_CONNECTION), which carry equal shares
//   minimal    of a dragonfly: the bundle that the sender's switch has
//   valiant    of a dragonfly: by way of a third group, hashed
//   dimension-order  of tori and meshes, the only way
#pragma once

#include <cstdint>
#include <optional>
#include <span>
#include <string>

namespace rehearse {

enum class RouteChoice : uint8_t { kSpray, kFlowlet, kEcmp, kMinimal, kValiant, kDimensionOrder };
const char* Name(RouteChoice choice);  // "spray", ...
inline constexpr const char* kRouteChoiceNames[] = {"spray",   "flowlet", "ecmp",
                                                    "minimal", "valiant", "dimension-order"};

inline constexpr uint32_t kMostQueuePairs = 128;
inline constexpr uint64_t kMostRoutingSeed = uint64_t{1} << 53;  // that JSON holds exactly
inline constexpr uint64_t kRoutingSeeds = 8;

// What a fabric does by default.
struct RoutingRule {
  RouteChoice choice = RouteChoice::kSpray;
  uint32_t queue_pairs = 1;  // for ecmp

  friend bool operator==(const RoutingRule&, const RoutingRule&) = default;
};

// What a scenario asks for; where it says nothing, the fabric's own rule holds.
struct FabricRouting {
  std::optional<RouteChoice> choice;
  std::optional<uint32_t> queue_pairs;
  // For flowlet, ecmp and valiant; if not given, commands look at kRoutingSeeds seeds, from 0 on,
  // and a Router takes 0.
  std::optional<uint64_t> seed;
  // Whether messages between rails begin over NVLink (topology/fabrics/router.h);
  // NCCL_PXN_DISABLE=1 says that they do not.
  bool pxn = true;
  // Whether a ring may leave a machine by the NIC of one rail and enter the next by another's, as
  // with NCCL_CROSS_NIC=1; with 0, and with NCCL's own 2 where a ring can, it keeps to its rail.
  bool cross_nic = false;

  RoutingRule Over(const RoutingRule& own) const {
    return {choice.value_or(own.choice), queue_pairs.value_or(own.queue_pairs)};
  }

  friend bool operator==(const FabricRouting&, const FabricRouting&) = default;
};

// A row of the table; the first choice holds for a cluster file that says nothing.
struct FabricChoices {
  const char* fabric = "";
  std::span<const RouteChoice> choices;
};
FabricChoices ChoicesOfFatTree();
FabricChoices ChoicesOfDragonfly();
FabricChoices ChoicesOfHyperX();
FabricChoices ChoicesOfTorus();

// Throws Error: "a torus cannot have routing "spray"; it takes dimension-order".
void CheckChoice(const FabricChoices& fabric, RouteChoice choice);

// Whether a seed decides where flows go.
bool IsHashed(RouteChoice choice);

// "spray", "ecmp with 4 queue pairs"
std::string ToText(const RoutingRule& rule);

}  // namespace rehearse

// Which transfers a schedule can cause on a cluster, before any bytes are known.
//
// A *site* is where ranks meet: a group of a communicator for one kind of collective, a sender and
// a receiver, or one rank and its host. Sites of one group that go the same way share its
// transfers, whatever the bytes.
// Rings (for all-reduce, all-gather and reduce-scatter) have one transfer per channel (a whole
// ring, coupled) or, step by step, one per edge of each channel. Any other plan has one per round
// of each part or, step by step, one per message (collectives/lowering/rounds.h). Lowering turns an
// op at a site into flows over the site's transfers; folding looks for symmetry among them.
// Structure of arrays, 32-bit ids; size linear in ranks × communicators × channels.
#pragma once

#include <cstdint>
#include <map>
#include <optional>
#include <tuple>
#include <vector>

#include "collectives/algorithms/channels.h"
#include "collectives/lowering/group_memory.h"
#include "collectives/lowering/rounds.h"
#include "collectives/nccl/nccl_version.h"
#include "sim/base/growing_array.h"
#include "sim/engine/program.h"
#include "sim/schedule/alike.h"
#include "sim/schedule/schedule.h"
#include "topology/fabrics/router.h"

namespace rehearse {

enum class Fidelity : uint8_t { kFormula, kFluid, kStep, kPacket };
const char* Name(Fidelity fidelity);  // "formula", "fluid", "step", "packet"
// Whether every message is a flow of its own; at fidelity packet, of groups that reach across the
// network (Site::fidelity).
constexpr bool GoesByStep(Fidelity fidelity) { return fidelity >= Fidelity::kStep; }
// Queues, and senders that have cut their rates, carry over from one part of a step to the next.
constexpr Alike AlikeUnder(Fidelity fidelity) {
  const bool are_alike = fidelity != Fidelity::kPacket;
  return {.layers = are_alike, .micro_batches = are_alike};
}
// What the fidelity leaves out, in a few words for those who read its numbers.
const char* LeftOutBy(Fidelity fidelity);

inline constexpr uint32_t kNoTransfer = 0xffffffffu;

struct Transfer {
  // Share of the op's bytes (in rings and with equal blocks, of a p-th of them) at multiplicity 1;
  // where pairs have several ways (Router::ways), that of one of the parts.
  double share = 1;
  Seconds step_latency;      // one step
  BytesPerSecond idle_rate;  // formula only: of an edge's part when this site alone is active
  uint32_t use_begin = 0;    // uses[use_begin .. use_end)
  uint32_t use_end = 0;
  uint32_t detour_end = 0;  // uses[use_end .. detour_end) when links fail; empty: no other way
  uint32_t upstream = kNoTransfer;  // step only: the edge that ends where this one begins
  uint32_t downstream = kNoTransfer;
  uint32_t from = 0;  // step and send/receive only: ranks; of plans also switches, from ranks() on
  uint32_t to = 0;
  bool is_of_pair = false;

  // Only in plans:
  uint32_t part = 0;
  uint32_t steps = 1;        // how many it goes on for; 1 in a pipeline
  uint32_t step = 0;         // step: the first of them
  uint32_t after_begin = 0;  // fluid: begins when transfers[after_begin .. after_end) are done
  uint32_t after_end = 0;
};

struct Site {
  std::vector<uint32_t>
      ranks;  // members, or sender and receiver; one: it copies to or from its host
  uint32_t communicator = 0;
  bool is_pair = false;
  uint32_t plan = kNoTransfer;  // plans[plan]; none for pairs and host copies
  uint32_t request = 0;         // tells sites of one group apart
  uint32_t group = 0;  // the first site of the same ranks on this communicator; of pairs itself
  uint32_t transfer_begin = 0;  // transfers[transfer_begin .. transfer_end)
  uint32_t transfer_end = 0;
  // Of groups: the table's; where that is packet, fluid for those that need no network, whose
  // single steps nothing in it could delay.
  Fidelity fidelity = Fidelity::kFluid;
};

struct TransferTable {
  std::vector<Site> sites;
  GrowingArray<Transfer> transfers;
  std::vector<GroupPlan> plans;
  uint32_t switches = 0;       // that add, in all plans together
  GrowingArray<LinkUse> uses;  // links and trunks by index in the cluster
  // sites_of_rank[begin[r] .. begin[r+1]): where rank r meets others. Ranks of one role have the
  // same kinds of sites in the same order, so position `slot` means the same for all of them.
  std::vector<uint32_t> rank_begin;
  std::vector<uint32_t> sites_of_rank;
  // By role and op: the slot of the op's site; kNoTransfer for compute and for groups of one.
  std::vector<std::vector<uint32_t>> slot_of_op;

  const GroupPlan* PlanOf(const Site& site) const {
    return site.plan == kNoTransfer ? nullptr : &plans[site.plan];
  }
  uint32_t SiteOf(uint32_t rank, uint32_t slot) const {
    return sites_of_rank[rank_begin[rank] + slot];
  }
};

// The schedule must have passed CheckSchedule. Throws Error for algorithms and protocols that are
// not known, or do not suit their kind or group. `channels` > 0 caps the channels of every group;
// `nccl` is the library that chooses. `memory`, unless it is null, is of the same router and
// library.
TransferTable MakeTransfers(const Schedule& schedule, Router& router, Fidelity fidelity,
                            uint32_t channels, const NcclSettings& nccl = {},
                            GroupMemory* memory = nullptr);

}  // namespace rehearse

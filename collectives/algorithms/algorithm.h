// The table of collective algorithms: one row, one small file each.
//
// A row says what the algorithm is called, which kinds it can do, where it applies and how it
// arranges the ranks, its steps, and its closed form. Everything else (interpreter, lowering at
// three fidelities, folding, the command line, the choice by a tuning model) works from the rows.
#pragma once

#include <cstdint>
#include <initializer_list>
#include <span>
#include <string>
#include <vector>

#include "collectives/algorithms/channels.h"
#include "collectives/algorithms/steps.h"
#include "sim/schedule/collective_choice.h"
#include "sim/schedule/schedule.h"
#include "topology/fabrics/router.h"

namespace rehearse {

inline constexpr CollectiveKind kCollectiveKinds[] = {
    CollectiveKind::kAllReduce,   CollectiveKind::kAllGather, CollectiveKind::kReduceScatter,
    CollectiveKind::kAllToAll,    CollectiveKind::kBroadcast, CollectiveKind::kReduce,
    CollectiveKind::kSendReceive, CollectiveKind::kBarrier};

// A set of kinds.
class Kinds {
 public:
  constexpr Kinds(std::initializer_list<CollectiveKind> kinds) {
    for (const CollectiveKind kind : kinds) mask_ |= Bit(kind);
  }
  constexpr bool Has(CollectiveKind kind) const { return (mask_ & Bit(kind)) != 0; }

 private:
  static constexpr uint32_t Bit(CollectiveKind kind) { return 1u << static_cast<uint32_t>(kind); }
  uint32_t mask_ = 0;
};

// The group that a collective is for, and the machine that it is on.
struct GroupOnMachine {
  CollectiveKind kind = CollectiveKind::kAllReduce;
  uint32_t root = 0;                   // a member
  const std::vector<uint32_t>& ranks;  // in member order; at least two
  uint32_t channels = 0;               // > 0 caps them
  Router& router;
  ChannelFinder& finder;
  bool sizes_differ = false;  // an all-to-all's blocks differ
};

// The way between a rank and the switch that adds for it. Links are named by index, and each has a
// capacity of its own.
struct SwitchWay {
  std::vector<uint32_t> links;
  Seconds latency;
  bool crosses_nodes = false;
};

// A share of the collective's bytes with steps of its own: a channel, a tree, a direction of a
// torus. Parts run side by side.
struct Part {
  double share = 1;  // they sum to 1
  StepInput input;
  std::vector<uint32_t> order;  // position -> member of the group
  // Each position's way to its switch, and back. There are none where no switch adds.
  std::vector<SwitchWay> to_switch;
  std::vector<SwitchWay> from_switch;
};

// How one round of a part goes on an idle machine: what a step waits for, and how fast each of its
// messages moves while all of them do.
struct Pace {
  Seconds latency;
  BytesPerSecond rate;
};

struct Algorithm {
  AlgorithmId id = AlgorithmId::kRing;
  const char* summary = "";  // one line for a list
  Kinds kinds;
  Kinds pipelined;  // those that cut the data into pieces that follow each other
                    // (collectives/lowering/rounds.h)

  // The parts for a group. Throws Error, saying what is missing, if the algorithm does not apply.
  std::vector<Part> (*arrange)(const GroupOnMachine& group) = nullptr;
  // How many chunks a member's space has.
  uint32_t (*chunks)(const StepInput& input) = nullptr;
  // BlockOf says what this returns. If it is null, chunk c belongs to position c.
  Block (*block)(const StepInput& input, uint32_t position, uint32_t chunk) = nullptr;
  // Appends the legs that a position (or a switch: p and above) sends or receives.
  void (*steps)(const StepInput& input, uint32_t position, std::vector<Leg>* legs) = nullptr;
  // How many switches the steps have.
  uint32_t (*switches)(const StepInput& input) = nullptr;
  // The closed form: the time of one part of `bytes`. `paces` are those of its rounds, in order, or
  // one for all of them; a pipeline has those of its m + hops - 1 steps.
  Seconds (*closed_form)(const StepInput& input, Bytes bytes,
                         std::span<const Pace> paces) = nullptr;
  // The algorithm passes data on while more is arriving: step 0, across machines, and step 1,
  // inside them, run side by side, with Collective::machine_share and rank_share of the bytes.
  bool forwards = false;

  const char* name() const { return Name(id); }  // in schedules, scenarios, on the command line
};

// They are in the order of the table.
std::span<const Algorithm> Algorithms();

// Throws Error where there is no row: for what is left to the library, and for host copies.
const Algorithm& FindAlgorithm(AlgorithmId id);

// Throws Error, naming those that can, unless the algorithm does this kind.
void CheckKind(const Algorithm& algorithm, CollectiveKind kind);

}  // namespace rehearse

// Lowering: from a Schedule and a Cluster to the Program that the engine plays.
//
// Every compute op becomes a delay (topology/devices/device.h says how long), or one of a series;
// every communication op one join per rank (its arrival), one join per site (the rendezvous), the
// transfers, and its end. What the transfers are depends on the fidelity:
//   formula  one delay: the closed form on an idle machine; no contention
//   fluid    rings: each channel one coupled flow over all edges: S·share·n/p bytes per edge, after
//            S·(step latency); other algorithms: collectives/lowering/plan_flows.h
//   step     rings: each edge of each channel a flow of S steps, chained around the ring; a rank
//            has finished when its own edges, in and out, have; other algorithms: likewise
//   packet   groups that reach across the network as step, and what crosses it travels as packets
//            (collectives/lowering/packet_ways.h); groups inside a machine as fluid; nothing is
//            folded
// On an idle symmetric machine the three agree to 0.1 % for rings.
//
// On a cluster whose collectives were measured (topology/devices/measured_costs.h) each is one
// delay of that time at every fidelity, and shares nothing with others beyond what it shared when
// it was measured. What a step waits for and how many of its bytes are data is part of the choice
// (collectives/lowering/tuning.h). Streams and `after` become edges. Collectives of a single rank
// take no time. If all ranks of a site are of one class, arrival and rendezvous are one join, and a
// lone transfer is its own end.
//
// With folding (collectives/lowering/folding.h) the Program has the tasks of one rank, one site and
// one link of each class, with multiplicities; without, of all.
#pragma once

#include <cstdint>
#include <optional>

#include "collectives/lowering/packet_settings.h"
#include "collectives/lowering/perturbation.h"
#include "collectives/lowering/transfers.h"
#include "collectives/nccl/nccl_version.h"
#include "sim/base/progress.h"
#include "sim/engine/program.h"
#include "sim/packets/packet_play.h"
#include "sim/report/result.h"
#include "sim/schedule/schedule.h"
#include "topology/fabrics/router.h"

namespace rehearse {

// Of all ranks that do not behave like others; some ten gigabytes.
inline constexpr size_t kMostOpsPlayed = size_t{1} << 27;

struct LowerOptions {
  Fidelity fidelity = Fidelity::kFluid;
  uint32_t channels = 0;   // > 0 caps the channels of every collective
  NcclSettings nccl = {};  // which chooses
  // Communicators whose transfers are moved by copy engines, not by kernels on multiprocessors:
  // nothing beside them is slowed down. Names that the schedule has not are ignored.
  std::vector<std::string> copy_engines = {};
  bool fold = true;
  // Kernels that follow each other are one task if nothing waits for any but the last (Series in
  // sim/engine/program.h). The timeline is the same; whoever wants to know about single kernels'
  // tasks says no.
  bool series = true;
  std::optional<Slowdown> slowdown = std::nullopt;  // instead of the devices' own
  // Kernels are slowed down all the time, not only beside communication: the multiprocessors that
  // it keeps to itself are never theirs.
  bool is_always_slowed = false;
  Perturbation perturbation = {};  // of links: not with the closed forms of formula (CHECKed)
  // At fidelity packet: what is said about its network, and what follows from it, which lowering
  // needs.
  NetworkOptions network = {};
  std::optional<PacketSettings> packets = std::nullopt;
  bool note_flows = false;                   // Lowered::flows_of_ops
  std::optional<uint64_t> free_memory = {};  // bytes; otherwise what the machine has
};

// The flows [begin, end) of the program that move the bytes of ops at a position of a rank, the
// first of those that meet there.
struct FlowsOfOp {
  uint32_t rank = 0;
  uint32_t position = 0;
  uint32_t begin = 0;
  uint32_t end = 0;
};

struct Lowered {
  Program program;                       // spans only of representatives
  std::vector<FlowsOfOp> flows_of_ops;   // all flows, in their order; empty unless asked for
  std::vector<uint32_t> representative;  // rank -> the rank whose spans are its own
  // The cluster's link or trunk -> the program's that stands for it.
  std::vector<uint32_t> links;
  uint32_t rank_classes = 0;
  std::optional<PacketProgram> packets;  // at fidelity packet
  std::vector<ChosenCollective> chosen;  // sorted, each once; rings on bare links are left out
};

// The schedule must have passed CheckSchedule. The router must know the links that fail in the
// perturbation, for transfers to be able to go round them. Throws Error when the schedule does not
// have as many ranks as the cluster has devices, or when an op names an algorithm or protocol that
// is not known or does not suit its kind or group. `memory`, unless it is null, is that of the
// router and the options' library.
Lowered Lower(const Schedule& schedule, Router& router, const LowerOptions& options = {},
              ProgressObserver& observer = NoObserver(), GroupMemory* memory = nullptr);

}  // namespace rehearse

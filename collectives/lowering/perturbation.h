// What is not as steady as in the model: kernels and links that are a little off, ranks that
// straggle, links that become slow, fail or recover while the step runs. It is given in terms of
// ranks and the cluster's links, so that it means the same folded or not, at any fidelity.
//
//   a kernel takes        (1 + compute_jitter·z) · straggling(rank)   times as long, z of its own
//   a link carries        (1 + link_jitter·z)                         times as much, z of its own
// with z from sim/base/noise.h: mean 0, deviation 1, cut off at ±3. Channels and routes are those
// of the steady machine; only transfers that meet a failed link take another route (Router, failing
// links).
#pragma once

#include <cstdint>
#include <vector>

#include "sim/base/clock.h"
#include "sim/schedule/alike.h"
#include "topology/cluster/cluster.h"

namespace rehearse {

inline constexpr double kMostJitter = 0.3;

// From `at` on the link carries `factor` times what it does in the steady machine; 0: it has
// failed.
struct LinkEvent {
  Time at;
  uint32_t link = 0;  // index in the cluster
  double factor = 1;
};

struct Perturbation {
  uint64_t seed = 0;
  double compute_jitter = 0;  // standard deviations, 0 to kMostJitter
  double link_jitter = 0;
  std::vector<double> straggling = {};  // by rank, above 0; empty: 1 for all
  std::vector<LinkEvent> events = {};   // for one link at one time the last counts
};

// How many times as long op `op` of the rank's role computes.
double ComputeFactor(const Perturbation& perturbation, uint32_t rank, uint32_t op);
// How many times as much the link carries, without events; a trunk carries what its cables do.
double LinkFactor(const Perturbation& perturbation, const Cluster& cluster, uint32_t link);
// Adds events for trunks whose cables have some; a trunk then carries what its cables do.
Perturbation WithTrunkEvents(const Perturbation& perturbation, const Cluster& cluster);
// By link: whether it fails at any time.
std::vector<bool> FailingLinks(const Perturbation& perturbation, uint32_t link_count);

// Kernels that differ in time are not alike, nor are moments before and after an event. Links that
// differ are the same all step long, and so are ranks that straggle; but layers are told from each
// other only on a steady machine.
Alike AlikeUnder(const Perturbation& perturbation);

}  // namespace rehearse

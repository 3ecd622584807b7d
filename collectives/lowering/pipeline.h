// A pipeline cuts the bytes of a collective into m pieces that follow each other through its H hops
// (Algorithm::pipelined). In step s of the m + H - 1 the pieces are on the hops h, 0 <= s - h < m.
// A message waits for the messages of earlier steps at both its ends
// (collectives/algorithms/steps.h), which are those of its own hop and of hops that share a member
// with it, its neighbours. So
//   T = L + Σ_s X_s/m,   L = max Σ α_h over chains of messages, each a step later than the one
//                        before and of the same or a neighbouring hop
// with α_h the largest latency of a message of hop h, and X_s the time that all bytes need on all
// of the step's hops at once. Where all hops take α, L = (m + H - 1)·α; a slow hop alone among
// quick ones takes Σ_h α_h + (m - 1)·α_max, since the others wait only as far as they are behind
// it. For m >= H, m - H + 1 steps have all hops. The number of pieces is about the best,
//   m = sqrt((Σ_h X_h - X)/α), rounded, from 1 to kMostPieces,
// with X_h of hop h alone, X of all hops, α = max α_h. Not thread-safe: it remembers.
#pragma once

#include <cstdint>
#include <map>
#include <utility>
#include <vector>

#include "sim/base/quantity.h"

namespace rehearse {

inline constexpr uint32_t kMostPieces = 256;

// What a step costs if its messages had all the bytes: latency + seconds · bytes.
struct StepCost {
  Seconds latency;     // in a pipeline: by how much the longest chain grows
  double seconds = 0;  // for each byte of the collective
};

// The pipeline of a plan: all its parts side by side.
class Pipeline {
 public:
  struct Hop {
    Seconds latency;
    // Links, with the seconds that each needs per byte of the collective.
    std::vector<std::pair<uint32_t, double>> loads;
    std::vector<uint32_t> neighbours = {};  // in order; hops that share a member with it
  };

  Pipeline() = default;
  explicit Pipeline(std::vector<Hop> hops);
  // A pipeline whose filling is counted elsewhere (Choice::start): all bytes on all hops at once,
  // each taking this many seconds.
  explicit Pipeline(double seconds) : fills_(false), seconds_(seconds) {}

  uint32_t BestPieces(Bytes bytes) const;
  // The costs of the steps with m pieces, in order; seconds are for all pieces together.
  // Remembered.
  const std::vector<StepCost>& Steps(uint32_t pieces) const;
  Seconds Time(Bytes bytes, uint32_t pieces) const;

 private:
  uint32_t hops() const { return static_cast<uint32_t>(hops_.size()); }
  std::vector<Seconds> Latencies(uint32_t pieces) const;  // of the steps

  std::vector<Hop> hops_;  // links numbered densely
  uint32_t links_ = 0;
  bool fills_ = true;
  Seconds latency_;         // α
  bool is_even_ = true;     // all hops take α
  double seconds_ = 0;      // X for each byte
  double hop_seconds_ = 0;  // Σ X_h
  mutable std::map<uint32_t, std::vector<StepCost>> steps_;
};

}  // namespace rehearse

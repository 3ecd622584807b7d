// A pipeline cuts the bytes of a collective into m pieces that follow each other through its H hops
// (Algorithm::pipelined). In step s of the m + H - 1 the pieces are on the hops h with 0 <= s - h < m,
// and the step takes as long as the busiest link needs for the messages of these:
//   T = Σ_s (α_s + X_s/m)
// with α_s the largest latency of these hops and X_s the time that all bytes need on all of them at
// once. For m >= H, m - H + 1 steps have all hops. The number of pieces is about the best,
//   m = sqrt((Σ_h X_h - X)/α), rounded, from 1 to kMostPieces,
// with X_h of hop h alone, X and α of all hops. Not thread-safe: it remembers.
#pragma once

#include <cstdint>
#include <map>
#include <utility>
#include <vector>

#include "sim/quantity.h"

namespace rehearse {

inline constexpr uint32_t kMostPieces = 256;

// What a step costs that messages of all bytes would take: latency + seconds · bytes.
struct StepCost {
  Seconds latency;
  double seconds = 0;  // for each byte of the collective
};

// The pipeline of a plan: all its parts side by side.
class Pipeline {
 public:
  struct Hop {
    Seconds latency;
    std::vector<std::pair<uint32_t, double>>
        loads;  // link, seconds for each byte of the collective
  };

  Pipeline() = default;
  // Unless it `fills`, what the first piece takes to pass is counted elsewhere (Choice::start).
  Pipeline(std::vector<Hop> hops, bool fills);

  uint32_t hops() const { return static_cast<uint32_t>(hops_.size()); }
  uint32_t BestPieces(Bytes bytes) const;
  // Of the steps with m pieces, in order; seconds for all pieces together. Remembered.
  const std::vector<StepCost>& Steps(uint32_t pieces) const;
  Seconds Time(Bytes bytes, uint32_t pieces) const;

 private:
  std::vector<Hop> hops_;  // links numbered densely
  uint32_t links_ = 0;
  bool fills_ = true;
  Seconds latency_;         // α
  double seconds_ = 0;      // X for each byte
  double hop_seconds_ = 0;  // Σ X_h
  mutable std::map<uint32_t, std::vector<StepCost>> steps_;
};

}  // namespace rehearse

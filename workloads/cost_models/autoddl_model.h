// AutoDDL's own communication model (arXiv 2301.06813, sections 3, 4.2 and 4.3): what the paper
// predicts for SBP strategies, for comparison with the simulator. No overlap and no contention.
//
// Its Table 2, with the printed brackets read as parentheses, for p devices and n bytes (of a
// reduce-scatter's input, of the other collectives' output):
//   all-reduce                               2(p-1)·α + 2((p-1)/p)·n·β
//   all-gather, reduce-scatter, all-to-all    (p-1)·α +  ((p-1)/p)·n·β
//
// A matrix product I·W on p = p0·p1·p2 devices has I: (S0:p0, B:p1, S1:p2), W: (B:p0, S1:p1, S0:p2)
// and O: (S0:p0, S1:p1, P:p2). Before it I is all-gathered over p1, after it O is reduce-scattered
// over p2; backward does the conjugates; weight gradients are all-reduced over p0. Where a
// product's p0 is not its predecessor's, an all-to-all over all devices goes between the two
// (section 4.3). With several GPUs per node, each p_i is nodes × GPUs of a node; a collective that
// stays in a node has the node's α and β, any other the network's (section 4.2.3).
#pragma once

#include <cstdint>
#include <vector>

#include "sim/base/quantity.h"
#include "sim/schedule/schedule.h"

namespace rehearse {

// Latency of a step and seconds per byte.
struct AlphaBeta {
  Seconds alpha;
  double beta = 0;
};

// Is the kind one of Table 2?
bool HasAutoddlTime(CollectiveKind kind);

// The times of Table 2, 0 for one device. CHECKs that the kind is one of the table's.
Seconds AutoddlTime(CollectiveKind kind, uint32_t devices, Bytes bytes, const AlphaBeta& network);

// One measured collective.
struct AlphaBetaSample {
  CollectiveKind kind = CollectiveKind::kAllReduce;
  uint32_t devices = 2;
  Bytes bytes;
  Seconds time;
};

// α and β by least squares of T - T(measured) over all samples, as section 3.2 fits them. Throws
// Error if the samples do not determine both.
AlphaBeta FitAlphaBeta(const std::vector<AlphaBetaSample>& samples);

// ---- Products in a chain ---------------------------------------------------------------------

struct SbpFactor {
  uint32_t nodes = 1;
  uint32_t gpus = 1;  // per node

  uint32_t Size() const { return nodes * gpus; }
  friend bool operator==(const SbpFactor&, const SbpFactor&) = default;
};

// (p0, p1, p2) of one product.
struct SbpChoice {
  SbpFactor p0;
  SbpFactor p1;
  SbpFactor p2;

  uint32_t Devices() const { return p0.Size() * p1.Size() * p2.Size(); }
};

// O (rows × n) = I (rows × k) · W (k × n).
struct SbpProduct {
  double rows = 0;
  double k = 0;
  double n = 0;
  SbpChoice choice;
  bool first = false;  // its input comes already split, and needs no gradient
};

struct SbpNetwork {
  AlphaBeta inside;   // within a node
  AlphaBeta between;  // between nodes
  Bytes element = Bytes(4);
};

// What one product of the chain adds.
struct AutoddlTerms {
  Seconds gather_input;
  Seconds scatter_input;  // of its gradient; 0 for the first product
  Seconds scatter_output;
  Seconds gather_output;  // of its gradient
  Seconds gradient;
  Seconds change;  // if the product before it has another p0; both ways
  Bytes forward;
  Bytes forward_change;
};
AutoddlTerms TermsOf(const SbpProduct& product, const SbpNetwork& network);

struct AutoddlPrediction {
  Seconds gather;    // of inputs in forward, of output gradients in backward
  Seconds scatter;   // of outputs in forward, of input gradients in backward
  Seconds change;    // all-to-alls between products with different p0, both ways
  Seconds gradient;  // all-reduces of weight gradients
  Bytes forward;     // what a device sends in the forward pass

  Seconds Total() const { return gather + scatter + change + gradient; }
  void Add(const AutoddlTerms& terms, bool changes) {
    gather += terms.gather_input;
    scatter += terms.scatter_input;
    scatter += terms.scatter_output;
    gather += terms.gather_output;
    gradient += terms.gradient;
    forward += terms.forward;
    if (!changes) return;
    change += terms.change;
    forward += terms.forward_change;
  }
};

// One step of the chain. CHECKs that all products use equally many devices.
AutoddlPrediction PredictAutoddl(const std::vector<SbpProduct>& chain, const SbpNetwork& network);

}  // namespace rehearse

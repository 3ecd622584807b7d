// What a strategy decides about a GPT; the planner (workloads/gpt_planner.h) derives the rest.
//
// A strategy chooses a mesh, how the two operands of every matrix product lie on it, how activations lie
// between the products, whether weights are stored in shards that are gathered before use, and what
// runs asynchronously. Every collective of the step follows from these choices.
#pragma once

#include <cstdint>
#include <optional>
#include <string>

#include "workloads/layout.h"
#include "workloads/mesh.h"

namespace rehearse {

// X(m×k)·W(k×n) on the mesh: placements by axis, of rows S(0) and columns S(1).
struct MatmulLayouts {
  Layout x;
  Layout w;
};

struct GptLayouts {
  // The products, in the order of the network. The embedding is the product of one-hot rows and the
  // V×h table; the output layer uses the same table transposed.
  MatmulLayouts embedding;   // m×V · V×h
  MatmulLayouts qkv;         // m×h · h×3h
  MatmulLayouts projection;  // m×h · h×h
  MatmulLayouts up;          // m×h · h×4h
  MatmulLayouts down;        // m×4h · 4h×h
  MatmulLayouts output;      // m×h · h×V
  // How activations rest between the products, where the other work on them is done.
  Layout hidden;     // residual stream, norms: m×h
  Layout attention;  // Q, K, V (m×3h) and the core's output (m×h); columns are whole heads
  Layout mlp;        // m×4h
  Layout logits;     // m×V
};

// Weights stored in shards along one axis and gathered before use (ZeRO-3, FSDP, the depth axis of 4D).
struct GatherPolicy {
  uint32_t axis = 0;
  bool prefetch = false;       // gather the next product's weight during this one
  uint32_t cached_layers = 0;  // the first so many layers keep theirs until their backward is done
};

struct GptStrategy {
  std::string name;
  DeviceMesh mesh;
  GptLayouts layouts;
  std::optional<GatherPolicy> gather;
  std::vector<uint32_t> data_axes;            // axes that only split the batch
  bool asynchronous_input_gradient = false;   // all-reduce of dX beside the dW product
  bool asynchronous_weight_gradient = false;  // reduce-scatter of dW awaited at the end of backward
};

enum class Recomputation : uint8_t { kNone, kFull };

// The numbers of the run that are neither model nor strategy.
struct Training {
  uint64_t batch = 0;     // sequences a step, over all ranks
  uint64_t sequence = 0;  // tokens
  uint32_t micro_batches = 1;
  Recomputation recomputation = Recomputation::kFull;
  double Tokens() const { return static_cast<double>(batch) * static_cast<double>(sequence); }
};

}  // namespace rehearse

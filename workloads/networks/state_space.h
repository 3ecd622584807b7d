// State-space layers of Mamba-2 (Dao and Gu 2024, arXiv 2405.21060) as NVIDIA/Megatron-LM trains
// them (megatron/core/ssm/mamba_mixer.py), and models whose layers are each one of these, attention
// an MLP or experts (Nemotron-H: arXiv 2504.03624).
//
//   z, x, B, C, dt = W_in·norm(u)     2·inner + 2·groups·state + heads columns
//   x, B, C = silu(conv(x, B, C))     over each column's `conv` last rows, with bias
//   dt = softplus(dt + bias)
//   h = exp(dt·A)·h + dt·x·B^T        for each head; its group's B and C; A = -exp(a parameter)
//   y = norm(silu(z)·(h·C + D·x))     RMS norm of each group's columns, with gain
//   u + W_out·y
//
// Columns lie group by group (sim/schedule/state_space.h), so that a split over ranks gives each of
// them whole groups; Megatron-LM's ranks have the same part of z, x, B, C and dt each.
#pragma once

#include <cstdint>
#include <optional>
#include <string>

#include "sim/base/json_fields.h"
#include "sim/base/json_reader.h"
#include "workloads/networks/network.h"

namespace rehearse {

struct StateSpaceModel {
  // Megatron-Core's defaults (megatron/core/transformer/transformer_config.py, mamba_mixer.py).
  uint64_t state = 128;  // columns of B and of C
  uint64_t head = 64;    // columns of a head
  uint64_t groups = 8;   // of heads, which share B and C
  uint64_t heads = 0;    // 0: expand·hidden / head
  uint64_t expand = 2;
  uint64_t conv = 4;     // rows that a convolution sees
  uint64_t chunk = 128;  // rows that are computed as products at once

  uint64_t Heads(uint64_t hidden) const { return heads == 0 ? expand * hidden / head : heads; }
  uint64_t Inner(uint64_t hidden) const { return Heads(hidden) * head; }
  uint64_t InColumns(uint64_t hidden) const {
    return 2 * Inner(hidden) + 2 * groups * state + Heads(hidden);
  }
  uint64_t Mixed(uint64_t hidden) const { return Inner(hidden) + 2 * groups * state; }
  // Of one layer: the weights of both products, and what else is trained.
  double Weights(uint64_t hidden) const;
  double Vectors(uint64_t hidden) const;
};

// What a letter of a pattern of layers stands for, as in Megatron-LM
// (megatron/core/models/hybrid/hybrid_layer_allocation.py).
enum class LayerLetter : char {
  kStateSpace = 'M',
  kAttention = '*',
  kMlp = '-',
  kExperts = 'E',
};
uint32_t CountOf(const std::string& pattern, LayerLetter letter);
// The first that is none of them, if there is one.
std::optional<size_t> UnknownLetter(const std::string& pattern);

// From the norm of a layer's input to the product of what the state space gives; `sequence` is how
// many rows depend on each other.
uint32_t AddStateSpace(const StateSpaceModel& model, uint64_t sequence, uint32_t x,
                       Network* network, NetworkBuilder* builder);

const Fields<StateSpaceModel>& StateSpaceFields();
// Reads the layers' numbers, as changes to `preset` if there is one. Errors name the place.
StateSpaceModel ReadStateSpace(const JsonReader& object,
                               const std::optional<StateSpaceModel>& preset);
// What keeps a model of this hidden size from having such layers; empty if nothing does.
std::string WhyNot(const StateSpaceModel& model, uint64_t hidden);

}  // namespace rehearse

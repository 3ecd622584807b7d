// Transformer decoders by their numbers: GPT and Llama-like.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "sim/base/json_reader.h"
#include "sim/base/quantity.h"
#include "workloads/networks/latent_attention.h"
#include "workloads/networks/lora.h"
#include "workloads/networks/state_space.h"

namespace rehearse {

// Experts in place of the MLP: a router chooses `per_token` of `count` for each token. The choices
// are made up (sim/schedule/expert_routing.h).
struct ExpertModel {
  uint32_t count = 0;
  uint32_t per_token = 1;
  uint64_t hidden = 0;       // columns between the two matrices of an expert
  uint64_t shared = 0;       // columns of the expert that every token passes too; 0: none
  uint64_t latent = 0;       // columns that tokens have for their experts (LatentMoE); 0: all
  uint32_t first_dense = 0;  // this many of the first layers have an MLP
  uint32_t every = 1;        // the last of every so many layers has experts, the others an MLP
  // A token's choices lie in `limited_groups` of `groups` equal groups of experts.
  uint32_t groups = 1;
  uint32_t limited_groups = 1;
  double capacity = 0;   // choices that an expert takes, over an equal share; 0: all
  double imbalance = 1;  // of the busiest expert, over an equal share
  std::optional<uint32_t> seed = std::nullopt;  // which experts are busy; 1 if left open
  uint32_t balanced_over = 1;  // ranks on which busy ones are placed so that all have as much to do
  bool drawn_by_micro_batch = false;  // which they are changes with each; else all step
  bool sigmoid = false;               // the router's scores; else softmax
  double auxiliary = 0.01;            // weight of the loss that balances them
  // Both products have a bias and SwiGLU's inputs are clamped. It only takes time: backends do not
  // compute it.
  bool biased = false;

  bool IsIn(uint32_t layer) const { return layer >= first_dense && (layer + 1) % every == 0; }
  std::vector<double> RoutingAttributes() const;
};

// Where a layer's MLP gets its input from: from the sum after attention, or, so that both can be
// computed at the same time, from what attention gets it from (GPT-J, PaLM), or from a norm of that
// of its own (GPT-NeoX).
enum class ParallelBlocks : uint8_t { kNone, kOneNorm, kTwoNorms };

struct GptModel {
  std::string name;
  uint32_t layers = 0;
  uint64_t hidden = 0;
  uint32_t heads = 0;
  // It is padded, as Megatron-LM does; the embedding is tied to the output layer.
  uint64_t vocabulary = 51200;
  std::string source;  // of a preset

  // Whether it is Llama-like: RMS norms, SwiGLU, no biases, no dropout.
  bool llama = false;
  uint32_t groups = 0;  // groups of heads that share a key and a value; 0: each head has its own
  uint64_t feed_forward = 0;  // columns between the two matrices of the MLP; 0: 4·hidden
  bool tied = true;           // the embedding's table is also the output layer's
  uint64_t window = 0;        // tokens that a token sees, the last being itself; 0: all before it
  uint32_t global_every =
      0;  // the last of every so many layers sees all tokens before it; 0: none does
  uint64_t head_size = 0;      // 0: hidden / heads
  bool head_norms = false;     // RMS norms of each head's queries and keys, which only take time
  bool scaled_rotary = false;  // rotary embeddings scale what they turn (YaRN); it only takes time
  ParallelBlocks parallel = ParallelBlocks::kNone;
  std::optional<ExpertModel> experts = std::nullopt;

  // Tokens after the next one that are predicted too, each by a layer after the others and from
  // what the one before it knows (multi-token prediction, DeepSeek-V3, section 2.2). Losses have
  // the weight `ahead_weight`. With a pattern of layers there are those of `ahead_pattern` instead
  // of one layer. Shared: all have the first one's weights (Megatron-Core,
  // mtp_use_repeated_layer).
  uint32_t predict_ahead = 0;
  double ahead_weight = 0.3;
  std::string ahead_pattern = {};
  bool shares_ahead = false;
  std::optional<LatentAttention> latent = std::nullopt;  // in place of the usual attention
  std::optional<LoraAdapters> lora = std::nullopt;       // all else is then frozen

  // Llama-like models: MLPs and experts have a first matrix of half the columns and square a ReLU
  // (Nemotron); queries and keys are not rotated by their positions.
  bool squared_relu = false;
  bool rotary = true;
  // A letter for each layer, which is then one of attention, MLP, experts and a state space
  // (workloads/networks/state_space.h); empty: each has attention and an MLP or experts.
  std::string layer_pattern = {};
  std::optional<StateSpaceModel> mamba = std::nullopt;  // the numbers of state-space layers

  uint64_t HeadSize() const { return head_size == 0 ? hidden / heads : head_size; }
  uint64_t Groups() const { return groups == 0 ? heads : groups; }
  bool IsGated() const { return llama && !squared_relu; }
  uint64_t FeedForward() const { return feed_forward == 0 ? 4 * hidden : feed_forward; }
  bool HasAttention(uint32_t layer) const {
    return layer_pattern.empty() || Letters()[layer] == static_cast<char>(LayerLetter::kAttention);
  }
  uint64_t WindowOf(uint32_t layer) const {
    return global_every > 0 && (layer + 1) % global_every == 0 ? 0 : window;
  }
  // GPT: weights of the four matrices of every layer (12·h²), biases and norms (13·h), the
  // embedding (V·h) and the final norm (2·h). Position embeddings are not counted (s·h; a rotary or
  // learned one is below 0.1 %).
  double Parameters() const;
  double ActiveParameters() const;   // those that one token passes through
  double AdapterParameters() const;  // those of low-rank adapters, which Parameters() counts too
  // How many layers a token passes through of each kind, including those that predict further
  // ahead.
  uint32_t AttentionLayers() const;
  uint32_t MlpLayers() const;
  uint32_t ExpertLayers() const;
  uint32_t StateSpaceLayers() const { return CountOf(Letters(), LayerLetter::kStateSpace); }
  // The pattern of layers, with those that predict further ahead.
  std::string Letters() const;
  // This model with weights once where they are shared, to count them.
  GptModel WithoutRepeatedLayers() const;
};

// Floating-point operations of one step over all ranks, three times the forward pass; for experts,
// those of all choices, taken or not. For GPT as Narayanan et al. 2021, and the AxoNN paper after
// them, count them: 72·B·s·l·h²·(1 + s/6h + V/12lh). `tokens` is B·s. Recomputation is not included
// (Schedule::hardware_flops). Of models with a pattern of layers, as Megatron-LM counts them
// (hybrid_flops, megatron/training/training.py): attention cores by half, as their mask leaves it,
// and 7·inner·state for each token of a state space.
Flops ModelFlops(const GptModel& model, double tokens, uint64_t sequence);

const std::vector<GptModel>& KnownModels();  // sorted by parameters

// Reads the value of a scenario's "model": {"preset": "gpt-20b"} with changes, or all numbers
// (layers, hidden, heads, vocabulary; optional "style" "gpt" or "llama", "groups", "feed_forward",
// "tied"). Errors name the place; heads must divide hidden, groups the heads.
GptModel ReadModel(const JsonReader& object);
const ObjectShape& DecoderShape();

}  // namespace rehearse

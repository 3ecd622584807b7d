// The families of decoders that transformers have: what each is beside what its files say, and what
// is refused by name.
#pragma once

#include <cstdint>

#include <nlohmann/json.hpp>

#include "sim/base/json_reader.h"
#include "workloads/networks/hf_config.h"

namespace rehearse {

// What a family is, beside what its files say.
enum HfTrait : uint32_t {
  kGpt = 1U << 0,          // two matrices in an MLP; otherwise three, one of which is a gate
  kTied = 1U << 1,         // unless "tie_word_embeddings" says otherwise
  kHeadNorms = 1U << 2,    // norms of queries and keys
  kQueryBiases = 1U << 3,  // biases of queries, keys and values, which are left out
  kLayerNorms = 1U << 4,   // layer norms where ours are RMS norms
  kNoBiases = 1U << 5,     // none where ours of this style has them
  kParallel = 1U << 6,     // attention and MLP beside each other
  kMoreNorms = 1U << 7,    // norms behind attention and MLP, too
  kWindow = 1U << 8,       // "sliding_window" counts without a switch
  kExperts = 1U << 9,      // experts in place of MLPs
  kLatent = 1U << 10,      // latent attention, if "kv_lora_rank" is there
  kSigmoid = 1U << 11,     // the router's scores, unless the file says it
  kPositions = 1U << 12,   // a table of positions, which is not counted
  kBiasedExperts = 1U << 13,
  kSharedTwin = 1U << 14,   // every token also passes an expert like the others
  kInnerSizes = 1U << 16,   // says some sizes in objects of its own
  kMayBeDense = 1U << 15,   // has experts only if the file says so
  kStateSpaces = 1U << 17,  // each layer is one of Mamba-2, attention, MLP and experts
  kNoAttention = 1U << 18,  // all of them Mamba-2
};

// Of the class in transformers: what a file inside of another one need not say.
struct HfDefaults {
  int64_t layers = 0;
  int64_t hidden = 0;
  int64_t heads = 0;
  int64_t groups = 0;
  int64_t head = 0;  // also of a file that stands alone
  int64_t feed_forward = 0;
  int64_t vocabulary = 0;
  int64_t window = 0;  // also of a file that stands alone
};

// What is particular to one family.
using HfParticular = void (*)(HfConfig& config, nlohmann::ordered_json& keys);

struct HfFamily {
  const char* model_type = "";
  uint32_t traits = 0;
  int64_t global_every = 0;  // every so many layers sees all tokens, unless the file says it
  HfParticular particular = nullptr;
  HfDefaults defaults = {};

  bool Is(HfTrait trait) const { return (traits & trait) != 0; }
};

// Of the decoder, inside of `outer` or the whole of it. Throws Error for kinds that decoders here
// cannot be, and for unknown ones.
const HfFamily& HfFamilyOf(const JsonReader& root, const JsonReader& outer);

// The decoder inside of a model of images and text, or the whole.
JsonReader HfDecoderOf(const JsonReader& root);

}  // namespace rehearse

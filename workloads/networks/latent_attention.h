// Multi-head latent attention (DeepSeek-V2, arXiv 2405.04434, section 2.1; DeepSeek-V3, arXiv
// 2412.19437, section 2.1.1), as it is trained: keys and values come from one short vector per
// token, queries from another; a few columns of queries and keys carry the position, and those of
// the keys are the same for all heads.
//
//   q = W_uq·norm(W_dq·x)            heads × (head + rope)     without a query rank W_uq·x
//   (k, v) = W_ukv·norm(W_dkv·x)     heads × (head + value head)
//   r = W_r·x                        rope, after each k
//
// Where columns are split over ranks, the products down (W_dq, W_dkv, W_r) are done on all of them
// and those up head by head, as in Megatron-Core. Released code makes W_dkv and W_r one product; as
// two they make a layer of DeepSeek-V3 0.2 % longer.
#pragma once

#include <cstdint>
#include <optional>

#include "sim/base/json_fields.h"
#include "sim/base/json_reader.h"
#include "workloads/networks/network.h"

namespace rehearse {

struct LatentAttention {
  uint64_t query_rank = 0;  // columns of the queries' short vector; 0: queries come from the token
  uint64_t kv_rank = 0;
  uint64_t rope_head = 0;  // columns of a query and of a key that carry the position
  uint64_t head = 0;       // columns that do not
  uint64_t value_head = 0;

  uint64_t QuerySize() const { return head + rope_head; }
  // The weights of one layer, including the projection after the core; and the gains of norms.
  double Weights(uint64_t hidden, uint64_t heads) const;
  double Gains() const { return static_cast<double>(query_rank + kv_rank); }
};

// The core, and what makes its operands from x, for the heads of one layer; returns the core's
// node.
struct LatentCore {
  uint64_t heads = 0;
  uint64_t sequence = 0;
  uint64_t window = 0;  // 0: none
};
uint32_t AddLatentCore(const LatentAttention& latent, const LatentCore& core, uint32_t x,
                       Network* network, NetworkBuilder* builder);

const Fields<LatentAttention>& LatentFields();
// Reads latent attention, as changes to `preset` if there is one. Errors name the place.
LatentAttention ReadLatent(const JsonReader& object, const std::optional<LatentAttention>& preset);

}  // namespace rehearse

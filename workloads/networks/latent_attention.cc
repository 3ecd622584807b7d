#include "workloads/networks/latent_attention.h"

#include <string>

#include "sim/schedule/attention_part.h"

namespace rehearse {
namespace {

uint32_t Compress(uint32_t x, const std::string& name, uint64_t columns, Network* network,
                  NetworkBuilder* builder) {
  const uint32_t short_one =
      builder->Product(x, name + " down", columns, name + " compressed", MatrixRole::kWhole);
  const uint32_t y = builder->Map(NodeKind::kRmsNorm, {short_one}, name + " norm");
  network->nodes.back().vectors = {builder->AddVector(name + " norm gain", columns)};
  return y;
}

void SetHeads(uint64_t heads, NetworkNode* node) {
  node->units = heads;
  node->unit_name = "attention heads";
}

}  // namespace

double LatentAttention::Weights(uint64_t hidden, uint64_t heads) const {
  const auto h = static_cast<double>(hidden);
  const auto columns = static_cast<double>(heads * QuerySize());
  const auto short_query = static_cast<double>(query_rank);
  const auto short_kv = static_cast<double>(kv_rank);
  const double queries = query_rank == 0 ? h * columns : h * short_query + short_query * columns;
  return queries + h * (short_kv + static_cast<double>(rope_head)) +
         short_kv * static_cast<double>(heads * (head + value_head)) +
         static_cast<double>(heads * value_head) * h;
}

uint32_t AddLatentCore(const LatentAttention& latent, const LatentCore& core, uint32_t x,
                       Network* network, NetworkBuilder* builder) {
  const uint64_t heads = core.heads;
  const uint32_t of_query =
      latent.query_rank == 0 ? x : Compress(x, "query", latent.query_rank, network, builder);
  const uint32_t q =
      builder->Product(of_query, "query up", heads * latent.QuerySize(), "q", MatrixRole::kUp);
  SetHeads(heads, &network->nodes.back());
  const uint32_t of_kv = Compress(x, "kv", latent.kv_rank, network, builder);
  const uint32_t kv = builder->Product(of_kv, "kv up", heads * (latent.head + latent.value_head),
                                       "k, v", MatrixRole::kUp);
  SetHeads(heads, &network->nodes.back());
  const uint32_t r =
      builder->Product(x, "key position", latent.rope_head, "key position", MatrixRole::kWhole);

  const auto number = [](uint64_t value) { return static_cast<double>(value); };
  const uint32_t joined =
      builder->Map(NodeKind::kJoinHeads, {q, kv, r}, "q, k, v", "join q, k, v", "split d q, k, v");
  NetworkNode& join = network->nodes.back();
  join.columns = heads * (2 * latent.QuerySize() + latent.value_head);
  join.attributes = {number(heads), number(latent.QuerySize()), number(latent.rope_head),
                     number(latent.value_head)};
  SetHeads(heads, &join);

  const uint32_t y = builder->Map(NodeKind::kAttention, {joined}, "attention");
  NetworkNode& attention = network->nodes.back();
  attention.columns = heads * latent.value_head;
  const bool has_window = core.window > 0 && core.window < core.sequence;
  attention.attributes.resize(kAttentionValueSize + size_t{1});
  attention.attributes[kAttentionSequence] = number(core.sequence);
  attention.attributes[kAttentionGroups] = number(heads);
  attention.attributes[kAttentionHeadsOfGroup] = 1;
  attention.attributes[kAttentionHeadSize] = number(latent.QuerySize());
  attention.attributes[kAttentionCausal] = 1;
  attention.attributes[kAttentionWindow] = has_window ? number(core.window) : 0;
  attention.attributes[kAttentionParts] = 1;
  attention.attributes[kAttentionStep] = -1;
  attention.attributes[kAttentionValueSize] = number(latent.value_head);
  attention.whole_samples = true;
  attention.rotary = (heads + 1) * latent.rope_head;
  SetHeads(heads, &attention);
  return y;
}

const Fields<LatentAttention>& LatentFields() {
  using Latent = LatentAttention;
  constexpr int64_t kMostColumns = 1 << 20;
  const auto own = [] { return Optional("the preset's; without one it must be given"); };
  static const Fields<Latent> fields(
      "model: decoder: latent",
      "Multi-head latent attention: keys and values are made from one short vector per token.",
      {{"query_rank", &Latent::query_rank, AWhole(0, kMostColumns), OrUsual("the preset's, or "),
        "columns of the short vector that queries are made from; 0: from the token itself", "1536"},
       {"kv_rank", &Latent::kv_rank, AWhole(1, kMostColumns), own(),
        "columns of the short vector that keys and values are made from", "512"},
       {"rope_head", &Latent::rope_head, AWhole(1, kMostColumns), own(),
        "columns of a query and a key that carry the position", "64"},
       {"head", &Latent::head, AWhole(1, kMostColumns), own(),
        "columns of a query and a key that do not carry it", "128"},
       {"value_head", &Latent::value_head, AWhole(1, kMostColumns),
        Optional("the preset's, or as head"), "columns of a value", "128"}});
  return fields;
}

LatentAttention ReadLatent(const JsonReader& object, const std::optional<LatentAttention>& preset) {
  const JsonReader reader = object.As(LatentFields().shape());
  LatentAttention latent = preset.value_or(LatentAttention());
  LatentFields().ReadInto(reader, &latent);
  if (preset) return latent;
  MustHave(reader, {"kv_rank", "rope_head", "head"});
  if (!reader.Has("value_head")) latent.value_head = latent.head;
  return latent;
}

}  // namespace rehearse

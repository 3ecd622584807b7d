#include "tools/foreign/runs/maxtext/maxtext_import.h"

#include <algorithm>
#include <cmath>
#include <iterator>
#include <optional>
#include <vector>

#include <fmt/format.h>
#include <nlohmann/json.hpp>

#include "sim/base/error.h"
#include "sim/base/json_document.h"
#include "sim/base/known_names.h"
#include "tools/foreign/machines/infragraph/yaml_text.h"
#include "tools/foreign/runs/torchtitan/job_config.h"

namespace rehearse {
namespace {

constexpr int64_t kMostMaxTextLayers = 10000;
constexpr int64_t kMostMaxTextColumns = 1 << 24;

// Its kinds of layers, and every how many layers one sees all tokens where the others have windows.
struct LayerKind {
  const char* name = "";
  int64_t global_every = 0;
};
constexpr LayerKind kLayerKinds[] = {{"default"}, {"llama2"},    {"mistral"},   {"mixtral"},
                                     {"gemma"},   {"gemma2", 2}, {"qwen2"},     {"gemma3", 6},
                                     {"qwen3"},   {"olmo3", 4},  {"qwen3_moe"}, {"gpt_oss", 2},
                                     {"gpt3"},    {"llama4", 4}, {"deepseek"}};

const LayerKind& KindOfLayers(JobConfig& keys) {
  const std::string name = keys.TextOr({"decoder_block"}, "llama2");
  std::vector<std::string> names;
  for (const LayerKind& kind : kLayerKinds) {
    if (name == kind.name) return kind;
    names.emplace_back(kind.name);
  }
  keys.Fail({"decoder_block"}, fmt::format("found \"{}\", layers that are not supported{}", name,
                                           KnownNames(name, names)));
}

void SetExpertsOfMaxText(JobConfig& keys, ScenarioDraft& draft, int64_t columns) {
  const int64_t count = keys.WholeOr({"num_experts"}, 1, 1 << 16, 1);
  const int64_t chosen = keys.WholeOr({"num_experts_per_tok"}, 1, 1 << 16, 1);
  const int64_t width = keys.WholeOr({"base_moe_mlp_dim"}, -1, kMostMaxTextColumns, -1);
  const int64_t shared = keys.WholeOr({"shared_experts"}, 0, 1 << 10, 0);
  const int64_t dense = keys.WholeOr({"first_num_dense_layers"}, 0, kMostMaxTextLayers, 0);
  const int64_t every = keys.WholeOr({"interleave_moe_layer_step"}, 1, kMostMaxTextLayers, 1);
  const std::string score = keys.TextOr({"routed_score_func"}, "");
  if (count == 1) return;
  const int64_t hidden = width > 0 ? width : columns;
  draft.Set("/model/experts", nlohmann::ordered_json::object(), keys.OriginOf({"num_experts"}));
  draft.Set("/model/experts/count", count, keys.OriginOf({"num_experts"}));
  draft.Set("/model/experts/per_token", chosen, keys.OriginOf({"num_experts_per_tok"}));
  draft.Set("/model/experts/hidden", hidden, keys.OriginOf({"base_moe_mlp_dim"}));
  if (shared > 0) draft.Set("/model/experts/shared", shared * hidden);
  if (dense > 0) draft.Set("/model/experts/first_dense", dense);
  if (every > 1) draft.Set("/model/experts/every", every);
  if (score == "sigmoid") draft.Set("/model/experts/router", "sigmoid");
}

void SetModelOfMaxText(JobConfig& keys, ScenarioDraft& draft) {
  const LayerKind& kind = KindOfLayers(keys);
  if (keys.WholeOr({"global_parameter_scale"}, 1, 1 << 20, 1) != 1)
    keys.Fail({"global_parameter_scale"}, "expected 1: scales of a model are not supported");
  const int64_t hidden = keys.WholeOr({"base_emb_dim"}, 1, 1 << 20, 2048);
  const int64_t heads = keys.WholeOr({"base_num_query_heads"}, 1, 1 << 16, 16);
  const int64_t groups = keys.WholeOr({"base_num_kv_heads"}, 1, 1 << 16, heads);
  const int64_t columns = keys.WholeOr({"base_mlp_dim"}, 1, kMostMaxTextColumns, 7168);
  const bool is_latent = keys.TextOr({"attention_type"}, "global") == "mla";
  const size_t activations = std::max<size_t>(keys.Texts({"mlp_activations"}).size(), 1);
  const bool has_gate = activations > 1 || !keys.Has({"mlp_activations"});
  draft.Set("/model/style", has_gate ? "llama" : "gpt", keys.OriginOf({"mlp_activations"}));
  // Its layers of Gemma 2 are pairs, the first of which has a window.
  const int64_t of_block = std::string_view(kind.name) == "gemma2" ? 2 : 1;
  draft.Set("/model/layers",
            of_block * keys.WholeOr({"base_num_decoder_layers"}, 1, kMostMaxTextLayers, 16),
            keys.OriginOf({"base_num_decoder_layers"}));
  draft.Set("/model/hidden", hidden, keys.OriginOf({"base_emb_dim"}));
  draft.Set("/model/heads", heads, keys.OriginOf({"base_num_query_heads"}));
  draft.Set("/model/feed_forward", columns, keys.OriginOf({"base_mlp_dim"}));
  draft.Set("/model/vocabulary", keys.WholeOr({"vocab_size"}, 1, kMostMaxTextColumns, 32000),
            keys.OriginOf({"vocab_size"}));
  draft.Set("/model/tied", keys.BoolOr({"logits_via_embedding"}, false));
  const int64_t head = keys.WholeOr({"head_dim"}, 1, 1 << 16, 128);
  const int64_t query = keys.WholeOr({"q_lora_rank"}, 0, 1 << 20, 0);
  const int64_t rank = keys.WholeOr({"kv_lora_rank"}, 1, 1 << 20, 512);
  const int64_t nope = keys.WholeOr({"qk_nope_head_dim"}, 1, 1 << 20, 128);
  const int64_t rope = keys.WholeOr({"qk_rope_head_dim"}, 1, 1 << 20, 64);
  const int64_t value = keys.WholeOr({"v_head_dim"}, 1, 1 << 20, 128);
  if (is_latent) {
    draft.Set("/model/latent",
              {{"query_rank", query},
               {"kv_rank", rank},
               {"rope_head", rope},
               {"head", nope},
               {"value_head", value}},
              keys.OriginOf({"attention_type"}));
  } else {
    if (groups != heads) draft.Set("/model/groups", groups, keys.OriginOf({"base_num_kv_heads"}));
    draft.Set("/model/head_size", head, keys.OriginOf({"head_dim"}));
  }
  const int64_t window =
      keys.WholeOr({"sliding_window_size", "chunk_attn_window_size"}, 0, kMostMaxTextColumns, 0);
  if (window > 0) {
    draft.Set("/model/window", window, keys.OriginOf({"sliding_window_size"}));
    if (kind.global_every > 0) draft.Set("/model/global_every", kind.global_every);
  }
  for (const char* name : {"use_indexer", "use_sparse_indexer"}) {
    if (keys.BoolOr({name}, false)) keys.Fail({name}, "its sparse attention is not supported");
  }
  if (keys.BoolOr({"use_qk_norm"}, false) && has_gate) {
    draft.Set("/model/head_norms", true, keys.OriginOf({"use_qk_norm"}));
    draft.Remark("use_qk_norm: norms of queries and keys only take time");
  }
  if (keys.WholeOr({"mtp_num_layers"}, 0, 64, 0) > 0)
    draft.Remark("not supported: mtp_num_layers; the layers that predict ahead are left out");
  SetExpertsOfMaxText(keys, draft, columns);
}

// The mesh: each axis is a product of its part in a slice and of that over slices.
struct MaxTextMesh {
  uint64_t data = 1;
  uint64_t shard = 1;
  uint64_t tensor = 1;
  uint64_t context = 1;
  uint64_t expert = 1;
  uint64_t ranks = 1;
  bool splits_sequence = false;  // tensor ranks also share the sequence where they can
};

struct MaxTextAxis {
  const char* name;
  uint64_t MaxTextMesh::*size;
};
constexpr MaxTextAxis kAxes[] = {{"data", &MaxTextMesh::data},
                                 {"fsdp", &MaxTextMesh::shard},
                                 {"fsdp_transpose", &MaxTextMesh::shard},
                                 {"tensor", &MaxTextMesh::tensor},
                                 {"tensor_sequence", &MaxTextMesh::tensor},
                                 {"sequence", &MaxTextMesh::context},
                                 {"context", &MaxTextMesh::context},
                                 {"expert", &MaxTextMesh::expert}};

MaxTextMesh ReadMesh(JobConfig& keys, ScenarioDraft& draft, const std::string& cluster) {
  MaxTextMesh mesh;
  uint64_t product = 1;
  uint64_t MaxTextMesh::*open = nullptr;  // the axis that takes what is left
  bool is_given = false;
  const auto slices = static_cast<uint64_t>(
      std::max<int64_t>(keys.WholeOr({"num_slices"}, -1, kMostDegree, -1), 1));
  for (const char* where : {"ici", "dcn"}) {
    for (const MaxTextAxis& axis : kAxes) {
      const std::string name = fmt::format("{}_{}_parallelism", where, axis.name);
      const bool is_inside = std::string_view(where) == "ici";
      const bool is_usual_rest = std::string_view(axis.name) == (is_inside ? "fsdp" : "data");
      const int64_t usual = is_usual_rest ? -1 : 1;
      const int64_t size = keys.WholeOr({name.c_str()}, -1, kMostDegree, usual);
      if (size == 0) keys.Fail({name.c_str()}, "found 0, expected -1 or at least 1");
      if (size > 1 && std::string_view(axis.name) == "tensor_sequence") mesh.splits_sequence = true;
      if (size > 0) {
        mesh.*axis.size *= static_cast<uint64_t>(size);
        product = std::min(product * static_cast<uint64_t>(size), uint64_t{1} << 40);
        is_given = is_given || size > 1;
      } else if (is_inside) {
        open = axis.size;
      } else if (!is_inside) {
        mesh.*axis.size *= slices;  // -1 is as many as there are: one, unless said
        product = std::min(product * slices, uint64_t{1} << 40);
      }
    }
  }
  for (const char* name : {"ici_pipeline_parallelism", "dcn_pipeline_parallelism"}) {
    if (keys.WholeOr({name}, -1, kMostDegree, 1) != 1)
      keys.Fail({name}, "pipelines of MaxText are not imported; expected 1");
  }
  const ImportedMachine machine = draft.PutOnMachine(
      cluster, open == nullptr && is_given ? std::optional<uint64_t>(product) : std::nullopt,
      {"the product of the mesh", 0}, "--cluster: -1 takes all ranks that are left");
  if (machine.ranks % product != 0 || (open == nullptr && machine.ranks != product)) {
    draft.Fail({}, fmt::format("the mesh of {} does not fit {} ranks ({})", product, machine.ranks,
                               machine.from.name));
  }
  if (open != nullptr) mesh.*open *= machine.ranks / product;
  mesh.ranks = machine.ranks;
  if (machine.spares) draft.Set("/placement", "block");
  return mesh;
}

void SetStepOfMaxText(JobConfig& keys, ScenarioDraft& draft, const MaxTextMesh& mesh) {
  const JobConfig::Names batch_names = {"per_device_batch_size"};
  const double of_device = keys.Has(batch_names) ? keys.At(batch_names).Number(1e-6, 1 << 20) : 12;
  const int64_t passes = keys.WholeOr({"gradient_accumulation_steps"}, 1, 1 << 20, 1);
  const double at_once = of_device * static_cast<double>(mesh.ranks);
  const auto batch = static_cast<uint64_t>(std::llround(at_once));
  if (batch == 0 || std::abs(at_once - static_cast<double>(batch)) > 1e-6 * at_once) {
    draft.Fail(keys.OriginOf(batch_names),
               fmt::format("{} sequences on each of {} devices are no whole number", of_device,
                           mesh.ranks));
  }
  draft.Set("/training/batch", batch * static_cast<uint64_t>(passes), keys.OriginOf(batch_names));
  draft.Set("/training/micro_batches", passes, keys.OriginOf({"gradient_accumulation_steps"}));
  draft.Set("/training/sequence", keys.WholeOr({"max_target_length"}, 1, int64_t{1} << 24, 2048),
            keys.OriginOf({"max_target_length"}));
  const std::string policy = keys.TextOr({"remat_policy"}, "full");
  if (policy.starts_with("minimal")) {
    draft.Set("/training/recomputation", "selective", keys.OriginOf({"remat_policy"}));
    draft.Set("/training/recomputed_ops", {"activations", "norms"});
  } else {
    draft.Set("/training/recomputation", "full", keys.OriginOf({"remat_policy"}));
    if (policy != "full")
      draft.Remark(fmt::format("not supported: remat_policy {}; played as full", policy));
  }
  const std::string narrow = keys.TextOr({"quantization"}, "");
  if (narrow.find("fp8") != std::string::npos) {
    draft.Set("/training/products", "fp8", keys.OriginOf({"quantization"}));
  } else if (!narrow.empty()) {
    draft.Remark(fmt::format("not supported: quantization {}; products have 16 bits", narrow));
  }
  const std::string attention = keys.TextOr({"attention"}, "autoselected");
  if (attention == "dot_product") draft.Set("/training/attention", "unfused");
  const std::string optimizer = keys.TextOr({"opt_type"}, "adamw");
  if (!optimizer.starts_with("adam"))
    draft.Remark(fmt::format("not supported: opt_type {}; played as Adam", optimizer));
}

void SetStrategyOfMaxText(ScenarioDraft& draft, const MaxTextMesh& mesh) {
  draft.Set("/strategy/kind", "combined");
  draft.Set("/strategy/tensor", mesh.tensor);
  if (mesh.tensor > 1) {
    draft.Set("/strategy/sequence_parallel", mesh.splits_sequence);
    draft.Set("/strategy/overlap_all_reduce", false);
  }
  if (mesh.context > 1) draft.Set("/strategy/context", mesh.context);
  // Weights are also spread over the ranks that share the experts.
  draft.Set("/strategy/shard", mesh.shard * mesh.expert);
  if (mesh.data > 1) draft.Set("/strategy/replicas", mesh.data);
  if (mesh.expert > 1) draft.Set("/strategy/expert", mesh.expert);
  draft.Set("/strategy/zero", 3);
}

std::string MaxTextKeysOf(const RunSettings& settings) {
  nlohmann::json keys = nlohmann::json::object();
  for (const RunSetting& setting : settings) {
    keys[setting.name] = nlohmann::json::accept(setting.value)
                             ? nlohmann::json::parse(setting.value)
                             : nlohmann::json(setting.value);
  }
  return keys.dump(-1, ' ', false, nlohmann::json::error_handler_t::replace);
}

// Python's True and 32_000, which YAML 1.2 has not, as YAML has them.
std::string WithoutPython(std::string_view text) {
  std::string result;
  for (size_t begin = 0; begin < text.size();) {
    const size_t end = std::min(text.find('\n', begin), text.size());
    std::string line(text.substr(begin, end - begin));
    begin = end + 1;
    const size_t colon = line.find(": ");
    const size_t first =
        colon == std::string::npos ? colon : line.find_first_not_of(' ', colon + 1);
    if (first != std::string::npos) {
      const size_t last = std::min(line.find_first_of(" #\r", first), line.size());
      std::string value = line.substr(first, last - first);
      if (value == "True" || value == "False")
        value = value == "True" ? "true" : "false";
      else if (value.find_first_not_of("0123456789_") == std::string::npos)
        std::erase(value, '_');
      line.replace(first, last - first, value);
    }
    result += line + "\n";
  }
  return result;
}

}  // namespace

ImportedScenario ImportMaxText(std::string_view text, const std::string& file,
                               const std::string& cluster, const RunSettings& settings) {
  ScenarioDraft draft(file);
  const JsonDocument document = ReadYaml(WithoutPython(text), draft.file());
  const JsonDocument overrides = JsonDocument::FromText(MaxTextKeysOf(settings), "--set");
  if (!document.Root().IsObject())
    document.Root().Expected("settings of MaxText, such as base_emb_dim: 4096");
  JobConfig keys(document.Root(), overrides.Root());
  draft.Set("/software", "maxtext");
  const MaxTextMesh mesh = ReadMesh(keys, draft, cluster);
  SetModelOfMaxText(keys, draft);
  SetStepOfMaxText(keys, draft, mesh);
  SetStrategyOfMaxText(draft, mesh);
  std::vector<std::string> unknown;
  for (const std::string& key : keys.Unread()) {
    constexpr std::string_view kSizes[] = {"base_", "num_", "ici_", "dcn_", "engram", "gdn_"};
    const bool sizes = std::any_of(std::begin(kSizes), std::end(kSizes),
                                   [&](std::string_view begin) { return key.starts_with(begin); });
    if (!sizes || key == "base_output_directory" || key.starts_with("num_epoch")) continue;
    const nlohmann::json& value = overrides.Root().Has(key) ? overrides.Root().At(key).value()
                                                            : document.Root().At(key).value();
    const bool says_something = value.is_number() && value != 0 && value != 1 && value != -1;
    if (says_something) unknown.push_back(key);
  }
  draft.RemarkOnUnknown(unknown);
  return draft.Finish();
}

}  // namespace rehearse

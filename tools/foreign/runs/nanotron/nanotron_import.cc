#include "tools/foreign/runs/nanotron/nanotron_import.h"

#include <algorithm>
#include <iterator>
#include <utility>
#include <vector>

#include <fmt/format.h>
#include <nlohmann/json.hpp>

#include "sim/base/error.h"
#include "sim/base/json_document.h"
#include "sim/base/json_reader.h"
#include "tools/foreign/machines/infragraph/yaml_text.h"
#include "workloads/networks/hf_model.h"

namespace rehearse {
namespace {

// The keys of one of its tables; what is null is not given.
class NanotronTable {
 public:
  NanotronTable(const JsonReader& root, const std::string& name)
      : table_(root.At(name)), name_(name) {
    if (!table_.IsObject()) table_.Expected(fmt::format("the keys of {}", name));
  }

  bool Has(const char* key) const { return table_.Has(key) && !table_.At(key).value().is_null(); }
  JsonReader At(const char* key) const { return table_.At(key); }
  uint64_t WholeOr(const char* key, int64_t most, uint64_t otherwise) const {
    return Has(key) ? static_cast<uint64_t>(At(key).Integer(1, most)) : otherwise;
  }
  bool BoolOr(const char* key, bool otherwise) const {
    return Has(key) ? At(key).Bool() : otherwise;
  }
  std::string TextOr(const char* key, const std::string& otherwise) const {
    return Has(key) ? At(key).String() : otherwise;
  }
  Origin OriginOf(const char* key) const {
    return {name_ + "." + key, table_.Has(key) ? table_.At(key).place().line : 0};
  }
  Degree DegreeOf(const char* key) const { return {WholeOr(key, kMostDegree, 1), OriginOf(key)}; }

 private:
  JsonReader table_;
  std::string name_;
};

bool IsNanotronExpert(const nlohmann::json& config) {
  return config.contains("moe_config") && config["moe_config"].is_object();
}

// Its model_config with the names that Hugging Face has for what it calls otherwise.
nlohmann::json HfKeysOf(const JsonReader& table) {
  nlohmann::json config = table.value();
  for (auto key = config.begin(); key != config.end();)
    key = key->is_null() ? config.erase(key) : std::next(key);
  for (const auto& [name, value] : config.items()) {
    const bool is_kind = name.starts_with("is_") && name.ends_with("_config") && value == true;
    if (is_kind && name != "is_llama_config" && name != "is_qwen2_config" &&
        name != "is_starcoder2_config") {
      table.At(name).Fail(
          "its layers are not supported; expected is_llama_config, "
          "is_qwen2_config or is_starcoder2_config");
    }
  }
  const bool has_experts = IsNanotronExpert(config);
  const bool is_starcoder = config.value("is_starcoder2_config", nlohmann::json(false)) == true;
  config["model_type"] = has_experts ? "qwen3_moe" : is_starcoder ? "starcoder2" : "llama";
  if (!has_experts) return config;
  constexpr std::pair<const char*, const char*> kExpertNames[] = {
      {"num_experts", "num_experts"},
      {"top_k", "num_experts_per_tok"},
      {"moe_intermediate_size", "moe_intermediate_size"}};
  const nlohmann::json experts = std::move(config["moe_config"]);
  config.erase("moe_config");
  constexpr int kUsual[] = {8, 2, 1408};
  for (size_t i = 0; i < std::size(kExpertNames); ++i)
    config[kExpertNames[i].second] =
        experts.value(kExpertNames[i].first, nlohmann::json(kUsual[i]));
  if (experts.value("layers", nlohmann::json::array({-1})) != nlohmann::json::array({-1}))
    table.At("moe_config").Fail("layers: experts in some layers only are not supported");
  if (experts.value("enable_shared_expert", nlohmann::json(false)) == true) {
    config["model_type"] = "qwen2_moe";
    config["shared_expert_intermediate_size"] =
        experts.value("shared_expert_intermediate_size", nlohmann::json(5632));
  }
  return config;
}

void SetModelOfNanotron(const NanotronTable& model, ScenarioDraft* draft) {
  const JsonReader config = model.At("model_config");
  if (!config.IsObject()) config.Expected("the model's keys, such as hidden_size");
  const JsonDocument document = JsonDocument::FromValue(HfKeysOf(config), config.place());
  const HfModel read = ReadHfConfig(document.Root());
  for (const std::string& remark : read.remarks) {
    const bool is_own = remark.find("not understood") != std::string::npos;
    if (!is_own) draft->Remark(remark);
  }
  draft->Set("/model", read.keys, model.OriginOf("model_config"));
}

struct NanotronRun {
  Degree data;
  Degree tensor;
  Degree stages;
  Degree context;
  Degree expert;
};

void SetStepOfNanotron(const NanotronTable& tokens, const NanotronTable& parallelism,
                       const NanotronTable& optimizer, const NanotronRun& run,
                       ScenarioDraft* draft) {
  constexpr int64_t kMostOfRank = 1 << 20;
  const uint64_t at_once = tokens.WholeOr("micro_batch_size", kMostOfRank, 1);
  const uint64_t passes = tokens.WholeOr("batch_accumulation_per_replica", kMostOfRank, 1);
  draft->Set("/training/batch", at_once * passes * run.data.value,
             tokens.OriginOf("micro_batch_size"));
  draft->Set("/training/micro_batches", passes, tokens.OriginOf("batch_accumulation_per_replica"));
  draft->Set("/training/sequence", tokens.At("sequence_length").Integer(1, int64_t{1} << 24),
             tokens.OriginOf("sequence_length"));
  draft->Set("/training/recomputation",
             parallelism.BoolOr("recompute_layer", false) ? "full" : "none",
             parallelism.OriginOf("recompute_layer"));
  draft->Set("/training/gradients",
             optimizer.BoolOr("accumulate_grad_in_fp32", true) ? "fp32" : "bf16",
             optimizer.OriginOf("accumulate_grad_in_fp32"));
}

void SetStrategyOfNanotron(const NanotronTable& parallelism, const NanotronTable& optimizer,
                           const NanotronRun& run, bool has_experts, ScenarioDraft* draft) {
  const std::vector<std::string> modes = {"ALL_REDUCE", "REDUCE_SCATTER"};
  const std::vector<std::string> small = {"all_reduce", "reduce_scatter"};
  bool is_sequence = false;
  if (parallelism.Has("tp_mode")) {
    const JsonReader mode = parallelism.At("tp_mode");
    const auto known = std::find(small.begin(), small.end(), mode.String());
    is_sequence = (known != small.end() ? static_cast<size_t>(known - small.begin())
                                        : mode.Choice(modes)) == 1;
  }
  const auto zero = optimizer.Has("zero_stage") ? optimizer.At("zero_stage").Integer(0, 3) : 0;
  if (zero > 1) draft->Fail(optimizer.OriginOf("zero_stage"), "expected 0 or 1, as nanotron has");
  const bool is_plain = run.context.value == 1 && !has_experts;
  draft->Set("/strategy/kind", is_plain ? "megatron" : "combined");
  draft->Set("/strategy/tensor", run.tensor.value, run.tensor.from);
  if (run.context.value > 1) draft->Set("/strategy/context", run.context.value, run.context.from);
  const bool is_split = !is_plain && zero > 0;
  draft->Set(is_split ? "/strategy/shard" : "/strategy/data", run.data.value, run.data.from);
  if (is_plain) {
    draft->Set("/strategy/distributed_optimizer", zero == 1, optimizer.OriginOf("zero_stage"));
  } else {
    draft->Set("/strategy/zero", zero, optimizer.OriginOf("zero_stage"));
  }
  if (run.expert.value > 1) draft->Set("/strategy/expert", run.expert.value, run.expert.from);
  draft->Set("/strategy/sequence_parallel", is_sequence, parallelism.OriginOf("tp_mode"));
  draft->Set("/strategy/overlap_all_reduce",
             parallelism.BoolOr("tp_linear_async_communication", false),
             parallelism.OriginOf("tp_linear_async_communication"));
  draft->Set("/strategy/overlap_gradients", true);  // PyTorch's DDP sums them as they come
  if (run.stages.value == 1) return;
  const std::string engine = parallelism.TextOr("pp_engine", "afab");
  if (engine != "1f1b" && engine != "afab") {
    draft->Fail(parallelism.OriginOf("pp_engine"),
                fmt::format("found \"{}\", expected 1f1b or afab", engine));
  }
  draft->Set("/pipeline", nlohmann::ordered_json::object(), run.stages.from);
  draft->Set("/pipeline/stages", run.stages.value, run.stages.from);
  draft->Set("/pipeline/schedule", engine == "afab" ? "gpipe" : "1f1b",
             parallelism.OriginOf("pp_engine"));
}

}  // namespace

ImportedScenario ImportNanotron(std::string_view text, const std::string& file,
                                const std::string& cluster, const RunSettings& settings) {
  ScenarioDraft draft(file);
  JsonDocument document = ReadYaml(text, draft.file());
  for (const RunSetting& setting : settings) document.Set(setting.name + "=" + setting.value);
  const JsonReader root = document.Root();
  if (!root.IsObject()) root.Expected("a configuration of nanotron, with model and parallelism");
  const NanotronTable model(root, "model");
  const NanotronTable parallelism(root, "parallelism");
  const NanotronTable tokens(root, "tokens");
  const NanotronTable optimizer(root, "optimizer");
  NanotronRun run = {parallelism.DegreeOf("dp"), parallelism.DegreeOf("tp"),
                     parallelism.DegreeOf("pp"), parallelism.DegreeOf("context_parallel_size"),
                     parallelism.DegreeOf("expert_parallel_size")};
  uint64_t ranks = 1;  // each factor is small
  for (const Degree& degree : {run.data, run.tensor, run.stages, run.context})
    ranks = std::min(ranks * degree.value, uint64_t{1} << 40);
  const ImportedMachine machine = draft.PutOnMachine(
      cluster, ranks, {"parallelism.dp x tp x pp x context_parallel_size", 0}, "");
  run.data.value = RanksLeft(draft, machine, {run.tensor, run.stages, run.context});
  SetModelOfNanotron(model, &draft);
  SetStepOfNanotron(tokens, parallelism, optimizer, run, &draft);
  SetStrategyOfNanotron(parallelism, optimizer, run,
                        IsNanotronExpert(model.At("model_config").value()), &draft);
  if (machine.spares) draft.Set("/placement", "block");
  return draft.Finish();
}

}  // namespace rehearse

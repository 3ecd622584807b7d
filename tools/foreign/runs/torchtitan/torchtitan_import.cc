#include "tools/foreign/runs/torchtitan/torchtitan_import.h"

#include <algorithm>
#include <charconv>
#include <optional>
#include <vector>

#include <fmt/format.h>

#include "sim/base/error.h"
#include "sim/base/json_document.h"
#include "sim/base/json_parse.h"
#include "sim/base/known_names.h"
#include "tools/foreign/runs/model_names.h"
#include "tools/foreign/runs/torchtitan/job_config.h"
#include "tools/foreign/runs/torchtitan/python_registry.h"
#include "tools/foreign/runs/torchtitan/toml_text.h"
#include "tools/foreign/runs/torchtitan/torchtitan_flavors.h"
#include "workloads/networks/model.h"

namespace rehearse {
namespace {

using OrderedJson = nlohmann::ordered_json;

struct JobDegrees {
  Degree replicas;
  Degree shard;
  Degree tensor;
  Degree context;
  Degree stages;
};

Degree DegreeOf(JobConfig& job, JobConfig::Names names) {
  return {static_cast<uint64_t>(job.WholeOr(names, 1, kMostDegree, 1)), job.OriginOf(names)};
}

bool BeginsWithOne(std::string_view key, std::initializer_list<std::string_view> parts) {
  return std::any_of(parts.begin(), parts.end(),
                     [&](std::string_view part) { return key.starts_with(part); });
}

// ---- the model ----------------------------------------------------------------------------------

// Returns how many layers it has.
int64_t SetModel(JobConfig& job, ScenarioDraft& draft) {
  const JobConfig::Names names = {"model.name"};
  const JobConfig::Names flavor_names = {"model.flavor"};
  const std::string name = job.TextOr(names, "llama3");
  const std::string flavor = job.TextOr(flavor_names, "debugmodel");
  std::vector<std::string> models;
  std::vector<std::string> flavors;
  for (const TorchtitanFlavor& known : TorchtitanFlavors()) {
    if (std::find(models.begin(), models.end(), known.model) == models.end())
      models.emplace_back(known.model);
    if (name != known.model) continue;
    flavors.emplace_back(known.flavor);
    if (flavor != known.flavor) continue;
    draft.Set("/model", OrderedJson::parse(known.keys), job.OriginOf(flavor_names));
    if (!draft.json()["model"].contains("preset"))
      draft.Set("/model/name", fmt::format("{}-{}", name, flavor));
    if (*known.remark != '\0') draft.Remark(fmt::format("{} {}: {}", name, flavor, known.remark));
    const JsonDocument model =
        JsonDocument::FromText(known.keys, fmt::format("{} {}", name, flavor));
    return ReadModel(model.Root()).layers;
  }
  if (flavors.empty())
    job.Fail(names, fmt::format("found {}{}", QuotedJson(name), KnownNames(name, models)));
  job.Fail(flavor_names,
           fmt::format("found {}{}", QuotedJson(flavor), KnownNames(flavor, flavors)));
}

// ---- the mesh -----------------------------------------------------------------------------------

// All ranks, or the limit if the product is more.
uint64_t ProductOf(const JobDegrees& degrees) {
  uint64_t product = 1;
  for (const Degree* degree :
       {&degrees.replicas, &degrees.shard, &degrees.tensor, &degrees.context, &degrees.stages})
    product = std::min(product * degree->value, uint64_t{1} << 40);
  return product;
}

JobDegrees ReadDegrees(JobConfig& job, ScenarioDraft& draft, const std::string& cluster) {
  JobDegrees degrees;
  degrees.replicas = DegreeOf(job, {"parallelism.data_parallel_replicate_degree",
                                    "training.data_parallel_replicate_degree"});
  degrees.tensor =
      DegreeOf(job, {"parallelism.tensor_parallel_degree", "training.tensor_parallel_degree"});
  degrees.context = DegreeOf(
      job, {"parallelism.context_parallel_degree", "experimental.context_parallel_degree"});
  degrees.stages =
      DegreeOf(job, {"parallelism.pipeline_parallel_degree",
                     "experimental.pipeline_parallel_degree", "training.pipeline_parallel_degree"});
  const JobConfig::Names shard_names = {"parallelism.data_parallel_shard_degree",
                                        "training.data_parallel_shard_degree",
                                        "training.data_parallel_degree"};
  const int64_t shard = job.WholeOr(shard_names, -1, kMostDegree, -1);
  if (shard == 0) job.Fail(shard_names, "found 0, expected -1 (all remaining ranks) or more");
  degrees.shard = {shard < 0 ? 1 : static_cast<uint64_t>(shard), job.OriginOf(shard_names)};
  const bool is_left = shard < 0;
  const ImportedMachine machine = draft.PutOnMachine(
      cluster, is_left ? std::nullopt : std::optional<uint64_t>(ProductOf(degrees)),
      {"the product of degrees", 0},
      "--cluster: data_parallel_shard_degree -1 takes all remaining ranks");
  const uint64_t left =
      RanksLeft(draft, machine,
                {degrees.replicas, degrees.shard, degrees.tensor, degrees.context, degrees.stages});
  if (is_left) {
    degrees.shard.value = left;
  } else if (left != 1) {
    draft.Fail(degrees.shard.from,
               fmt::format("the degrees make {} ranks, but --cluster has {} devices",
                           ProductOf(degrees), machine.ranks));
  }
  if (machine.spares) draft.Set("/placement", "block");
  return degrees;
}

void SetExpertMesh(JobConfig& job, ScenarioDraft& draft, const JobDegrees& degrees) {
  const Degree expert = DegreeOf(job, {"parallelism.expert_parallel_degree"});
  const JobConfig::Names tensor_names = {"parallelism.expert_tensor_parallel_degree"};
  const int64_t tensor = job.WholeOr(tensor_names, 1, kMostDegree, 1);
  if (!HasExperts(draft)) {
    if (expert.value > 1) draft.Fail(expert.from, "the model has no experts; expected 1");
    return;
  }
  // Without expert parallelism, tensor ranks share experts as they share other weights.
  const auto of_expert = expert.value > 1 ? static_cast<uint64_t>(tensor) : degrees.tensor.value;
  const uint64_t ranks = degrees.shard.value * degrees.context.value * degrees.tensor.value;
  if (ranks % (expert.value * of_expert) != 0) {
    draft.Fail(expert.from, fmt::format("{} ranks (shard {} x context {} x tensor {}) cannot be "
                                        "shared by {} expert x {} tensor ranks of an expert",
                                        ranks, degrees.shard.value, degrees.context.value,
                                        degrees.tensor.value, expert.value, of_expert));
  }
  if (expert.value > 1) draft.Set("/strategy/expert", expert.value, expert.from);
  if (of_expert > 1) draft.Set("/strategy/expert_tensor", of_expert, job.OriginOf(tensor_names));
}

void SetStrategy(JobConfig& job, ScenarioDraft& draft, const JobDegrees& degrees) {
  draft.Set("/strategy/kind", "combined");
  draft.Set("/strategy/tensor", degrees.tensor.value, degrees.tensor.from);
  const JobConfig::Names split_names = {"parallelism.enable_async_tensor_parallel",
                                        "experimental.enable_async_tensor_parallel"};
  if (job.BoolOr(split_names, false) && degrees.tensor.value > 1)
    draft.Set("/strategy/split_products", "async-tp", job.OriginOf(split_names));
  const JobConfig::Names rotate_names = {"parallelism.context_parallel_rotate_method",
                                         "experimental.context_parallel_rotate_method"};
  const std::string rotate = job.TextOr(rotate_names, "allgather");
  if (degrees.context.value > 1) {
    draft.Set("/strategy/context", degrees.context.value, degrees.context.from);
    draft.Set("/strategy/context_kind", rotate == "alltoall" ? "ring" : "all-gather",
              job.OriginOf(rotate_names));
  }
  draft.Set("/strategy/shard", degrees.shard.value, degrees.shard.from);
  if (degrees.replicas.value > 1)
    draft.Set("/strategy/replicas", degrees.replicas.value, degrees.replicas.from);
  const JobConfig::Names reshard_names = {"parallelism.fsdp_reshard_after_forward"};
  const std::string reshard = job.TextOr(reshard_names, "default");
  const bool has_shares = degrees.shard.value * degrees.context.value > 1;
  if (has_shares && (reshard == "never" || (reshard == "default" && degrees.stages.value > 1)))
    draft.Set("/strategy/reshard_after_forward", false, job.OriginOf(reshard_names));
  const JobConfig::Names reduce_names = {"training.mixed_precision_reduce"};
  if (has_shares && job.TextOr(reduce_names, "float32") != "float32")
    draft.Set("/strategy/reduce", "precision", job.OriginOf(reduce_names));
  const JobConfig::Names offload_names = {"training.enable_cpu_offload"};
  if (job.BoolOr(offload_names, false)) {
    draft.Set("/training/optimizer_on_host", true, job.OriginOf(offload_names));
    if (has_shares) draft.Set("/training/parameters_on_host", true, job.OriginOf(offload_names));
  }
  SetExpertMesh(job, draft, degrees);
}

// ---- the step -----------------------------------------------------------------------------------

// Returns how many micro-batches there are.
uint64_t SetBatch(JobConfig& job, ScenarioDraft& draft, const JobDegrees& degrees) {
  const JobConfig::Names local_names = {"training.local_batch_size", "training.batch_size"};
  const JobConfig::Names batch_names = {"training.global_batch_size"};
  const uint64_t data = degrees.replicas.value * degrees.shard.value;
  const Degree local{static_cast<uint64_t>(job.WholeOr(local_names, 1, 1 << 20, 8)),
                     job.OriginOf(local_names)};
  const int64_t given = job.WholeOr(batch_names, -1, kMostSequences, -1);
  const Degree batch{given > 0 ? static_cast<uint64_t>(given) : local.value * data,
                     job.OriginOf(batch_names)};
  const uint64_t passes = MicroBatchesOf(draft, batch, local, data);
  // What a pipeline computes at once: a number of sequences; formerly the number of parts.
  const JobConfig::Names size_names = {"parallelism.pipeline_parallel_microbatch_size"};
  const JobConfig::Names count_names = {"parallelism.pipeline_parallel_microbatches",
                                        "experimental.pipeline_parallel_microbatches"};
  const int64_t size = job.WholeOr(size_names, 1, 1 << 20, 1);
  const bool is_old = job.Has(count_names) || job.Has({"experimental.pipeline_parallel_degree"});
  const int64_t count =
      job.WholeOr(count_names, 1, 1 << 20, static_cast<int64_t>(degrees.stages.value));
  uint64_t parts = 1;
  if (degrees.stages.value > 1) {
    parts = is_old ? static_cast<uint64_t>(count) : local.value / static_cast<uint64_t>(size);
    if (parts == 0 || local.value % parts != 0 ||
        (!is_old && local.value % static_cast<uint64_t>(size) != 0)) {
      draft.Fail(job.OriginOf(is_old ? count_names : size_names),
                 fmt::format("a local batch of {} sequences does not split into micro-batches of "
                             "it; expected {} to be a divisor",
                             local.value, is_old ? count : size));
    }
    if (passes > 1)
      draft.Remark(
          fmt::format("{} passes of the pipeline per step are played as one with {} times as many "
                      "micro-batches",
                      passes, passes));
  }
  draft.Set("/training/batch", batch.value, given > 0 ? batch.from : local.from);
  draft.Set("/training/sequence", job.WholeOr({"training.seq_len"}, 1, int64_t{1} << 24, 2048),
            job.OriginOf({"training.seq_len"}));
  draft.Set("/training/micro_batches", passes * parts, given > 0 ? batch.from : local.from);
  return passes * parts;
}

bool HasFloat8(JobConfig& job) {
  const std::vector<std::string> converters = job.Texts({"model.converters"});
  const auto is_float8 = [](const std::string& converter) {
    return converter == "float8" || converter == "quantize.linear.float8";
  };
  return std::any_of(converters.begin(), converters.end(), is_float8) ||
         job.BoolOr({"float8.enable_float8_linear", "training.enable_float8_linear"}, false);
}

void SetRecomputation(JobConfig& job, ScenarioDraft& draft, int64_t layers, uint64_t stages) {
  const JobConfig::Names mode_names = {"activation_checkpoint.mode"};
  const JobConfig::Names option_names = {"activation_checkpoint.selective_ac_option"};
  const std::vector<std::string> modes = {"none", "full", "selective", "memory_budget"};
  const size_t mode = job.Has(mode_names) ? job.At(mode_names).Choice(modes) : 2;
  std::string option = "2";
  if (job.Has(option_names)) {
    const JsonReader value = job.At(option_names);
    option = value.IsString() ? value.String() : std::to_string(value.Integer(1, 10000));
  }
  const Origin from = job.OriginOf(mode_names);
  if (mode < 2) {
    draft.Set("/training/recomputation", modes[mode], from);
    return;
  }
  if (mode == 3) {
    draft.Set("/training/recomputation", "none");
    draft.Remark("not supported: activation_checkpoint.mode memory_budget; everything is kept");
    return;
  }
  if (option == "op") {
    draft.Set("/training/recomputation", "selective", from);
    // It keeps attention and every second product of a layer. Its policy is a dispatch mode, which
    // sees the mm of two Float8Tensors before they turn it into a product of their own
    // (pytorch.org/docs, Extending PyTorch: modes come before subclasses); their casts are ops that
    // it does not keep.
    OrderedJson ops = {"activations", "norms", "every-second-product"};
    if (HasFloat8(job)) draft.Set("/training/casts", "again", job.OriginOf(option_names));
    if (HasExperts(draft)) ops.emplace_back("experts");
    draft.Set("/training/recomputed_ops", ops, job.OriginOf(option_names));
    return;
  }
  int64_t every = 0;
  const auto [end, error] = std::from_chars(option.data(), option.data() + option.size(), every);
  if (error != std::errc() || end != option.data() + option.size() || every < 1)
    job.Fail(option_names, fmt::format("found {}, expected \"op\" or a whole number of at least 1",
                                       QuotedJson(option)));
  draft.Set("/training/recomputation", "full", from);
  if (every == 1) return;
  const int64_t of_stage =
      (layers + static_cast<int64_t>(stages) - 1) / static_cast<int64_t>(stages);
  draft.Set("/training/recomputed_layers", {of_stage / every}, job.OriginOf(option_names));
  draft.Remark(
      fmt::format("selective_ac_option {}: one of {} layers is computed again, here the first ones "
                  "of each stage",
                  every, every));
}

void SetProducts(JobConfig& job, ScenarioDraft& draft) {
  const JobConfig::Names converters_names = {"model.converters"};
  std::vector<std::string> converters = job.Texts(converters_names);
  if (job.BoolOr({"float8.enable_float8_linear", "training.enable_float8_linear"}, false))
    converters.emplace_back("float8");
  const JobConfig::Names recipe_names = {"quantize.linear.float8.recipe_name",
                                         "float8.recipe_name"};
  const std::string recipe = job.TextOr(recipe_names, "tensorwise");
  const JobConfig::Names gather_names = {"quantize.linear.float8.enable_fsdp_float8_all_gather",
                                         "float8.enable_fsdp_float8_all_gather"};
  const bool gathers = job.BoolOr(gather_names, false);
  const JobConfig::Names filter_names = {"quantize.linear.float8.filter_fqns", "float8.filter_fqns",
                                         "quantize.linear.mx.filter_fqns", "mx.filter_fqns"};
  for (const std::string& filtered : job.Texts(filter_names)) {
    if (filtered != "output" && filtered != "router.gate" && filtered != "moe.router.gate")
      draft.Remark(fmt::format("not supported: {} {}; products of all layers are alike",
                               job.OriginOf(filter_names).name, filtered));
  }
  const Origin from = job.OriginOf(converters_names);
  for (const std::string& converter : converters) {
    if (converter == "float8" || converter == "quantize.linear.float8") {
      draft.Set("/training/products", "fp8-current", from);
      if (recipe != "tensorwise")
        draft.Remark(fmt::format("not supported: {} {}; played with a scale for each array",
                                 recipe_names.begin()[0], recipe));
      if (gathers) draft.Set("/training/narrow_parameters", true, job.OriginOf(gather_names));
    } else if (converter == "mx" || converter == "quantize.linear.mx") {
      draft.Set("/training/products", "mxfp8", from);
    } else {
      draft.Remark(fmt::format("not supported: the converter {}", converter));
    }
  }
}

// Weights of 16 bits have no others beside them: Adam updates them in place, with moments as wide.
void SetWeightsOfJob(JobConfig& job, ScenarioDraft& draft) {
  const JobConfig::Names names = {"training.dtype"};
  const std::string type = job.TextOr(names, "float32");
  const bool is_in_32 = draft.json()["training"].contains("precision");
  if (type == "bfloat16" && !is_in_32) {
    draft.Set("/training/masters", "none", job.OriginOf(names));
    draft.Set("/training/moments", "bf16", job.OriginOf(names));
  } else if (type != "float32") {
    draft.Remark(fmt::format("not supported: training.dtype {}; weights have 32 bits", type));
  }
}

void SetKernels(JobConfig& job, ScenarioDraft& draft) {
  const JobConfig::Names compile_names = {"compile.enable", "training.compile"};
  const bool compiles = job.BoolOr(compile_names, false);
  const std::vector<std::string> parts = job.Texts({"compile.components"});
  const auto has = [&](const char* part) {
    return compiles &&
           (parts.empty() || std::find(parts.begin(), parts.end(), part) != parts.end());
  };
  if (has("model")) draft.Set("/training/kernels", "compiled", job.OriginOf(compile_names));
  if (has("loss")) draft.Set("/training/cross_entropy", "fused", job.OriginOf(compile_names));
  const JobConfig::Names optimizer_names = {"optimizer.implementation"};
  // Formerly a switch that was off by default; since the newer spelling of the batch, fused is the
  // default.
  const bool is_fused = job.BoolOr({"optimizer.fused"}, job.Has({"training.local_batch_size"}));
  const std::vector<std::string> kinds = {"for-loop", "foreach", "fused"};
  const size_t kind = job.Has(optimizer_names) ? job.At(optimizer_names).Choice(kinds)
                      : is_fused               ? 2
                                               : 1;
  constexpr const char* kOurs[] = {"loop", "foreach", "fused"};
  draft.Set("/training/optimizer", kOurs[kind], job.OriginOf(optimizer_names));
  const std::string optimizer = job.TextOr({"optimizer.name"}, "AdamW");
  if (optimizer != "AdamW" && optimizer != "Adam")
    draft.Remark(fmt::format("not supported: optimizer.name {}; played as Adam", optimizer));
  const JobConfig::Names precision_names = {"training.mixed_precision_param"};
  if (job.TextOr(precision_names, "bfloat16") == "float32")
    draft.Set("/training/precision", "fp32", job.OriginOf(precision_names));
  SetWeightsOfJob(job, draft);
}

// ---- the pipeline -------------------------------------------------------------------------------

struct OrderName {
  const char* theirs;  // in lower case
  const char* ours;
  uint64_t a_rank;  // stages
  bool may_have_more;
};
constexpr OrderName kOrders[] = {{"1f1b", "1f1b", 1, false},
                                 {"gpipe", "gpipe", 1, false},
                                 {"interleaved1f1b", "interleaved", 2, true},
                                 {"loopedbfs", "breadth-first", 2, true},
                                 {"interleavedzerobubble", "interleaved", 2, true},
                                 {"zbvzerobubble", "zb-v", 2, false},
                                 {"dualpipev", "dualpipev", 2, false}};

// Layers of each stage, from where stages begin: "layers.4,layers.8".
std::vector<int64_t> StagesOfPoints(const std::vector<std::string>& points, int64_t layers) {
  std::vector<int64_t> sizes;
  int64_t begin = 0;
  for (const std::string& point : points) {
    constexpr std::string_view kLayer = "layers.";
    int64_t layer = 0;
    if (!point.starts_with(kLayer)) return {};
    const char* const number = point.data() + kLayer.size();
    const auto [end, error] = std::from_chars(number, point.data() + point.size(), layer);
    if (error != std::errc() || end != point.data() + point.size() || layer <= begin ||
        layer > layers)
      return {};
    sizes.push_back(layer - begin);
    begin = layer;
  }
  sizes.push_back(layers - begin);
  return sizes;
}

// Returns the number of stages, of all ranks.
uint64_t SetPipeline(JobConfig& job, ScenarioDraft& draft, const Degree& ranks, int64_t layers,
                     uint64_t micro_batches) {
  const JobConfig::Names order_names = {"parallelism.pipeline_parallel_schedule",
                                        "experimental.pipeline_parallel_schedule"};
  const JobConfig::Names points_names = {"parallelism.pipeline_parallel_split_points",
                                         "experimental.pipeline_parallel_split_points"};
  const JobConfig::Names layers_names = {"parallelism.pipeline_parallel_layers_per_stage"};
  const JobConfig::Names ends_names = {"parallelism.pipeline_parallel_first_stage_less_layers",
                                       "parallelism.pipeline_parallel_last_stage_less_layers"};
  const std::string order = job.TextOr(order_names, "1F1B");
  const std::vector<std::string> points = job.Texts(points_names);
  const int64_t of_stage = job.WholeOr(layers_names, 1, 10000, 10000);
  const int64_t less_at_first = job.WholeOr({*ends_names.begin()}, 0, 10000, 1);
  const int64_t less_at_last = job.WholeOr({*(ends_names.begin() + 1)}, 0, 10000, 1);
  const JobConfig::Names csv_names = {"parallelism.pipeline_parallel_schedule_csv"};
  const std::string csv = job.TextOr(csv_names, "");
  if (ranks.value == 1) return 1;
  if (!csv.empty())
    job.Fail(
        csv_names,
        "custom orders are not imported; a scenario's \"pipeline\" takes one as its \"order\"");
  std::string lower = order;
  std::transform(lower.begin(), lower.end(), lower.begin(),
                 [](char c) { return c >= 'A' && c <= 'Z' ? static_cast<char>(c + 32) : c; });
  const auto known = std::find_if(std::begin(kOrders), std::end(kOrders),
                                  [&](const OrderName& one) { return lower == one.theirs; });
  if (known == std::end(kOrders)) {
    job.Fail(order_names,
             fmt::format("found {}; known are 1F1B, GPipe, Interleaved1F1B, LoopedBFS, "
                         "InterleavedZeroBubble, ZBVZeroBubble and DualPipeV",
                         QuotedJson(order)));
  }
  if (lower == "interleavedzerobubble")
    draft.Remark("not supported: InterleavedZeroBubble; played as Interleaved1F1B");
  const Origin from = job.OriginOf(order_names);
  const int64_t ends = less_at_first + less_at_last;
  uint64_t a_rank = known->a_rank;
  if (!points.empty()) {
    a_rank = (points.size() + 1) / ranks.value;
    if (a_rank * ranks.value != points.size() + 1) {
      job.Fail(points_names, fmt::format("{} stages cannot be shared by {} ranks",
                                         points.size() + 1, ranks.value));
    }
  } else if (job.Has(layers_names)) {
    const auto stages = static_cast<uint64_t>((layers + ends + of_stage - 1) / of_stage);
    a_rank = stages / ranks.value;
    if (a_rank == 0 || stages % ranks.value != 0) {
      job.Fail(layers_names, fmt::format("{} layers and {} for the ends make {} stages, which {} "
                                         "ranks cannot share",
                                         layers, ends, stages, ranks.value));
    }
  }
  if (a_rank != known->a_rank && !(known->may_have_more && a_rank > 1)) {
    job.Fail(order_names,
             fmt::format("{} has {} stages per rank, found {}", order, known->a_rank, a_rank));
  }
  const uint64_t stages = ranks.value * a_rank;
  if (stages > kMostPipelineParts / micro_batches) {
    draft.Fail(ranks.from, fmt::format("{} stages x {} micro-batches, expected at most {} together",
                                       stages, micro_batches, kMostPipelineParts));
  }
  draft.Set("/pipeline", OrderedJson::object(), ranks.from);
  draft.Set("/pipeline/stages", ranks.value, ranks.from);
  draft.Set("/pipeline/schedule", known->ours, from);
  if (a_rank > 1) draft.Set("/pipeline/virtual", a_rank, from);
  if (points.empty()) {
    draft.Set("/pipeline/split", "layers-and-ends");
    if (less_at_first != 1 || less_at_last != 1)
      draft.Remark(
          "not supported: how many layers fewer the first and last stage have; played with one "
          "fewer each");
    return stages;
  }
  const std::vector<int64_t> sizes = StagesOfPoints(points, layers);
  if (sizes.empty())
    job.Fail(points_names, "expected the layers that stages begin with, in order: layers.4");
  draft.Set("/pipeline/layers", sizes, job.OriginOf(points_names));
  return stages;
}

// ---- the rest -----------------------------------------------------------------------------------

struct SwitchNotCarried {
  const char* key;
  const char* instead;
};
constexpr SwitchNotCarried kNotCarriedSwitches[] = {
    {"parallelism.disable_loss_parallel", "the loss is computed where the logits are"},
    {"optimizer.early_step_in_backward", "the optimizer runs at the end of the step"},
    {"fault_tolerance.enable", "no rank fails"},
    {"parallelism.enable_compiled_autograd", "the backward pass is not compiled as a whole"},
    {"experimental.enable_compiled_autograd", "the backward pass is not compiled as a whole"}};

void RemarkOnOtherKeys(JobConfig& job, ScenarioDraft& draft) {
  for (const SwitchNotCarried& one : kNotCarriedSwitches) {
    if (job.BoolOr({one.key}, false))
      draft.Remark(fmt::format("not supported: {}; {}", one.key, one.instead));
  }
  std::vector<std::string> unknown;
  for (const std::string& key : job.Unread()) {
    const bool decides_nothing = BeginsWithOne(key, {"job.",
                                                     "profiling.",
                                                     "metrics.",
                                                     "lr_scheduler.",
                                                     "checkpoint.",
                                                     "comm.",
                                                     "debug.",
                                                     "memory_estimation.",
                                                     "validation.",
                                                     "fault_tolerance.",
                                                     "optimizer.lr",
                                                     "optimizer.beta",
                                                     "optimizer.eps",
                                                     "optimizer.weight_decay",
                                                     "training.dataset",
                                                     "training.max_norm",
                                                     "training.steps",
                                                     "training.seed",
                                                     "training.deterministic",
                                                     "training.gc_",
                                                     "training.warmup_steps",
                                                     "model.tokenizer",
                                                     "model.hf_assets_path",
                                                     "model.print_after_conversion",
                                                     "model.norm_type",
                                                     "compile.backend",
                                                     "activation_checkpoint.per_op_sac",
                                                     "activation_checkpoint.early_stop",
                                                     "activation_checkpoint.preserve",
                                                     "activation_checkpoint.determinism",
                                                     "activation_checkpoint.debug",
                                                     "experimental.custom",
                                                     "parallelism.spmd_backend",
                                                     "training.disable_cuda_graphs",
                                                     "float8.precompute",
                                                     "float8.force_recompute",
                                                     "float8.emulate",
                                                     "float8.scaling_type",
                                                     "quantize.linear.float8.precompute",
                                                     "quantize.linear.float8.emulate",
                                                     "quantize.linear.mx.",
                                                     "mx."});
    if (!decides_nothing) unknown.push_back(key);
  }
  draft.RemarkOnUnknown(unknown);
}

// Settings as keys, as torchtitan's command line takes them: "--training.seq-len" is
// training.seq_len.
std::string KeysOf(const RunSettings& settings) {
  nlohmann::json keys = nlohmann::json::object();
  for (const RunSetting& setting : settings) {
    std::string name = setting.name;
    std::replace(name.begin(), name.end(), '-', '_');
    const bool is_plain = nlohmann::json::accept(setting.value);
    keys[name] = setting.value == "True"    ? nlohmann::json(true)
                 : setting.value == "False" ? nlohmann::json(false)
                 : is_plain                 ? nlohmann::json::parse(setting.value)
                                            : nlohmann::json(setting.value);
  }
  return keys.dump(-1, ' ', false, nlohmann::json::error_handler_t::replace);
}

}  // namespace

ImportedScenario ImportTorchtitan(std::string_view text, const std::string& file,
                                  const std::string& cluster, const RunSettings& settings) {
  ScenarioDraft draft(file);
  // What names the job is no key of it.
  RunSettings own = settings;
  const auto take = [&own](const char* name) {
    const auto found = std::find_if(own.begin(), own.end(),
                                    [&](const RunSetting& one) { return one.name == name; });
    std::string value = found == own.end() ? "" : found->value;
    if (found != own.end()) own.erase(found);
    return value;
  };
  const std::string module = take("module");
  const std::string function = take("config");
  const JsonDocument document = IsPythonRegistry(text)
                                    ? ReadPythonRegistry(text, draft.file(), function, module)
                                    : ReadToml(text, draft.file());
  const JsonDocument overrides = JsonDocument::FromText(KeysOf(own), "--set");
  if (!function.empty()) draft.Set("/name", function);
  JobConfig job(document.Root(), overrides.Root());
  draft.Set("/software", "torchtitan");
  const JobDegrees degrees = ReadDegrees(job, draft, cluster);
  const int64_t layers = SetModel(job, draft);
  const uint64_t micro_batches = SetBatch(job, draft, degrees);
  SetStrategy(job, draft, degrees);
  const uint64_t stages = SetPipeline(job, draft, degrees.stages, layers, micro_batches);
  SetRecomputation(job, draft, layers, stages);
  SetProducts(job, draft);
  SetKernels(job, draft);
  RemarkOnOtherKeys(job, draft);
  return draft.Finish();
}

}  // namespace rehearse

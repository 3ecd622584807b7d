// How long the step is and how it is computed: batch, recomputation, precision, kernels.
#include <charconv>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include <fmt/format.h>

#include "tools/foreign/runs/megatron/megatron_parts.h"
#include "tools/foreign/runs/trainer_step.h"

namespace rehearse {
namespace {

// The last size of a batch that grows: of "0:384 200B:768", 768. Nothing if it does not grow.
std::optional<int64_t> GrownBatch(ArgumentList& arguments) {
  const ArgumentList::Names names = {"step-batch-size-schedule"};
  const std::vector<std::string> sizes = arguments.Values(names);
  if (sizes.empty()) return std::nullopt;
  const std::string last = sizes.back().substr(sizes.back().rfind(':') + 1);
  int64_t batch = 0;
  const auto [end, fault] = std::from_chars(last.data(), last.data() + last.size(), batch);
  if (fault != std::errc() || end != last.data() + last.size() || batch < 1 ||
      batch > kMostSequences)
    arguments.Fail(names, "expected sizes of batches, such as \"0:384 200B:768\"");
  return batch;
}

void SetBatch(ArgumentList& arguments, ScenarioDraft& draft, MegatronRun* run) {
  const ArgumentList::Names micro_names = {"micro-batch-size", "batch-size"};
  const ArgumentList::Names batch_names = {"global-batch-size"};
  const int64_t micro = arguments.NeededWhole(micro_names, 1, 1 << 20);
  const int64_t accumulated =
      arguments.WholeOr({"gas", "gradient-accumulation-steps"}, 1, 1 << 20, 1);
  const std::optional<int64_t> grown = GrownBatch(arguments);
  const int64_t batch =
      arguments.WholeOr(batch_names, 1, kMostSequences,
                        grown.value_or(micro * accumulated * static_cast<int64_t>(run->data)));
  run->micro_batches =
      MicroBatchesOf(draft, {static_cast<uint64_t>(batch), arguments.OriginOf(batch_names)},
                     {static_cast<uint64_t>(micro), arguments.OriginOf(micro_names)}, run->data);
  draft.Set("/training/batch", batch, arguments.OriginOf(batch_names));
  draft.Set("/training/sequence",
            arguments.NeededWhole({"seq-length", "encoder-seq-length"}, 1, int64_t{1} << 24),
            arguments.OriginOf({"seq-length"}));
  draft.Set("/training/micro_batches", run->micro_batches,
            arguments.OriginOf(arguments.Has(batch_names) ? batch_names : micro_names));
  for (const char* name : {"rampup-batch-size", "step-batch-size-schedule"})
    if (arguments.Has({name})) draft.Remark(fmt::format("--{}: the step has the full batch", name));
}

// ---- what is computed again ---------------------------------------------------------------------

void SetSelective(ArgumentList& arguments, ScenarioDraft& draft, const MegatronRun& run) {
  const ArgumentList::Names names = {"recompute-modules"};
  struct Module {
    const char* theirs;
    const char* ours;
  };
  constexpr Module kModules[] = {{"core_attn", "core-attention"},
                                 {"moe_act", "activations"},
                                 {"layernorm", "norms"},
                                 {"mla_up_proj", "latent-projections"},
                                 {"moe", "experts"}};
  std::vector<std::string> modules = arguments.Values(names);
  if (modules.empty()) modules = {"core_attn"};
  std::vector<std::string> again;
  std::vector<std::string> left_out;
  for (const std::string& module : modules) {
    const char* ours = nullptr;
    for (const Module& known : kModules) {
      if (module == known.theirs) ours = known.ours;
    }
    if (ours != nullptr) {
      again.emplace_back(ours);
    } else if (module == "mlp" && run.experts == 0) {
      // The whole of it; beside experts it means that of layers without them only.
      again.insert(again.end(), {"first-products", "activations"});
    } else {
      left_out.push_back(module);
    }
  }
  draft.Set("/training/recomputation", "selective", arguments.OriginOf({"recompute-granularity"}));
  draft.Set("/training/recomputed_ops", again, arguments.OriginOf(names));
  if (!left_out.empty()) {
    draft.Remark(fmt::format("not supported: --recompute-modules {}; they are kept here",
                             fmt::join(left_out, " ")));
  }
}

void SetRecomputation(ArgumentList& arguments, ScenarioDraft& draft, const MegatronRun& run) {
  const ArgumentList::Names granularity = {"recompute-granularity"};
  const ArgumentList::Names count_names = {
      "recompute-num-layers", "activations-checkpoint-num-layers", "checkpoint-num-layers"};
  const size_t kind = arguments.ChoiceOr(granularity, {"full", "selective"}, 2);
  const bool is_all = arguments.Has({"checkpoint-activations"}) ||
                      arguments.Has({"deepspeed-activation-checkpointing"});
  const std::string method =
      arguments.Text({"recompute-method", "activations-checkpoint-method"}).value_or("");
  const int64_t count = arguments.WholeOr(count_names, 1, 10000, 1);
  const bool is_switched = arguments.Switch({"recompute-activations"});
  const bool is_selective = kind == 1 || is_switched;
  const bool is_full = kind == 0 || is_all || (kind == 2 && !is_selective && !method.empty());
  if (!is_full && !is_selective) {
    draft.Set("/training/recomputation", "none");
    return;
  }
  if (!is_full) {
    SetSelective(arguments, draft, run);
    return;
  }
  draft.Set("/training/recomputation", "full", arguments.OriginOf(granularity));
  if (method == "block") {
    draft.Set("/training/recomputed_layers", {count}, arguments.OriginOf(count_names));
  } else if (count > 1) {
    draft.Remark(fmt::format("{}: every layer's input is kept here, not just that of every {}-th",
                             arguments.OriginOf(count_names).name, count));
  }
}

void SetOffloaded(ArgumentList& arguments, ScenarioDraft& draft) {
  const ArgumentList::Names layers = {"cpu-offloading-num-layers"};
  const ArgumentList::Names states = {"offload-optimizer-states"};
  const int64_t count = arguments.WholeOr(layers, 0, 10000, 0);
  arguments.Switch({"cpu-offloading"});  // on if layers are given
  if (count > 0)
    draft.Set("/training/offloaded_layers", static_cast<uint32_t>(count),
              arguments.OriginOf(layers));
  const ArgumentList::Names update = {"optimizer-cpu-offload"};
  const bool is_on_host = arguments.Switch(update);
  if (is_on_host) draft.Set("/training/optimizer_on_host", true, arguments.OriginOf(update));
  const double share = arguments.Number({"optimizer-offload-fraction"}, 0, 1).value_or(1);
  if (is_on_host && share < 1)
    draft.Remark(
        fmt::format("not supported: optimizer-offload-fraction {}; all of it is offloaded", share));
  if (arguments.Switch({"overlap-cpu-optimizer-d2h-h2d"}))
    draft.Remark(
        "not supported: overlap-cpu-optimizer-d2h-h2d; parameters return when all are "
        "updated");
  if (arguments.Switch(states) && !is_on_host)
    draft.Set("/training/offloaded_optimizer", true, arguments.OriginOf(states));
}

// ---- arithmetic and kernels ---------------------------------------------------------------------

void SetNarrowProducts(ArgumentList& arguments, ScenarioDraft& draft) {
  const ArgumentList::Names names = {"fp8-format", "fp8"};
  const bool is_fp8 =
      arguments.Has(names) || arguments.Has({"fp8-hybrid"}) || arguments.Has({"fp8-e4m3"});
  const bool is_fp4 = arguments.Has({"fp4-format", "fp4"});
  const ArgumentList::Names recipe_names = {"fp8-recipe"};
  const size_t recipe = arguments.ChoiceOr(
      recipe_names, {"delayed", "tensorwise", "blockwise", "mxfp8", "custom"}, 0);
  const bool is_narrow = arguments.Switch({"fp8-param-gather", "fp8-param"});
  const ArgumentList::Names stored_names = {"activation-func-fp8-input-store"};
  const bool stores_narrow = arguments.Switch(stored_names);
  const bool keeps_ends = arguments.Switch({"first-last-layers-bf16"});
  const int64_t first = arguments.WholeOr({"num-layers-at-start-in-bf16"}, 0, 1000, 1);
  const int64_t last = arguments.WholeOr({"num-layers-at-end-in-bf16"}, 0, 1000, 1);
  if (is_fp4) {
    draft.Set("/training/products", "nvfp4", arguments.OriginOf({"fp4-format"}));
  } else if (is_fp8) {
    constexpr const char* kProducts[] = {"fp8", "fp8-current", "fp8-blockwise", "mxfp8"};
    if (recipe == 4) arguments.Fail(recipe_names, "custom recipes are not supported");
    draft.Set("/training/products", kProducts[recipe], arguments.OriginOf(names));
    if (is_narrow)
      draft.Set("/training/narrow_parameters", true, arguments.OriginOf({"fp8-param-gather"}));
  }
  if ((is_fp8 || is_fp4) && stores_narrow)
    draft.Set("/training/narrow_kept", {"activations"}, arguments.OriginOf(stored_names));
  if ((is_fp8 || is_fp4) && keeps_ends) {
    draft.Set("/training/precise_layers", first, arguments.OriginOf({"first-last-layers-bf16"}));
    if (first != last)
      draft.Remark(fmt::format(
          "{} layers at each end stay in bf16 here, but {} at the last end in Megatron-LM", first,
          last));
  }
}

void SetPrecision(ArgumentList& arguments, ScenarioDraft& draft) {
  const bool is_bf16 = arguments.Switch({"bf16"});
  const bool is_fp16 = arguments.Switch({"fp16"});
  const bool sums_in_32 = arguments.Switch({"accumulate-allreduce-grads-in-fp32"});
  const std::string type_of_sums = arguments.Text({"main-grads-dtype"}).value_or("fp32");
  const bool reduces_in_16 =
      arguments.Switch({"grad-reduce-in-bf16"}) || type_of_sums.find("16") != std::string::npos;
  if (!is_bf16 && !is_fp16) {
    draft.Set("/training/precision", "fp32");
    draft.Remark("neither --bf16 nor --fp16: everything is computed in fp32");
    return;
  }
  if (is_fp16) draft.Remark("--fp16: played as bf16, which has as many bits");
  const bool has_narrow_sums = reduces_in_16 || (is_fp16 && !sums_in_32);
  draft.Set("/training/gradients", has_narrow_sums ? "bf16" : "fp32",
            arguments.OriginOf({"accumulate-allreduce-grads-in-fp32"}));
  SetNarrowProducts(arguments, draft);
}

// "bf16" on a command line is "torch.bfloat16" in a log.
std::string TypeIn(ArgumentList& arguments, const char* name) {
  std::string text = arguments.Text({name}).value_or("fp32");
  constexpr std::pair<const char*, const char*> kOfTorch[] = {{"torch.float32", "fp32"},
                                                              {"torch.bfloat16", "bf16"},
                                                              {"torch.float16", "fp16"},
                                                              {"torch.uint8", "fp8"}};
  for (const auto& [of_torch, ours] : kOfTorch)
    if (text == of_torch) return ours;
  return text;
}

// Megatron-LM has adam, sgd, muon and dist_muon; lamb is of others that have its arguments. Returns
// whether it is Adam.
bool SetOptimizer(ArgumentList& arguments, ScenarioDraft& draft, const MegatronRun& run) {
  const ArgumentList::Names names = {"optimizer"};
  const std::string given = arguments.Text(names).value_or("adam");
  const std::string mode = arguments.Text({"muon-tp-mode"}).value_or("blockwise");
  if (given == "adam") return true;
  const Origin from = arguments.OriginOf(names);
  if (!SetUpdateRule(given == "dist_muon" ? "muon" : given, given, from, &draft)) {
    draft.Remark(fmt::format("not supported: --optimizer {}; played as Adam", given));
    return true;
  }
  const std::string rule = draft.json()["training"].value("update_rule", "adam");
  if (rule != "muon") return rule == "adam";
  if (given == "dist_muon") {
    draft.Remark(
        "not supported: dist_muon, which gives each rank of data whole layers to update; all of "
        "them update all");
  }
  if (run.tensor.value > 1 && mode == "blockwise")
    draft.Set("/training/muon_steps", "pieces", arguments.OriginOf(names));
  if (run.tensor.value > 1 && mode == "distributed") {
    draft.Remark(
        fmt::format("not supported: --muon-tp-mode {}; each rank makes the steps of whole "
                    "matrices, as with duplicated",
                    mode));
  }
  return false;
}

// In what precision Adam keeps its moments, and what of its master weights. Transformer Engine has
// remainders beside parameters in bf16 (store_param_remainders, on by default), not beside fp8's.
void SetMoments(ArgumentList& arguments, ScenarioDraft& draft) {
  const ArgumentList::Names names = {"use-precision-aware-optimizer"};
  const std::string first = TypeIn(arguments, "exp-avg-dtype");
  const std::string second = TypeIn(arguments, "exp-avg-sq-dtype");
  const std::string masters = TypeIn(arguments, "main-params-dtype");
  if (!arguments.Switch(names)) return;
  const auto has_half = [](const std::string& type) { return type == "bf16" || type == "fp16"; };
  if (has_half(first) && has_half(second)) {
    draft.Set("/training/moments", "bf16", arguments.OriginOf(names));
  } else if (first != "fp32" || second != "fp32") {
    draft.Remark(fmt::format("not supported: Adam's moments in {} and {}; they have 32 bits", first,
                             second));
  }
  if (masters != "fp32")
    draft.Remark(fmt::format("not supported: master weights in {}; they have 32 bits", masters));
  else if (arguments.Switch({"bf16"}) &&
           !draft.json()["training"].value("narrow_parameters", false))
    draft.Set("/training/masters", "remainders", arguments.OriginOf(names));
}

void SetAttention(ArgumentList& arguments, ScenarioDraft& draft, const MegatronRun& run) {
  const ArgumentList::Names backend_names = {"attention-backend"};
  const size_t backend =
      arguments.ChoiceOr(backend_names, {"flash", "fused", "unfused", "local", "auto"}, 4);
  const std::string kind = arguments.Text({"transformer-impl"})
                               .value_or(run.is_deepspeed ? "local" : "transformer_engine");
  const bool is_flash = arguments.Switch({"use-flash-attn", "use-flash-attn-v2"});
  const bool is_first =
      arguments.Switch({"use-flash-attn-v1"}) || arguments.Switch({"use-flash-attn-triton"});
  const bool is_in_32 = draft.json()["training"].contains("precision");
  if (is_in_32 || backend == 2 || backend == 3) {
    draft.Set("/training/attention", "unfused", arguments.OriginOf(backend_names));
  } else if (is_first) {
    draft.Set("/training/attention", "flash-1", arguments.OriginOf({"use-flash-attn-v1"}));
  } else if (is_flash || backend == 0) {
    draft.Set("/training/attention", "flash-2", arguments.OriginOf({"use-flash-attn"}));
  } else if (backend == 1) {
    draft.Set("/training/attention", "cudnn", arguments.OriginOf(backend_names));
  } else if (kind == "local") {
    draft.Set("/training/attention", "unfused", arguments.OriginOf({"transformer-impl"}));
    draft.Remark("attention is not fused, without --use-flash-attn or Transformer Engine");
  }
}

void SetKernels(ArgumentList& arguments, ScenarioDraft& draft, const MegatronRun& run) {
  if (arguments.Switch({"cross-entropy-loss-fusion"}))
    draft.Set("/training/cross_entropy", "fused");
  if (arguments.Switch({"use-transformer-engine-op-fuser"}))
    draft.Set("/training/expert_kernels", "fused");
  if (arguments.Switch({"moe-permute-fusion"})) draft.Set("/training/permutation", "fused");
  if (!arguments.Unless({"no-gradient-accumulation-fusion"}, "gradient-accumulation-fusion"))
    draft.Set("/training/accumulation", "separate");
  const double attention = arguments.Number({"attention-dropout"}, 0, 1).value_or(0.1);
  const double hidden = arguments.Number({"hidden-dropout"}, 0, 1).value_or(0.1);
  const bool drops = attention > 0 || hidden > 0;
  if (!run.is_llama && !drops) draft.Set("/training/dropout", false);
  if (run.is_llama && drops)
    draft.Remark(
        "dropout is left out (--attention-dropout, --hidden-dropout are 0.1 unless "
        "given): with SwiGLU there is none here");
  const bool fuses_swiglu = arguments.Unless({"no-bias-swiglu-fusion"}, "bias-swiglu-fusion");
  const bool fuses_gelu = arguments.Unless({"no-bias-gelu-fusion"}, "bias-gelu-fusion");
  const bool is_fused = run.is_gated ? fuses_swiglu : fuses_gelu;
  if (!arguments.Unless({"no-bias-dropout-fusion"}, "bias-dropout-fusion") || !is_fused)
    draft.Remark("not supported: element-wise kernels that are not fused; played as fused");
}

}  // namespace

void SetMegatronTraining(ArgumentList& arguments, ScenarioDraft& draft, MegatronRun* run) {
  SetBatch(arguments, draft, run);
  SetRecomputation(arguments, draft, *run);
  SetOffloaded(arguments, draft);
  SetPrecision(arguments, draft);
  if (SetOptimizer(arguments, draft, *run)) SetMoments(arguments, draft);
  SetAttention(arguments, draft, *run);
  SetKernels(arguments, draft, *run);
}

}  // namespace rehearse

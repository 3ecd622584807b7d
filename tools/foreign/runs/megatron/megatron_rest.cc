// Arguments that no part of the scenario uses: by name those that make no difference to a
// simulation and those that would change the step, and the rest.
#include <algorithm>
#include <string>
#include <string_view>
#include <vector>

#include <fmt/format.h>

#include "tools/foreign/runs/megatron/megatron_parts.h"
#include "tools/foreign/runs/megatron/shell_script.h"

namespace rehearse {
namespace {

// A name, and all names that begin with it: "adam" is also adam-beta1.
constexpr std::string_view kDecideNothing[] = {"DDP-impl",
                                               "adam",
                                               "add-position-embedding",
                                               "adlr",
                                               "align-grad-reduce",
                                               "align-param-gather",
                                               "app-tag",
                                               "apply-layernorm-1p",
                                               "apply-query-key-layer-scaling",
                                               "apply-residual-connection-post-layernorm",
                                               "apply-rope-fusion",
                                               "async-ckpt",
                                               "async-save",
                                               "async-strategy",
                                               "attention-softmax-in-fp32",
                                               "auto-detect-ckpt-format",
                                               "barrier-with-L1-time",
                                               "bert",
                                               "biencoder",
                                               "block-data-path",
                                               "calculate-per-token-loss",
                                               "check",
                                               "ckpt",
                                               "classes-fraction",
                                               "clip-grad",
                                               "clone-scatter-output-in-embedding",
                                               "config-logger-dir",
                                               "consumed",
                                               "create-attention-mask-in-dataloader",
                                               "cross-entropy-fusion-impl",
                                               "cuda-graph",
                                               "data-args-path",
                                               "data-cache-path",
                                               "data-impl",
                                               "data-parallel-random-init",
                                               "data-parallel-size",
                                               "data-path",
                                               "data-per-class-fraction",
                                               "data-sharding",
                                               "dataloader",
                                               "ddp-average-in-collective",
                                               "decoder-seq-length",
                                               "decoupled",
                                               "decrease-batch-size-if-needed",
                                               "deepspeed",
                                               "deprecated-use-mcore-models",
                                               "dino",
                                               "disable-gloo-process-groups",
                                               "disable-straggler-on-startup",
                                               "dist-ckpt",
                                               "distributed",
                                               "eidetic",
                                               "embedding-init-method-std",
                                               "embedding-path",
                                               "empty-unused-memory-level",
                                               "enable-cuda-graph",
                                               "enable-experimental",
                                               "enable-ft-package",
                                               "enable-gloo-process-groups",
                                               "enable-one-logger",
                                               "end-weight-decay",
                                               "eod-mask-loss",
                                               "eps",
                                               "error-injection",
                                               "eval",
                                               "evidence-data-path",
                                               "exit",
                                               "export-te-mcore-model",
                                               "external-cuda-graph",
                                               "extra-vocab-size",
                                               "fim",
                                               "finetune",
                                               "flash-decode",
                                               "fp16-lm-cross-entropy",
                                               "fp8-amax",
                                               "fp8-interval",
                                               "fp8-margin",
                                               "fp8-reduce-amax",
                                               "fp8-weight",
                                               "fp8-wgrad",
                                               "ft",
                                               "gloo",
                                               "head-lr-mult",
                                               "high-priority-stream-groups",
                                               "hysteresis",
                                               "ict",
                                               "img",
                                               "indexer",
                                               "inference",
                                               "init-method",
                                               "initial-loss-scale",
                                               "iter-per-epoch",
                                               "iteration",
                                               "iterations",
                                               "kitchen",
                                               "layernorm-epsilon",
                                               "lazy-mpu-init",
                                               "load",
                                               "local-rank",
                                               "log",
                                               "logging",
                                               "logging-level",
                                               "loss-scale",
                                               "lr",
                                               "make-vocab-size-divisible-by",
                                               "manual-gc",
                                               "mask",
                                               "masked-softmax-fusion",
                                               "master-addr",
                                               "master-port",
                                               "max-position-embeddings",
                                               "max-tokens",
                                               "megatron-fsdp-grad-comm-dtype",
                                               "megatron-fsdp-main-grads-dtype",
                                               "megatron-fsdp-main-params-dtype",
                                               "memory-snapshot-path",
                                               "merge-file",
                                               "merges-file",
                                               "microbatch-group-size-per-vp-stage",
                                               "min-loss-scale",
                                               "min-lr",
                                               "mmap-bin-files",
                                               "mmap-warmup",
                                               "mock-data",
                                               "moe-input-jitter-eps",
                                               "moe-per-layer-logging",
                                               "moe-router-bias-update-rate",
                                               "moe-router-dtype",
                                               "moe-router-enable-expert-bias",
                                               "moe-router-force-load-balancing",
                                               "moe-router-fusion",
                                               "moe-router-load-balancing-type",
                                               "moe-router-padding-for-fp8",
                                               "moe-router-pre-softmax",
                                               "moe-router-topk-scaling-factor",
                                               "moe-token-drop-policy",
                                               "moe-use-legacy-grouped-gemm",
                                               "moe-use-upcycling",
                                               "moe-z-loss-coeff",
                                               "mscale",
                                               "muon",
                                               "mup",
                                               "nccl-communicator-config-path",
                                               "no-async-save",
                                               "no-check",
                                               "no-ckpt",
                                               "no-create-attention-mask-in-dataloader",
                                               "no-initialization",
                                               "no-load",
                                               "no-log",
                                               "no-masked-softmax-fusion",
                                               "no-mmap-bin-files",
                                               "no-persist-layer-norm",
                                               "no-pipeline-parallel",
                                               "no-position-embedding",
                                               "no-query-key-layer-scaling",
                                               "no-rope-fusion",
                                               "no-save",
                                               "no-use-layer-wise-param-layout",
                                               "no-weight-decay-cond-type",
                                               "node-rank",
                                               "non-persistent",
                                               "norm-epsilon",
                                               "num-channels",
                                               "num-classes",
                                               "num-dataset-builder-threads",
                                               "num-workers",
                                               "one-logger",
                                               "onnx-safe",
                                               "output-bert-embeddings",
                                               "overlap-p2p-comm-warmup-flush",
                                               "override-opt-param-scheduler",
                                               "override-opt_param-scheduler",
                                               "padded-vocab",
                                               "params-dtype",
                                               "patch-dim",
                                               "per-split-data-args-path",
                                               "perform-initialization",
                                               "phase2-micro-batch",
                                               "pipeline-model-parallel-comm-backend",
                                               "position-embedding-type",
                                               "pretrained-checkpoint",
                                               "profile",
                                               "query-in-block-prob",
                                               "rank",
                                               "record-memory-history",
                                               "renormalize-blend-weights",
                                               "replication",
                                               "rerun",
                                               "result-rejected-tracker-filename",
                                               "retriever",
                                               "retro",
                                               "return-data-index",
                                               "rl",
                                               "rope-type",
                                               "rotary",
                                               "s3-cache-path",
                                               "sample-rate",
                                               "save",
                                               "scatter-gather-tensors-in-pipeline",
                                               "seed",
                                               "sgd",
                                               "sharp",
                                               "short-seq-prob",
                                               "skip-train",
                                               "skipped-train-samples",
                                               "split",
                                               "start-weight-decay",
                                               "straggler",
                                               "swin",
                                               "synchronize-steps",
                                               "te-rng-tracker",
                                               "tensorboard",
                                               "test-data",
                                               "test-data-path",
                                               "test-mode",
                                               "tiktoken",
                                               "timing",
                                               "titles-data-path",
                                               "tokenizer",
                                               "tokens-per",
                                               "tokens-to-retrieve",
                                               "tp-comm-atomic-ag",
                                               "tp-comm-bootstrap-backend",
                                               "tp-comm-bulk",
                                               "tp-comm-overlap-ag",
                                               "tp-comm-overlap-cfg",
                                               "tp-comm-overlap-rs",
                                               "tp-comm-split",
                                               "train",
                                               "train-data",
                                               "transformer-pipeline-model-parallel-size",
                                               "trust-remote-code",
                                               "universal-checkpoint",
                                               "use-checkpoint-args",
                                               "use-checkpoint-opt-param-scheduler",
                                               "use-checkpoint-opt_param-scheduler",
                                               "use-contiguous-buffers-in-local-ddp",
                                               "use-cpu-initialization",
                                               "use-dist-ckpt",
                                               "use-legacy-models",
                                               "use-mcore-models",
                                               "use-mp-args-from-checkpoint-args",
                                               "use-mup",
                                               "use-one-sent-docs",
                                               "use-persistent-ckpt-worker",
                                               "use-pytorch-profiler",
                                               "use-rope-scaling",
                                               "use-rotary-position-embeddings",
                                               "use-tokenizer-model-from-checkpoint-args",
                                               "valid-data",
                                               "valid-data-path",
                                               "verify-integrity",
                                               "vision",
                                               "vocab-extra-ids",
                                               "vocab-file",
                                               "wandb",
                                               "weight-decay",
                                               "wgrad-deferral-limit",
                                               "yaml-cfg"};

struct NotCarried {
  const char* name;
  const char* instead;  // what is played instead
};
constexpr NotCarried kNotCarried[] = {
    {"add-qkv-bias", "biases of queries, keys and values are left out"},
    {"attention-sink-k", "attention has no sinks"},
    {"cpu-offloading-weights", "weights stay on the devices"},
    {"cpu-optimizer", "the optimizer runs on the devices"},
    {"curriculum-learning", "sequences have their full length"},
    {"curriculum-learning-legacy", "sequences have their full length"},
    {"defer-embedding-wgrad-compute", "the embedding's gradient is computed in the usual order"},
    {"deterministic-mode", "kernels are those that need not repeat their results"},
    {"distribute-saved-activations", "each rank keeps whole activations"},
    {"enable-hyper-connections", "there is one residual stream"},
    {"export-kd-teacher-load", "the passes of the teacher are left out"},
    {"fine-grained-activation-offloading", "modules are not offloaded one by one"},
    {"fp32-residual-connection", "residuals have 16 bits"},
    {"hierarchical-context-parallel-sizes", "the ranks of a sequence form one ring"},
    {"mlp-type", "experts have no residual MLP"},
    {"moe-extended-tp", "experts are spread as --expert-tensor-parallel-size says"},
    {"moe-layer-recompute", "layers with experts are kept"},
    {"moe-pad-expert-input-to-capacity", "experts get exactly the tokens that are sent"},
    {"nccl-ub", "buffers are the standard ones"},
    {"offload-optimizer", "the optimizer runs on the devices"},
    {"overlap-param-gather-with-optimizer-step", "gathers begin only when the optimizer is done"},
    {"reset-attention-mask", "tokens see all tokens before them, even of other documents"},
    {"spec", "layers are the standard ones"},
    {"standalone-embedding-stage", "the embedding is on the first stage"},
    {"use-ring-exchange-p2p", "messages are sent one by one"},
    {"use-tp-pp-dp-mapping", "ranks nest as tensor, context, data, pipeline"},
    {"variable-seq-lengths", "all sequences have the same length"},
    {"window-attn-skip-freq", "all layers have the window"}};

// "--tp-comm-overlap", "--spec a b".
std::string TextOf(const WrittenArgument& argument) {
  std::string text = "--" + argument.name;
  for (size_t i = 0; i < argument.values.size() && i < 2; ++i) {
    if (argument.values[i] != "True") text += fmt::format(" {}", argument.values[i].substr(0, 60));
  }
  return text;
}

}  // namespace

bool DecidesNothingInMegatron(std::string_view name) {
  return std::any_of(std::begin(kDecideNothing), std::end(kDecideNothing),
                     [&](std::string_view known) {
                       return name.starts_with(known) &&
                              (name.size() == known.size() || name[known.size()] == '-');
                     });
}

void RemarkOnRest(ArgumentList& arguments, ScenarioDraft& draft) {
  if (arguments.Has({"deepspeed-config"}))
    draft.Remark(
        "--deepspeed_config: the file is not read, so what it says about the step is left out");
  std::vector<std::string> unknown;
  for (const WrittenArgument& argument : arguments.Unread()) {
    const auto changes =
        std::find_if(std::begin(kNotCarried), std::end(kNotCarried),
                     [&](const NotCarried& one) { return argument.name == one.name; });
    // In a log, 0 and an empty value mean that it was not given.
    const bool is_empty =
        argument.values.size() == 1 &&
        (argument.values[0] == "0" || argument.values[0] == "0.0" || argument.values[0] == "[]");
    if (changes != std::end(kNotCarried)) {
      if (!is_empty)
        draft.Remark(fmt::format("not supported: {}; {}", TextOf(argument), changes->instead));
    } else if (!is_empty && !DecidesNothingInMegatron(argument.name)) {
      unknown.push_back(TextOf(argument));
    } else {
      // What is behind its value may be arguments, or nothing.
      for (size_t i = 1; i < argument.values.size(); ++i) {
        if (IsLeftOpen(argument.values[i])) unknown.push_back(argument.values[i]);
      }
    }
  }
  for (const std::string& stray : arguments.strays()) unknown.push_back(stray);
  draft.RemarkOnUnknown(unknown);
}

}  // namespace rehearse

// The stacks. To add one: a row below, in which every switch has its source.
#include <algorithm>
#include <utility>

#include "scenarios/readers/software.h"

namespace rehearse {
namespace {

using Switches = std::vector<SoftwareSwitch>;

constexpr const char* kTrue = "true";
constexpr const char* kFalse = "false";

Switches Joined(Switches first, const Switches& second) {
  first.insert(first.end(), second.begin(), second.end());
  return first;
}

// From compute capability 9.0 on, `newer` if it is given.
Switches Attention(const char* name, const std::string& source, const char* newer = nullptr) {
  Switches switches = {{"training.attention", name, {}, source}};
  if (newer != nullptr) switches.push_back({"training.attention", newer, {}, source, 90});
  return switches;
}

Switches Kernels(const char* kernels, const char* optimizer, const char* cross_entropy,
                 const char* accumulation, const std::string& source) {
  return {{"training.kernels", kernels, {}, source},
          {"training.optimizer", optimizer, {}, source},
          {"training.cross_entropy", cross_entropy, {}, source},
          {"training.accumulation", accumulation, {}, source}};
}

Switches Fsdp(const char* copies, const char* reduce, const std::string& source) {
  return Joined(Switches{{"strategy.gather", "\"layer\"", {"fsdp", "combined"}, source},
                         {"strategy.prefetch", "1", {"fsdp", "combined"}, source},
                         {"strategy.reshard_after_forward", kTrue, {"fsdp", "combined"}, source},
                         {"strategy.overlap_reduce_scatter", kTrue, {"fsdp", "combined"}, source},
                         {"strategy.overlap_gradients", kTrue, {"fsdp", "combined"}, source},
                         {"strategy.copies", copies, {"fsdp", "combined"}, source},
                         {"strategy.reduce", reduce, {"fsdp", "combined"}, source}},
                {{"strategy.zero", "3", {"combined"}, source}});
}

// PyTorch's own tensor parallelism.
Switches DTensor() {
  const std::string source =
      "pytorch.org/docs, distributed.tensor.parallel: SequenceParallel and PrepareModuleInput, "
      "autograd keeps what was gathered; pytorch/torchtitan, parallelize.py: the same";
  return {{"strategy.sequence_parallel", kTrue, {"combined"}, source},
          {"strategy.keep_gathered", kTrue, {"combined"}, source},
          {"strategy.overlap_all_reduce", kFalse, {"combined"}, source},
          {"strategy.context_kind",
           "\"all-gather\"",
           {"combined"},
           "pytorch/torchtitan, config: context_parallel_rotate_method is allgather"}};
}

// NeMo's and Megatron-Bridge's recipes for products in 8 and 4 bits.
Switches NarrowRecipes(const std::string& source) {
  const Switches parameters = {{"training.narrow_parameters",
                                kTrue,
                                {"megatron", "combined"},
                                source,
                                0,
                                {"fp8", "fp8-current", "fp8-blockwise", "mxfp8"}}};
  return Joined(parameters, {{"training.precise_layers", "1", {}, source, 0, {"fp8-current"}}});
}

// `gathers`: whether parameters are gathered during the forward pass.
Switches MegatronBuckets(const char* gathers, const std::string& source) {
  return {{"strategy.bucket_elements", "40000000", {"megatron", "combined"}, source},
          {"strategy.overlap_parameter_gathers", gathers, {"megatron", "combined"}, source}};
}

Switches Megatron(const char* overlap_all_reduce, const char* overlap_gradients,
                  const char* distributed_optimizer, const std::string& source) {
  return Joined(
      Switches{
          {"strategy.sequence_parallel", kFalse, {"megatron", "combined"}, source},
          {"strategy.overlap_all_reduce", overlap_all_reduce, {"megatron", "combined"}, source},
          {"strategy.overlap_gradients", overlap_gradients, {"megatron", "combined"}, source}},
      {{"strategy.distributed_optimizer", distributed_optimizer, {"megatron"}, source},
       {"strategy.zero",
        std::string(distributed_optimizer) == kTrue ? "1" : "0",
        {"combined"},
        source},
       {"strategy.context_kind",
        "\"ring\"",
        {"combined"},
        "NVIDIA/Megatron-LM, arguments.py: --cp-comm-type p2p"}});
}

// Tensor-parallel transfers by Transformer Engine's user buffers.
Switches UserBuffers() {
  return {{"simulator.copy_engines",
           "[\"tensor\"]",
           {},
           "NVIDIA/NeMo recipes: tp_comm_overlap; NVIDIA/TransformerEngine, module/base.py "
           "(initialize_ub): ring_exchange by copy engines (use_ce), else set_sm_margin"}};
}

Switches WithoutNvls(const std::string& source) { return {{"simulator.nvls", kFalse, {}, source}}; }

// Megatron-LM's 1F1B waits for its messages.
Switches WaitsForMessages(const char* source) {
  return {{"pipeline.overlap_messages", kFalse, {"1f1b"}, source}};
}

// PyTorch's checkpoints that are not re-entrant.
Switches StopsEarly(const std::string& source) {
  return {{"training.recomputed_last_product",
           kFalse,
           {},
           source + "; pytorch.org/docs, torch.utils.checkpoint (2.1): set_checkpoint_early_stop, "
                    "on by default where use_reentrant is False"}};
}

// PyTorch's DistributedDataParallel sums gradients in buckets during the backward pass.
Switches Ddp() {
  return {{"strategy.overlap_gradients",
           kTrue,
           {"data-parallel"},
           "pytorch.org/docs, DistributedDataParallel: buckets beside backward"}};
}

constexpr const char* kFsdp1 =
    "pytorch.org/docs/stable/fsdp.html (2.0 to 2.4): FullyShardedDataParallel's defaults "
    "backward_prefetch=BACKWARD_PRE, limit_all_gathers=True, wrapped layer by layer; "
    "MixedPrecision.reduce_dtype=None takes param_dtype";
constexpr const char* kFsdp2 =
    "pytorch/torchtitan 0011fb905, config_manager.py (2024): fully_shard a layer, "
    "mixed_precision_reduce float32; pytorch.org/docs, FSDP2: copies in and out of its buffers";
constexpr const char* kWrapper =
    "pytorch/pytorch, checkpoint_wrapper.py: CheckpointImpl.NO_REENTRANT by default";
// torchtitan over stages.
Switches FsdpOfStages() {
  const std::string reshard =
      "pytorch/torchtitan, parallelize.py: with pipeline parallelism reshard_after_forward is "
      "False by default";
  const std::string last =
      "pytorch/pytorch, torch/distributed/pipelining/stage.py, backward_maybe_with_nosync: "
      "set_reshard_after_backward and set_requires_gradient_sync are False but for the last "
      "micro-batch";
  const std::string messages =
      "pytorch/pytorch, torch/distributed/pipelining/stage.py: a buffer to receive in for each "
      "chunk, output_chunks until the next step";
  return {{"strategy.reshard_after_forward", kFalse, {"fsdp", "combined"}, reshard, 0, {}, true},
          {"strategy.until_last_micro_batch", kTrue, {"fsdp", "combined"}, last, 0, {}, true},
          {"pipeline.keep_messages", kTrue, {}, messages, 0, {}, true},
          {"memory.allocator",
           "\"expandable\"",
           {},
           "pytorch/torchtitan, run_train.sh: PYTORCH_CUDA_ALLOC_CONF=expandable_segments:True"}};
}

constexpr const char* kAutomodel =
    "NVIDIA-NeMo/Automodel df2959d6e (October 2025), components/moe/parallelizer.py: fully_shard a "
    "block, reduce_dtype float32, reshard_after_forward False";
constexpr const char* kAutomodelTypes =
    "the same, components/models: dtype is the configuration's torch_dtype, bfloat16; "
    "examples/benchmark/configs: torch.optim.Adam, whose state has the parameters' type";
// NeMo AutoModel shares parameters of 16 bits by FSDP2, and Adam updates these.
Switches AutomodelBooks() {
  const std::string last =
      "the same, components/moe/fsdp_mixin.py and components/distributed/utils.py: "
      "set_requires_gradient_sync is False but for the last micro-batch";
  return {{"strategy.until_last_micro_batch", kTrue, {"fsdp", "combined"}, last},
          {"training.masters", "\"none\"", {}, kAutomodelTypes},
          {"training.moments", "\"bf16\"", {}, kAutomodelTypes},
          {"training.gradients", "\"bf16\"", {}, kAutomodelTypes},
          {"training.permutation",
           "\"fused\"",
           {},
           "the same, components/moe/megatron: fused permute behind DeepEP"},
          {"training.router_weights",
           "\"activation\"",
           {},
           "the same, components/moe/layers.py: weights multiply SwiGLU's result"}};
}
constexpr const char* kSdpa =
    "pytorch.org/docs, scaled_dot_product_attention: FlashAttention-2 since 2.2";
constexpr const char* kAdamW = "pytorch.org/docs, torch.optim.AdamW: foreach by default on CUDA";
constexpr const char* kDeepSpeed =
    "deepspeedai/DeepSpeed 03dc2b92f, runtime/zero/config.py: stage3_prefetch_bucket_size 5e7, "
    "max_live_parameters 1e9, reduce_bucket_size 5e8, overlap_comm where stage is 3; parameters "
    "under 1e5 elements are kept whole, as biases and norms are here";
constexpr const char* kMegatronCore =
    "NVIDIA/Megatron-LM, megatron/training/arguments.py (2024): gradient accumulation, bias and "
    "rotary fusion and asynchronous tensor-parallel all-reduce on; --overlap-grad-reduce, "
    "--use-distributed-optimizer, --sequence-parallel, --cross-entropy-loss-fusion off";
constexpr const char* kTransformerEngine =
    "NVIDIA/TransformerEngine docs, attention: FlashAttention-2 before, cuDNN from sm90 on";
constexpr const char* kNemo =
    "NVIDIA/NeMo 24.07 to 25.x recipes: MegatronCommOverlapConfig(overlap_grad_reduce, "
    "overlap_param_gather), distributed optimizer, GPTConfig.cross_entropy_loss_fusion";
constexpr const char* kNemoNvls =
    "NVIDIA/NeMo scripts/performance/executors.py, NVIDIA-NeMo/Megatron-Bridge likewise: "
    "NCCL_NVLS_ENABLE=0, to save memory";
constexpr const char* kPermutation =
    "NVIDIA/NeMo and NVIDIA-NeMo/Megatron-Bridge, models with experts: moe_permute_fusion=True "
    "(2025 on; Megatron-Core's own default is off)";
constexpr const char* kNemoGradients =
    "NVIDIA/NeMo recipes in performance mode, NVIDIA-NeMo/Megatron-Bridge scripts/performance: "
    "grad_reduce_in_fp32=False; NVIDIA/dgxc-benchmarking grok1_314b.yaml: grad_sync_dtype bf16";
constexpr const char* kLauncherGradients =
    "NVIDIA/NeMo-Framework-Launcher, examples/training of April 2024 and later: all of GPT's and "
    "Llama's have +training.model.optim.grad_sync_dtype=bf16, as has Nemotron 340B's "
    "configuration (Nemotron 8B's and 22B's have it not)";
constexpr const char* kNemoHost =
    "calibrated to one row, gpt-oss 120B on 64 H100 by the container of 26.02 (13.7 s with "
    "micro-batches of one sequence, for which the host is too slow); scenarios/STUDIES.md has what "
    "it gives for others; models without experts are replayed (NVIDIA/NeMo "
    "scripts/performance/recommended_model_configs: cuda_graphs)";
constexpr const char* kNemoLauncher =
    "NVIDIA/NeMo-Framework-Launcher 01d077386, conf/config.yaml (24.03 to 24.07): "
    "NVTE_FUSED_ATTN=0, "
    "\"disable cudnn FA until we've tested it more\" (until its #422 of August 2024), "
    "NCCL_NVLS_ENABLE=0";
constexpr const char* kBuckets =
    "docs.nvidia.com/megatron-core, DistributedDataParallelConfig: bucket_size "
    "max(40000000, 1000000 x data-parallel ranks), overlap_param_gather False";
constexpr const char* kNarrow =
    "NVIDIA-NeMo/Megatron-Bridge training/mixed_precision.py, NVIDIA/NeMo mixed_precision recipes: "
    "fp8_param_gather; current scaling keeps the first and the last layer in bf16";
constexpr const char* kMegatron2021 =
    "NVIDIA/Megatron-LM v2.5 (2021): fused softmax, bias-GELU, bias-dropout, Apex FusedAdam; no "
    "FlashAttention; gradients all-reduced after backward, in 16 bits";
constexpr const char* kPipeline2021 =
    "NVIDIA/Megatron-LM v2.5 (2021), schedules.py and p2p_communication.py: 1F1B waits for "
    "send_forward_recv_backward; scatter_gather_tensors_in_pipeline";
constexpr const char* kPipelineCore =
    "NVIDIA/Megatron-LM core/pipeline_parallel/schedules.py (2024): without interleaving "
    "send_forward_recv_backward is waited for, with it --overlap-p2p-communication";
constexpr const char* kFoundry =
    "mosaicml/llm-foundry scripts/train/benchmarking (2023): attn_impl triton, FSDP with "
    "limit_all_gathers, decoupled_adamw; MPTConfig: no dropout, fused_crossentropy; "
    "mosaicml/composer 0099561e6, mosaic_fsdp_utils.py: reduces in param_dtype";
constexpr const char* kMaxText =
    "AI-Hypercomputer/maxtext, base.yml (2024): cudnn_flash_te on GPUs, XLA fuses element-wise "
    "work and the optimizer, its latency-hiding scheduler gathers a layer ahead";
constexpr const char* kMaxTextElsewhere =
    "AI-Hypercomputer/maxtext, base.yml: attention autoselected, which is Pallas's flash attention "
    "on TPUs";
constexpr const char* kPaxml =
    "NVIDIA/JAX-Toolbox, pax scripts of 2023 and 2024: XLA's latency-hiding scheduler, but neither "
    "double-buffered loops nor pipelined gathers, so that what hides does so within a layer";
constexpr const char* kAxonn = "AxoNN, arXiv 2305.13525, section IV: optimisations A to D";

std::vector<SoftwareStack> Stacks() {
  const Switches eager =
      Joined(Attention("\"flash-2\"", kSdpa),
             Kernels("\"eager\"", "\"foreach\"", "\"unfused\"", "\"separate\"", kAdamW));
  const Switches compiled =
      Joined(Attention("\"flash-2\"", kSdpa),
             Kernels("\"compiled\"", "\"foreach\"", "\"fused\"", "\"separate\"", kAdamW));
  const Switches transformer_engine = Attention("\"flash-2\"", kTransformerEngine, "\"cudnn\"");
  const Switches nemo =
      Joined(Kernels("\"fused\"", "\"fused\"", "\"fused\"", "\"fused\"", kNemo),
             Joined(Joined(Megatron(kTrue, kTrue, kTrue, kNemo), MegatronBuckets(kTrue, kNemo)),
                    Joined(NarrowRecipes(kNarrow), WaitsForMessages(kPipelineCore))));
  const Switches gradients_16 = {{"training.gradients", "\"bf16\"", {}, kMegatron2021}};
  const Switches maxtext =
      Joined(Joined(Switches{{"training.attention", "\"fused\"", {}, kMaxTextElsewhere},
                             {"training.attention", "\"cudnn\"", {}, kMaxText, 70}},
                    Kernels("\"compiled\"", "\"fused\"", "\"fused\"", "\"separate\"", kMaxText)),
             Joined({{"training.dropout", kFalse, {}, kMaxText},
                     {"memory.allocator",
                      "\"none\"",
                      {},
                      "jax.dev, GPU memory allocation: XLA takes 75 % of the device at once"}},
                    Fsdp("\"none\"", "\"precision\"", kMaxText)));
  Switches paxml = maxtext;
  for (SoftwareSwitch& one : paxml) {
    if (one.path == "strategy.gather") one.value = "\"product\"";
    if (one.path == "strategy.prefetch") one.value = "1000";
    if (one.path.rfind("strategy.", 0) == 0) one.source = kPaxml;
  }
  paxml.push_back({"strategy.within_layer", kTrue, {"fsdp", "combined"}, kPaxml});
  Switches automodel = Fsdp("\"per-parameter\"", "\"fp32\"", kAutomodel);
  for (SoftwareSwitch& one : automodel)
    if (one.path == "strategy.reshard_after_forward") one.value = kFalse;
  return {
      {"automodel", "NeMo AutoModel: FSDP2 over parameters of 16 bits (2025 on)",
       Joined(Joined(transformer_engine,
                     Kernels("\"fused\"", "\"foreach\"", "\"unfused\"", "\"separate\"",
                             "NVIDIA-NeMo/Automodel, BackendConfig: attn, linear, rms_norm te; "
                             "MaskedCrossEntropy")),
              Joined(Joined(automodel, DTensor()),
                     Joined(AutomodelBooks(),
                            StopsEarly("NVIDIA-NeMo/Automodel, components/moe/parallelizer.py: "
                                       "ptd_checkpoint_wrapper"))))},
      {"axonn", "AxoNN with Megatron-LM's kernels (2023)",
       Joined(Kernels("\"fused\"", "\"fused\"", "\"unfused\"", "\"separate\"", kMegatron2021),
              {{"strategy.transpose_alternate_layers", kTrue, {"4d"}, kAxonn},
               {"strategy.overlap_all_reduce", kTrue, {"4d"}, kAxonn},
               {"strategy.overlap_reduce_scatter", kTrue, {"4d"}, kAxonn},
               {"strategy.overlap_all_gather", kTrue, {"4d"}, kAxonn}})},
      {"deepspeed-zero3", "DeepSpeed's ZeRO-3 under eager PyTorch (2023 on)",
       Joined(Joined(Attention("\"flash-2\"", kSdpa),
                     Kernels("\"eager\"", "\"fused\"", "\"unfused\"", "\"separate\"",
                             "deepspeedai/DeepSpeed docs: FusedAdam")),
              Joined(
                  Switches{
                      {"training.gradients",
                       "\"bf16\"",
                       {"fsdp", "combined"},
                       "deepspeedai/DeepSpeed runtime/engine.py: grad_accum_dtype is the model's"},
                      {"strategy.gather", "\"product\"", {"fsdp", "combined"}, kDeepSpeed},
                      {"strategy.prefetch", "1", {"fsdp", "combined"}, kDeepSpeed},
                      {"strategy.prefetch_elements", "50000000", {"fsdp", "combined"}, kDeepSpeed},
                      {"strategy.most_gathered", "1000000000", {"fsdp", "combined"}, kDeepSpeed},
                      {"strategy.reduce_elements", "500000000", {"fsdp", "combined"}, kDeepSpeed},
                      {"strategy.copies", "\"buckets\"", {"fsdp", "combined"}, kDeepSpeed},
                      {"strategy.reshard_after_forward", kTrue, {"fsdp", "combined"}, kDeepSpeed},
                      {"strategy.overlap_reduce_scatter", kTrue, {"fsdp", "combined"}, kDeepSpeed},
                      {"strategy.overlap_gradients", kTrue, {"fsdp", "combined"}, kDeepSpeed}},
                  {{"strategy.zero", "3", {"combined"}, kDeepSpeed},
                   {"strategy.sequence_parallel", kFalse, {"combined"}, kDeepSpeed},
                   {"strategy.overlap_all_reduce", kFalse, {"combined"}, kDeepSpeed},
                   {"strategy.context_kind",
                    "\"ulysses\"",
                    {"combined"},
                    "deepspeedai/DeepSpeed, sequence/layer.py: DistributedAttention"}}))},
      {"fsdp-compiled", "PyTorch's FSDP with flat parameters, layers by torch.compile (2023 on)",
       Joined(Joined(compiled, Fsdp("\"flat\"", "\"precision\"", kFsdp1)),
              Joined(Joined(DTensor(), Ddp()), StopsEarly(kWrapper)))},
      {"fsdp-eager", "PyTorch's FSDP with flat parameters, op by op (2023 on)",
       Joined(Joined(eager, Fsdp("\"flat\"", "\"precision\"", kFsdp1)),
              Joined(Joined(DTensor(), Ddp()), StopsEarly(kWrapper)))},
      {"llm-foundry", "MosaicML's llm-foundry and Composer (2023)",
       Joined(Joined(Attention("\"flash-1\"", kFoundry),
                     Kernels("\"eager\"", "\"loop\"", "\"fused\"", "\"separate\"", kFoundry)),
              Joined({{"strategy.backward_prefetch",
                       "\"post\"",
                       {"fsdp", "combined"},
                       "mosaicml/composer, dist_strategy.py (2023): fsdp_config.get("
                       "'backward_prefetch', 'BACKWARD_POST')"},
                      {"training.dropout", kFalse, {}, kFoundry},
                      {"training.metrics",
                       "2",
                       {},
                       "mosaicml/llm-foundry models/mpt/modeling_mpt.py: train_metrics are "
                       "LanguageCrossEntropy and LanguagePerplexity, of every micro-batch"}},
                     Joined(Fsdp("\"flat\"", "\"precision\"", kFoundry),
                            StopsEarly("mosaicml/llm-foundry scripts/train/benchmarking: "
                                       "activation_checkpointing_reentrant: false"))))},
      {"maxtext", "MaxText: JAX and XLA (2024)", maxtext},
      {"megatron-core", "Megatron-Core with Transformer Engine, its arguments' defaults (2024 on)",
       Joined(Joined(transformer_engine,
                     Kernels("\"fused\"", "\"fused\"", "\"unfused\"", "\"fused\"", kMegatronCore)),
              Joined(Megatron(kTrue, kFalse, kFalse, kMegatronCore),
                     Joined(MegatronBuckets(kFalse, kBuckets), WaitsForMessages(kPipelineCore))))},
      {"megatron-lm-2021", "Megatron-LM of the papers of 2021 and 2022",
       Joined(
           Joined(Attention("\"unfused\"", kMegatron2021),
                  Kernels("\"fused\"", "\"fused\"", "\"unfused\"", "\"separate\"", kMegatron2021)),
           Joined(Joined(gradients_16, Megatron(kFalse, kFalse, kFalse, kMegatron2021)),
                  Joined(WaitsForMessages(kPipeline2021),
                         {{"pipeline.scatter", "[\"tensor\"]", {"megatron"}, kPipeline2021}})))},
      {"nemo", "NeMo's recipes: Megatron-Core with its overlaps (autumn of 2024 on)",
       Joined(Joined(transformer_engine, nemo),
              Joined(Joined(UserBuffers(), WithoutNvls(kNemoNvls)),
                     {{"training.gradients", "\"bf16\"", {}, kNemoGradients},
                      {"training.permutation", "\"fused\"", {}, kPermutation},
                      {"training.host_launch", "\"55us\"", {}, kNemoHost}}))},
      {"nemo-launcher", "The same by NeMo's launcher, with FlashAttention-2 (to summer of 2024)",
       Joined(Joined(Attention("\"flash-2\"", kNemoLauncher), nemo),
              Joined(Joined(UserBuffers(), WithoutNvls(kNemoLauncher)),
                     {{"training.gradients", "\"bf16\"", {}, kLauncherGradients}}))},
      {"paxml", "Paxml: JAX and XLA, a loop over the layers (2023, 2024)", paxml},
      {"torchtitan", "torchtitan: FSDP2, op by op unless compiled (2024 on)",
       Joined(Joined(eager, Fsdp("\"per-parameter\"", "\"fp32\"", kFsdp2)),
              Joined(Joined(DTensor(), FsdpOfStages()),
                     StopsEarly("pytorch/torchtitan, parallelize_llama.py: "
                                "ptd_checkpoint_wrapper")))},
  };
}

}  // namespace

const std::vector<SoftwareStack>& SoftwareStacks() {
  static const std::vector<SoftwareStack> stacks = Stacks();
  return stacks;
}

}  // namespace rehearse

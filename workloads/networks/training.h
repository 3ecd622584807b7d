// The numbers of a run that belong neither to the model nor to the strategy.
#pragma once

#include <cstdint>
#include <optional>
#include <vector>

#include "sim/base/quantity.h"
#include "sim/schedule/alike.h"
#include "sim/schedule/schedule.h"

namespace rehearse {

// What the backward pass computes again instead of keeping it: nothing, the attention core (whose
// scores would take s² per head; Korthikanti et al. 2022), or each layer from its input on.
enum class Recomputation : uint8_t { kNone, kSelective, kFull };

// What selective recomputation computes again in addition to the core of an unfused attention:
// results of these ops of a layer are dropped after the forward pass (Megatron-Core's
// recompute_modules; DeepSeek-V3, section 3.2.3). If something else keeps a copy (gathered, or
// cast), that stays.
struct RecomputedOps {
  bool attention = false;    // the core, fused or not
  bool activations = false;  // between the matrices of an MLP
  bool norms = false;
  bool projections = false;  // in latent attention, from short vectors to heads
  bool output = false;       // of attention: its projection and the residual sum behind it
  bool first = false;        // the first products of MLPs and experts
  bool inputs = false;       // of attention: the product of Q, K and V
  // All between a router's scores and what its experts give back: rows on their way, grouped
  // products, and what lies between them.
  bool experts = false;
  // Every second product of a layer, as torchtitan counts them (act_ckpt "op": Q, K, V, the output,
  // gate, up, down; of latent attention also those to short vectors): K, attention's output, up. Of
  // products that are one here, such a part of the result is dropped.
  bool second_products = false;

  bool Any() const {
    return attention || activations || norms || projections || output || first || inputs ||
           experts || second_products;
  }
};

// How element-wise work is run, which determines its kernels and their memory traffic, but never
// what they compute (workloads/planner/kernel_costs.h).
enum class KernelStyle : uint8_t {
  kFused,     // by hand, as in Megatron-LM, Apex and Transformer Engine
  kEager,     // PyTorch op by op
  kCompiled,  // by torch.compile, layer by layer
};

// Adam: one kernel for all of it; one for each operation on all arrays (PyTorch's foreach), or one
// for each operation and array (its plain loop).
enum class OptimizerKernels : uint8_t { kFused, kForeach, kLoop };

// How parameters follow from gradients (workloads/planner/optimizer_update.h).
enum class UpdateRule : uint8_t { kAdam, kLamb, kSgd, kMuon };

// What Adam updates where parameters have 16 bits: weights in fp32 beside them; only the 16 bits
// that these lack (Transformer Engine's store_param_remainders, which Megatron-LM sets with
// --use-precision-aware-optimizer); or the parameters themselves (PyTorch's optimizers over a model
// in bf16, whose state is then in bf16 as well).
enum class MasterWeights : uint8_t { kFp32, kRemainders, kNone };

// The type that products with the layers' matrices are multiplied in, and which of Transformer
// Engine's recipes casts their operands (workloads/planner/casts.h).
enum class ProductRecipe : uint8_t {
  kNone,          // in the training's precision
  kFp8,           // delayed scaling: an array's scale is known before it is cast
  kFp8Current,    // current scaling: its largest number is found first
  kFp8Blockwise,  // a scale for each block of 128, as in DeepSeek-V3
  kMxfp8,         // of 32
  kNvfp4,         // of 16, in 4 bits
};

struct Training {
  uint64_t batch = 0;     // sequences or images per step, over all ranks
  uint64_t sequence = 0;  // tokens
  // Tokens of each document, several of which are packed into a sequence: a token attends to its
  // own one only. 0: a sequence is one.
  uint64_t document = 0;
  uint32_t micro_batches = 1;
  // Samples of a micro-batch in each group of ranks that has its own, if the scenario says that
  // instead (scenarios/readers/micro_batch_size.h).
  std::optional<uint32_t> micro_batch_size = std::nullopt;
  Recomputation recomputation = Recomputation::kFull;
  // Full recomputation: so many of each stage's first layers, as one number for all stages or one
  // for each. If it is empty, all layers are recomputed.
  std::vector<uint32_t> recomputed_layers = {};
  RecomputedOps recomputed_ops = {};  // selective
  // Full recomputation: whether it ends with the layer's result, or before the last product of the
  // layer, since no gradient needs what comes of it (PyTorch's non-reentrant checkpoints from 2.1
  // on: torch.utils.checkpoint.set_checkpoint_early_stop). Dropout behind that product has a mask
  // that is needed, so that such a layer is computed to its end.
  bool recomputes_last_product = true;
  // So many of each stage's first layers keep their activations on the host
  // (workloads/planner/offload.h).
  uint32_t offloaded_layers = 0;
  // The optimizer's state is on the host but for the update: it leaves beside the forward pass, and
  // returns while gradients are summed (Megatron-LM's --offload-optimizer-states).
  bool offloaded_optimizer = false;
  // The optimizer's state is on the host for good, and so is its update: gradients go there as they
  // are summed, Adam runs on the CPU, and what it made comes back (DeepSpeed's offload_optimizer,
  // PyTorch's CPUOffloadPolicy; workloads/planner/optimizer_update.h).
  bool optimizer_on_host = false;
  // Shares of ZeRO-3 are on the host, too, and come to the device to be gathered (DeepSpeed's
  // offload_param, PyTorch's CPUOffloadPolicy).
  bool parameters_on_host = false;
  // The step writes parameters and state over those before; else (JAX without donate_argnums) both
  // are there while it runs.
  bool donates_state = true;
  // Which attention core runs. All except an unfused one never store scores (FlashAttention). An
  // unfused one stores softmax, dropout mask and dropout's result for the backward pass, 5·s bytes
  // per token and head in bf16, unless recomputed.
  AttentionKernel attention = AttentionKernel::kFused;
  // Whether a convolution reads the windows of its image where they are (cuDNN's implicit GEMM)
  // rather than writing each of them first: kernel² times the image. Backends write them in any
  // case.
  bool implicit_convolution = true;
  // The type of arithmetic and parameters. In bf16, gradients are accumulated in fp32, and Adam
  // keeps fp32 master weights and moments (2 + 4 + 12 bytes per parameter), as in Megatron-LM. In
  // fp32 everything is fp32 (4 + 4 + 8).
  DType precision = DType::kBf16;
  // Attention cores, the head, the embedding and everything that is not a product stay in
  // `precision`.
  ProductRecipe products = ProductRecipe::kNone;
  // The order that products read the scales of blocks in (mxfp8, nvfp4) is made by a kernel of its
  // own for each operand, rather than by the casts (workloads/planner/casts.h).
  bool orders_scales_apart = false;
  // The device's matrix units read 8-bit operands along columns as well as along rows (Blackwell),
  // so that arrays with one scale need no transposed copy. Not a key: the device says it.
  bool reads_columns = false;
  uint32_t precise_layers = 0;  // this many first and last layers keep products in `precision`
  // The matrices of these products are kept and gathered only in 8 bits (Megatron-Core's
  // fp8_param_gather); else also in `precision`. MXFP8 scales rows and columns apart, so that a
  // copy cannot be turned: there what is gathered is in `precision`, into the memory of the
  // gradients, and both copies are made of it (reuse_grad_buf_for_mxfp8_param_ag).
  bool narrow_parameters = false;
  // The type in which gradients of matrices are accumulated over micro-batches, summed over ranks
  // and given to Adam: fp32 (Megatron-LM in bf16), or that of `precision` (OneFlow, DeepSpeed,
  // Megatron-LM in fp16), which halves the bytes. What is reduce-scattered product by product
  // (ZeRO-2, -3) travels in `precision` anyway.
  DType gradients = DType::kFp32;
  // The type in which Adam keeps its two moments (Megatron-LM's --exp-avg-dtype and
  // --exp-avg-sq-dtype).
  DType moments = DType::kFp32;
  MasterWeights masters = MasterWeights::kFp32;
  // Each product runs in the fastest of the modes NN, NT, TN (workloads/planner/kernel_tuning.h).
  bool tuned_kernels = false;
  KernelStyle kernels = KernelStyle::kFused;
  UpdateRule update_rule = UpdateRule::kAdam;
  // Muon makes the step of each tensor parallel rank's piece of a matrix orthogonal by itself
  // (Megatron-LM's --muon-tp-mode blockwise, its default), rather than that of all of the matrix.
  // It takes fewer products and no gathers, and gives other numbers than one rank does.
  bool muon_by_pieces = false;
  OptimizerKernels optimizer = OptimizerKernels::kFused;
  // The loss reads logits as they are, and writes their gradient over them; else it makes copies in
  // fp32.
  bool fused_cross_entropy = false;
  // SwiGLU of experts, what belongs to it, and casts of its results are parts of the grouped
  // products: Transformer Engine's op fuser with cuDNN's kernels of 2026 (Megatron-LM,
  // --use-transformer-engine-op-fuser).
  bool fused_experts = false;
  // Each expert is a module of its own, whose results (backward: whose gradients) are joined
  // (Megatron-LM without --moe-grouped-gemm).
  bool sequential_experts = false;
  // Tokens' rows are put in the order of experts and back by Transformer Engine's kernels
  // (Megatron-LM, --moe-permute-fusion); else by PyTorch's, as Megatron-LM does by default.
  bool fused_permutation = false;
  // Products of dW add to the sum of gradients themselves (Megatron-LM's accumulation fusion).
  bool fused_accumulation = false;
  // How often the loss is computed once more from the logits, for people to watch.
  uint32_t metrics = 0;
  // Routers' weights multiply what SwiGLU makes, so that no gradient needs what experts give back
  // (DeepSeek-V3; Megatron-LM since 2025). Backends multiply the results, as the network says: such
  // a step can be played but not executed.
  bool weighs_early = false;
  // With products in 8 bits and selective recomputation: casts of what is computed again are made
  // again too, rather than kept.
  bool keeps_casts = true;
  // With products in 8 bits, what SwiGLU takes is kept in 8 bits; and with selective recomputation
  // what attention gives to its projection in 12 (DeepSeek-V3, section 3.3.3: E5M6), whose casts
  // are then made again.
  bool keeps_narrow_activations = false;
  bool keeps_narrow_attention = false;
  bool dropout = true;  // of GPT; without it there are neither masks nor their kernels
  // Parts of a layer that the host replays as a CUDA graph each (Megatron-LM, --cuda-graph-scope):
  // it launches their kernels at once, and one by one those of the others.
  bool graphs_attention = false;    // with the norm before and the sum after
  bool graphs_mlp = false;          // the same, in layers without experts
  bool graphs_router = false;       // with the norm before
  bool graphs_state_space = false;  // with the norm before and the sum after
  // How long the host needs to launch a kernel: ops begin when they have been launched, one after
  // the other. 0: launching never holds kernels up, or they are replayed from a graph.
  Seconds host_launch;

  // Whether full recomputation takes the layer_of_stage-th layer of a stage.
  bool ComputesAgain(uint32_t stage, uint32_t layer_of_stage) const {
    if (recomputation != Recomputation::kFull) return false;
    if (recomputed_layers.empty()) return true;
    const bool is_one = recomputed_layers.size() == 1;
    return layer_of_stage < recomputed_layers[is_one ? 0 : stage];
  }
  bool FusesAttention() const { return attention != AttentionKernel::kUnfused; }
  // What attention goes over.
  uint64_t Attended() const { return document == 0 ? sequence : document; }
  double Tokens() const { return static_cast<double>(batch) * static_cast<double>(sequence); }
};

// The first layers of a stage, and the last ones, may be treated by themselves; and the optimizer's
// state comes back beside some layers, not beside others. Muon multiplies each layer's matrices.
inline Alike AlikeUnder(const Training& training) {
  return {.layers = training.recomputed_layers.empty() && training.offloaded_layers == 0 &&
                    !training.offloaded_optimizer && !training.optimizer_on_host &&
                    training.precise_layers == 0 && training.update_rule != UpdateRule::kMuon};
}

}  // namespace rehearse

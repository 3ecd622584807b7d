#include "scenarios/readers/training_reader.h"

#include <fmt/format.h>
#include <nlohmann/json.hpp>

#include "sim/schedule/schedule_format.h"

namespace rehearse {
namespace {

constexpr const char* kOfDecoders = "of decoders";
constexpr const char* kOfImages = "of images";

constexpr ValueName<Recomputation> kRecomputationNames[] = {
    {"none", Recomputation::kNone},
    {"selective", Recomputation::kSelective},
    {"full", Recomputation::kFull}};
constexpr FlagName<RecomputedOps> kRecomputedOpNames[] = {
    {"core-attention", &RecomputedOps::attention},
    {"activations", &RecomputedOps::activations},
    {"norms", &RecomputedOps::norms},
    {"latent-projections", &RecomputedOps::projections},
    {"attention-output", &RecomputedOps::output},
    {"first-products", &RecomputedOps::first},
    {"experts", &RecomputedOps::experts},
    {"every-second-product", &RecomputedOps::second_products},
    {"attention-inputs", &RecomputedOps::inputs}};
constexpr ValueName<bool> kConvolutionNames[] = {{"implicit", true}, {"explicit", false}};
constexpr ValueName<DType> kPrecisionNames[] = {{"bf16", DType::kBf16}, {"fp32", DType::kFp32}};
constexpr ValueName<DType> kSumNames[] = {{"fp32", DType::kFp32}, {"bf16", DType::kBf16}};
constexpr ValueName<ProductRecipe> kProductNames[] = {
    {"plain", ProductRecipe::kNone},
    {"fp8", ProductRecipe::kFp8},
    {"fp8-current", ProductRecipe::kFp8Current},
    {"fp8-blockwise", ProductRecipe::kFp8Blockwise},
    {"mxfp8", ProductRecipe::kMxfp8},
    {"nvfp4", ProductRecipe::kNvfp4}};
constexpr ValueName<KernelStyle> kKernelStyleNames[] = {{"fused", KernelStyle::kFused},
                                                        {"eager", KernelStyle::kEager},
                                                        {"compiled", KernelStyle::kCompiled}};
constexpr ValueName<UpdateRule> kRuleNames[] = {{"adam", UpdateRule::kAdam},
                                                {"lamb", UpdateRule::kLamb},
                                                {"sgd", UpdateRule::kSgd},
                                                {"muon", UpdateRule::kMuon}};
constexpr ValueName<bool> kMuonNames[] = {{"whole", false}, {"pieces", true}};
constexpr ValueName<OptimizerKernels> kOptimizerNames[] = {{"fused", OptimizerKernels::kFused},
                                                           {"foreach", OptimizerKernels::kForeach},
                                                           {"loop", OptimizerKernels::kLoop}};
constexpr ValueName<MasterWeights> kMasterNames[] = {{"fp32", MasterWeights::kFp32},
                                                     {"remainders", MasterWeights::kRemainders},
                                                     {"none", MasterWeights::kNone}};
constexpr ValueName<bool> kFusionNames[] = {{"unfused", false}, {"fused", true}};
constexpr ValueName<bool> kWeighingNames[] = {{"combination", false}, {"activation", true}};
constexpr ValueName<bool> kCastsNames[] = {{"kept", true}, {"again", false}};
constexpr ValueName<bool> kScaleNames[] = {{"by-casts", false}, {"apart", true}};
constexpr FlagName<Training> kNarrowKeptNames[] = {
    {"activations", &Training::keeps_narrow_activations},
    {"attention", &Training::keeps_narrow_attention}};
constexpr ValueName<bool> kAccumulationNames[] = {{"separate", false}, {"fused", true}};
constexpr FlagName<Training> kExpertKernelNames[] = {{"separate", nullptr},
                                                     {"fused", &Training::fused_experts},
                                                     {"sequential", &Training::sequential_experts}};
constexpr FlagName<Training> kGraphNames[] = {{"attention", &Training::graphs_attention},
                                              {"mlp", &Training::graphs_mlp},
                                              {"router", &Training::graphs_router},
                                              {"state-space", &Training::graphs_state_space}};

// What the rows alone cannot say.
void Check(const Training& training, const JsonReader& reader) {
  if (reader.Has("recomputed_layers")) {
    const JsonReader layers = reader.At("recomputed_layers");
    if (training.recomputation != Recomputation::kFull)
      layers.Fail("says which layers are computed again, but \"recomputation\" is not \"full\"");
    if (training.recomputed_layers.empty()) layers.Expected("one number, or one for each stage");
  }
  if (reader.Has("recomputed_ops") && training.recomputation != Recomputation::kSelective)
    reader.At("recomputed_ops")
        .Fail("says what is computed again, but \"recomputation\" is not \"selective\"");
  if (training.document > 0 && training.sequence % training.document != 0) {
    reader.At("document")
        .Fail(fmt::format("{} tokens do not divide a sequence of {}", training.document,
                          training.sequence));
  }
  const bool has_fp32 = training.precision == DType::kFp32;
  if (training.gradients == DType::kBf16 && has_fp32)
    reader.At("gradients").Expected("\"fp32\", as \"precision\" is");
  const bool is_plain = training.products == ProductRecipe::kNone;
  if (!is_plain && has_fp32) reader.At("products").Expected("\"plain\", as \"precision\" is fp32");
  if (training.narrow_parameters && (is_plain || training.products == ProductRecipe::kNvfp4))
    reader.At("narrow_parameters")
        .Expected("false, or \"products\" to be fp8, fp8-current, fp8-blockwise or mxfp8");
  const auto needs = [&](const char* key, bool is_met, const char* expected) {
    if (reader.Has(key) && !is_met) reader.At(key).Fail(fmt::format("expected {}", expected));
  };
  const bool is_selective = training.recomputation == Recomputation::kSelective;
  const bool has_blocks =
      training.products == ProductRecipe::kMxfp8 || training.products == ProductRecipe::kNvfp4;
  needs("scales", !training.orders_scales_apart || has_blocks,
        "\"by-casts\", or \"products\" to be mxfp8 or nvfp4");
  needs("casts", training.keeps_casts || (is_selective && !is_plain),
        "\"kept\", or selective recomputation and products in 8 bits");
  needs("narrow_kept", !training.keeps_narrow_activations || !is_plain,
        "none, or products in 8 bits");
  needs("narrow_kept", !training.keeps_narrow_attention || (is_selective && !is_plain),
        "none, or selective recomputation and products in 8 bits");
  const bool is_in_place = training.masters == MasterWeights::kNone;
  if (training.masters != MasterWeights::kFp32 && has_fp32)
    reader.At("masters").Expected("\"fp32\", as \"precision\" is");
  const bool is_fused = training.optimizer == OptimizerKernels::kFused;
  if (training.masters == MasterWeights::kRemainders && training.narrow_parameters)
    reader.At("masters").Fail("remainders take parameters of 16 bits: \"narrow_parameters\" false");
  if (training.masters == MasterWeights::kRemainders && !is_fused)
    reader.At("masters").Fail("remainders take an \"optimizer\" that is \"fused\"");
  if (training.moments != DType::kFp32 && !is_fused && !is_in_place)
    reader.At("moments").Fail("bf16 takes an \"optimizer\" that is \"fused\"");
  const bool is_adam = training.update_rule == UpdateRule::kAdam;
  needs("muon_steps", !training.muon_by_pieces || training.update_rule == UpdateRule::kMuon,
        "\"whole\", or \"update_rule\": \"muon\"");
  needs("moments", training.moments == DType::kFp32 || is_adam,
        "\"fp32\", or \"update_rule\": \"adam\"");
  needs("masters", training.masters == MasterWeights::kFp32 || is_adam,
        "\"fp32\", or \"update_rule\": \"adam\"");
  const bool is_on_host = training.optimizer_on_host;
  needs("offloaded_optimizer", !training.offloaded_optimizer || !is_on_host,
        "false, since the optimizer stays on the host (\"optimizer_on_host\")");
  needs("parameters_on_host", !training.parameters_on_host || is_on_host,
        "false, or \"optimizer_on_host\": true");
}

}  // namespace

const char* VariantOf(TrainingOf networks) {
  return networks == TrainingOf::kDecoders ? kOfDecoders
         : networks == TrainingOf::kImages ? kOfImages
                                           : "";
}

const Fields<Training>& TrainingFields() {
  static const Fields<Training> fields(
      "training", "How long the step is, and how it is computed.",
      {{"batch", &Training::batch, AWhole(1, int64_t{1} << 32), Required(),
        "sequences (images, samples) per step", "16"},
       {"sequence", &Training::sequence, AWhole(1, int64_t{1} << 24), Required(),
        "tokens per sequence", "2048", kOfDecoders},
       {"document", &Training::document, AWhole(0, int64_t{1} << 24), Usual(),
        "tokens of each document where several are packed into a sequence, each attending only to "
        "itself; it divides the sequence; 0: a sequence is one document",
        "256", kOfDecoders},
       {"micro_batches", &Training::micro_batches, AWhole(1, 1 << 16), Usual(),
        "parts of the batch, computed one after the other", "4"},
       {"micro_batch_size", &Training::micro_batch_size, AWhole(1, 1 << 16),
        Optional("as many micro-batches as \"micro_batches\" says"),
        "samples of a micro-batch in each group of ranks that has its own, instead of "
        "\"micro_batches\"",
        "2"},
       {"recomputation", &Training::recomputation, OneOf(kRecomputationNames), Required(),
        "what the backward pass computes again: nothing, unfused attention, or everything"},
       {"recomputed_layers", &Training::recomputed_layers, ListOf(AWhole(0, 10000)),
        Optional("all"),
        "with full recomputation: how many layers of each stage are computed again, counted from "
        "its first; one number for all stages, or one for each",
        "[4]"},
       {"recomputed_ops", &Training::recomputed_ops, FlagsOf(kRecomputedOpNames),
        Optional("unfused attention only"),
        "with selective recomputation: what is dropped and computed again in each layer",
        R"(["norms", "activations"])", kOfDecoders},
       {"recomputed_last_product", &Training::recomputes_last_product, TrueFalse(), Usual(),
        "with full recomputation: false stops before a layer's last product, whose result no "
        "gradient needs (PyTorch from 2.1 on)",
        "false", kOfDecoders},
       {"offloaded_layers", &Training::offloaded_layers, AWhole(0, 10000), Usual(),
        "so many of each stage's first layers keep their activations on the host, copied over PCIe "
        "beside the kernels; fewer than the stage has",
        "12"},
       {"offloaded_optimizer", &Training::offloaded_optimizer, TrueFalse(), Usual(),
        "the optimizer's state is on the host but for the update: it leaves beside the forward "
        "pass and returns while gradients are summed",
        "true"},
       {"optimizer_on_host", &Training::optimizer_on_host, TrueFalse(), Usual(),
        "the optimizer's state and update are on the host: gradients go there as they are summed, "
        "and what the CPU's Adam made comes back (ZeRO-Offload)",
        "true"},
       {"parameters_on_host", &Training::parameters_on_host, TrueFalse(), Usual(),
        "with the optimizer on the host and ZeRO-3: shares of parameters are there, too, and come "
        "to the device to be gathered (ZeRO-Infinity)",
        "true"},
       {"donates_state", &Training::donates_state, TrueFalse(), Usual(),
        "false: parameters and the optimizer's state are not written over, so that a step has them "
        "twice (JAX without donated buffers)",
        "false"},
       {"attention", &Training::attention, OneUpTo<AttentionKernel::kEfficient>(), Usual(),
        "which kernel; fused: what the device's software usually runs; unfused: stores a score for "
        "each pair of tokens and each head",
        "\"flash-2\"", kOfDecoders},
       {"convolution", &Training::implicit_convolution, OneOf(kConvolutionNames), Usual(),
        "explicit: stores the image's patches for the product", "\"explicit\"", kOfImages},
       {"precision", &Training::precision, OneOf(kPrecisionNames), Usual(),
        "precision of arithmetic and parameters"},
       {"products", &Training::products, OneOf(kProductNames), Usual(),
        "precision of the layers' products; plain: as \"precision\" says; the others: Transformer "
        "Engine's recipes",
        "\"fp8\"", kOfDecoders},
       {"scales", &Training::orders_scales_apart, OneOf(kScaleNames), Usual(),
        "what puts the scales of blocks in the order that products read: the casts, or a kernel "
        "for each operand (Transformer Engine before 2.12 for mxfp8, before 2.17 for nvfp4)",
        "\"apart\"", kOfDecoders},
       {"precise_layers", &Training::precise_layers, AWhole(0, 1000), Usual(),
        "this many layers at either end keep plain products", "1", kOfDecoders},
       {"narrow_parameters", &Training::narrow_parameters, TrueFalse(), Usual(),
        "the matrices of fp8 products are kept and gathered in fp8 only; those of mxfp8 are "
        "gathered in bf16, into the gradients' memory",
        "true", kOfDecoders},
       {"gradients", &Training::gradients, OneOf(kSumNames), Usual(),
        "precision in which gradients are summed"},
       {"tuned_kernels", &Training::tuned_kernels, TrueFalse(), Usual(),
        "each product runs in the fastest of the modes NN, NT and TN", "true"},
       {"kernels", &Training::kernels, OneOf(kKernelStyleNames), Usual(),
        "element-wise kernels: fused by hand, PyTorch's op by op, or torch.compile's", "\"eager\""},
       {"update_rule", &Training::update_rule, OneOf(kRuleNames), Usual(),
        "how parameters follow from gradients: Adam; LAMB, which is Adam scaled by the norms of "
        "each tensor; SGD with momentum; Muon, which makes the steps of matrices orthogonal and "
        "has Adam for tables, the output layer, biases and norms",
        "\"lamb\""},
       {"muon_steps", &Training::muon_by_pieces, OneOf(kMuonNames), Usual(),
        "what Muon makes orthogonal where tensor parallel ranks share a matrix: all of it, which "
        "each of them gathers, or each rank's piece",
        "\"pieces\""},
       {"optimizer", &Training::optimizer, OneOf(kOptimizerNames), Usual(),
        "Adam as one kernel, one kernel for each operation, or one for each operation and array",
        "\"foreach\""},
       {"moments", &Training::moments, OneOf(kSumNames), Usual(),
        "precision in which Adam keeps its two moments", "\"bf16\""},
       {"masters", &Training::masters, OneOf(kMasterNames), Usual(),
        "what Adam updates beside parameters of 16 bits: weights in fp32; remainders: the 16 bits "
        "that parameters lack (Megatron-LM's precision-aware optimizer); none: the parameters "
        "themselves",
        "\"remainders\""},
       {"cross_entropy", &Training::fused_cross_entropy, OneOf(kFusionNames), Usual(),
        "unfused: copies the logits in fp32", "\"fused\"", kOfDecoders},
       {"expert_kernels", kItself, OneFlagOf(kExpertKernelNames), Usual(),
        "fused: the products of experts do SwiGLU, its biases and its casts themselves; "
        "sequential: experts run one by one, and their results are joined",
        "\"fused\"", kOfDecoders},
       {"router_weights", &Training::weighs_early, OneOf(kWeighingNames), Usual(),
        "where routers' weights are multiplied in: as results are combined, or behind SwiGLU, so "
        "that results are not kept (played, not executed)",
        "\"activation\"", kOfDecoders},
       {"casts", &Training::keeps_casts, OneOf(kCastsNames), Usual(),
        "again: casts to 8 bits of what is recomputed are made again, too, rather than kept",
        "\"again\"", kOfDecoders},
       {"narrow_kept", kItself, FlagsOf(kNarrowKeptNames), Usual(),
        "what is kept for the way back in fewer bits: what SwiGLU takes in 8, what attention gives "
        "to its projection in 12",
        R"(["activations", "attention"])", kOfDecoders},
       {"permutation", &Training::fused_permutation, OneOf(kFusionNames), Usual(),
        "fused: one kernel puts tokens in the order of experts, and one back; unfused: PyTorch's",
        "\"fused\"", kOfDecoders},
       {"accumulation", &Training::fused_accumulation, OneOf(kAccumulationNames), Usual(),
        "fused: the product of dW adds to the sum of gradients itself", "\"fused\""},
       {"dropout", &Training::dropout, TrueFalse(), Usual(),
        "whether GPT has dropout; Llama has none", "false", kOfDecoders},
       {"metrics", &Training::metrics, AWhole(0, 100), Usual(),
        "how many more times the loss is computed, for logging", "2", kOfDecoders},
       {"host_launch", &Training::host_launch, ADurationUpTo(Seconds(1)), Usual(),
        "time the host takes to launch a kernel, which bounds small models", "\"6us\""},
       {"cuda_graphs", kItself, FlagsOf(kGraphNames), Usual(),
        "parts of each layer that the host replays as one CUDA graph each, and so launches at once",
        R"(["attention", "router"])", kOfDecoders}});
  return fields;
}

const ObjectShape& TrainingShape() { return TrainingFields().shape(); }

Training ReadTraining(const JsonReader& object, TrainingOf networks) {
  const JsonReader reader = object.As(TrainingShape(), VariantOf(networks));
  Training training;
  TrainingFields().ReadInto(reader, &training, VariantOf(networks));
  if (networks != TrainingOf::kDecoders) training.sequence = 1;
  Check(training, reader);
  return training;
}

}  // namespace rehearse

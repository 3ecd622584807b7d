#include "scenarios/readers/model_reader.h"

#include <algorithm>
#include <array>
#include <utility>

#include <fmt/format.h>

#include "scenarios/readers/image_model_reader.h"
#include "sim/base/error.h"
#include "sim/schedule/schedule_format.h"
#include "workloads/networks/decoder_network.h"
#include "workloads/networks/mlp_network.h"

namespace rehearse {
namespace {

// What a kind of network needs from the training.
enum class Rows : uint8_t { kTokens, kSamples, kPixels };

const char* VariantOf(Rows rows) {
  return rows == Rows::kTokens ? "of decoders" : rows == Rows::kPixels ? "of images" : "";
}

// Of decoders only.
void ReadProducts(const JsonReader& reader, Training* training) {
  constexpr ProductRecipe kRecipes[] = {ProductRecipe::kNone,       ProductRecipe::kFp8,
                                        ProductRecipe::kFp8Current, ProductRecipe::kFp8Blockwise,
                                        ProductRecipe::kMxfp8,      ProductRecipe::kNvfp4};
  training->products = kRecipes[reader.At("products").Choice()];
  training->precise_layers = reader.At("precise_layers").Whole<uint32_t>();
  training->narrow_parameters = reader.At("narrow_parameters").Bool();
  const bool is_plain = training->products == ProductRecipe::kNone;
  if (!is_plain && training->precision == DType::kFp32)
    reader.At("products").Expected("\"plain\", as \"precision\" is fp32");
  const bool has_blocks =
      training->products == ProductRecipe::kMxfp8 || training->products == ProductRecipe::kNvfp4;
  if (training->narrow_parameters && (is_plain || has_blocks))
    reader.At("narrow_parameters")
        .Expected("false, or \"products\" to be fp8, fp8-current or fp8-blockwise");
}

void ReadOffloaded(const JsonReader& reader, Training* training) {
  if (reader.Has("offloaded_layers"))
    training->offloaded_layers = reader.At("offloaded_layers").Whole<uint32_t>();
  if (reader.Has("offloaded_optimizer"))
    training->offloaded_optimizer = reader.At("offloaded_optimizer").Bool();
}

void ReadRecomputed(const JsonReader& reader, Training* training) {
  if (reader.Has("recomputed_layers")) {
    const JsonReader layers = reader.At("recomputed_layers");
    if (training->recomputation != Recomputation::kFull)
      layers.Fail("says which layers are computed again, but \"recomputation\" is not \"full\"");
    for (const JsonReader& number : layers.Elements())
      training->recomputed_layers.push_back(number.Whole<uint32_t>());
    if (training->recomputed_layers.empty()) layers.Expected("one number, or one for each stage");
  }
  if (!reader.Has("recomputed_ops")) return;
  const JsonReader ops = reader.At("recomputed_ops");
  if (training->recomputation != Recomputation::kSelective)
    ops.Fail("says what is computed again, but \"recomputation\" is not \"selective\"");
  RecomputedOps& again = training->recomputed_ops;
  for (const JsonReader& op : ops.Elements()) {
    bool* const of[] = {&again.attention,   &again.activations, &again.norms,
                        &again.projections, &again.output,      &again.first};
    *of[op.Choice()] = true;
  }
}

Training ReadTraining(const JsonReader& object, Rows rows) {
  const JsonReader reader = object.As(TrainingShape(), VariantOf(rows));
  Training training;
  training.batch = reader.At("batch").Whole<uint64_t>();
  training.sequence = rows == Rows::kTokens ? reader.At("sequence").Whole<uint64_t>() : 1;
  training.attention = static_cast<AttentionKernel>(reader.At("attention").Choice());
  training.implicit_convolution = reader.At("convolution").Choice() == 0;
  training.micro_batches = reader.At("micro_batches").Whole<uint32_t>();
  constexpr Recomputation kModes[] = {Recomputation::kNone, Recomputation::kSelective,
                                      Recomputation::kFull};
  training.recomputation = kModes[reader.At("recomputation").Choice()];
  ReadRecomputed(reader, &training);
  ReadOffloaded(reader, &training);
  constexpr DType kPrecisions[] = {DType::kBf16, DType::kFp32};
  training.precision = kPrecisions[reader.At("precision").Choice()];
  constexpr DType kGradients[] = {DType::kFp32, DType::kBf16};
  training.gradients = kGradients[reader.At("gradients").Choice()];
  if (training.gradients == DType::kBf16 && training.precision == DType::kFp32) {
    reader.At("gradients").Expected("\"fp32\", as \"precision\" is");
  }
  ReadProducts(reader, &training);
  training.tuned_kernels = reader.At("tuned_kernels").Bool();
  constexpr KernelStyle kStyles[] = {KernelStyle::kFused, KernelStyle::kEager,
                                     KernelStyle::kCompiled};
  training.kernels = kStyles[reader.At("kernels").Choice()];
  constexpr OptimizerKernels kOptimizers[] = {OptimizerKernels::kFused, OptimizerKernels::kForeach,
                                              OptimizerKernels::kLoop};
  training.optimizer = kOptimizers[reader.At("optimizer").Choice()];
  training.moments = reader.At("moments").Choice() == 0 ? DType::kFp32 : DType::kBf16;
  if (training.moments != DType::kFp32 && training.optimizer != OptimizerKernels::kFused)
    reader.At("moments").Fail("bf16 takes an \"optimizer\" that is \"fused\"");
  training.fused_cross_entropy = reader.At("cross_entropy").Choice() == 1;
  training.fused_experts = reader.At("expert_kernels").Choice() == 1;
  training.sequential_experts = reader.At("expert_kernels").Choice() == 2;
  training.fused_permutation = reader.At("permutation").Choice() == 1;
  training.fused_accumulation = reader.At("accumulation").Choice() == 1;
  training.dropout = reader.At("dropout").Bool();
  training.metrics = reader.At("metrics").Whole<uint32_t>();
  training.host_launch = reader.At("host_launch").Duration();
  for (const JsonReader& part : reader.At("cuda_graphs").Elements()) {
    bool* const of[] = {&training.graphs_attention, &training.graphs_mlp, &training.graphs_router};
    *of[part.Choice()] = true;
  }
  return training;
}

const ObjectShape& MlpShape() {
  std::vector<std::string> names;
  for (const MlpModel& known : KnownMlps()) names.push_back(known.name);
  static const ObjectShape shape = {
      "model: mlp",
      "A chain of fully connected layers.",
      {{"kind", OneOf({"mlp"}), Optional("the preset's, or decoder"), "which network"},
       {"preset", OneOf(std::move(names)), Optional("sizes are given"), "a known model"},
       {"name", AText(), Optional("the preset's, or mlp"), "what results call it", "\"mine\""},
       {"sizes", ListOf(AWhole(1, 1 << 24)), Optional("the preset's; without one it must be given"),
        "columns of the input, each hidden layer and the output", "[1024, 4096, 512]"}}};
  return shape;
}

MlpModel ReadMlp(const JsonReader& object) {
  const JsonReader reader = object.As(MlpShape());
  MlpModel model;
  if (reader.Has("preset")) model = KnownMlps()[reader.At("preset").Choice()];
  if (reader.Has("name")) model.name = reader.At("name").String();
  if (model.name.empty()) model.name = "mlp";
  if (!reader.Has("preset") || reader.Has("sizes")) {
    const JsonReader sizes = reader.At("sizes");
    model.sizes.clear();
    for (const JsonReader& size : sizes.Elements()) model.sizes.push_back(size.Whole<uint64_t>());
    if (model.sizes.size() < 2) sizes.Expected("at least two sizes");
  }
  return model;
}

// For the rows of a network with one image or sample.
Training OneSample() {
  Training training;
  training.batch = 1;
  return training;
}

std::string DescribeExperts(const GptModel& model) {
  if (!model.experts) return "";
  return fmt::format(", {} of {} experts per token ({:.1f} billion active)",
                     model.experts->per_token, model.experts->count,
                     model.ActiveParameters() / 1e9);
}

std::vector<ModelPreset> Decoders() {
  std::vector<ModelPreset> presets;
  for (const GptModel& model : KnownModels()) {
    presets.push_back({model.name,
                       fmt::format("{:.1f} billion parameters: {} layers, hidden {}, {} heads{}",
                                   model.Parameters() / 1e9, model.layers, model.hidden,
                                   model.heads, DescribeExperts(model)),
                       model.source,
                       {},
                       model.experts.has_value()});
  }
  return presets;
}
std::vector<ModelPreset> Mlps() {
  std::vector<ModelPreset> presets;
  for (const MlpModel& model : KnownMlps()) {
    presets.push_back({model.name,
                       fmt::format("{:.0f} million parameters: {}", model.Parameters() / 1e6,
                                   fmt::join(model.sizes, "-")),
                       model.source});
  }
  return presets;
}
std::vector<ModelPreset> Vggs() {
  std::vector<ModelPreset> presets;
  for (const VggModel& model : KnownVggs()) {
    presets.push_back({model.name,
                       fmt::format("{:.0f} million parameters, {} classes",
                                   model.Parameters() / 1e6, model.classes),
                       model.source});
  }
  return presets;
}
std::vector<ModelPreset> Unets() {
  std::vector<ModelPreset> presets;
  for (const UnetModel& model : KnownUnets()) {
    presets.push_back({model.name,
                       fmt::format("{:.0f} million parameters: {} channels, {} levels of {} blocks",
                                   MakeUnet(model, OneSample()).Parameters() / 1e6, model.channels,
                                   model.multipliers.size(), model.blocks),
                       model.source});
  }
  return presets;
}

Network DecoderOf(const JsonReader& reader, const Training& training) {
  return MakeDecoder(ReadModel(reader), training);
}
Network MlpOf(const JsonReader& reader, const Training& training) {
  return MakeMlp(ReadMlp(reader), training);
}
Network VggOf(const JsonReader& reader, const Training& training) {
  return MakeVgg(ReadVgg(reader), training);
}
Network UnetOf(const JsonReader& reader, const Training& training) {
  return MakeUnet(ReadUnet(reader), training);
}

// Names of the presets, without building a network of each to describe it.
template <auto kKnown>
std::vector<std::string> NamesOf() {
  std::vector<std::string> names;
  for (const auto& model : kKnown()) names.push_back(model.name);
  return names;
}

struct Kind {
  const char* name;
  Rows rows;
  std::vector<std::string> (*names)();
  std::vector<ModelPreset> (*presets)();
  Network (*read)(const JsonReader& reader, const Training& training);
  ObjectShapeOf table;
};
constexpr std::array<Kind, 4> kKinds = {
    {{"decoder", Rows::kTokens, NamesOf<KnownModels>, Decoders, DecoderOf, DecoderShape},
     {"mlp", Rows::kSamples, NamesOf<KnownMlps>, Mlps, MlpOf, MlpShape},
     {"vgg", Rows::kPixels, NamesOf<KnownVggs>, Vggs, VggOf, VggShape},
     {"u-net", Rows::kPixels, NamesOf<KnownUnets>, Unets, UnetOf, UnetShape}}};

// The one that "kind" names, or that of the preset, or a decoder.
const Kind& KindOf(const JsonReader& model) {
  if (!model.IsObject()) return kKinds.front();
  if (model.Has("kind")) {
    std::vector<std::string> names;
    for (const Kind& kind : kKinds) names.emplace_back(kind.name);
    return kKinds[model.At("kind").Choice(names)];
  }
  if (!model.Has("preset")) return kKinds.front();
  std::vector<std::string> names;
  std::vector<const Kind*> kinds;
  for (const Kind& kind : kKinds) {
    for (std::string& name : kind.names()) {
      names.push_back(std::move(name));
      kinds.push_back(&kind);
    }
  }
  return *kinds[model.At("preset").Choice(names)];
}

}  // namespace

namespace {

// Sizes are counted in 64 bits, but most products of two of them in the 53 of a double.
void CheckSizes(const Network& network, const JsonReader& training) {
  constexpr double kMost = 0x1p62;
  for (const NetworkNode& node : network.nodes) {
    const double elements =
        static_cast<double>(node.rows) * static_cast<double>(node.columns) * network.micro_batches;
    if (elements <= kMost) continue;
    training.At("batch").Fail(fmt::format(
        "makes \"{}\" an array of {:.3g} elements, expected at most 2^62", node.name, elements));
  }
}

}  // namespace

JsonShape ModelShape() {
  std::vector<JsonShape> tables;
  for (const Kind& kind : kKinds) tables.push_back(ObjectOf(kind.table));
  return Either(std::move(tables));
}

const ObjectShape& TrainingShape() {
  static const ObjectShape shape = {
      "training",
      "How long the step is, and how it is computed.",
      {{"batch", AWhole(1, int64_t{1} << 32), Required(), "sequences (images, samples) per step",
        "16"},
       {"sequence", AWhole(1, int64_t{1} << 24), Required(), "tokens per sequence", "2048",
        "of decoders"},
       {"micro_batches", AWhole(1, 1 << 16), Default("1"),
        "parts of the batch, computed one after the other", "4"},
       {"recomputation", OneOf({"none", "selective", "full"}), Required(),
        "what the backward pass computes again: nothing, unfused attention, or everything"},
       {"recomputed_layers", ListOf(AWhole(0, 10000)), Optional("all"),
        "with full recomputation: how many layers of each stage are computed again, counted from "
        "its first; one number for all stages, or one for each",
        "[4]"},
       {"recomputed_ops",
        ListOf(OneOf({"core-attention", "activations", "norms", "latent-projections",
                      "attention-output", "first-products"})),
        Optional("unfused attention only"),
        "with selective recomputation: what is dropped and computed again in each layer",
        R"(["norms", "activations"])", "of decoders"},
       {"offloaded_layers", AWhole(0, 10000), Default("0"),
        "so many of each stage's first layers keep their activations on the host, copied over PCIe "
        "beside the kernels; fewer than the stage has",
        "12"},
       {"offloaded_optimizer", TrueFalse(), Default("false"),
        "the optimizer's state is on the host but for the update: it leaves beside the forward "
        "pass and returns while gradients are summed",
        "true"},
       {"attention", OneOf(AttentionKernelNames()), Default("\"fused\""),
        "which kernel; fused: what the device's software usually runs; unfused: stores a score for "
        "each pair of tokens and each head",
        "\"flash-2\"", "of decoders"},
       {"convolution", OneOf({"implicit", "explicit"}), Default("\"implicit\""),
        "explicit: stores the image's patches for the product", "\"explicit\"", "of images"},
       {"precision", OneOf({"bf16", "fp32"}), Default("\"bf16\""),
        "precision of arithmetic and parameters"},
       {"products", OneOf({"plain", "fp8", "fp8-current", "fp8-blockwise", "mxfp8", "nvfp4"}),
        Default("\"plain\""),
        "precision of the layers' products; plain: as \"precision\" says; the others: Transformer "
        "Engine's recipes",
        "\"fp8\"", "of decoders"},
       {"precise_layers", AWhole(0, 1000), Default("0"),
        "this many layers at either end keep plain products", "1", "of decoders"},
       {"narrow_parameters", TrueFalse(), Default("false"),
        "the matrices of fp8 products are kept and gathered in fp8 only", "true", "of decoders"},
       {"gradients", OneOf({"fp32", "bf16"}), Default("\"fp32\""),
        "precision in which gradients are summed"},
       {"tuned_kernels", TrueFalse(), Default("false"),
        "each product runs in the fastest of the modes NN, NT and TN", "true"},
       {"kernels", OneOf({"fused", "eager", "compiled"}), Default("\"fused\""),
        "element-wise kernels: fused by hand, PyTorch's op by op, or torch.compile's", "\"eager\""},
       {"optimizer", OneOf({"fused", "foreach", "loop"}), Default("\"fused\""),
        "Adam as one kernel, one kernel for each operation, or one for each operation and array",
        "\"foreach\""},
       {"moments", OneOf({"fp32", "bf16"}), Default("\"fp32\""),
        "precision in which Adam keeps its two moments; master weights have fp32", "\"bf16\""},
       {"cross_entropy", OneOf({"unfused", "fused"}), Default("\"unfused\""),
        "unfused: copies the logits in fp32", "\"fused\"", "of decoders"},
       {"expert_kernels", OneOf({"separate", "fused", "sequential"}), Default("\"separate\""),
        "fused: the products of experts do SwiGLU, its biases and its casts themselves; "
        "sequential: experts run one by one, and their results are joined",
        "\"fused\"", "of decoders"},
       {"permutation", OneOf({"unfused", "fused"}), Default("\"unfused\""),
        "fused: one kernel puts tokens in the order of experts, and one back; unfused: PyTorch's",
        "\"fused\"", "of decoders"},
       {"accumulation", OneOf({"separate", "fused"}), Default("\"separate\""),
        "fused: the product of dW adds to the sum of gradients itself", "\"fused\""},
       {"dropout", TrueFalse(), Default("true"), "whether GPT has dropout; Llama has none", "false",
        "of decoders"},
       {"metrics", AWhole(0, 100), Default("0"),
        "how many more times the loss is computed, for logging", "2", "of decoders"},
       {"host_launch", ADurationUpTo(Seconds(1)), Default("\"0s\""),
        "time the host takes to launch a kernel, which bounds small models", "\"6us\""},
       {"cuda_graphs", ListOf(OneOf({"attention", "mlp", "router"})), Default("[]"),
        "parts of each layer that the host replays as one CUDA graph each, and so launches at once",
        R"(["attention", "router"])", "of decoders"}}};
  return shape;
}

ModelAndTraining ReadModelAndTraining(const JsonReader& model, const JsonReader& training) {
  const Kind& kind = KindOf(model);
  const Training numbers = ReadTraining(training, kind.rows);
  Network network = kind.read(model, numbers);
  CheckSizes(network, training);
  return {std::make_shared<const Network>(std::move(network)), numbers};
}

const char* VariantOfTraining(const std::string& kind) {
  for (const Kind& row : kKinds) {
    if (kind == row.name) return VariantOf(row.rows);
  }
  CHECK(false);
}

std::vector<ModelPreset> ModelPresets() {
  std::vector<ModelPreset> presets;
  for (const Kind& kind : kKinds) {
    for (ModelPreset& preset : kind.presets()) {
      preset.kind = kind.name;
      presets.push_back(std::move(preset));
    }
  }
  return presets;
}

}  // namespace rehearse

#include "tests/support/gpu_kernel_cases.h"

#include <map>
#include <utility>

#include "sim/schedule/expert_routing.h"
#include "tests/support/gpu_schedules.h"

namespace rehearse {
namespace {

struct Shape {
  uint64_t rows;
  uint64_t columns;
};

// The operands of one op: reads and writes name buffers of these shapes; a name in both is updated
// in place.
struct Operands {
  std::vector<std::pair<std::string, Shape>> reads;
  std::vector<std::pair<std::string, Shape>> writes;
};

constexpr uint64_t kRows = 75;
constexpr uint64_t kColumns = 70;
constexpr Shape kMatrix{kRows, kColumns};
constexpr Shape kRow{1, kColumns};
constexpr Shape kTwo{kRows, 2};
constexpr Shape kOne{kRows, 1};

class Cases {
 public:
  explicit Cases(DType dtype) : dtype_(dtype) {}

  void Add(const std::string& variant, const Compute& compute, const Operands& operands) {
    RoleMaker maker(1);
    maker.dtype = dtype_;
    std::map<std::string, BufferId> buffers;
    const auto find = [&](const std::pair<std::string, Shape>& operand) {
      const auto known = buffers.find(operand.first);
      if (known != buffers.end()) return known->second;
      const BufferId made = maker.AddBuffer(operand.first, BufferKind::kBuffer, operand.second.rows,
                                            operand.second.columns);
      buffers.emplace(operand.first, made);
      return made;
    };
    std::vector<BufferId> reads;
    std::vector<BufferId> writes;
    for (const auto& operand : operands.reads) reads.push_back(find(operand));
    for (const auto& operand : operands.writes) writes.push_back(find(operand));
    maker.AddCompute("op", compute, reads, writes);
    maker.schedule.tokens = kRows;
    cases.push_back({std::string(Name(compute.kernel)) + variant, maker.schedule});
  }
  void Add(Kernel kernel, const Operands& operands, std::vector<double> attributes = {}) {
    Add("", Simple(kernel, std::move(attributes)), operands);
  }

  std::vector<KernelCase> cases;

 private:
  DType dtype_;
};

void AddProducts(Cases* cases) {
  constexpr uint64_t kM = 33;
  constexpr uint64_t kN = 40;
  constexpr uint64_t kK = 56;
  const auto add = [&](const char* variant, GemmMode mode, Shape a, Shape b) {
    const Compute product = Product(kM, kN, kK, mode);
    cases->Add(variant, product, {{{"a", a}, {"b", b}}, {{"c", {kM, kN}}}});
    cases->Add(std::string(variant) + " onto", product,
               {{{"a", a}, {"b", b}, {"c", {kM, kN}}}, {{"c", {kM, kN}}}});
  };
  add(" NN", GemmMode::kNN, {kM, kK}, {kK, kN});
  add(" NT", GemmMode::kNT, {kM, kK}, {kN, kK});
  add(" TN", GemmMode::kTN, {kK, kM}, {kK, kN});
  Compute batch = Product(kM, kN, kK, GemmMode::kNT);
  batch.gemm.batch = 3;
  cases->Add(" batch", batch, {{{"a", {3 * kM, kK}}, {"b", {3 * kN, kK}}}, {{"c", {3 * kM, kN}}}});
}

void AddMovement(Cases* cases) {
  cases->Add(Kernel::kCopy, {{{"x", kMatrix}}, {{"y", kMatrix}}});
  cases->Add(" flat", Simple(Kernel::kCopy), {{{"x", kMatrix}}, {{"y", {1, kRows * kColumns}}}});
  cases->Add(Kernel::kAccumulate, {{{"x", kMatrix}, {"y", kMatrix}}, {{"y", kMatrix}}});
  cases->Add(Kernel::kAdd, {{{"x", kMatrix}, {"z", kMatrix}}, {{"y", kMatrix}}});
  cases->Add(Kernel::kUnstack, {{{"x", {3 * kRows, kColumns}}}, {{"y", {kRows, 3 * kColumns}}}});
  cases->Add(Kernel::kStack, {{{"x", {kRows, 3 * kColumns}}}, {{"y", {3 * kRows, kColumns}}}});
  constexpr Shape kTable{50, kColumns};
  cases->Add(Kernel::kEmbedding, {{{"table", kTable}}, {{"y", kMatrix}}});
  cases->Add(Kernel::kEmbeddingBackward, {{{"dy", kMatrix}, {"dt", kTable}}, {{"dt", kTable}}});
  cases->Add(" ahead", Simple(Kernel::kEmbedding, {1}), {{{"table", kTable}}, {{"y", kMatrix}}});
  cases->Add(" onto zeros", Simple(Kernel::kEmbeddingBackward),
             {{{"dy", kMatrix}}, {{"dt", kTable}}});
}

void AddElementwise(Cases* cases) {
  cases->Add(Kernel::kBias, {{{"x", kMatrix}, {"bias", kRow}}, {{"x", kMatrix}}});
  cases->Add(Kernel::kBiasBackward, {{{"dy", kMatrix}, {"db", kRow}}, {{"db", kRow}}});
  cases->Add(Kernel::kBiasGelu, {{{"x", kMatrix}, {"bias", kRow}}, {{"y", kMatrix}}});
  cases->Add(Kernel::kBiasGeluBackward,
             {{{"dy", kMatrix}, {"x", kMatrix}, {"bias", kRow}, {"db", kRow}},
              {{"dx", kMatrix}, {"db", kRow}}});
  cases->Add(Kernel::kSwiGlu, {{{"x", {kRows, 2 * kColumns}}}, {{"y", kMatrix}}});
  cases->Add(Kernel::kSwiGluBackward,
             {{{"dy", kMatrix}, {"x", {kRows, 2 * kColumns}}}, {{"dx", {kRows, 2 * kColumns}}}});
  cases->Add(
      Kernel::kResidual,
      {{{"x", kMatrix}, {"z", kMatrix}, {"bias", kRow}}, {{"y", kMatrix}, {"mask", kMatrix}}},
      {0.25, 3});
  cases->Add(Kernel::kDropout, {{{"x", kMatrix}}, {{"y", kMatrix}, {"mask", kMatrix}}}, {0.1, 4});
  cases->Add(Kernel::kDropoutBackward,
             {{{"dy", kMatrix}, {"mask", kMatrix}, {"db", kRow}}, {{"dx", kMatrix}, {"db", kRow}}});
  cases->Add(" without bias", Simple(Kernel::kDropoutBackward),
             {{{"dy", kMatrix}, {"mask", kMatrix}}, {{"dx", kMatrix}}});
  cases->Add(Kernel::kRelu, {{{"x", kMatrix}}, {{"y", kMatrix}}});
  cases->Add(Kernel::kReluBackward, {{{"dy", kMatrix}, {"y", kMatrix}}, {{"dx", kMatrix}}});
}

// Realistic moments and sums come from preceding kernels, for which two or three ops would be
// needed. Random ones do as well for comparing backends, except that variances must not be
// negative, hence whole rows.
void AddNorms(Cases* cases) {
  cases->Add(Kernel::kNormStatistics, {{{"x", kMatrix}}, {{"s", kTwo}}});
  cases->Add(Kernel::kNorm,
             {{{"x", kMatrix}, {"gain", kRow}, {"bias", kRow}}, {{"y", kMatrix}, {"m", kTwo}}});
  cases->Add(Kernel::kNormBackwardStatistics,
             {{{"x", kMatrix}, {"dy", kMatrix}, {"gain", kRow}, {"m", kTwo}}, {{"s", kTwo}}});
  const std::vector<std::pair<std::string, Shape>> layer = {
      {"x", kMatrix}, {"dy", kMatrix}, {"gain", kRow}, {"m", kTwo}, {"dg", kRow}, {"db", kRow}};
  const auto with = [](std::vector<std::pair<std::string, Shape>> reads,
                       const std::vector<std::pair<std::string, Shape>>& more) {
    reads.insert(reads.end(), more.begin(), more.end());
    return reads;
  };
  const std::vector<std::pair<std::string, Shape>> layer_writes = {
      {"dx", kMatrix}, {"dg", kRow}, {"db", kRow}};
  cases->Add(Kernel::kNormBackward, {layer, layer_writes});
  cases->Add(" given sums", Simple(Kernel::kNormBackward),
             {with(layer, {{"s", kTwo}}), layer_writes});
  cases->Add(Kernel::kNormBackwardAdd, {with(layer, {{"z", kMatrix}}), layer_writes});
  cases->Add(" given sums", Simple(Kernel::kNormBackwardAdd),
             {with(layer, {{"z", kMatrix}, {"s", kTwo}}), layer_writes});

  cases->Add(Kernel::kRmsNormStatistics, {{{"x", kMatrix}}, {{"s", kOne}}});
  cases->Add(Kernel::kRmsNorm, {{{"x", kMatrix}, {"gain", kRow}}, {{"y", kMatrix}, {"m", kOne}}});
  cases->Add(Kernel::kRmsNormBackwardStatistics,
             {{{"x", kMatrix}, {"dy", kMatrix}, {"gain", kRow}, {"m", kOne}}, {{"s", kOne}}});
  const std::vector<std::pair<std::string, Shape>> rms = {
      {"x", kMatrix}, {"dy", kMatrix}, {"gain", kRow}, {"m", kOne}, {"dg", kRow}};
  const std::vector<std::pair<std::string, Shape>> rms_writes = {{"dx", kMatrix}, {"dg", kRow}};
  cases->Add(Kernel::kRmsNormBackward, {rms, rms_writes});
  cases->Add(Kernel::kRmsNormBackwardAdd, {with(rms, {{"z", kMatrix}, {"s", kOne}}), rms_writes});
}

void AddAttention(Cases* cases) {
  // Sequences of 75 rows are neither a multiple of a block's 64 nor of a tile's.
  constexpr uint64_t kGroups = 2;
  for (const uint64_t size : {24u, 80u, 200u}) {  // each of the three instances
    for (const uint64_t heads : {1u, 3u}) {
      for (const bool causal : {false, true}) {
        const Shape x{2 * kRows, kGroups * (heads + 2) * size};
        const Shape o{2 * kRows, kGroups * heads * size};
        const Shape l{2 * kRows, kGroups * heads};
        const std::vector<double> attributes = {static_cast<double>(kRows), kGroups,
                                                static_cast<double>(heads),
                                                static_cast<double>(size), causal ? 1.0 : 0.0};
        const std::string variant = " heads of " + std::to_string(size) + " by " +
                                    std::to_string(heads) + (causal ? " causal" : "");
        cases->Add(variant, Simple(Kernel::kAttention, attributes),
                   {{{"x", x}}, {{"o", o}, {"l", l}}});
        cases->Add(variant, Simple(Kernel::kAttentionBackward, attributes),
                   {{{"do", o}, {"x", x}, {"o", o}, {"l", l}}, {{"dx", x}}});
        if (!causal) continue;
        std::vector<double> windowed = attributes;
        windowed.push_back(20);
        cases->Add(variant + " in a window", Simple(Kernel::kAttention, windowed),
                   {{{"x", x}}, {{"o", o}, {"l", l}}});
        cases->Add(variant + " in a window", Simple(Kernel::kAttentionBackward, windowed),
                   {{{"do", o}, {"x", x}, {"o", o}, {"l", l}}, {{"dx", x}}});
      }
    }
  }
}

// Each op has one of three parts of two sequences, with its own keys, another part's, or all.
void AddSharedAttention(Cases* cases) {
  constexpr uint64_t kParts = 3;
  constexpr uint64_t kLength = 70;  // as above, but even
  constexpr uint64_t kGroups = 2;
  constexpr uint64_t kSequences = 2;
  for (const uint64_t size : {24u, 80u, 200u}) {
    for (const uint64_t heads : {1u, 3u}) {
      const Shape x{kSequences * kLength, kGroups * (heads + 2) * size};
      const Shape o{kSequences * kLength, kGroups * heads * size};
      const Shape l{kSequences * kLength, kGroups * heads};
      const Shape kv{kSequences * kLength, kGroups * 2 * size};
      const auto attributes = [&](double causal, double window, double step) {
        return std::vector<double>{kParts * kLength,
                                   kGroups,
                                   static_cast<double>(heads),
                                   static_cast<double>(size),
                                   causal,
                                   window,
                                   kParts,
                                   1,
                                   step};
      };
      const std::string variant =
          " heads of " + std::to_string(size) + " by " + std::to_string(heads);
      const auto add = [&](const std::string& more, const std::vector<double>& own,
                           const Shape& keys) {
        cases->Add(variant + more, Simple(Kernel::kAttentionPart, own),
                   {{{"x", x}, {"kv", keys}}, {{"o", o}, {"l", l}}});
        cases->Add(variant + more, Simple(Kernel::kAttentionPartBackward, own),
                   {{{"do", o}, {"x", x}, {"kv", keys}, {"o", o}, {"l", l}, {"dx", x}},
                    {{"dx", x}, {"dkv", keys}}});
      };
      add(" own", attributes(1, 0, 0), kv);
      add(" others", attributes(0, 0, 2), kv);
      add(" all in a window", attributes(1, 33, -1), {kParts * kv.rows, kv.columns});
      const std::vector<double> keys = {kGroups, static_cast<double>(heads),
                                        static_cast<double>(size)};
      cases->Add(variant, Simple(Kernel::kTakeKeys, keys), {{{"x", x}}, {{"kv", kv}}});
      cases->Add(variant, Simple(Kernel::kPutKeys, keys), {{{"kv", kv}, {"x", x}}, {{"x", x}}});
      cases->Add(variant, Simple(Kernel::kAttentionMerge),
                 {{{"p", o}, {"lp", l}, {"o", o}, {"l", l}}, {{"o", o}, {"l", l}}});
    }
  }
  for (const double back : {0.0, 1.0}) {
    const Shape rows{2 * 3 * 10, kColumns};
    cases->Add(back == 0 ? "" : " back", Simple(Kernel::kOrderSequences, {30, 3, 0, back}),
               {{{"x", rows}}, {{"y", rows}}});
  }
}

void AddLoss(Cases* cases) {
  cases->Add(Kernel::kMaximum, {{{"x", kMatrix}}, {{"m", kOne}}});
  cases->Add(Kernel::kExponentials, {{{"x", kMatrix}, {"m", kOne}}, {{"e", kMatrix}, {"s", kTwo}}});
  cases->Add(" in place", Simple(Kernel::kExponentials),
             {{{"x", kMatrix}, {"m", kOne}}, {{"x", kMatrix}, {"s", kTwo}}});
  cases->Add(Kernel::kCrossEntropyBackward, {{{"e", kMatrix}, {"s", kTwo}}, {{"dx", kMatrix}}});
  cases->Add(" ahead", Simple(Kernel::kExponentials, {2, 0.25}),
             {{{"x", kMatrix}, {"m", kOne}}, {{"e", kMatrix}, {"s", kTwo}}});
  cases->Add(" ahead", Simple(Kernel::kCrossEntropyBackward, {2, 0.25}),
             {{{"e", kMatrix}, {"s", kTwo}}, {{"dx", kMatrix}}});
  cases->Add(Kernel::kSquaredError, {{{"x", kMatrix}}, {{"loss", kOne}, {"dx", kMatrix}}});
}

void AddLatent(Cases* cases) {
  constexpr uint64_t kHeads = 5;
  constexpr uint64_t kQuery = 24;  // of which 8 are shared
  constexpr uint64_t kValue = 20;
  const Shape q{kRows, kHeads * kQuery};
  const Shape kv{kRows, kHeads * (kQuery - 8 + kValue)};
  const Shape r{kRows, 8};
  const Shape x{kRows, kHeads * (2 * kQuery + kValue)};
  const Shape o{kRows, kHeads * kValue};
  const Shape l{kRows, kHeads};
  const std::vector<double> sizes = {kHeads, kQuery, 8, kValue};
  cases->Add(Kernel::kJoinHeads, {{{"q", q}, {"kv", kv}, {"r", r}}, {{"x", x}}}, sizes);
  cases->Add(Kernel::kSplitHeads, {{{"dx", x}}, {{"dq", q}, {"dkv", kv}, {"dr", r}}}, sizes);
  const std::vector<double> core = {kRows, kHeads, 1, kQuery, 1, 0, 1, 0, -1, kValue};
  cases->Add(" latent", Simple(Kernel::kAttention, core), {{{"x", x}}, {{"o", o}, {"l", l}}});
  cases->Add(" latent", Simple(Kernel::kAttentionBackward, core),
             {{{"do", o}, {"x", x}, {"o", o}, {"l", l}}, {{"dx", x}}});
}

void AddExperts(Cases* cases) {
  struct Choice {
    const char* name;
    std::vector<double> attributes;  // RoutingAttribute
  };
  const Choice choices[] = {
      {" even", {8, 2, 1, 1, 0, 1, 1, 0, 0}},
      {" dropped", {8, 2, 1, 1, 1.25, 3, 2, 0, 0.01}},
      {" in groups", {16, 4, 4, 2, 0, 2, 3, 1, 0.001}},
      {" one sigmoid", {4, 1, 1, 1, 0, 1.5, 4, 1, 0}},
  };
  for (const Choice& choice : choices) {
    const char* const name = choice.name;
    const ExpertRouting routing = MakeRouting(choice.attributes);
    const uint64_t tokens = routing.period * (routing.period < 32 ? 9 : 2);
    const Shape x{tokens, kColumns};
    const Shape rows{KeptRows(routing, tokens), kColumns};
    const Shape l{tokens, routing.experts};
    const Shape w{tokens, routing.per_token};
    const Shape counts{1, routing.experts};
    const auto of = [&](Kernel kernel) { return Simple(kernel, choice.attributes); };
    cases->Add(name, of(Kernel::kRoute), {{{"l", l}}, {{"w", w}, {"c", counts}}});
    cases->Add(name, of(Kernel::kRouteBackward), {{{"dw", w}, {"l", l}}, {{"dl", l}}});
    cases->Add(name, of(Kernel::kPermute), {{{"x", x}}, {{"y", rows}}});
    cases->Add(name, of(Kernel::kPermuteBackward), {{{"dy", rows}}, {{"dx", x}}});
    cases->Add(name, of(Kernel::kCombine), {{{"x", rows}, {"w", w}}, {{"y", x}}});
    cases->Add(name, of(Kernel::kCombineBackward),
               {{{"dy", x}, {"x", rows}, {"w", w}}, {{"dx", rows}, {"dw", w}}});
  }
  const Shape chunks{3 * (4 + 0 + 7 + 2), kColumns};
  for (const double back : {0.0, 1.0}) {
    cases->Add(back == 0 ? "" : " back", Simple(Kernel::kOrderChunks, {3, back, 4, 0, 7, 2}),
               {{{"x", chunks}}, {{"y", chunks}}});
  }
  // There are three experts, one of which has no rows.
  constexpr uint64_t kIn = 24;
  constexpr uint64_t kOut = 40;
  constexpr Shape kTokens{20, kIn};
  constexpr Shape kResults{20, kOut};
  for (const double side_by_side : {0.0, 1.0}) {
    const std::string variant = side_by_side == 0 ? "" : " side by side";
    const std::vector<double> experts = {side_by_side, 8, 0, 12};
    const Shape w = side_by_side == 0 ? Shape{3 * kOut, kIn} : Shape{kOut, 3 * kIn};
    const auto of = [&](GemmMode mode) {
      Compute product = Simple(Kernel::kGroupedGemm, experts);
      product.gemm.mode = mode;
      return product;
    };
    cases->Add(variant + " NT", of(GemmMode::kNT), {{{"a", kTokens}, {"b", w}}, {{"c", kResults}}});
    cases->Add(variant + " NN", of(GemmMode::kNN), {{{"a", kResults}, {"b", w}}, {{"c", kTokens}}});
    cases->Add(variant + " TN", of(GemmMode::kTN), {{{"a", kResults}, {"b", kTokens}}, {{"c", w}}});
    cases->Add(variant + " TN onto", of(GemmMode::kTN),
               {{{"a", kResults}, {"b", kTokens}, {"c", w}}, {{"c", w}}});
  }
}

void AddImages(Cases* cases) {
  constexpr uint64_t kImages = 5;
  constexpr uint64_t kChannels = 6;
  constexpr uint64_t kHeight = 12;
  constexpr uint64_t kWidth = 8;
  constexpr uint64_t kPixels = kHeight * kWidth;
  constexpr Shape kImage{kImages * kPixels, kChannels};
  constexpr Shape kQuarter{kImages * kPixels / 4, kChannels};
  constexpr Shape kLarge{kImages * kPixels * 4, kChannels};
  constexpr Shape kFlat{kImages, kPixels * kChannels};
  for (const double stride : {1.0, 2.0}) {
    // A side has (size + 2·padding - kernel)/stride + 1 outputs.
    const auto outputs = [&](uint64_t side) {
      return (side + 2 - 3) / static_cast<uint64_t>(stride) + 1;
    };
    const Shape columns{kImages * outputs(kHeight) * outputs(kWidth), kChannels * 9};
    const std::string variant = stride == 1 ? "" : " stride 2";
    cases->Add(variant, Simple(Kernel::kIm2Col, {kHeight, kWidth, 3, stride, 1}),
               {{{"x", kImage}}, {{"c", columns}}});
    cases->Add(variant, Simple(Kernel::kCol2Im, {kHeight, kWidth, 3, stride, 1}),
               {{{"c", columns}}, {{"x", kImage}}});
  }
  cases->Add(Kernel::kMaxPool, {{{"x", kImage}}, {{"y", kQuarter}}}, {kHeight, kWidth, 2});
  cases->Add(Kernel::kMaxPoolBackward,
             {{{"dy", kQuarter}, {"x", kImage}, {"y", kQuarter}}, {{"dx", kImage}}},
             {kHeight, kWidth, 2});
  cases->Add(Kernel::kUpsample, {{{"x", kImage}}, {{"y", kLarge}}}, {kHeight, kWidth});
  cases->Add(Kernel::kUpsampleBackward, {{{"dy", kLarge}}, {{"dx", kImage}}}, {kHeight, kWidth});
  cases->Add(Kernel::kFlatten, {{{"x", kImage}}, {{"y", kFlat}}}, {kPixels});
  cases->Add(Kernel::kFlattenBackward, {{{"dy", kFlat}}, {{"dx", kImage}}}, {kPixels});
  constexpr Shape kOther{kImage.rows, 2 * kChannels};
  constexpr Shape kJoined{kImage.rows, 3 * kChannels};
  cases->Add(Kernel::kConcatenate, {{{"x", kImage}, {"z", kOther}}, {{"y", kJoined}}}, {3});
  cases->Add(Kernel::kSeparate, {{{"y", kJoined}}, {{"x", kImage}, {"z", kOther}}}, {3});
  constexpr Shape kPairs{kImages, 2 * kChannels};
  cases->Add(Kernel::kModulate, {{{"x", kImage}, {"e", kPairs}}, {{"y", kImage}}}, {kPixels});
  cases->Add(Kernel::kModulateBackward,
             {{{"dy", kImage}, {"x", kImage}, {"e", kPairs}}, {{"dx", kImage}, {"de", kPairs}}},
             {kPixels});
  constexpr Shape kVector{1, kChannels};
  constexpr Shape kMoments{kImages, 2 * 3};  // three groups of two channels
  cases->Add(
      Kernel::kGroupNorm,
      {{{"x", kImage}, {"gain", kVector}, {"bias", kVector}}, {{"y", kImage}, {"m", kMoments}}},
      {kPixels, 3});
  cases->Add(Kernel::kGroupNormBackward,
             {{{"x", kImage},
               {"dy", kImage},
               {"gain", kVector},
               {"m", kMoments},
               {"dgain", kVector},
               {"dbias", kVector}},
              {{"dx", kImage}, {"dgain", kVector}, {"dbias", kVector}}},
             {kPixels, 3});
}

// Adam's state is random too, so its second moments are where the sums of squares cannot be
// negative: see kRandom in tests/support/gpu_run.h. Only the norm is compared here; Adam runs
// in whole steps.
void AddOptimizer(Cases* cases) {
  cases->Add(Kernel::kSquaredNorm, {{{"g", kMatrix}, {"h", kRow}}, {{"norm", {1, 1}}}}, {1, 0.5});
}

}  // namespace

std::vector<KernelCase> EveryKernel(DType dtype) {
  Cases cases(dtype);
  AddProducts(&cases);
  AddMovement(&cases);
  AddElementwise(&cases);
  AddNorms(&cases);
  AddAttention(&cases);
  AddSharedAttention(&cases);
  AddLoss(&cases);
  AddLatent(&cases);
  AddExperts(&cases);
  AddImages(&cases);
  AddOptimizer(&cases);
  return cases.cases;
}

}  // namespace rehearse

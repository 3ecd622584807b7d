#include "real/cuda/launch.h"

#include <algorithm>
#include <array>

#include <fmt/format.h>

#include "sim/base/error.h"
#include "sim/schedule/attention_part.h"

namespace rehearse {
namespace {

// How a stage's work is divided into blocks.
enum class Grid : uint8_t {
  kElements,      // threads over the elements of the first write
  kReadElements,  // threads over the elements of the first read
  kRows,          // a block per row of the first read
  kWrittenRows,   // a block per row of the first write
  kGroups,        // a block per group of channels of an image
  kColumnChunks,  // blocks of 32 columns × chunks of rows of the first read
  kTable,         // threads over columns, slices of the table's rows
  kQueries,       // blocks of 64 rows × heads
  kKeys,          // blocks of 64 rows × groups of heads
  kPartQueries,   // the same for a rank's parts of sequences
  kPartKeys,
  kTensorChunks,  // chunks × reads
  kTensors,       // threads over the largest gradient × gradients
  kOne,           // one block
};

constexpr uint32_t kThreads = 256;
constexpr uint32_t kWarp = 32;
constexpr uint32_t kAttentionRows = 64;
constexpr uint64_t kLargestHead = 256;
constexpr uint32_t kTableSlices = 64;

struct Stage {
  const char* function = nullptr;
  Grid grid = Grid::kElements;
};

// A kernel has up to three stages; `outputs` is how many sums per row and column a column sum
// makes.
struct Row {
  Kernel kernel = Kernel::kNone;
  std::array<Stage, 3> stages = {};
  uint32_t outputs = 0;
};

constexpr Row kRows[] = {
    {Kernel::kCopy, {{{"Copy", Grid::kElements}}}},
    {Kernel::kAccumulate, {{{"Accumulate", Grid::kElements}}}},
    {Kernel::kAdd, {{{"Add", Grid::kElements}}}},
    {Kernel::kUnstack, {{{"Unstack", Grid::kElements}}}},
    {Kernel::kStack, {{{"Stack", Grid::kElements}}}},
    {Kernel::kEmbedding, {{{"Embedding", Grid::kWrittenRows}}}},
    {Kernel::kEmbeddingBackward, {{{"EmbeddingBackward", Grid::kTable}}}},
    {Kernel::kBias, {{{"Bias", Grid::kElements}}}},
    {Kernel::kBiasBackward,
     {{{"BiasBackward", Grid::kColumnChunks}, {"BiasBackwardFinish", Grid::kElements}}},
     1},
    {Kernel::kBiasGelu, {{{"BiasGelu", Grid::kElements}}}},
    {Kernel::kBiasGeluBackward,
     {{{"BiasGeluBackward", Grid::kColumnChunks}, {"BiasGeluBackwardFinish", Grid::kElements}}},
     1},
    {Kernel::kSwiGlu, {{{"SwiGlu", Grid::kElements}}}},
    {Kernel::kSwiGluBackward, {{{"SwiGluBackward", Grid::kElements}}}},
    {Kernel::kNormStatistics, {{{"NormStatistics", Grid::kRows}}}},
    {Kernel::kNorm, {{{"Norm", Grid::kRows}}}},
    {Kernel::kNormBackwardStatistics, {{{"NormBackwardStatistics", Grid::kRows}}}},
    {Kernel::kNormBackward,
     {{{"NormBackwardColumns", Grid::kColumnChunks},
       {"NormBackwardFinish", Grid::kElements},
       {"NormBackward", Grid::kRows}}},
     2},
    {Kernel::kNormBackwardAdd,
     {{{"NormBackwardColumns", Grid::kColumnChunks},
       {"NormBackwardFinish", Grid::kElements},
       {"NormBackwardAdd", Grid::kRows}}},
     2},
    {Kernel::kRmsNormStatistics, {{{"RmsNormStatistics", Grid::kRows}}}},
    {Kernel::kRmsNorm, {{{"RmsNorm", Grid::kRows}}}},
    {Kernel::kRmsNormBackwardStatistics, {{{"RmsNormBackwardStatistics", Grid::kRows}}}},
    {Kernel::kRmsNormBackward,
     {{{"RmsNormBackwardColumns", Grid::kColumnChunks},
       {"RmsNormBackwardFinish", Grid::kElements},
       {"RmsNormBackward", Grid::kRows}}},
     2},
    {Kernel::kRmsNormBackwardAdd,
     {{{"RmsNormBackwardColumns", Grid::kColumnChunks},
       {"RmsNormBackwardFinish", Grid::kElements},
       {"RmsNormBackwardAdd", Grid::kRows}}},
     2},
    // Names of attention's functions end in their head size, in the order 64, 128, 256.
    {Kernel::kAttention, {{{"Attention", Grid::kQueries}}}},
    {Kernel::kAttentionBackward,
     {{{"AttentionBackwardQ", Grid::kQueries}, {"AttentionBackwardKV", Grid::kKeys}}}},
    {Kernel::kTakeKeys, {{{"TakeKeys", Grid::kElements}}}},
    {Kernel::kPutKeys, {{{"PutKeys", Grid::kReadElements}}}},
    {Kernel::kAttentionPart, {{{"AttentionPart", Grid::kPartQueries}}}},
    {Kernel::kAttentionPartBackward,
     {{{"AttentionPartBackwardQ", Grid::kPartQueries},
       {"AttentionPartBackwardKV", Grid::kPartKeys}}}},
    {Kernel::kAttentionMerge, {{{"AttentionMerge", Grid::kWrittenRows}}}},
    {Kernel::kOrderSequences, {{{"OrderSequences", Grid::kElements}}}},
    {Kernel::kJoinHeads, {{{"JoinHeads", Grid::kElements}}}},
    {Kernel::kSplitHeads, {{{"SplitHeads", Grid::kReadElements}}}},
    {Kernel::kRoute, {{{"Route", Grid::kWrittenRows}}}},
    {Kernel::kRouteBackward, {{{"RouteBackward", Grid::kWrittenRows}}}},
    {Kernel::kPermute, {{{"Permute", Grid::kRows}}}},
    {Kernel::kPermuteBackward, {{{"PermuteBackward", Grid::kWrittenRows}}}},
    {Kernel::kCombine, {{{"Combine", Grid::kWrittenRows}}}},
    {Kernel::kCombineBackward, {{{"CombineBackward", Grid::kRows}}}},
    {Kernel::kOrderChunks, {{{"OrderChunks", Grid::kWrittenRows}}}},
    {Kernel::kResidual, {{{"Residual", Grid::kElements}}}},
    {Kernel::kDropoutBackward,
     {{{"DropoutBackward", Grid::kColumnChunks}, {"DropoutBackwardFinish", Grid::kElements}}},
     1},
    {Kernel::kDropout, {{{"Dropout", Grid::kElements}}}},
    {Kernel::kMaximum, {{{"RowMaximum", Grid::kRows}}}},
    {Kernel::kExponentials, {{{"Exponentials", Grid::kRows}}}},
    {Kernel::kCrossEntropy, {{{"CrossEntropy", Grid::kElements}}}},
    {Kernel::kCrossEntropyBackward, {{{"CrossEntropyBackward", Grid::kRows}}}},
    {Kernel::kSquaredError, {{{"SquaredError", Grid::kRows}}}},
    {Kernel::kRelu, {{{"Relu", Grid::kElements}}}},
    {Kernel::kReluBackward, {{{"ReluBackward", Grid::kElements}}}},
    {Kernel::kIm2Col, {{{"Im2Col", Grid::kElements}}}},
    {Kernel::kCol2Im, {{{"Col2Im", Grid::kElements}}}},
    {Kernel::kMaxPool, {{{"MaxPool", Grid::kElements}}}},
    {Kernel::kMaxPoolBackward, {{{"MaxPoolBackward", Grid::kElements}}}},
    {Kernel::kUpsample, {{{"Upsample", Grid::kElements}}}},
    {Kernel::kUpsampleBackward, {{{"UpsampleBackward", Grid::kElements}}}},
    {Kernel::kFlatten, {{{"Flatten", Grid::kElements}}}},
    {Kernel::kFlattenBackward, {{{"FlattenBackward", Grid::kElements}}}},
    {Kernel::kConcatenate, {{{"Concatenate", Grid::kElements}}}},
    {Kernel::kSeparate, {{{"Separate", Grid::kReadElements}}}},
    {Kernel::kGroupNorm, {{{"GroupNorm", Grid::kGroups}}}},
    {Kernel::kGroupNormBackward,
     {{{"GroupNormBackwardColumns", Grid::kColumnChunks},
       {"NormBackwardFinish", Grid::kElements},
       {"GroupNormBackward", Grid::kGroups}}},
     2},
    {Kernel::kModulate, {{{"Modulate", Grid::kElements}}}},
    {Kernel::kModulateBackward, {{{"ModulateBackward", Grid::kElements}}}},
    {Kernel::kSquaredNorm,
     {{{"SquaredNorm", Grid::kTensorChunks}, {"SquaredNormFinish", Grid::kOne}}}},
    {Kernel::kAdam, {{{"Adam", Grid::kTensors}}}},
};

// The instances of each of attention's functions, by the largest head that they can have.
struct AttentionFunctions {
  Kernel kernel;
  size_t stage;
  std::array<const char*, 3> names;
};
constexpr std::array<uint64_t, 3> kLargestHeads = {64, 128, kLargestHead};
constexpr AttentionFunctions kAttentionFunctions[] = {
    {Kernel::kAttention, 0, {"Attention64", "Attention128", "Attention256"}},
    {Kernel::kAttentionBackward,
     0,
     {"AttentionBackwardQ64", "AttentionBackwardQ128", "AttentionBackwardQ256"}},
    {Kernel::kAttentionBackward,
     1,
     {"AttentionBackwardKV64", "AttentionBackwardKV128", "AttentionBackwardKV256"}},
    {Kernel::kAttentionPart, 0, {"AttentionPart64", "AttentionPart128", "AttentionPart256"}},
    {Kernel::kAttentionPartBackward,
     0,
     {"AttentionPartBackwardQ64", "AttentionPartBackwardQ128", "AttentionPartBackwardQ256"}},
    {Kernel::kAttentionPartBackward,
     1,
     {"AttentionPartBackwardKV64", "AttentionPartBackwardKV128", "AttentionPartBackwardKV256"}},
};

uint64_t DivideUp(uint64_t a, uint64_t b) { return (a + b - 1) / b; }

uint32_t To32(uint64_t n) { return static_cast<uint32_t>(n); }

uint64_t ElementsOf(const GpuOperand& operand) { return operand.rows * operand.columns; }

bool IsAttention(Kernel kernel) {
  return std::any_of(std::begin(kAttentionFunctions), std::end(kAttentionFunctions),
                     [&](const AttentionFunctions& row) { return row.kernel == kernel; });
}

const char* AttentionFunction(Kernel kernel, size_t stage, uint64_t head_size) {
  for (const AttentionFunctions& row : kAttentionFunctions) {
    if (row.kernel != kernel || row.stage != stage) continue;
    for (size_t i = 0; i < kLargestHeads.size(); ++i) {
      if (head_size <= kLargestHeads[i]) return row.names[i];
    }
  }
  throw Error(fmt::format("attention with heads of {} elements; GPU kernels go up to {}", head_size,
                          kLargestHead));
}

struct Shapes {
  const Compute& compute;
  const GpuOperand& read;   // the first
  const GpuOperand& write;  // the first
  std::span<const GpuOperand> operands;
  size_t reads;
  uint32_t multiprocessors;
  uint32_t chunks;

  uint64_t Attribute(size_t i) const { return static_cast<uint64_t>(compute.attributes.at(i)); }
  uint64_t WidestHead() const {
    const bool has_value_size = compute.attributes.size() > kAttentionValueSize;
    return std::max(Attribute(kAttentionHeadSize),
                    Attribute(has_value_size ? kAttentionValueSize : kAttentionHeadSize));
  }
  // Enough blocks fill the device several times, and each thread goes on until all is done.
  Dim3 OverElements(uint64_t elements, uint32_t y = 1) const {
    const uint64_t most = uint64_t{multiprocessors} * 16;
    return {To32(std::clamp<uint64_t>(DivideUp(elements, kThreads), 1, most)), y, 1};
  }
  // Blocks of runs of `length` rows of an operand.
  Dim3 OverRuns(size_t operand, uint64_t length, uint64_t y) const {
    const uint64_t runs = operands[operand].rows / length;
    return {To32(runs * DivideUp(length, kAttentionRows)), To32(y), 1};
  }
  Dim3 OverSequences(uint64_t y) const {
    return OverRuns(compute.kernel == Kernel::kAttention ? 0 : 1, Attribute(0), y);
  }
  Dim3 OverParts(bool keys, uint64_t y) const {
    const size_t x = compute.kernel == Kernel::kAttentionPart ? 0 : 1;
    return OverRuns(keys ? x + 1 : x, Attribute(0) / Attribute(6), y);
  }
};

Dim3 GridOf(Grid grid, const Shapes& s) {
  switch (grid) {
    case Grid::kElements:
      return s.OverElements(ElementsOf(s.write));
    case Grid::kReadElements:
      return s.OverElements(ElementsOf(s.read));
    case Grid::kRows:
      return {To32(s.read.rows), 1, 1};
    case Grid::kWrittenRows:
      return {To32(s.write.rows), 1, 1};
    case Grid::kGroups:
      return {To32(s.read.rows / s.Attribute(0) * s.Attribute(1)), 1, 1};
    case Grid::kColumnChunks:
      return {To32(DivideUp(s.read.columns, kWarp)), s.chunks, 1};
    case Grid::kTable:
      return {To32(DivideUp(s.read.columns, kThreads)), kTableSlices, 1};
    case Grid::kQueries:
      return s.OverSequences(s.Attribute(1) * s.Attribute(2));
    case Grid::kKeys:
      return s.OverSequences(s.Attribute(1));
    case Grid::kPartQueries:
      return s.OverParts(/*keys=*/false, s.Attribute(1) * s.Attribute(2));
    case Grid::kPartKeys:
      return s.OverParts(/*keys=*/true, s.Attribute(1));
    case Grid::kTensorChunks:
      return {s.chunks, To32(s.reads), 1};
    case Grid::kTensors: {
      uint64_t largest = 0;
      const size_t norms = s.compute.attributes.size() > 1 ? 2 : 1;  // behind the gradients
      const size_t arrays = s.reads - norms;
      for (size_t i = 0; i < arrays; ++i) largest = std::max(largest, ElementsOf(s.operands[i]));
      return s.OverElements(largest, To32(arrays));
    }
    case Grid::kOne:
      return {};
  }
  return {};
}

// The chunks of rows of a column sum, four blocks per multiprocessor with at least 32 rows each, or
// the blocks of a long sum.
uint32_t ChunksOf(const Row& row, const Shapes& s) {
  const Grid first = row.stages[0].grid;
  if (first == Grid::kTensorChunks) return s.multiprocessors;
  if (first != Grid::kColumnChunks) return 1;
  const uint64_t wanted =
      DivideUp(uint64_t{s.multiprocessors} * 4, DivideUp(s.read.columns, kWarp));
  return To32(std::clamp<uint64_t>(wanted, 1, DivideUp(s.read.rows, 32)));
}

uint64_t ScratchOf(const Row& row, const Shapes& s) {
  if (row.kernel == Kernel::kAttentionBackward || row.kernel == Kernel::kAttentionPartBackward) {
    return s.operands[1].rows * s.Attribute(1) * s.Attribute(2);
  }
  if (row.kernel == Kernel::kSquaredNorm) return uint64_t{s.chunks} * s.reads;
  return uint64_t{row.outputs} * s.chunks * s.read.columns;
}

}  // namespace

LaunchPlan PlanLaunches(const Compute& compute, std::span<const GpuOperand> operands, size_t reads,
                        uint32_t multiprocessors) {
  const auto* const row =
      std::find_if(std::begin(kRows), std::end(kRows),
                   [&](const Row& candidate) { return candidate.kernel == compute.kernel; });
  if (row == std::end(kRows)) {
    throw Error(
        fmt::format("there is no GPU kernel \"{}\" yet; expected a step without it, or "
                    "\"--backend cpu\"",
                    Name(compute.kernel)));
  }
  CHECK(reads > 0 && reads < operands.size());
  Shapes shapes{compute, operands[0], operands[reads], operands, reads, multiprocessors, 1};
  shapes.chunks = ChunksOf(*row, shapes);
  LaunchPlan plan;
  plan.chunks = shapes.chunks;
  plan.scratch_floats = ScratchOf(*row, shapes);
  for (const Stage& stage : row->stages) {
    if (stage.function == nullptr) break;
    KernelLaunch launch{stage.function, GridOf(stage.grid, shapes), {kThreads, 1, 1}};
    if (IsAttention(compute.kernel)) {
      launch.function =
          AttentionFunction(compute.kernel, plan.launches.size(), shapes.WidestHead());
    }
    plan.launches.push_back(launch);
  }
  return plan;
}

Storage StorageOf(DType dtype) {
  switch (dtype) {
    case DType::kFp32:
    case DType::kTf32:
      return Storage::kFp32;
    case DType::kBf16:
    case DType::kFp8:  // buffers have the numbers before they were cast
    case DType::kFp4:
      return Storage::kBf16;
    case DType::kFp16:
      return Storage::kFp16;
    case DType::kFp64:
      break;
  }
  throw Error(fmt::format("GPU kernels keep fp32, bf16 or fp16; found {}", Name(dtype)));
}

std::vector<const char*> KernelFunctions() {
  std::vector<const char*> names = {"Transpose"};
  for (const Row& row : kRows) {
    for (const Stage& stage : row.stages) {
      if (stage.function != nullptr && !IsAttention(row.kernel)) names.push_back(stage.function);
    }
  }
  for (const AttentionFunctions& row : kAttentionFunctions) {
    names.insert(names.end(), row.names.begin(), row.names.end());
  }
  return names;
}

}  // namespace rehearse

#include "tests/doubles/kernels.h"

#include <cmath>
#include <deque>
#include <exception>
#include <span>

#include "real/kernels/kernels.h"
#include "real/kernels/numbers.h"
#include "real/kernels/storage.h"
#include "tests/doubles/device_source.h"

namespace rehearse::gpu_double {
namespace {

// One operand in fp32 on the CPU; operands that are the same memory share it, so that "in
// place" stays so.
struct Image {
  GpuOperand operand;
  std::vector<float> values;
  ArrayPiece place;
};

class Call {
 public:
  explicit Call(const KernelArguments& arguments) : a_(arguments) {
    for (uint32_t i = 0; i < a_.reads + a_.writes; ++i) {
      Image& image = ImageOf(a_.operands[i]);
      Operand<float> operand;
      operand.data = image.values.data();
      operand.rows = image.operand.rows;
      operand.columns = image.operand.columns;
      operand.stride = image.operand.columns;
      if (a_.operands[i].placed != 0) operand.place = &image.place;
      (i < a_.reads ? reads_ : writes_).push_back(operand);
    }
  }

  void Run() {
    Compute compute;
    compute.kernel = a_.kernel;
    compute.attributes.assign(a_.attributes, a_.attributes + a_.attribute_count);
    StepFacts facts;
    facts.tokens = a_.tokens;
    facts.number = a_.step;
    if (!RunHashed(compute)) {
      FindKernel<float>(a_.kernel)({compute, Tag{}, facts, reads_, writes_, nullptr});
    }
    const bool makes_loss =
        a_.kernel == Kernel::kCrossEntropy || a_.kernel == Kernel::kSquaredError;
    for (uint64_t i = 0; makes_loss && a_.losses != nullptr && i < writes_[0].rows; ++i) {
      a_.losses[i] = writes_[0].At(i, 0);
    }
    for (uint32_t i = 0; i < a_.writes; ++i) WriteBack(a_.operands[a_.reads + i]);
  }

 private:
  Image& ImageOf(const GpuOperand& operand) {
    for (Image& image : images_) {
      if (image.operand.data == operand.data && image.operand.rows == operand.rows &&
          image.operand.columns == operand.columns) {
        return image;
      }
    }
    Image& image = images_.emplace_back();
    image.operand = operand;
    for (uint64_t i = 0; i < operand.rows; ++i) {
      for (uint64_t j = 0; j < operand.columns; ++j) {
        image.values.push_back(LoadStored(operand.storage, operand.data, i * operand.stride + j));
      }
    }
    image.place.global_rows = operand.global_rows;
    image.place.global_columns = operand.global_columns;
    image.place.row = operand.global_row;
    image.place.column = operand.global_column;
    image.place.order = operand.order;
    return image;
  }

  void WriteBack(const GpuOperand& operand) {
    const Image& image = ImageOf(operand);
    for (uint64_t i = 0; i < operand.rows; ++i) {
      for (uint64_t j = 0; j < operand.columns; ++j) {
        Store(operand.storage, operand.data, i * operand.stride + j,
              image.values[i * operand.columns + j]);
      }
    }
  }

  const GpuOperand& Global(uint32_t i) const { return a_.operands[i]; }
  // Of kernels that look at tokens.
  uint64_t Ahead() const {
    return a_.attribute_count > 0 ? static_cast<uint64_t>(a_.attributes[0]) : 0;
  }
  double Weight() const { return a_.attribute_count > 1 ? a_.attributes[1] : 1; }

  // Kernels that draw hashed numbers get these as a ready-made stream, unlike the CPU's.
  bool RunHashed(const Compute& compute) {
    switch (compute.kernel) {
      case Kernel::kEmbedding:
      case Kernel::kEmbeddingBackward:
        LookUp(compute.kernel == Kernel::kEmbeddingBackward);
        return true;
      case Kernel::kResidual:
      case Kernel::kDropout:
        Drop(compute);
        return true;
      case Kernel::kExponentials:
        Exponentials();
        return true;
      case Kernel::kCrossEntropyBackward:
        CrossEntropyBackward();
        return true;
      case Kernel::kSquaredError:
        SquaredError();
        return true;
      default:
        return false;
    }
  }

  void LookUp(bool backward) {
    const Operand<float>& table = backward ? writes_[0] : reads_[0];
    const Operand<float>& rows = backward ? reads_[0] : writes_[0];
    const GpuOperand& global_table = Global(backward ? a_.reads : 0);
    const GpuOperand& global_rows = Global(backward ? 0 : a_.reads);
    if (backward && a_.reads == 1) std::fill_n(table.data, table.elements(), 0.0f);
    for (uint64_t i = 0; i < rows.rows; ++i) {
      const uint64_t token =
          HashAt(a_.random, global_rows.BatchRow(i) + Ahead()) % global_table.global_rows;
      const bool is_ours =
          token >= global_table.global_row && token < global_table.global_row + table.rows;
      for (uint64_t j = 0; j < rows.columns; ++j) {
        if (!backward) {
          rows.At(i, j) = is_ours ? table.At(token - global_table.global_row, j) : 0;
        } else if (is_ours) {
          table.At(token - global_table.global_row, j) += rows.At(i, j);
        }
      }
    }
  }

  void Drop(const Compute& compute) {
    const bool is_residual = compute.kernel == Kernel::kResidual;
    const GpuOperand& y = Global(a_.reads);
    const double probability = compute.attributes.at(0);
    for (uint64_t i = 0; i < y.rows; ++i) {
      for (uint64_t j = 0; j < y.columns; ++j) {
        const uint64_t at = y.RowOf(i) * y.global_columns + y.global_column + j;
        const bool is_kept = UnitAt(a_.random, at) >= probability;
        const auto factor = static_cast<float>(is_kept ? 1 / (1 - probability) : 0);
        const float x = reads_[0].At(i, j) + (is_residual ? reads_[2].data[j] : 0);
        writes_[0].At(i, j) = (is_residual ? reads_[1].At(i, j) : 0) + factor * x;
        writes_[1].At(i, j) = factor;
      }
    }
  }

  // The label of row i as a column of this rank; none where it is another rank's.
  uint64_t LabelColumn(const GpuOperand& x, uint64_t i) const {
    return HashAt(a_.random, x.BatchRow(i) + Ahead()) % x.global_columns - x.global_column;
  }

  void Exponentials() {
    const Operand<float>& x = reads_[0];
    for (uint64_t i = 0; i < x.rows; ++i) {
      const float largest = reads_[1].At(i, 0);
      const uint64_t label = LabelColumn(Global(0), i);
      writes_[1].At(i, 1) = label < x.columns ? x.At(i, label) - largest : 0;
      float sum = 0;
      for (uint64_t j = 0; j < x.columns; ++j) {
        const float e = std::exp(x.At(i, j) - largest);
        sum += e;
        writes_[0].At(i, j) = e;
      }
      writes_[1].At(i, 0) = sum;
    }
  }

  void CrossEntropyBackward() {
    const GpuOperand& placed = Global(0).placed != 0 ? Global(0) : Global(a_.reads);
    for (uint64_t i = 0; i < reads_[0].rows; ++i) {
      const uint64_t label = LabelColumn(placed, i);
      for (uint64_t j = 0; j < reads_[0].columns; ++j) {
        const double share = reads_[0].At(i, j) / reads_[1].At(i, 0) - (j == label ? 1 : 0);
        writes_[0].At(i, j) = static_cast<float>(Weight() * share / a_.tokens);
      }
    }
  }

  void SquaredError() {
    const GpuOperand& x = Global(0);
    for (uint64_t i = 0; i < x.rows; ++i) {
      float sum = 0;
      for (uint64_t j = 0; j < x.columns; ++j) {
        const uint64_t row = HashAt(a_.random, x.BatchRow(i));
        const auto target = static_cast<float>(2 * UnitAt(row, x.global_column + j) - 1);
        const float error = reads_[0].At(i, j) - target;
        sum += error * error / 2;
        writes_[1].At(i, j) = static_cast<float>(error / a_.tokens);
      }
      writes_[0].At(i, 0) = sum;
    }
  }

  const KernelArguments& a_;
  std::deque<Image> images_;
  std::vector<Operand<float>> reads_;
  std::vector<Operand<float>> writes_;
};

}  // namespace

std::vector<Touch> TouchesOf(const KernelArguments& arguments) {
  std::vector<Touch> touches;
  for (uint32_t i = 0; i < arguments.reads + arguments.writes; ++i) {
    const GpuOperand& operand = arguments.operands[i];
    const uint64_t size = SizeOf(operand.storage);
    touches.push_back({operand.data, operand.rows, operand.columns * size, operand.stride * size,
                       i >= arguments.reads});
  }
  if (arguments.stages > 1) {
    touches.push_back({arguments.scratch, 1, sizeof(float), sizeof(float), true});
  }
  return touches;
}

void RunKernel(const std::string& function, const KernelArguments& arguments, Dim3 grid,
               Dim3 block) {
  if (World::Get().control.runs_source) {
    const std::string wrong = RunSource(function, arguments, grid, block);
    if (!wrong.empty()) World::Get().Report(function + ": " + wrong);
    return;
  }
  if (function == "Transpose") {
    const GpuOperand& x = arguments.operands[0];
    const GpuOperand& y = arguments.operands[1];
    for (uint64_t i = 0; i < x.rows; ++i) {
      for (uint64_t j = 0; j < x.columns; ++j) {
        Store(y.storage, y.data, j * y.stride + i, LoadStored(x.storage, x.data, i * x.stride + j));
      }
    }
    return;
  }
  if (arguments.stage + 1 < arguments.stages) return;
  try {
    Call(arguments).Run();
  } catch (const std::exception& error) {
    World::Get().Report(function + " failed: " + error.what());
  }
}

}  // namespace rehearse::gpu_double

// Chooses a product's mode by trial, as the SC24 paper's kernel tuning does in the first batch: if
// an operand is laid out the wrong way for a fast kernel, transposing it first and multiplying in
// another mode may be quicker than multiplying it as it is.
//
// For each different product (sizes, mode, types), every mode is timed after a warm-up, including
// transposes, and the quickest is kept. Results differ only by rounding. Batched products are left
// as they are.
#pragma once

#include <array>
#include <map>
#include <tuple>
#include <vector>

#include "real/cuda/gemm.h"
#include "real/cuda/kernel_functions.h"

namespace rehearse {

struct Product {
  Gemm gemm;
  DType dtype = DType::kBf16;
  GpuOperand a;
  GpuOperand b;
  GpuOperand c;
  bool accumulates = false;
};

// What was found for a product: the seconds of each mode (NN, NT, TN; 0 if it was not tried).
struct ModeTrial {
  Gemm gemm;  // as given
  GemmMode chosen = GemmMode::kNN;
  std::array<double, 3> seconds{};
};

// The products of one stream, by op. Everything that it refers to must outlive it.
class TunedProducts {
 public:
  TunedProducts(const CudaRuntime& cuda, const GpuBlas& blas, const KernelFunctionTable& functions,
                CudaStream stream)
      : cuda_(cuda), blas_(blas), functions_(functions), stream_(stream) {}

  // Overwrites their C, so it must be called while the contents of memory do not matter yet, with
  // the stream idle.
  void Tune(const std::map<uint32_t, Product>& products);
  // Returns false if the product is quickest as it is.
  bool Multiply(uint32_t op) const;

  const std::vector<ModeTrial>& trials() const { return trials_; }

 private:
  // A product in another mode than its own.
  struct Turned {
    Product product;  // with the turned operands
    GpuMemory table;  // for the transposes: A, its transpose, B, its transpose
    bool turns_a = false;
    bool turns_b = false;
  };
  using Key = std::tuple<uint64_t, uint64_t, uint64_t, GemmMode, Storage, Storage, bool>;

  Turned Turn(const Product& product, GemmMode mode) const;
  void Multiply(const Turned& turned) const;
  double SecondsOf(const Turned& turned) const;

  const CudaRuntime& cuda_;
  const GpuBlas& blas_;
  const KernelFunctionTable& functions_;
  CudaStream stream_;
  std::array<GpuMemory, 2> areas_;     // of turned A and B
  std::map<uint32_t, Turned> turned_;  // by op
  std::vector<ModeTrial> trials_;
};

}  // namespace rehearse

// Element-wise kernels: biases, GELU, SwiGLU, ReLU and its square, dropout and residuals.
//
// gelu(x) = x/2·(1 + tanh(√(2/π)·(x + 0.044715·x³))) (Hendrycks, Gimpel 2016);
// silu(x) = x/(1 + e^-x).
#include <cmath>

#include "real/kernels/kernel_rows.h"
#include "real/kernels/numbers.h"
#include "sim/base/error.h"

namespace rehearse::kernels {
namespace {

constexpr double kRootTwoOverPi = 0.7978845608028654;
constexpr double kGeluCubic = 0.044715;

template <typename T>
T Gelu(T x) {
  return x / 2 * (1 + std::tanh(T(kRootTwoOverPi) * (x + T(kGeluCubic) * x * x * x)));
}

template <typename T>
T GeluSlope(T x) {
  const T tanh = std::tanh(T(kRootTwoOverPi) * (x + T(kGeluCubic) * x * x * x));
  const T inner = T(kRootTwoOverPi) * (1 + 3 * T(kGeluCubic) * x * x);
  return (1 + tanh) / 2 + x / 2 * (1 - tanh * tanh) * inner;
}

template <typename T>
void CheckSameShape(const Operand<T>& a, const Operand<T>& b) {
  CHECK_EQ(a.rows, b.rows);
  CHECK_EQ(a.columns, b.columns);
}

template <typename T>
void CheckRowOf(const Operand<T>& vector, const Operand<T>& matrix) {
  CHECK_EQ(vector.elements(), matrix.columns);
  CHECK(vector.IsDense());
}

// Writes dropout's mask for `y` and calls keep(row, column, factor).
template <typename T, typename Keep>
void DropElements(const KernelCall<T>& call, const Operand<T>& y, const Operand<T>& mask,
                  Keep keep) {
  CheckSameShape(y, mask);
  const DropoutMask kept(call.facts.seed, call.tag.layer, call.tag.micro_batch, call.Count(1),
                         call.Attribute(0), y.GlobalColumns());
  for (uint64_t i = 0; i < y.rows; ++i) {
    T* factors = mask.Row(i);
    const uint64_t row = y.RowOf(i);
    for (uint64_t j = 0; j < y.columns; ++j) {
      factors[j] = static_cast<T>(kept.At(row, y.GlobalColumn() + j));
      keep(i, j, factors[j]);
    }
  }
}

}  // namespace

template <typename T>
void Bias(const KernelCall<T>& call) {
  const Operand<T>& x = call.writes[0];
  const Operand<T>& bias = call.reads[1];
  CheckRowOf(bias, x);
  for (uint64_t i = 0; i < x.rows; ++i) {
    T* row = x.Row(i);
    for (uint64_t j = 0; j < x.columns; ++j) row[j] += bias.data[j];
  }
}

template <typename T>
void BiasBackward(const KernelCall<T>& call) {
  const Operand<T>& dy = call.reads[0];
  const Operand<T>& dbias = call.writes[0];
  CheckRowOf(dbias, dy);
  for (uint64_t i = 0; i < dy.rows; ++i) {
    const T* row = dy.Row(i);
    for (uint64_t j = 0; j < dy.columns; ++j) dbias.data[j] += row[j];
  }
}

template <typename T>
void BiasGelu(const KernelCall<T>& call) {
  const Operand<T>& x = call.reads[0];
  const Operand<T>& bias = call.reads[1];
  const Operand<T>& y = call.writes[0];
  CheckSameShape(x, y);
  CheckRowOf(bias, x);
  for (uint64_t i = 0; i < x.rows; ++i) {
    const T* from = x.Row(i);
    T* to = y.Row(i);
    for (uint64_t j = 0; j < x.columns; ++j) to[j] = Gelu(from[j] + bias.data[j]);
  }
}

template <typename T>
void BiasGeluBackward(const KernelCall<T>& call) {
  const Operand<T>& dy = call.reads[0];
  const Operand<T>& x = call.reads[1];
  const Operand<T>& bias = call.reads[2];
  const Operand<T>& dx = call.writes[0];
  const Operand<T>& dbias = call.writes[1];
  CheckSameShape(dy, x);
  CheckSameShape(dx, x);
  CheckRowOf(bias, x);
  CheckRowOf(dbias, x);
  for (uint64_t i = 0; i < x.rows; ++i) {
    const T* gradient = dy.Row(i);
    const T* from = x.Row(i);
    T* to = dx.Row(i);
    for (uint64_t j = 0; j < x.columns; ++j) {
      to[j] = gradient[j] * GeluSlope(from[j] + bias.data[j]);
      dbias.data[j] += to[j];
    }
  }
}

template <typename T>
void SwiGlu(const KernelCall<T>& call) {
  const Operand<T>& x = call.reads[0];
  const Operand<T>& y = call.writes[0];
  CHECK_EQ(x.rows, y.rows);
  CHECK_EQ(x.columns, 2 * y.columns);
  for (uint64_t i = 0; i < y.rows; ++i) {
    const T* pair = x.Row(i);
    T* to = y.Row(i);
    for (uint64_t j = 0; j < y.columns; ++j) {
      const T gate = pair[2 * j];
      to[j] = gate / (1 + std::exp(-gate)) * pair[2 * j + 1];
    }
  }
}

template <typename T>
void SwiGluBackward(const KernelCall<T>& call) {
  const Operand<T>& dy = call.reads[0];
  const Operand<T>& x = call.reads[1];
  const Operand<T>& dx = call.writes[0];
  CheckSameShape(x, dx);
  CHECK_EQ(x.rows, dy.rows);
  CHECK_EQ(x.columns, 2 * dy.columns);
  for (uint64_t i = 0; i < dy.rows; ++i) {
    const T* gradient = dy.Row(i);
    const T* pair = x.Row(i);
    T* to = dx.Row(i);
    for (uint64_t j = 0; j < dy.columns; ++j) {
      const T gate = pair[2 * j];
      const T up = pair[2 * j + 1];
      const T sigmoid = 1 / (1 + std::exp(-gate));
      to[2 * j] = gradient[j] * up * sigmoid * (1 + gate * (1 - sigmoid));
      to[2 * j + 1] = gradient[j] * gate * sigmoid;
    }
  }
}

template <typename T>
void Residual(const KernelCall<T>& call) {
  const Operand<T>& x = call.reads[0];
  const Operand<T>& z = call.reads[1];
  const Operand<T>& bias = call.reads[2];
  const Operand<T>& y = call.writes[0];
  CheckSameShape(x, y);
  CheckSameShape(z, y);
  CheckRowOf(bias, y);
  DropElements(call, y, call.writes[1], [&](uint64_t i, uint64_t j, T factor) {
    y.At(i, j) = z.At(i, j) + (x.At(i, j) + bias.data[j]) * factor;
  });
}

template <typename T>
void Dropout(const KernelCall<T>& call) {
  const Operand<T>& x = call.reads[0];
  const Operand<T>& y = call.writes[0];
  CheckSameShape(x, y);
  DropElements(call, y, call.writes[1],
               [&](uint64_t i, uint64_t j, T factor) { y.At(i, j) = x.At(i, j) * factor; });
}

template <typename T>
void DropoutBackward(const KernelCall<T>& call) {
  const Operand<T>& dy = call.reads[0];
  const Operand<T>& mask = call.reads[1];
  const Operand<T>& dx = call.writes[0];
  CheckSameShape(dy, mask);
  CheckSameShape(dy, dx);
  const bool has_bias = call.writes.size() > 1;  // the backward of kDropout has none
  if (has_bias) CheckRowOf(call.writes[1], dx);
  for (uint64_t i = 0; i < dx.rows; ++i) {
    const T* gradient = dy.Row(i);
    const T* factors = mask.Row(i);
    T* to = dx.Row(i);
    for (uint64_t j = 0; j < dx.columns; ++j) to[j] = gradient[j] * factors[j];
    if (!has_bias) continue;
    T* dbias = call.writes[1].data;
    for (uint64_t j = 0; j < dx.columns; ++j) dbias[j] += to[j];
  }
}

template <typename T>
void Relu(const KernelCall<T>& call) {
  const Operand<T>& x = call.reads[0];
  const Operand<T>& y = call.writes[0];
  CheckSameShape(x, y);
  for (uint64_t i = 0; i < x.rows; ++i) {
    const T* from = x.Row(i);
    T* to = y.Row(i);
    for (uint64_t j = 0; j < x.columns; ++j) to[j] = from[j] > 0 ? from[j] : T(0);
  }
}

template <typename T>
void ReluBackward(const KernelCall<T>& call) {
  const Operand<T>& dy = call.reads[0];
  const Operand<T>& y = call.reads[1];
  const Operand<T>& dx = call.writes[0];
  CheckSameShape(dy, y);
  CheckSameShape(dx, y);
  for (uint64_t i = 0; i < y.rows; ++i) {
    const T* gradient = dy.Row(i);
    const T* kept = y.Row(i);
    T* to = dx.Row(i);
    for (uint64_t j = 0; j < y.columns; ++j) to[j] = kept[j] > 0 ? gradient[j] : T(0);
  }
}

template <typename T>
void SquaredRelu(const KernelCall<T>& call) {
  const Operand<T>& x = call.reads[0];
  const Operand<T>& y = call.writes[0];
  CheckSameShape(x, y);
  for (uint64_t i = 0; i < x.rows; ++i) {
    const T* from = x.Row(i);
    T* to = y.Row(i);
    for (uint64_t j = 0; j < x.columns; ++j) to[j] = from[j] > 0 ? from[j] * from[j] : T(0);
  }
}

template <typename T>
void SquaredReluBackward(const KernelCall<T>& call) {
  const Operand<T>& dy = call.reads[0];
  const Operand<T>& x = call.reads[1];
  const Operand<T>& dx = call.writes[0];
  CheckSameShape(dy, x);
  CheckSameShape(dx, x);
  for (uint64_t i = 0; i < x.rows; ++i) {
    const T* gradient = dy.Row(i);
    const T* from = x.Row(i);
    T* to = dx.Row(i);
    for (uint64_t j = 0; j < x.columns; ++j) to[j] = from[j] > 0 ? 2 * from[j] * gradient[j] : T(0);
  }
}

REHEARSE_INSTANTIATE(Bias);
REHEARSE_INSTANTIATE(BiasBackward);
REHEARSE_INSTANTIATE(BiasGelu);
REHEARSE_INSTANTIATE(BiasGeluBackward);
REHEARSE_INSTANTIATE(SwiGlu);
REHEARSE_INSTANTIATE(SwiGluBackward);
REHEARSE_INSTANTIATE(Residual);
REHEARSE_INSTANTIATE(Dropout);
REHEARSE_INSTANTIATE(DropoutBackward);
REHEARSE_INSTANTIATE(Relu);
REHEARSE_INSTANTIATE(ReluBackward);
REHEARSE_INSTANTIATE(SquaredRelu);
REHEARSE_INSTANTIATE(SquaredReluBackward);

}  // namespace rehearse::kernels

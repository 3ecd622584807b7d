// The gradient norm and Adam (Kingma, Ba 2015, with their constants), with clipping to norm 1.
//
// The rows of the state are master weights (if parameters are not themselves in fp32; they may also
// be an array of their own), first and second moments, each with the elements of all parameters,
// one after the other.
#include <algorithm>
#include <cmath>

#include "real/kernels/kernel_rows.h"
#include "sim/base/error.h"

namespace rehearse::kernels {
namespace {

constexpr double kBeta1 = 0.9;
constexpr double kBeta2 = 0.999;
constexpr double kEpsilon = 1e-8;
constexpr double kClipNorm = 1;

}  // namespace

template <typename T>
void SquaredNorm(const KernelCall<T>& call) {
  double total = 0;
  for (size_t g = 0; g < call.reads.size(); ++g) {
    const Operand<T>& gradient = call.reads[g];
    double sum = 0;
    for (uint64_t i = 0; i < gradient.rows; ++i) {
      const T* row = gradient.Row(i);
      for (uint64_t j = 0; j < gradient.columns; ++j) sum += static_cast<double>(row[j]) * row[j];
    }
    total += sum * call.Attribute(g);
  }
  call.writes[0].At(0, 0) = static_cast<T>(total);
}

namespace {

template <typename T>
T ClipOf(const Operand<T>& norm) {
  const double root = std::sqrt(static_cast<double>(norm.At(0, 0)));
  return static_cast<T>(root > kClipNorm ? kClipNorm / root : 1);
}

// Calls work(gradient, parameter, master, first, second) for every element. After the gradients
// come `norms` other operands.
template <typename T, typename Work>
void ForEachParameter(const KernelCall<T>& call, size_t norms, const Work& work) {
  const size_t arrays = call.reads.size() - norms;
  CHECK(call.writes.size() == arrays + 1 || call.writes.size() == arrays + 2);
  const Operand<T>& masters = call.writes[arrays];  // its first row, if there are any
  const Operand<T>& state = call.writes.back();
  const bool are_apart = call.writes.size() == arrays + 2;
  const bool has_masters = are_apart || state.rows == 3;
  CHECK_EQ(state.rows, has_masters && !are_apart ? 3u : 2u);
  CHECK(!are_apart || (masters.rows == 1 && masters.columns == state.columns));
  uint64_t at = 0;  // in the state's rows
  for (size_t a = 0; a < arrays; ++a) {
    const Operand<T>& gradient = call.reads[a];
    const Operand<T>& parameter = call.writes[a];
    CHECK_EQ(gradient.elements(), parameter.elements());
    for (uint64_t i = 0; i < parameter.rows; ++i, at += parameter.columns) {
      CHECK_LE(at + parameter.columns, state.columns);
      // A flat gradient of a matrix, or the reverse, has the same elements in the same order.
      const T* g = gradient.columns == parameter.columns ? gradient.Row(i)
                                                         : gradient.data + i * parameter.columns;
      T* p = parameter.Row(i);
      T* master = has_masters ? masters.Row(0) + at : p;
      T* first = state.Row(state.rows - 2) + at;
      T* second = state.Row(state.rows - 1) + at;
      for (uint64_t j = 0; j < parameter.columns; ++j)
        work(g[j], p[j], master[j], first[j], second[j]);
    }
  }
}

}  // namespace

template <typename T>
void Adam(const KernelCall<T>& call) {
  const double t = call.facts.number;
  const T rate = static_cast<T>(call.Attribute(0) / (1 - std::pow(kBeta1, t)));
  const T correction = static_cast<T>(1 / (1 - std::pow(kBeta2, t)));
  const bool is_again = call.compute.attributes.size() > 1;
  const T clip = ClipOf(call.reads.back());
  const T old_clip = is_again ? ClipOf(call.reads[call.reads.size() - 2]) : clip;
  if (is_again && clip == old_clip) return;
  ForEachParameter(call, is_again ? 2 : 1, [&](T g, T& p, T& master, T& first, T& second) {
    if (is_again) {
      const T old = g * old_clip;
      master += rate * first / (std::sqrt(second * correction) + T(kEpsilon));
      first = (first - T(1 - kBeta1) * old) / T(kBeta1);
      second = std::max(T(0), (second - T(1 - kBeta2) * old * old) / T(kBeta2));
    }
    const T value = g * clip;
    first = T(kBeta1) * first + T(1 - kBeta1) * value;
    second = T(kBeta2) * second + T(1 - kBeta2) * value * value;
    master -= rate * first / (std::sqrt(second * correction) + T(kEpsilon));
    p = master;
  });
}

REHEARSE_INSTANTIATE(SquaredNorm);
REHEARSE_INSTANTIATE(Adam);

}  // namespace rehearse::kernels

// The gradient norm and Adam (Kingma, Ba 2015, with their constants), with clipping to norm 1; LAMB
// (You et al. 2020, with Apex's constants), SGD with momentum, and the element-wise parts of Muon.
//
// The rows of the state are master weights (if parameters are not themselves in fp32; they may also
// be an array of their own), first and second moments, each with the elements of all parameters,
// one after the other.
#include <algorithm>
#include <cmath>
#include <span>
#include <vector>

#include "real/kernels/kernel_rows.h"
#include "sim/base/error.h"

namespace rehearse::kernels {
namespace {

constexpr double kBeta1 = 0.9;
constexpr double kBeta2 = 0.999;
constexpr double kAdamEpsilon = 1e-8;
constexpr double kClipNorm = 1;
constexpr double kLambEpsilon = 1e-6;  // Apex's defaults (apex/optimizers/fused_lamb.py)
constexpr double kMuonEpsilon = 1e-7;

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

// What an update works on: parameters of `arrays` arrays, then the state, whose first row (or an
// array before it) has master weights, if there are any, and whose last ones are moments.
template <typename T>
struct Updated {
  std::span<const Operand<T>> parameters;
  Operand<T> masters;  // without rows if parameters are updated themselves
  Operand<T> state;
  uint64_t moments;

  uint64_t begin;  // of their part of the state

  Updated(std::span<const Operand<T>> operands, size_t arrays, uint64_t of_moments,
          uint64_t from = 0)
      : parameters(operands.first(arrays)),
        state(operands.back()),
        moments(of_moments),
        begin(from) {
    CHECK(operands.size() == arrays + 1 || operands.size() == arrays + 2);
    const bool are_apart = operands.size() == arrays + 2;
    if (are_apart || state.rows > moments) masters = operands[arrays];
    CHECK_EQ(state.rows, masters.rows > 0 && !are_apart ? moments + 1 : moments);
    CHECK(!are_apart || (masters.rows == 1 && masters.columns == state.columns));
  }

  // Calls work(array, index in it, index in the state's rows, weight, parameter) for every element.
  template <typename Work>
  void ForEach(const Work& work) const {
    uint64_t at = begin;
    for (size_t a = 0; a < parameters.size(); ++a) {
      const Operand<T>& parameter = parameters[a];
      uint64_t in_array = 0;
      for (uint64_t i = 0; i < parameter.rows; ++i) {
        CHECK_LE(at + parameter.columns, state.columns);
        T* p = parameter.Row(i);
        for (uint64_t j = 0; j < parameter.columns; ++j, ++at, ++in_array)
          work(a, in_array, at, masters.rows > 0 ? masters.Row(0)[at] : p[j], p[j]);
      }
    }
  }
  // A gradient for each parameter.
  void CheckGradients(std::span<const Operand<T>> gradients) const {
    for (size_t a = 0; a < parameters.size(); ++a)
      CHECK_EQ(gradients[a].elements(), parameters[a].elements());
  }
  // A moment's element; the last moment is 0.
  T& Moment(uint64_t from_end, uint64_t at) const {
    return state.Row(state.rows - 1 - from_end)[at];
  }
};

// An element of an array that may be flat where another is a matrix, or the reverse.
template <typename T>
T& ElementOf(const Operand<T>& array, uint64_t index) {
  return array.IsDense() ? array.data[index]
                         : array.At(index / array.columns, index % array.columns);
}

// Adam's direction from its moments in step t, a first moment of fp32 numbers over a root.
template <typename T>
struct AdamDirection {
  T first;
  T second;
  T epsilon;

  AdamDirection(double t, double of_epsilon)
      : first(static_cast<T>(1 / (1 - std::pow(kBeta1, t)))),
        second(static_cast<T>(1 / (1 - std::pow(kBeta2, t)))),
        epsilon(static_cast<T>(of_epsilon)) {}
  T Of(T m, T v) const { return first * m / (std::sqrt(v * second) + epsilon); }
};

template <typename T>
void UpdateMoments(T g, T* m, T* v) {
  *m = T(kBeta1) * *m + T(1 - kBeta1) * g;
  *v = T(kBeta2) * *v + T(1 - kBeta2) * g * g;
}

// The tensors of kLambNorms and kLambStep, element by element.
template <typename T>
class Tensors {
 public:
  explicit Tensors(const KernelCall<T>& call) : call_(call) { Take(); }
  // Of the next element.
  size_t Next() {
    while (left_ == 0) {
      ++tensor_;
      Take();
    }
    --left_;
    return tensor_;
  }
  static double ShareOf(const KernelCall<T>& call, size_t tensor) {
    return call.Attribute(kFirst + 2 * tensor + 1);
  }

 private:
  static constexpr size_t kFirst = 3;
  void Take() { left_ = call_.Count(kFirst + 2 * tensor_); }

  const KernelCall<T>& call_;
  size_t tensor_ = 0;
  uint64_t left_ = 0;
};

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
  const Updated<T> of(call.writes, call.reads.size() - (is_again ? 2 : 1), 2);
  of.CheckGradients(call.reads);
  of.ForEach([&](size_t array, uint64_t index, uint64_t at, T& master, T& p) {
    const T g = ElementOf(call.reads[array], index);
    T& first = of.Moment(1, at);
    T& second = of.Moment(0, at);
    if (is_again) {
      const T old = g * old_clip;
      master += rate * first / (std::sqrt(second * correction) + T(kAdamEpsilon));
      first = (first - T(1 - kBeta1) * old) / T(kBeta1);
      second = std::max(T(0), (second - T(1 - kBeta2) * old * old) / T(kBeta2));
    }
    const T value = g * clip;
    UpdateMoments(value, &first, &second);
    master -= rate * first / (std::sqrt(second * correction) + T(kAdamEpsilon));
    p = master;
  });
}

template <typename T>
void Momentum(const KernelCall<T>& call) {
  const T rate = static_cast<T>(call.Attribute(0));
  const T kept = static_cast<T>(call.Attribute(1));
  const T clip = ClipOf(call.reads.back());
  const Updated<T> of(call.writes, call.reads.size() - 1, 1);
  of.CheckGradients(call.reads);
  of.ForEach([&](size_t array, uint64_t index, uint64_t at, T& master, T& p) {
    T& moment = of.Moment(0, at);
    moment = kept * moment + ElementOf(call.reads[array], index) * clip;
    master -= rate * moment;
    p = master;
  });
}

template <typename T>
void LambMoments(const KernelCall<T>& call) {
  const T clip = ClipOf(call.reads.back());
  const Updated<T> of(call.writes, call.reads.size() - 1, 2);
  of.CheckGradients(call.reads);
  of.ForEach([&](size_t array, uint64_t index, uint64_t at, T&, T&) {
    UpdateMoments(ElementOf(call.reads[array], index) * clip, &of.Moment(1, at), &of.Moment(0, at));
  });
}

template <typename T>
void LambNorms(const KernelCall<T>& call) {
  const T decay = static_cast<T>(call.Attribute(0));
  const Updated<T> of(call.reads, call.Count(2), 2);
  const AdamDirection<T> direction(call.facts.number, kLambEpsilon);
  const Operand<T>& norms = call.writes[0];
  std::vector<double> sums(2 * norms.rows);
  Tensors<T> tensors(call);
  of.ForEach([&](size_t, uint64_t, uint64_t at, const T& w, T&) {
    const size_t tensor = tensors.Next();
    const T u = direction.Of(of.Moment(1, at), of.Moment(0, at)) + decay * w;
    sums[2 * tensor] += static_cast<double>(w) * w;
    sums[2 * tensor + 1] += static_cast<double>(u) * u;
  });
  for (uint64_t i = 0; i < norms.rows; ++i) {
    for (uint64_t j = 0; j < 2; ++j)
      norms.At(i, j) = static_cast<T>(sums[2 * i + j] * Tensors<T>::ShareOf(call, i));
  }
}

template <typename T>
void LambStep(const KernelCall<T>& call) {
  const T decay = static_cast<T>(call.Attribute(0));
  const double rate = call.Attribute(1);
  const Operand<T>& norms = call.reads[0];
  const Updated<T> of(call.writes, call.Count(2), 2);
  const AdamDirection<T> direction(call.facts.number, kLambEpsilon);
  std::vector<T> rates;
  for (uint64_t i = 0; i < norms.rows; ++i) {
    const double w = std::sqrt(static_cast<double>(norms.At(i, 0)));
    const double u = std::sqrt(static_cast<double>(norms.At(i, 1)));
    rates.push_back(static_cast<T>(w > 0 && u > 0 ? rate * w / u : rate));
  }
  Tensors<T> tensors(call);
  of.ForEach([&](size_t, uint64_t, uint64_t at, T& w, T& p) {
    const T u = direction.Of(of.Moment(1, at), of.Moment(0, at)) + decay * w;
    w -= rates[tensors.Next()] * u;
    p = w;
  });
}

template <typename T>
void MuonDirections(const KernelCall<T>& call) {
  const T kept = static_cast<T>(call.Attribute(0));
  const T clip = ClipOf(call.reads[1]);
  const Operand<T>& state = call.reads[2];
  const T* moment = state.Row(state.rows - 1) + call.Count(1);
  const Operand<T>& d = call.writes[0];
  for (uint64_t i = 0; i < d.elements(); ++i)
    ElementOf(d, i) = ElementOf(call.reads[0], i) * clip + kept * moment[i];
}

template <typename T>
void Normalize(const KernelCall<T>& call) {
  const Operand<T>& x = call.reads[0];
  const Operand<T>& y = call.writes[0];
  const double norm = std::sqrt(static_cast<double>(call.reads[1].At(0, 0))) + kMuonEpsilon;
  for (uint64_t i = 0; i < y.rows; ++i) {
    for (uint64_t j = 0; j < y.columns; ++j)
      y.At(i, j) = static_cast<T>(static_cast<double>(x.At(i, j)) / norm);
  }
}

template <typename T>
void Linear(const KernelCall<T>& call) {
  const T a = static_cast<T>(call.Attribute(0));
  const T b = static_cast<T>(call.Attribute(1));
  const Operand<T>& y = call.writes[0];
  for (uint64_t i = 0; i < y.rows; ++i) {
    for (uint64_t j = 0; j < y.columns; ++j)
      y.At(i, j) = a * call.reads[0].At(i, j) + b * call.reads[1].At(i, j);
  }
}

template <typename T>
void MuonStep(const KernelCall<T>& call) {
  const T kept = static_cast<T>(1 - call.Attribute(0) * call.Attribute(1));
  const T scaled = static_cast<T>(call.Attribute(0) * call.Attribute(2));
  const Updated<T> of(call.writes, 1, 1, call.Count(3));
  of.ForEach([&](size_t, uint64_t index, uint64_t, T& w, T& p) {
    w = kept * w - scaled * ElementOf(call.reads[0], index);
    p = w;
  });
}

REHEARSE_INSTANTIATE(SquaredNorm);
REHEARSE_INSTANTIATE(Adam);
REHEARSE_INSTANTIATE(Momentum);
REHEARSE_INSTANTIATE(LambMoments);
REHEARSE_INSTANTIATE(LambNorms);
REHEARSE_INSTANTIATE(LambStep);
REHEARSE_INSTANTIATE(MuonDirections);
REHEARSE_INSTANTIATE(Normalize);
REHEARSE_INSTANTIATE(Linear);
REHEARSE_INSTANTIATE(MuonStep);

}  // namespace rehearse::kernels

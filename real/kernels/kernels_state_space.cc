// State-space layers of Mamba-2 (Dao and Gu 2024, arXiv 2405.21060) by their recurrence, row after
// row: for a head with columns x, and B and C of its group,
//
//   h_t = exp(dt_t·A)·h_{t-1} + dt_t·x_t·B_tᵀ,   y_t = h_t·C_t + D·x_t
//
// Chunks only say where h is kept: backward, the h within one are made again from its first.
#include <algorithm>
#include <cmath>
#include <vector>

#include "real/kernels/kernel_rows.h"
#include "sim/base/error.h"
#include "sim/schedule/state_space.h"

namespace rehearse::kernels {
namespace {

constexpr double kStateSpaceEpsilon = 1e-5;

template <typename T>
T Sigmoid(T x) {
  return 1 / (1 + std::exp(-x));
}
template <typename T>
T Silu(T x) {
  return x * Sigmoid(x);
}
template <typename T>
T SiluSlope(T x) {
  const T s = Sigmoid(x);
  return s * (1 + x * (1 - s));
}
// log(1 + e^x), which does not overflow.
template <typename T>
T Softplus(T x) {
  return std::max(x, T(0)) + std::log1p(std::exp(-std::abs(x)));
}

template <typename T>
StateSpacePart PartOfCall(const KernelCall<T>& call) {
  return StateSpaceOf(call.compute.attributes);
}

template <typename T>
void CheckShape(const Operand<T>& operand, uint64_t rows, uint64_t columns) {
  CHECK_EQ(operand.rows, rows);
  CHECK_EQ(operand.columns, columns);
}

template <typename T>
void CheckVector(const Operand<T>& operand, uint64_t size) {
  CHECK_EQ(operand.elements(), size);
  CHECK(operand.IsDense());
}

// ---- convolution --------------------------------------------------------------------------------

// Calls visit(column of X, column of M) for each column that is convolved.
template <typename Visit>
void ForEachMixed(const StateSpacePart& part, const Visit& visit) {
  for (uint64_t group = 0; group < part.groups; ++group) {
    const uint64_t x = group * part.ColumnsOfGroup() + part.InnerOfGroup();
    const uint64_t m = group * part.MixedOfGroup();
    for (uint64_t i = 0; i < part.MixedOfGroup(); ++i) visit(x + i, m + i);
  }
}

// A column of X convolved at a row, before SiLU; `first` is the first row of its sequence.
template <typename T>
T Convolved(const Operand<T>& x, uint64_t column, uint64_t row, uint64_t first, const T* taps,
            uint64_t count, T bias) {
  T sum = bias;
  for (uint64_t back = 0; back < count && row >= first + back; ++back)
    sum += taps[count - 1 - back] * x.At(row - back, column);
  return sum;
}

// ---- recurrence ---------------------------------------------------------------------------------

// A head of a sequence: where its columns begin, and its part of the parameters.
struct Head {
  uint64_t z, x, dt;       // columns of X
  uint64_t m_x, m_b, m_c;  // columns of M
  uint64_t inner;          // column of Y
  uint64_t index;          // on this rank
  uint64_t first, rows;    // of the sequence
  uint64_t sequence;       // its number
};

template <typename Visit>
void ForEachHead(const StateSpacePart& part, uint64_t rows, const Visit& visit) {
  for (uint64_t sequence = 0; sequence < rows / part.sequence; ++sequence) {
    for (uint64_t i = 0; i < part.Heads(); ++i) {
      const uint64_t group = i / part.heads_of_group;
      const uint64_t within = i % part.heads_of_group;
      const uint64_t of_x = group * part.ColumnsOfGroup();
      const uint64_t of_m = group * part.MixedOfGroup();
      Head head{};
      head.z = of_x + within * part.head;
      head.x = head.z + part.InnerOfGroup();
      head.dt = of_x + 2 * part.InnerOfGroup() + 2 * part.state + within;
      head.m_x = of_m + within * part.head;
      head.m_b = of_m + part.InnerOfGroup();
      head.m_c = head.m_b + part.state;
      head.inner = i * part.head;
      head.index = i;
      head.first = sequence * part.sequence;
      head.rows = part.sequence;
      head.sequence = sequence;
      visit(head);
    }
  }
}

template <typename T>
struct Recurrence {
  const StateSpacePart& part;
  const Operand<T>& m;
  const Operand<T>& x;
  const T* dt_bias;
  const T* a_log;

  T A(const Head& head) const { return -std::exp(a_log[head.index]); }
  T Dt(const Head& head, uint64_t row) const {
    return Softplus(x.At(row, head.dt) + dt_bias[head.index]);
  }
  // h of a row from that of the row before it, which may be the same array.
  void Step(const Head& head, uint64_t row, const T* before, T* h) const {
    const T dt = Dt(head, row);
    const T decay = std::exp(dt * A(head));
    const T* in = m.Row(row) + head.m_x;
    const T* b = m.Row(row) + head.m_b;
    for (uint64_t p = 0; p < part.head; ++p) {
      const T scaled = dt * in[p];
      for (uint64_t n = 0; n < part.state; ++n)
        h[p * part.state + n] = decay * before[p * part.state + n] + scaled * b[n];
    }
  }
};

template <typename T>
T* StateOf(const Operand<T>& states, const StateSpacePart& part, const Head& head, uint64_t chunk) {
  const uint64_t chunks = part.ChunksOf(part.sequence);
  return states.Row(head.sequence * chunks + chunk) + head.inner * part.state;
}

template <typename T>
void CheckStates(const Operand<T>& states, const StateSpacePart& part, uint64_t rows) {
  CHECK_EQ(rows % part.sequence, 0u);
  CheckShape(states, part.ChunksOf(rows), part.Inner() * part.state);
}

// What the backward pass of a head needs besides its operands.
template <typename T>
struct HeadGradients {
  T* dt_bias;
  T* a_log;
  T* d;
};

// One row, from the last to the first: `dh` is the gradient of its h, which becomes that of the row
// before it; `h` and `before` are the states of both.
template <typename T>
void StepBack(const Recurrence<T>& of, const Head& head, uint64_t row, T skip, const T* dy,
              const T* h, const T* before, const Operand<T>& dm, const Operand<T>& dx,
              const HeadGradients<T>& sums, T* dh) {
  const StateSpacePart& part = of.part;
  const T dt = of.Dt(head, row);
  const T a = of.A(head);
  const T decay = std::exp(dt * a);
  const T* in = of.m.Row(row) + head.m_x;
  const T* b = of.m.Row(row) + head.m_b;
  const T* c = of.m.Row(row) + head.m_c;
  T* d_in = dm.Row(row) + head.m_x;
  T* d_b = dm.Row(row) + head.m_b;
  T* d_c = dm.Row(row) + head.m_c;
  T through_input = 0;
  T through_decay = 0;
  for (uint64_t p = 0; p < part.head; ++p) {
    T sum = 0;
    for (uint64_t n = 0; n < part.state; ++n) {
      const uint64_t i = p * part.state + n;
      d_c[n] += dy[p] * h[i];
      dh[i] += dy[p] * c[n];
      sum += dh[i] * b[n];
      d_b[n] += dh[i] * dt * in[p];
      through_decay += dh[i] * before[i];
      dh[i] *= decay;
    }
    d_in[p] += skip * dy[p] + dt * sum;
    through_input += sum * in[p];
    sums.d[head.index] += dy[p] * in[p];
  }
  const T d_decay = through_decay * decay;
  const T d_raw =
      (through_input + d_decay * a) * Sigmoid(of.x.At(row, head.dt) + of.dt_bias[head.index]);
  dx.At(row, head.dt) = d_raw;
  sums.dt_bias[head.index] += d_raw;
  sums.a_log[head.index] += d_decay * dt * a;
}

}  // namespace

template <typename T>
void StateConvolution(const KernelCall<T>& call) {
  const StateSpacePart part = PartOfCall(call);
  const Operand<T>& x = call.reads[0];
  const Operand<T>& m = call.writes[0];
  CheckShape(x, m.rows, part.Columns());
  CheckShape(m, x.rows, part.Mixed());
  CheckVector(call.reads[1], part.Mixed() * part.taps);
  CheckVector(call.reads[2], part.Mixed());
  ForEachMixed(part, [&](uint64_t from, uint64_t to) {
    const T* taps = call.reads[1].data + to * part.taps;
    for (uint64_t row = 0; row < x.rows; ++row) {
      const uint64_t first = row / part.sequence * part.sequence;
      m.At(row, to) = Silu(Convolved(x, from, row, first, taps, part.taps, call.reads[2].data[to]));
    }
  });
}

template <typename T>
void StateConvolutionBackward(const KernelCall<T>& call) {
  const StateSpacePart part = PartOfCall(call);
  const Operand<T>& dm = call.reads[0];
  const Operand<T>& x = call.reads[1];
  const Operand<T>& dx = call.writes[0];
  CheckShape(dm, x.rows, part.Mixed());
  CheckShape(dx, x.rows, part.Columns());
  CheckVector(call.writes[1], part.Mixed() * part.taps);
  CheckVector(call.writes[2], part.Mixed());
  ForEachMixed(part, [&](uint64_t from, uint64_t to) {
    const T* taps = call.reads[2].data + to * part.taps;
    T* d_taps = call.writes[1].data + to * part.taps;
    T* d_bias = call.writes[2].data + to;
    for (uint64_t row = 0; row < x.rows; ++row) dx.At(row, from) = 0;
    for (uint64_t row = 0; row < x.rows; ++row) {
      const uint64_t first = row / part.sequence * part.sequence;
      const T sum = Convolved(x, from, row, first, taps, part.taps, call.reads[3].data[to]);
      const T d_sum = dm.At(row, to) * SiluSlope(sum);
      *d_bias += d_sum;
      for (uint64_t back = 0; back < part.taps && row >= first + back; ++back) {
        d_taps[part.taps - 1 - back] += d_sum * x.At(row - back, from);
        dx.At(row - back, from) += d_sum * taps[part.taps - 1 - back];
      }
    }
  });
}

template <typename T>
void StateChunks(const KernelCall<T>& call) {
  const StateSpacePart part = PartOfCall(call);
  const Operand<T>& x = call.reads[1];
  const Recurrence<T> of{part, call.reads[0], x, call.reads[2].data, call.reads[3].data};
  CheckStates(call.writes[0], part, x.rows);
  const uint64_t size = part.head * part.state;
  std::vector<T> h(size);
  ForEachHead(part, x.rows, [&](const Head& head) {
    std::fill(h.begin(), h.end(), T(0));
    for (uint64_t row = 0; row < head.rows; ++row) {
      if (row % part.chunk == 0)
        std::copy(h.begin(), h.end(), StateOf(call.writes[0], part, head, row / part.chunk));
      of.Step(head, head.first + row, h.data(), h.data());
    }
  });
}

template <typename T>
void StateScan(const KernelCall<T>& call) {
  const StateSpacePart part = PartOfCall(call);
  const Operand<T>& m = call.reads[0];
  const Operand<T>& x = call.reads[1];
  const Operand<T>& states = call.reads[5];
  const Operand<T>& y = call.writes[0];
  const Operand<T>& gated = call.writes[1];
  const Recurrence<T> of{part, m, x, call.reads[2].data, call.reads[3].data};
  CheckStates(states, part, x.rows);
  CheckShape(y, x.rows, part.Inner());
  CheckShape(gated, x.rows, part.Inner());
  std::vector<T> h(part.head * part.state);
  ForEachHead(part, x.rows, [&](const Head& head) {
    const T skip = call.reads[4].data[head.index];
    for (uint64_t i = 0; i < head.rows; ++i) {
      const uint64_t row = head.first + i;
      if (i % part.chunk == 0)
        std::copy_n(StateOf(states, part, head, i / part.chunk), h.size(), h.begin());
      of.Step(head, row, h.data(), h.data());
      const T* in = m.Row(row) + head.m_x;
      const T* c = m.Row(row) + head.m_c;
      for (uint64_t p = 0; p < part.head; ++p) {
        T sum = skip * in[p];
        for (uint64_t n = 0; n < part.state; ++n) sum += h[p * part.state + n] * c[n];
        y.At(row, head.inner + p) = sum;
        gated.At(row, head.inner + p) = sum * Silu(x.At(row, head.z + p));
      }
    }
  });
}

template <typename T>
void StateScanBackward(const KernelCall<T>& call) {
  const StateSpacePart part = PartOfCall(call);
  const Operand<T>& d_gated = call.reads[0];
  const Operand<T>& y = call.reads[1];
  const Operand<T>& x = call.reads[3];
  const Operand<T>& states = call.reads[7];
  const Operand<T>& dm = call.writes[0];
  const Operand<T>& dx = call.writes[1];
  const Recurrence<T> of{part, call.reads[2], x, call.reads[4].data, call.reads[5].data};
  CheckStates(states, part, x.rows);
  CheckShape(dm, x.rows, part.Mixed());
  CheckShape(dx, x.rows, part.Columns());
  for (uint64_t row = 0; row < x.rows; ++row) {
    std::fill_n(dm.Row(row), dm.columns, T(0));
    std::fill_n(dx.Row(row), dx.columns, T(0));
  }
  const HeadGradients<T> sums{call.writes[2].data, call.writes[3].data, call.writes[4].data};
  const uint64_t size = part.head * part.state;
  std::vector<T> h((part.chunk + 1) * size);  // before each row of a chunk, and after its last
  std::vector<T> dh(size);
  std::vector<T> dy(part.head);
  ForEachHead(part, x.rows, [&](const Head& head) {
    std::fill(dh.begin(), dh.end(), T(0));
    for (uint64_t chunk = part.ChunksOf(part.sequence); chunk-- > 0;) {
      const uint64_t begin = chunk * part.chunk;
      const uint64_t end = std::min(begin + part.chunk, head.rows);
      std::copy_n(StateOf(states, part, head, chunk), size, h.begin());
      for (uint64_t i = begin; i < end; ++i)
        of.Step(head, head.first + i, &h[(i - begin) * size], &h[(i - begin + 1) * size]);
      for (uint64_t i = end; i-- > begin;) {
        const uint64_t row = head.first + i;
        for (uint64_t p = 0; p < part.head; ++p) {
          const T z = x.At(row, head.z + p);
          const T d_out = d_gated.At(row, head.inner + p);
          dx.At(row, head.z + p) = d_out * y.At(row, head.inner + p) * SiluSlope(z);
          dy[p] = d_out * Silu(z);
        }
        const T* before = &h[(i - begin) * size];
        StepBack(of, head, row, call.reads[6].data[head.index], dy.data(), before + size, before,
                 dm, dx, sums, dh.data());
      }
    }
  });
}

template <typename T>
void StateNorm(const KernelCall<T>& call) {
  const StateSpacePart part = PartOfCall(call);
  const Operand<T>& x = call.reads[0];
  const T* gain = call.reads[1].data;
  const Operand<T>& y = call.writes[0];
  const Operand<T>& saved = call.writes[1];
  CheckShape(x, y.rows, part.Inner());
  CheckVector(call.reads[1], part.Inner());
  CheckShape(saved, x.rows, part.groups);
  const uint64_t size = part.InnerOfGroup();
  for (uint64_t row = 0; row < x.rows; ++row) {
    for (uint64_t group = 0; group < part.groups; ++group) {
      const T* from = x.Row(row) + group * size;
      double squares = 0;
      for (uint64_t i = 0; i < size; ++i) squares += static_cast<double>(from[i]) * from[i];
      const T scale =
          static_cast<T>(1 / std::sqrt(squares / static_cast<double>(size) + kStateSpaceEpsilon));
      saved.At(row, group) = scale;
      for (uint64_t i = 0; i < size; ++i)
        y.At(row, group * size + i) = from[i] * scale * gain[group * size + i];
    }
  }
}

template <typename T>
void StateNormBackward(const KernelCall<T>& call) {
  const StateSpacePart part = PartOfCall(call);
  const Operand<T>& dy = call.reads[0];
  const Operand<T>& x = call.reads[1];
  const T* gain = call.reads[2].data;
  const Operand<T>& saved = call.reads[3];
  const Operand<T>& dx = call.writes[0];
  T* d_gain = call.writes[1].data;
  CheckShape(dy, x.rows, part.Inner());
  CheckShape(dx, x.rows, part.Inner());
  CheckShape(saved, x.rows, part.groups);
  const uint64_t size = part.InnerOfGroup();
  for (uint64_t row = 0; row < x.rows; ++row) {
    for (uint64_t group = 0; group < part.groups; ++group) {
      const T scale = saved.At(row, group);
      double mean = 0;  // of dY·gain·x̂
      for (uint64_t j = group * size; j < (group + 1) * size; ++j) {
        const T normal = x.At(row, j) * scale;
        mean += static_cast<double>(dy.At(row, j)) * gain[j] * normal;
        d_gain[j] += dy.At(row, j) * normal;
      }
      mean /= static_cast<double>(size);
      for (uint64_t j = group * size; j < (group + 1) * size; ++j)
        dx.At(row, j) =
            scale * (dy.At(row, j) * gain[j] - x.At(row, j) * scale * static_cast<T>(mean));
    }
  }
}

REHEARSE_INSTANTIATE(StateConvolution);
REHEARSE_INSTANTIATE(StateConvolutionBackward);
REHEARSE_INSTANTIATE(StateChunks);
REHEARSE_INSTANTIATE(StateScan);
REHEARSE_INSTANTIATE(StateScanBackward);
REHEARSE_INSTANTIATE(StateNorm);
REHEARSE_INSTANTIATE(StateNormBackward);

}  // namespace rehearse::kernels

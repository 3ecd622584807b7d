// The attention core of sequences that several ranks share (sim/schedule/attention_part.h): this
// rank's queries over the keys that it has been given, in the tiles of attention.cuh, and the
// kernels that join such parts.
#pragma once

#include "real/cuda/kernels/attention.cuh"
#include "sim/schedule/sequence_order.h"

namespace rehearse {

// The attributes; a rank's rows are its parts of the sequences, one after the other; those of KV
// are such runs, part by part if it has all of them.
struct SequencePart {
  SequenceOrder order;
  uint64_t window;
  long long step;
  uint64_t own;     // part of the queries
  uint64_t length;  // tokens of a run
  uint64_t rows;    // of X
  bool causal;

  __device__ SequencePart(const KernelArguments& a, const GpuOperand& x)
      : window(static_cast<uint64_t>(a.attributes[5])),
        step(static_cast<long long>(a.attributes[8])),
        rows(x.rows),
        causal(a.attributes[4] != 0) {
    order.sequence = static_cast<uint64_t>(a.attributes[0]);
    order.parts = static_cast<uint64_t>(a.attributes[6]);
    order.balanced = a.attributes[7] != 0;
    length = order.Length();
    own = x.global_row / x.rows % order.parts;
  }
  __device__ uint64_t Runs() const { return step < 0 ? order.parts : 1; }
  __device__ uint64_t PartOfRun(uint64_t run) const {
    return step < 0 ? run : (own + order.parts - static_cast<uint64_t>(step)) % order.parts;
  }
  __device__ bool Sees(uint64_t query, uint64_t run, uint64_t key) const {
    if (!causal) return true;
    const uint64_t q = order.TokenOf(own, query);
    const uint64_t k = order.TokenOf(PartOfRun(run), key);
    return k <= q && (window == 0 || q - k < window);
  }
};

// The column of a group's keys in a row of KV.
__device__ inline uint64_t PartKeyColumn(const Heads& heads, uint64_t group) {
  return group * 2 * heads.size;
}

template <unsigned kSize>
__device__ void AttentionPartForward(const KernelArguments& a) {
  constexpr unsigned kRows = kAttentionTile / kSize;
  __shared__ __align__(16) float keys[kAttentionTile];
  __shared__ __align__(16) float values[kAttentionTile];
  const GpuOperand x = Read(a, 0), kv = Read(a, 1), o = Write(a, 0), l = Write(a, 1);
  const Heads heads(a);
  const SequencePart part(a, x);
  const RowBlock block(part.length);
  const uint64_t head = blockIdx.y, group = head / heads.heads;
  Quarter<kSize> query, sum;
  query.LoadRow(x, block.row, heads.QColumn(head), heads.size, block.Inside());
  query.Multiply(heads.Scale());
  sum.Clear();
  float maximum = -INFINITY, total = 0;
  for (uint64_t run = 0; run < part.Runs(); ++run) {
    const uint64_t begin = run * part.rows + block.begin, end = begin + part.length;
    for (uint64_t tile = begin; tile < end; tile += kRows) {
      __syncthreads();
      LoadTile<kSize>(keys, kv, tile, kRows, end, PartKeyColumn(heads, group), heads.size);
      LoadTile<kSize>(values, kv, tile, kRows, end, PartKeyColumn(heads, group) + heads.size,
                      heads.size);
      __syncthreads();
      for (unsigned i = 0; i < kRows && tile + i < end; ++i) {
        const float score = query.Dot(keys + i * kSize);  // all threads of the warp take part
        if (!block.Inside() || !part.Sees(block.row - block.begin, run, tile + i - begin)) continue;
        if (score > maximum) {
          const float shrink = expf(maximum - score);
          sum.Multiply(shrink);
          total *= shrink;
          maximum = score;
        }
        const float weight = expf(score - maximum);
        total += weight;
        sum.Add(weight, values + i * kSize);
      }
    }
  }
  if (!block.Inside()) return;
  sum.StoreRow(o, block.row, head * heads.size, heads.size, total > 0 ? 1 / total : 0);
  if (threadIdx.x % kAttentionParts == 0) Store(l, block.row, head, maximum + logf(total));
}

// First stage of the backward: dQ of this block's rows (added to what is there if that is read),
// and Σ dO·O of each row for the second.
template <unsigned kSize>
__device__ void AttentionPartBackwardQ(const KernelArguments& a) {
  constexpr unsigned kRows = kAttentionTile / kSize;
  __shared__ __align__(16) float keys[kAttentionTile];
  __shared__ __align__(16) float values[kAttentionTile];
  const GpuOperand d_o = Read(a, 0), x = Read(a, 1), kv = Read(a, 2), o = Read(a, 3),
                   l = Read(a, 4);
  const GpuOperand dx = Write(a, 0);
  const Heads heads(a);
  const SequencePart part(a, x);
  const RowBlock block(part.length);
  const uint64_t head = blockIdx.y, group = head / heads.heads;
  Quarter<kSize> query, gradient, sum;
  query.LoadRow(x, block.row, heads.QColumn(head), heads.size, block.Inside());
  query.Multiply(heads.Scale());
  gradient.LoadRow(d_o, block.row, head * heads.size, heads.size, block.Inside());
  sum.LoadRow(o, block.row, head * heads.size, heads.size, block.Inside());
  float delta = 0;
#pragma unroll
  for (unsigned i = 0; i < Quarter<kSize>::kCount; ++i) {
    delta += gradient.values[i] * sum.values[i];
  }
  delta += __shfl_xor_sync(0xffffffffu, delta, 1);
  delta += __shfl_xor_sync(0xffffffffu, delta, 2);
  const float logarithm = block.Inside() ? Load(l, block.row, head) : 0;
  sum.Clear();
  for (uint64_t run = 0; run < part.Runs(); ++run) {
    const uint64_t begin = run * part.rows + block.begin, end = begin + part.length;
    for (uint64_t tile = begin; tile < end; tile += kRows) {
      __syncthreads();
      LoadTile<kSize>(keys, kv, tile, kRows, end, PartKeyColumn(heads, group), heads.size);
      LoadTile<kSize>(values, kv, tile, kRows, end, PartKeyColumn(heads, group) + heads.size,
                      heads.size);
      __syncthreads();
      for (unsigned i = 0; i < kRows && tile + i < end; ++i) {
        const float score = query.Dot(keys + i * kSize);
        const float d_weight = gradient.Dot(values + i * kSize);
        if (!block.Inside() || !part.Sees(block.row - block.begin, run, tile + i - begin)) continue;
        sum.Add(expf(score - logarithm) * (d_weight - delta) * heads.Scale(), keys + i * kSize);
      }
    }
  }
  if (!block.Inside()) return;
  if (a.reads > 5) {
    query.LoadRow(dx, block.row, heads.QColumn(head), heads.size, true);
#pragma unroll
    for (unsigned i = 0; i < Quarter<kSize>::kCount; ++i) sum.values[i] += query.values[i];
  }
  sum.StoreRow(dx, block.row, heads.QColumn(head), heads.size, 1);
  if (threadIdx.x % kAttentionParts == 0) {
    a.scratch[block.row * heads.groups * heads.heads + head] = delta;
  }
}

// Second stage: dK and dV of this block's rows of KV, over the queries that see them and the heads
// of the group.
template <unsigned kSize>
__device__ void AttentionPartBackwardKV(const KernelArguments& a) {
  constexpr unsigned kRows = kAttentionTile / kSize;
  __shared__ __align__(16) float queries[kAttentionTile];
  __shared__ __align__(16) float gradients[kAttentionTile];
  const GpuOperand d_o = Read(a, 0), x = Read(a, 1), kv = Read(a, 2), l = Read(a, 4);
  const GpuOperand dkv = Write(a, 1);
  const Heads heads(a);
  const SequencePart part(a, x);
  const RowBlock block(part.length);
  const uint64_t group = blockIdx.y, column = PartKeyColumn(heads, group);
  const uint64_t run = block.begin / part.rows, begin = block.begin % part.rows;
  const uint64_t end = begin + part.length;
  Quarter<kSize> key, value, d_key, d_value;
  key.LoadRow(kv, block.row, column, heads.size, block.Inside());
  key.Multiply(heads.Scale());
  value.LoadRow(kv, block.row, column + heads.size, heads.size, block.Inside());
  d_key.Clear();
  d_value.Clear();
  for (uint64_t head = group * heads.heads; head < (group + 1) * heads.heads; ++head) {
    for (uint64_t tile = begin; tile < end; tile += kRows) {
      __syncthreads();
      LoadTile<kSize>(queries, x, tile, kRows, end, heads.QColumn(head), heads.size);
      LoadTile<kSize>(gradients, d_o, tile, kRows, end, head * heads.size, heads.size);
      __syncthreads();
      for (unsigned i = 0; i < kRows && tile + i < end; ++i) {
        const float score = key.Dot(queries + i * kSize);
        const float d_weight = value.Dot(gradients + i * kSize);
        if (!block.Inside() || !part.Sees(tile + i - begin, run, block.row - block.begin)) continue;
        const float weight = expf(score - Load(l, tile + i, head));
        const float delta = a.scratch[(tile + i) * heads.groups * heads.heads + head];
        d_value.Add(weight, gradients + i * kSize);
        d_key.Add(weight * (d_weight - delta), queries + i * kSize);
      }
    }
  }
  if (!block.Inside()) return;
  d_key.StoreRow(dkv, block.row, column, heads.size, heads.Scale());
  d_value.StoreRow(dkv, block.row, column + heads.size, heads.size, 1);
}

extern "C" __global__ void AttentionPart64(KernelArguments a) { AttentionPartForward<64>(a); }
extern "C" __global__ void AttentionPart128(KernelArguments a) { AttentionPartForward<128>(a); }
extern "C" __global__ void AttentionPart256(KernelArguments a) { AttentionPartForward<256>(a); }
extern "C" __global__ void AttentionPartBackwardQ64(KernelArguments a) {
  AttentionPartBackwardQ<64>(a);
}
extern "C" __global__ void AttentionPartBackwardQ128(KernelArguments a) {
  AttentionPartBackwardQ<128>(a);
}
extern "C" __global__ void AttentionPartBackwardQ256(KernelArguments a) {
  AttentionPartBackwardQ<256>(a);
}
extern "C" __global__ void AttentionPartBackwardKV64(KernelArguments a) {
  AttentionPartBackwardKV<64>(a);
}
extern "C" __global__ void AttentionPartBackwardKV128(KernelArguments a) {
  AttentionPartBackwardKV<128>(a);
}
extern "C" __global__ void AttentionPartBackwardKV256(KernelArguments a) {
  AttentionPartBackwardKV<256>(a);
}

// Where column `column` of KV is in X: attributes are groups, heads of a group, head size.
__device__ inline uint64_t ColumnOfKeys(const KernelArguments& a, uint64_t column) {
  const uint64_t heads = static_cast<uint64_t>(a.attributes[1]);
  const uint64_t pair = 2 * static_cast<uint64_t>(a.attributes[2]);
  const uint64_t of_group = (heads + 2) * static_cast<uint64_t>(a.attributes[2]);
  return (column / pair + 1) * of_group - pair + column % pair;
}

extern "C" __global__ void TakeKeys(KernelArguments a) {
  const GpuOperand x = Read(a, 0), kv = Write(a, 0);
  ForEachElement(kv.rows, kv.columns,
                 [&](uint64_t i, uint64_t j) { Store(kv, i, j, Load(x, i, ColumnOfKeys(a, j))); });
}

extern "C" __global__ void PutKeys(KernelArguments a) {
  const GpuOperand kv = Read(a, 0), x = Write(a, 0);
  ForEachElement(kv.rows, kv.columns,
                 [&](uint64_t i, uint64_t j) { Store(x, i, ColumnOfKeys(a, j), Load(kv, i, j)); });
}

// One block per row; L is written when all have read it.
extern "C" __global__ void AttentionMerge(KernelArguments a) {
  const GpuOperand part = Read(a, 0), l_part = Read(a, 1), o = Write(a, 0), l = Write(a, 1);
  const uint64_t size = o.columns / l.columns;
  ForEachRow(o.rows, [&](uint64_t i) {
    for (uint64_t j = threadIdx.x; j < o.columns; j += blockDim.x) {
      const float first = Load(l, i, j / size), second = Load(l_part, i, j / size);
      const float largest = fmaxf(first, second);
      if (isinf(largest)) continue;  // neither has seen a key
      const float of_first = expf(first - largest), of_second = expf(second - largest);
      Store(o, i, j,
            (of_first * Load(o, i, j) + of_second * Load(part, i, j)) / (of_first + of_second));
    }
    __syncthreads();
    for (uint64_t head = threadIdx.x; head < l.columns; head += blockDim.x) {
      const float first = Load(l, i, head), second = Load(l_part, i, head);
      const float largest = fmaxf(first, second);
      if (isinf(largest)) continue;
      Store(l, i, head, largest + logf(expf(first - largest) + expf(second - largest)));
    }
  });
}

extern "C" __global__ void OrderSequences(KernelArguments a) {
  const GpuOperand x = Read(a, 0), y = Write(a, 0);
  SequenceOrder order;
  order.sequence = static_cast<uint64_t>(a.attributes[0]);
  order.parts = static_cast<uint64_t>(a.attributes[1]);
  order.block = x.rows;
  order.balanced = a.attributes[2] != 0;
  const bool back = a.attributes[3] != 0;
  ForEachElement(y.rows, y.columns, [&](uint64_t i, uint64_t j) {
    const uint64_t in_sequences = order.InSequences(i);
    Store(y, back ? i : in_sequences, j, Load(x, back ? in_sequences : i, j));
  });
}

}  // namespace rehearse

// Attention, forward and backward, in tiles: scores are never kept, so memory grows only with the
// rows (Dao et al., FlashAttention, 2022: online softmax and its recomputing backward). fp32
// arithmetic, no tensor cores: correct and simple, several times slower than a tuned kernel.
//
// A block owns 64 rows of one head; four neighbouring threads share a row and each keeps a quarter
// of its head's numbers in registers. The other side passes through shared memory in tiles. Sums
// have a fixed order, so results are the same in every run.
#pragma once

#include "real/cuda/kernels/operand.cuh"

namespace rehearse {

constexpr unsigned kAttentionRows = 64;    // rows of a block
constexpr unsigned kAttentionParts = 4;    // threads of a row
constexpr unsigned kAttentionTile = 4096;  // floats of a tile in shared memory: rows × head size

// The attributes, and where a head's columns are in X (q of the group's heads, k, v) and in O.
struct Heads {
  uint64_t sequence;
  uint64_t heads;  // of a group
  uint64_t groups;
  uint64_t size;
  uint64_t value_size;  // columns of a v
  bool causal;
  uint64_t window;  // tokens that a causal query sees; 0: all before it

  __device__ explicit Heads(const KernelArguments& a)
      : sequence(static_cast<uint64_t>(a.attributes[0])),
        heads(static_cast<uint64_t>(a.attributes[2])),
        groups(static_cast<uint64_t>(a.attributes[1])),
        size(static_cast<uint64_t>(a.attributes[3])),
        value_size(a.attribute_count > 9 ? static_cast<uint64_t>(a.attributes[9]) : size),
        causal(a.attributes[4] != 0),
        window(a.attribute_count > 5 ? static_cast<uint64_t>(a.attributes[5]) : 0) {}
  // Whether a query attends to a key, both being rows of one sequence.
  __device__ bool Sees(uint64_t query, uint64_t key) const {
    return !causal || (key <= query && (window == 0 || query - key < window));
  }
  // The first key that a query attends to, in a sequence whose rows begin at `begin`.
  __device__ uint64_t FirstKey(uint64_t query, uint64_t begin) const {
    return causal && window > 0 && query >= begin + window ? query + 1 - window : begin;
  }
  __device__ uint64_t GroupColumn(uint64_t group) const {
    return group * ((heads + 1) * size + value_size);
  }
  __device__ uint64_t QColumn(uint64_t head) const {
    return GroupColumn(head / heads) + head % heads * size;
  }
  __device__ uint64_t KColumn(uint64_t group) const { return GroupColumn(group) + heads * size; }
  __device__ uint64_t VColumn(uint64_t group) const { return KColumn(group) + size; }
  __device__ uint64_t OColumn(uint64_t head) const { return head * value_size; }
  __device__ float Scale() const { return rsqrtf(static_cast<float>(size)); }
};

// A quarter of a row of kSize numbers: floats 4·(part + 4·i) … +3, so that the four threads of a
// row read neighbouring words.
template <unsigned kSize>
struct Quarter {
  static constexpr unsigned kCount = kSize / kAttentionParts;
  float values[kCount];

  __device__ static unsigned ColumnOf(unsigned i) {
    return (threadIdx.x % kAttentionParts + i / 4 * kAttentionParts) * 4 + i % 4;
  }
  __device__ void Clear() {
#pragma unroll
    for (unsigned i = 0; i < kCount; ++i) values[i] = 0;
  }
  __device__ void LoadRow(const GpuOperand& x, uint64_t row, uint64_t column, uint64_t size,
                          bool inside) {
#pragma unroll
    for (unsigned i = 0; i < kCount; ++i) {
      const unsigned at = ColumnOf(i);
      values[i] = inside && at < size ? Load(x, row, column + at) : 0;
    }
  }
  __device__ void StoreRow(const GpuOperand& x, uint64_t row, uint64_t column, uint64_t size,
                           float factor) const {
#pragma unroll
    for (unsigned i = 0; i < kCount; ++i) {
      const unsigned at = ColumnOf(i);
      if (at < size) Store(x, row, column + at, values[i] * factor);
    }
  }
  // The whole row's product with a row in shared memory; every one of the four threads gets it.
  __device__ float Dot(const float* row) const {
    float sum = 0;
#pragma unroll
    for (unsigned i = 0; i < kCount; i += 4) {
      const float4 other = *reinterpret_cast<const float4*>(row + ColumnOf(i));
      sum += values[i] * other.x + values[i + 1] * other.y + values[i + 2] * other.z +
             values[i + 3] * other.w;
    }
    sum += __shfl_xor_sync(0xffffffffu, sum, 1);
    return sum + __shfl_xor_sync(0xffffffffu, sum, 2);
  }
  __device__ void Add(float factor, const float* row) {
#pragma unroll
    for (unsigned i = 0; i < kCount; i += 4) {
      const float4 other = *reinterpret_cast<const float4*>(row + ColumnOf(i));
      values[i] += factor * other.x;
      values[i + 1] += factor * other.y;
      values[i + 2] += factor * other.z;
      values[i + 3] += factor * other.w;
    }
  }
  __device__ void Multiply(float factor) {
#pragma unroll
    for (unsigned i = 0; i < kCount; ++i) values[i] *= factor;
  }
};

// Copies rows [first, first + count) of the head's columns into a tile, which is zero beyond `end`
// and the head's size.
template <unsigned kSize>
__device__ void LoadTile(float* tile, const GpuOperand& x, uint64_t first, unsigned count,
                         uint64_t end, uint64_t column, uint64_t size) {
  for (unsigned i = threadIdx.x; i < count * kSize; i += blockDim.x) {
    const uint64_t row = first + i / kSize;
    const unsigned at = i % kSize;
    tile[i] = row < end && at < size ? Load(x, row, column + at) : 0;
  }
}

// Which 64 rows this block owns: blockIdx.x counts them over all sequences.
struct RowBlock {
  uint64_t begin;  // of the sequence, in rows of X
  uint64_t end;
  uint64_t first;  // of the block
  uint64_t row;    // of this thread

  __device__ explicit RowBlock(uint64_t sequence) {
    const uint64_t blocks = (sequence + kAttentionRows - 1) / kAttentionRows;
    begin = blockIdx.x / blocks * sequence;
    end = begin + sequence;
    first = begin + blockIdx.x % blocks * kAttentionRows;
    row = first + threadIdx.x / kAttentionParts;
  }
  __device__ bool Inside() const { return row < end; }
};

template <unsigned kSize>
__device__ void AttentionForward(const KernelArguments& a) {
  constexpr unsigned kRows = kAttentionTile / kSize;
  __shared__ __align__(16) float keys[kAttentionTile];
  __shared__ __align__(16) float values[kAttentionTile];
  const GpuOperand x = Read(a, 0), o = Write(a, 0), l = Write(a, 1);
  const Heads heads(a);
  const RowBlock block(heads.sequence);
  const uint64_t head = blockIdx.y, group = head / heads.heads;
  Quarter<kSize> query, sum;
  query.LoadRow(x, block.row, heads.QColumn(head), heads.size, block.Inside());
  query.Multiply(heads.Scale());
  sum.Clear();
  float maximum = -INFINITY, total = 0;
  const uint64_t last = heads.causal && block.first + kAttentionRows < block.end
                            ? block.first + kAttentionRows
                            : block.end;
  for (uint64_t tile = heads.FirstKey(block.first, block.begin); tile < last; tile += kRows) {
    __syncthreads();
    LoadTile<kSize>(keys, x, tile, kRows, block.end, heads.KColumn(group), heads.size);
    LoadTile<kSize>(values, x, tile, kRows, block.end, heads.VColumn(group), heads.value_size);
    __syncthreads();
    for (unsigned i = 0; i < kRows && tile + i < block.end; ++i) {
      const float score = query.Dot(keys + i * kSize);  // all threads of the warp take part
      if (!heads.Sees(block.row, tile + i)) continue;
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
  if (!block.Inside()) return;
  sum.StoreRow(o, block.row, heads.OColumn(head), heads.value_size, 1 / total);
  if (threadIdx.x % kAttentionParts == 0) Store(l, block.row, head, maximum + logf(total));
}

// First stage of the backward: dQ of this block's rows, and Σ dO·O of each row for the second.
template <unsigned kSize>
__device__ void AttentionBackwardQ(const KernelArguments& a) {
  constexpr unsigned kRows = kAttentionTile / kSize;
  __shared__ __align__(16) float keys[kAttentionTile];
  __shared__ __align__(16) float values[kAttentionTile];
  const GpuOperand d_o = Read(a, 0), x = Read(a, 1), o = Read(a, 2), l = Read(a, 3);
  const GpuOperand dx = Write(a, 0);
  const Heads heads(a);
  const RowBlock block(heads.sequence);
  const uint64_t head = blockIdx.y, group = head / heads.heads;
  Quarter<kSize> query, gradient, sum;
  query.LoadRow(x, block.row, heads.QColumn(head), heads.size, block.Inside());
  query.Multiply(heads.Scale());
  gradient.LoadRow(d_o, block.row, heads.OColumn(head), heads.value_size, block.Inside());
  sum.LoadRow(o, block.row, heads.OColumn(head), heads.value_size, block.Inside());
  float delta = 0;
#pragma unroll
  for (unsigned i = 0; i < Quarter<kSize>::kCount; ++i) {
    delta += gradient.values[i] * sum.values[i];
  }
  delta += __shfl_xor_sync(0xffffffffu, delta, 1);
  delta += __shfl_xor_sync(0xffffffffu, delta, 2);
  const float logarithm = block.Inside() ? Load(l, block.row, head) : 0;
  sum.Clear();
  const uint64_t last = heads.causal && block.first + kAttentionRows < block.end
                            ? block.first + kAttentionRows
                            : block.end;
  for (uint64_t tile = heads.FirstKey(block.first, block.begin); tile < last; tile += kRows) {
    __syncthreads();
    LoadTile<kSize>(keys, x, tile, kRows, block.end, heads.KColumn(group), heads.size);
    LoadTile<kSize>(values, x, tile, kRows, block.end, heads.VColumn(group), heads.value_size);
    __syncthreads();
    for (unsigned i = 0; i < kRows && tile + i < block.end; ++i) {
      const float score = query.Dot(keys + i * kSize);
      const float d_weight = gradient.Dot(values + i * kSize);
      if (!heads.Sees(block.row, tile + i)) continue;
      sum.Add(expf(score - logarithm) * (d_weight - delta), keys + i * kSize);
    }
  }
  if (!block.Inside()) return;
  sum.StoreRow(dx, block.row, heads.QColumn(head), heads.size, heads.Scale());
  if (threadIdx.x % kAttentionParts == 0) {
    a.scratch[block.row * heads.groups * heads.heads + head] = delta;
  }
}

// Second stage: dK and dV of this block's rows, over the rows that see them and the
// heads of the group.
template <unsigned kSize>
__device__ void AttentionBackwardKV(const KernelArguments& a) {
  constexpr unsigned kRows = kAttentionTile / kSize;
  __shared__ __align__(16) float queries[kAttentionTile];
  __shared__ __align__(16) float gradients[kAttentionTile];
  const GpuOperand d_o = Read(a, 0), x = Read(a, 1), l = Read(a, 3), dx = Write(a, 0);
  const Heads heads(a);
  const RowBlock block(heads.sequence);
  const uint64_t group = blockIdx.y;
  Quarter<kSize> key, value, d_key, d_value;
  key.LoadRow(x, block.row, heads.KColumn(group), heads.size, block.Inside());
  key.Multiply(heads.Scale());
  value.LoadRow(x, block.row, heads.VColumn(group), heads.value_size, block.Inside());
  d_key.Clear();
  d_value.Clear();
  for (uint64_t head = group * heads.heads; head < (group + 1) * heads.heads; ++head) {
    for (uint64_t tile = heads.causal ? block.first : block.begin; tile < block.end;
         tile += kRows) {
      __syncthreads();
      LoadTile<kSize>(queries, x, tile, kRows, block.end, heads.QColumn(head), heads.size);
      LoadTile<kSize>(gradients, d_o, tile, kRows, block.end, heads.OColumn(head),
                      heads.value_size);
      __syncthreads();
      for (unsigned i = 0; i < kRows && tile + i < block.end; ++i) {
        const float score = key.Dot(queries + i * kSize);
        const float d_weight = value.Dot(gradients + i * kSize);
        if (!heads.Sees(tile + i, block.row)) continue;
        const float weight = expf(score - Load(l, tile + i, head));
        const float delta = a.scratch[(tile + i) * heads.groups * heads.heads + head];
        d_value.Add(weight, gradients + i * kSize);
        d_key.Add(weight * (d_weight - delta), queries + i * kSize);
      }
    }
  }
  if (!block.Inside()) return;
  d_key.StoreRow(dx, block.row, heads.KColumn(group), heads.size, heads.Scale());
  d_value.StoreRow(dx, block.row, heads.VColumn(group), heads.value_size, 1);
}

// One instance for each range of head sizes (real/cuda/launch.cc picks); zeros fill the rest.
extern "C" __global__ void Attention64(KernelArguments a) { AttentionForward<64>(a); }
extern "C" __global__ void Attention128(KernelArguments a) { AttentionForward<128>(a); }
extern "C" __global__ void Attention256(KernelArguments a) { AttentionForward<256>(a); }
extern "C" __global__ void AttentionBackwardQ64(KernelArguments a) { AttentionBackwardQ<64>(a); }
extern "C" __global__ void AttentionBackwardQ128(KernelArguments a) { AttentionBackwardQ<128>(a); }
extern "C" __global__ void AttentionBackwardQ256(KernelArguments a) { AttentionBackwardQ<256>(a); }
extern "C" __global__ void AttentionBackwardKV64(KernelArguments a) { AttentionBackwardKV<64>(a); }
extern "C" __global__ void AttentionBackwardKV128(KernelArguments a) {
  AttentionBackwardKV<128>(a);
}
extern "C" __global__ void AttentionBackwardKV256(KernelArguments a) {
  AttentionBackwardKV<256>(a);
}

}  // namespace rehearse

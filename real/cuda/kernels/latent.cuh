// Latent attention: moves queries, keys, values and the key's shared columns between their own
// arrays and the groups of an attention core.
#pragma once

#include "real/cuda/kernels/operand.cuh"

namespace rehearse {

// The attributes, and which columns of a head's group in X are what: its q; its k, which ends with
// the shared columns; its v.
struct LatentHeads {
  uint64_t heads, query, shared, value;

  __device__ explicit LatentHeads(const KernelArguments& a)
      : heads(static_cast<uint64_t>(a.attributes[0])),
        query(static_cast<uint64_t>(a.attributes[1])),
        shared(static_cast<uint64_t>(a.attributes[2])),
        value(static_cast<uint64_t>(a.attributes[3])) {}
  __device__ uint64_t Own() const { return query - shared; }  // of a k
  __device__ uint64_t Group() const { return 2 * query + value; }
  __device__ uint64_t Block() const { return Own() + value; }  // of KV
};

extern "C" __global__ void JoinHeads(KernelArguments a) {
  const GpuOperand q = Read(a, 0), kv = Read(a, 1), r = Read(a, 2), x = Write(a, 0);
  const LatentHeads of(a);
  ForEachElement(x.rows, x.columns, [&](uint64_t i, uint64_t j) {
    const uint64_t head = j / of.Group(), at = j % of.Group();
    const uint64_t own = of.query + of.Own();
    if (at < of.query) {
      Store(x, i, j, Load(q, i, head * of.query + at));
    } else if (at < own) {
      Store(x, i, j, Load(kv, i, head * of.Block() + at - of.query));
    } else if (at < own + of.shared) {
      Store(x, i, j, Load(r, i, at - own));
    } else {
      Store(x, i, j, Load(kv, i, head * of.Block() + at - of.query - of.shared));
    }
  });
}

// This is the reverse; the shared columns get the sum over heads. Threads go over the columns of
// dX, and those of the first head's shared ones add up the others'.
extern "C" __global__ void SplitHeads(KernelArguments a) {
  const GpuOperand dx = Read(a, 0), dq = Write(a, 0), dkv = Write(a, 1), dr = Write(a, 2);
  const LatentHeads of(a);
  ForEachElement(dx.rows, dx.columns, [&](uint64_t i, uint64_t j) {
    const uint64_t head = j / of.Group(), at = j % of.Group();
    const uint64_t own = of.query + of.Own();
    if (at < of.query) {
      Store(dq, i, head * of.query + at, Load(dx, i, j));
    } else if (at < own) {
      Store(dkv, i, head * of.Block() + at - of.query, Load(dx, i, j));
    } else if (at >= own + of.shared) {
      Store(dkv, i, head * of.Block() + at - of.query - of.shared, Load(dx, i, j));
    } else if (head == 0) {
      float sum = 0;
      for (uint64_t other = 0; other < of.heads; ++other)
        sum += Load(dx, i, other * of.Group() + at);
      Store(dr, i, at - own, sum);
    }
  });
}

}  // namespace rehearse

// Experts: the router's weights, and which rows go where. Products are cuBLAS's
// (real/cuda/cuda_backend.cc).
#pragma once

#include "real/cuda/kernels/elementwise.cuh"
#include "sim/schedule/expert_routing.h"

namespace rehearse {

// What a run of tokens chooses: the table behind the attributes (real/cuda/routing_table.h).
struct Choices {
  const double* table;
  uint64_t experts;
  uint64_t per_token;
  uint64_t period;
  uint64_t runs;
  bool is_sigmoid;

  __device__ Choices(const KernelArguments& a, const GpuOperand& tokens)
      : table(a.attributes + kRoutingAttributes),
        experts(static_cast<uint64_t>(a.attributes[kRoutingExperts])),
        per_token(static_cast<uint64_t>(a.attributes[kRoutingPerToken])),
        period(static_cast<uint64_t>(table[0])),
        runs(tokens.rows / period),
        is_sigmoid(a.attributes[kRoutingSigmoid] != 0) {}

  // What a run chooses: the first row of an expert if it were alone, how many it takes, and the
  // share of all choices that ask for it.
  __device__ uint64_t First(uint64_t expert) const {
    return static_cast<uint64_t>(table[1 + expert]);
  }
  __device__ uint64_t Load(uint64_t expert) const { return First(expert + 1) - First(expert); }
  __device__ float Share(uint64_t expert) const {
    return static_cast<float>(table[2 + experts + expert]);
  }
  __device__ uint64_t Asked(uint64_t token, uint64_t choice) const {
    return static_cast<uint64_t>(Choice(token, choice)[0]);
  }
  // The row of a token's choice; -1 if it was dropped.
  __device__ long long Row(uint64_t token, uint64_t choice) const {
    const double* const entry = Choice(token, choice);
    if (entry[1] < 0) return -1;
    const auto expert = static_cast<uint64_t>(entry[0]);
    return static_cast<long long>(First(expert) * runs + token / period * Load(expert)) +
           static_cast<long long>(entry[1]);
  }

 private:
  __device__ const double* Choice(uint64_t token, uint64_t choice) const {
    return table + 2 + 2 * experts + 2 * (token % period * per_token + choice);
  }
};

// Scores of all experts for a token, each computed anew: exp(l - the largest) or a sigmoid.
struct Scores {
  const Choices& choices;
  const GpuOperand& logits;
  uint64_t token;
  float largest = 0;
  float all = 0;    // their sum
  float asked = 0;  // that of those that the token asks for

  __device__ Scores(const Choices& of, const GpuOperand& l, uint64_t row)
      : choices(of), logits(l), token(row) {
    if (!choices.is_sigmoid) {
      float most = -INFINITY;
      for (uint64_t e = threadIdx.x; e < choices.experts; e += blockDim.x)
        most = fmaxf(most, Load(logits, token, e));
      largest = OverBlock<Maximum>(most);
    }
    float sum = 0;
    for (uint64_t e = threadIdx.x; e < choices.experts; e += blockDim.x) sum += Of(e);
    all = OverBlock<Sum>(sum);
    for (uint64_t j = 0; j < choices.per_token; ++j) asked += Of(choices.Asked(token, j));
    if (IsWeight()) asked = 1;
  }
  __device__ float Of(uint64_t expert) const {
    const float x = Load(logits, token, expert);
    return choices.is_sigmoid ? Sigmoid(x) : expf(x - largest);
  }
  // A single sigmoid is the weight itself.
  __device__ bool IsWeight() const { return choices.is_sigmoid && choices.per_token == 1; }
};

extern "C" __global__ void Route(KernelArguments a) {
  const GpuOperand logits = Read(a, 0), weights = Write(a, 0), counts = Write(a, 1);
  const Choices choices(a, weights);
  ForEachRow(weights.rows, [&](uint64_t i) {
    const Scores scores(choices, logits, i);
    for (uint64_t j = threadIdx.x; j < choices.per_token; j += blockDim.x)
      Store(weights, i, j, scores.Of(choices.Asked(i, j)) / scores.asked);
  });
  if (blockIdx.x != 0) return;
  for (uint64_t e = threadIdx.x; e < choices.experts; e += blockDim.x)
    StoreAt(counts, e, static_cast<float>(choices.Load(e) * choices.runs));
}

extern "C" __global__ void RouteBackward(KernelArguments a) {
  const GpuOperand dw = Read(a, 0), logits = Read(a, 1), dl = Write(a, 0);
  const Choices choices(a, dl);
  const auto auxiliary = static_cast<float>(a.attributes[kRoutingAuxiliary] *
                                            static_cast<double>(choices.experts) / a.tokens);
  ForEachRow(dl.rows, [&](uint64_t i) {
    const Scores scores(choices, logits, i);
    // Gradient of the scores: first from the balancing loss, then from the weights.
    float balance = 0;
    for (uint64_t e = threadIdx.x; e < choices.experts; e += blockDim.x)
      balance += auxiliary * choices.Share(e) * scores.Of(e) / scores.all;
    balance = OverBlock<Sum>(balance);
    float mean = 0;
    for (uint64_t j = 0; j < choices.per_token && !scores.IsWeight(); ++j)
      mean += Load(dw, i, j) * scores.Of(choices.Asked(i, j)) / scores.asked;
    for (uint64_t e = threadIdx.x; e < choices.experts; e += blockDim.x) {
      const float score = scores.Of(e);
      float ds = (auxiliary * choices.Share(e) - balance) / scores.all;
      for (uint64_t j = 0; j < choices.per_token; ++j) {
        if (choices.Asked(i, j) == e) ds += (Load(dw, i, j) - mean) / scores.asked;
      }
      Store(dl, i, e, ds * (choices.is_sigmoid ? score * (1 - score) : score));
    }
  });
}

extern "C" __global__ void Permute(KernelArguments a) {
  const GpuOperand x = Read(a, 0), y = Write(a, 0);
  const Choices choices(a, x);
  ForEachRow(x.rows, [&](uint64_t i) {
    for (uint64_t j = 0; j < choices.per_token; ++j) {
      const long long row = choices.Row(i, j);
      if (row < 0) continue;
      for (uint64_t c = threadIdx.x; c < x.columns; c += blockDim.x)
        Store(y, static_cast<uint64_t>(row), c, Load(x, i, c));
    }
  });
}

// The sum of a token's rows, in the order of its choices; times weights, if there are some.
__device__ inline void SumOfRows(const Choices& choices, const GpuOperand& rows,
                                 const GpuOperand* weights, const GpuOperand& sums) {
  ForEachRow(sums.rows, [&](uint64_t i) {
    for (uint64_t c = threadIdx.x; c < sums.columns; c += blockDim.x) {
      float sum = 0;
      for (uint64_t j = 0; j < choices.per_token; ++j) {
        const long long row = choices.Row(i, j);
        if (row < 0) continue;
        const float weight = weights == nullptr ? 1 : Load(*weights, i, j);
        sum += weight * Load(rows, static_cast<uint64_t>(row), c);
      }
      Store(sums, i, c, sum);
    }
  });
}

extern "C" __global__ void PermuteBackward(KernelArguments a) {
  const GpuOperand dy = Read(a, 0), dx = Write(a, 0);
  SumOfRows(Choices(a, dx), dy, nullptr, dx);
}

extern "C" __global__ void Combine(KernelArguments a) {
  const GpuOperand x = Read(a, 0), weights = Read(a, 1), y = Write(a, 0);
  SumOfRows(Choices(a, y), x, &weights, y);
}

extern "C" __global__ void CombineBackward(KernelArguments a) {
  const GpuOperand dy = Read(a, 0), x = Read(a, 1), weights = Read(a, 2);
  const GpuOperand dx = Write(a, 0), dw = Write(a, 1);
  const Choices choices(a, dy);
  ForEachRow(dy.rows, [&](uint64_t i) {
    for (uint64_t j = 0; j < choices.per_token; ++j) {
      const long long row = choices.Row(i, j);
      float sum = 0;
      if (row >= 0) {
        const float weight = Load(weights, i, j);
        for (uint64_t c = threadIdx.x; c < dy.columns; c += blockDim.x) {
          const float gradient = Load(dy, i, c);
          sum += gradient * Load(x, static_cast<uint64_t>(row), c);
          Store(dx, static_cast<uint64_t>(row), c, weight * gradient);
        }
      }
      sum = OverBlock<Sum>(sum);
      if (threadIdx.x == 0) Store(dw, i, j, sum);
    }
  });
}

// The attributes are sources, the way back or not, then the rows of a source for each expert.
extern "C" __global__ void OrderChunks(KernelArguments a) {
  const GpuOperand x = Read(a, 0), y = Write(a, 0);
  const auto sources = static_cast<uint64_t>(a.attributes[0]);
  const bool back = a.attributes[1] != 0;
  const uint64_t of_source = x.rows / sources;
  ForEachRow(y.rows, [&](uint64_t i) {
    uint64_t before = 0, rows = 0, source = 0, within = 0;
    for (uint32_t e = 2; e < a.attribute_count; ++e, before += rows) {
      rows = static_cast<uint64_t>(a.attributes[e]);
      if (back) {
        source = i / of_source;
        within = i % of_source - before;
        if (i % of_source < before + rows) break;
      } else if (i < sources * (before + rows)) {
        source = (i - sources * before) / rows;
        within = (i - sources * before) % rows;
        break;
      }
    }
    const uint64_t by_expert = sources * before + source * rows + within;
    const uint64_t from = back ? by_expert : source * of_source + before + within;
    for (uint64_t c = threadIdx.x; c < y.columns; c += blockDim.x)
      Store(y, i, c, Load(x, from, c));
  });
}

}  // namespace rehearse

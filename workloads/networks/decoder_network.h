// Transformer decoders as networks: GPT (layer norms, GELU, biases, dropout) and Llama-like ones
// (RMS norms, SwiGLU, no biases, no dropout).
//
// Columns of Q, K, V are groups of heads: the queries of a group, its key, its value; with as many
// groups as heads it is multi-head attention, with fewer grouped-query attention. Position
// embeddings are left out (s·h parameters of a learned one, none of a rotary one; below 0.1 % of
// the work).
#pragma once

#include "workloads/networks/model.h"
#include "workloads/networks/network.h"
#include "workloads/networks/training.h"

namespace rehearse {

Network MakeDecoder(const GptModel& model, const Training& training);

}  // namespace rehearse

// AxoNN's own communication model (arXiv 2305.13525, section V, eq. 1-9): what the paper predicts
// for a 4D configuration, for comparison with the simulator. Ring times without latency and without
// overlap.
//
// Bandwidth of a process group (section V): inside a node from a table of profiled values keyed by
// (product of the inner groups' sizes, group size); across nodes beta_inter / min(product of inner
// sizes, GPUs of a node). Groups nest column, row, depth, data from the inside out.
// Errata of the paper that are corrected here: eq. 8 prints mk for the data-parallel all-reduce,
// which is over kn elements.
#pragma once

#include <cstdint>
#include <map>
#include <string>
#include <utility>
#include <vector>

#include "sim/base/quantity.h"
#include "workloads/networks/model.h"
#include "workloads/networks/network.h"
#include "workloads/networks/training.h"
#include "workloads/strategies/strategy_4d.h"

namespace rehearse {

struct AxonnBandwidths {
  std::string name;
  std::string source;
  uint32_t gpus_per_node = 1;
  BytesPerSecond inter;  // between two nodes, all NICs together
  // (product of the inner sizes, group size) -> busbw, for groups inside a node
  std::map<std::pair<uint32_t, uint32_t>, BytesPerSecond> intra;
};

// Perlmutter's profiled values (truth: axonn-ai/Megatron-AxoNN 885d2e75, examples/comm_model.py).
const AxonnBandwidths& PerlmutterBandwidths();

// Bandwidth of a group of `size` ranks with `inner` ranks nested inside. Throws Error when the
// group lies inside a node and the table has no entry for it.
BytesPerSecond AxonnBandwidth(const AxonnBandwidths& table, uint32_t inner, uint32_t size);

struct AxonnPrediction {
  Seconds all_gather;           // eq. 4, forward and (with recomputation) once more
  Seconds reduce_scatter;       // eq. 5
  Seconds forward_all_reduce;   // eq. 6, and once more with recomputation
  Seconds backward_all_reduce;  // eq. 7
  Seconds data_all_reduce;      // eq. 8, in fp32 as Megatron-LM keeps gradients
  Seconds Total() const {       // eq. 9
    return all_gather + reduce_scatter + forward_all_reduce + backward_all_reduce + data_all_reduce;
  }
};

// W (k×n) of `count` equal products, over `rows` rows of the step on all ranks.
struct AxonnProduct {
  double rows = 0;
  double k = 0;
  double n = 0;
  bool transposed = false;  // row and column are swapped
  double count = 1;
};

// The products of the layers of any network: embedding and head are left out, as in the paper.
std::vector<AxonnProduct> AxonnProducts(const Network& network);

// Communication of one step, whose elements are in bf16.
AxonnPrediction PredictAxonn(const std::vector<AxonnProduct>& products, const Training& training,
                             const FourDOptions& options, const AxonnBandwidths& bandwidths);
// The four products of every layer, every other one transposed.
AxonnPrediction PredictAxonn(const GptModel& model, const Training& training,
                             const FourDOptions& options, const AxonnBandwidths& bandwidths);

// Every way to write `ranks` as column × row × depth × data that the model allows (heads, hidden
// and the batch divide), ordered by predicted communication time, ties by (column, row, depth).
std::vector<std::pair<FourDOptions, AxonnPrediction>> RankConfigurations(
    const GptModel& model, const Training& training, uint32_t ranks,
    const AxonnBandwidths& bandwidths);

}  // namespace rehearse

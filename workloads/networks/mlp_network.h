// Chains of fully connected layers: X -> relu(X·W + b) -> … -> X·W + b, with a squared error at the
// end.
//
// AutoDDL's example is 32768-16384-4096-2048-512. Every layer of weights is a layer of the network;
// they alternate between first and second products.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "workloads/networks/network.h"
#include "workloads/networks/training.h"

namespace rehearse {

struct MlpModel {
  std::string name;
  std::vector<uint64_t> sizes;  // columns of the input, of each hidden layer, of the output
  std::string source = {};      // of a preset

  double Parameters() const;
};

// Rows are samples: training.batch of them, whatever training.sequence is. Flops are three times
// those of the forward products.
Network MakeMlp(const MlpModel& model, const Training& training);

const std::vector<MlpModel>& KnownMlps();

}  // namespace rehearse

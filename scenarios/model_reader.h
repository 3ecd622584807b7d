// Reads a scenario's "model" and "training" into a network.
//
//   {"preset": "gpt-20b"}, or a decoder's numbers (workloads/model.h), or
//   {"kind": "mlp", "sizes": [1024, 4096, 512]}
#pragma once

#include "sim/json_reader.h"
#include "workloads/network.h"
#include "workloads/training.h"

namespace rehearse {

// "sequence" is for decoders only: they must have it, others must not.
struct ModelAndTraining {
  Network network;
  Training training;
};
ModelAndTraining ReadModelAndTraining(const JsonReader& model, const JsonReader& training);

}  // namespace rehearse

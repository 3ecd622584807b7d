// Reads a scenario's "model" and "training" into a network.
//
//   {"preset": "gpt-20b"}, or a decoder's numbers (workloads/networks/model.h), or
//   {"kind": "mlp", "sizes": [1024, 4096, 512]},
//   {"kind": "vgg", "stages": [[64, 64], [128]], "image": 224, "hidden": 4096, "classes": 1000},
//   {"kind": "u-net", "channels": 256}
//
// Any of them may also be a preset with changes; a preset's name implies its kind.
#pragma once

#include <memory>
#include <string>
#include <vector>

#include "sim/base/json_reader.h"
#include "workloads/networks/network.h"
#include "workloads/networks/training.h"

namespace rehearse {

// "sequence" and "attention" are for decoders only, "convolution" for networks of images: decoders
// must have "sequence", and other networks must not have these keys.
struct ModelAndTraining {
  std::shared_ptr<const Network> network;
  Training training;
};
ModelAndTraining ReadModelAndTraining(const JsonReader& model, const JsonReader& training);

JsonShape ModelShape();  // the tables of all kinds

// The variant of the training's table for networks of this kind.
const char* VariantOfTraining(const std::string& kind);

struct ModelPreset {
  std::string name;
  std::string summary;
  std::string source;
  std::string kind = {};  // "decoder"
  bool has_experts = false;
};
const std::vector<ModelPreset>& ModelPresets();  // of all kinds

}  // namespace rehearse

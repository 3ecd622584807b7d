// Decoders as Hugging Face's transformers describe them: a config.json.
//
// We take the sizes that determine the work: layers, columns, heads, vocabulary, windows, experts,
// latent attention. What our decoders cannot have is refused, naming its key (other activations,
// windows in no regular order, experts in layers given by name). What only adds a little and is
// left out (biases of attention, sinks, the gate of shared experts), and unknown keys, become
// remarks. Keys that change no sizes, such as those of rotary embeddings, initialisation and
// sampling, are ignored.
//
// Key names and defaults: huggingface/transformers, src/transformers/models/*/configuration_*.py.
#pragma once

#include <string>
#include <vector>

#include <nlohmann/json.hpp>

#include "sim/base/json_reader.h"
#include "workloads/networks/model.h"

namespace rehearse {

struct HfModel {
  nlohmann::ordered_json keys;       // of a scenario's "model" (DecoderShape() in model.h)
  GptModel model;                    // the same, read
  std::vector<std::string> remarks;  // one line each
};

// Throws Error with the place of what is missing, wrong or not supported.
HfModel ReadHfConfig(const JsonReader& config);

// Reads the value of "file" in a scenario's "model": a config.json, or a file with a model's keys.
GptModel ReadModelFile(const JsonReader& file);

}  // namespace rehearse

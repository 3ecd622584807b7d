// Decoders as Hugging Face's transformers describe them: a config.json.
//
// A table of families says what each has beside what its files say; a file of another kind that has
// a decoder inside, such as one of images and text, is read as that decoder. We take the sizes that
// determine the work: layers, columns, heads, vocabulary, windows, experts, latent attention. What
// our decoders cannot have is refused by name: state-space and other layers, windows in no regular
// order, experts under names that a family is not known to have. What costs the same becomes a
// remark (a gate with GELU), as does what only adds a little and is left out (biases of attention,
// sinks, norms behind layers, positions), and unknown keys. Keys that change no sizes, such as
// those of rotary embeddings, initialisation and sampling, are ignored.
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

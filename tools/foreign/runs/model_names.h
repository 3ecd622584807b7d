// Models by the names that others' runs have for them: "meta-llama/Llama-3.1-8B-Instruct",
// "llama3_1_8b", "Llama31Config8B" are one.
//
// Of a name, what counts is what is left without its owner, signs between letters, and words such
// as Instruct that change no sizes. Known are our presets, torchtitan's flavors
// (tools/foreign/runs/torchtitan/torchtitan_flavors.h), and the table in the .cc.
#pragma once

#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include <nlohmann/json.hpp>

#include "tools/foreign/runs/scenario_draft.h"

namespace rehearse {

struct NamedModel {
  nlohmann::ordered_json keys;       // of a scenario's "model"
  std::vector<std::string> remarks;  // what is left out
  std::string name;                  // as it was asked for
};

// Nothing if the name is not known.
std::optional<NamedModel> FindModelByName(std::string_view name);

// The model that is given beside the file, or the one of this name, into the draft. Throws Error
// at `from` for a name that is not known.
void SetNamedModel(const std::optional<NamedModel>& given, const std::string& name,
                   const Origin& from, ScenarioDraft* draft);

bool HasExperts(const ScenarioDraft& draft);
int64_t HiddenSizeOf(const ScenarioDraft& draft);

}  // namespace rehearse

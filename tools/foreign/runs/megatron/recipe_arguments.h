// Recipes in YAML or JSON of programs that are built on Megatron-LM: NeMo's, Megatron-Bridge's and
// gpt-neox's, as Megatron-LM's arguments.
//
// A key is known by its last name, wherever the program has it ("model.num_layers",
// "model.config.num_layers", "num-layers"); the table is in the .cc. What is null, missing ("???")
// or computed from other keys ("${...}") is not given. Keys that decide nothing are dropped, others
// that are unknown are listed like unknown arguments.
#pragma once

#include <string>
#include <string_view>

#include "tools/foreign/runs/megatron/launched_run.h"

namespace rehearse {

bool IsRecipe(std::string_view text);

// Throws Error with file and line.
LaunchedRun ReadRecipe(std::string_view text, const std::string& name);

}  // namespace rehearse

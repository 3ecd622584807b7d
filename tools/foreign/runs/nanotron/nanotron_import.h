// A configuration of nanotron, YAML, as a scenario.
//
// Keys and defaults: huggingface/nanotron, src/nanotron/config (2025). Its model_config has the
// names of Hugging Face's config.json and is read as one (workloads/networks/hf_model.h); of
// experts, moe_config has its own. Ranks are dp x tp x pp x context_parallel_size, and those that
// share experts are among dp. --set changes keys, dotted: parallelism.dp=8.
#pragma once

#include <string>
#include <string_view>

#include "tools/foreign/runs/run_settings.h"
#include "tools/foreign/runs/scenario_draft.h"

namespace rehearse {

// `file` is its name in messages; `cluster` is the command line's --cluster, "" if none is given.
// Throws Error with file, line and key.
ImportedScenario ImportNanotron(std::string_view text, const std::string& file,
                                const std::string& cluster, const RunSettings& settings = {});

}  // namespace rehearse

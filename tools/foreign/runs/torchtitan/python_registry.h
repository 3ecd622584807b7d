// torchtitan's registries of jobs in Python (2026): functions that return a Trainer.Config, named
// on its command line by --module and --config.
//
// They are read, not run: keyword arguments of TrainingConfig(...), ParallelismConfig(...) and
// CompileConfig(...), the flavor in model_registry("8B", ...), converters of products, which
// activations are kept, what is assigned to config.training.x afterwards, and the function that a
// function begins with. What is computed otherwise stays as written, so that it is refused where it
// is asked for.
#pragma once

#include <string>
#include <string_view>

#include "sim/base/json_document.h"

namespace rehearse {

bool IsPythonRegistry(std::string_view text);

// The keys of a job, as those of a TOML ("training.seq_len"), each in its line. `function` is the
// job's; "" is allowed where there is one only. `module` is the model's name; "" if the function's
// name says it. Throws Error.
JsonDocument ReadPythonRegistry(std::string_view text, const std::string& name,
                                const std::string& function, const std::string& module);

}  // namespace rehearse

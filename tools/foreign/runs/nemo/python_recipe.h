// Recipes in Python, of Megatron-Bridge and NeMo 2.0: functions that assign to a configuration
// ("cfg.model.tensor_model_parallel_size = 8") or pass keywords on ("context_parallel_size=2").
//
// They are read, not run: a function's statements in their order, with its arguments' defaults,
// conditions that compare what is known, constants, and the functions that it calls, in this file
// or in modules beside it. What a key is called at its end counts, wherever it is assigned. What
// cannot be followed (loops, other conditions) is left out, and what it assigns is noted.
#pragma once

#include <functional>
#include <map>
#include <optional>
#include <set>
#include <string>
#include <string_view>
#include <vector>

#include <nlohmann/json.hpp>

#include "tools/foreign/runs/run_settings.h"

namespace rehearse {

struct PythonKey {
  static constexpr int kGiven = -1;  // the line of what settings say
  nlohmann::json value;  // what is no number, text, truth or list of them is a text as written
  int line = 0;          // in the file; 0: in another one
  // What has the key: "cfg.model", or what it is given to, such as "MegatronStrategy".
  std::string owner = {};
};

// Keywords of a call whose function is in a module that is not there: what they say is lost.
struct LostCall {
  std::string function;
  std::string module;  // "nemo/collections/llm/recipes/llama3_8b.py"
  int line = 0;        // in the file; 0: in another one
  std::map<std::string, std::string, std::less<>> arguments;  // as they were read
};

struct PythonRecipe {
  std::string function;
  std::map<std::string, PythonKey, std::less<>> keys;  // by the name's end
  std::string model;                                   // as it is named; "" if it is not
  int model_line = 0;
  // What a condition or a loop that cannot be followed assigns, and in which line; 0: elsewhere.
  std::map<std::string, int, std::less<>> skipped;
  std::set<std::string, std::less<>> arguments;  // that the function has
  std::vector<LostCall> lost;
};

// The text of the module "megatron/bridge/recipes/common.py", if it is there.
using PythonModules = std::function<std::optional<std::string>(const std::string& path)>;

// `settings` are the function's name (config), arguments of it, and keys that come last. Throws
// Error with file and line.
PythonRecipe ReadPythonRecipe(std::string_view text, const std::string& name,
                              const RunSettings& settings, const PythonModules& modules);

}  // namespace rehearse

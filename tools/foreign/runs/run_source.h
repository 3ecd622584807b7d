// What an importer of a run is given: the file, and what stands beside it on the command line.
#pragma once

#include <functional>
#include <optional>
#include <string>
#include <string_view>

#include "tools/foreign/runs/model_names.h"
#include "tools/foreign/runs/run_settings.h"

namespace rehearse {

struct RunSource {
  std::string_view text;
  std::string file;     // its name in messages
  std::string cluster;  // the command line's --cluster, "" if none is given
  RunSettings settings;
  std::optional<NamedModel> model;  // of --model-config
  // The text of a file that this one names, if it is there; null in a place without files.
  std::function<std::optional<std::string>(const std::string& name)> beside;
};

}  // namespace rehearse

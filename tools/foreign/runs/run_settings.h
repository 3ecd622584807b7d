// What is given beside a file of a run: NAME=VALUE, on the command line as --set.
#pragma once

#include <string>
#include <vector>

namespace rehearse {

struct RunSetting {
  std::string name;
  std::string value;
};
using RunSettings = std::vector<RunSetting>;

}  // namespace rehearse

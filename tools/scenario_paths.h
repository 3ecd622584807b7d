// What `--set` can change, for completion: the dotted paths of a scenario's values.
#pragma once

#include <string>
#include <vector>

namespace rehearse {

struct ScenarioPath {
  std::string path;                // "strategy.depth"
  std::vector<std::string> names;  // that it takes, where they are known
};

// They are sorted by path. Lists and what is inside them are left out.
std::vector<ScenarioPath> ScenarioPaths();

}  // namespace rehearse

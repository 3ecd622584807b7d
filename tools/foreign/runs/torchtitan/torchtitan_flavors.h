// The models that torchtitan knows by name and flavor, as a scenario's "model".
#pragma once

#include <string>
#include <vector>

namespace rehearse {

struct TorchtitanFlavor {
  const char* model;   // "llama3"
  const char* flavor;  // "8B"
  const char* keys;    // of a scenario's "model", as JSON: a preset if it is the same
  const char* remark;  // what is left out; "" for nothing
};
const std::vector<TorchtitanFlavor>& TorchtitanFlavors();

}  // namespace rehearse

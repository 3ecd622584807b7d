// Chakra execution traces as the file of a Schedule: exactly the one that WriteChakra() was given,
// or, for traces that others wrote, one that does the same
// (tools/foreign/traces/chakra/chakra_foreign.h).
#pragma once

#include <cstdint>
#include <string>
#include <vector>

namespace rehearse {

struct ImportedChakra {
  std::string text;  // rehearse.schedule.v1
  uint32_t ranks = 0;
  std::vector<std::string> remarks;  // what is left out, not understood, or taken for something
};

// `paths` are traces NAME.RANK.et, or NAME.RANK.json, one for each rank from 0 on, and the JSON of
// their groups; or a folder of them. Throws Error, naming file, rank, node and offset as far as
// they apply.
ImportedChakra ImportChakra(const std::vector<std::string>& paths);

}  // namespace rehearse

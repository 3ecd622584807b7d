// Reads a scenario's "strategy": which kind, its mesh and its switches.
//
// Every kind is a row of a table. Sizes must all be given, and switches unless a software stack
// sets them (scenarios/readers/software.h): nothing is silently defaulted.
#pragma once

#include <string>
#include <vector>

#include "sim/base/json_reader.h"
#include "workloads/strategies/strategy.h"

namespace rehearse {

struct StrategyKind {
  std::string name;     // "4d"
  std::string summary;  // one line for `rehearse list`
  std::string source;   // the paper
  Strategy (*read)(const JsonReader& reader, const Network& network);
  std::vector<ObjectShapeOf> tables;  // of its keys (scenarios/readers/strategy_shapes.h)
};
const std::vector<StrategyKind>& StrategyKinds();
// Of a scenario's "strategy": the tables of all kinds.
JsonShape StrategyShape();

// Throws Error for unknown kinds and keys, and for a mesh of more than 2^22 ranks.
Strategy ReadStrategy(const JsonReader& reader, const Network& network);

}  // namespace rehearse

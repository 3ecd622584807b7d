// What may be wrong where a training step is slow: a table, one row, one small file each
// (scenarios/diagnosing/step_cause_*.cc), like that of collectives
// (scenarios/diagnosing/collective_cause.h).
//
// A row changes the scenario as --set does. What a scenario cannot be changed to, as its strategy
// has no such switch or its machine no such part, is no cause there.
#pragma once

#include <optional>
#include <string>
#include <vector>

#include <nlohmann/json_fwd.hpp>

#include "topology/cluster/cluster.h"

namespace rehearse {

struct StepSubject {
  const nlohmann::json& scenario;  // as it was given, with all changes
  const Cluster& cluster;
};

struct StepCause {
  const char* name = "";               // "host-launch"
  const char* summary = "";            // "the host launches kernels too slowly"
  const char* confirm = "";            // what to look at, or to run
  std::vector<double> strengths = {};  // those that are simulated
  bool is_graded = false;              // as in scenarios/diagnosing/weighing.h
  std::string (*words)(double strength) = nullptr;
  // Changes as --set takes them; none: it cannot be here.
  std::vector<std::string> (*changes)(const StepSubject& subject, double strength) = nullptr;
  const char* of = "";     // behind the words
  bool only_adds = false;  // instead of changes: the step takes longer by this share of itself
  // Some ranks compute longer than others; nothing: they may or may not.
  std::optional<bool> ranks_differ = false;
};

// In the order of the table.
const std::vector<StepCause>& StepCauses();

}  // namespace rehearse

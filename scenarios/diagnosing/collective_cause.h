// What may be wrong where collectives are slow: a table, one row, one small file each
// (scenarios/diagnosing/cause_*.cc).
//
// A row says what the cause is called, how it changes the machine or what runs on it, how strong it
// may be, and what would confirm or refute it. Everything else works from the rows: a cause is
// simulated, its strength is fitted, and it is ranked by how well it explains a log
// (scenarios/diagnosing/log_diagnosis.h). What is wrong with one part is simulated in the first
// machine of the group: which one it is, a log of a collective cannot say.
//
// Left out, since no collective alone shows it or nothing here models it: a GPU that computes
// slowly, and rings that may not change NICs (NCCL_CROSS_NIC=0), which is how rings go here unless
// they are told otherwise.
// What comes and goes during a log is told by how its rows scatter (LogDiagnosis::noise).
#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "collectives/lowering/trial.h"
#include "topology/cluster/cluster.h"

namespace rehearse {

// What runs where: the tables of a log, one trial each.
struct CollectiveRun {
  std::shared_ptr<const Cluster> cluster;
  std::vector<Trial> trials;  // at least one
};

struct CollectiveCause {
  const char* name = "";     // "slow-cable"
  const char* summary = "";  // "the cable or port of one NIC is slow"
  const char* confirm = "";  // a command, and what to look for
  // Those that are simulated, each a little apart from its neighbours.
  std::vector<double> strengths;
  // Strengths in between are as likely; the logarithm of a time is interpolated over that of the
  // strength. Otherwise the strengths are just numbers of the ways in which it may happen.
  bool is_graded = false;
  std::string (*words)(double strength) = nullptr;  // "50 %"
  // Nothing, or an Error, where the machine or the run has nothing of the kind.
  std::optional<CollectiveRun> (*change)(const CollectiveRun& run, double strength) = nullptr;
  const char* of = "";  // behind the words: "of the bandwidth"
};

// In the order of the table.
const std::vector<CollectiveCause>& CollectiveCauses();

}  // namespace rehearse

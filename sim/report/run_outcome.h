// What weeks of training come to: "run" in result.json (scenarios/campaign/campaign.h makes it).
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "sim/base/json_fields.h"
#include "sim/base/quantity.h"

namespace rehearse {

// Over seeds: 10 % of runs are below `low`, and 10 % above `high`.
struct RunSpread {
  double median = 0;
  double low = 0;
  double high = 0;
};

// Of all the time of all runs; they add up to 1.
struct RunShares {
  double useful = 0;       // training that was kept
  double checkpoints = 0;  // training stood still for them
  double lost = 0;         // training that was done again
  double slow = 0;         // longer steps: stragglers, fewer replicas
  double detection = 0;
  double restart = 0;
  double waiting = 0;  // for a machine
};

struct RunPart {
  std::string name;
  double count = 0;          // parts
  Seconds between;           // two failures of any of them
  double interruptions = 0;  // of a run, in the mean
};

struct RunCheckpoint {
  Bytes bytes;
  Seconds copy;
  Seconds write;
  Seconds stall;
  Seconds reload;
};

struct RunInterval {
  Seconds length;
  double effective = 0;  // share of the time that is training with it
};

struct RunOutcome {
  double tokens = 0;
  std::string token_name = "tokens";
  uint64_t steps = 0;
  Seconds step;
  uint32_t machines = 0;
  uint32_t seeds = 0;
  RunSpread seconds;
  RunSpread effective;  // training over all the time
  RunSpread interruptions;
  RunSpread in_repair;    // machines at once, at most
  double stragglers = 0;  // that were found, of a run in the mean
  RunShares shares;
  std::vector<RunPart> parts;
  Seconds between;  // two failures of any part
  RunCheckpoint checkpoint;
  RunInterval used;
  RunInterval best;
  RunInterval young;
  RunInterval daly;
  std::vector<RunInterval> by_interval;
};

const Fields<RunOutcome>& RunOutcomeFields();
nlohmann::ordered_json ToJson(const RunOutcome& outcome);

}  // namespace rehearse

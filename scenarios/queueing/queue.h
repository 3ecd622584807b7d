// Jobs as they come to a cluster, simulated by events: who waits, who begins where, and how much
// slower each is for the devices that it was given and for the others that run beside it.
//
// A trace says how long its jobs ran on a machine of their own. Here a job has as many steps as its
// time has room for on the best devices of this cluster, alone (JobSteps::Best): so it takes as
// long as in the trace times what placement and sharing cost, and what it computes decides only
// these. Whenever a job begins or ends, those whose traffic meets its own go on at another pace.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "scenarios/readers/scenario.h"
#include "sim/base/progress.h"

namespace rehearse {

struct QueuedJob {
  std::string name;
  std::string user;
  uint32_t devices = 0;
  uint32_t machines = 0;  // that it is on
  double submitted = 0;   // seconds, likewise below
  double began = 0;
  double ended = 0;
  double alone = 0;         // on the best devices without others: the trace's time
  double by_placement = 1;  // times as long for where it is
  double by_sharing = 1;    // and for the others, mean over its steps

  double Waited() const { return began - submitted; }
  double Ran() const { return ended - began; }
  double SlowDown() const { return by_placement * by_sharing; }
};

struct Queue {
  std::vector<QueuedJob> jobs;  // in the order of their submission
  uint32_t devices = 0;         // of the cluster
  uint32_t unit = 0;            // devices that are given out together
  double load = 1;
  double last = 0;          // seconds, when the last one comes
  double end = 0;           // and when all have ended
  double held = 0;          // device-seconds that jobs held devices
  double held_by_last = 0;  // of these, before the last one came
  double by_placement = 0;  // of these, what the placement cost
  double by_sharing = 0;    // and the others
  uint32_t most_waiting = 0;
  // Device-seconds that were free while somebody waited for no more devices than these, which
  // were not in whole units.
  double fragmented = 0;
  uint64_t simulations = 0;
  uint64_t cut = 0;  // how often more jobs met than are simulated together
  // How many devices were held, and how many jobs waited, from each of these times on.
  struct Moment {
    double time = 0;
    uint32_t held = 0;
    uint32_t waiting = 0;
  };
  std::vector<Moment> moments;
  std::vector<std::string> notes;
};

// Throws Error for jobs that no work is for, and as PlayScenario() does. What is larger than the
// cluster is left out, and said.
Queue PlayQueue(const Scenario& scenario, ProgressObserver& observer = NoObserver());

}  // namespace rehearse

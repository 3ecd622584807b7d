// What a machine did while something was measured, and which other programs ran on it.
//
// It is read from /proc: ticks of all cores and of each process at two moments. What the kernel
// does not say, or not to this user, is left out: a container does not see the programs of others.
#pragma once

#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <vector>

#include <nlohmann/json_fwd.hpp>

#include "sim/base/quantity.h"

namespace rehearse {

struct HostSnapshot {
  int64_t at = 0;        // nanoseconds of a steady clock
  int64_t busy = 0;      // ticks of all cores, summed
  int64_t stolen = 0;    // likewise: the machine did not run
  int32_t cores = 1;     // whose ticks they are
  double load = 0;       // average of a minute
  double frequency = 0;  // Hz of the first core; 0: not told
  struct Process {
    std::string name;
    int64_t begun = 0;  // tick; numbers of processes are given again
    int64_t ticks = 0;
  };
  std::map<int, Process> processes;  // by number
};

// As of now; with another root than "", of the files below it.
HostSnapshot SnapshotOfHost(const std::string& root = "");

struct OtherProgram {
  std::string name;
  int process = 0;
  double cores = 0;  // in the mean
};

struct HostActivity {
  Seconds wall;
  double stolen = 0;  // share of the cores' time
  double others = 0;  // cores that other programs took, in the mean
  double load_before = 0;
  double load_after = 0;
  double frequency_before = 0;  // Hz; 0: not told
  double frequency_after = 0;
  std::vector<OtherProgram> programs;  // the busiest, at most three
};

// `self` is the number of this process. Other processes of its name are ranks of the same job.
HostActivity ActivityBetween(const HostSnapshot& from, const HostSnapshot& to, int self);

nlohmann::ordered_json ToJson(const HostActivity& activity);
// "ninja (process 17) took 1.5 cores, cc1plus (process 18) 0.4"; "" if nobody is known.
std::string WhoWasInTheWay(const HostActivity& activity);

// How fast the calling thread copies memory that no cache holds: the best of a few.
BytesPerSecond MeasureCopies();

}  // namespace rehearse

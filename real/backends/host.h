// The machine that a program runs on: what it is, and whether it was left alone while
// something was measured.
//
// Linux only where it says more than nothing: what the kernel does not tell is empty or zero.
#pragma once

#include <cstdint>
#include <optional>
#include <string>

#include <nlohmann/json_fwd.hpp>

#include "sim/base/quantity.h"

namespace rehearse {

struct HostMachine {
  std::string name;
  std::string processor;  // "AMD EPYC"
  uint32_t cores = 1;     // that this process and the others of its job may use
  Bytes memory;
  std::string caches;  // "L1d 48K, L2 1024K, L3 32768K"
  std::string kernel;  // "6.18.44"
};
HostMachine ThisHost();
nlohmann::ordered_json ToJson(const HostMachine& host);

// What programs may still take, as the kernel reckons; nothing where it does not say.
std::optional<Bytes> AvailableMemory();

// What may change times without being seen in a schedule: variables of OpenBLAS, MPI and OpenMP,
// how threads are scheduled and pinned, the load.
nlohmann::ordered_json ThisEnvironment();

// What the calling thread has used since it began, and what was taken from it.
struct HostUsage {
  int64_t wall = 0;           // nanoseconds of a steady clock
  int64_t processor = 0;      // nanoseconds on a core
  int64_t queued = 0;         // nanoseconds ready to run while something else ran
  int64_t stolen = 0;         // clock ticks in which the whole machine did not run, on any core
  int64_t interruptions = 0;  // involuntary switches to something else
};
HostUsage UsageNow();

// Between two moments: shares of the wall time.
struct HostShares {
  Seconds wall;
  double processor = 0;
  double queued = 0;
  bool was_stolen = false;

  // What is not lost to others: work, and waiting that the thread itself chose.
  double Kept() const { return was_stolen ? 0 : 1 - queued; }
};
HostShares SharesBetween(const HostUsage& from, const HostUsage& to);

}  // namespace rehearse

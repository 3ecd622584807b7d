// The machine that a program runs on: what it is, and whether other programs disturbed a
// measurement.
//
// It is written for Linux; what the kernel does not say is empty or zero.
#pragma once

#include <cstdint>
#include <optional>
#include <span>
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

// How much memory programs may still take by the kernel's estimate; nothing if it does not say.
std::optional<Bytes> AvailableMemory();

// What may affect times but is not in a schedule: variables of OpenBLAS, MPI and OpenMP, how
// threads are scheduled and pinned, the load.
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

// Shares of the wall time between two moments.
struct HostShares {
  Seconds wall;
  double processor = 0;
  double queued = 0;
  double stolen = 0;  // of all cores of the machine; known by ticks of 10 ms
  int64_t interruptions = 0;
  bool was_stolen = false;

  // What is not lost to other programs: work, and waiting that the thread chose itself.
  double Kept() const { return was_stolen ? 0 : 1 - queued; }
};
HostShares SharesBetween(const HostUsage& from, const HostUsage& to);

// What ranks on one machine may lose and still count as left alone: each 3 % of its time, or, if
// there are more of them than cores, so that they queue behind each other, together 10 % of the
// cores (the rest is theirs too, while they wait for each other).
inline constexpr double kLeastKept = 0.97;
inline constexpr double kLeastUsed = 0.90;
bool WereLeftAlone(std::span<const HostShares> ranks, uint32_t cores);

// The share of the time that was lost to other programs and machines: that of the rank that was
// queued longest, and what was stolen. With more ranks than cores it is at most the time that some
// rank was queued, and at most what the cores did not do for any of them.
double LostShare(std::span<const HostShares> ranks, uint32_t cores);

}  // namespace rehearse

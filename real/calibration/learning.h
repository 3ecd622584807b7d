// What one group of ranks learns about its machine by running schedules: samples of kernels and
// collectives, in place.
//
// Every probe is run in batches until enough of its steps were undisturbed by other programs
// (real/calibration/probe.h), or patience runs out; where others leave very few steps alone, no
// more batches are waited for after a while, so that it ends all the same (Haste). Of the host's
// two states (same file), the more frequent one counts; the other's samples are rejected. A
// kernel's sample is one rank's time for one op; a collective's is the time from the arrival of its
// last rank until its last rank is done.
// On GPUs a rank does one op after the other if the schedule allows it, so that each is measured
// alone, and every step counts.
#pragma once

#include <cstdint>
#include <functional>
#include <optional>
#include <string>
#include <vector>

#include "real/calibration/cost_fit.h"
#include "real/calibration/probe.h"
#include "real/transports/transport.h"

namespace rehearse {

struct NamedSchedule {
  std::string name;
  Schedule schedule;
};

// Whether to give up: so long and no step was left alone. Tests bring a clock of their own.
class GivingUp {
 public:
  explicit GivingUp(Seconds limit, std::function<int64_t()> now = nullptr);  // nanoseconds

  // Called with how many steps of a probe were left alone.
  bool IsOver(size_t kept);

 private:
  Seconds limit_;
  std::function<int64_t()> now_;
  int64_t begun_;
  bool has_kept_ = false;
};

// Whether to wait no longer for more steps: after a while in which fewer than one step in ten was
// left alone, a schedule gets one batch and no more. Over all that a command measures. Tests bring
// a clock of their own.
class Haste {
 public:
  static constexpr double kFewest = 0.1;

  explicit Haste(Seconds limit, std::function<int64_t()> now = nullptr);  // nanoseconds

  // Called with the steps of a probe, and how many of them were left alone. Once it is on, it stays
  // on: what was saved would be lost otherwise.
  void Add(size_t kept, size_t steps);
  bool IsOn() const { return is_on_; }

 private:
  Seconds limit_;
  std::function<int64_t()> now_;
  int64_t begun_;
  size_t kept_ = 0;
  size_t steps_ = 0;
  bool is_on_ = false;
};

struct LearningOptions {
  uint32_t kept = 15;             // steps to measure of each probe
  Seconds patience = Seconds(8);  // at most, for each probe
  Seconds hope = Seconds(30);     // until a first step is left alone
  Haste* haste = nullptr;         // null: patience is all that counts; rank 0's decides
  // Called on rank 0 after each schedule, with its outcome.
  std::function<void(const std::string&)> progress = nullptr;
  std::function<bool()> is_stopped = nullptr;  // asked on rank 0
  BackendFactory backend = nullptr;            // nothing: the CPU
  // The type that work is computed in, whatever its own type; nothing: in its own type.
  std::optional<DType> computes_in = DType::kFp32;
};

// How many steps of a probe counted.
struct ProbeTally {
  std::string name;
  uint32_t kept = 0;
  uint32_t disturbed = 0;    // queued behind other threads, or the machine was stolen
  uint32_t stolen = 0;       // of these, the latter
  uint32_t other_state = 0;  // of the host
  bool hurried = false;      // got one batch only
};

struct HostState {
  Seconds ping;  // median
  uint32_t steps = 0;
};

struct Learned {
  uint32_t ranks = 1;
  std::string transport;
  std::string backend;
  bool blocking = true;
  std::optional<DType> computes_in;
  std::vector<KernelSamples> kernels;
  std::vector<CollectiveSamples> collectives;  // in place, of all schedules
  std::vector<ProbeTally> probes;
  std::vector<HostState> states;  // one or two, the one that counts first
};

// All ranks call it with the same schedules; only rank 0's result counts. Schedules without an
// undisturbed step teach nothing. All ranks throw Stopped when it is stopped before all are
// measured, and Error, which says who was in the way, when hope is lost before.
Learned Learn(const std::vector<NamedSchedule>& schedules, Transport& transport,
              const LearningOptions& options);

// The two states of the host, if there are two: pings are split where the next one is at least half
// as long again and at least a tenth of them are on either side. Returns the longest ping of the
// lower state; 0 if there is only one state.
Seconds SplitStates(std::vector<Seconds> pings);

}  // namespace rehearse

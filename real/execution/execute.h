// Runs a Schedule for real: every rank calls Execute with the same schedule and options, and rank 0
// gets the measured timelines of all ranks.
//
// Steps are separated by barriers; warm-up steps come first and are kept separately. Streams become
// threads if the machine has a core for each, or if the schedule needs it (a rank that sends must
// receive at the same time); otherwise a rank does its ops one after the other, in list order.
#pragma once

#include <cstdint>
#include <functional>
#include <optional>
#include <string>
#include <vector>

#include "real/backends/backend.h"
#include "real/backends/host.h"
#include "real/transports/clock_alignment.h"
#include "real/transports/transport.h"
#include "sim/base/progress.h"
#include "sim/engine/timeline.h"
#include "sim/schedule/memory.h"
#include "sim/schedule/schedule.h"

namespace rehearse {

enum class StreamUse : uint8_t { kAuto, kBlocking, kThreads };

struct ExecutionOptions {
  uint32_t warm_ups = 2;
  uint32_t repeats = 5;
  uint64_t seed = 1;
  DType arithmetic = DType::kFp32;  // or fp64
  StreamUse streams = StreamUse::kAuto;
  BackendFactory backend = nullptr;      // nothing: the CPU in `arithmetic`
  bool poison = false;                   // memory that has not been written holds NaN
  bool repeats_untimed = false;          // also run as many steps whose ops are not timed
  bool repeats_by_graph = false;         // ... and as many that are launched as a graph
  bool watches_host = true;              // what others take of it; a GPU keeps its own time
  ProgressObserver* observer = nullptr;  // told of the steps, by rank 0
  // Asked on rank 0 after each step, if all ranks have one; true means no more steps.
  std::function<bool()> is_stopped = nullptr;
};

// One step of one rank, as it ended, for logs that are written during the run. Called between
// steps, and also for a step that failed (`failure` says how), with the ops that had ended.
struct StepOfRank {
  uint32_t number;  // from 0, warm-ups included
  bool is_warm_up;
  const std::vector<OpTime>& times;
  std::string failure;
};
using StepSink = std::function<void(const StepOfRank&)>;

// What rank 0 knows at the end; other ranks know only the first three.
struct Execution {
  bool blocking = false;  // one op after the other
  Schedule schedule;      // as it was run: on one stream if blocking
  std::string backend;    // Backend::Description
  std::vector<Timeline> warm_ups;
  std::vector<Timeline> repeats;
  uint32_t cores = 1;                         // of rank 0's host
  std::vector<std::vector<HostShares>> host;  // by repeat, then rank; empty: not watched
  std::vector<ClockMap> clocks;  // by rank, as measured; not applied if there is a common clock
  // The repeats as the host of the slowest rank saw them; then as many steps whose ops were not
  // timed, if timing them costs something, and as many replays of a graph, if there is one.
  std::vector<Seconds> walls;
  std::vector<Seconds> untimed_walls;
  std::vector<Seconds> graph_walls;
  // What arrays took, by rank, counted in the first step; empty: the backend does not count.
  std::vector<MemoryUse> memory;
  // What the library chose, by rank, then op, for ops that the library reports.
  std::vector<std::vector<LibraryChoice>> choices;

  // Whether other programs left the repeat alone; what is not known counts as such.
  bool WasLeftAlone(size_t repeat) const {
    return repeat >= host.size() || WereLeftAlone(host[repeat], cores);
  }
  size_t LeftAlone() const;  // how many of them
  // The share of the repeats' time that was lost to others; nothing if it was not watched.
  std::optional<double> Lost() const;
  // The repeat whose step time is the median (the lower one of two) of those that were left alone,
  // or of all if none was.
  const Timeline& Median() const;
};

// Throws Error for schedules that say too little to be executed, and on a full disk; RankLost if
// another rank ends early; Stopped if it is stopped before the first step that counts is done. If
// it is stopped later, there are fewer repeats.
Execution Execute(const Schedule& schedule, Transport& transport, const ExecutionOptions& options,
                  const StepSink& sink = nullptr);

// Whether ranks will do one op after the other; rank 0 decides for all.
bool DecideBlocking(const Schedule& schedule, Transport& transport, StreamUse use);

// Whether ranks are to stop here, as rank 0 decides for all. If `is_stopped` is nothing, they never
// stop; all ranks have something, or none.
bool AgreeToStop(const std::function<bool()>& is_stopped, Transport& transport);

}  // namespace rehearse

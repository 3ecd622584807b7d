// One trace of PyTorch's profiler (Kineto's Chrome-trace JSON, which may be gzipped), event by
// event: what its device did, and who launched it. Read in pieces by a streaming parser, since such
// files have gigabytes; of what ran on the host, only launches and annotations are kept.
#pragma once

#include <cstdint>
#include <deque>
#include <map>
#include <optional>
#include <string>
#include <unordered_map>
#include <vector>

#include "sim/base/clock.h"
#include "sim/base/growing_array.h"
#include "sim/schedule/schedule.h"

namespace rehearse {

// Ranks of a group as a trace lists them: PyTorch writes "[0, 1, ..., 28, ..., 63]" for many.
struct KinetoRanks {
  std::vector<uint32_t> listed;
  bool is_whole = false;
};

// What the arguments of a communication kernel say; numbers below 0 mean "not given".
struct KinetoTransfer {
  std::string collective;  // "allreduce"; "": not given
  std::string dtype;       // "BFloat16"
  std::string group;       // the process group's name
  KinetoRanks ranks;
  int64_t group_size = -1;
  int64_t in_elements = -1;
  int64_t out_elements = -1;
  int64_t sequence = -1;  // of the group
  int64_t source = -1;
  int64_t target = -1;
};

// What else Rehearse's own traces say about an event (tools/foreign/traces/kineto/kineto_write.h).
struct KinetoOwn {
  uint32_t op = 0;  // its position
  Time ready;
  std::string name;
  std::string kind;
  std::string axis;
  Phase phase = Phase::kForward;
  int32_t layer = -1;
  int32_t micro_batch = 0;
};

inline constexpr uint32_t kNotGiven = 0xffffffffu;

// Something that the device did: a kernel, a copy, a fill.
struct KinetoEvent {
  int64_t begin = 0;  // picoseconds of the trace's clock, after `base`
  int64_t end = 0;
  uint64_t offset = 0;  // about where its text ends in the file
  int64_t correlation = -1;
  uint64_t stream = 0;            // of its device
  uint32_t name = 0;              // position in `names`
  uint32_t transfer = kNotGiven;  // position in `transfers`
  uint32_t own = kNotGiven;       // position in `owns`
  bool is_copy = false;
};

// A call of the CUDA runtime or driver that has a correlation.
struct KinetoLaunch {
  int64_t at = 0;
  int64_t thread = 0;
};

// Which of its communicator's ranks the trace's device is.
struct KinetoMembership {
  uint32_t rank = 0;
  uint32_t size = 0;
};

// An annotation of the host: a ProfilerStep, or a step of an optimizer.
struct KinetoRange {
  std::string name;
  int64_t begin = 0;
  int64_t end = 0;
  int64_t thread = 0;
};

// What a user says of traces that do not say it themselves.
struct KinetoOptions {
  // Regular expressions; "": only what is known.
  std::string communication;    // of kernels and copies that communicate, beside those known to
  std::string step_name;        // of annotations that are steps, instead of ProfilerStep#N
  std::optional<int64_t> step;  // the number of the only step that is wanted
  // Of a schedule: of how many ranks it is, whose others do what those that were traced did.
  std::optional<uint32_t> extrapolate = std::nullopt;
};

// A range that says of which collective the kernels are that were launched in it (on the host's
// thread) or that ran in it (on the device's stream).
struct KinetoLabel {
  int64_t begin = 0;
  int64_t end = 0;
  int64_t thread = 0;
  uint32_t transfer = 0;  // position in `transfers`
  bool is_on_device = false;
};

// Its lists that may be long grow without being copied: what they grew out of would stay in memory.
struct KinetoTrace {
  std::string file;
  std::optional<uint32_t> rank;
  std::optional<uint32_t> world;
  std::map<std::string, KinetoRanks> groups;            // pg_config, by name
  std::map<std::string, KinetoMembership> memberships;  // by name; only in Nsight Systems' reports
  std::string title;
  bool is_own = false;  // Rehearse wrote it: all ranks have one clock
  bool is_simulated = false;
  int64_t base = 0;               // microseconds
  std::deque<std::string> names;  // of events
  std::deque<KinetoTransfer> transfers;
  std::deque<KinetoOwn> owns;
  GrowingArray<KinetoEvent> events;                    // in the order of the file
  std::unordered_map<int64_t, KinetoLaunch> launches;  // by correlation
  std::vector<KinetoRange> steps;                      // ProfilerStep#N
  std::vector<KinetoRange> updates;                    // Optimizer.step
  std::vector<int64_t> backward_threads;               // autograd's
  GrowingArray<KinetoLabel> labels;                    // of kernels that do not say it themselves
  std::map<std::string, uint64_t> not_used;            // by category: how many
  uint64_t bytes = 0;                                  // of its text, unpacked
};

// Throws Error, naming the file, the rank where it is known, and the byte (of the unpacked text).
KinetoTrace ReadKineto(const std::string& path, const KinetoOptions& options = {});

// "rank-0.json: rank 0, event "ncclDevKernel" at byte 4711"
std::string KinetoPlace(const KinetoTrace& trace, const KinetoEvent& event);

}  // namespace rehearse

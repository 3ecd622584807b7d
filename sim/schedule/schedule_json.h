// A Schedule as a file, "rehearse.schedule.v1": written by `rehearse plan`, or by hand. All that
// sim/schedule/schedule.h means is in it; what was written is read as the very same Schedule, and
// written again it is the same bytes. sim/schedule/README.md tells the format, with an example.
//
//   {
//     "schema": "rehearse.schedule.v1",
//     "name": "...", "description": "...",          both optional
//     "ranks": 8,
//     "role_of_rank": [["first", 4], ["last", 4]],  runs, again and again until each rank has one;
//                                                   left out: one role
//     "facts": {"model_flops": "1TFLOP", "hardware_flops": "1TFLOP", "tokens": 8192,
//               "token_name": "tokens"},            optional
//     "communicators": [
//       {"name": "all", "ranks": "all"},            one group: "all", "0-3,6", [0, 1]
//       {"name": "pairs", "groups": ["0-1", [2, 3]]},                       several, as listed
//       {"name": "row", "mesh": {"members": [[4, 1]], "groups": [[2, 4]]}}  [extent, stride] of
//     ],                                                                    axes, first one fastest
//     "roles": [{"name": "first", "streams": [...], "regions": [...], "buffers": [...],
//                "ops": [...], "repeats": [...]}, ...]
//                                                   where there is one role, its keys may stand
//                                                   here instead
//   }
//
// Roles, communicators, streams, buffers and ops are named where they are referred to: by name, or
// by their place in the list, from 0. A name must then be that of one thing only; but of ops it is
// the nearest earlier one of that name.
//
// An op is {"name": ..., and what it does:
//   "duration": "3ms"                                   on any device
//   "gemm": {"m": 1, "n": 1, "k": 1, "mode": "NN", "batch": 1}
//     mode and batch may be left out; also: "tuned": "NT" (Compute::tuned)
//   "compute": "attention" and "flops", "compute": "memory" and "bytes"
//     all four also: "kernel", "dtype" (bf16), "flops", "bytes", "kernels" (1), "attributes"
//   "collective": "all-reduce", "communicator": "all", "bytes": "64MiB",
//     also: "dtype" (bf16), "reduction" (sum), "algorithm" (ring), "protocol" (none), "root" (0),
//     "pair_bytes"
//   "send_to": 1, "communicator": "pairs", "bytes": "1MiB"
//     a member of the rank's group; or "receive_from"
// and where it stands: "stream", "after", "reads", "writes", "phase" (forward), "layer" (-1),
// "micro_batch" (0)}. In brackets: what holds where it is left out. The stream is then "compute",
// or has the communicator's name. A role without "streams" has those that its ops name, in order of
// their first op, which says what kind they are.
#pragma once

#include <string>

#include "sim/base/json_reader.h"
#include "sim/schedule/schedule.h"

namespace rehearse {

// What a file says about a schedule besides; both may be empty.
struct ScheduleTitle {
  std::string name;
  std::string description;
};

// Whether the document says that it is a schedule, of this version or another, and no scenario.
bool IsSchedule(const nlohmann::json& document);

// The schedule must be one that CheckSchedule accepts.
std::string WriteSchedule(const Schedule& schedule, const ScheduleTitle& title = {});

// The whole document. Throws Error with the place of every mistake, those that CheckSchedule and
// CheckBuffers find included.
Schedule ReadSchedule(const JsonReader& document);
ScheduleTitle ReadScheduleTitle(const JsonReader& document);

}  // namespace rehearse

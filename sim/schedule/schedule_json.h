// A Schedule as a file, "rehearse.schedule.v1": written by `rehearse plan`, or by hand. All that
// sim/schedule/schedule.h means is in it; what was written is read as the very same Schedule, and
// written again it is the same bytes. sim/schedule/README.md lists the keys, with an example.
//
//   {
//     "schema": "rehearse.schedule.v1",
//     "name": "...", "description": "...",          both optional
//     "ranks": 8,
//     "role_of_rank": [["first", 4], ["last", 4]],  runs, gone through until each rank has a role
//     "facts": {"model_flops": "1TFLOP", "tokens": 8192, ...},                   optional
//     "communicators": [{"name": "all", "ranks": "all"},                         one group
//                       {"name": "pairs", "groups": ["0-1", [2, 3]]},            as listed
//                       {"name": "row", "mesh": {"members": [[4, 1]],            [extent, stride]
//                                                "groups": [[2, 4]]}}],
//     "roles": [{"name": "first", "streams": [...], "regions": [...], "buffers": [...],
//                "ops": [...], "repeats": [...]}, ...]
//   }
//
// Where there is one role, its keys may stand beside the others instead. Roles, communicators,
// streams, buffers and ops are referred to by name, or by their place in the list, from 0. A name
// must then be that of one thing only; but of ops it is the nearest earlier one of that name.
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
Schedule ReadSchedule(const JsonReader& object);
ScheduleTitle ReadScheduleTitle(const JsonReader& document);

}  // namespace rehearse

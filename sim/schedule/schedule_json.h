// A Schedule as a file, "rehearse.schedule.v1": written by `rehearse plan`, or by hand. It holds
// everything in a Schedule (sim/schedule/schedule.h): what was written is read back as the very
// same Schedule, and writing it again gives the same bytes. sim/schedule/README.md lists the keys,
// with an example.
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
// If there is only one role, its keys may stand beside the others instead. Roles, communicators,
// streams, buffers and ops are referred to by name, or by their place in the list, from 0. A name
// must then be unique, except that an op's name means the nearest earlier op of that name.
#pragma once

#include <string>

#include "sim/base/json_reader.h"
#include "sim/schedule/schedule.h"

namespace rehearse {

// What else a file says about a schedule; both may be empty.
struct ScheduleTitle {
  std::string name;
  std::string description;
};

// Whether the document says that it is a schedule, of this version or another, and not a scenario.
bool IsSchedule(const nlohmann::json& document);

// The schedule must be one that CheckSchedule accepts.
std::string WriteSchedule(const Schedule& schedule, const ScheduleTitle& title = {});
// The same; a role's ops are gone once they are written, so that millions never lie there beside
// the whole text.
std::string WriteSchedule(Schedule&& schedule, const ScheduleTitle& title = {});

// Reads the whole document. Throws Error with the place of any mistake, including those that
// CheckSchedule and CheckBuffers find.
Schedule ReadSchedule(const JsonReader& object);
ScheduleTitle ReadScheduleTitle(const JsonReader& document);

}  // namespace rehearse

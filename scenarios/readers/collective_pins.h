// Which algorithm and protocol a scenario's collectives use, as NCCL_ALGO and NCCL_PROTO would set
// them:
//
//   "simulator": {"algorithm": "auto", "protocol": "auto", "nccl": "2.28",
//                 "collectives": [{"kind": "all-reduce", "axis": "data", "algorithm": "tree"},
//                                 ...]}
//
// An algorithm is a row of collectives/algorithms/algorithm.h or "auto", a protocol "ll",
// "ll128", "simple", "none" (bare links) or "auto" (collectives/lowering/tuning.h says how these
// are chosen); both are "auto" unless given. "protocol": "none" alone means rings on bare links,
// and something equally plain for the other kinds. Schedules read from a file run as they say.
// "nccl" is the release of NCCL that chooses, "nvls" whether it may sum in switches
// (collectives/nccl/nccl_version.h). Entries of "collectives" are for one kind, one axis of the
// mesh (the name of a communicator), or both, and override what stands above them: of several that
// fit, the last counts.
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "sim/base/json_reader.h"
#include "sim/schedule/schedule.h"

namespace rehearse {

// Rows and shape for the tables that have them.
JsonKey PinnedAlgorithm();
JsonKey PinnedProtocol();
JsonShape PinsShape();

struct CollectivePin {
  std::optional<CollectiveKind> kind;  // nothing: every kind
  std::string axis;                    // "": every axis
  std::optional<Bytes> bytes;          // nothing: every size; no scenario says one
  AlgorithmId algorithm = AlgorithmId::kAuto;
  Protocol protocol = Protocol::kAuto;
  Place place;
};

// From the object "simulator". Throws Error for unknown names and for algorithms that cannot do the
// kind.
std::vector<CollectivePin> ReadCollectivePins(const JsonReader& simulator);

// Whether the pin is about collectives of this kind on this axis; sizes are not asked for.
bool Fits(const CollectivePin& pin, CollectiveKind kind, const std::string& axis);

// For a planned schedule: makes every collective "auto".
void LeaveToLibrary(Schedule* schedule);

// Throws Error, at the pin, for an axis that the schedule does not have and for collectives that
// the algorithm cannot do.
void ApplyCollectivePins(const std::vector<CollectivePin>& pins, Schedule* schedule);

}  // namespace rehearse

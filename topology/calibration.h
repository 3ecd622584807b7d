// A calibration: the figures of a machine that measurements imply, as a file.
//
//   { "schema": "rehearse.calibration.v1",
//     "cluster": "dgx-a100",                                 what it was fitted with; for the reader
//     "links": [ {"kind": "nvlink", "bandwidth": "300GBps", "efficiency": 0.742} ],
//     "collective_overhead": "26.8us",
//     "fit": { ... } }                                       of which samples, with which errors; for the reader
//
// Each entry of "links" gives the links of one kind and nominal bandwidth their efficiency; "collective_overhead" is
// what every collective takes besides its steps. Either may be missing. Used by `--calibration FILE`, or in a cluster
// file as "calibration": "FILE" (relative to that file) or the object itself, before its "edits".
#pragma once

#include <optional>
#include <string>
#include <vector>

#include <nlohmann/json.hpp>

#include "sim/json_reader.h"
#include "topology/cluster.h"

namespace rehearse {

struct LinkCalibration {
  LinkKind kind = LinkKind::kNetwork;
  BytesPerSecond bandwidth;  // nominal: which links are meant
  double efficiency = 1;     // in (0, 1]
  Place place;               // where the user wrote it
};

struct Calibration {
  std::string cluster;
  std::vector<LinkCalibration> links;
  std::optional<Seconds> collective_overhead;
  nlohmann::ordered_json fit;  // null: not told
};

inline constexpr const char* kCalibrationSchema = "rehearse.calibration.v1";

// The object, or a string with the path of a file that holds it.
Calibration ReadCalibration(const JsonReader& reader);
Calibration ReadCalibrationFile(const std::string& path);

nlohmann::ordered_json ToJson(const Calibration& calibration);

// Gives a finished cluster these figures. Throws Error, at the entry, when it has no such link.
void ApplyCalibration(Cluster& cluster, const Calibration& calibration);

}  // namespace rehearse

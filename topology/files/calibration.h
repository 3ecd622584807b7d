// A calibration: the figures of a machine that measurements imply, as a file.
//
//   { "schema": "rehearse.calibration.v1",
//     "cluster": "dgx-a100",                    what it was fitted with; for the reader
//     "about": { "machine": {"processor": "AMD EPYC", "cores": 2}, "date": ...,
//                "representative": true, ... },
//     "links": [ {"kind": "nvlink", "bandwidth": "300GBps", "efficiency": 0.742} ],
//     "collective_overhead": "26.8us", "channel_overhead": "1.3us",
//     "host_cores": 2,                          that the ranks of a machine share
//     "launch_overhead": "2.1us",               of kernels that were not measured
//     "slowdown": {"gemm": 0, ...},             topology/files/device_file.h
//     "kernels": {...}, "collectives": {...},   topology/devices/measured_costs_json.h
//     "samples": [ ... ],                       what was measured, rejected ones counted, and
//     "fit": { ... } }                          how well it fits; both for the reader
//
// Each entry of "links" gives the links of one kind and nominal bandwidth their efficiency;
// "collective_overhead" and "channel_overhead" are what launching takes, once and for each channel
// (collectives/lowering/tuning.h); "kernels" say what compute takes on every device and
// "collectives" what communication does instead of its steps. All may be missing, but not all at
// once. Used by `--calibration FILE`, or in a cluster file as "calibration": "FILE" (relative to
// that file) or the object itself, before its "edits". Any other schema, such as a newer one, is
// refused.
#pragma once

#include <memory>
#include <optional>
#include <string>
#include <vector>

#include <nlohmann/json.hpp>

#include "sim/base/json_reader.h"
#include "topology/cluster/cluster.h"

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
  std::optional<Seconds> channel_overhead;
  double host_cores = 0;  // 0: not given
  std::optional<Seconds> launch_overhead;
  std::optional<Slowdown> slowdown;
  std::optional<MeasuredKernels> kernels;
  // The entry for as many ranks as the machine has counts.
  std::vector<MeasuredCollectives> collectives;
  CalibrationOrigin origin;
  nlohmann::ordered_json about;  // null: not given, as below
  nlohmann::ordered_json samples;
  nlohmann::ordered_json fit;  // null: not given
};

inline constexpr const char* kCalibrationSchema = "rehearse.calibration.v1";

// What machines are called when calibrations are compared with where they are used.
std::string MachineName(const std::string& processor, uint32_t cores);

const ObjectShape& CalibrationShape();
JsonShape CalibrationInputShape();  // the object, or a path

// The object, or a string with the path of a file that holds it.
Calibration ReadCalibration(const JsonReader& reader);
Calibration ReadCalibrationFile(const std::string& path);

nlohmann::ordered_json ToJson(const Calibration& calibration);

// The cluster with these figures. Throws Error, at the entry, when it has no such link.
std::unique_ptr<Cluster> ApplyCalibration(const Cluster& cluster, const Calibration& calibration);

}  // namespace rehearse

#include "scenarios/readers/cluster_cache.h"

#include <nlohmann/json.hpp>

#include "topology/files/calibration.h"
#include "topology/files/cluster_file.h"
#include "topology/files/device_points_file.h"
#include "topology/files/edits.h"

namespace rehearse {
namespace {

// Each may be as large as a machine of many thousands of devices.
constexpr size_t kMostKeptClusters = 256;

}  // namespace

ReadyCluster ReadReadyCluster(const JsonReader& scenario) {
  ReadyCluster cluster;
  cluster.nominal = ReadCluster(scenario.At("cluster"));
  cluster.ready = cluster.nominal;
  if (scenario.Has("calibration"))
    cluster.ready = ApplyCalibration(*cluster.ready, ReadCalibration(scenario.At("calibration")));
  if (scenario.Has("device_points"))
    cluster.ready =
        ApplyDevicePoints(*cluster.ready, ReadDevicePoints(scenario.At("device_points")));
  if (scenario.Has("edits"))
    cluster.ready = ApplyEdits(*cluster.ready, ReadEdits(scenario.At("edits")));
  return cluster;
}

ReadyCluster ClusterCache::Read(const JsonReader& scenario, const nlohmann::json& given) {
  nlohmann::json key;
  for (const char* part : {"cluster", "calibration", "device_points", "edits"})
    if (given.contains(part)) key[part] = given[part];
  const std::lock_guard lock(mutex_);
  const std::string name = key.dump();
  const auto known = kept_.find(name);
  if (known != kept_.end()) {
    for (const InputFile& file : known->second.files) NoteInput(file);
    for (const JsonChange& change : known->second.changes) NoteChange(change);
    return known->second.cluster;
  }
  const InputRecord inputs;
  Kept made = {.cluster = ReadReadyCluster(scenario)};
  made.files = inputs.files();
  made.changes = inputs.changes();
  if (kept_.size() >= kMostKeptClusters) kept_.clear();
  return kept_.emplace(name, std::move(made)).first->second.cluster;
}

}  // namespace rehearse

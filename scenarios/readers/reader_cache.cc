#include "scenarios/readers/reader_cache.h"

#include <utility>

#include <nlohmann/json.hpp>

#include "topology/files/calibration.h"
#include "topology/files/cluster_file.h"
#include "topology/files/device_points_file.h"
#include "topology/files/edits.h"

namespace rehearse {
namespace {

// Each may be as large as a machine of many thousands of devices.
constexpr size_t kMostKeptClusters = 256;
constexpr size_t kMostKeptModels = 64;

template <typename Item>
void Append(const std::vector<Item>& items, std::vector<Item>* to) {
  to->insert(to->end(), items.begin(), items.end());
}

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

ReadyCluster ReaderCache::ClusterOf(const JsonReader& scenario, const nlohmann::json& given) {
  nlohmann::json key;
  for (const char* part : {"cluster", "calibration", "device_points", "edits"})
    if (given.contains(part)) key[part] = given[part];
  const std::lock_guard lock(mutex_);
  const std::string name = key.dump();
  const auto known = kept_.find(name);
  InputRecord& record = *scenario.FilesOfDocument().record;
  if (known != kept_.end()) {
    Append(known->second.inputs.files, &record.files);
    Append(known->second.inputs.changes, &record.changes);
    return known->second.cluster;
  }
  const InputRecord before = std::exchange(record, {});
  Kept made = {.cluster = ReadReadyCluster(scenario), .inputs = record};
  record = before;
  Append(made.inputs.files, &record.files);
  Append(made.inputs.changes, &record.changes);
  if (kept_.size() >= kMostKeptClusters) kept_.clear();
  return kept_.emplace(name, std::move(made)).first->second.cluster;
}

ModelAndTraining ReaderCache::ModelOf(const JsonReader& model, const JsonReader& training) {
  if (!model.IsObject() || model.value().contains("file"))
    return ReadModelAndTraining(model, training);
  const std::string name = model.value().dump() + training.value().dump();
  {
    const std::lock_guard lock(mutex_);
    const auto known = models_.find(name);
    if (known != models_.end()) return known->second;
  }
  ModelAndTraining read = ReadModelAndTraining(model, training);
  const std::lock_guard lock(mutex_);
  if (models_.size() >= kMostKeptModels) models_.clear();
  models_.emplace(name, read);
  return read;
}

}  // namespace rehearse

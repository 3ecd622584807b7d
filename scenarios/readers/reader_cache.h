// The machines and networks of scenarios that are read one after the other; each is made once.
#pragma once

#include <map>
#include <memory>
#include <mutex>
#include <string>
#include <vector>

#include "scenarios/readers/model_reader.h"
#include "sim/base/input_record.h"
#include "sim/base/json_reader.h"
#include "topology/cluster/cluster.h"

namespace rehearse {

// A scenario's "cluster", alone and with its calibration, points and edits.
struct ReadyCluster {
  std::shared_ptr<const Cluster> nominal;
  std::shared_ptr<const Cluster> ready;
};
// Throws Error as the readers of these keys do.
ReadyCluster ReadReadyCluster(const JsonReader& scenario);

// Keeps some hundreds of the machines that it has read, and some of the networks. May be used from
// several threads. Files that scenarios name are read once: later changes to them are not seen. The
// record of a scenario (sim/base/input_record.h) notes them each time.
class ReaderCache {
 public:
  // `scenario` is the root of a document whose value is `given` (JsonDocument::Given()), and which
  // has a record.
  ReadyCluster ClusterOf(const JsonReader& scenario, const nlohmann::json& given);
  // As ReadModelAndTraining(). Models from files are read each time.
  ModelAndTraining ModelOf(const JsonReader& model, const JsonReader& training);

 private:
  struct Kept {
    ReadyCluster cluster;
    InputRecord inputs = {};  // that it was read from
  };

  std::mutex mutex_;
  std::map<std::string, Kept> kept_;
  std::map<std::string, ModelAndTraining> models_;  // by what the scenario says about both
};

}  // namespace rehearse

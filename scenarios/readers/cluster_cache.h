// The machines of scenarios that are read one after the other; each is made once.
#pragma once

#include <map>
#include <memory>
#include <mutex>
#include <string>
#include <vector>

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

// Keeps some hundreds of the machines that it has read. May be used from several threads. Files
// that scenarios name are read once: later changes to them are not seen. An InputRecord
// (sim/base/input_record.h) notes them each time.
class ClusterCache {
 public:
  // `scenario` is the root of a document whose value is `given` (JsonDocument::Given()).
  ReadyCluster Read(const JsonReader& scenario, const nlohmann::json& given);

 private:
  struct Kept {
    ReadyCluster cluster;
    std::vector<InputFile> files = {};  // that it was read from
    std::vector<JsonChange> changes = {};
  };

  std::mutex mutex_;
  std::map<std::string, Kept> kept_;
};

}  // namespace rehearse

// Where the equal layers of networks begin, for those who play many steps of few networks. Points
// of a search share theirs (scenarios/readers/reader_cache.h), and comparing all its layers takes
// as long as a tenth of planning a few.
#pragma once

#include <memory>
#include <mutex>
#include <optional>
#include <vector>

#include "workloads/networks/network.h"
#include "workloads/planner/fewer_layers.h"

namespace rehearse {

// May be used from several threads. Keeps some of the networks that it is asked about.
class LayerMemory {
 public:
  // Never null; what it points to is FindEqualLayers() of the network.
  std::shared_ptr<const std::optional<LayerBegins>> Of(
      const std::shared_ptr<const Network>& network);

 private:
  struct Known {
    std::shared_ptr<const Network> network;
    std::shared_ptr<const std::optional<LayerBegins>> begins;
  };

  std::mutex mutex_;
  std::vector<Known> known_;  // what was found last comes last
};

}  // namespace rehearse

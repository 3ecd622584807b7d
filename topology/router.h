// Deterministic routes between devices.
//
// A route never passes through another device. Of all paths it takes the one with the smallest total
// latency, then the fewest links, then the fewest NICs that belong to neither end, then the smallest vertex
// ids (and of parallel links the smallest index) read from the source: so NVLink beats PCIe and a GPU uses
// its nearest NIC. Where several NICs are equally near to several devices, each device owns one of them in
// turn (two GPUs and two NICs on one PCIe switch: a NIC each), as NCCL deals them.
// Links of kind "memory" are part of a path like any other. Found by a bidirectional search that touches
// only the neighbourhood of both ends, and remembered: there is no all-pairs table. A Router is not
// thread-safe (it remembers); its Cluster must outlive it.
#pragma once

#include <cstddef>
#include <cstdint>
#include <map>
#include <memory>
#include <utility>
#include <vector>

#include "topology/cluster.h"

namespace rehearse {

struct Route {
  std::vector<uint32_t> links;  // indices of Cluster links, source first
  Seconds latency;              // sum over the links
  BytesPerSecond bandwidth;     // the narrowest link's capacity
  bool crosses_nodes = false;
};

class Router {
 public:
  explicit Router(const Cluster& cluster);
  ~Router();
  Router(const Router&) = delete;
  Router& operator=(const Router&) = delete;

  // From one rank's device to another's. CHECKs that they differ. The reference stays valid as long as the
  // Router.
  const Route& Between(uint32_t from_rank, uint32_t to_rank);

  const Cluster& cluster() const { return cluster_; }
  // Links that all searches so far have looked at: the work done, for tests and benchmarks.
  size_t links_scanned() const;

 private:
  class Search;

  const Cluster& cluster_;
  std::unique_ptr<Search> search_;
  std::map<std::pair<uint32_t, uint32_t>, Route> routes_;
};

}  // namespace rehearse

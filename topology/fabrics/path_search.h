// Searches for paths between vertices of a cluster.
//
// Inside a machine a path is, of all that pass through no other device, one of the nearest class
// (topology/fabrics/path_class.h); of these, one whose narrowest link is widest, by powers of two,
// since nobody goes round a link that is a little slower; of these the one with the smallest total
// latency, then the fewest links, then the fewest NICs that belong to neither end, then the
// smallest vertex ids (and of parallel links the smallest index) read from the source. To another
// machine it leads to the sender's own NIC and from the receiver's, inside as above, and between
// them by latency. If nothing else leads there it may pass through devices, over NVLink or xGMI
// alone, as NCCL does on meshes (its PATH_NVB): by latency, then by width. If that does not reach
// either, as where a NIC that hung on its device is down, it may begin and end over NVLink or xGMI
// by way of other devices of the machine, as NCCL's PXN: the one with the fewest links.
//
// Bandwidths and latencies are those that the cluster was drawn with (topology/cluster/wiring.h):
// what-if edits make links slower or faster, and routes stay what they are. A search touches only
// the neighbourhood of both ends. Not thread-safe (it remembers); its Cluster must outlive it.
#pragma once

#include <cstddef>
#include <cstdint>
#include <map>
#include <memory>
#include <utility>
#include <vector>

#include "topology/cluster/cluster.h"

namespace rehearse {

class PathSearch {
 public:
  explicit PathSearch(const Cluster& cluster);
  ~PathSearch();
  PathSearch(const PathSearch&) = delete;
  PathSearch& operator=(const PathSearch&) = delete;

  // The links from one rank's device to another's, source first. `without` by link, or empty; no
  // links if nothing leads round these. Takes the NICs whose turn it is among those that the ranks
  // own. Throws Error if there is no way and nothing is left out.
  std::vector<uint32_t> BetweenRanks(uint32_t from_rank, uint32_t to_rank,
                                     const std::vector<bool>& without = {}, uint32_t turn = 0);

  // Between any two vertices, whose own NICs are given (kNoVertex: none).
  std::vector<uint32_t> Between(VertexId source, VertexId target, VertexId source_nic,
                                VertexId target_nic, const std::vector<bool>& without = {});

  // The NICs that the rank owns. Found machine by machine when first asked for.
  const std::vector<VertexId>& NicsOf(uint32_t rank);

  // How many links all searches so far have looked at: the work done, for tests and benchmarks.
  size_t links_scanned() const { return links_scanned_; }

 private:
  class Meeting;

  // Whether nothing but the network joins the two.
  bool AreApart(VertexId a, VertexId b);
  // Of the nearest class below the network; no links if there is no such path.
  std::vector<uint32_t> Inside(VertexId source, VertexId target, VertexId source_nic,
                               VertexId target_nic, const std::vector<bool>& without);
  std::vector<uint32_t> Across(VertexId source, VertexId target, VertexId source_nic,
                               VertexId target_nic, const std::vector<bool>& without);
  std::vector<uint32_t> ThroughDevices(VertexId source, VertexId target,
                                       const std::vector<bool>& without);
  std::vector<uint32_t> ByProxies(VertexId source, VertexId target, VertexId source_nic,
                                  VertexId target_nic, const std::vector<bool>& without);
  void SortByNode();

  const Cluster& cluster_;
  std::unique_ptr<Meeting> meeting_;
  std::vector<std::vector<uint32_t>> ranks_of_node_;
  std::vector<bool> owners_known_;                 // by node
  std::vector<std::vector<VertexId>> owned_nics_;  // by rank
  std::vector<uint32_t> island_;  // by vertex: what only the network joins; empty until needed
  std::map<std::pair<VertexId, VertexId>, std::vector<uint32_t>> inside_;  // nothing left out
  size_t links_scanned_ = 0;
};

}  // namespace rehearse

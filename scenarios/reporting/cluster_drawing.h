// A cluster as a page draws it: topology/view/cluster_layout.h as JSON, with the links of a
// timeline that each drawn line stands for.
#pragma once

#include <cstdint>
#include <map>
#include <memory>
#include <string>
#include <unordered_map>
#include <vector>

#include <nlohmann/json.hpp>

#include "topology/cluster/cluster.h"

namespace rehearse {

// `record_of_way`: for each link or trunk of the cluster, a number to write, or kNotDrawn.
inline constexpr uint32_t kNotDrawn = 0xffffffffu;

// One cluster's drawing, for several steps on it.
//
// {"width", "height", "nodes": [[x, y, w, h, label]], "boxes": [[x, y, w, h, kind, label, title,
//  dots]], "links": [{"path", "kind", "count", "title", "records": [...]}], "captions": [[x, y,
//  text]]}; lines of several equal links have the numbers of all of them.
class ClusterDrawing {
 public:
  explicit ClusterDrawing(std::shared_ptr<const Cluster> drawn);

  const Cluster& cluster() const { return *cluster_; }
  nlohmann::ordered_json With(const std::vector<uint32_t>& record_of_way);

 private:
  uint64_t PairOfTitle(const std::string& title);
  uint32_t BoxOf(VertexId vertex);
  void Note(uint32_t link, uint32_t record);

  const std::shared_ptr<const Cluster> cluster_;
  nlohmann::ordered_json drawing_;  // without records
  std::map<std::string, std::string> shown_by_;
  std::unordered_map<std::string, uint32_t> box_of_title_;
  std::vector<uint32_t> box_of_vertex_;                          // as far as it was asked for
  std::vector<uint64_t> pair_of_drawn_;                          // of boxes, by drawn link
  std::unordered_map<uint64_t, std::vector<uint32_t>> records_;  // by pair that a link joins
};

}  // namespace rehearse

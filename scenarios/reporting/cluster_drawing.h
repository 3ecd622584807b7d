// A cluster as a page draws it: topology/view/cluster_layout.h as JSON, with the links of a
// timeline that each drawn line stands for.
#pragma once

#include <cstdint>
#include <vector>

#include <nlohmann/json.hpp>

#include "topology/cluster/cluster.h"

namespace rehearse {

// `record_of_way`: for each link or trunk of the cluster, a number to write, or kNotDrawn.
inline constexpr uint32_t kNotDrawn = 0xffffffffu;

// {"width", "height", "nodes": [[x, y, w, h, label]], "boxes": [[x, y, w, h, kind, label, title,
//  dots]], "links": [{"path", "kind", "count", "title", "records": [...]}], "captions": [[x, y,
//  text]]}; lines of several equal links have the numbers of all of them.
nlohmann::ordered_json DrawCluster(const Cluster& cluster,
                                   const std::vector<uint32_t>& record_of_way);

}  // namespace rehearse

// A cluster as a person looks at it: what is there, the way between two devices, how near devices
// are to each other; as text, as JSON and as rows. Pictures are in topology/view/cluster_svg.h and
// topology/view/cluster_dot.h. All functions are pure.
#pragma once

#include <optional>
#include <string>
#include <vector>

#include <nlohmann/json_fwd.hpp>

#include "sim/report/data_table.h"
#include "topology/cluster/cluster.h"
#include "topology/cluster/grid.h"
#include "topology/fabrics/communication_matrix.h"
#include "topology/fabrics/router.h"

namespace rehearse {

// ---- What is there ------------------------------------------------------------------------------

// Links that are alike: of one kind, between the same kinds of vertices, with the same figures.
struct LinkGroup {
  LinkKind kind = LinkKind::kNetwork;
  VertexKind low = VertexKind::kDevice;  // in the order of VertexKind
  VertexKind high = VertexKind::kDevice;
  BytesPerSecond bandwidth;  // nominal, one direction
  double efficiency = 1;
  Seconds latency;
  uint32_t up = 0;  // links from low to high; between equal kinds, from the smaller vertex id
  uint32_t down = 0;
};

struct ClusterSummary {
  std::string name;
  uint32_t devices = 0;
  uint32_t nodes = 0;
  std::vector<std::pair<DeviceSpec, uint32_t>> device_kinds;  // with how many there are
  std::vector<std::pair<VertexKind, uint32_t>>
      vertices;  // which kinds there are, with how many of each
  std::vector<LinkGroup> links;
  std::string routing;  // among the fabric's equal ways; "" if there are none
  std::optional<Grid> grid;
  std::optional<BytesPerSecond> bisection;  // not computed for more than kMostForBisection devices
  size_t rings = 0;                         // given rings of a machine
  Seconds step_overhead;
  Seconds collective_overhead;
  Seconds channel_overhead;
  std::vector<std::string> notes;
};

inline constexpr uint32_t kMostForBisection = 16384;

ClusterSummary SummarizeCluster(const Cluster& cluster);
std::string ToText(const ClusterSummary& summary);
nlohmann::ordered_json ToJson(const ClusterSummary& summary);
// A row for links that are alike.
DataTable TableOf(const ClusterSummary& summary);

// ---- One path -----------------------------------------------------------------------------------

std::string PathText(Router& router, uint32_t from_rank, uint32_t to_rank);
nlohmann::ordered_json PathJson(Router& router, uint32_t from_rank, uint32_t to_rank);
DataTable PathTable(Router& router, uint32_t from_rank, uint32_t to_rank);  // one row per hop

// ---- All pairs ----------------------------------------------------------------------------------

struct MatrixView {
  PairwiseMatrix pairs;
  std::vector<uint32_t> hierarchy_ranks;  // the ranks in the hierarchical matrix
  CommunicationMatrix hierarchy;
  std::optional<BytesPerSecond> bisection;  // of the whole cluster
};

std::string ToText(const MatrixView& view, const Cluster& cluster);
nlohmann::ordered_json ToJson(const MatrixView& view, const Cluster& cluster);
// A row for each ordered pair of different ranks.
DataTable TableOf(const MatrixView& view, const Cluster& cluster);

}  // namespace rehearse

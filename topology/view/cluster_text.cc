// Clusters as text; see topology/view/cluster_view.h.
#include <algorithm>

#include <fmt/format.h>

#include "sim/base/units.h"
#include "sim/base/visible_text.h"
#include "topology/view/cluster_view.h"

namespace rehearse {
namespace {

// Columns as wide as they need to be, two spaces apart; the first `left` columns are flush left.
class AlignedTable {
 public:
  explicit AlignedTable(size_t left) : left_(left) {}

  void Row(std::vector<std::string> cells) {
    for (std::string& cell : cells) cell = VisibleText(cell);
    rows_.push_back(std::move(cells));
  }

  std::string Text() const {
    std::vector<size_t> widths;
    for (const auto& row : rows_) {
      widths.resize(std::max(widths.size(), row.size()));
      for (size_t i = 0; i < row.size(); ++i) widths[i] = std::max(widths[i], row[i].size());
    }
    std::string text;
    for (const auto& row : rows_) {
      std::string line;
      for (size_t i = 0; i < row.size(); ++i)
        line += i < left_ ? fmt::format("  {:<{}}", row[i], widths[i])
                          : fmt::format("  {:>{}}", row[i], widths[i]);
      line.erase(line.find_last_not_of(' ') + 1);
      text += line + "\n";
    }
    return text;
  }

 private:
  size_t left_;
  std::vector<std::vector<std::string>> rows_;
};

std::string Counted(uint32_t count, const char* what) {
  return fmt::format("{} {}{}", count, what, count == 1 ? "" : "s");
}

std::string GridText(const Grid& grid) {
  std::string sizes;
  for (const uint32_t size : grid.sizes)
    sizes += fmt::format("{}{}", sizes.empty() ? "" : " x ", size);
  const auto rings = std::count(grid.wraps.begin(), grid.wraps.end(), true);
  if (rings == 0) return "a mesh of " + sizes;
  if (grid.sizes.size() == 1) return "a ring of " + sizes;
  return fmt::format("a torus of {}", sizes);
}

std::string Gigabytes(BytesPerSecond bandwidth) {
  constexpr double kGiga = 1e9;
  return fmt::format("{:.4g}", bandwidth.value() / kGiga);
}

std::string Microseconds(Seconds latency) {
  constexpr double kMicro = 1e6;
  return fmt::format("{:.4g}", latency.value() * kMicro);
}

std::string DeviceName(const Cluster& cluster, uint32_t rank) {
  return VisibleText(cluster.DeviceName(rank));
}

// Writes "25", or "25 to 50" if they differ, in GB/s.
std::string Range(const std::vector<BytesPerSecond>& values) {
  const auto [low, high] = std::minmax_element(values.begin(), values.end());
  return *low == *high ? Gigabytes(*low)
                       : fmt::format("{} to {}", Gigabytes(*low), Gigabytes(*high));
}

template <typename Cell>
std::string MatrixText(const std::vector<uint32_t>& ranks, Cell cell) {
  AlignedTable table(0);
  std::vector<std::string> heading = {""};
  for (const uint32_t rank : ranks) heading.push_back(fmt::format("{}", rank));
  table.Row(heading);
  for (size_t i = 0; i < ranks.size(); ++i) {
    std::vector<std::string> row = {heading[i + 1]};
    for (size_t j = 0; j < ranks.size(); ++j) row.push_back(i == j ? "-" : cell(i, j));
    table.Row(std::move(row));
  }
  return table.Text();
}

std::string HierarchyText(const CommunicationMatrix& matrix) {
  AlignedTable table(1);
  table.Row({"layer", "groups", "devices each", "between two", "to all siblings"});
  for (size_t i = 0; i < matrix.layers.size(); ++i) {
    const CommunicationLayer& layer = matrix.layers[i];
    std::vector<BytesPerSecond> exchanged;
    bool all_meet = true;
    for (size_t group = 0; group < layer.groups.size(); ++group) {
      for (uint32_t j = 0; j < layer.siblings; ++j) {
        if (j == group % layer.siblings) continue;
        const BytesPerSecond value = layer.point_to_point[group][j];
        if (value > BytesPerSecond()) {
          exchanged.push_back(value);
        } else {
          all_meet = false;
        }
      }
    }
    const auto parents = static_cast<uint32_t>(layer.groups.size()) / layer.siblings;
    table.Row({fmt::format("{}", i + 1),
               parents == 1 ? fmt::format("{}", layer.siblings)
                            : fmt::format("{} x {}", parents, layer.siblings),
               fmt::format("{}", layer.groups.front().size()),
               exchanged.empty() ? "nothing" : Range(exchanged) + (all_meet ? "" : " (neighbours)"),
               Range(layer.group_bandwidth)});
  }
  return table.Text();
}

}  // namespace

std::string ToText(const ClusterSummary& summary) {
  std::string text = fmt::format("{}   {} on {}{}\n\n", VisibleText(summary.name),
                                 Counted(summary.devices, "device"), Counted(summary.nodes, "node"),
                                 summary.grid ? ", " + GridText(*summary.grid) : "");
  AlignedTable devices(2);
  for (const auto& [spec, count] : summary.device_kinds) {
    devices.Row({fmt::format("{} x {}", count, spec.name),
                 fmt::format("{}: {}, {} at {}", spec.description, Print(spec.matrix_peak_16),
                             Print(spec.memory), Print(spec.memory_bandwidth))});
  }
  text += "devices\n" + devices.Text() + "\nvertices\n";
  AlignedTable vertices(1);
  for (const auto& [kind, count] : summary.vertices)
    vertices.Row({Name(kind), fmt::format("{}", count)});
  text += vertices.Text();

  if (!summary.links.empty()) {
    AlignedTable links(2);
    links.Row({"links", "between", "count", "each way", "efficiency", "reached", "latency"});
    for (const LinkGroup& link : summary.links) {
      const std::string count = link.up == link.down
                                    ? fmt::format("{}", link.up)
                                    : fmt::format("{} up, {} down", link.up, link.down);
      links.Row({Name(link.kind), fmt::format("{} - {}", Name(link.low), Name(link.high)), count,
                 Print(link.bandwidth), fmt::format("{:.3g}", link.efficiency),
                 Print(link.bandwidth * link.efficiency), Print(link.latency)});
    }
    text += "\n" + links.Text();
  }
  text += "\n";
  if (!summary.routing.empty()) text += fmt::format("routing        {}\n", summary.routing);
  if (summary.bisection)
    text += fmt::format("bisection      {} from one half of the devices to the other\n",
                        Print(*summary.bisection));
  if (summary.rings > 0)
    text += fmt::format("rings          {} given inside a machine\n", summary.rings);
  if (summary.step_overhead > Seconds(0))
    text += fmt::format("step overhead  {}\n", Print(summary.step_overhead));
  if (summary.collective_overhead > Seconds(0))
    text += fmt::format("launching      {} per collective\n", Print(summary.collective_overhead));
  if (summary.channel_overhead > Seconds(0))
    text += fmt::format("               {} more for each of its channels\n",
                        Print(summary.channel_overhead));
  if (summary.devices > kMostForBisection)
    text +=
        fmt::format("bisection      not computed for more than {} devices\n", kMostForBisection);
  if (!summary.notes.empty()) text += "\nnotes\n";
  for (const std::string& note : summary.notes) text += fmt::format("  {}\n", VisibleText(note));
  return text;
}

std::string PathText(Router& router, uint32_t from_rank, uint32_t to_rank) {
  const Cluster& cluster = router.cluster();
  const Route& route = router.Between(from_rank, to_rank);
  std::string text = fmt::format(
      "{} (rank {}) to {} (rank {}){}\n\n", DeviceName(cluster, from_rank), from_rank,
      DeviceName(cluster, to_rank), to_rank, route.crosses_nodes ? ", on different nodes" : "");
  AlignedTable table(2);
  table.Row({"hop", "link", "each way", "efficiency", "reached", "latency"});
  table.Row({DeviceName(cluster, from_rank)});
  for (const uint32_t index : route.links) {
    const ClusterLink& link = cluster.Link(index);
    const auto to = cluster.TargetOf(index);
    std::string where = "-> " + cluster.VertexAt(to).name;
    if (cluster.IsTrunk(index)) {
      const std::string name = cluster.LinkName(index);
      where = fmt::format("-> {}, {} cables", name.substr(name.find("->") + 2),
                          cluster.CablesOf(index).size());
    }
    table.Row({where, Name(link.kind), Print(link.bandwidth),
               fmt::format("{:.3g}", link.efficiency), Print(link.Capacity()), Print(link.latency),
               link.Capacity() == route.bandwidth ? "bottleneck" : ""});
  }
  for (size_t i = 0; i < route.others.size(); ++i) {
    std::vector<std::string> by;
    for (const uint32_t link : route.others[i]) {
      const VertexId to = cluster.TargetOf(link);
      if (cluster.KindOfVertex(to) == VertexKind::kSwitch) by.push_back(cluster.VertexAt(to).name);
    }
    table.Row({fmt::format("queue pair {}: {}", i + 2, fmt::join(by, ", "))});
  }
  table.Row({"whole path", fmt::format("{} links", route.links.size()), "", "",
             Print(route.bandwidth), Print(route.latency)});
  return text + table.Text();
}

std::string ToText(const MatrixView& view, const Cluster& cluster) {
  const std::vector<uint32_t>& ranks = view.pairs.ranks;
  std::string text = fmt::format("{}   {} of {}\n\n", VisibleText(cluster.name()), ranks.size(),
                                 Counted(cluster.device_count(), "device"));
  constexpr size_t kMostNames = 64;
  if (ranks.size() <= kMostNames) {
    AlignedTable names(2);
    for (const uint32_t rank : ranks)
      names.Row({fmt::format("{}", rank), DeviceName(cluster, rank)});
    text += "ranks\n" + names.Text() + "\n";
  }
  text +=
      "bandwidth from the row's rank to the column's, GB/s\n" +
      MatrixText(ranks, [&](size_t i, size_t j) { return Gigabytes(view.pairs.bandwidth[i][j]); });
  text += "\nlatency, us\n" + MatrixText(ranks, [&](size_t i, size_t j) {
            return Microseconds(view.pairs.latency[i][j]);
          });
  if (!view.hierarchy.layers.empty()) {
    text +=
        fmt::format("\nhierarchical communication matrix (ATP) of {}, GB/s\n",
                    view.hierarchy_ranks.size() == cluster.device_count()
                        ? "all devices"
                        : Counted(static_cast<uint32_t>(view.hierarchy_ranks.size()), "device"));
    text += HierarchyText(view.hierarchy);
  }
  if (view.bisection)
    text += fmt::format("\nbisection of the cluster: {}\n", Print(*view.bisection));
  return text;
}

}  // namespace rehearse

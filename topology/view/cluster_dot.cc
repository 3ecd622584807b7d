#include "topology/view/cluster_dot.h"

#include <sstream>

#include <boost/graph/graphviz.hpp>
#include <fmt/format.h>

#include "sim/base/units.h"
#include "sim/base/visible_text.h"
#include "topology/cluster/graph.h"

namespace rehearse {
namespace {

// Inside Graphviz's quotes, quotes and backslashes are escaped.
std::string Quoted(const std::string& text) {
  std::string quoted = "\"";
  for (const char c : VisibleText(text)) {
    if (c == '"' || c == '\\') quoted += '\\';
    quoted += c;
  }
  return quoted + "\"";
}

const char* ShapeOf(VertexKind kind) {
  switch (kind) {
    case VertexKind::kDevice:
      return "box";
    case VertexKind::kNic:
      return "oval";
    case VertexKind::kPcieSwitch:
      return "hexagon";
    case VertexKind::kSocket:
      return "box3d";
    case VertexKind::kNvSwitch:
      return "octagon";
    case VertexKind::kSwitch:
      return "diamond";
  }
  CHECK(false);
}

}  // namespace

std::string ClusterDot(const Cluster& cluster) {
  const ClusterGraph& graph = GraphOf(cluster);
  std::ostringstream out;
  boost::write_graphviz(
      out, graph,
      [&](std::ostream& stream, VertexId vertex) {
        stream << fmt::format(
            "[label={}, kind={}, node={}, shape={}]", Quoted(cluster.VertexAt(vertex).name),
            Quoted(Name(cluster.KindOfVertex(vertex))), Quoted(cluster.VertexAt(vertex).node),
            ShapeOf(cluster.KindOfVertex(vertex)));
      },
      [&](std::ostream& stream, const EdgeId& edge) {
        const ClusterLink link = cluster.Link(graph[edge].index);
        stream << fmt::format("[kind={}, bandwidth={}, efficiency={}, latency={}, tooltip={}]",
                              Quoted(Name(link.kind)), Quoted(Print(link.bandwidth)),
                              link.efficiency, Quoted(Print(link.latency)),
                              Quoted(fmt::format("{} {}", Name(link.kind), Print(link.bandwidth))));
      },
      [&](std::ostream& stream) {
        stream << fmt::format("label={};\nrankdir=BT;\n", Quoted(cluster.name()));
      });
  return out.str();
}

}  // namespace rehearse

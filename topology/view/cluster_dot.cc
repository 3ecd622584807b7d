#include "topology/view/cluster_dot.h"

#include <sstream>

#include <boost/graph/graphviz.hpp>
#include <fmt/format.h>

#include "sim/base/units.h"

namespace rehearse {
namespace {

// In Graphviz' quotes a quote and a backslash are escaped.
std::string Quoted(const std::string& text) {
  std::string quoted = "\"";
  for (const char c : text) {
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
  const Cluster::Graph& graph = cluster.graph();
  std::ostringstream out;
  boost::write_graphviz(
      out, graph,
      [&](std::ostream& stream, Cluster::VertexId vertex) {
        stream << fmt::format("[label={}, kind={}, node={}, shape={}]", Quoted(graph[vertex].name),
                              Quoted(Name(graph[vertex].kind)), Quoted(graph[vertex].node),
                              ShapeOf(graph[vertex].kind));
      },
      [&](std::ostream& stream, const Cluster::EdgeId& edge) {
        const ClusterLink& link = graph[edge];
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

#include "topology/cluster/max_flow.h"

#include <algorithm>
#include <cmath>
#include <map>

#include <boost/graph/adjacency_list.hpp>
#include <boost/graph/push_relabel_max_flow.hpp>

namespace rehearse {
namespace {

using Traits = boost::adjacency_list_traits<boost::vecS, boost::vecS, boost::directedS>;
using FlowGraph = boost::adjacency_list<
    boost::vecS, boost::vecS, boost::directedS, boost::no_property,
    boost::property<
        boost::edge_capacity_t, int64_t,
        boost::property<boost::edge_residual_capacity_t, int64_t,
                        boost::property<boost::edge_reverse_t, Traits::edge_descriptor>>>>;

// All sources are one vertex of the flow graph, and all sinks another.
constexpr size_t kSource = 0;
constexpr size_t kSink = 1;

}  // namespace

BytesPerSecond MaxFlow(const Cluster& cluster, const std::vector<uint32_t>& links,
                       const std::vector<VertexId>& sources, const std::vector<VertexId>& sinks,
                       OtherDevices others) {
  std::map<VertexId, size_t> vertex_of;
  for (const auto source : sources) vertex_of[source] = kSource;
  for (const auto sink : sinks) CHECK_EQ(vertex_of.emplace(sink, kSink).first->second, kSink);
  size_t vertices = 2;
  const auto is_passable = [&](VertexId vertex) {
    return others == OtherDevices::kPass || cluster.KindOfVertex(vertex) != VertexKind::kDevice ||
           vertex_of.count(vertex) > 0;
  };
  std::map<std::pair<size_t, size_t>, int64_t> capacities;  // parallel links are one
  // So that the sum of all fits; no machine comes near it.
  const double most = 0x1p62 / static_cast<double>(std::max<size_t>(links.size(), 1));
  for (const uint32_t link : links) {
    const auto from = cluster.SourceOf(link);
    const auto to = cluster.TargetOf(link);
    if (!is_passable(from) || !is_passable(to)) continue;
    const auto dense = [&](VertexId vertex) {
      const auto [entry, is_new] = vertex_of.emplace(vertex, vertices);
      if (is_new) ++vertices;
      return entry->second;
    };
    const size_t a = dense(from);
    const size_t b = dense(to);
    if (a == b || a == kSink || b == kSource) continue;
    capacities[{a, b}] += std::llround(std::min(cluster.Link(link).Capacity().value(), most));
  }

  FlowGraph flow(vertices);
  const auto capacity = boost::get(boost::edge_capacity, flow);
  const auto reverse = boost::get(boost::edge_reverse, flow);
  for (const auto& [ends, rate] : capacities) {
    const auto there = boost::add_edge(ends.first, ends.second, flow).first;
    const auto back = boost::add_edge(ends.second, ends.first, flow).first;
    capacity[there] = rate;
    capacity[back] = 0;
    reverse[there] = back;
    reverse[back] = there;
  }
  return BytesPerSecond(static_cast<double>(boost::push_relabel_max_flow(flow, kSource, kSink)));
}

}  // namespace rehearse

// Clusters as JSON; see topology/view/cluster_view.h.
#include <nlohmann/json.hpp>

#include "topology/view/cluster_view.h"

namespace rehearse {
namespace {

using Json = nlohmann::ordered_json;

Json BandwidthOrNull(const std::optional<BytesPerSecond>& bandwidth) {
  return bandwidth ? Json(bandwidth->value()) : Json(nullptr);
}

Json Device(const Cluster& cluster, uint32_t rank) {
  return {{"rank", rank}, {"name", cluster.DeviceName(rank)}};
}

template <typename Value>
Json Values(const std::vector<Value>& values) {
  Json array = Json::array();
  for (const Value& value : values) array.push_back(value.value());
  return array;
}

template <typename Value>
Json Rows(const std::vector<std::vector<Value>>& matrix) {
  Json array = Json::array();
  for (const auto& row : matrix) array.push_back(Values(row));
  return array;
}

}  // namespace

Json ToJson(const ClusterSummary& summary) {
  Json json = {{"schema", "rehearse.topology.v1"},
               {"cluster", summary.name},
               {"devices", summary.devices},
               {"nodes", summary.nodes}};
  json["device_kinds"] = Json::array();
  for (const auto& [spec, count] : summary.device_kinds) {
    json["device_kinds"].push_back(
        {{"name", spec.name},
         {"count", count},
         {"description", spec.description},
         {"matrix_peak_16_flops_per_second", spec.matrix_peak_16.value()},
         {"memory_bytes", spec.memory.value()},
         {"memory_bandwidth_bytes_per_second", spec.memory_bandwidth.value()}});
  }
  json["vertices"] = Json::object();
  for (const auto& [kind, count] : summary.vertices) json["vertices"][Name(kind)] = count;
  json["links"] = Json::array();
  for (const LinkGroup& link : summary.links) {
    json["links"].push_back({{"kind", Name(link.kind)},
                             {"between", {Name(link.low), Name(link.high)}},
                             {"up", link.up},
                             {"down", link.down},
                             {"bandwidth_bytes_per_second", link.bandwidth.value()},
                             {"efficiency", link.efficiency},
                             {"latency_seconds", link.latency.value()}});
  }
  if (!summary.routing.empty()) json["routing"] = summary.routing;
  json["grid"] = nullptr;
  if (summary.grid) json["grid"] = {{"sizes", summary.grid->sizes}, {"wraps", summary.grid->wraps}};
  json["bisection_bytes_per_second"] = BandwidthOrNull(summary.bisection);
  if (summary.rings > 0) json["rings"] = summary.rings;
  json["step_overhead_seconds"] = summary.step_overhead.value();
  json["collective_overhead_seconds"] = summary.collective_overhead.value();
  json["channel_overhead_seconds"] = summary.channel_overhead.value();
  json["notes"] = summary.notes;
  return json;
}

Json PathJson(Router& router, uint32_t from_rank, uint32_t to_rank) {
  const Cluster& cluster = router.cluster();
  const Route& route = router.Between(from_rank, to_rank);
  Json json = {{"schema", "rehearse.path.v1"},
               {"cluster", cluster.name()},
               {"from", Device(cluster, from_rank)},
               {"to", Device(cluster, to_rank)},
               {"crosses_nodes", route.crosses_nodes},
               {"bandwidth_bytes_per_second", route.bandwidth.value()},
               {"latency_seconds", route.latency.value()}};
  json["hops"] = Json::array();
  for (const uint32_t index : route.links) {
    const ClusterLink& link = cluster.Link(index);
    json["hops"].push_back({{"from", cluster.VertexAt(cluster.SourceOf(index)).name},
                            {"to", cluster.VertexAt(cluster.TargetOf(index)).name},
                            {"kind", Name(link.kind)},
                            {"bandwidth_bytes_per_second", link.bandwidth.value()},
                            {"efficiency", link.efficiency},
                            {"capacity_bytes_per_second", link.Capacity().value()},
                            {"latency_seconds", link.latency.value()},
                            {"bottleneck", link.Capacity() == route.bandwidth}});
    if (cluster.IsTrunk(index)) json["hops"].back()["cables"] = cluster.CablesOf(index).size();
  }
  if (!route.others.empty()) json["queue_pairs"] = route.others.size() + 1;
  return json;
}

Json ToJson(const MatrixView& view, const Cluster& cluster) {
  Json json = {{"schema", "rehearse.matrix.v1"},
               {"cluster", cluster.name()},
               {"devices", cluster.device_count()}};
  json["ranks"] = Json::array();
  for (const uint32_t rank : view.pairs.ranks) json["ranks"].push_back(Device(cluster, rank));
  json["bandwidth_bytes_per_second"] = Rows(view.pairs.bandwidth);
  json["latency_seconds"] = Rows(view.pairs.latency);
  json["hierarchy"] = {{"ranks", view.hierarchy_ranks}, {"layers", Json::array()}};
  for (const CommunicationLayer& layer : view.hierarchy.layers) {
    json["hierarchy"]["layers"].push_back(
        {{"siblings", layer.siblings},
         {"groups", layer.groups},
         {"group_bandwidth_bytes_per_second", Values(layer.group_bandwidth)},
         {"point_to_point_bytes_per_second", Rows(layer.point_to_point)}});
  }
  json["bisection_bytes_per_second"] = BandwidthOrNull(view.bisection);
  return json;
}

}  // namespace rehearse

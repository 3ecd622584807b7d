#include "topology/cluster/cluster.h"

#include <utility>

#include <fmt/format.h>

#include "topology/cluster/link_check.h"

namespace rehearse {

Cluster::Cluster(std::shared_ptr<const Wiring> wiring, std::shared_ptr<const Figures> figures)
    : wiring_(std::move(wiring)), figures_(std::move(figures)) {}

Cluster Cluster::With(Figures figures) const {
  CHECK(figures.links != nullptr);
  CHECK_EQ(figures.links->size(), size_t{link_count()});
  CHECK_EQ(figures.spec_of_rank.size(), size_t{device_count()});
  CHECK_EQ(figures.machine_latencies.size(), figures_->machine_latencies.size());
  for (const uint32_t spec : figures.spec_of_rank) CHECK_LT(spec, figures.device_specs.size());
  if (figures.links != figures_->links)
    for (uint32_t i = 0; i < link_count(); ++i)
      CheckLink((*figures.links)[i], [&] { return LinkName(i); });
  return {wiring_, std::make_shared<const Figures>(std::move(figures))};
}

const std::string& Cluster::DeviceName(uint32_t rank) const {
  CHECK_LT(rank, device_count());
  return wiring_->vertices[wiring_->devices[rank]].name;
}

const DeviceSpec& Cluster::DeviceOf(uint32_t rank) const {
  return figures_->device_specs[SpecOf(rank)];
}

uint32_t Cluster::SpecOf(uint32_t rank) const {
  CHECK_LT(rank, device_count());
  return figures_->spec_of_rank[rank];
}

const std::string& Cluster::NodeOf(uint32_t rank) const {
  CHECK_LT(rank, device_count());
  return wiring_->vertices[wiring_->devices[rank]].node;
}

uint32_t Cluster::NodeIndexOf(uint32_t rank) const {
  CHECK_LT(rank, device_count());
  return wiring_->node_index[rank];
}

ClusterLink Cluster::Link(uint32_t index) const {
  CHECK_LT(index, link_count());
  const LinkFigures& figures = (*figures_->links)[index];
  return {wiring_->links[index].kind, index, figures.bandwidth, figures.efficiency,
          figures.latency};
}

std::string Cluster::LinkName(uint32_t index) const {
  CHECK_LT(index, link_count());
  return VertexAt(SourceOf(index)).name + "->" + VertexAt(TargetOf(index)).name;
}

VertexId Cluster::FindVertex(const std::string& name) const {
  const auto found = wiring_->vertex_by_name.find(std::string_view(name));
  if (found == wiring_->vertex_by_name.end()) {
    std::vector<std::string> names;
    for (const Vertex& vertex : wiring_->vertices) names.push_back(vertex.name);
    throw Error(fmt::format("there is no vertex \"{}\" in cluster \"{}\"{}", name, wiring_->name,
                            DidYouMean(name, names)));
  }
  return *found;
}

}  // namespace rehearse

#include "topology/cluster/cluster.h"

#include <algorithm>
#include <utility>

#include <fmt/format.h>

#include "topology/cluster/link_check.h"

namespace rehearse {

namespace {

// What the cables of each trunk carry together, and their longest latency, since packets of one
// message take all of them.
std::vector<LinkFigures> SumTrunks(const Trunks& trunks, const FigureTable& links) {
  std::vector<LinkFigures> sums;
  sums.reserve(trunks.count());
  for (uint32_t trunk = 0; trunk < trunks.count(); ++trunk) {
    LinkFigures sum;
    BytesPerSecond reached;
    for (const uint32_t cable : trunks.CablesOf(trunk)) {
      const LinkFigures& link = links[cable];
      sum.bandwidth += link.bandwidth;
      reached += link.bandwidth * link.efficiency;
      sum.latency = std::max(sum.latency, link.latency);
    }
    if (reached > BytesPerSecond(0)) sum.efficiency = reached / sum.bandwidth;
    sums.push_back(sum);
  }
  return sums;
}

// "spine*" of "spine0" to "spine31".
std::string NameOfAll(const std::vector<std::string>& names) {
  const std::string& first = names.front();
  size_t common = first.size();
  bool differ = false;
  for (const std::string& name : names) {
    differ = differ || name != first;
    common = std::min(common, name.size());
    common = static_cast<size_t>(
        std::mismatch(first.begin(), first.begin() + static_cast<ptrdiff_t>(common), name.begin())
            .first -
        first.begin());
  }
  if (!differ) return first;
  while (common > 0 && first[common - 1] >= '0' && first[common - 1] <= '9') --common;
  return first.substr(0, common) + "*";
}

}  // namespace

Cluster::Cluster(std::shared_ptr<const Wiring> wiring, std::shared_ptr<const Figures> figures,
                 std::shared_ptr<const std::vector<LinkFigures>> trunks)
    : wiring_(std::move(wiring)),
      figures_(std::move(figures)),
      trunk_figures_(trunks ? std::move(trunks)
                            : std::make_shared<const std::vector<LinkFigures>>(
                                  SumTrunks(wiring_->trunks, *figures_->links))) {}

Cluster Cluster::With(Figures figures) const {
  CHECK(figures.links != nullptr);
  CHECK_EQ(figures.links->size(), size_t{link_count()});
  CHECK_EQ(figures.spec_of_rank.size(), size_t{device_count()});
  for (const uint32_t spec : figures.spec_of_rank) CHECK_LT(spec, figures.device_specs.size());
  const bool same_links = figures.links == figures_->links;
  if (!same_links)
    for (uint32_t i = 0; i < link_count(); ++i)
      CheckLink((*figures.links)[i], [&] { return LinkName(i); });
  return {wiring_, std::make_shared<const Figures>(std::move(figures)),
          same_links ? trunk_figures_ : nullptr};
}

std::string Cluster::DeviceName(uint32_t rank) const {
  CHECK_LT(rank, device_count());
  return VertexAt(wiring_->devices[rank]).name;
}

const DeviceSpec& Cluster::DeviceOf(uint32_t rank) const {
  return figures_->device_specs[SpecOf(rank)];
}

uint32_t Cluster::SpecOf(uint32_t rank) const {
  CHECK_LT(rank, device_count());
  return figures_->spec_of_rank[rank];
}

std::string Cluster::NodeOf(uint32_t rank) const {
  CHECK_LT(rank, device_count());
  return VertexAt(wiring_->devices[rank]).node;
}

uint32_t Cluster::NodeIndexOf(uint32_t rank) const {
  CHECK_LT(rank, device_count());
  return wiring_->node_index[rank];
}

ClusterLink Cluster::Link(uint32_t index) const {
  CHECK_LT(index, way_count());
  const bool is_trunk = IsTrunk(index);
  const LinkFigures& figures =
      is_trunk ? (*trunk_figures_)[index - link_count()] : (*figures_->links)[index];
  return {KindOf(index), index, figures.bandwidth, figures.efficiency, figures.latency};
}

VertexId Cluster::SourceOf(uint32_t link) const {
  return IsTrunk(link) ? wiring_->trunks.ends[link - link_count()].from
                       : wiring_->LinkAt(link).from;
}

VertexId Cluster::TargetOf(uint32_t link) const {
  return IsTrunk(link) ? wiring_->trunks.ends[link - link_count()].to : wiring_->LinkAt(link).to;
}

std::string Cluster::LinkName(uint32_t index) const {
  CHECK_LT(index, way_count());
  if (!IsTrunk(index))
    return VertexAt(SourceOf(index)).name + "->" + VertexAt(TargetOf(index)).name;
  std::vector<std::string> from;
  std::vector<std::string> to;
  for (const uint32_t cable : CablesOf(index)) {
    from.push_back(VertexAt(SourceOf(cable)).name);
    to.push_back(VertexAt(TargetOf(cable)).name);
  }
  if (from.empty())  // all of its cables were taken away, so that nothing passes over it
    return VertexAt(SourceOf(index)).name + "->" + VertexAt(TargetOf(index)).name;
  return NameOfAll(from) + "->" + NameOfAll(to);
}

VertexId Cluster::FindVertex(const std::string& name) const {
  const VertexId found = wiring_->Find(name);
  if (found != kNoVertex) return found;
  std::vector<std::string> names;
  for (VertexId id = 0; id < vertex_count(); ++id) names.push_back(VertexAt(id).name);
  throw Error(fmt::format("there is no vertex \"{}\" in cluster \"{}\"{}", name, wiring_->name,
                          DidYouMean(name, names)));
}

}  // namespace rehearse

#include "collectives/lowering/group_memory.h"

#include <utility>

#include "sim/base/error.h"

namespace rehearse {
namespace {

// A rank takes about a kilobyte, with the rings and rounds that it is a part of.
constexpr size_t kMostKeptRanks = 1u << 17;

}  // namespace

GroupMemory::GroupMemory(std::shared_ptr<const Cluster> cluster, const FabricRouting& routing,
                         const NcclSettings& nccl)
    : cluster_(std::move(cluster)), routing_(routing), nccl_(nccl) {
  Forget();
}

GroupMemory::GroupMemory(Router& router, const NcclSettings& nccl)
    : nccl_(nccl),
      router_(&router),
      finder_(std::make_unique<ChannelFinder>(router)),
      shapes_(std::make_unique<GroupShapes>(router)) {}

bool GroupMemory::IsOf(const Cluster& cluster, const FabricRouting& routing,
                       const NcclSettings& nccl) const {
  return &cluster == cluster_.get() && routing == routing_ && nccl == nccl_;
}

bool GroupMemory::IsUsable() const {
  const std::optional<RoutingRule>& rule = router_->rule();
  return !router_->IsHashed() && !(rule && rule->choice == RouteChoice::kFlowlet);
}

void GroupMemory::Begin() {
  if (kept_ranks_ > kMostKeptRanks) Forget();
}

void GroupMemory::Forget() {
  groups_.clear();  // its channels point to the router's routes
  known_shapes_.clear();
  kept_ranks_ = 0;
  own_router_ = std::make_unique<Router>(*cluster_, routing_);
  router_ = own_router_.get();
  finder_ = std::make_unique<ChannelFinder>(*router_);
  shapes_ = std::make_unique<GroupShapes>(*router_);
}

uint32_t GroupMemory::ShapeOf(const std::vector<uint32_t>& ranks) {
  if (!KeepsGroups()) return shapes_->Of(ranks);
  KnownGroup& group = Of(ranks);
  if (!group.shape) group.shape = shapes_->Of(ranks);
  return *group.shape;
}

KnownShape& GroupMemory::Of(uint32_t shape) {
  if (shape >= known_shapes_.size()) known_shapes_.resize(size_t{shape} + 1);
  return known_shapes_[shape];
}

KnownGroup& GroupMemory::Of(const std::vector<uint32_t>& ranks) {
  CHECK(KeepsGroups());
  const auto [group, is_new] = groups_.try_emplace(ranks);
  if (is_new) kept_ranks_ += ranks.size();
  return group->second;
}

std::shared_ptr<const std::vector<Channel>> GroupMemory::RingsOf(const std::vector<uint32_t>& ranks,
                                                                 uint32_t limit, uint64_t phase,
                                                                 bool with_rates) {
  const auto find = [&] {
    std::vector<Channel> channels = finder_->Find(ranks, limit, phase);
    if (with_rates) SetIdleRates(router_->cluster(), channels);
    return std::make_shared<const std::vector<Channel>>(std::move(channels));
  };
  if (!KeepsGroups()) return find();
  auto& rings = Of(ranks).rings[{limit, with_rates}];
  if (!rings) rings = find();
  return rings;
}

size_t GroupMemory::HashOfRanks::operator()(const std::vector<uint32_t>& ranks) const {
  uint64_t hash = ranks.size();
  for (const uint32_t rank : ranks) hash = (hash ^ rank) * 0x9e3779b97f4a7c15u;
  return static_cast<size_t>(hash ^ hash >> 32);
}

}  // namespace rehearse

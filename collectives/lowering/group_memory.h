// What lowering found out about groups of ranks, for the schedules that are lowered later.
//
// Points of a search differ in their grids, but their communicators are mostly the same few groups.
// What is kept of a group (its rings, what a library must know about it, how an algorithm is laid
// out on its links) follows from the cluster, the routing, the library's settings and the group
// alone, never from what was lowered before. So a timeline is the same with a memory and without,
// to the bit.
#pragma once

#include <cstdint>
#include <map>
#include <memory>
#include <optional>
#include <tuple>
#include <unordered_map>
#include <vector>

#include "collectives/algorithms/algorithm.h"
#include "collectives/algorithms/channels.h"
#include "collectives/lowering/group_shapes.h"
#include "collectives/lowering/rounds.h"
#include "collectives/nccl/nccl_model.h"
#include "collectives/nccl/nccl_version.h"
#include "collectives/nccl/rccl_model.h"
#include "topology/fabrics/router.h"

namespace rehearse {

// What a library's model must know about a group; neither is set on other makers' devices.
struct LibraryGroup {
  std::optional<NcclGroup> nccl;
  std::optional<RcclGroup> rccl;

  bool Exists() const { return nccl.has_value() || rccl.has_value(); }
};

// How an algorithm that moves equal sizes is laid out on a group's links.
struct GroupLayout {
  std::vector<Part> parts;
  std::vector<std::vector<RoundFlow>> rounds;  // by part
  // Once they were needed:
  std::optional<std::vector<std::vector<Pace>>> paces;
  std::optional<Pipeline> pipeline;
};

// What is known about a group. All of it is optional.
struct KnownGroup {
  std::optional<uint32_t> shape;
  std::optional<LibraryGroup> library;
  std::map<uint32_t, std::shared_ptr<const std::vector<Channel>>> rings;  // by limit
  // Of bare links, by kind, root, algorithm and channels.
  std::map<std::tuple<CollectiveKind, uint32_t, NcclAlgorithm, uint32_t>, BytesPerSecond> rates;
  // By algorithm, kind, root, channels and whether steps wait.
  std::map<std::tuple<const Algorithm*, CollectiveKind, uint32_t, uint32_t, bool>,
           std::shared_ptr<GroupLayout>>
      layouts;
};

// Not thread-safe.
class GroupMemory {
 public:
  GroupMemory(std::shared_ptr<const Cluster> cluster, const FabricRouting& routing,
              const NcclSettings& nccl);

  bool IsOf(const Cluster& cluster, const FabricRouting& routing, const NcclSettings& nccl) const;
  // Whether ways depend neither on a seed nor on what else is under way. Otherwise lowering must
  // not use it.
  bool IsUsable() const;

  // Before each schedule: forgets everything if it has become too much. What was taken from here
  // must no longer be in use.
  void Begin();

  Router& router() { return *router_; }
  ChannelFinder& finder() { return *finder_; }
  // The same one for the same ranks in the same order.
  KnownGroup& Of(const std::vector<uint32_t>& ranks);
  uint32_t ShapeOf(const std::vector<uint32_t>& ranks);
  const std::vector<Channel>& RingsOf(const std::vector<uint32_t>& ranks, uint32_t limit);

 private:
  struct HashOfRanks {
    size_t operator()(const std::vector<uint32_t>& ranks) const;
  };

  void Forget();

  const std::shared_ptr<const Cluster> cluster_;
  const FabricRouting routing_;
  const NcclSettings nccl_;
  std::unique_ptr<Router> router_;
  std::unique_ptr<ChannelFinder> finder_;
  std::unique_ptr<GroupShapes> shapes_;
  std::unordered_map<std::vector<uint32_t>, KnownGroup, HashOfRanks> groups_;
  size_t kept_ranks_ = 0;  // of all groups
};

}  // namespace rehearse

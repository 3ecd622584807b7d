// What lowering has found out about groups of ranks: the one place where a group is known again.
//
// Groups of one shape (collectives/lowering/group_shapes.h) have equal libraries and rates; groups
// of the same ranks in the same order also go by the same links. All that is kept follows from the
// cluster, the routing, the library's settings and the group alone, never from what was lowered
// before. So a timeline is the same with a memory of many schedules and with one of its own, to the
// bit: points of a search differ in their grids, but their communicators are mostly the same few
// groups.
#pragma once

#include <cstdint>
#include <deque>
#include <map>
#include <memory>
#include <optional>
#include <tuple>
#include <unordered_map>
#include <utility>
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

// What is known about groups of a shape. All of it is optional.
struct KnownShape {
  std::optional<LibraryGroup> library;
  // Of bare links, by kind, root, algorithm and channels.
  std::map<std::tuple<CollectiveKind, uint32_t, NcclAlgorithm, uint32_t>, BytesPerSecond> rates;
  std::map<CollectiveKind, BytesPerSecond> rates_of_sends;  // likewise, of grouped sends
};

// Likewise about a group, as its ranks lie on the cluster's links.
struct KnownGroup {
  std::optional<uint32_t> shape;
  // By limit, and whether their idle rates are set.
  std::map<std::pair<uint32_t, bool>, std::shared_ptr<const std::vector<Channel>>> rings;
  // By algorithm, kind, root, channels and whether steps wait.
  std::map<std::tuple<const Algorithm*, CollectiveKind, uint32_t, uint32_t, bool>,
           std::shared_ptr<GroupLayout>>
      layouts;
};

// Not thread-safe.
class GroupMemory {
 public:
  // For many schedules: keeps groups, too.
  GroupMemory(std::shared_ptr<const Cluster> cluster, const FabricRouting& routing,
              const NcclSettings& nccl);
  // For one schedule: keeps only shapes, since its groups are many and seldom asked for twice. The
  // router must outlive it.
  GroupMemory(Router& router, const NcclSettings& nccl);

  bool IsOf(const Cluster& cluster, const FabricRouting& routing, const NcclSettings& nccl) const;
  // Whether ways depend neither on a seed nor on what else is under way. Otherwise lowering must
  // not use it.
  bool IsUsable() const;

  // Before each schedule: forgets everything if it has become too much. What was taken from here
  // must no longer be in use.
  void Begin();

  Router& router() { return *router_; }
  ChannelFinder& finder() { return *finder_; }
  const NcclSettings& nccl() const { return nccl_; }
  bool KeepsGroups() const { return cluster_ != nullptr; }
  // The same number for groups that are alike, and what is known about these.
  uint32_t ShapeOf(const std::vector<uint32_t>& ranks);
  KnownShape& Of(uint32_t shape);
  // Whether different groups can be alike.
  bool SharesShapes() const { return shapes_->AreShared(); }
  // The same one for the same ranks in the same order; only if groups are kept.
  KnownGroup& Of(const std::vector<uint32_t>& ranks);
  // With flowlet, whose ways depend on the phase, no groups are kept (IsUsable). `with_rates`: as
  // SetIdleRates() sets them.
  std::shared_ptr<const std::vector<Channel>> RingsOf(const std::vector<uint32_t>& ranks,
                                                      uint32_t limit, uint64_t phase,
                                                      bool with_rates);

 private:
  struct HashOfRanks {
    size_t operator()(const std::vector<uint32_t>& ranks) const;
  };

  void Forget();

  const std::shared_ptr<const Cluster> cluster_;  // null: for one schedule
  const FabricRouting routing_;
  const NcclSettings nccl_;
  std::unique_ptr<Router> own_router_;
  Router* router_ = nullptr;
  std::unique_ptr<ChannelFinder> finder_;
  std::unique_ptr<GroupShapes> shapes_;
  std::deque<KnownShape> known_shapes_;  // by number
  std::unordered_map<std::vector<uint32_t>, KnownGroup, HashOfRanks> groups_;
  size_t kept_ranks_ = 0;  // of all groups
};

}  // namespace rehearse

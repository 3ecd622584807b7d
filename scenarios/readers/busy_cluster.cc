#include "scenarios/readers/busy_cluster.h"

#include <algorithm>
#include <cmath>
#include <limits>
#include <utility>

#include <fmt/format.h>

#include "scenarios/readers/device_floor.h"
#include "sim/base/random_bits.h"

namespace rehearse {
namespace {

constexpr uint32_t kRounds = 4;  // so often each job is replaced, on average

// The jobs of others, as they come and go.
class Others {
 public:
  Others(const Cluster& cluster, uint32_t unit, double busy, uint64_t seed)
      : target_(static_cast<uint32_t>(std::floor(busy * cluster.device_count()))),
        sizes_(1),
        bits_(seed),
        floor_(cluster, unit) {
    while ((uint32_t{2} << (sizes_ - 1)) * 8 <= cluster.device_count()) ++sizes_;
    Fill();
    const size_t rounds = kRounds * jobs_.size();
    for (size_t round = 0; round < rounds; ++round) {
      EndOne();
      Fill();
    }
  }

  const DeviceFloor& floor() const { return floor_; }
  bool any() const { return !jobs_.empty(); }

  void EndOne() {
    const uint32_t index = bits_.Below(static_cast<uint32_t>(jobs_.size()));
    floor_.Leave(jobs_[index]);
    held_ -= static_cast<uint32_t>(jobs_[index].size());
    jobs_[index] = std::move(jobs_.back());
    jobs_.pop_back();
  }

 private:
  // Where one does not fit, one of half its size begins.
  void Fill() {
    while (held_ < target_) {
      uint32_t size = std::min(uint32_t{1} << bits_.Below(sizes_), target_ - held_);
      while (size > 0 && !Begin(size)) size /= 2;
      if (size == 0) return;
    }
  }

  bool Begin(uint32_t size) {
    std::vector<uint32_t> devices = floor_.FreeFor(size);
    if (devices.empty()) return false;
    devices.resize(size);
    floor_.Take(devices);
    held_ += size;
    jobs_.push_back(std::move(devices));
    return true;
  }

  uint32_t target_;  // devices
  uint32_t held_ = 0;
  uint32_t sizes_;  // 1, 2, ..., as many
  RandomBits bits_;
  DeviceFloor floor_;
  std::vector<std::vector<uint32_t>> jobs_;
};

constexpr double kMostBusy = 0.999;

}  // namespace

const Fields<BusyCluster>& BusyClusterFields() {
  static const Fields<BusyCluster> fields(
      "busy cluster", "Others hold a part of the cluster, and the step has what they leave.",
      {{"busy", &BusyCluster::busy, ANumber(0, kMostBusy), Required(),
        "share of the devices that others hold", "0.8"},
       {"seed", &BusyCluster::seed, AWhole(0, std::numeric_limits<int64_t>::max()),
        Optional("several are tried, and their range is shown"), "of one draw", "3"},
       {"unit", &BusyCluster::unit, AWhole(1, kMostDevicesOfUnit), Optional(kUsualUnitWords),
        "devices that are given out together", "8"},
       {"takes", &BusyCluster::takes, OneOf(kPlacementOrders), Usual(),
        "which of the free units the step takes", "\"even\""}});
  return fields;
}

void CheckBusyCluster(const JsonReader& reader, const BusyCluster& busy, const Cluster& cluster,
                      uint32_t ranks) {
  if (cluster.device_specs().size() > 1)
    reader.Fail("is of a cluster whose devices are of several kinds; expected devices of one kind");
  if (busy.unit > LargestMachine(cluster)) {
    reader.At("unit").Fail(
        fmt::format("{} devices are given out together, but cluster \"{}\" has "
                    "at most {} in a machine",
                    busy.unit, cluster.name(), LargestMachine(cluster)));
  }
  if (busy.takes == PlacementOrder::kEven &&
      DrawPlacement({.seed = {}, .takes = busy.takes}, cluster, ranks, 0).empty()) {
    reader.At("takes").Fail(
        fmt::format("{} ranks cannot be spread evenly over the machines of "
                    "cluster \"{}\"; \"block\" takes them as they come",
                    ranks, cluster.name()));
  }
  const uint32_t devices = cluster.device_count();
  const auto held = static_cast<uint32_t>(std::floor(busy.busy * devices));
  if (held + uint64_t{ranks} > devices) {
    reader.At("busy").Fail(
        fmt::format("others hold {} of {} devices of cluster \"{}\", which leaves {} for {} ranks; "
                    "expected at most {:g}",
                    held, devices, cluster.name(), devices - held, ranks,
                    std::floor(1000.0 * (devices - std::min(ranks, devices)) / devices) / 1000));
  }
}

std::vector<uint32_t> DrawPlacement(const BusyCluster& busy, const Cluster& cluster, uint32_t ranks,
                                    uint64_t seed) {
  const uint32_t unit = busy.unit > 0 ? busy.unit : UsualUnit(cluster);
  Others others(cluster, unit, busy.busy, seed);
  std::vector<uint32_t> free = others.floor().FreeFor(ranks);
  while (others.any() && (free.empty() || InOrder(busy.takes, free, cluster, ranks).empty())) {
    others.EndOne();
    free = others.floor().FreeFor(ranks);
  }
  return InOrder(busy.takes, free, cluster, ranks);
}

}  // namespace rehearse

#include "scenarios/readers/device_floor.h"

#include <algorithm>
#include <limits>
#include <set>

#include "sim/base/error.h"

namespace rehearse {
namespace {

constexpr uint32_t kLargestMachine = 16;  // devices of what is given out whole
constexpr uint32_t kTray = 4;

}  // namespace

uint32_t LargestMachine(const Cluster& cluster) {
  std::vector<uint32_t> of_node(cluster.node_count());
  for (uint32_t device = 0; device < cluster.device_count(); ++device)
    ++of_node[cluster.NodeIndexOf(device)];
  return *std::max_element(of_node.begin(), of_node.end());
}

uint32_t UsualUnit(const Cluster& cluster) {
  const uint32_t largest = LargestMachine(cluster);
  return largest > kLargestMachine ? kTray : largest;
}

DeviceFloor::DeviceFloor(const Cluster& cluster, uint32_t unit)
    : unit_(unit), free_devices_(cluster.device_count()), is_taken_(cluster.device_count()) {
  uint32_t node = std::numeric_limits<uint32_t>::max();
  for (uint32_t device = 0; device < cluster.device_count(); ++device) {
    const uint32_t own = cluster.NodeIndexOf(device);
    if (own != node || units_.back().size() == unit) units_.emplace_back();
    node = own;
    units_.back().push_back(device);
    unit_of_.push_back(static_cast<uint32_t>(units_.size() - 1));
  }
  for (const std::vector<uint32_t>& devices : units_)
    free_in_.push_back(static_cast<uint32_t>(devices.size()));
}

std::vector<uint32_t> DeviceFloor::Whole() const {
  std::vector<uint32_t> free;
  for (size_t i = 0; i < units_.size(); ++i) {
    if (free_in_[i] == units_[i].size())
      free.insert(free.end(), units_[i].begin(), units_[i].end());
  }
  return free;
}

std::vector<uint32_t> DeviceFloor::FreeFor(uint32_t devices) const {
  std::vector<uint32_t> free = devices < unit_ ? PartOfUnit(devices) : Whole();
  if (free.size() < devices) free.clear();
  return free;
}

std::vector<uint32_t> DeviceFloor::UnitsOf(const std::vector<uint32_t>& devices) const {
  std::set<uint32_t> units;
  for (const uint32_t device : devices) units.insert(unit_of_[device]);
  std::vector<uint32_t> all;
  for (const uint32_t unit : units) all.insert(all.end(), units_[unit].begin(), units_[unit].end());
  return all;
}

std::vector<uint32_t> DeviceFloor::PartOfUnit(uint32_t count) const {
  size_t fullest = units_.size();
  for (size_t i = 0; i < units_.size(); ++i) {
    if (free_in_[i] >= count && (fullest == units_.size() || free_in_[i] < free_in_[fullest]))
      fullest = i;
  }
  std::vector<uint32_t> part;
  if (fullest == units_.size()) return part;
  for (const uint32_t device : units_[fullest]) {
    if (!is_taken_[device] && part.size() < count) part.push_back(device);
  }
  return part;
}

void DeviceFloor::TakeFree(const std::vector<uint32_t>& devices) {
  for (const uint32_t device : devices)
    if (IsFree(device)) Take({device});
}

void DeviceFloor::Set(const std::vector<uint32_t>& devices, bool is_taken) {
  for (const uint32_t device : devices) {
    CHECK(is_taken_[device] != is_taken);
    is_taken_[device] = is_taken;
    free_in_[unit_of_[device]] += is_taken ? -1 : 1;
  }
  const auto count = static_cast<uint32_t>(devices.size());
  free_devices_ += is_taken ? -count : count;
}

}  // namespace rehearse

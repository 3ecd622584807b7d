// Which devices of a cluster jobs hold, as schedulers give them out: in units of a machine, or of a
// tray where machines are racks. Jobs below a unit share units.
#pragma once

#include <cstdint>
#include <vector>

#include "topology/cluster/cluster.h"

namespace rehearse {

// For keys that say how many devices a unit has.
inline constexpr int64_t kMostDevicesOfUnit = 1024;
inline constexpr char kUsualUnitWords[] = "a machine, or a tray of 4 where it has more than 16";

uint32_t LargestMachine(const Cluster& cluster);  // devices
// Devices of the largest machine, if there are at most 16; else 4, a tray of GB200 or GB300.
uint32_t UsualUnit(const Cluster& cluster);

class DeviceFloor {
 public:
  DeviceFloor(const Cluster& cluster, uint32_t unit);

  uint32_t unit() const { return unit_; }
  uint32_t free_devices() const { return free_devices_; }
  bool IsFree(uint32_t device) const { return !is_taken_[device]; }
  // Devices of units that are wholly free, in order.
  std::vector<uint32_t> Whole() const;
  // Those that a job may be given: of the fullest unit that has room for a job below a unit, all of
  // Whole() otherwise. Nothing if too few are free.
  std::vector<uint32_t> FreeFor(uint32_t devices) const;

  // All devices of the units that these are of.
  std::vector<uint32_t> UnitsOf(const std::vector<uint32_t>& devices) const;

  void Take(const std::vector<uint32_t>& devices) { Set(devices, true); }
  void Leave(const std::vector<uint32_t>& devices) { Set(devices, false); }
  // Those of them that are free.
  void TakeFree(const std::vector<uint32_t>& devices);

 private:
  void Set(const std::vector<uint32_t>& devices, bool is_taken);
  std::vector<uint32_t> PartOfUnit(uint32_t count) const;

  uint32_t unit_;
  uint32_t free_devices_;
  std::vector<std::vector<uint32_t>> units_;
  std::vector<uint32_t> unit_of_;  // by device
  std::vector<uint32_t> free_in_;  // by unit
  std::vector<bool> is_taken_;     // by device
};

}  // namespace rehearse

// The figures of a cluster: what its links and devices reach, what its collectives cost. A value:
// to get other figures, change a copy and lay it over the same wiring with Cluster::With(), as
// calibrations, what-if edits (topology/files) and the sensitivities of `rehearse explain` do. A
// copy shares the links' figures, of which a large cluster has millions, until ChangeLinks() gives
// it its own.
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "sim/base/quantity.h"
#include "topology/cluster/network_plugin.h"
#include "topology/devices/device.h"

namespace rehearse {

// Of one direction.
struct LinkFigures {
  BytesPerSecond bandwidth;  // nominal
  double efficiency = 1;     // share of it that collectives reach
  Seconds latency;
};

// Those of all links, by index. Never changes. Those of equal machines
// (topology/cluster/equal_machines.h), which come last, are kept once.
class FigureTable {
 public:
  explicit FigureTable(std::vector<LinkFigures> links, std::vector<LinkFigures> machine = {},
                       size_t machines = 0)
      : links_(std::move(links)), machine_(std::move(machine)), machines_(machines) {}

  size_t size() const { return links_.size() + machines_ * machine_.size(); }
  const LinkFigures& operator[](size_t index) const {
    return index < links_.size() ? links_[index]
                                 : machine_[(index - links_.size()) % machine_.size()];
  }
  bool HasEqualMachines() const { return machines_ > 0; }
  std::vector<LinkFigures> OneByOne() const {
    std::vector<LinkFigures> all = links_;
    all.reserve(size());
    for (size_t i = 0; i < machines_; ++i) all.insert(all.end(), machine_.begin(), machine_.end());
    return all;
  }

 private:
  std::vector<LinkFigures> links_;
  std::vector<LinkFigures> machine_;
  size_t machines_;
};

// Longer ones are mistakes, and sums of them must fit the simulated clock.
inline constexpr Seconds kLongestLatency(100);

// What users of a calibration must know about where it comes from.
struct CalibrationOrigin {
  std::string machine;  // "AMD EPYC, 2 cores"; "" if not known
  std::string date;
  // False: ranks shared a device, or there was only one; times mean little then.
  bool is_representative = true;
};

struct Figures {
  std::shared_ptr<const FigureTable> links;  // never null
  std::vector<DeviceSpec> device_specs;
  std::vector<uint32_t> spec_of_rank;  // positions in device_specs
  Seconds step_overhead;               // per step of a collective
  // What launching a collective takes: once, and once more for each channel that NCCL gives it.
  Seconds collective_overhead;
  Seconds channel_overhead;
  NetworkPlugin network_plugin;  // between NCCL and the NICs
  // The rings of groups of whole machines, by a device's place in its machine; none: they are
  // searched for.
  std::vector<std::vector<uint32_t>> rings = {};
  // Used instead of playing their steps over links; null for none.
  std::shared_ptr<const MeasuredCollectives> measured_collectives;
  std::optional<CalibrationOrigin> calibration_origin;  // nothing if no calibration was applied
  std::vector<std::string> notes;  // what a preset simplifies, for the user to read

  // `change(index, figures)` is called for every link and may change the figures.
  template <typename Change>
  void ChangeLinks(Change change) {
    std::vector<LinkFigures> changed = links->OneByOne();
    for (uint32_t i = 0; i < changed.size(); ++i) change(i, changed[i]);
    links = std::make_shared<const FigureTable>(std::move(changed));
  }
};

}  // namespace rehearse

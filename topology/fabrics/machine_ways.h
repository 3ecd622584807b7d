// The ways within one of the equal machines of a cluster that knows its structure: from device to
// device, and from its devices to the ports that lead to the fabric.
//
// Machines that lack the same links have the same ways, so one MachineWays is enough for all of
// them. Ways are chosen by the figures that machines were drawn with: edits that make a link slower
// or faster leave them as they are. A port whose cable is gone in either direction is not used, nor
// is a NIC without any other. Not thread-safe (it remembers); its Cluster must outlive it.
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <optional>
#include <vector>

#include "topology/cluster/cluster.h"
#include "topology/fabrics/path_search.h"

namespace rehearse {

class MachineWays {
 public:
  static constexpr uint32_t kNone = 0xffffffffu;

  // Links as drawn, counted from the machine's first one.
  struct Way {
    bool known = false;
    bool usable = true;  // false: nothing inside the machine leads there
    std::vector<uint32_t> links;
  };
  // From a device to the fabric, and back.
  struct Exit {
    uint32_t port = 0;
    Way out;
    Way in;
  };

  // `machine` has all links but those in `gone` (by link of a machine as drawn; empty: none).
  MachineWays(const Cluster& cluster, uint32_t machine, std::vector<bool> gone);

  // Devices are named by their places: ranks within the machine.
  const Way& Between(uint32_t from_place, uint32_t to_place);
  // By the NICs that the device owns, or by its own ports; none if it has neither.
  const std::vector<Exit>& ExitsOf(uint32_t place);
  // By what others own, the nearest first; for when its own lead nowhere.
  const std::vector<Exit>& OtherExitsOf(uint32_t place);
  // To the exit of another place: over NVLink by way of the device there, else through the host.
  Way OntoExit(uint32_t from_place, uint32_t place, const Exit& exit);
  // The most ports that the NICs of one device have, or the device itself.
  uint32_t MostExits();
  size_t links_scanned() const { return search_ ? search_->links_scanned() : 0; }

 private:
  bool IsGone(uint32_t link) const { return !gone_.empty() && gone_[link]; }
  bool HasPort(uint32_t port) const;
  PathSearch& Search();
  uint32_t NicOf(uint32_t place);  // the first one that it owns; kNone if it owns none
  Way Find(uint32_t from, uint32_t to, uint32_t from_nic, uint32_t to_nic);
  Exit ExitBy(uint32_t place, uint32_t port);

  const Cluster& cluster_;
  const uint32_t machine_;
  const std::vector<bool> gone_;
  std::unique_ptr<Cluster> model_;  // the machine alone; null until it is needed
  std::vector<uint32_t> drawn_;     // the model's links as drawn, the cables to its hub left out
  std::vector<bool> is_cable_;      // by link of the model
  std::unique_ptr<PathSearch> search_;                    // in the model
  std::vector<std::optional<std::vector<Exit>>> exits_;   // by place
  std::vector<std::optional<std::vector<Exit>>> others_;  // by place
  std::vector<Way> ways_;                                 // by pair of places
};

}  // namespace rehearse

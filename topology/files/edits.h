// What-if edits: changes to a cluster that select their links and devices by name, such as
//   "edits": [{"links": "node3/nic*", "bandwidth": "0.5x"},
//             {"devices": "node7/gpu2", "compute": "0.8x", "memory_bandwidth": "0.9x"},
//             {"links": "rail0/**", "latency": "+2us"},
//             {"links": "node*/nic*", "kind": "network", "bandwidth": "12.5GBps"},
//             {"links": "node1/nic0", "down": true}]
// in a scenario or a cluster file. An edit changes what it selects and nothing else.
//
// Selectors are patterns on names (topology/cluster/selectors.h). "links" may have "one_way": true
// beside a pattern with a direction, and a "kind": only links of this kind are changed. Without it
// a NIC's name stands for its cable and its PCIe alike: figures of both are rarely meant, so what
// they are is said on standard error. "devices" selects devices.
//
// Values are absolute ("20GBps", "5us"), relative ("0.5x") or differences ("+2us", "-5GBps").
// "bandwidth" is the nominal one; the efficiency stays. "compute" is a factor and scales all peaks
// of the device; launch overheads stay. Edits apply in order, each to what the earlier ones have
// left. Figures move no route; links that are down do (topology/fabrics/router.h).
#pragma once

#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "sim/base/json_reader.h"
#include "topology/cluster/cluster.h"

namespace rehearse {

// What happens to a number: old · factor + offset, in SI units. An absolute value has the factor 0.
struct Change {
  double factor = 1;
  double offset = 0;

  double Of(double old) const { return old * factor + offset; }
};

struct Edit {
  enum class Target : uint8_t { kLinks, kDevices };

  Target target = Target::kLinks;
  std::string selector;
  bool one_way = false;
  std::optional<LinkKind> kind;  // only links of this kind
  bool down = false;             // links are taken away
  std::optional<Change> bandwidth;
  std::optional<Change> latency;
  std::optional<Change> compute;
  std::optional<Change> memory_bandwidth;
  Place place;  // where the user wrote it
};

JsonShape EditsShape();  // of a list of them

// All peaks so many times as high, at the same watts: as quick as the factor says in a step, too.
void MultiplyCompute(double factor, DeviceSpec* device);

// "0.5x", "20GBps", "+5GBps". Throws Error for anything else.
Change ReadBandwidthChange(const JsonReader& reader);
// "0.8x": above 0. Throws Error for anything else.
double ReadFactor(const JsonReader& reader);
// Whether the object has the key, whose value must then be true: false would say nothing.
bool ReadFlag(const JsonReader& object, const char* key);

// Reads the array. Throws Error for an edit that changes nothing, or links and devices at once, and
// for values that are of none of the three kinds.
std::vector<Edit> ReadEdits(const JsonReader& reader);

// The edited cluster: other figures over the same wiring, or, where links are down, another wiring
// with the same vertices and ranks, and the other links in the same order. Throws Error (with the
// edit's place) for a selector that matches nothing, with "did you mean", for values that leave
// their range, and for a cut that leaves a device without a path to another, naming the ranks that
// are cut off.
std::unique_ptr<Cluster> ApplyEdits(const Cluster& cluster, const std::vector<Edit>& edits);

}  // namespace rehearse

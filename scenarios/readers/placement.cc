#include "scenarios/readers/placement.h"

#include <algorithm>
#include <charconv>
#include <optional>
#include <string>
#include <string_view>

#include <fmt/format.h>

#include "scenarios/readers/busy_cluster.h"
#include "sim/base/error.h"

namespace rehearse {
namespace {

std::vector<std::string> Words() {
  std::vector<std::string> words;
  for (const auto& [name, order] : kPlacementOrders) words.emplace_back(name);
  return words;
}

// Nothing for a list of devices.
std::optional<PlacementOrder> OrderOf(std::string_view text) {
  for (const auto& [name, order] : kPlacementOrders) {
    if (text == name) return order;
  }
  return std::nullopt;
}

// The number, or `devices` if it is none (which is also out of range).
uint32_t ParseDevice(std::string_view text, uint32_t devices) {
  uint32_t device = devices;
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), device);
  return error == std::errc() && end == text.data() + text.size() ? device : devices;
}

// "0-7,16-23"
void AddRanges(const JsonReader& reader, uint32_t devices, std::vector<uint32_t>* listed) {
  const std::string text = reader.String();
  for (size_t begin = 0; begin <= text.size();) {
    const size_t comma = std::min(text.find(',', begin), text.size());
    const std::string_view part = std::string_view(text).substr(begin, comma - begin);
    const size_t dash = part.find('-');
    const uint32_t first = ParseDevice(part.substr(0, dash), devices);
    const uint32_t last =
        dash == std::string_view::npos ? first : ParseDevice(part.substr(dash + 1), devices);
    if (first >= devices || last >= devices || first > last) {
      reader.Expected(fmt::format("{}, or devices from 0 to {} such as \"0-7,16-23\"",
                                  fmt::join(Words(), ", "), devices - 1));
    }
    for (uint32_t device = first; device <= last; ++device) listed->push_back(device);
    begin = comma + 1;
  }
}

std::vector<uint32_t> ListedDevices(const JsonReader& reader, uint32_t devices) {
  std::vector<uint32_t> listed;
  if (!reader.IsArray()) {
    AddRanges(reader, devices, &listed);
    return listed;
  }
  for (const JsonReader& entry : reader.Elements()) {
    if (entry.IsString()) {
      AddRanges(entry, devices, &listed);
    } else {
      listed.push_back(static_cast<uint32_t>(entry.Integer(0, devices - 1)));
    }
  }
  return listed;
}

std::vector<std::vector<uint32_t>> ByNode(const std::vector<uint32_t>& devices,
                                          const Cluster& cluster) {
  std::vector<std::vector<uint32_t>> of_node(cluster.node_count());
  for (const uint32_t device : devices) of_node[cluster.NodeIndexOf(device)].push_back(device);
  return of_node;
}

// One device of each machine, then the next of each.
std::vector<uint32_t> InTurns(const std::vector<uint32_t>& devices, const Cluster& cluster) {
  const std::vector<std::vector<uint32_t>> of_node = ByNode(devices, cluster);
  std::vector<uint32_t> dealt;
  for (size_t turn = 0; dealt.size() < devices.size(); ++turn) {
    for (const std::vector<uint32_t>& node : of_node) {
      if (turn < node.size()) dealt.push_back(node[turn]);
    }
  }
  return dealt;
}

// The first `share` devices of each machine that has so many, for the largest share that serves.
std::vector<uint32_t> InEqualShares(const std::vector<uint32_t>& devices, const Cluster& cluster,
                                    uint32_t ranks) {
  const std::vector<std::vector<uint32_t>> of_node = ByNode(devices, cluster);
  for (uint32_t share = ranks; share > 0; --share) {
    if (ranks % share != 0) continue;
    std::vector<uint32_t> dealt;
    for (const std::vector<uint32_t>& node : of_node) {
      if (node.size() < share || dealt.size() == ranks) continue;
      dealt.insert(dealt.end(), node.begin(), node.begin() + share);
    }
    if (dealt.size() == ranks) return dealt;
  }
  return {};
}

}  // namespace

std::vector<uint32_t> InOrder(PlacementOrder order, std::vector<uint32_t> free,
                              const Cluster& cluster, uint32_t ranks) {
  if (free.size() < ranks) return {};
  if (order == PlacementOrder::kEven) return InEqualShares(free, cluster, ranks);
  if (order == PlacementOrder::kRoundRobin) free = InTurns(free, cluster);
  free.resize(ranks);
  return free;
}

JsonShape PlacementShape() {
  const JsonShape ranges = AText("ranges of devices such as \"0-7,16-23\"");
  return Either({OneOf(Words()), ranges, ListOf(Either({AWhole(0, int64_t{1} << 24), ranges}))});
}

JsonShape OwnPlacementShape() {
  return Either({PlacementShape(), ObjectOf(ShapeIn<BusyClusterFields>)});
}

bool ListsDevices(const JsonReader& reader) {
  return !reader.IsString() || !OrderOf(reader.String());
}

std::vector<uint32_t> ReadPlacement(const JsonReader& reader, const Cluster& cluster,
                                    uint32_t ranks, const std::vector<bool>& is_taken) {
  const uint32_t devices = cluster.device_count();
  if (ListsDevices(reader)) {
    std::vector<uint32_t> listed = ListedDevices(reader, devices);
    if (listed.size() != ranks) {
      reader.Fail(
          fmt::format("a placement on {} device{} of a step with {} ranks; expected a "
                      "device for each",
                      listed.size(), listed.size() == 1 ? "" : "s", ranks));
    }
    std::vector<bool> is_listed(devices);
    for (const uint32_t device : listed) {
      if (is_listed[device]) reader.Fail(fmt::format("device {} is listed twice", device));
      is_listed[device] = true;
    }
    return listed;
  }
  std::vector<uint32_t> free;
  for (uint32_t device = 0; device < devices; ++device) {
    if (!is_taken[device]) free.push_back(device);
  }
  if (free.size() < ranks) {
    reader.Fail(fmt::format("{} ranks, but cluster \"{}\" has {} free devices", ranks,
                            cluster.name(), free.size()));
  }
  std::vector<uint32_t> placed =
      InOrder(*OrderOf(reader.String()), std::move(free), cluster, ranks);
  if (placed.empty()) {
    reader.Fail(
        fmt::format("{} ranks cannot be spread evenly over the free devices of cluster \"{}\"; "
                    "\"block\" takes them as they come",
                    ranks, cluster.name()));
  }
  return placed;
}

}  // namespace rehearse

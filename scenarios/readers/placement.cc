#include "scenarios/readers/placement.h"

#include <algorithm>
#include <charconv>
#include <string>
#include <string_view>

#include <fmt/format.h>

#include "sim/base/error.h"

namespace rehearse {
namespace {

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
      reader.Expected(fmt::format(
          "block, round-robin, or devices from 0 to {} such as \"0-7,16-23\"", devices - 1));
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

// One device of each machine, then the next of each.
std::vector<uint32_t> InTurns(const std::vector<uint32_t>& devices, const Cluster& cluster) {
  std::vector<std::vector<uint32_t>> of_node(cluster.node_count());
  for (const uint32_t device : devices) of_node[cluster.NodeIndexOf(device)].push_back(device);
  std::vector<uint32_t> dealt;
  for (size_t turn = 0; dealt.size() < devices.size(); ++turn) {
    for (const std::vector<uint32_t>& node : of_node) {
      if (turn < node.size()) dealt.push_back(node[turn]);
    }
  }
  return dealt;
}

}  // namespace

JsonShape PlacementShape() {
  const JsonShape ranges = AText("ranges of devices such as \"0-7,16-23\"");
  return Either({OneOf({"block", "round-robin"}), ranges,
                 ListOf(Either({AWhole(0, int64_t{1} << 24), ranges}))});
}

bool ListsDevices(const JsonReader& reader) {
  return !reader.IsString() || (reader.String() != "block" && reader.String() != "round-robin");
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
  if (reader.String() == "round-robin") free = InTurns(free, cluster);
  free.resize(ranks);
  return free;
}

}  // namespace rehearse

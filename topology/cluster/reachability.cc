#include "topology/cluster/reachability.h"

#include <algorithm>
#include <string>
#include <vector>

#include <fmt/format.h>

#include "sim/base/error.h"
#include "topology/cluster/graph.h"

namespace rehearse {
namespace {

enum class Direction { kForward, kBackward };

// What may be passed: all links, but no device; or devices too, but only over NVLink and xGMI.
enum class Passing { kNoDevices, kOverNvLink };

// The vertices that are met from any of `starts` along links (or against them).
std::vector<bool> Reached(const Wiring& wiring, const std::vector<VertexId>& starts,
                          Direction direction, Passing passing) {
  const ClusterGraph& graph = wiring.graph().graph;
  std::vector<bool> reached(wiring.vertex_count(), false);
  std::vector<VertexId> open = starts;
  for (const VertexId start : starts) reached[start] = true;
  const auto is_open = [&](uint32_t link) {
    if (passing == Passing::kNoDevices) return true;
    const LinkKind kind = wiring.LinkAt(link).kind;
    return kind == LinkKind::kNvLink || kind == LinkKind::kXgmi;
  };
  const auto visit = [&](VertexId vertex, uint32_t link) {
    if (reached[vertex] || !is_open(link)) return;
    reached[vertex] = true;
    if (passing == Passing::kOverNvLink || wiring.KindAt(vertex) != VertexKind::kDevice)
      open.push_back(vertex);
  };
  while (!open.empty()) {
    const VertexId vertex = open.back();
    open.pop_back();
    if (direction == Direction::kForward) {
      for (auto [it, end] = boost::out_edges(vertex, graph); it != end; ++it)
        visit(boost::target(*it, graph), graph[*it].index);
    } else {
      for (auto [it, end] = boost::in_edges(vertex, graph); it != end; ++it)
        visit(boost::source(*it, graph), graph[*it].index);
    }
  }
  return reached;
}

std::vector<VertexId> DevicesAmong(const Wiring& wiring, const std::vector<bool>& reached) {
  std::vector<VertexId> devices;
  for (const VertexId device : wiring.devices)
    if (reached[device]) devices.push_back(device);
  return devices;
}

// The same, beginning and ending over NVLink by way of other devices where that helps.
std::vector<bool> ReachedAnyhow(const Wiring& wiring, VertexId start, Direction direction) {
  std::vector<VertexId> starts = {start};
  std::vector<bool> reached;
  for (const Passing passing : {Passing::kOverNvLink, Passing::kNoDevices, Passing::kOverNvLink}) {
    reached = Reached(wiring, starts, direction, passing);
    starts = DevicesAmong(wiring, reached);
  }
  return reached;
}

bool AllReached(const std::vector<bool>& reached, const std::vector<VertexId>& devices) {
  for (const VertexId device : devices)
    if (!reached[device]) return false;
  return true;
}

// Whether all devices are reached from a vertex that is no device, or reach it: through no device,
// except over NVLink at the far end.
bool AllMeetAt(const Wiring& wiring, VertexId middle, Direction direction) {
  const std::vector<bool> reached = Reached(wiring, {middle}, direction, Passing::kNoDevices);
  if (AllReached(reached, wiring.devices)) return true;
  return AllReached(Reached(wiring, DevicesAmong(wiring, reached), direction, Passing::kOverNvLink),
                    wiring.devices);
}

// Whether all devices meet at one switch, NIC or socket that touches one of the first devices, or
// are joined by NVLinks alone: true of nearly every machine, and linear in its size. If not, every
// device must be checked.
bool DevicesMeet(const Wiring& wiring) {
  constexpr size_t kMostCandidates = 8;
  const ClusterGraph& graph = wiring.graph().graph;
  std::vector<VertexId> candidates;
  for (const VertexId device : wiring.devices) {
    for (auto [it, end] = boost::out_edges(device, graph); it != end; ++it) {
      const VertexId middle = boost::target(*it, graph);
      if (wiring.KindAt(middle) == VertexKind::kDevice) continue;
      if (candidates.size() < kMostCandidates &&
          std::find(candidates.begin(), candidates.end(), middle) == candidates.end())
        candidates.push_back(middle);
    }
    if (candidates.size() == kMostCandidates) break;
  }
  for (const VertexId middle : candidates)
    if (AllMeetAt(wiring, middle, Direction::kForward) &&
        AllMeetAt(wiring, middle, Direction::kBackward))
      return true;
  const std::vector<VertexId> first = {wiring.devices[0]};
  return AllReached(Reached(wiring, first, Direction::kForward, Passing::kOverNvLink),
                    wiring.devices) &&
         AllReached(Reached(wiring, first, Direction::kBackward, Passing::kOverNvLink),
                    wiring.devices);
}

// The ranks, dealt into sets whose members all reach each other from and to the set's first rank.
std::vector<std::vector<uint32_t>> ConnectedRanks(const Wiring& wiring) {
  const std::vector<VertexId>& devices = wiring.devices;
  std::vector<std::vector<uint32_t>> sets;
  std::vector<bool> is_placed(devices.size(), false);
  for (uint32_t first = 0; first < devices.size(); ++first) {
    if (is_placed[first]) continue;
    const std::vector<bool> there = ReachedAnyhow(wiring, devices[first], Direction::kForward);
    const std::vector<bool> back = ReachedAnyhow(wiring, devices[first], Direction::kBackward);
    sets.emplace_back();
    for (uint32_t rank = first; rank < devices.size(); ++rank) {
      if (is_placed[rank] || !there[devices[rank]] || !back[devices[rank]]) continue;
      is_placed[rank] = true;
      sets.back().push_back(rank);
    }
  }
  return sets;
}

// "rank 3", "ranks 0-2, 7 and 5 more".
std::string RanksText(const std::vector<uint32_t>& ranks) {
  constexpr int kMostRanges = 8;
  std::string text = ranks.size() == 1 ? "rank " : "ranks ";
  int ranges = 0;
  for (size_t begin = 0; begin < ranks.size();) {
    if (ranges++ == kMostRanges) return text + fmt::format(" and {} more", ranks.size() - begin);
    size_t end = begin + 1;
    while (end < ranks.size() && ranks[end] == ranks[end - 1] + 1) ++end;
    text += fmt::format("{}{}", begin == 0 ? "" : ", ", ranks[begin]);
    if (end - begin > 1) text += fmt::format("-{}", ranks[end - 1]);
    begin = end;
  }
  return text;
}

// "; cut off from the others: rank 4; ranks 5-7": all sets but the largest.
std::string CutOff(const Wiring& wiring) {
  constexpr size_t kMostSets = 4;
  std::vector<std::vector<uint32_t>> sets = ConnectedRanks(wiring);
  const auto largest = std::max_element(
      sets.begin(), sets.end(), [](const auto& a, const auto& b) { return a.size() < b.size(); });
  sets.erase(largest);
  if (sets.empty()) return "";  // each reaches the first, but not all each other
  std::string text = "; cut off from the others: ";
  for (size_t i = 0; i < std::min(sets.size(), kMostSets); ++i)
    text += (i == 0 ? "" : "; ") + RanksText(sets[i]);
  if (sets.size() > kMostSets) text += fmt::format("; and {} more sets", sets.size() - kMostSets);
  return text;
}

}  // namespace

void CheckConnected(const Wiring& wiring) {
  if (DevicesMeet(wiring)) return;
  for (const VertexId from : wiring.devices) {
    std::vector<bool> reached = Reached(wiring, {from}, Direction::kForward, Passing::kNoDevices);
    if (!AllReached(reached, wiring.devices))
      reached = ReachedAnyhow(wiring, from, Direction::kForward);
    for (const VertexId to : wiring.devices) {
      if (!reached[to])
        throw Error(
            fmt::format("device \"{}\" has no path to device \"{}\" (a path may not pass through "
                        "other devices){}",
                        wiring.VertexAt(from).name, wiring.VertexAt(to).name, CutOff(wiring)));
    }
  }
}

}  // namespace rehearse

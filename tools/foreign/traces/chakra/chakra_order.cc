#include "tools/foreign/traces/chakra/chakra_order.h"

#include <algorithm>
#include <deque>
#include <functional>
#include <queue>
#include <unordered_map>
#include <utility>

#include <fmt/format.h>

#include "sim/base/error.h"

namespace rehearse {

void FailAtNode(const ChakraTrace& trace, const KeptNode& node, const std::string& what,
                std::optional<uint32_t> rank) {
  throw Error(fmt::format(
      "{}: {}", ChakraPlace(trace.file, rank.value_or(trace.rank), node.id, node.offset), what));
}

namespace {

[[noreturn]] void FailWithNodeCycle(const ChakraTrace& trace, const NodeOrder& nodes,
                                    const std::vector<uint32_t>& waits_for) {
  const auto is_stuck = [&](uint32_t node) { return waits_for[node] > 0; };
  uint32_t at = 0;
  while (!is_stuck(at)) ++at;
  // A stuck node waits for another stuck one: after as many steps as there are nodes we are in the
  // cycle.
  for (size_t step = 0; step < trace.nodes.size(); ++step) {
    const std::span<const uint32_t> before = nodes.Before(at);
    at = *std::find_if(before.begin(), before.end(), is_stuck);
  }
  FailAtNode(trace, trace.nodes[at], "depends on itself: its dependencies form a cycle");
}

// Finds nodes by number. Most traces have them in the order of their numbers, with few gaps.
class NodePlaces {
 public:
  explicit NodePlaces(const ChakraTrace& trace) : trace_(trace) {
    const auto count = static_cast<uint32_t>(trace.nodes.size());
    for (uint32_t i = 1; i < count && is_ascending_; ++i)
      is_ascending_ = trace.nodes[i - 1].id < trace.nodes[i].id;
    if (is_ascending_) return;
    places_.reserve(count);
    for (uint32_t i = 0; i < count; ++i) {
      if (!places_.emplace(trace.nodes[i].id, i).second)
        FailAtNode(trace, trace.nodes[i], "found a second node with this number");
    }
  }

  bool is_ascending() const { return is_ascending_; }
  std::optional<uint32_t> Find(uint64_t id) const {
    if (!is_ascending_) {
      const auto place = places_.find(id);
      return place == places_.end() ? std::nullopt : std::optional(place->second);
    }
    const std::deque<KeptNode>& nodes = trace_.nodes;
    const uint64_t guess = id - nodes.front().id;
    if (guess < nodes.size() && nodes[guess].id == id) return static_cast<uint32_t>(guess);
    const auto place =
        std::lower_bound(nodes.begin(), nodes.end(), id,
                         [](const KeptNode& node, uint64_t wanted) { return node.id < wanted; });
    if (place == nodes.end() || place->id != id) return std::nullopt;
    return static_cast<uint32_t>(place - nodes.begin());
  }

 private:
  const ChakraTrace& trace_;
  bool is_ascending_ = true;
  std::unordered_map<uint64_t, uint32_t> places_;
};

// The lowest number first among those that are ready.
void Sort(const ChakraTrace& trace, NodeOrder* nodes) {
  const auto count = static_cast<uint32_t>(trace.nodes.size());
  std::vector<std::vector<uint32_t>> followers(count);
  std::vector<uint32_t> waits_for(count);
  using Ready = std::pair<uint64_t, uint32_t>;  // number, place
  std::priority_queue<Ready, std::vector<Ready>, std::greater<>> ready;
  for (uint32_t i = 0; i < count; ++i) {
    const std::span<const uint32_t> before = nodes->Before(i);
    for (const uint32_t one : before) followers[one].push_back(i);
    waits_for[i] = static_cast<uint32_t>(before.size());
    if (waits_for[i] == 0) ready.emplace(trace.nodes[i].id, i);
  }
  while (!ready.empty()) {
    const uint32_t node = ready.top().second;
    ready.pop();
    nodes->order.push_back(node);
    for (const uint32_t next : followers[node]) {
      if (--waits_for[next] == 0) ready.emplace(trace.nodes[next].id, next);
    }
  }
  if (nodes->order.size() < count) FailWithNodeCycle(trace, *nodes, waits_for);
}

}  // namespace

NodeOrder OrderOf(const ChakraTrace& trace) {
  const auto count = static_cast<uint32_t>(trace.nodes.size());
  const NodePlaces places(trace);
  NodeOrder result;
  result.order.reserve(count);
  result.begins.reserve(size_t{count} + 1);
  bool is_sorted = places.is_ascending();
  std::vector<uint32_t> before;
  for (uint32_t i = 0; i < count; ++i) {
    before.clear();
    for (const uint64_t id : trace.Before(i)) {
      const std::optional<uint32_t> place = places.Find(id);
      if (!place || *place == i) {
        ++result.missing;
        continue;
      }
      is_sorted = is_sorted && *place < i;
      before.push_back(*place);
    }
    std::sort(before.begin(), before.end());
    before.erase(std::unique(before.begin(), before.end()), before.end());
    result.before.insert(result.before.end(), before.begin(), before.end());
    result.begins.push_back(static_cast<uint32_t>(result.before.size()));
  }
  if (is_sorted) {
    for (uint32_t i = 0; i < count; ++i) result.order.push_back(i);
  } else {
    Sort(trace, &result);
  }
  return result;
}

}  // namespace rehearse

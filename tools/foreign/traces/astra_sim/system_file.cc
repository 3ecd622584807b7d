#include "tools/foreign/traces/astra_sim/system_file.h"

#include <charconv>
#include <string_view>

#include <fmt/format.h>

#include "sim/base/error.h"
#include "tools/foreign/machines/imported_cluster.h"

namespace rehearse {
namespace {

constexpr uint32_t kMostSplits = 4096;
constexpr double kMostNanoseconds = 1e9;
constexpr double kMostGigabytes = 1e9;
constexpr size_t kMostDimensions = 64;

struct KindName {
  const char* key;
  CollectiveKind kind;
};
constexpr KindName kKinds[] = {{"all-reduce-implementation", CollectiveKind::kAllReduce},
                               {"all-gather-implementation", CollectiveKind::kAllGather},
                               {"reduce-scatter-implementation", CollectiveKind::kReduceScatter},
                               {"all-to-all-implementation", CollectiveKind::kAllToAll}};

struct AlgorithmName {
  const char* name;
  AstraAlgorithm algorithm;
  bool is_of_all;
  bool has_window;
};
constexpr AlgorithmName kAlgorithms[] = {
    {"ring", AstraAlgorithm::kRing, false, false},
    {"oneRing", AstraAlgorithm::kRing, true, false},
    {"halvingDoubling", AstraAlgorithm::kHalvingDoubling, false, false},
    {"oneHalvingDoubling", AstraAlgorithm::kHalvingDoubling, true, false},
    {"doubleBinaryTree", AstraAlgorithm::kDoubleBinaryTree, false, false},
    {"direct", AstraAlgorithm::kDirect, false, true},
    {"oneDirect", AstraAlgorithm::kDirect, true, true}};

// "ring", "direct", or "direct4".
AstraImplementation ImplementationOf(const JsonReader& reader) {
  const std::string text = reader.String();
  for (const AlgorithmName& known : kAlgorithms) {
    const std::string_view name = known.name;
    if (text == name) return {known.algorithm, known.is_of_all, 0};
    if (!known.has_window || !text.starts_with(name)) continue;
    uint32_t window = 0;
    const char* const end = text.data() + text.size();
    const auto [at, fault] = std::from_chars(text.data() + name.size(), end, window);
    if (fault == std::errc() && at == end && window > 0)
      return {known.algorithm, known.is_of_all, window};
  }
  reader.Expected(
      "ring, direct, halvingDoubling, doubleBinaryTree, oneRing, oneDirect or "
      "oneHalvingDoubling");
}

}  // namespace

bool IsAstraSystem(const JsonReader& root) {
  if (!root.IsObject()) return false;
  for (const char* key : {"scheduling-policy", "endpoint-delay", "preferred-dataset-splits",
                          "collective-optimization"})
    if (root.Has(key)) return true;
  for (const KindName& kind : kKinds)
    if (root.Has(kind.key)) return true;
  return false;
}

AstraSystem ReadAstraSystem(const JsonReader& root) {
  if (!root.IsObject()) root.Expected("the system of ASTRA-sim, such as {\"endpoint-delay\": 1}");
  AstraSystem system;
  std::string others;
  for (const auto& [name, value] : root.Members()) {
    const KindName* kind = nullptr;
    for (const KindName& one : kKinds)
      if (name == one.key) kind = &one;
    if (kind != nullptr) {
      const std::vector<JsonReader> elements = value.Elements();
      if (elements.empty() || elements.size() > kMostDimensions)
        value.Expected("an algorithm for each dimension");
      for (const JsonReader& element : elements)
        system.implementations[kind->kind].push_back(ImplementationOf(element));
    } else if (name == "preferred-dataset-splits") {
      system.splits = static_cast<uint32_t>(value.Integer(1, kMostSplits));
    } else if (name == "active-chunks-per-dimension") {
      system.active = static_cast<uint32_t>(value.Integer(1, kMostSplits));
    } else if (name == "endpoint-delay") {
      system.endpoint_delay = value.Number(0, kMostNanoseconds);
    } else if (name == "local-mem-bw") {
      constexpr double kGigabyte = 1e9;
      system.memory_bandwidth = value.Number(0, kMostGigabytes) * kGigabyte;
    } else if (name == "collective-optimization") {
      system.scatters_first = value.Choice({"baseline", "localBWAware"}) == 1;
    } else if (name == "scheduling-policy") {
      if (value.Choice({"LIFO", "FIFO", "EXPLICIT"}) != 1)
        system.remarks.emplace_back(
            "scheduling-policy: collectives that wait for each other go in their order, as by "
            "FIFO");
    } else if (name.ends_with("-implementation-custom")) {
      system.remarks.push_back(
          fmt::format("not supported: {}; its traces are a schedule themselves (import chakra)",
                      Printable(name)));
    } else {
      others += (others.empty() ? "" : ", ") + Printable(name);
    }
  }
  if (!others.empty()) system.remarks.push_back("not supported: " + others);
  return system;
}

}  // namespace rehearse

#include "tests/support/hand_written_cluster.h"

#include <array>
#include <string_view>
#include <vector>

#include <fmt/format.h>
#include <nlohmann/json.hpp>

#include "sim/base/error.h"
#include "sim/base/json_document.h"
#include "tests/support/random_program.h"
#include "topology/files/cluster_file.h"

namespace rehearse {
namespace {

using Json = nlohmann::ordered_json;

template <typename T, size_t kCount>
const T& OneOfThese(Random& random, const std::array<T, kCount>& values) {
  return values[random.Below(static_cast<uint32_t>(kCount))];
}

// 1 to 767 GB/s and 0.05 to 19 us, evenly by order of magnitude, whatever kind of link it is.
Json AnyLink(Random& random) {
  const uint32_t bandwidth = 1u << random.Below(9);
  const uint32_t latency = 50u << random.Below(8);
  Json link = {{"bandwidth", fmt::format("{}GBps", bandwidth + random.Below(2 * bandwidth))},
               {"latency", fmt::format("{}ns", latency + random.Below(2 * latency))}};
  if (random.Chance(40)) link["efficiency"] = 0.1 * random.Between(4, 10);
  return link;
}

const char* AnyDevice(Random& random) {
  return OneOfThese(random, std::array{"a100-40g", "h100", "b200", "mi300x"});
}

// ---- The compact form ---------------------------------------------------------------------------

void AddHost(Random& random, Json* node) {
  Json& to = *node;
  to["pcie"] = AnyLink(random);
  const uint32_t sockets = random.Between(1, 3);
  const uint32_t switches = random.Below(5);
  to["sockets"] = sockets;
  to["pcie_switches"] = switches;
  if (sockets > 1) to["between_sockets"] = AnyLink(random);
  if (switches > 0 && random.Chance(40)) to["root_port"] = AnyLink(random);
  if (random.Chance(15)) to["memory"] = AnyLink(random);
  if (random.Chance(25)) return;
  to["nics"] = random.Between(1, 8);
  if (random.Chance(40)) to["nic_pcie"] = AnyLink(random);
  if (random.Chance(30)) to["nic_place"] = switches > 0 && random.Chance(50) ? "switch" : "socket";
  if (random.Chance(25)) to["nic_ports"] = random.Between(2, 3);
  if (random.Chance(20))
    to["more_nics"] = Json::array({{{"count", random.Between(1, 2)}, {"cable", AnyLink(random)}}});
}

Json AnyNode(Random& random) {
  const std::string_view kind =
      OneOfThese(random, std::array<std::string_view, 6>{"nvswitch", "all-to-all", "pairs",
                                                         "cube-mesh", "links", "pcie"});
  uint32_t devices = random.Between(1, 6);
  if (kind == "pairs") devices += devices % 2;
  if (kind == "cube-mesh") devices = 8;
  if (kind == "links") ++devices;
  Json node = {{"kind", kind}, {"devices", devices}, {"device", AnyDevice(random)}};
  if (kind != "pcie") node["nvlink"] = AnyLink(random);
  if (kind == "links") {
    Json lanes = Json::array();
    for (uint32_t i = 1; i < devices; ++i) lanes.push_back({i - 1, i, random.Between(1, 3)});
    for (uint32_t i = 2; i < devices; ++i)
      if (random.Chance(50)) lanes.push_back({random.Below(i - 1), i, random.Between(1, 3)});
    node["lanes"] = std::move(lanes);
  }
  if (kind == "pcie" || kind == "pairs" || random.Chance(75)) AddHost(random, &node);
  node["cable"] = AnyLink(random);
  return node;
}

Json AnyFabric(Random& random, uint32_t* nodes) {
  const std::string_view kind =
      OneOfThese(random, std::array<std::string_view, 7>{"switch", "fat-tree", "rails", "rail-only",
                                                         "dragonfly", "torus", "mesh"});
  Json fabric = {{"kind", kind}};
  if (kind == "switch") return fabric;
  if (kind == "dragonfly") {
    Json local = Json::array();
    for (uint32_t i = random.Between(1, 2); i > 0; --i) {
      const uint32_t size = random.Between(1, 3);
      local.push_back({{"size", size}, {"link", AnyLink(random)}});
    }
    fabric["local"] = std::move(local);
    fabric["nodes_per_switch"] = random.Between(1, 2);
    fabric["global_cables"] = random.Between(1, 12);
    fabric["cable"] = AnyLink(random);
    if (random.Chance(50))
      fabric["routing"] = OneOfThese(random, std::array{"spray", "minimal", "valiant"});
    return fabric;
  }
  if (kind == "torus" || kind == "mesh") {
    Json dimensions = Json::array();
    *nodes = 1;
    for (uint32_t i = random.Between(1, 3); i > 0 && *nodes < 5; --i) {
      const uint32_t size = random.Between(2, 4);
      *nodes *= size;
      dimensions.push_back({{"size", size}, {"link", AnyLink(random)}});
    }
    fabric["dimensions"] = std::move(dimensions);
    return fabric;
  }
  fabric["radix"] = 2 * random.Between(2, 10);
  fabric["oversubscription"] = random.Between(1, 3);
  fabric["cable"] = AnyLink(random);
  if (kind != "rail-only" && random.Chance(20)) fabric["planes"] = 2;
  if (kind == "fat-tree" && random.Chance(20)) fabric["whole_nodes"] = false;
  if (kind == "fat-tree" && random.Chance(50)) {
    const std::string_view routing =
        OneOfThese(random, std::array<std::string_view, 3>{"spray", "ecmp", "flowlet"});
    fabric["routing"] = routing;
    if (routing == "ecmp" && random.Chance(50)) fabric["queue_pairs"] = random.Between(2, 4);
  }
  return fabric;
}

Json CompactCluster(Random& random) {
  uint32_t nodes = random.Between(1, 5);
  Json node = AnyNode(random);
  Json cluster = {{"name", "by hand"}};
  Json fabric = nodes > 1 ? AnyFabric(random, &nodes) : Json();
  const uint32_t nics = node.value("nics", 0u);
  cluster["nodes"] = nodes;
  cluster["node"] = std::move(node);
  if (!fabric.is_null()) cluster["fabric"] = std::move(fabric);
  if (random.Chance(20))
    cluster["network_plugin"] = OneOfThese(random, std::array{"efa", "efa-p5", "tcpx", "socket"});
  Json edits = Json::array();
  for (uint32_t i = random.Below(3); i > 0 && nics > 1 && nodes > 1; --i)
    edits.push_back(
        {{"links", fmt::format("node{}/nic{}", random.Below(nodes), random.Below(nics))},
         {"down", true}});
  if (random.Chance(30))
    edits.push_back({{"links", fmt::format("node{}/**", random.Below(nodes))},
                     {"bandwidth", OneOfThese(random, std::array{"0.3x", "0.5x", "3x"})}});
  if (random.Chance(20)) edits.push_back({{"links", "node0/**"}, {"latency", "+3us"}});
  if (random.Chance(15))
    edits.push_back({{"links", OneOfThese(random, std::array{"leaf0->spine0", "leaf1->spine*",
                                                             "rail*/leaf0->**spine0",
                                                             "group0/switch0->group1/**",
                                                             "group0/switch0->group0/switch1"})},
                     {"down", true}});
  if (!edits.empty()) cluster["edits"] = std::move(edits);
  return cluster;
}

// ---- Vertex by vertex ---------------------------------------------------------------------------

class DrawnByHand {
 public:
  explicit DrawnByHand(Random& random) : random_(random) {}

  Json Draw() {
    const uint32_t boxes = random_.Between(1, 4);
    const uint32_t switches = boxes > 1 ? random_.Between(1, 4) : 1;
    for (uint32_t i = 0; i < switches; ++i) AddVertex(SwitchName(i), "switch");
    for (uint32_t i = 1; i < switches; ++i)
      Join(SwitchName(i), SwitchName(random_.Below(i)), "network");
    if (switches > 2 && random_.Chance(50))
      Join(SwitchName(0), SwitchName(switches - 1), "network");
    for (uint32_t box = 0; box < boxes; ++box) AddBox(box, switches, boxes > 1);
    Json cluster = {{"name", "drawn by hand"},
                    {"device", AnyDevice(random_)},
                    {"vertices", std::move(vertices_)},
                    {"links", std::move(links_)}};
    if (random_.Chance(50)) cluster["step_overhead"] = fmt::format("{}us", random_.Below(4));
    if (!edits_.empty()) cluster["edits"] = std::move(edits_);
    return cluster;
  }

 private:
  static std::string SwitchName(uint32_t number) { return fmt::format("switch{}", number); }

  void AddVertex(const std::string& name, const char* kind, const std::string& node = "") {
    Json vertex = {{"name", name}, {"kind", kind}};
    if (!node.empty()) vertex["node"] = node;
    vertices_.push_back(std::move(vertex));
  }
  // Now and then the two directions differ.
  void Join(const std::string& from, const std::string& to, const char* kind) {
    const auto add = [&](Json link) {
      link["kind"] = kind;
      link.update(AnyLink(random_));
      links_.push_back(std::move(link));
    };
    if (random_.Chance(85)) {
      add({{"between", {from, to}}});
      return;
    }
    add({{"from", from}, {"to", to}});
    add({{"from", to}, {"to", from}});
  }

  void AddBox(uint32_t number, uint32_t switches, bool has_network) {
    const std::string node = fmt::format("box{}", number);
    const auto part = [&](const char* what, uint32_t i) {
      return fmt::format("{}/{}{}", node, what, i);
    };
    const uint32_t devices = random_.Between(1, 5);
    for (uint32_t i = 0; i < devices; ++i) {
      AddVertex(part("gpu", i), "device", node);
      if (random_.Chance(5)) vertices_.back()["device"] = AnyDevice(random_);
    }
    const bool has_host = random_.Chance(70);
    const uint32_t inside = random_.Below(has_host ? 4 : 2);
    if (inside == 0) {  // planes of NVSwitches
      const uint32_t planes = random_.Between(1, 2);
      for (uint32_t i = 0; i < planes; ++i) AddVertex(part("plane", i), "nvswitch", node);
      for (uint32_t i = 0; i < devices; ++i)
        for (uint32_t plane = 0; plane < planes; ++plane)
          Join(part("gpu", i), part("plane", plane), "nvlink");
    } else if (inside < 3) {  // all pairs, or some of them
      for (uint32_t i = 0; i < devices; ++i)
        for (uint32_t j = 0; j < i; ++j)
          if (inside == 1 || random_.Chance(60)) Join(part("gpu", i), part("gpu", j), "nvlink");
    }
    const uint32_t sockets = has_host ? random_.Between(1, 2) : 0;
    for (uint32_t i = 0; i < sockets; ++i) AddVertex(part("socket", i), "socket", node);
    for (uint32_t i = 1; i < sockets; ++i) Join(part("socket", i - 1), part("socket", i), "socket");
    for (uint32_t i = 0; has_host && i < devices; ++i)
      Join(part("gpu", i), part("socket", random_.Below(sockets)), "pcie");
    if (!has_network) return;
    const uint32_t nics = has_host ? random_.Below(4) : 0;
    for (uint32_t i = 0; i < nics; ++i) {
      AddVertex(part("nic", i), "nic", node);
      Join(part("nic", i),
           random_.Chance(60) ? part("socket", random_.Below(sockets))
                              : part("gpu", random_.Below(devices)),
           "pcie");
      Join(part("nic", i), SwitchName(random_.Below(switches)), "network");
      if (nics > 1 && random_.Chance(15))
        edits_.push_back({{"links", part("nic", i)}, {"down", true}});
    }
    for (uint32_t i = 0; nics == 0 && i < devices; ++i)
      Join(part("gpu", i), SwitchName(random_.Below(switches)), "network");
  }

  Random& random_;
  Json vertices_ = Json::array();
  Json links_ = Json::array();
  Json edits_ = Json::array();
};

}  // namespace

std::string HandWrittenClusterText(uint64_t seed) {
  Random random(seed);
  const Json cluster = random.Chance(50) ? CompactCluster(random) : DrawnByHand(random).Draw();
  return cluster.dump(1);
}

HandWrittenCluster DrawHandWrittenCluster(uint64_t seed) {
  constexpr uint64_t kTries = 50;
  std::string why;
  for (uint64_t i = 0; i < kTries; ++i) {
    HandWrittenCluster drawn;
    drawn.text = HandWrittenClusterText(seed * kTries + i);
    try {
      const JsonDocument document =
          JsonDocument::FromText(fmt::format("{{\"cluster\": {}}}", drawn.text), "by-hand.json");
      drawn.cluster = ReadCluster(document.Root().At("cluster"));
      if (drawn.cluster->device_count() < 2) continue;
      return drawn;
    } catch (const Error& error) {
      why = error.what();
    }
  }
  throw InternalError(fmt::format("seed {}: nothing that can be read: {}", seed, why));
}

}  // namespace rehearse

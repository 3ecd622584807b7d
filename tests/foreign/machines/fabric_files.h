// What Slurm and ibnetdiscover write about a tree of two levels, for tests of their importers.
#pragma once

#include <cstdint>
#include <string>

#include <fmt/format.h>

namespace rehearse {

// Leaves of this many nodes each below one spine: "leaf0" and so on, "node001" and so on.
inline std::string SlurmTree(uint32_t leaves, uint32_t nodes_of_leaf) {
  std::string text = "# leaves\n";
  for (uint32_t leaf = 0; leaf < leaves; ++leaf)
    text += fmt::format("SwitchName=leaf{} Nodes=node[{:03}-{:03}]\n", leaf,
                        leaf * nodes_of_leaf + 1, (leaf + 1) * nodes_of_leaf);
  return text + fmt::format("SwitchName=spine Switches=leaf[0-{}]\n", leaves - 1);
}

struct IbTree {
  uint32_t leaves = 2;
  uint32_t spines = 2;
  uint32_t nodes = 4;
  uint32_t adapters = 8;  // of a node
  uint32_t cables = 2;    // of a leaf to a spine
  bool rails = false;     // adapter i at leaf i; else a node's all at one leaf
  std::string speed = "4xNDR";

  static std::string LeafId(uint32_t leaf) { return fmt::format("S-b8599f03000000{:02x}", leaf); }
  static std::string SpineId(uint32_t spine) {
    return fmt::format("S-b8599f03000100{:02x}", spine);
  }
  static std::string AdapterId(uint32_t node, uint32_t adapter) {
    return fmt::format("H-0c42a103{:04x}00{:02x}", node, adapter);
  }
  static std::string System(const char* kind, uint32_t number) {
    return fmt::format("MF0;{}{:02}:MQM9700/U1", kind, number);
  }
  static std::string Host(uint32_t node, uint32_t adapter) {
    return fmt::format("node{:02} mlx5_{}", node, adapter);
  }

  uint32_t LeafOf(uint32_t node, uint32_t adapter) const {
    return rails ? adapter % leaves : node * leaves / nodes;
  }
  // Its port there, counted from 1, in the order of nodes and adapters.
  uint32_t PortAt(uint32_t of_node, uint32_t of_adapter) const {
    uint32_t port = 0;
    for (uint32_t node = 0; node < nodes; ++node) {
      for (uint32_t adapter = 0; adapter < adapters; ++adapter) {
        if (LeafOf(node, adapter) == LeafOf(of_node, of_adapter)) ++port;
        if (node == of_node && adapter == of_adapter) return port;
      }
    }
    return port;
  }
  uint32_t UpPort(uint32_t spine, uint32_t cable) const {
    return nodes * adapters + 1 + spine * cables + cable;
  }
  uint32_t DownPort(uint32_t leaf, uint32_t cable) const { return 1 + leaf * cables + cable; }

  static std::string Head(const std::string& kind, uint32_t ports, const std::string& id,
                          const std::string& description, const std::string& rest) {
    return fmt::format(
        "\nvendid=0x2c9\ndevid=0xd2f2\nsysimgguid=0x{}\n{}guid=0x{}\n"
        "{}\t{} \"{}\"\t\t# \"{}\"{}\n",
        id.substr(2), kind == "Ca" ? "ca" : "switch", id.substr(2), kind, ports, id, description,
        rest);
  }

  std::string Text() const {
    std::string text =
        "#\n# Topology file: generated on Mon Nov 23 10:00:00 2026\n#\n"
        "# Initiated from node 0c42a10300000000 port 0c42a10300000000\n";
    for (uint32_t leaf = 0; leaf < leaves; ++leaf) {
      text +=
          Head("Switch", 65, LeafId(leaf), System("leaf", leaf), " enhanced port 0 lid 5 lmc 0");
      for (uint32_t node = 0; node < nodes; ++node)
        for (uint32_t adapter = 0; adapter < adapters; ++adapter)
          if (LeafOf(node, adapter) == leaf)
            text += fmt::format("[{}]\t\"{}\"[1]({}) \t\t# \"{}\" lid 12 {}\n",
                                PortAt(node, adapter), AdapterId(node, adapter),
                                AdapterId(node, adapter).substr(2), Host(node, adapter), speed);
      for (uint32_t spine = 0; spine < spines; ++spine)
        for (uint32_t cable = 0; cable < cables; ++cable)
          text += fmt::format("[{}]\t\"{}\"[{}]\t\t# \"{}\" lid 2 {}\n", UpPort(spine, cable),
                              SpineId(spine), DownPort(leaf, cable), System("spine", spine), speed);
    }
    for (uint32_t spine = 0; spine < spines; ++spine) {
      text += Head("Switch", 65, SpineId(spine), System("spine", spine),
                   " enhanced port 0 lid 6 lmc 0");
      for (uint32_t leaf = 0; leaf < leaves; ++leaf)
        for (uint32_t cable = 0; cable < cables; ++cable)
          text += fmt::format("[{}]\t\"{}\"[{}]\t\t# \"{}\" lid 5 {}\n", DownPort(leaf, cable),
                              LeafId(leaf), UpPort(spine, cable), System("leaf", leaf), speed);
    }
    for (uint32_t node = 0; node < nodes; ++node)
      for (uint32_t adapter = 0; adapter < adapters; ++adapter) {
        const uint32_t leaf = LeafOf(node, adapter);
        text += Head("Ca", 1, AdapterId(node, adapter), Host(node, adapter), "");
        text += fmt::format("[1]({}) \t\"{}\"[{}]\t\t# lid 12 lmc 0 \"{}\" lid 5 {}\n",
                            AdapterId(node, adapter).substr(2), LeafId(leaf), PortAt(node, adapter),
                            System("leaf", leaf), speed);
      }
    return text;
  }
};

}  // namespace rehearse

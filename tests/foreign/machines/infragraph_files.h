// Infrastructures of InfraGraph, as its tools write them. For tests.
#pragma once

#include <string>

namespace rehearse {

// Four hosts of four A100 with six NVSwitches and a card in a slot for each GPU; two leaves, three
// spines.
inline const std::string kInfraClos = R"(name: two tiers
description: four hosts under two leaves
devices:
- name: host
  description: a box of four
  components:
  - {name: cpu, description: AMD EPYC 7742, count: 1, choice: cpu, cpu: {}}
  - {name: xpu, description: NVIDIA A100 SXM4, count: 4, choice: xpu}
  - {name: fast, description: NVIDIA NVSwitch, count: 6, choice: switch}
  - {name: slot, count: 4, choice: custom, custom: {type: pcie_slot}}
  - {name: card, description: a card of 200GbE, count: 4, choice: device}
  - {name: dram, count: 2, choice: memory}
  links:
  - {name: xpu_fabric, description: nvlink_3}
  - {name: pcie, description: PCI Express PCIE_GEN4 x16}
  - {name: ddr}
  - {name: usb}
  edges:
  - {ep1: {component: xpu}, ep2: {component: fast}, scheme: many2many, link: xpu_fabric}
  - {ep1: {component: "cpu[0]"}, ep2: {component: "xpu[0:4]"}, scheme: many2many, link: pcie}
  - {ep1: {component: cpu}, ep2: {component: "slot[:]"}, scheme: many2many, link: pcie}
  - {ep1: {component: cpu}, ep2: {component: dram}, scheme: many2many, link: ddr}
  - ep1:
      device: card[0:4]
      component: endpoint[0]
    ep2:
      component: slot[0:4]
    scheme: one2one
    link: pcie
- name: card
  components:
  - {name: endpoint, count: 1, choice: custom, custom: {type: pcie_endpoint}}
  - {name: asic, count: 1, choice: cpu}
  - {name: port, count: 1, choice: port}
  links:
  - {name: inside, description: SerDes}
  edges:
  - {ep1: {component: endpoint}, ep2: {component: asic}, scheme: one2one, link: inside}
  - {ep1: {component: asic}, ep2: {component: port}, scheme: one2one, link: inside}
- name: box of ports
  components:
  - {name: asic, count: 1, choice: switch}
  - {name: port, count: 16, choice: port}
  links:
  - {name: inside}
  edges:
  - {ep1: {component: asic}, ep2: {component: port}, scheme: many2many, link: inside}
instances:
- {name: host, device: host, count: 4}
- {name: leaf, device: box of ports, count: 2}
- {name: spine, device: box of ports, count: 3}
links:
- name: cable
  physical:
    bandwidth: {choice: gigabits_per_second, gigabits_per_second: 200}
    latency: {choice: us, us: 1}
- name: trunk
  physical: {bandwidth: {gigabytes_per_second: 100}}
edges:
- ep1: {instance: "host[0:2]", component: "card[0:4].port[0]"}
  ep2: {instance: "leaf[0]", component: "port[0:8]"}
  scheme: one2one
  link: cable
- ep1: {instance: "host[2:4]", component: "card[0:4].port[0]"}
  ep2: {instance: "leaf[1]", component: "port[0:16]"}
  scheme: one2one
  link: cable
- ep1: {instance: "leaf[0]", component: "port[8:11]"}
  ep2: {instance: "spine[0:3]", component: "port[0]"}
  scheme: one2one
  link: trunk
- ep1: {instance: "leaf[1]", component: "port[8:16:3]"}
  ep2: {instance: "spine", component: "port[1]"}
  scheme: one2one
  link: trunk
)";

// Two xpus, each with a NIC, on one switch, in JSON.
inline const std::string kInfraPair = R"({"devices": [
 {"name": "box", "components": [
   {"name": "xpu", "count": 1, "choice": "xpu"},
   {"name": "nic", "count": 1, "choice": "nic"}],
  "links": [{"name": "bus"}],
  "edges": [{"ep1": {"component": "xpu"}, "ep2": {"component": "nic"}, "scheme": "one2one",
             "link": "bus"}]},
 {"name": "tor", "components": [{"name": "asic", "count": 1, "choice": "switch"}],
  "links": [], "edges": []}],
 "links": [{"name": "cable"}],
 "instances": [{"name": "a", "device": "box", "count": 2},
               {"name": "s", "device": "tor", "count": 1}],
 "edges": [{"ep1": {"instance": "a", "component": "nic"},
            "ep2": {"instance": "s[0]", "component": "asic[0]"},
            "scheme": "many2many", "link": "cable"}]}
)";

}  // namespace rehearse

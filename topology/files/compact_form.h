// The compact form of a cluster file: a node, how many of them, and the fabric between them.
//
//   {"name": "mine", "nodes": 32,
//    "node": {"kind": "nvswitch", "devices": 8, "device": "h100",
//             "nvlink": {"bandwidth": "450GBps", "efficiency": 0.8, "latency": "1.7us"},
//             "pcie": {"bandwidth": "63GBps", "latency": "2.85us"},
//             "sockets": 2, "pcie_switches": 4,
//             "between_sockets": {"bandwidth": "96GBps", "latency": "0.5us"},
//             "nics": 8, "cable": {"bandwidth": "50GBps", "latency": "3.5us"}},
//    "fabric": {"kind": "fat-tree", "radix": 64, "levels": 3, "oversubscription": 2,
//               "cable": {"bandwidth": "50GBps", "latency": "0us"}}}
//
// A link has bandwidth and latency, an efficiency (1 unless given) and, unless it is what its place
// suggests, a kind.
//
// "node" is the name of a preset whose node is taken ("device" beside it replaces its device), or
// an object:
//   kind           nvswitch (every device to one plane), all-to-all, pairs (0-1, 2-3, …), cube-mesh
//                  (8 devices, as in a DGX-1), links (those of "lanes", a list of
//                  [device, device, number of lanes]), pcie (none)
//   devices        how many; device: which
//   nvlink         the link of that kind: to the plane, of a pair, or one lane
//   pcie           device to its PCIe switch, or to its socket; with it come, optionally:
//     sockets (1), pcie_switches (0), between_sockets (none: not joined),
//     root_port (switch to socket; as pcie), nics (0), nic_pcie (NIC to its switch or socket; as
//     pcie), nic_place ("switch" or "socket"; switch if there are any),
//     nic_ports (1: cables of every NIC), more_nics: [{"count": 2, "cable": …, "nic_pcie": …,
//     "nic_place": …}, …] of other speeds,
//     memory: devices have no peer-to-peer access; copies go through the host's memory, over this
//     link of every socket,
//     device_to_socket (none): a device's link to its socket, beside that to its switch
//   prefix, device_name, socket_name, switch_name   what parts are called (node, gpu, socket, pcie)
//   cable          each NIC to the fabric, or without NICs each device
// "network_plugin": what stands between NCCL and the NICs (topology/cluster/network_plugin.h).
// "fabric" (not needed by one node):
//   switch         one that passes everything; name: what it is called
//   fat-tree, rails, rail-only   radix, levels (as few as it takes), oversubscription at the leaves
//                  (1), cable between switches, planes (1; not of rail-only), rails (of kind
//                  rails: how many, where they are fewer than a node's ports), whole_nodes (true: a
//                  leaf takes whole nodes, if any fits)
//   dragonfly      local: [{"size": 32, "link": …}, …] one or more dimensions joined all to all,
//                  nodes_per_switch, global_cables of a group, cable: one of them
//   hyperx         local: as of a dragonfly, the dimensions of all switches; nodes_per_switch
//   torus, mesh    dimensions: [{"size": 4, "link": …, "wraps": true}, …]; a torus wraps unless
//                  told otherwise, a mesh does not; "twist": [0, 0, 4], how far going round a
//                  dimension once leads along each
// topology/presets/node.h and topology/fabrics/fabric_*.h say what these mean.
#pragma once

#include <memory>

#include <nlohmann/json_fwd.hpp>

#include "sim/base/json_reader.h"
#include "topology/cluster/cluster.h"
#include "topology/presets/machine.h"

namespace rehearse {

std::unique_ptr<Cluster> ReadCompactForm(const JsonReader& object);

// What is read as this machine again. `device` is a known one's name or an object.
nlohmann::ordered_json CompactForm(const MachineSpec& machine,
                                   const nlohmann::ordered_json& device);
// Of an object in this form, with its node written out if it names a preset's; without its edits.
nlohmann::ordered_json CompactFormAgain(const JsonReader& object);

}  // namespace rehearse

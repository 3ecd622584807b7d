// A cluster as the user names it: a preset ("perlmutter"), a preset with changes
// ("perlmutter:nodes=4", or {"preset": "perlmutter", "nodes": 4}), a node and a fabric
// (topology/files/compact_form.h), or a graph, in a file or in place. Each object may have a
// "calibration" (topology/files/calibration.h), "rings" (topology/files/given_rings.h) and "edits"
// (topology/files/edits.h), in this order.
//
// A text is a path if the part before its changes contains '/' or ends with ".json", else a preset.
// A preset's changes are its parameters (`rehearse list clusters` shows them) and "device", which
// replaces all devices. A file's changes are values in it, by dotted paths, as in `--set`:
// "my.json:nodes=32,node.nics=8". `--set cluster.node.nics=8` likewise changes a file or preset
// that "cluster" names.
//
// A device is the name of a known one or an object: name, matrix_peak_16, memory and
// memory_bandwidth, and optionally description, compute_capability (NVIDIA's times ten: 90),
// matrix_peak_32, vector_peak_32, vector_peak_64 (without these, work of that type is refused),
// memory_efficiency, gemm_efficiency, gemm_scale, attention_forward_efficiency,
// attention_backward_efficiency (1 unless given), cache, cache_bandwidth, strided_element and
// launch_overhead (0 unless given), gemm_points (a list of {mode, m, n, k, efficiency}), gemm_model
// (library, multiprocessors, few_waves, many_waves, launch, cache: topology/devices/gemm_model.h),
// attention_model (multiprocessors, launch, kernels: topology/devices/attention_model.h) and
// sources (figure -> where it comes from).
//
// A graph:
//
//   { "name": "two GPUs on a switch", "device": "a100-40g",
//     "vertices": [ {"name": "gpu0", "kind": "device"}, {"name": "gpu1", "kind": "device"},
//                   {"name": "sw", "kind": "switch"} ],
//     "links": [ {"between": ["gpu0", "sw"], "kind": "nvlink",
//                 "bandwidth": "300GBps", "latency": "1us"},
//                {"from": "gpu1", "to": "sw", "kind": "nvlink",
//                 "bandwidth": "300GBps", "latency": "1us"},
//                {"from": "sw", "to": "gpu1", "kind": "nvlink",
//                 "bandwidth": "300GBps", "latency": "1us"} ],
//     "step_overhead": "0us" }
//
// "between" is two directed links, "from" and "to" one. Kinds of vertices: device, nic,
// pcie-switch, socket, nvswitch, switch; of links: nvlink, xgmi, pcie, socket, network, memory.
// Devices are ranked in the order of the file; a vertex's "node": "n0" says which machine it is
// part of, and its "device" takes precedence over the graph's; a link's efficiency is 1 and
// step_overhead, collective_overhead and channel_overhead are 0 unless given; vertices without a
// "node" belong to no machine, except that devices among them form one without a name; "notes" are
// lines for the reader. "routed_as" is the cluster that the graph was made from, a preset as
// "dgx-a100:nodes=4" or an object of one of the other forms: routes between machines are then those
// of its fabric. Figures may differ from it; names, vertices and links may not, before "edits" take
// some away. topology/files/cluster_export.h writes such files.
#pragma once

#include <memory>
#include <optional>
#include <string>
#include <vector>

#include <nlohmann/json_fwd.hpp>

#include "sim/base/json_document.h"
#include "sim/base/json_reader.h"
#include "topology/cluster/cluster.h"

namespace rehearse {

// The shape of a scenario's "cluster", and of a cluster file.
JsonShape ClusterShape();
JsonShape ClusterObjectShape();

// Whether a text names a file rather than a preset.
bool IsClusterFile(const std::string& text);

// Reads the value of a scenario's "cluster": a string (preset, preset with changes, or the path of
// a cluster file, relative to the file it stands in) or an object. Errors name file, line and
// pointer.
std::unique_ptr<Cluster> ReadCluster(const JsonReader& reader);

// The same for the command line's --cluster: "dgx-a100:nodes=4" or a path of a file, from the
// current folder; "-" is standard input.
std::unique_ptr<Cluster> ReadClusterArgument(const std::string& text,
                                             const ReadOptions& options = {});
// What the text names as an object of a cluster file, with changes made, to which keys can be
// added.
nlohmann::json ClusterObjectOf(const std::string& text);

// The same with the lines of its file.
JsonDocument ClusterDocument(const std::string& text);

// A preset, or what has the compact form already, in the compact form; nothing for a graph, and for
// what was measured, which has no place in it.
std::optional<nlohmann::ordered_json> AsCompactForm(const JsonReader& object);

// What differs in the wiring of two clusters; "" if they are wired alike.
std::string DifferenceInWiring(const Wiring& a, const Wiring& b);

}  // namespace rehearse

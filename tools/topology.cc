// rehearse topology CLUSTER: what is connected, and how fast.
#include <algorithm>
#include <cstdio>
#include <memory>
#include <numeric>
#include <optional>
#include <set>
#include <utility>

#include <fmt/format.h>
#include <nlohmann/json.hpp>

#include "sim/base/error.h"
#include "sim/base/input_file.h"
#include "sim/base/input_record.h"
#include "sim/base/json_document.h"
#include "sim/base/output_file.h"
#include "sim/base/say.h"
#include "sim/base/visible_text.h"
#include "tools/command.h"
#include "tools/foreign/machines/infragraph/infragraph_export.h"
#include "tools/import_machine.h"
#include "tools/number_options.h"
#include "tools/output_format.h"
#include "tools/ranks.h"
#include "tools/routing_options.h"
#include "tools/terminal.h"
#include "tools/wire_bound_view.h"
#include "topology/files/cluster_export.h"
#include "topology/files/cluster_file.h"
#include "topology/view/cluster_check.h"
#include "topology/view/cluster_dot.h"
#include "topology/view/cluster_svg.h"
#include "topology/view/cluster_view.h"

namespace rehearse {
namespace {

namespace po = boost::program_options;

constexpr uint32_t kRanksShown = 16;  // unless --ranks says which
constexpr uint32_t kMostRanks = 256;  // in a matrix

}  // namespace

CommandSyntax TopologySyntax() {
  CommandSyntax syntax;
  syntax.usage = "rehearse topology CLUSTER [options]";
  syntax.explanation =
      "Shows what is connected in a cluster, and how fast. Examples:\n"
      "  rehearse topology dgx-a100:nodes=2\n"
      "  rehearse topology dgx-a100:nodes=2 --path 0,node1/gpu3\n"
      "  rehearse topology perlmutter:nodes=4 --matrix\n"
      "  rehearse topology dgx-h100:nodes=8 --bound\n"
      "  rehearse topology dgx-h100:nodes=64,nics=4,nic=200Gbps,fabric=rails,oversubscription=2\n"
      "  rehearse topology my.json --check\n"
      "  rehearse topology dgx-a100 --svg -o box.svg\n"
      "  rehearse topology dgx-a100:nodes=2 -o two.json\n"
      "  rehearse topology dgx-a100:nodes=2 --infragraph -o infra.json\n"
      "  rehearse topology --import-nccl topo.xml -o box.json        (or rehearse import nccl)\n"
      "CLUSTER is a preset or a cluster file, with or without changes (my.json:nodes=4). Beside\n"
      "its own parameters and \"device\", every preset takes nics, nic (the bandwidth of each),\n"
      "nic_ports, fabric (switch, fat-tree, rails, rail-only), radix, levels, oversubscription,\n"
      "planes and routing. An imported machine, and any cluster whose output is named .json, is\n"
      "written as a cluster file, which every command reads, unless a view (--path, --matrix,\n"
      "--bound, --check, --dot, --svg, --infragraph, --graph) or --format is given: a node, how\n"
      "many and the fabric, where these say it all, else every vertex and link.\n";
  syntax.positional = {"cluster"};
  syntax.takes["cluster"] = {.kind = Taken::Kind::kCluster};
  syntax.takes["import-nccl"] = TakenFile({".xml"});
  syntax.takes["device"] = TakenDevice();
  syntax.takes["output"] = TakenOutput({".json", ".svg", ".dot", ".txt"});
  syntax.options.add_options()("path", po::value<std::string>()->value_name("A,B"),
                               "the path from one device to another, hop by hop; ranks or names")(
      "matrix",
      "bandwidth and latency of every pair of devices, ATP's hierarchical communication matrix, "
      "and the bisection")("ranks", po::value<std::string>()->value_name("A,B-C"),
                           "ranks that --matrix shows; the first 16 if not given")(
      "bound",
      "the least time that the wires allow for each kind of collective, on a node, on two and on "
      "all, and the cut that says so")(
      "check",
      "what looks wrong: routes that leave NVLink, NICs faster than their PCIe, devices without a "
      "NIC, a fabric that cannot be full, NVLinks of another device")(
      "dot", "print the graph in Graphviz's language")("svg", "print an SVG picture")(
      "infragraph",
      "print an infrastructure of Keysight's InfraGraph, which rehearse import reads")(
      "graph",
      "print a cluster file of all vertices and links, whose parts can be edited one by one")(
      "import-nccl", po::value<std::string>()->value_name("FILE"),
      "instead of CLUSTER, the machine in a topology file of NCCL (NCCL_TOPO_DUMP_FILE) or RCCL")(
      "import-smi", po::value<std::string>()->value_name("FILE"),
      "instead of CLUSTER, the machine in a file with the output of nvidia-smi topo -m")(
      "device", po::value<std::string>()->value_name("NAME"),
      "what an imported machine's devices are, e.g. a100-80g")(
      "output,o", po::value<std::string>()->value_name("FILE"),
      "where to write it; - is standard output");
  AddRoutingOptions(&syntax);
  AddFormatOption(
      syntax.options, kTableFormats,
      "a row for each kind of links that are alike, with --path a row for each hop, "
      "with --matrix a row for each pair of devices, with --bound a row for each bound, with "
      "--check a row for each finding");
  return syntax;
}

namespace {

uint32_t ParseDevice(const Cluster& cluster, const std::string& text) {
  if (WholeNumberIn(text)) return ParseRanks("--path", text, cluster.device_count()).front();
  const auto vertex = cluster.FindVertex(text);
  if (cluster.KindOfVertex(vertex) != VertexKind::kDevice)
    throw Error(fmt::format("--path: \"{}\" is of kind {}, expected a device", text,
                            Name(cluster.KindOfVertex(vertex))));
  const auto& devices = cluster.devices();
  return static_cast<uint32_t>(std::find(devices.begin(), devices.end(), vertex) - devices.begin());
}

std::string PathView(const Cluster& cluster, const std::string& ends, const FabricRouting& routing,
                     OutputFormat format) {
  const std::vector<std::string> names = SplitAtCommas(ends);
  if (names.size() != 2)
    throw Error(
        fmt::format("--path: found \"{}\", expected two devices such as \"0,9\" or "
                    "\"node0/gpu0,node1/gpu1\"",
                    ends));
  const uint32_t from = ParseDevice(cluster, names[0]);
  const uint32_t to = ParseDevice(cluster, names[1]);
  if (from == to)
    throw Error(fmt::format("--path: \"{}\" is one device, expected two different ones", ends));
  Router router(cluster, routing);
  if (IsTable(format)) return Print(PathTable(router, from, to), format);
  return format == OutputFormat::kJson ? PathJson(router, from, to).dump(2) + "\n"
                                       : PathText(router, from, to);
}

std::string MatrixOf(const Cluster& cluster, const po::variables_map& values, OutputFormat format) {
  const uint32_t devices = cluster.device_count();
  std::vector<uint32_t> ranks(std::min(devices, kRanksShown));
  std::iota(ranks.begin(), ranks.end(), 0u);
  const bool is_chosen = values.count("ranks") > 0;
  if (is_chosen) ranks = ParseRanks("--ranks", values["ranks"].as<std::string>(), devices);
  if (ranks.size() > kMostRanks)
    throw Error(fmt::format("--ranks: {} ranks are too many for a matrix, expected at most {}",
                            ranks.size(), kMostRanks));
  if (std::set<uint32_t>(ranks.begin(), ranks.end()).size() < ranks.size())
    throw Error("--ranks: a rank appears twice");
  Router router(cluster, ReadRoutingOptions(values, cluster));
  ProgressLine progress(ProgressWanted());
  MatrixView view;
  view.pairs = Pairwise(router, ranks, progress);
  view.hierarchy_ranks = ranks;
  if (!is_chosen && devices <= kMostRanks) {
    view.hierarchy_ranks.resize(devices);
    std::iota(view.hierarchy_ranks.begin(), view.hierarchy_ranks.end(), 0u);
  }
  if (view.hierarchy_ranks.size() > 1)
    view.hierarchy = HierarchicalMatrix(router, view.hierarchy_ranks, progress);
  progress.Begin("flow between halves", "", 0);
  if (devices <= kMostForBisection) view.bisection = BisectionBandwidth(cluster);
  if (!is_chosen && devices > kRanksShown)
    Say(fmt::format("pairs of the first {} of {} devices; choose others with --ranks", kRanksShown,
                    devices));
  if (IsTable(format)) return Print(TableOf(view, cluster), format);
  return format == OutputFormat::kJson ? ToJson(view, cluster).dump(2) + "\n"
                                       : ToText(view, cluster);
}

struct Source {
  std::unique_ptr<Cluster> cluster;
  bool is_imported = false;
  std::string text;  // what names it; "" if it was imported
};

Source ReadSource(const po::variables_map& values, const std::string& usage,
                  const ReadOptions& options) {
  constexpr const char* kSources[] = {"cluster", "import-nccl", "import-smi"};
  std::vector<std::string> given;
  for (const char* source : kSources)
    if (values.count(source) > 0) given.emplace_back(source);
  if (given.empty())
    throw Error("no cluster given; usage: " + usage + "\ntry: rehearse topology dgx-a100");
  if (given.size() > 1)
    throw Error(fmt::format("found {}, expected one of CLUSTER, --import-nccl, --import-smi",
                            fmt::join(given, " and ")));
  const std::string text = values[given.front()].as<std::string>();
  if (given.front() == "cluster") {
    if (values.count("device") > 0)
      throw Error(
          "--device goes with an import; a preset's device is changed as in dgx-a100:device=...");
    return {ReadClusterArgument(text, options), false, text};
  }
  const std::string device =
      values.count("device") > 0 ? values["device"].as<std::string>() : std::string();
  const std::string name = InputName(text);
  ImportedCluster imported =
      ImportMachine(given.front() == "import-nccl" ? "nccl" : "smi", text, device);
  for (const std::string& remark : imported.remarks)
    Say(VisibleText(fmt::format("{}: {}", name, remark)));
  return {std::move(imported.cluster), true, ""};
}

// What comes in by standard input is not there a second time.
bool CanBeReadAgain(const Source& source) {
  return !source.text.empty() && !source.text.starts_with(kStandardInput);
}

std::string GraphOf(const Source& source) {
  const std::string routed_as = CanBeReadAgain(source) ? RoutedAs(source.text) : std::string();
  if (routed_as.empty() && HasFabric(*source.cluster))
    Say("routes between machines will be searched: the file says what is connected, not how this "
        "fabric chooses among paths");
  return ClusterFileText(*source.cluster, routed_as);
}

// Short, where a node and a fabric say it all.
std::string ClusterFileOf(const Source& source) {
  std::optional<std::string> text;
  if (CanBeReadAgain(source)) text = CompactText(*source.cluster, source.text);
  return text ? std::move(*text) : GraphOf(source);
}

std::string CheckOf(const Source& source, OutputFormat format) {
  std::optional<JsonDocument> document;
  if (CanBeReadAgain(source)) document = ClusterDocument(source.text);
  std::optional<JsonReader> said;
  if (document) said = document->Root();
  const std::vector<ClusterFinding> findings =
      CheckCluster(*source.cluster, said ? &*said : nullptr);
  if (format == OutputFormat::kText) {
    std::string text;
    for (const ClusterFinding& finding : findings)
      text += std::string(Error(finding.place, finding.message).what()) + "\n";
    return text.empty() ? "nothing looks wrong\n" : text;
  }
  DataTable table({{"file", CellKind::kText},
                   {"line", CellKind::kInteger},
                   {"pointer", CellKind::kText},
                   {"finding", CellKind::kText}});
  for (const ClusterFinding& finding : findings)
    table.Add({finding.place.file, std::max(0, finding.place.line), finding.place.pointer,
               finding.message});
  return IsTable(format) ? Print(table, format) : ToJson(table).dump(2) + "\n";
}

std::string InfraGraphOf(const Cluster& cluster) {
  InfraGraphExport infrastructure = ClusterToInfraGraph(cluster);
  for (const std::string& remark : infrastructure.remarks) Say(VisibleText(remark));
  return std::move(infrastructure.text);
}

}  // namespace

int TopologyCommand(const std::vector<std::string>& arguments) {
  CommandSyntax syntax = TopologySyntax();
  po::variables_map values;
  if (!ParseCommandLine(syntax, arguments, &values)) return 0;
  std::vector<std::string> views;
  for (const char* view : {"path", "matrix", "bound", "check", "dot", "svg", "infragraph", "graph"})
    if (values.count(view) > 0) views.push_back(std::string("--") + view);
  if (views.size() > 1)
    throw Error(fmt::format("{} cannot be shown together", fmt::join(views, " and ")));
  const std::string view = views.empty() ? "" : views.front();
  if (values.count("ranks") > 0 && view != "--matrix") throw Error("--ranks goes with --matrix");
  const OutputFormat format = ReadFormat(values, kTableFormats);
  if (format != OutputFormat::kText &&
      (view == "--dot" || view == "--svg" || view == "--infragraph" || view == "--graph"))
    throw Error(fmt::format("{} has its own form; leave out --format {}", view, Name(format)));

  const std::string output =
      values.count("output") > 0 ? values["output"].as<std::string>() : std::string();
  const auto inputs = std::make_shared<InputRecord>();
  const Source source = ReadSource(values, syntax.usage, {.record = inputs});
  for (const JsonChange& change : inputs->changes) Say(ToText(change));
  const Cluster& cluster = *source.cluster;
  const FabricRouting routing = ReadRoutingOptions(values, cluster);
  for (const char* name : {"routing", "queue-pairs", "routing-seed"})
    if (values.count(name) > 0 && view != "--path" && view != "--matrix")
      throw Error(fmt::format("--{} goes with --path or --matrix", name));
  std::string text;
  if (view == "--path") {
    text = PathView(cluster, values["path"].as<std::string>(), routing, format);
  } else if (view == "--matrix") {
    text = MatrixOf(cluster, values, format);
  } else if (view == "--bound") {
    text = IsTable(format)                 ? Print(WireBoundTable(cluster), format)
           : format == OutputFormat::kJson ? ToJson(WireBoundTable(cluster)).dump(2) + "\n"
                                           : WireBoundText(cluster);
  } else if (view == "--check") {
    text = CheckOf(source, format);
  } else if (view == "--dot") {
    text = ClusterDot(cluster);
  } else if (view == "--svg") {
    text = ClusterSvg(cluster);
  } else if (view == "--infragraph") {
    text = InfraGraphOf(cluster);
  } else if (view == "--graph") {
    text = GraphOf(source);
  } else if ((source.is_imported || output.ends_with(".json")) && values["format"].defaulted()) {
    text = ClusterFileOf(source);
  } else {
    const ClusterSummary summary = SummarizeCluster(cluster);
    text = IsTable(format)                 ? Print(TableOf(summary), format)
           : format == OutputFormat::kJson ? ToJson(summary).dump(2) + "\n"
                                           : ToText(summary);
  }
  if (values.count("output") > 0) {
    WriteFileAtomically(output, text);
  } else {
    std::fputs(text.c_str(), stdout);
  }
  return 0;
}

}  // namespace rehearse

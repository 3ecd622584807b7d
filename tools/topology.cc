// rehearse topology CLUSTER: what is connected, and how fast.
#include <algorithm>
#include <cstdio>
#include <numeric>
#include <set>

#include <fmt/format.h>

#include "sim/error.h"
#include "sim/output_file.h"
#include "tools/command.h"
#include "tools/ranks.h"
#include "topology/cluster_dot.h"
#include "topology/cluster_file.h"
#include "topology/cluster_svg.h"
#include "topology/cluster_view.h"

namespace rehearse {
namespace {

namespace po = boost::program_options;

constexpr uint32_t kRanksShown = 16;  // unless --ranks says which
constexpr uint32_t kMostRanks = 256;  // in a matrix

CommandSyntax Syntax() {
  CommandSyntax syntax;
  syntax.usage = "rehearse topology CLUSTER [options]";
  syntax.explanation =
      "Shows what is connected in a cluster, and how fast. Examples:\n"
      "  rehearse topology dgx-a100:nodes=2\n"
      "  rehearse topology dgx-a100:nodes=2 --path 0,node1/gpu3\n"
      "  rehearse topology perlmutter:nodes=4 --matrix\n"
      "  rehearse topology dgx-a100 --svg -o box.svg\n";
  syntax.positional = {"cluster"};
  syntax.options.add_options()("path", po::value<std::string>()->value_name("A,B"),
                               "the way from one device to another, hop by hop; ranks or names")(
      "matrix",
      "bandwidth and latency of every pair of devices, the hierarchical communication matrix of "
      "ATP, and the bisection")("ranks", po::value<std::string>()->value_name("A,B-C"),
                                "of whom --matrix is; the first 16 if not given")(
      "dot", "the graph in Graphviz' language")("svg", "a picture")(
      "format", po::value<std::string>()->default_value("text")->value_name("text|json"),
      "what to print")("output,o", po::value<std::string>()->value_name("FILE"),
                       "write there, not to standard output");
  return syntax;
}

uint32_t ParseDevice(const Cluster& cluster, const std::string& text) {
  if (!text.empty() && text.find_first_not_of("0123456789") == std::string::npos)
    return ParseRanks("--path", text, cluster.device_count()).front();
  const auto vertex = cluster.FindVertex(text);
  if (cluster.graph()[vertex].kind != VertexKind::kDevice)
    throw Error(fmt::format("--path: \"{}\" is of kind {}, expected a device", text,
                            Name(cluster.graph()[vertex].kind)));
  const auto& devices = cluster.devices();
  return static_cast<uint32_t>(std::find(devices.begin(), devices.end(), vertex) - devices.begin());
}

std::string PathView(const Cluster& cluster, const std::string& ends, OutputFormat format) {
  const size_t comma = ends.find(',');
  if (comma == std::string::npos || ends.find(',', comma + 1) != std::string::npos)
    throw Error(
        fmt::format("--path: found \"{}\", expected two devices such as \"0,9\" or "
                    "\"node0/gpu0,node1/gpu1\"",
                    ends));
  const uint32_t from = ParseDevice(cluster, ends.substr(0, comma));
  const uint32_t to = ParseDevice(cluster, ends.substr(comma + 1));
  if (from == to)
    throw Error(fmt::format("--path: \"{}\" is one device, expected two different ones", ends));
  Router router(cluster);
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
  Router router(cluster);
  MatrixView view;
  view.pairs = Pairwise(router, ranks);
  view.hierarchy_ranks = ranks;
  if (!is_chosen && devices <= kMostRanks) {
    view.hierarchy_ranks.resize(devices);
    std::iota(view.hierarchy_ranks.begin(), view.hierarchy_ranks.end(), 0u);
  }
  if (view.hierarchy_ranks.size() > 1)
    view.hierarchy = HierarchicalMatrix(router, view.hierarchy_ranks);
  if (devices <= kMostForBisection) view.bisection = BisectionBandwidth(cluster);
  if (!is_chosen && devices > kRanksShown)
    fmt::print(stderr,
               "rehearse: pairs of the first {} of {} devices; choose others with --ranks\n",
               kRanksShown, devices);
  return format == OutputFormat::kJson ? ToJson(view, cluster).dump(2) + "\n"
                                       : ToText(view, cluster);
}

}  // namespace

int TopologyCommand(const std::vector<std::string>& arguments) {
  CommandSyntax syntax = Syntax();
  po::variables_map values;
  if (!ParseCommandLine(syntax, arguments, &values)) return 0;
  if (values.count("cluster") == 0)
    throw Error("no cluster given; usage: " + syntax.usage + "\ntry: rehearse topology dgx-a100");
  std::vector<std::string> views;
  for (const char* view : {"path", "matrix", "dot", "svg"})
    if (values.count(view) > 0) views.push_back(std::string("--") + view);
  if (views.size() > 1)
    throw Error(fmt::format("{} cannot be shown together", fmt::join(views, " and ")));
  const std::string view = views.empty() ? "" : views.front();
  if (values.count("ranks") > 0 && view != "--matrix") throw Error("--ranks goes with --matrix");
  const OutputFormat format = ParseFormat(values["format"].as<std::string>());
  if (format == OutputFormat::kJson && (view == "--dot" || view == "--svg"))
    throw Error(fmt::format("{} is no JSON; leave out --format json", view));

  const auto cluster = ReadClusterArgument(values["cluster"].as<std::string>());
  std::string text;
  if (view == "--path") {
    text = PathView(*cluster, values["path"].as<std::string>(), format);
  } else if (view == "--matrix") {
    text = MatrixOf(*cluster, values, format);
  } else if (view == "--dot") {
    text = ClusterDot(*cluster);
  } else if (view == "--svg") {
    text = ClusterSvg(*cluster);
  } else {
    const ClusterSummary summary = SummarizeCluster(*cluster);
    text = format == OutputFormat::kJson ? ToJson(summary).dump(2) + "\n" : ToText(summary);
  }
  if (values.count("output") > 0) {
    WriteFileAtomically(values["output"].as<std::string>(), text);
  } else {
    std::fputs(text.c_str(), stdout);
  }
  return 0;
}

}  // namespace rehearse

// rehearse collective KIND: one collective by itself, in nccl-tests' words.
#include <cmath>
#include <cstdio>
#include <numeric>

#include <fmt/format.h>
#include <nlohmann/json.hpp>

#include "collectives/ring.h"
#include "collectives/trial.h"
#include "sim/error.h"
#include "tools/command.h"
#include "tools/ranks.h"
#include "topology/cluster_file.h"

namespace rehearse {
namespace {

namespace po = boost::program_options;

struct KindName {
  const char* name;
  CollectiveKind kind;
  const char* reduction;  // as nccl-tests prints it
};
constexpr KindName kKinds[] = {
    {"all-reduce", CollectiveKind::kAllReduce, "sum"},
    {"all-gather", CollectiveKind::kAllGather, "none"},
    {"reduce-scatter", CollectiveKind::kReduceScatter, "sum"},
};

CommandSyntax Syntax() {
  CommandSyntax syntax;
  syntax.usage = "rehearse collective KIND --cluster CLUSTER [options]";
  syntax.explanation =
      "Times one collective (all-reduce, all-gather, reduce-scatter) on idle devices and prints\n"
      "nccl-tests' table. Examples:\n"
      "  rehearse collective all-reduce --cluster dgx-a100 -b 1M -e 1G -f 2\n"
      "  rehearse collective all-gather --cluster perlmutter:nodes=4 --groups 4 -b 256M\n";
  syntax.positional = {"kind"};
  syntax.options.add_options()("cluster", po::value<std::string>()->value_name("CLUSTER"),
                               "preset, preset with changes (dgx-a100:nodes=4), or a cluster file")(
      "ranks", po::value<std::string>()->value_name("A,B-C"), "who takes part; all if not given")(
      "groups", po::value<std::string>()->default_value("1")->value_name("K"),
      "deal the ranks round-robin into K groups that run at the same time")(
      "channels", po::value<std::string>()->default_value("0")->value_name("N"),
      "at most N channels; 0 leaves it to the search")(
      "algorithm", po::value<std::string>()->default_value("ring")->value_name("ring"),
      "the algorithm")("fidelity",
                       po::value<std::string>()->default_value("fluid")->value_name("NAME"),
                       "formula, fluid or step")(
      "minbytes,b", po::value<std::string>()->default_value("32M")->value_name("SIZE"),
      "smallest size: bytes, or with K, M, G (powers of 1,024)")(
      "maxbytes,e", po::value<std::string>()->value_name("SIZE"),
      "largest size; --minbytes if not given")(
      "stepfactor,f", po::value<std::string>()->default_value("2")->value_name("X"),
      "each size is the one before times X, more than 1")(
      "format", po::value<std::string>()->default_value("text")->value_name("text|json"),
      "what to print");
  return syntax;
}

double ParseBytes(const std::string& option, const std::string& text) {
  const auto fail = [&](const char* why) {
    throw Error(
        fmt::format("{}: found \"{}\", expected {} such as 8, 64K, 128M or 1G", option, text, why));
  };
  size_t digits = text.find_first_not_of("0123456789");
  if (digits == std::string::npos) digits = text.size();
  if (digits == 0 || digits > 18) fail("a size from 1 byte to 1024T");
  double value = static_cast<double>(std::stoull(text.substr(0, digits)));
  const std::string unit = text.substr(digits);
  const std::string units = "KMGT";
  if (unit.size() > 1 || (unit.size() == 1 && units.find(unit) == std::string::npos)) {
    fail("a size in bytes or with K, M, G, T");
  }
  if (unit.size() == 1) value *= std::pow(1024.0, static_cast<double>(1 + units.find(unit)));
  if (value < 1 || value > 1125899906842624.0) fail("a size from 1 byte to 1024T");
  return value;
}

uint32_t ParseCount(const std::string& option, const std::string& text, uint32_t minimum) {
  const bool digits =
      !text.empty() && text.size() < 9 && text.find_first_not_of("0123456789") == std::string::npos;
  const unsigned long value = digits ? std::stoul(text) : 0;
  if (!digits || value < minimum) {
    throw Error(
        fmt::format("{}: found \"{}\", expected a whole number from {}", option, text, minimum));
  }
  return static_cast<uint32_t>(value);
}

std::vector<double> Sizes(const po::variables_map& values) {
  const std::string begin_text = values["minbytes"].as<std::string>();
  const double begin = ParseBytes("--minbytes", begin_text);
  const double end = values.count("maxbytes") > 0
                         ? ParseBytes("--maxbytes", values["maxbytes"].as<std::string>())
                         : begin;
  if (begin > end) {
    throw Error(fmt::format("--minbytes {} is more than --maxbytes {}", begin_text,
                            values["maxbytes"].as<std::string>()));
  }
  const std::string factor_text = values["stepfactor"].as<std::string>();
  char* rest = nullptr;
  const double factor = std::strtod(factor_text.c_str(), &rest);
  if (factor_text.empty() || *rest != '\0' || !(factor > 1) || !(factor <= 1e6)) {
    throw Error(fmt::format("--stepfactor: found \"{}\", expected a number above 1", factor_text));
  }
  std::vector<double> sizes = {begin};
  while (std::ceil(sizes.back() * factor) <= end) sizes.push_back(std::ceil(sizes.back() * factor));
  return sizes;
}

struct Row {
  double bytes = 0;
  Seconds time;
  double algorithm_bandwidth = 0;  // GB/s
  double bus_bandwidth = 0;        // GB/s
};

std::string Table(const std::vector<Row>& rows, const char* reduction, const Cluster& cluster,
                  const Trial& trial) {
  std::string text =
      fmt::format("# {} on {}, simulated ({}): {} group{} of {} ranks\n#\n", Name(trial.kind),
                  cluster.name(), Name(trial.fidelity), trial.groups.size(),
                  trial.groups.size() == 1 ? "" : "s", trial.groups.front().size());
  text +=
      "#                                                              out-of-place                "
      "       in-place          \n"
      "#       size         count      type   redop    root     time   algbw   busbw #wrong     "
      "time   algbw   busbw #wrong\n"
      "#        (B)    (elements)                               (us)  (GB/s)  (GB/s)            "
      "(us)  (GB/s)  (GB/s)       \n";
  double sum = 0;
  for (const Row& row : rows) {
    const double microseconds = row.time.value() * 1e6;
    const std::string time = microseconds < 100     ? fmt::format("{:.2f}", microseconds)
                             : microseconds < 10000 ? fmt::format("{:.1f}", microseconds)
                                                    : fmt::format("{:.0f}", microseconds);
    const std::string numbers = fmt::format(" {:>8} {:>7.2f} {:>7.2f} {:>6}", time,
                                            row.algorithm_bandwidth, row.bus_bandwidth, 0);
    text += fmt::format("{:>12.0f} {:>13.0f} {:>9} {:>7} {:>7}{}{}\n", row.bytes,
                        std::floor(row.bytes / 4), "float", reduction, -1, numbers, numbers);
    sum += row.bus_bandwidth;
  }
  text += "# Out of bounds values : 0 OK\n";
  text += fmt::format("# Avg bus bandwidth    : {:.4f}\n", sum / static_cast<double>(rows.size()));
  return text;
}

}  // namespace

int CollectiveCommand(const std::vector<std::string>& arguments) {
  CommandSyntax syntax = Syntax();
  po::variables_map values;
  if (!ParseCommandLine(syntax, arguments, &values)) return 0;
  const auto text = [&](const char* name) { return values[name].as<std::string>(); };
  if (values.count("kind") == 0 || values.count("cluster") == 0) {
    throw Error("a kind and --cluster are needed; usage: " + syntax.usage);
  }
  const OutputFormat format = ParseFormat(text("format"));

  const KindName* kind = nullptr;
  std::vector<std::string> names;
  for (const KindName& known : kKinds) {
    names.emplace_back(known.name);
    if (text("kind") == known.name) kind = &known;
  }
  if (!kind) {
    throw Error(fmt::format("unknown collective \"{}\", expected one of {}{}", text("kind"),
                            fmt::join(names, ", "), DidYouMean(text("kind"), names)));
  }
  if (text("algorithm") != "ring") {
    throw Error(fmt::format("--algorithm: found \"{}\", expected \"ring\"", text("algorithm")));
  }
  const std::vector<double> sizes = Sizes(values);

  const std::unique_ptr<Cluster> cluster = ReadClusterArgument(text("cluster"));
  const uint32_t devices = cluster->device_count();
  std::vector<uint32_t> ranks(devices);
  std::iota(ranks.begin(), ranks.end(), 0u);
  if (values.count("ranks") > 0) ranks = ParseRanks("--ranks", text("ranks"), devices);

  Trial trial;
  trial.kind = kind->kind;
  trial.groups = DealRanks(ranks, ParseCount("--groups", text("groups"), 1), devices);
  trial.channels = ParseCount("--channels", text("channels"), 0);
  trial.fidelity = ParseFidelity("--fidelity", text("fidelity"));
  const uint32_t size = static_cast<uint32_t>(trial.groups.front().size());
  if (size < 2)
    throw Error("a group of one rank has nothing to send; give at least two ranks a group");

  Router router(*cluster);
  std::vector<Row> rows;
  for (const double bytes : sizes) {
    Row row;
    row.bytes = bytes;
    row.time = TimeOf(trial, Bytes(bytes), router);
    row.algorithm_bandwidth = bytes / row.time.value() / 1e9;
    row.bus_bandwidth = BusBandwidth(kind->kind, size, Bytes(bytes), row.time).value() / 1e9;
    rows.push_back(row);
  }

  std::string output;
  if (format == OutputFormat::kJson) {
    nlohmann::ordered_json json = nlohmann::ordered_json::array();
    for (const Row& row : rows) {
      json.push_back({{"bytes", static_cast<uint64_t>(row.bytes)},
                      {"seconds", row.time.value()},
                      {"algbw_gb_per_s", row.algorithm_bandwidth},
                      {"busbw_gb_per_s", row.bus_bandwidth}});
    }
    output = json.dump(2) + "\n";
  } else {
    output = Table(rows, kind->reduction, *cluster, trial);
  }
  std::fputs(output.c_str(), stdout);
  return 0;
}

}  // namespace rehearse

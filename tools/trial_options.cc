#include "tools/trial_options.h"

#include <cctype>
#include <numeric>

#include <fmt/format.h>

#include "collectives/algorithms/algorithm.h"
#include "collectives/lowering/plan_load.h"
#include "scenarios/readers/network_options.h"
#include "sim/base/error.h"
#include "sim/base/known_names.h"
#include "tools/command.h"
#include "tools/import_machine.h"
#include "tools/number_options.h"
#include "tools/ranks.h"
#include "tools/routing_options.h"
#include "topology/files/calibration.h"

namespace rehearse {
namespace {

namespace po = boost::program_options;
using enum CollectiveKind;

constexpr uint32_t kMostOfGroup = 100'000'000;  // ranks, groups, channels: more make no sense

std::string TextOf(const po::variables_map& values, const char* name) {
  return values[name].as<std::string>();
}

// What --`option` says, as `parse` understands it.
template <typename Value>
Value ParseOption(const char* option, const std::string& text, Value (*parse)(std::string_view)) {
  try {
    return parse(text);
  } catch (const Error& error) {
    throw Error(fmt::format("--{}: {}", option, error.what()));
  }
}

AlgorithmId ParseAlgorithmFor(const std::string& text, CollectiveKind kind) {
  const AlgorithmId id = ParseOption("algorithm", text, ParseAlgorithm);
  if (id == AlgorithmId::kAuto) return id;
  try {
    CheckKind(FindAlgorithm(id), kind);
  } catch (const Error& error) {
    throw Error(fmt::format("--algorithm: {}", error.what()));
  }
  return id;
}

NcclVersion ParseRelease(const std::string& text) {
  return ParseOption("nccl", text, ParseNcclVersion);
}

// Checks that the group can run what was asked for, before anything is timed.
void CheckPins(const po::variables_map& values, const Trial& trial, const Cluster& cluster) {
  std::string options;
  for (const char* name : {"algorithm", "protocol"}) {
    const std::string text = TextOf(values, name);
    if (text == "auto" || text == "none") continue;
    options += fmt::format("{}--{} {}", options.empty() ? "" : " ", name, text);
  }
  if (options.empty()) return;
  try {
    CheckAlgorithmOf(trial, cluster);
  } catch (const Error& error) {
    throw Error(fmt::format("{}: {}", options, error.what()));
  }
}

}  // namespace

void CheckAlgorithmOf(const Trial& trial, const Cluster& cluster) {
  Router router(cluster, trial.routing);
  ChannelFinder finder(router);
  Tuner tuner(router, trial.nccl);
  ArrangePlan(ChoiceOf(trial, Bytes(1), tuner), trial.kind, trial.root, trial.groups.front(),
              router, finder);
}

void AddTrialOptions(CommandSyntax* syntax) {
  syntax->takes["algorithm"] = TakenName({"auto"});
  for (const Algorithm& row : Algorithms())
    syntax->takes["algorithm"].names.emplace_back(row.name());
  syntax->takes["algorithm"].only_names = false;  // NCCL's spelling is accepted too
  syntax->takes["protocol"] = TakenName({"auto", "none", "ll", "ll128", "simple"});
  syntax->takes["protocol"].only_names = false;
  syntax->takes["nccl"] = TakenName({});
  for (const NcclVersion version : kNcclVersions)
    syntax->takes["nccl"].names.emplace_back(Name(version));
  syntax->takes["network"] = Taken{};
  const auto text = [](const char* standard, const char* name) {
    return po::value<std::string>()->default_value(standard)->value_name(name);
  };
  syntax->options.add_options()("cluster", po::value<std::string>()->value_name("CLUSTER"),
                                "a preset, a preset with changes (dgx-a100:nodes=4), a cluster "
                                "file, with or without changes (my.json:nodes=4), or what NCCL, "
                                "nvidia-smi, lstopo, Slurm or ibnetdiscover wrote of a machine")(
      "ranks", po::value<std::string>()->value_name("A,B-C"),
      "ranks that take part; all if not given")(
      "groups", Whole("K", "1", 1u, kMostOfGroup),
      "divide the ranks round-robin into K groups that run at the same time")(
      "root,r", Whole("N", "0", 0u, kMostOfGroup),
      "root of broadcast and reduce, a member of each group")(
      "algorithm,a", text("auto", "NAME"),
      "as NCCL_ALGO would set it; auto: as NCCL chooses on NVIDIA's devices and RCCL on AMD's, "
      "otherwise ring or what the kind needs")("protocol,p", text("auto", "NAME"),
                                               "ll, ll128 or simple, as NCCL_PROTO would set it; "
                                               "none: bare links; auto: as the library chooses")(
      "nccl", text(Name(kStandardNccl), "2.18|2.28|2.29"),
      "the release of NCCL whose model chooses where the algorithm or protocol is auto")(
      "no-nvls", "without NVLS and NVLSTree, as NCCL_NVLS_ENABLE=0 would have it")(
      "channels", Whole("N", "0", 0u, kMostOfGroup),
      "use at most N channels; 0 leaves it to the search")(
      "fidelity", text("fluid", "formula|fluid|step|packet"),
      FidelityHelp("how closely the network is simulated").c_str())(
      "network", po::value<std::string>()->value_name("KEY=VALUE,..."),
      "how packets travel, at fidelity packet: keys of \"network\" in rehearse schema scenario, "
      "such as link_control=drop,buffer=400kB");
  AddRoutingOptions(syntax);
}

namespace {

// "all-reduce", "all_reduce", "AllReduce" and "all_reduce_perf" are the same, and so are
// "send-receive" and "sendrecv_perf".
std::string Letters(const std::string& text) {
  std::string letters;
  for (const char c : text.ends_with("_perf") ? text.substr(0, text.size() - 5) : text) {
    if (c != '-' && c != '_')
      letters += static_cast<char>(std::tolower(static_cast<unsigned char>(c)));
  }
  return letters == "sendrecv" ? "sendreceive" : letters;
}

}  // namespace

Taken TakenCollective() {
  Taken taken = TakenName({});
  for (const CollectiveKind kind : kCollectiveKinds) taken.names.emplace_back(Name(kind));
  taken.only_names = false;
  return taken;
}

CollectiveKind ParseCollectiveKind(const std::string& option, const std::string& text,
                                   const std::vector<std::string>& besides) {
  std::vector<std::string> names;
  for (const CollectiveKind kind : kCollectiveKinds) {
    if (Letters(text) == Letters(Name(kind))) return kind;
    names.emplace_back(Name(kind));
  }
  names.insert(names.end(), besides.begin(), besides.end());
  throw Error(fmt::format("{}unknown collective \"{}\"{}", option, text, KnownNames(text, names)));
}

std::unique_ptr<Cluster> ReadTrialCluster(const po::variables_map& values,
                                          const std::optional<std::string>& calibration,
                                          const std::string& usage, const ReadOptions& options) {
  if (values.count("cluster") == 0) throw Error("--cluster is needed; usage: " + usage);
  std::unique_ptr<Cluster> cluster = ReadClusterOrDump(TextOf(values, "cluster"), options);
  if (calibration) cluster = ApplyCalibration(*cluster, ReadCalibrationFile(*calibration));
  return cluster;
}

Trial ReadTrial(const po::variables_map& values, CollectiveKind kind, const Cluster& cluster,
                std::optional<uint32_t> members, const Place& place) {
  const uint32_t devices = cluster.device_count();
  std::vector<uint32_t> ranks(members.value_or(devices));
  if (ranks.size() > devices) {
    throw Error(place, fmt::format("found {} ranks that take part, expected at most {}, as many as "
                                   "cluster \"{}\" has devices",
                                   ranks.size(), devices, cluster.name()));
  }
  std::iota(ranks.begin(), ranks.end(), 0u);
  if (values.count("ranks") > 0) ranks = ParseRanks("--ranks", TextOf(values, "ranks"), devices);

  const auto groups = values["groups"].as<uint32_t>();
  if (groups == 0 || ranks.size() % groups != 0)
    throw Error(fmt::format("--groups: found {}, expected a number that divides the {} ranks",
                            groups, ranks.size()));
  Trial trial;
  trial.kind = kind;
  trial.groups = DealRanks(ranks, groups, devices);
  const auto size = static_cast<uint32_t>(trial.groups.front().size());
  if (size < 2)
    throw Error("a group of one rank has nothing to send; give each group at least two ranks");
  trial.root = values["root"].as<uint32_t>();
  if (trial.root >= size) {
    throw Error(fmt::format("--root: found {}, expected a member of a group of {}: 0 to {}",
                            trial.root, size, size - 1));
  }
  if (trial.root != 0 && kind != kBroadcast && kind != kReduce) {
    throw Error(fmt::format("--root: {} has no root; broadcast and reduce have", Name(kind)));
  }
  trial.algorithm = ParseAlgorithmFor(TextOf(values, "algorithm"), kind);
  trial.protocol = ParseOption("protocol", TextOf(values, "protocol"), ParseProtocol);
  trial.nccl = {ParseRelease(TextOf(values, "nccl")), values.count("no-nvls") == 0};
  trial.channels = values["channels"].as<uint32_t>();
  trial.fidelity = ParseFidelity("--fidelity", TextOf(values, "fidelity"));
  trial.routing = ReadRoutingOptions(values, cluster);
  if (values.count("network") > 0) {
    if (trial.fidelity != Fidelity::kPacket)
      throw Error(
          fmt::format("--network is for fidelity packet; {} has no packets", Name(trial.fidelity)));
    trial.network = ParseNetworkOptions("--network", TextOf(values, "network"));
  }
  CheckPins(values, trial, cluster);
  return trial;
}

}  // namespace rehearse

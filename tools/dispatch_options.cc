#include "tools/dispatch_options.h"

#include <algorithm>

#include <fmt/format.h>
#include <nlohmann/json.hpp>

#include "collectives/lowering/token_exchange.h"
#include "sim/base/error.h"
#include "sim/base/known_names.h"
#include "sim/base/units.h"
#include "sim/base/visible_text.h"
#include "tools/number_options.h"
#include "tools/trial_options.h"

namespace rehearse {
namespace {

namespace po = boost::program_options;

constexpr uint32_t kMostTokens = 1 << 24;
constexpr uint32_t kMostColumns = 1 << 20;
constexpr uint32_t kMostExperts = 1 << 16;
constexpr const char* kOwnOptions[] = {"tokens",  "hidden",        "dtype",         "top-k",
                                       "experts", "expert-groups", "limited-groups"};
// These options of collectives say sizes, which follow from the tokens here.
constexpr const char* kSizeOptions[] = {"minbytes", "maxbytes", "stepfactor", "stepbytes"};

// The type in which tokens are sent: its size is what an element takes on the wire.
DType ParseDtype(const po::variables_map& values, const std::string& kind) {
  const std::string text = values.count("dtype") > 0 ? values["dtype"].as<std::string>()
                           : kind == kDispatch       ? Name(DType::kFp8)
                                                     : Name(DType::kBf16);
  std::vector<std::string> names;
  for (const DType dtype : {DType::kFp8, DType::kBf16, DType::kFp16, DType::kFp32}) {
    if (text == Name(dtype)) return dtype;
    names.emplace_back(Name(dtype));
  }
  throw Error(fmt::format("--dtype: unknown type \"{}\"{}", text, KnownNames(text, names)));
}

uint32_t CountOf(const po::variables_map& values, const char* name, uint32_t standard) {
  return values.count(name) > 0 ? values[name].as<uint32_t>() : standard;
}

struct Exchange {
  std::string kind;
  uint32_t hidden = 0;
  DType dtype = DType::kFp8;
  TokenRouting routing;
  TokenSpread spread;
  bool forwards = false;

  Bytes token() const { return TokenBytes(hidden, dtype); }
};

struct DispatchRow {
  uint32_t tokens = 0;
  ExchangeTime of;
};

const char* CountedAt(const Exchange& exchange) {
  if (!exchange.forwards) return "experts";
  return exchange.routing.machines > 1 ? "machines" : "ranks";
}

std::string TextOf(const std::vector<DispatchRow>& rows, const Exchange& exchange,
                   const Trial& trial, const Cluster& cluster) {
  const TokenRouting& routing = exchange.routing;
  std::string text = fmt::format(
      "# {} of experts on {}, simulated ({}) by {}: {} ranks in {} machine{}\n"
      "# a token of {:.0f} B ({} elements, {}) goes to {} of {} experts{}\n"
      "# which are {:.3f} ranks and {:.3f} machines on average, its own included\n"
      "# left out by {}: {}; the kernels' own time\n",
      exchange.kind, VisibleText(cluster.name()), Name(trial.fidelity), Name(trial.algorithm),
      routing.ranks, routing.machines, routing.machines == 1 ? "" : "s", exchange.token().value(),
      exchange.hidden, Name(exchange.dtype), routing.top_k, routing.experts,
      routing.limited_groups < routing.groups
          ? fmt::format(" in {} of {} groups", routing.limited_groups, routing.groups)
          : "",
      exchange.spread.ranks, exchange.spread.machines, Name(trial.fidelity),
      LeftOutBy(trial.fidelity));
  text += fmt::format("#\n# {:>10} {:>12} {:>14}\n", "tokens", "time", "bandwidth");
  text += fmt::format("# {:>10} {:>12} {:>14}\n", "a rank", "(us)", "(GB/s)");
  for (const DispatchRow& row : rows)
    text += fmt::format("  {:>10} {:>12.2f} {:>14.2f}\n", row.tokens, row.of.time.value() * 1e6,
                        row.of.bandwidth.value() / 1e9);
  return text +
         fmt::format("# bandwidth: of copies to {}, as DeepEP counts\n", CountedAt(exchange));
}

DataTable TableOf(const std::vector<DispatchRow>& rows, const Exchange& exchange,
                  const Trial& trial, const Cluster& cluster) {
  DataTable table({{"kind", CellKind::kText},
                   {"cluster", CellKind::kText},
                   {"ranks", CellKind::kInteger},
                   {"machines", CellKind::kInteger},
                   {"groups", CellKind::kInteger},
                   {"fidelity", CellKind::kText},
                   {"algorithm", CellKind::kText},
                   {"tokens", CellKind::kInteger},
                   {"token_bytes", CellKind::kInteger},
                   {"ranks_of_token", CellKind::kNumber},
                   {"machines_of_token", CellKind::kNumber},
                   {"seconds", CellKind::kNumber},
                   {"bandwidth_gb_per_s", CellKind::kNumber},
                   {"bandwidth_of", CellKind::kText}});
  for (const DispatchRow& row : rows) {
    table.Add({exchange.kind, cluster.name(), exchange.routing.ranks, exchange.routing.machines,
               trial.groups.size(), Name(trial.fidelity), Name(trial.algorithm), row.tokens,
               static_cast<uint64_t>(exchange.token().value()), exchange.spread.ranks,
               exchange.spread.machines, row.of.time.value(), row.of.bandwidth.value() / 1e9,
               CountedAt(exchange)});
  }
  return table;
}

std::string JsonOf(const std::vector<DispatchRow>& rows, const Exchange& exchange,
                   const Trial& trial) {
  nlohmann::ordered_json json = {{"schema", "rehearse.collective.v1"},
                                 {"kind", exchange.kind},
                                 {"ranks", exchange.routing.ranks},
                                 {"machines", exchange.routing.machines},
                                 {"groups", trial.groups.size()},
                                 {"fidelity", Name(trial.fidelity)},
                                 {"left_out", LeftOutBy(trial.fidelity)},
                                 {"algorithm", Name(trial.algorithm)},
                                 {"token_bytes", static_cast<uint64_t>(exchange.token().value())},
                                 {"ranks_of_token", exchange.spread.ranks},
                                 {"machines_of_token", exchange.spread.machines},
                                 {"bandwidth_of", CountedAt(exchange)},
                                 {"rows", nlohmann::ordered_json::array()}};
  for (const DispatchRow& row : rows)
    json["rows"].push_back({{"tokens", row.tokens},
                            {"seconds", row.of.time.value()},
                            {"bandwidth_gb_per_s", row.of.bandwidth.value() / 1e9}});
  return json.dump(2) + "\n";
}

}  // namespace

bool IsExpertExchange(const std::string& kind) { return kind == kDispatch || kind == kCombine; }

void AddDispatchOptions(CommandSyntax* syntax) {
  syntax->takes["tokens"] = Taken{};
  syntax->takes["dtype"] = TakenName({"fp8", "bf16", "fp16", "fp32"});
  syntax->options.add_options()(
      "tokens", Wholes("N,N", nullptr, 1, kMostTokens),
      "dispatch, combine: tokens per rank, a row for each number; 4096 if not given")(
      "hidden", Whole("N", nullptr, 1u, kMostColumns),
      "dispatch, combine: elements of a token; 7168 if not given")(
      "dtype", po::value<std::string>()->value_name("TYPE"),
      "dispatch, combine: fp8 (with a scale for every 128), bf16, fp16 or fp32; if not given, fp8 "
      "to experts and bf16 back")("top-k", Whole("N", nullptr, 1u, kMostExperts),
                                  "dispatch, combine: experts per token; 8 if not given")(
      "experts", Whole("N", nullptr, 1u, kMostExperts),
      "dispatch, combine: number of experts; 256 if not given")(
      "expert-groups", Whole("N", nullptr, 1u, kMostExperts),
      "dispatch, combine: groups of experts; one per machine if not given")(
      "limited-groups", Whole("N", nullptr, 1u, kMostExperts),
      "dispatch, combine: groups that a token may go to; all if not given");
}

void RefuseDispatchOptions(const po::variables_map& values, const std::string& kind) {
  for (const char* name : kOwnOptions)
    if (values.count(name) > 0)
      throw Error(
          fmt::format("--{} is for dispatch and combine; {} is given sizes (-b)", name, kind));
}

std::string TimeDispatch(const po::variables_map& values, const std::string& kind,
                         const Cluster& cluster, OutputFormat format) {
  for (const char* name : kSizeOptions)
    if (values.count(name) > 0 && !values[name].defaulted())
      throw Error(fmt::format("--{}: the sizes of {} follow from --tokens", name, kind));
  Trial trial = ReadTrial(values, CollectiveKind::kAllToAll, cluster, std::nullopt);
  if (trial.algorithm == AlgorithmId::kAuto) {
    trial.algorithm = AlgorithmId::kDeepEp;
    CheckAlgorithmOf(trial, cluster);
  }
  Exchange exchange;
  exchange.kind = kind;
  exchange.hidden = CountOf(values, "hidden", 7168);
  exchange.dtype = ParseDtype(values, kind);
  exchange.forwards = FindAlgorithm(trial.algorithm).forwards;
  TokenRouting& routing = exchange.routing;
  routing.experts = CountOf(values, "experts", 256);
  routing.top_k = CountOf(values, "top-k", 8);
  routing.ranks = static_cast<uint32_t>(trial.groups.front().size());
  routing.machines = MachinesOf(trial, cluster);
  routing.groups = CountOf(values, "expert-groups", routing.machines);
  routing.limited_groups = CountOf(values, "limited-groups", routing.groups);
  exchange.spread = SpreadOf(routing);
  std::vector<uint32_t> tokens = {4096};
  if (values.count("tokens") > 0) tokens = values["tokens"].as<std::vector<uint32_t>>();
  std::vector<DispatchRow> rows;
  rows.reserve(tokens.size());
  for (const uint32_t count : tokens)
    rows.push_back({count, TimeOf({routing, exchange.token()}, count, trial, cluster)});
  if (IsTable(format)) return Print(TableOf(rows, exchange, trial, cluster), format);
  return format == OutputFormat::kJson ? JsonOf(rows, exchange, trial)
                                       : TextOf(rows, exchange, trial, cluster);
}

}  // namespace rehearse

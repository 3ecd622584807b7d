// rehearse collective KIND: one collective on its own, in the format of nccl-tests.
#include <algorithm>
#include <cmath>
#include <cstdio>

#include <fmt/format.h>
#include <nlohmann/json.hpp>

#include "collectives/algorithms/ring.h"
#include "collectives/lowering/trial.h"
#include "collectives/lowering/tuning.h"
#include "collectives/lowering/wire_bound.h"
#include "real/calibration/nccl_table.h"
#include "scenarios/reporting/collective_film.h"
#include "sim/base/error.h"
#include "sim/base/input_record.h"
#include "sim/base/output_file.h"
#include "sim/base/units.h"
#include "sim/base/visible_text.h"
#include "sim/report/packet_lines.h"
#include "tools/command.h"
#include "tools/dispatch_options.h"
#include "tools/explain_collective.h"
#include "tools/number_options.h"
#include "tools/output_format.h"
#include "tools/page_file.h"
#include "tools/terminal.h"
#include "tools/trial_options.h"
#include "tools/wire_bound_view.h"

namespace rehearse {
namespace {

namespace po = boost::program_options;

constexpr size_t kMostSizes = 100000;
constexpr uint32_t kMostRepeats = 100'000'000;

}  // namespace

CommandSyntax CollectiveSyntax() {
  CommandSyntax syntax;
  syntax.usage = "rehearse collective KIND --cluster CLUSTER [options]";
  syntax.explanation =
      "Times one collective on idle devices and prints nccl-tests' table. KIND is all-reduce,\n"
      "all-gather, reduce-scatter, all-to-all, broadcast, reduce, send-receive or barrier; or\n"
      "what experts do: dispatch or combine, whose sizes are in tokens. Examples:\n"
      "  rehearse collective all-reduce --cluster dgx-a100 -b 1M -e 1G -f 2\n"
      "  rehearse collective all-reduce --cluster dgx-a100:nodes=4 -b 64M --explain\n"
      "  rehearse collective all-reduce --cluster dgx-h100 -a ring -p simple -b 1G\n"
      "  rehearse collective all-gather --cluster perlmutter:nodes=4 --groups 4 -b 256M\n"
      "  rehearse collective all-reduce --cluster switch:devices=4 --watch -o ring.html\n"
      "  rehearse collective dispatch --cluster dgx-h800:nodes=8 --tokens 4096 --limited-groups "
      "4\n";
  syntax.positional = {"kind"};
  syntax.takes["kind"] = TakenCollective();
  syntax.takes["kind"].names.insert(syntax.takes["kind"].names.end(), {kDispatch, kCombine});
  syntax.takes["calibration"] = TakenFile({".json"});
  AddTrialOptions(&syntax);
  const auto text = [](const char* name) { return po::value<std::string>()->value_name(name); };
  syntax.options.add_options()("calibration", text("FILE"),
                               "link efficiencies and overheads that `rehearse compare "
                               "--calibration` wrote")(
      "minbytes,b", Size("SIZE", "32M"),
      "smallest size, in bytes or with K, M, G, T (powers of 1,024)")(
      "maxbytes,e", Size("SIZE", nullptr), "largest size; --minbytes if not given")(
      "stepfactor,f", Factor("X", nullptr),
      "each size is the one before times X, a number above 1; 2 if not given")(
      "stepbytes,i", Size("SIZE", nullptr), "or each size is the one before plus this")(
      "iters,n", Whole("N", "20", 1u, kMostRepeats),
      "accepted for scripts written for nccl-tests; one run is enough, as every simulated run is "
      "the same")("warmup_iters,w", Whole("N", "5", 0u, kMostRepeats), "likewise")(
      "explain",
      "print rings or trees, channels and the link that limits the speed (text or json)")(
      "watch",
      "write a page (-o FILE.html) that plays the collective: blocks of data along the links that "
      "the simulation used, step by step, at its times")(
      "output,o", po::value<std::string>()->value_name("FILE"), "where --watch writes its page");
  syntax.takes["output"] = TakenOutput({".html"});
  AddDispatchOptions(&syntax);
  AddFormatOption(syntax.options, kTableFormats, "a row for each size");
  return syntax;
}

namespace {

std::vector<Bytes> Sizes(const po::variables_map& values) {
  const Bytes begin = values["minbytes"].as<Bytes>();
  const Bytes end = values.count("maxbytes") > 0 ? values["maxbytes"].as<Bytes>() : begin;
  if (begin > end) {
    throw Error(fmt::format("--minbytes {} is more than --maxbytes {}", PrintExactly(begin),
                            PrintExactly(end)));
  }
  if (values.count("stepbytes") > 0 && values.count("stepfactor") > 0)
    throw Error("--stepbytes and --stepfactor exclude each other");
  const bool adds = values.count("stepbytes") > 0;
  const Bytes step = adds ? values["stepbytes"].as<Bytes>() : Bytes(0);
  const double factor = values.count("stepfactor") > 0 ? values["stepfactor"].as<double>() : 2.0;
  std::vector<Bytes> sizes;
  Bytes size = begin;
  while (size <= end) {
    if (sizes.size() == kMostSizes)
      throw Error(fmt::format("more than {} sizes from --minbytes to --maxbytes", kMostSizes));
    sizes.push_back(size);
    size = adds ? size + step : Bytes(std::ceil(size.value() * factor));
  }
  return sizes;
}

struct Row {
  NcclRow figures;
  Choice choice;
  std::optional<std::pair<Seconds, Seconds>> range;  // over seeds, where the result depends on them
  WireBound bound = {};                              // zero where there is none
};

// What the wires allow for each row; nothing where that takes long, and for a barrier.
void FindBounds(const Trial& trial, const Cluster& cluster, std::vector<Row>* rows) {
  const std::vector<uint32_t>& ranks = trial.groups.front();
  if (ranks.size() < 2 || cluster.device_count() > kMostForBound) return;
  const WireBounds bounds(cluster, ranks);
  for (Row& row : *rows)
    row.bound =
        bounds.Of(trial.kind, row.figures.bytes, trial.root, SwitchesOf(row.choice.algorithm->id));
}

double ShareOfBound(const Row& row) { return row.bound.time / row.figures.time; }

// "1073741824 B: 96.2 % of what the wires allow", for each size.
std::vector<std::string> BoundLines(const std::vector<Row>& rows) {
  std::vector<std::string> lines;
  for (const Row& row : rows)
    if (row.bound.time > Seconds(0))
      lines.push_back(fmt::format("{:.0f} B: {:.1f} % of what the wires allow, by what {} {}",
                                  row.figures.bytes.value(), 100 * ShareOfBound(row),
                                  row.bound.leaves ? "leaves" : "enters",
                                  VisibleText(row.bound.cut)));
  return lines;
}

// Returns nothing where the result depends on no seed.
std::optional<std::string> SpreadLine(const std::vector<Row>& rows, const Router& router) {
  if (!rows.front().range && !router.IsHashed()) return std::nullopt;
  const std::string routing = ToText(*router.rule());
  double most = 0;
  for (const Row& row : rows)
    if (row.range) most = std::max(most, row.range->second / row.range->first - 1);
  if (!rows.front().range) return routing + ", one seed";
  return fmt::format("{}: medians of {} seeds, which differ by up to {:.1f} %", routing,
                     kRoutingSeeds, 100 * most);
}

// "1 MiB to 4 MiB: ring, ll128, 24 channels", one line for each range of sizes with the
// same choice.
std::vector<std::string> ChoiceLines(const std::vector<Row>& rows) {
  const auto words = [](const Choice& choice) {
    return fmt::format("{}, protocol {}{}", choice.algorithm->name(), Name(choice.protocol),
                       choice.nccl_channels > 0
                           ? fmt::format(", {} channel{}", choice.nccl_channels,
                                         choice.nccl_channels == 1 ? "" : "s")
                           : "");
  };
  std::vector<std::string> lines;
  for (size_t begin = 0; begin < rows.size();) {
    size_t end = begin + 1;
    while (end < rows.size() && words(rows[end].choice) == words(rows[begin].choice)) ++end;
    const std::string first = fmt::format("{:.0f}", rows[begin].figures.bytes.value());
    const std::string last = fmt::format("{:.0f}", rows[end - 1].figures.bytes.value());
    lines.push_back(fmt::format("{} B: {}",
                                end - begin == 1 ? first : fmt::format("{} to {}", first, last),
                                words(rows[begin].choice)));
    begin = end;
  }
  return lines;
}

std::string TextOf(const std::vector<Row>& rows, const Trial& trial, const Cluster& cluster,
                   const std::string& library, const std::vector<JsonChange>& changes,
                   const Router& router, const PacketReport& packets) {
  const size_t size = trial.groups.front().size();
  std::vector<std::string> comments = {
      fmt::format("{} on {}, simulated ({}): {} group{} of {} ranks", Name(trial.kind),
                  VisibleText(cluster.name()), Name(trial.fidelity), trial.groups.size(),
                  trial.groups.size() == 1 ? "" : "s", size)};
  for (const JsonChange& change : changes) comments.push_back(ToText(change));
  comments.push_back(
      fmt::format("left out by {}: {}", Name(trial.fidelity), LeftOutBy(trial.fidelity)));
  if (trial.fidelity == Fidelity::kPacket)
    for (std::string& line : PacketLines(SettingsOfTrial(trial, router).options, packets))
      comments.push_back(VisibleText(line));
  if (const auto line = SpreadLine(rows, router)) comments.push_back(*line);
  const bool is_chosen = trial.algorithm == AlgorithmId::kAuto || trial.protocol == Protocol::kAuto;
  const std::string by = is_chosen && !library.empty() ? fmt::format(" by {}", library) : "";
  for (const std::string& line : ChoiceLines(rows))
    comments.push_back(fmt::format("chosen{}: {}", by, line));
  for (std::string& line : BoundLines(rows)) comments.push_back(std::move(line));
  NcclTable table{trial.kind, static_cast<uint32_t>(size), {}};
  for (const Row& row : rows) table.rows.push_back(row.figures);
  return WriteNcclTable(table, trial.root, comments);
}

// A row for each size, with what is the same for all of them.
DataTable TableOf(const std::vector<Row>& rows, const Trial& trial, const Cluster& cluster) {
  const auto size = static_cast<uint32_t>(trial.groups.front().size());
  DataTable table({{"kind", CellKind::kText},
                   {"cluster", CellKind::kText},
                   {"ranks", CellKind::kInteger},
                   {"groups", CellKind::kInteger},
                   {"fidelity", CellKind::kText},
                   {"bytes", CellKind::kInteger},
                   {"seconds", CellKind::kNumber},
                   {"algbw_gb_per_s", CellKind::kNumber},
                   {"busbw_gb_per_s", CellKind::kNumber},
                   {"algorithm", CellKind::kText},
                   {"protocol", CellKind::kText},
                   {"channels", CellKind::kInteger},
                   {"least_seconds", CellKind::kNumber},
                   {"share_of_bound", CellKind::kNumber}});
  for (const Row& row : rows) {
    const NcclRow& figures = row.figures;
    const Choice& choice = row.choice;
    const bool is_bound = row.bound.time > Seconds(0);
    table.Add({Name(trial.kind), cluster.name(), size, trial.groups.size(), Name(trial.fidelity),
               static_cast<uint64_t>(figures.bytes.value()), figures.time.value(),
               (figures.bytes / figures.time).value() / 1e9,
               BusBandwidth(trial.kind, size, figures.bytes, figures.time).value() / 1e9,
               choice.algorithm->name(), Name(choice.protocol), choice.nccl_channels,
               is_bound ? DataCell(row.bound.time.value()) : DataCell(),
               is_bound ? DataCell(ShareOfBound(row)) : DataCell()});
  }
  return table;
}

std::string JsonOf(const std::vector<Row>& rows, const Trial& trial, const std::string& library,
                   const std::vector<JsonChange>& changes, const Router& router,
                   const PacketReport& packets) {
  const auto size = static_cast<uint32_t>(trial.groups.front().size());
  nlohmann::ordered_json json = {{"schema", "rehearse.collective.v1"},
                                 {"kind", Name(trial.kind)},
                                 {"ranks", size},
                                 {"groups", trial.groups.size()},
                                 {"fidelity", Name(trial.fidelity)},
                                 {"left_out", LeftOutBy(trial.fidelity)},
                                 {"library", library},
                                 {"rows", nlohmann::ordered_json::array()}};
  if (!changes.empty()) json["changes"] = ToJson(changes);
  if (router.IsHashed()) json["routing"] = ToText(*router.rule());
  if (trial.fidelity == Fidelity::kPacket)
    json["packets"] = PacketJson(SettingsOfTrial(trial, router).options, packets);
  for (const Row& row : rows) {
    const NcclRow& figures = row.figures;
    const Choice& choice = row.choice;
    json["rows"].push_back(
        {{"bytes", static_cast<uint64_t>(figures.bytes.value())},
         {"seconds", figures.time.value()},
         {"algbw_gb_per_s", (figures.bytes / figures.time).value() / 1e9},
         {"busbw_gb_per_s",
          BusBandwidth(trial.kind, size, figures.bytes, figures.time).value() / 1e9},
         {"algorithm", choice.algorithm->name()},
         {"protocol", Name(choice.protocol)},
         {"channels", choice.nccl_channels}});
    if (row.range)
      json["rows"].back()["seconds_of_seeds"] = {row.range->first.value(),
                                                 row.range->second.value()};
    if (row.bound.time > Seconds(0)) {
      json["rows"].back()["least_seconds"] = row.bound.time.value();
      json["rows"].back()["share_of_bound"] = ShareOfBound(row);
      json["rows"].back()["cut"] = row.bound.cut;
    }
  }
  return json.dump(2) + "\n";
}

void CheckWatch(const po::variables_map& values) {
  const bool watches = values.count("watch") > 0;
  if (!watches && values.count("output") > 0)
    throw Error("-o is for --watch, which writes a page; the table goes to standard output");
  if (!watches) return;
  if (values.count("output") == 0)
    throw Error("-o FILE.html is missing: where --watch writes its page (- is standard output)");
  for (const char* option : {"explain", "maxbytes", "format"})
    if (values.count(option) > 0 && !values[option].defaulted())
      throw Error(fmt::format("--watch and --{} do not go together", option));
}

void Watch(const Trial& trial, Bytes bytes, const std::shared_ptr<const Cluster>& cluster,
           const std::string& output) {
  CheckWritable(output);
  const std::string page =
      ToHtml({.title = fmt::format("{} on {} - Rehearse", Name(trial.kind), cluster->name()),
              .texts = {{"rehearse-film", FilmData(trial, bytes, cluster)}}});
  WriteFileAtomically(output, page);
  TellOfPage(output, page.size());
}

}  // namespace

int CollectiveCommand(const std::vector<std::string>& arguments) {
  CommandSyntax syntax = CollectiveSyntax();
  po::variables_map values;
  if (!ParseCommandLine(syntax, arguments, &values)) return 0;
  const auto text = [&](const char* name) { return values[name].as<std::string>(); };
  CheckWatch(values);
  if (values.count("kind") == 0)
    throw Error("a kind of collective is needed; usage: " + syntax.usage);
  const OutputFormat format = values.count("explain") > 0
                                  ? ReadFormat(values, kTextAndJson, "--explain")
                                  : ReadFormat(values, kTableFormats);
  if (IsExpertExchange(text("kind"))) {
    if (values.count("watch") > 0)
      throw Error(fmt::format("--watch is for collectives, not for {}", text("kind")));
    if (values.count("explain") > 0)
      throw Error(fmt::format(
          "--explain is for collectives; {} is an all-to-all of experts, see --format json",
          text("kind")));
    std::optional<std::string> calibration;
    if (values.count("calibration") > 0) calibration = text("calibration");
    const auto cluster = ReadTrialCluster(values, calibration, syntax.usage);
    std::fputs(TimeDispatch(values, text("kind"), *cluster, format).c_str(), stdout);
    return 0;
  }
  const CollectiveKind kind = ParseCollectiveKind("", text("kind"), {kDispatch, kCombine});
  RefuseDispatchOptions(values, text("kind"));
  const std::vector<Bytes> sizes =
      kind == CollectiveKind::kBarrier ? std::vector<Bytes>{Bytes(0)} : Sizes(values);
  std::optional<std::string> calibration;
  if (values.count("calibration") > 0) calibration = text("calibration");
  const auto inputs = std::make_shared<InputRecord>();
  const std::shared_ptr<const Cluster> cluster =
      ReadTrialCluster(values, calibration, syntax.usage, {.record = inputs});
  const Trial trial = ReadTrial(values, kind, *cluster, std::nullopt);
  if (values.count("watch") > 0) {
    Watch(trial, sizes.front(), cluster, text("output"));
    return 0;
  }

  Router router(*cluster, trial.routing);
  ChannelFinder finder(router);
  Tuner tuner(router, trial.nccl);
  if (values.count("explain") > 0) {
    std::fputs(ExplainCollective(trial, sizes.back(), router, finder, tuner, format).c_str(),
               stdout);
    return 0;
  }
  std::vector<Row> rows;
  PacketReport packets;
  ProgressLine progress(ProgressWanted());
  for (const SeededTime& time : TimesOverSeeds(trial, sizes, *cluster, &packets, progress)) {
    const Bytes bytes = sizes[rows.size()];
    rows.push_back({{bytes, time.median}, ChoiceOf(trial, bytes, tuner), {}, {}});
    if (DependsOnSeed(trial, router) && !trial.routing.seed)
      rows.back().range.emplace(time.least, time.most);
  }
  progress.Begin("finding out what the wires allow", "", 0);
  FindBounds(trial, *cluster, &rows);
  progress.Clear();
  const std::string library = tuner.LibraryOf(trial.groups.front());
  const std::string output =
      IsTable(format) ? Print(TableOf(rows, trial, *cluster), format)
      : format == OutputFormat::kJson
          ? JsonOf(rows, trial, library, inputs->changes, router, packets)
          : TextOf(rows, trial, *cluster, library, inputs->changes, router, packets);
  std::fputs(output.c_str(), stdout);
  return 0;
}

}  // namespace rehearse

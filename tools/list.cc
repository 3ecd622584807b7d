// rehearse list [KIND]: what is known by name.
#include <algorithm>
#include <cstdio>
#include <utility>

#include <fmt/format.h>
#include <fmt/ranges.h>
#include <nlohmann/json.hpp>

#include "collectives/algorithms/algorithm.h"
#include "scenarios/readers/model_reader.h"
#include "scenarios/readers/software.h"
#include "scenarios/readers/strategy_reader.h"
#include "sim/base/error.h"
#include "sim/base/known_names.h"
#include "sim/base/units.h"
#include "tools/command.h"
#include "tools/output_format.h"
#include "topology/devices/device.h"
#include "topology/presets/presets.h"
#include "workloads/planner/pipeline.h"

namespace rehearse {
namespace {

namespace po = boost::program_options;

// A figure or a switch of an entry, and the document that says so.
struct ListedFact {
  std::string name;
  std::string when;  // it holds; "" for always
  std::string source;
};

struct ListedEntry {
  std::string name;
  std::string summary;
  std::string source;  // of all of it, where there are no facts
  std::vector<ListedFact> facts = {};
};

// One line, for tables and JSON: each source behind the neighbouring facts that it is for.
std::string SourceLine(const ListedEntry& entry) {
  std::string line = entry.source;
  for (size_t i = 0; i < entry.facts.size(); ++i) {
    const ListedFact& fact = entry.facts[i];
    const bool is_new = i == 0 || entry.facts[i - 1].source != fact.source;
    const bool ends = i + 1 == entry.facts.size() || entry.facts[i + 1].source != fact.source;
    line += i == 0 ? "" : is_new ? "; " : ", ";
    line += fmt::format("{}{}{}", fact.name, fact.when.empty() ? "" : " ", fact.when);
    if (ends) line += fmt::format(" ({})", fact.source);
  }
  return line;
}

std::vector<ListedEntry> Clusters() {
  std::vector<ListedEntry> entries;
  for (const ClusterPreset& preset : ClusterPresets()) {
    std::string parameters;
    for (const PresetParameter& parameter : preset.parameters) {
      parameters += fmt::format("{}{}={}", parameters.empty() ? ":" : ",", parameter.name,
                                parameter.standard);
    }
    entries.push_back({preset.name + parameters, preset.summary, preset.source});
  }
  return entries;
}

std::vector<ListedEntry> Devices() {
  std::vector<ListedEntry> entries;
  for (const DeviceSpec& device : KnownDevices()) {
    ListedEntry entry = {
        device.name,
        fmt::format("{}, {}, {} at {}", device.description, Print(device.matrix_peak_16),
                    Print(device.memory), Print(device.memory_bandwidth)),
        ""};
    for (const auto& [figure, origin] : device.sources) entry.facts.push_back({figure, "", origin});
    entries.push_back(std::move(entry));
  }
  return entries;
}

std::vector<ListedEntry> Models() {
  std::vector<ListedEntry> entries;
  for (const ModelPreset& preset : ModelPresets())
    entries.push_back({preset.name, preset.summary, preset.source});
  return entries;
}

std::vector<ListedEntry> Strategies() {
  std::vector<ListedEntry> entries;
  for (const StrategyKind& kind : StrategyKinds()) {
    entries.push_back({kind.name, kind.summary + " (workloads/README.md)", kind.source});
  }
  return entries;
}

std::vector<ListedEntry> Pipelines() {
  std::vector<ListedEntry> entries;
  for (const PipelineScheduleFacts& facts : PipelineSchedules()) {
    std::string summary = facts.summary;
    // Their ranks end one after the other, which gains nothing while all wait for all.
    if (facts.schedule == PipelineSchedule::kZeroBubbleH2 ||
        facts.schedule == PipelineSchedule::kZeroBubble2p)
      summary += "; with pipeline.validation=after-update";
    entries.push_back({facts.name, summary, facts.source});
  }
  return entries;
}

std::vector<ListedEntry> OrdersOfPairs() {
  std::vector<ListedEntry> entries;
  for (const PairOrderFacts& facts : PairOrders()) {
    std::string parts;
    for (const PassPart part : facts.order)
      parts += fmt::format("{}{}", parts.empty() ? "" : " ", Name(part));
    entries.push_back({facts.name, fmt::format("{}: {}", facts.summary, parts), facts.source});
  }
  return entries;
}

// What each sets, by the documents that say so.
std::vector<ListedEntry> Software() {
  std::vector<ListedEntry> entries;
  for (const SoftwareStack& stack : SoftwareStacks()) {
    ListedEntry entry = {stack.name, stack.summary, ""};
    for (const SoftwareSwitch& one : stack.switches) {
      std::string when =
          one.kinds.empty() ? "" : fmt::format("of {}", fmt::join(one.kinds, " and "));
      if (one.least_capability > 0) {
        when += fmt::format("{}from sm{} on", when.empty() ? "" : " ", one.least_capability);
      }
      entry.facts.push_back({fmt::format("{}={}", one.path, one.value), when, one.source});
    }
    entries.push_back(std::move(entry));
  }
  return entries;
}

std::vector<ListedEntry> CollectiveAlgorithms() {
  std::vector<ListedEntry> entries;
  for (const Algorithm& row : Algorithms()) {
    std::string kinds;
    for (const CollectiveKind kind : kCollectiveKinds) {
      if (row.kinds.Has(kind)) kinds += fmt::format("{}{}", kinds.empty() ? "" : ", ", Name(kind));
    }
    const std::string nccl = NcclName(row.id);
    entries.push_back({row.name(), fmt::format("{} ({})", row.summary, kinds),
                       nccl.empty() ? "collectives/algorithms/algorithm_*.cc" : "NCCL's " + nccl});
  }
  return entries;
}

struct ListedKind {
  const char* name;
  std::vector<ListedEntry> (*entries)();
};

constexpr ListedKind kListedKinds[] = {
    {"clusters", Clusters},   {"devices", Devices},
    {"models", Models},       {"strategies", Strategies},
    {"pipelines", Pipelines}, {"pair-orders", OrdersOfPairs},
    {"software", Software},   {"algorithms", CollectiveAlgorithms}};

// Without what its preset's name may be followed by.
std::string PlainName(const ListedEntry& entry) {
  return entry.name.substr(0, entry.name.find(':'));
}

// A line for each, and its source below it: of all, or where one line says it.
std::string PrintLines(const std::vector<ListedEntry>& entries, bool has_sources, bool of_facts) {
  std::string text;
  for (const ListedEntry& entry : entries) {
    text += fmt::format("  {:<24} {}\n", entry.name, entry.summary);
    if (of_facts || (has_sources && entry.facts.empty()))
      text += fmt::format("  {:<24} source: {}\n", "", SourceLine(entry));
  }
  return text;
}

// A line for each fact, with the number of its source, and a line for each source.
std::string PrintFacts(const ListedEntry& entry) {
  std::string text = fmt::format("{}\n  {}\n", entry.name, entry.summary);
  if (entry.facts.empty()) return text + fmt::format("  source: {}\n", entry.source);
  size_t width = 0;
  size_t when_width = 0;
  for (const ListedFact& fact : entry.facts) {
    width = std::max(width, fact.name.size());
    when_width = std::max(when_width, fact.when.size());
  }
  std::vector<std::string> sources;
  text += "\n";
  for (const ListedFact& fact : entry.facts) {
    const auto known = std::find(sources.begin(), sources.end(), fact.source);
    const auto number = known - sources.begin() + 1;
    if (known == sources.end()) sources.push_back(fact.source);
    text +=
        fmt::format("  {:<{}}  {:<{}}  [{}]\n", fact.name, width, fact.when, when_width, number);
  }
  text += "\nSources\n";
  for (size_t i = 0; i < sources.size(); ++i) text += fmt::format("  [{}] {}\n", i + 1, sources[i]);
  return text;
}

// The entry of that name alone. Throws Error where there is none.
ListedEntry EntryOf(const ListedKind& kind, const std::string& wanted) {
  std::vector<std::string> names;
  for (ListedEntry& entry : kind.entries()) {
    if (PlainName(entry) == wanted) return std::move(entry);
    names.push_back(PlainName(entry));
  }
  throw Error(
      fmt::format("no \"{}\" among the {}{}", wanted, kind.name, KnownNames(wanted, names)));
}

}  // namespace

CommandSyntax ListSyntax() {
  CommandSyntax syntax;
  syntax.usage =
      "rehearse list [clusters|devices|models|strategies|pipelines|software|algorithms] [NAME] "
      "[options]";
  syntax.explanation =
      "Lists what scenarios and commands can name, with sources (--sources). With a name it shows\n"
      "all of it: each figure of a device, each switch of a software stack, and its source. "
      "Examples:\n"
      "  rehearse list\n"
      "  rehearse list strategies\n"
      "  rehearse list software nemo\n"
      "  rehearse list models --format csv\n";
  syntax.positional = {"kind", "name"};
  syntax.takes["name"] = {};
  syntax.takes["kind"] = TakenName({});
  for (const ListedKind& kind : kListedKinds) syntax.takes["kind"].names.emplace_back(kind.name);
  syntax.options.add_options()(
      "sources", "print where everything is from; a single kind shows it where one line says it");
  AddFormatOption(syntax.options, kTableFormats, "a row for each name");
  return syntax;
}

int ListCommand(const std::vector<std::string>& arguments) {
  CommandSyntax syntax = ListSyntax();
  po::variables_map values;
  if (!ParseCommandLine(syntax, arguments, &values)) return 0;
  const OutputFormat format = ReadFormat(values, kTableFormats);
  const std::string wanted = values.count("kind") > 0 ? values["kind"].as<std::string>() : "";
  const bool has_name = values.count("name") > 0;

  std::vector<std::string> names;
  nlohmann::ordered_json json = {{"schema", "rehearse.list.v1"}};
  DataTable table({{"kind"}, {"name"}, {"parameters"}, {"summary"}, {"source"}});
  std::string text;
  for (const ListedKind& kind : kListedKinds) {
    names.emplace_back(kind.name);
    if (!wanted.empty() && wanted != kind.name) continue;
    const std::vector<ListedEntry> entries =
        has_name ? std::vector<ListedEntry>{EntryOf(kind, values["name"].as<std::string>())}
                 : kind.entries();
    if (has_name) {
      text = PrintFacts(entries.front());
    } else {
      text += fmt::format("{}{}\n", text.empty() ? "" : "\n", kind.name);
      text += PrintLines(entries, !wanted.empty(), values.count("sources") > 0);
      if (kind.name == std::string_view("clusters"))
        text += fmt::format(
            "  all of them also take \"device\" and\n  {}:\n"
            "  dgx-h100:nodes=64,nics=4,nic=200Gbps,fabric=rails,oversubscription=2,device=h200\n",
            fmt::join(kMachineChangeKeys, ", "));
    }
    json[kind.name] = nlohmann::ordered_json::array();
    for (const ListedEntry& entry : entries) {
      const std::string name = PlainName(entry);
      const std::string source = SourceLine(entry);
      json[kind.name].push_back(
          {{"name", entry.name}, {"summary", entry.summary}, {"source", source}});
      const DataCell parameters = name.size() < entry.name.size()
                                      ? DataCell(entry.name.substr(name.size() + 1))
                                      : DataCell();
      table.Add({kind.name, name, parameters, entry.summary, source});
    }
  }
  if (text.empty()) {
    throw Error(fmt::format("cannot list \"{}\"{}", wanted, KnownNames(wanted, names)));
  }
  if (format == OutputFormat::kJson) text = json.dump(2) + "\n";
  if (IsTable(format)) text = Print(table, format);
  std::fputs(text.c_str(), stdout);
  return 0;
}

}  // namespace rehearse

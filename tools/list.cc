// rehearse list [KIND]: what is known by name.
#include <algorithm>
#include <cstdio>
#include <utility>

#include <fmt/format.h>
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

struct ListedEntry {
  std::string name;
  std::string summary;
  std::string source;
};

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
    std::string source;
    for (const auto& [figure, origin] : device.sources) {
      source += fmt::format("{}{}: {}", source.empty() ? "" : "; ", figure, origin);
    }
    entries.push_back(
        {device.name,
         fmt::format("{}, {}, {} at {}", device.description, Print(device.matrix_peak_16),
                     Print(device.memory), Print(device.memory_bandwidth)),
         source});
  }
  return entries;
}

std::vector<ListedEntry> Models() {
  std::vector<ListedEntry> entries;
  for (ModelPreset& preset : ModelPresets()) {
    entries.push_back(
        {std::move(preset.name), std::move(preset.summary), std::move(preset.source)});
  }
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
    entries.push_back({facts.name, facts.summary, facts.source});
  }
  return entries;
}

// What each sets, by the documents that say so.
std::vector<ListedEntry> Software() {
  std::vector<ListedEntry> entries;
  for (const SoftwareStack& stack : SoftwareStacks()) {
    std::string source;
    for (size_t i = 0; i < stack.switches.size(); ++i) {
      const SoftwareSwitch& one = stack.switches[i];
      const bool is_new = i == 0 || stack.switches[i - 1].source != one.source;
      const bool ends =
          i + 1 == stack.switches.size() || stack.switches[i + 1].source != one.source;
      source += is_new && i > 0 ? "; " : i > 0 ? ", " : "";
      source += fmt::format("{}={}", one.path, one.value);
      if (!one.kind.empty()) source += fmt::format(" of {}", one.kind);
      if (one.least_capability > 0) source += fmt::format(" from sm{} on", one.least_capability);
      if (ends) source += fmt::format(" ({})", one.source);
    }
    entries.push_back({stack.name, stack.summary, std::move(source)});
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
    const std::string nccl = row.nccl_name;
    entries.push_back({row.name, fmt::format("{} ({})", row.summary, kinds),
                       nccl.empty() ? "collectives/algorithm_*.cc" : "NCCL's " + nccl});
  }
  return entries;
}

struct ListedKind {
  const char* name;
  std::vector<ListedEntry> (*entries)();
};

constexpr ListedKind kListedKinds[] = {{"clusters", Clusters},
                                       {"devices", Devices},
                                       {"models", Models},
                                       {"strategies", Strategies},
                                       {"pipelines", Pipelines},
                                       {"software", Software},
                                       {"algorithms", CollectiveAlgorithms}};

}  // namespace

CommandSyntax ListSyntax() {
  CommandSyntax syntax;
  syntax.usage =
      "rehearse list [clusters|devices|models|strategies|pipelines|software|algorithms] [options]";
  syntax.explanation =
      "Lists what scenarios and commands can name, with sources (--sources). Examples:\n"
      "  rehearse list\n"
      "  rehearse list strategies\n"
      "  rehearse list models --format csv\n";
  syntax.positional = {"kind"};
  syntax.takes["kind"] = TakenName({});
  for (const ListedKind& kind : kListedKinds) syntax.takes["kind"].names.emplace_back(kind.name);
  syntax.options.add_options()("sources",
                               "print where the figures are from, as is done for a single kind");
  AddFormatOption(syntax.options, kTableFormats, "a row for each name");
  return syntax;
}

int ListCommand(const std::vector<std::string>& arguments) {
  CommandSyntax syntax = ListSyntax();
  po::variables_map values;
  if (!ParseCommandLine(syntax, arguments, &values)) return 0;
  const OutputFormat format = ReadFormat(values, kTableFormats);
  const std::string wanted = values.count("kind") > 0 ? values["kind"].as<std::string>() : "";

  std::vector<std::string> names;
  nlohmann::ordered_json json = {{"schema", "rehearse.list.v1"}};
  DataTable table({{"kind"}, {"name"}, {"parameters"}, {"summary"}, {"source"}});
  std::string text;
  for (const ListedKind& kind : kListedKinds) {
    names.emplace_back(kind.name);
    if (!wanted.empty() && wanted != kind.name) continue;
    text += fmt::format("{}{}\n", text.empty() ? "" : "\n", kind.name);
    json[kind.name] = nlohmann::ordered_json::array();
    for (const ListedEntry& entry : kind.entries()) {
      text += fmt::format("  {:<24} {}\n", entry.name, entry.summary);
      if (values.count("sources") > 0 || !wanted.empty())
        text += fmt::format("  {:<24} source: {}\n", "", entry.source);
      json[kind.name].push_back(
          {{"name", entry.name}, {"summary", entry.summary}, {"source", entry.source}});
      const size_t colon = std::min(entry.name.find(':'), entry.name.size());
      const DataCell parameters =
          colon < entry.name.size() ? DataCell(entry.name.substr(colon + 1)) : DataCell();
      table.Add({kind.name, entry.name.substr(0, colon), parameters, entry.summary, entry.source});
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

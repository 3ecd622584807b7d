#include "tools/foreign/runs/scenario_draft.h"

#include <algorithm>
#include <filesystem>
#include <limits>
#include <utility>
#include <variant>

#include <fmt/format.h>

#include "scenarios/readers/scenario.h"
#include "sim/base/error.h"
#include "sim/base/input_file.h"
#include "sim/base/json_document.h"
#include "sim/base/visible_text.h"
#include "topology/files/cluster_file.h"

namespace rehearse {
namespace {

using OrderedJson = nlohmann::ordered_json;

constexpr uint64_t kMostRanksAssumed = uint64_t{1} << 17;

// "train_gpt3" for "runs/train_gpt3.sh".
std::string NameOfFile(const std::string& file) {
  const std::string stem = std::filesystem::path(file).stem().string();
  return file == kStandardInput || stem.empty() ? "imported" : VisibleText(stem);
}

// The message of an error without the place in front of it.
std::string WithoutPlace(const Error& error) {
  const std::string text = error.what();
  const Place& place = error.place();
  std::string before = place.file;
  if (place.line > 0) before += fmt::format(":{}", place.line);
  if (!before.empty()) before += ": ";
  if (!place.pointer.empty()) before += place.pointer + ": ";
  before = VisibleLines(before);
  return text.starts_with(before) ? text.substr(before.size()) : text;
}

// The first devices of each unit: "0-63,72-135".
std::string PlacesInUnits(uint64_t ranks, const AssumedMachine& machine) {
  std::string places;
  for (uint64_t unit = 0; unit * machine.used < ranks; ++unit) {
    const uint64_t first = unit * machine.devices;
    const uint64_t count = std::min(machine.used, ranks - unit * machine.used);
    places += fmt::format("{}{}-{}", unit == 0 ? "" : ",", first, first + count - 1);
  }
  return places;
}

}  // namespace

ScenarioDraft::ScenarioDraft(const std::string& file) : file_(InputName(file)) {
  json_["name"] = NameOfFile(file);
  json_["description"] = "";
  for (const char* part : {"software", "cluster"}) json_[part] = nullptr;
  for (const char* part : {"model", "training", "strategy"}) json_[part] = OrderedJson::object();
}

void ScenarioDraft::Fail(const Origin& from, const std::string& message) const {
  throw Error({file_, from.line, ""},
              from.name.empty() ? message : fmt::format("{}: {}", from.name, message));
}

void ScenarioDraft::RemarkOnUnknown(const std::vector<std::string>& names) {
  constexpr size_t kMostNamed = 40;
  if (names.empty()) return;
  const size_t named = std::min(names.size(), kMostNamed);
  const auto end = names.begin() + static_cast<ptrdiff_t>(named);
  std::string text = fmt::format("not understood: {}", fmt::join(names.begin(), end, ", "));
  if (named < names.size()) text += fmt::format(" and {} more", names.size() - named);
  Remark(std::move(text));
}

void ScenarioDraft::Set(const std::string& pointer, OrderedJson value, const Origin& from) {
  if (value.is_string()) value = VisibleText(value.get<std::string>());
  json_[OrderedJson::json_pointer(pointer)] = std::move(value);
  if (!from.name.empty()) origins_[pointer] = from;
}

ImportedMachine ScenarioDraft::PutOnMachine(const std::string& cluster,
                                            std::optional<uint64_t> ranks, const Origin& from,
                                            const std::string& hint) {
  ImportedMachine machine;
  machine.from = from;
  if (!cluster.empty()) {
    if (cluster == kStandardInput)
      throw Error("--cluster: the scenario names the cluster, but standard input has no name");
    const auto read = ReadClusterArgument(cluster);
    machine.ranks = read->device_count();
    machine.of_node = machine.ranks / std::max(read->node_count(), 1U);
    machine.cluster =
        IsClusterFile(cluster) ? std::filesystem::absolute(cluster).string() : cluster;
    if (ranks && *ranks != machine.ranks) {
      Remark(fmt::format("{} says {} ranks; the {} devices of --cluster are used", from.name,
                         *ranks, machine.ranks));
    }
    machine.from = {"--cluster", 0};
  } else {
    if (!ranks) {
      throw Error({file_, 0, ""},
                  fmt::format("nothing says how many ranks there are; expected {}", hint));
    }
    if (*ranks > kMostRanksAssumed)
      Fail(from, fmt::format("found {} ranks, expected at most {}", *ranks, kMostRanksAssumed));
    const uint64_t units = (*ranks + assumed_.used - 1) / assumed_.used;
    machine.ranks = *ranks;
    machine.cluster = fmt::format("{}:{}={}", assumed_.preset, assumed_.unit, units);
    machine.of_node = assumed_.used;
    const bool leaves_some = assumed_.used < assumed_.devices && units > 1;
    machine.spares = !leaves_some && *ranks % assumed_.devices != 0;
    if (leaves_some) Set("/placement", PlacesInUnits(*ranks, assumed_));
    Remark(fmt::format("the machine is assumed: {} for {} rank{} ({}); --cluster names another",
                       machine.cluster.get<std::string>(), *ranks, *ranks == 1 ? "" : "s",
                       from.name));
  }
  Set("/cluster", machine.cluster, machine.from);
  return machine;
}

ImportedScenario ScenarioDraft::Finish() {
  if (json_["software"].is_null()) json_.erase("software");
  if (json_["description"].get_ref<const std::string&>().empty())
    json_["description"] = fmt::format("imported from {}", VisibleText(file_));
  ImportedScenario imported;
  try {
    const JsonDocument document = JsonDocument::FromText(json_.dump(2), file_);
    const Scenario scenario = ReadScenario(document);
    const auto& workload = std::get<Workload>(scenario.jobs.front().work);
    imported.ranks = workload.ranks();
    imported.parameters = workload.network->Parameters();
  } catch (const Error& error) {
    const Place& place = error.place();
    if (place.file != file_) throw;
    Origin from;
    for (std::string pointer = place.pointer; from.name.empty() && !pointer.empty();
         pointer.resize(pointer.rfind('/'))) {
      const auto known = origins_.find(pointer);
      if (known != origins_.end()) from = known->second;
    }
    if (from.name.empty()) from.name = place.pointer;
    Fail(from, WithoutPlace(error));
  }
  imported.text = json_.dump(2) + "\n";
  imported.remarks = remarks_;
  return imported;
}

uint64_t RanksLeft(const ScenarioDraft& draft, const ImportedMachine& machine,
                   const std::vector<Degree>& degrees) {
  uint64_t product = 1;
  std::string text;
  Origin from = machine.from;
  for (const Degree& degree : degrees) {
    if (degree.value == 1) continue;
    product = degree.value > std::numeric_limits<uint64_t>::max() / product
                  ? std::numeric_limits<uint64_t>::max()
                  : product * degree.value;
    text += fmt::format("{}{} {}", text.empty() ? "" : " x ", degree.from.name, degree.value);
    if (degree.from.line > 0) from = degree.from;
  }
  if (machine.ranks % product != 0) {
    draft.Fail({"", from.line},
               fmt::format("{} rank{} ({}) cannot be shared by {}; expected a multiple of {}",
                           machine.ranks, machine.ranks == 1 ? "" : "s", machine.from.name, text,
                           product));
  }
  return machine.ranks / product;
}

uint64_t MicroBatchesOf(const ScenarioDraft& draft, const Degree& batch, const Degree& micro_batch,
                        uint64_t data) {
  const uint64_t at_once = micro_batch.value * data;
  if (batch.value % at_once != 0) {
    draft.Fail(batch.from.line > 0 ? batch.from : micro_batch.from,
               fmt::format("{} sequences are not a multiple of {} {} x {} data-parallel ranks",
                           batch.value, micro_batch.from.name, micro_batch.value, data));
  }
  return batch.value / at_once;
}

}  // namespace rehearse

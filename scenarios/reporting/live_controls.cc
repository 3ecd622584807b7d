#include "scenarios/reporting/live_controls.h"

#include <algorithm>
#include <cctype>
#include <map>
#include <set>
#include <string>
#include <utility>
#include <vector>

#include <fmt/format.h>

#include "sim/base/units.h"
#include "sim/schedule/schedule_json.h"
#include "workloads/planner/pipeline.h"

namespace rehearse {
namespace {

using Json = nlohmann::ordered_json;

// "node0/gpu3" as a pattern for everything with such a name: "node*/gpu*".
std::string PatternOf(const std::string& name) {
  std::string pattern;
  for (const char c : name) {
    if (std::isdigit(static_cast<unsigned char>(c)) == 0)
      pattern += c;
    else if (pattern.empty() || pattern.back() != '*')
      pattern += '*';
  }
  return pattern;
}

struct LinksOfKind {
  std::set<std::string> patterns;
  std::set<double> bandwidths;
};

// A pattern that links of several kinds share is left out for all of them.
std::map<LinkKind, LinksOfKind> PatternsByKind(const Cluster& cluster) {
  constexpr uint32_t kMostLooks = 20'000;  // equal machines have similar names
  std::map<LinkKind, LinksOfKind> kinds;
  std::map<std::string, std::set<LinkKind>> kinds_of_pattern;
  const uint32_t stride = std::max(1u, cluster.link_count() / kMostLooks);
  for (uint32_t link = 0; link < cluster.link_count(); link += stride) {
    const ClusterLink one = cluster.Link(link);
    std::string from = PatternOf(cluster.VertexAt(cluster.SourceOf(link)).name);
    std::string to = PatternOf(cluster.VertexAt(cluster.TargetOf(link)).name);
    if (to < from) std::swap(from, to);
    const std::string pattern = fmt::format("{}->{}", from, to);
    kinds[one.kind].patterns.insert(pattern);
    kinds[one.kind].bandwidths.insert(one.bandwidth.value());
    kinds_of_pattern[pattern].insert(one.kind);
  }
  for (auto& entry : kinds)
    std::erase_if(entry.second.patterns,
                  [&](const std::string& pattern) { return kinds_of_pattern[pattern].size() > 1; });
  return kinds;
}

std::string TitleOfLinks(LinkKind kind) {
  const std::string name = Name(kind);
  if (name == "nvlink") return "NVLink";
  if (name == "pcie") return "PCIe";
  if (name == "xgmi") return "xGMI";
  return static_cast<char>(std::toupper(static_cast<unsigned char>(name[0]))) + name.substr(1);
}

void AddLinks(const Cluster& cluster, Json* controls) {
  for (const auto& [kind, links] : PatternsByKind(cluster)) {
    if (links.patterns.empty()) continue;
    std::string now = Print(BytesPerSecond(*links.bandwidths.begin()));
    if (links.bandwidths.size() > 1)
      now += " to " + Print(BytesPerSecond(*links.bandwidths.rbegin()));
    for (const char* what : {"bandwidth", "latency"}) {
      controls->push_back({{"kind", "factor"},
                           {"label", TitleOfLinks(kind) + " " + what},
                           {"what", what},
                           {"links", links.patterns},
                           {"now", std::string(what) == "bandwidth" ? now : ""}});
    }
  }
}

// Adds failures for clusters in which a link can fail and another path is left: those with NICs on
// at least two machines.
void AddFailures(const Cluster& cluster, Json* controls) {
  constexpr size_t kMost = 4;
  constexpr VertexId kMostLooks = 4096;
  std::vector<std::string> nics;
  for (VertexId id = 0; id < std::min<size_t>(cluster.vertex_count(), kMostLooks); ++id) {
    if (cluster.KindOfVertex(id) != VertexKind::kNic) continue;
    nics.push_back(cluster.VertexAt(id).name);
    if (nics.size() == kMost) break;
  }
  if (nics.size() < 2 || cluster.node_count() < 2) return;
  controls->push_back({{"kind", "fail"}, {"label", "NIC that fails"}, {"links", nics}});
}

std::string Words(std::string key) {
  std::replace(key.begin(), key.end(), '_', ' ');
  return key;
}

void AddChoice(const std::string& label, const std::string& path, std::vector<std::string> values,
               const std::string& value, Json* controls) {
  if (std::find(values.begin(), values.end(), value) == values.end())
    values.insert(values.begin(), value);
  controls->push_back({{"kind", "choice"},
                       {"label", label},
                       {"path", path},
                       {"values", std::move(values)},
                       {"value", value}});
}

// All ways to write `product` as `count` factors, in lexicographic order.
void Factor(uint64_t product, size_t count, std::vector<uint64_t>* so_far,
            std::vector<std::vector<uint64_t>>* all) {
  constexpr size_t kMost = 400;
  if (all->size() == kMost) return;
  if (count == 1) {
    all->push_back(*so_far);
    all->back().push_back(product);
    return;
  }
  for (uint64_t factor = 1; factor <= product; ++factor) {
    if (product % factor != 0) continue;
    so_far->push_back(factor);
    Factor(product / factor, count - 1, so_far, all);
    so_far->pop_back();
  }
}

// Adds the sizes of the mesh that the strategy names, and stages.
void AddGrid(const nlohmann::json& given, const Workload& workload, Json* controls) {
  std::vector<std::string> paths;
  std::vector<uint64_t> value;
  const nlohmann::json& strategy = given.at("strategy");
  for (const MeshAxis& axis : workload.strategy.mesh.axes()) {
    if (!strategy.contains(axis.name) || !strategy.at(axis.name).is_number_unsigned()) continue;
    if (strategy.at(axis.name).get<uint64_t>() != axis.size) continue;
    paths.push_back("strategy." + axis.name);
    value.push_back(axis.size);
  }
  if (given.contains("pipeline") && given["pipeline"].contains("stages") &&
      given["pipeline"]["stages"].is_number_unsigned()) {
    paths.emplace_back("pipeline.stages");
    value.push_back(given["pipeline"]["stages"].get<uint64_t>());
  }
  if (paths.size() < 2) return;
  uint64_t product = 1;
  for (const uint64_t size : value) product *= size;
  std::vector<std::vector<uint64_t>> all;
  std::vector<uint64_t> so_far;
  Factor(product, paths.size(), &so_far, &all);
  if (std::find(all.begin(), all.end(), value) == all.end()) all.insert(all.begin(), value);
  controls->push_back(
      {{"kind", "grid"}, {"label", "Grid"}, {"paths", paths}, {"values", all}, {"value", value}});
}

void AddStrategy(const nlohmann::json& given, Json* controls) {
  for (const auto& [key, value] : given.at("strategy").items()) {
    const std::string path = "strategy." + key;
    if (value.is_boolean()) {
      controls->push_back(
          {{"kind", "switch"}, {"label", Words(key)}, {"path", path}, {"value", value}});
    } else if (value.is_number_unsigned() && (key == "prefetch" || key == "chunks")) {
      AddChoice(Words(key), path, {"0", "1", "2", "4"}, std::to_string(value.get<uint64_t>()),
                controls);
    }
  }
}

// Those that take as many stages of a rank as the scenario says.
void AddOrders(const nlohmann::json& pipeline, Json* controls) {
  std::vector<std::string> orders;
  for (const PipelineScheduleFacts& facts : PipelineSchedules()) {
    const bool is_given = pipeline.contains("virtual") && pipeline["virtual"].is_number_unsigned();
    const uint64_t stages = is_given ? pipeline["virtual"].get<uint64_t>() : 0;
    if (is_given && (stages < facts.fewest_stages_a_rank ||
                     (facts.most_stages_a_rank > 0 && stages > facts.most_stages_a_rank)))
      continue;
    orders.emplace_back(facts.name);
  }
  AddChoice("Order of the pipeline", "pipeline.schedule", orders,
            pipeline["schedule"].get<std::string>(), controls);
  AddChoice("Gradient norm", "pipeline.validation", {"before-update", "after-update", "done-again"},
            pipeline.value("validation", "before-update"), controls);
}

void AddTraining(const nlohmann::json& given, Json* controls) {
  const nlohmann::json& training = given.at("training");
  if (training.contains("batch") && training["batch"].is_number_unsigned()) {
    constexpr uint64_t kMostParts = 64;
    const auto batch = training["batch"].get<uint64_t>();
    std::vector<std::string> parts;
    for (uint64_t count = 1; count <= std::min(batch, kMostParts); ++count)
      if (batch % count == 0) parts.push_back(std::to_string(count));
    AddChoice("Micro-batches", "training.micro_batches", parts,
              std::to_string(training.value("micro_batches", uint64_t{1})), controls);
  }
  if (training.contains("recomputation") && training["recomputation"].is_string())
    AddChoice("Recomputation", "training.recomputation", {"none", "selective", "full"},
              training["recomputation"].get<std::string>(), controls);
  if (given.contains("pipeline") && given["pipeline"].contains("schedule") &&
      given["pipeline"]["schedule"].is_string())
    AddOrders(given["pipeline"], controls);
}

// What an op of a schedule written by hand says in a unit: "4ms", "64MiB".
struct Amount {
  std::string label;
  std::string value;
  std::vector<std::string> paths;
};

std::string WithoutNumbers(const std::string& name) {
  std::string words;
  for (const char c : name)
    if (std::isdigit(static_cast<unsigned char>(c)) == 0) words += c;
  while (!words.empty() && words.back() == ' ') words.pop_back();
  return words;
}

// Durations of ops with the same name, but for numbers, and all equal sizes are turned together:
// both ends of a message have to agree.
void CollectAmounts(const nlohmann::json& ops, const std::string& path,
                    std::vector<Amount>* amounts) {
  const auto add = [&](const std::string& label, const std::string& value, const std::string& where,
                       bool by_label) {
    const auto known = std::find_if(amounts->begin(), amounts->end(), [&](const Amount& one) {
      return one.value == value && (!by_label || one.label == label);
    });
    if (known == amounts->end())
      amounts->push_back({label, value, {where}});
    else
      known->paths.push_back(where);
  };
  for (size_t i = 0; i < ops.size(); ++i) {
    const nlohmann::json& op = ops[i];
    if (!op.is_object() || !op.contains("name") || !op["name"].is_string()) continue;
    const std::string name = WithoutNumbers(op["name"].get<std::string>());
    for (const char* key : {"duration", "bytes"}) {
      if (!op.contains(key) || !op[key].is_string()) continue;
      const bool is_size = std::string_view(key) == "bytes";
      add(name + (is_size ? ", bytes" : ", time"), op[key].get<std::string>(),
          fmt::format("{}.{}.{}", path, i, key), !is_size);
    }
  }
}

void AddAmounts(const nlohmann::json& schedule, const std::string& path, Json* controls) {
  constexpr size_t kMost = 12;
  std::vector<Amount> amounts;
  if (schedule.contains("ops") && schedule["ops"].is_array())
    CollectAmounts(schedule["ops"], path + "ops", &amounts);
  if (schedule.contains("roles") && schedule["roles"].is_array()) {
    const nlohmann::json& roles = schedule["roles"];
    for (size_t i = 0; i < roles.size(); ++i)
      if (roles[i].is_object() && roles[i].contains("ops") && roles[i]["ops"].is_array())
        CollectAmounts(roles[i]["ops"], fmt::format("{}roles.{}.ops", path, i), &amounts);
  }
  for (size_t i = 0; i < std::min(amounts.size(), kMost); ++i)
    controls->push_back({{"kind", "amount"},
                         {"label", amounts[i].label},
                         {"paths", amounts[i].paths},
                         {"value", amounts[i].value}});
}

}  // namespace

Json LiveControls(const Scenario& scenario, const nlohmann::json& document) {
  Json controls = Json::array();
  if (IsSchedule(document)) {
    AddAmounts(document, "", &controls);
    return controls;
  }
  const bool is_scenario = scenario.given && scenario.given->contains("cluster") &&
                           !scenario.given->contains("schedule");
  if (!is_scenario) return controls;
  const nlohmann::json& given = *scenario.given;
  const auto* workload = std::get_if<Workload>(&scenario.jobs.front().work);
  if (!scenario.lists_jobs && workload != nullptr) {
    AddStrategy(given, &controls);
    AddGrid(given, *workload, &controls);
    AddTraining(given, &controls);
  }
  if (scenario.jobs.size() == 1 && given.contains("jobs") && given["jobs"].is_array() &&
      given["jobs"][0].is_object() && given["jobs"][0].contains("schedule"))
    AddAmounts(given["jobs"][0]["schedule"], "jobs.0.schedule.", &controls);
  AddLinks(*scenario.cluster, &controls);
  if (workload != nullptr)
    controls.push_back(
        {{"kind", "compute"}, {"label", "Compute"}, {"now", scenario.cluster->DeviceOf(0).name}});
  AddChoice("Fidelity", "simulator.fidelity", {"formula", "fluid", "step"},
            Name(scenario.lowering.fidelity), &controls);
  if (!given.contains("simulator") || !given["simulator"].contains("perturbation"))
    AddFailures(*scenario.cluster, &controls);
  if (given.contains("edits")) controls.push_back({{"kind", "edits"}, {"value", given["edits"]}});
  return controls;
}

}  // namespace rehearse

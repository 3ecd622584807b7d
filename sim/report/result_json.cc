#include <cmath>

#include <nlohmann/json.hpp>

#include "sim/base/error.h"
#include "sim/report/result.h"
#include "sim/report/result_shape.h"

namespace rehearse {
namespace {

using Json = nlohmann::ordered_json;

// JSON knows neither infinity nor NaN, and a result that holds one is wrong.
Json Number(double value) {
  CHECK(std::isfinite(value));
  return value;
}

// Bytes are whole except where they are means; whole ones are printed as such.
Json ByteCount(Bytes bytes) {
  constexpr double kExactIntegers = 9007199254740992.0;  // 2^53
  const double value = bytes.value();
  if (value >= 0 && value < kExactIntegers && std::floor(value) == value) {
    return static_cast<uint64_t>(value);
  }
  return Number(value);
}

Json ByAxis(const std::vector<AxisUse>& axes) {
  Json object = Json::object();
  for (const AxisUse& axis : axes) {
    CHECK(!object.contains(axis.name));  // communicators have different names
    object[axis.name] = {{"operations", Number(axis.operations)},
                         {"bytes", ByteCount(axis.bytes)},
                         {"seconds", Number(axis.seconds.value())},
                         {"exposed_seconds", Number(axis.exposed.value())}};
  }
  return object;
}

Json ByRole(const std::vector<RoleUse>& roles) {
  Json array = Json::array();
  for (const RoleUse& role : roles) {
    const Breakdown& times = role.breakdown;
    array.push_back({{"name", role.name},
                     {"ranks", role.ranks},
                     {"compute_seconds", Number(times.compute.value())},
                     {"exposed_communication_seconds", Number(times.exposed_communication.value())},
                     {"idle_seconds", Number(times.idle.value())}});
  }
  return array;
}

Json Links(const std::vector<LinkSummary>& links) {
  Json array = Json::array();
  for (const LinkSummary& link : links) {
    array.push_back({{"name", link.name},
                     {"kind", link.kind},
                     {"bytes", ByteCount(link.bytes)},
                     {"capacity_bytes_per_second", Number(link.capacity.value())},
                     {"utilization", Number(link.utilization)},
                     {"count", link.count}});
  }
  return array;
}

Json Collectives(const std::vector<ChosenCollective>& chosen) {
  Json array = Json::array();
  for (const ChosenCollective& collective : chosen) {
    array.push_back({{"axis", collective.axis},
                     {"kind", collective.kind},
                     {"bytes", ByteCount(collective.bytes)},
                     {"algorithm", collective.algorithm},
                     {"protocol", collective.protocol},
                     {"channels", collective.channels}});
  }
  return array;
}

void AddNumbers(const Json& json, const std::string& path, std::vector<std::string>* numbers) {
  if (json.is_number()) numbers->push_back(path);
  if (!json.is_object()) return;
  const std::string before = path.empty() ? "" : path + ".";
  for (const auto& [key, value] : json.items()) AddNumbers(value, before + key, numbers);
}

}  // namespace

namespace {

Json Steps(const std::vector<SeededStep>& steps) {
  Json json = Json::array();
  for (const SeededStep& one : steps)
    json.push_back({{"seed", one.seed}, {"seconds", Number(one.step.value())}});
  return json;
}

}  // namespace

nlohmann::ordered_json ToJson(const ExpertSpread& spread) {
  return {{"imbalance", Number(spread.imbalance)},
          {"steps", Steps(spread.steps)},
          {"even_step_seconds", Number(spread.even.value())}};
}

nlohmann::ordered_json ToJson(const RouteSpread& spread) {
  Json json = {{"routing", spread.routing}, {"seed", spread.seed}, {"steps", Steps(spread.steps)}};
  json["sprayed_step_seconds"] = Number(spread.sprayed.value());
  if (!spread.worst_link.empty()) {
    json["worst_link"] = spread.worst_link;
    json["worst_link_share"] = Number(spread.worst_share);
  }
  return json;
}

namespace {

Json Software(const SoftwareUse& software) {
  Json json = {{"name", software.name}, {"switches", Json::array()}};
  for (const SwitchUse& one : software.switches) {
    Json entry = {{"path", one.path}, {"value", Json::parse(one.value)}};
    if (!one.stack.empty()) entry["stack"] = Json::parse(one.stack);
    json["switches"].push_back(std::move(entry));
  }
  return json;
}

}  // namespace

std::vector<std::string> NumbersOfResults() {
  Result result;
  result.memory_capacity = Bytes(1);  // where it is known
  result.axes.emplace_back().name = "*";
  std::vector<std::string> numbers;
  AddNumbers(ToJson(result), "", &numbers);
  return numbers;
}

namespace {

Json Typical(const TypicalStep& typical) {
  return {{"seconds", Number(typical.median.value())},
          {"low_seconds", Number(typical.low.value())},
          {"high_seconds", Number(typical.high.value())},
          {"slowest_device", Number(typical.slowest)}};
}

}  // namespace

namespace {

Json ToJson(const Trust& trust) {
  Json json = {{"rows", trust.rows}};
  if (trust.rows == 0) return json;
  json["like"] = trust.like;
  json["fewest_devices"] = trust.fewest;
  json["most_devices"] = trust.most;
  json["mean_error"] = Number(trust.mean_error);
  json["bias"] = Number(trust.bias);
  return json;
}

}  // namespace

nlohmann::ordered_json ToJson(const Result& result) {
  Json json;
  json["schema"] = kResultSchema;
  json["scenario"] = result.scenario;
  json["fidelity"] = result.fidelity;
  if (!result.left_out.empty()) json["left_out"] = result.left_out;
  json["ranks"] = result.ranks;
  json["step_seconds"] = Number(result.step.value());
  json["breakdown"] = {
      {"compute_seconds", Number(result.breakdown.compute.value())},
      {"exposed_communication_seconds", Number(result.breakdown.exposed_communication.value())},
      {"idle_seconds", Number(result.breakdown.idle.value())}};
  json["communication_seconds"] = Number(result.communication.value());
  json["overlap_fraction"] = Number(result.overlap_fraction);
  json["by_axis"] = ByAxis(result.axes);
  if (!result.roles.empty()) json["by_role"] = ByRole(result.roles);
  json["model_flops_utilization"] = Number(result.model_flops_utilization);
  json["hardware_flops_utilization"] = Number(result.hardware_flops_utilization);
  json["tokens_per_second"] = Number(result.tokens_per_second);
  json["memory"] = {{"parameters", ByteCount(result.memory.parameters)},
                    {"gradients", ByteCount(result.memory.gradients)},
                    {"optimizer", ByteCount(result.memory.optimizer)},
                    {"activations", ByteCount(result.memory.activations)},
                    {"buffers", ByteCount(result.memory.buffers)}};
  if (result.memory.host > Bytes(0)) json["memory"]["host"] = ByteCount(result.memory.host);
  if (result.memory_capacity > Bytes(0)) {
    json["memory"]["capacity"] = ByteCount(result.memory_capacity);
    json["memory"]["rank"] = result.memory_rank;
    if (result.memory_reserve > Bytes(0))
      json["memory"]["reserve"] = ByteCount(result.memory_reserve);
  }
  json["links"] = Links(result.links);
  if (!result.chosen.empty()) json["collectives"] = Collectives(result.chosen);
  if (result.routes) json["routes"] = ToJson(*result.routes);
  if (result.experts) json["experts"] = ToJson(*result.experts);
  if (result.typical) json["typical"] = Typical(*result.typical);
  if (result.trust) json["trust"] = ToJson(*result.trust);
  json["simulator"] = {{"wall_seconds", Number(result.simulator.wall.value())},
                       {"events", result.simulator.events},
                       {"transfers", result.simulator.transfers},
                       {"classes", result.simulator.classes},
                       {"peak_rss_bytes", ByteCount(result.simulator.peak_rss)}};
  json["timeline_hash"] = result.timeline_hash;
  if (!result.changes.empty()) json["changes"] = ToJson(result.changes);
  if (!result.software.name.empty()) json["software"] = Software(result.software);
  if (!result.notes.empty()) json["notes"] = result.notes;
  return json;
}

}  // namespace rehearse

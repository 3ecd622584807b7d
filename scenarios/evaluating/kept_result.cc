// Results as they are kept, and back.
#include <limits>

#include <nlohmann/json.hpp>

#include "scenarios/evaluating/engine.h"

namespace rehearse {
namespace {

using Json = nlohmann::ordered_json;

// Whatever is not a number could not be written as one.
double KeptNumber(const Json& json, const char* key) {
  const auto found = json.find(key);
  return found != json.end() && found->is_number() ? found->get<double>()
                                                   : std::numeric_limits<double>::quiet_NaN();
}

std::string KeptText(const Json& json, const char* key) {
  const auto found = json.find(key);
  return found != json.end() && found->is_string() ? found->get<std::string>() : "";
}

template <typename Whole>
Whole KeptWhole(const Json& json, const char* key) {
  const auto found = json.find(key);
  return found != json.end() && found->is_number_unsigned() ? found->get<Whole>() : Whole{0};
}

const Json& KeptPart(const Json& json, const char* key) {
  static const Json nothing = Json::object();
  const auto found = json.find(key);
  return found != json.end() && found->is_object() ? *found : nothing;
}

Result ResultOf(const Json& json) {
  Result result;
  result.scenario = KeptText(json, "scenario");
  result.fidelity = KeptText(json, "fidelity");
  result.ranks = KeptWhole<uint32_t>(json, "ranks");
  result.step = Seconds(KeptNumber(json, "step_seconds"));
  const Json& breakdown = KeptPart(json, "breakdown");
  result.breakdown.compute = Seconds(KeptNumber(breakdown, "compute_seconds"));
  result.breakdown.exposed_communication =
      Seconds(KeptNumber(breakdown, "exposed_communication_seconds"));
  result.breakdown.idle = Seconds(KeptNumber(breakdown, "idle_seconds"));
  result.communication = Seconds(KeptNumber(json, "communication_seconds"));
  result.overlap_fraction = KeptNumber(json, "overlap_fraction");
  for (const auto& [name, use] : KeptPart(json, "by_axis").items()) {
    AxisUse& axis = result.axes.emplace_back();
    axis.name = name;
    axis.operations = KeptNumber(use, "operations");
    axis.bytes = Bytes(KeptNumber(use, "bytes"));
    axis.seconds = Seconds(KeptNumber(use, "seconds"));
    axis.exposed = Seconds(KeptNumber(use, "exposed_seconds"));
  }
  result.model_flops_utilization = KeptNumber(json, "model_flops_utilization");
  result.hardware_flops_utilization = KeptNumber(json, "hardware_flops_utilization");
  result.tokens_per_second = KeptNumber(json, "tokens_per_second");
  const Json& memory = KeptPart(json, "memory");
  result.memory.parameters = Bytes(KeptNumber(memory, "parameters"));
  result.memory.gradients = Bytes(KeptNumber(memory, "gradients"));
  result.memory.optimizer = Bytes(KeptNumber(memory, "optimizer"));
  result.memory.activations = Bytes(KeptNumber(memory, "activations"));
  result.memory.buffers = Bytes(KeptNumber(memory, "buffers"));
  if (memory.contains("host")) result.memory.host = Bytes(KeptNumber(memory, "host"));
  if (memory.contains("capacity")) {
    result.memory_capacity = Bytes(KeptNumber(memory, "capacity"));
    result.memory_rank = KeptWhole<uint32_t>(memory, "rank");
    if (memory.contains("reserve")) result.memory_reserve = Bytes(KeptNumber(memory, "reserve"));
  }
  const auto links = json.find("links");
  if (links != json.end() && links->is_array()) {
    for (const Json& link : *links) {
      if (!link.is_object()) continue;
      result.links.push_back(
          {.name = KeptText(link, "name"),
           .kind = KeptText(link, "kind"),
           .bytes = Bytes(KeptNumber(link, "bytes")),
           .capacity = BytesPerSecond(KeptNumber(link, "capacity_bytes_per_second")),
           .utilization = KeptNumber(link, "utilization"),
           .count = KeptWhole<uint32_t>(link, "count")});
    }
  }
  const Json& simulator = KeptPart(json, "simulator");
  result.simulator.wall = Seconds(KeptNumber(simulator, "wall_seconds"));
  result.simulator.events = KeptWhole<uint64_t>(simulator, "events");
  result.simulator.transfers = KeptWhole<uint64_t>(simulator, "transfers");
  result.simulator.classes = KeptWhole<uint64_t>(simulator, "classes");
  result.simulator.peak_rss = Bytes(KeptNumber(simulator, "peak_rss_bytes"));
  result.timeline_hash = KeptText(json, "timeline_hash");
  return result;
}

}  // namespace

Json ResultJson(const std::vector<Result>& results) {
  Json json = ToJson(results.front());
  if (results.size() > 1) json["minus"] = ToJson(results.back());
  return json;
}

std::vector<Result> ResultsOf(const Json& json) {
  std::vector<Result> results = {ResultOf(json)};
  if (json.contains("minus")) results.push_back(ResultOf(KeptPart(json, "minus")));
  return results;
}

}  // namespace rehearse

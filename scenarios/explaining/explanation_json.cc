#include <algorithm>

#include <nlohmann/json.hpp>

#include "scenarios/explaining/explanation.h"
#include "scenarios/explaining/explanation_table.h"

namespace rehearse {
namespace {

using Json = nlohmann::ordered_json;

Json Named(const OpName& name) { return {{"op", name.op}, {"kind", name.kind}}; }

Json Links(const std::vector<ContendedLink>& links) {
  Json array = Json::array();
  for (const ContendedLink& link : links) {
    Json sharers = Json::array();
    for (const SharingOp& sharer : link.shared_by) {
      Json row = Named(sharer.name);
      row["most_at_once"] = sharer.most_at_once;
      row["bytes"] = sharer.bytes.value();
      sharers.push_back(std::move(row));
    }
    array.push_back({{"name", link.name},
                     {"kind", link.kind},
                     {"capacity_bytes_per_second", link.capacity.value()},
                     {"utilization", link.utilization},
                     {"held_back_seconds", link.held_back.value()},
                     {"most_at_once", link.most_at_once},
                     {"shared_by", std::move(sharers)}});
  }
  return array;
}

}  // namespace

nlohmann::ordered_json ToJson(const Explanation& explanation) {
  const Seconds step = explanation.result.step;
  Json json;
  json["schema"] = "rehearse.explanation.v1";
  json["scenario"] = explanation.result.scenario;
  json["fidelity"] = explanation.result.fidelity;
  json["left_out"] = explanation.result.left_out;
  json["ranks"] = explanation.result.ranks;
  if (!explanation.result.changes.empty()) json["changes"] = ToJson(explanation.result.changes);
  json["step_seconds"] = step.value();
  if (explanation.result.routes) json["routes"] = ToJson(*explanation.result.routes);
  if (explanation.result.placement) json["placement"] = ToJson(*explanation.result.placement);
  if (explanation.result.experts) json["experts"] = ToJson(*explanation.result.experts);
  const auto rows = [&](const char* list) {
    return ToJson(FindExplanationList(list).table(explanation));
  };
  json["critical_path"] = {{"by_kind", rows("by-kind")},
                           {"by_op", rows("by-op")},
                           {"by_layer", rows("by-layer")},
                           {"steps", rows("path")}};
  json["slack"] = rows("slack");
  json["exposed_communication"] = {
      {"seconds", explanation.result.breakdown.exposed_communication.value()},
      {"by_axis", Json::object()},
      {"by_op", rows("exposed")}};
  Json& by_axis = json["exposed_communication"]["by_axis"];
  for (const AxisUse& axis : explanation.result.axes) {
    by_axis[axis.name] = {{"seconds", axis.seconds.value()},
                          {"exposed_seconds", axis.exposed.value()}};
  }
  json["bottlenecks"] = rows("bottlenecks");
  json["links"] = Links(explanation.links);
  if (explanation.network) json["network"] = ToJson(*explanation.network);
  if (!explanation.left_out.empty()) json["sensitivities_left_out"] = explanation.left_out;
  json["sensitivities"] = rows("sensitivities");
  const bool is_anew =
      std::any_of(explanation.sensitivities.begin(), explanation.sensitivities.end(),
                  [](const Sensitivity& row) { return !row.anew.empty(); });
  if (is_anew) json["chosen_anew"] = rows("chosen-anew");
  if (!explanation.stages.empty()) json["stages"] = rows("stages");
  return json;
}

}  // namespace rehearse

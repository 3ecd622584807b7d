#include <nlohmann/json.hpp>

#include "scenarios/explaining/explanation.h"

namespace rehearse {
namespace {

using Json = nlohmann::ordered_json;

Json Named(const OpName& name) { return {{"op", name.op}, {"kind", name.kind}}; }

Json Shares(const std::vector<PathShare>& shares, Seconds step) {
  Json array = Json::array();
  for (const PathShare& share : shares) {
    array.push_back({{"name", share.name},
                     {"steps", share.steps},
                     {"seconds", share.seconds.value()},
                     {"share", step > Seconds(0) ? share.seconds / step : 0}});
  }
  return array;
}

Json Path(const std::vector<PathStep>& path) {
  Json array = Json::array();
  for (const PathStep& step : path) {
    Json row = Named(step.name);
    row["rank"] = step.rank;
    row["phase"] = Name(step.phase);
    row["layer"] = step.layer;
    row["micro_batch"] = step.micro_batch;
    row["begin_seconds"] = step.begin.value();
    row["end_seconds"] = step.end.value();
    array.push_back(std::move(row));
  }
  return array;
}

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
  json["step_seconds"] = step.value();
  json["critical_path"] = {{"by_kind", Shares(explanation.path_by_kind, step)},
                           {"by_op", Shares(explanation.path_by_op, step)},
                           {"by_layer", Shares(explanation.path_by_layer, step)},
                           {"steps", Path(explanation.path)}};
  json["slack"] = Json::array();
  for (const NamedSlack& slack : explanation.slack) {
    Json row = Named(slack.name);
    row["runs"] = slack.runs;
    row["least_seconds"] = slack.least.value();
    row["median_seconds"] = slack.median.value();
    json["slack"].push_back(std::move(row));
  }
  json["exposed_communication"] = {
      {"seconds", explanation.result.breakdown.exposed_communication.value()},
      {"by_axis", Json::object()},
      {"by_op", Json::array()}};
  Json& exposed = json["exposed_communication"];
  for (const AxisUse& axis : explanation.result.axes) {
    exposed["by_axis"][axis.name] = {{"seconds", axis.seconds.value()},
                                     {"exposed_seconds", axis.exposed.value()}};
  }
  for (const NamedExposure& exposure : explanation.exposed) {
    exposed["by_op"].push_back({{"op", exposure.name.op},
                                {"axis", exposure.name.kind},
                                {"operations", exposure.operations},
                                {"seconds", exposure.seconds.value()},
                                {"exposed_seconds", exposure.exposed.value()}});
  }
  json["bottlenecks"] = Json::array();
  for (const NamedBottleneck& bottleneck : explanation.bottlenecks) {
    json["bottlenecks"].push_back({{"op", bottleneck.name.op},
                                   {"axis", bottleneck.name.kind},
                                   {"link", bottleneck.link},
                                   {"link_kind", bottleneck.link_kind},
                                   {"transfers", bottleneck.transfers},
                                   {"share", bottleneck.share}});
  }
  json["links"] = Links(explanation.links);
  json["sensitivities"] = Json::array();
  for (const Sensitivity& sensitivity : explanation.sensitivities) {
    const double change = (sensitivity.step - step).value();
    json["sensitivities"].push_back({{"what", sensitivity.what},
                                     {"better_by", kBetter},
                                     {"step_seconds", sensitivity.step.value()},
                                     {"change_seconds", change},
                                     {"change", step > Seconds(0) ? change / step.value() : 0}});
  }
  return json;
}

}  // namespace rehearse

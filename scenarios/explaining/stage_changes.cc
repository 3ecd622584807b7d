#include "scenarios/explaining/stage_changes.h"

#include <optional>
#include <utility>

#include <fmt/format.h>
#include <nlohmann/json.hpp>

#include "scenarios/playing/rehearsal.h"
#include "sim/base/error.h"
#include "sim/base/interruption.h"
#include "sim/base/json_document.h"

namespace rehearse {
namespace {

using Given = nlohmann::json;

struct Variant {
  std::string what;
  Given scenario;
};

uint64_t WholeAt(const Given& object, const char* key, uint64_t otherwise) {
  const auto found = object.find(key);
  return found != object.end() && found->is_number_unsigned() ? found->get<uint64_t>() : otherwise;
}

// The axis along which replicas of the model lie, by the strategy's kind.
const char* ReplicasOf(const Given& strategy) {
  const std::string kind = strategy.value("kind", "");
  for (const char* one : {"zero-1", "zero-2", "fsdp"}) {
    if (kind == one) return "replicas";
  }
  return kind == "sbp" ? nullptr : "data";
}

std::optional<Variant> WithFewerStages(Given json) {
  Given& pipeline = json["pipeline"];
  const uint64_t stages = WholeAt(pipeline, "stages", 1);
  const char* const replicas = ReplicasOf(json["strategy"]);
  if (stages < 2 || replicas == nullptr) return std::nullopt;
  uint64_t factor = 2;
  while (stages % factor != 0) ++factor;
  pipeline["stages"] = stages / factor;
  json["strategy"][replicas] = WholeAt(json["strategy"], replicas, 1) * factor;
  const uint64_t micro_batches = WholeAt(json["training"], "micro_batches", 1);
  if (micro_batches % factor == 0) json["training"]["micro_batches"] = micro_batches / factor;
  return Variant{fmt::format("{} stages instead of {}, {} times as many replicas", stages / factor,
                             stages, factor),
                 std::move(json)};
}

std::optional<Variant> WithMoreMicroBatches(Given json) {
  const uint64_t micro_batches = WholeAt(json["training"], "micro_batches", 1);
  json["training"]["micro_batches"] = 2 * micro_batches;
  return Variant{fmt::format("{} micro-batches instead of {}", 2 * micro_batches, micro_batches),
                 std::move(json)};
}

std::optional<Variant> WithMoreStagesOfARank(Given json) {
  Given& pipeline = json["pipeline"];
  const std::string schedule = pipeline.value("schedule", "");
  const std::pair<const char*, const char*> several[] = {{"1f1b", "interleaved"},
                                                         {"interleaved", "interleaved"},
                                                         {"gpipe", "breadth-first"},
                                                         {"breadth-first", "breadth-first"}};
  for (const auto& [from, to] : several) {
    if (schedule != from) continue;
    const uint64_t fewest = schedule == "interleaved" ? 2 : 1;
    const uint64_t own = WholeAt(pipeline, "virtual", fewest);
    pipeline["schedule"] = to;
    pipeline["virtual"] = 2 * own;
    return Variant{fmt::format("{}, {} stages per rank instead of {}", to, 2 * own, own),
                   std::move(json)};
  }
  return std::nullopt;
}

std::optional<Variant> WithWeightsPutOff(Given json) {
  Given& pipeline = json["pipeline"];
  if (pipeline.value("schedule", "") != "1f1b") return std::nullopt;
  pipeline["schedule"] = "zb-h1";
  return Variant{"zb-h1, weight gradients where ranks wait", std::move(json)};
}

StageChange Play(const Variant& variant, const Place& place, ProgressObserver& observer) {
  StageChange row;
  row.what = variant.what;
  try {
    const Scenario other = ReadScenario(JsonDocument::FromValue(variant.scenario, place));
    const PlayedScenario played = PlayScenario(other, {.observer = &observer});
    const Result result = Describe(other, played, OwnPart(other, played));
    row.step = result.step;
    row.idle = result.step > Seconds(0) ? result.breakdown.idle / result.step : 0;
    row.memory = result.memory.Total();
  } catch (const Error& error) {
    row.refused = error.what();
  }
  return row;
}

}  // namespace

std::vector<StageChange> TryStageChanges(const Scenario& scenario, ProgressObserver& observer,
                                         std::vector<std::string>* left_out) {
  if (scenario.lists_jobs || scenario.given == nullptr) return {};
  const Given& given = *scenario.given;
  if (!given.contains("pipeline") || !given.contains("strategy") || !given.contains("training"))
    return {};
  std::vector<Variant> variants;
  for (const auto change :
       {WithFewerStages, WithMoreMicroBatches, WithMoreStagesOfARank, WithWeightsPutOff}) {
    if (std::optional<Variant> variant = change(given)) variants.push_back(std::move(*variant));
  }
  std::vector<StageChange> rows;
  try {
    observer.Begin("what other stages would give", "pipelines", variants.size());
    for (const Variant& variant : variants) {
      PartObserver part(observer, static_cast<double>(rows.size()), kSimulating);
      rows.push_back(Play(variant, {scenario.jobs.front().place.file, 0, ""}, part));
      observer.Done(static_cast<double>(rows.size()));
    }
  } catch (const Stopped&) {
    for (size_t i = rows.size(); i < variants.size(); ++i) left_out->push_back(variants[i].what);
  }
  return rows;
}

}  // namespace rehearse

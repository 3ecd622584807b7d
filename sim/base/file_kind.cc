#include "sim/base/file_kind.h"

#include <string>
#include <string_view>

#include <fmt/format.h>
#include <nlohmann/json.hpp>

namespace rehearse {
namespace {

struct KnownKind {
  std::string_view name;   // of its schema, where it says one: "rehearse.timeline.v1"
  std::string_view words;  // "a timeline"
  std::string_view advice;
};

constexpr KnownKind kScenario = {"scenario", "a scenario", "rehearse run plays scenarios"};
constexpr KnownKind kStudy = {"", "a study", "rehearse sweep plays studies"};
constexpr KnownKind kCluster = {"cluster", "a cluster",
                                "a scenario names one as its \"cluster\"; rehearse topology shows "
                                "it"};
constexpr KnownKind kModel = {"model", "a model",
                              "a scenario takes it as \"model\": {\"file\": ...}"};
constexpr KnownKind kCalibration = {"calibration", "a calibration",
                                    "a scenario or cluster names one as its \"calibration\""};
constexpr KnownKind kJobTrace = {"job-trace", "a trace of jobs",
                                 "rehearse import writes it from others' traces"};
constexpr KnownKind kOthers[] = {
    {"schedule", "a schedule", "rehearse run plays it on a --cluster"},
    {"timeline", "a timeline", "rehearse summary, compare and report take it"},
    {"result", "a result", "rehearse compare takes it"},
    {"execution", "a result", "rehearse compare takes it"},
    {"jobs", "a result of jobs", "rehearse run plays scenarios"},
    {"queue", "a result of jobs as they come", "rehearse run plays scenarios"},
    {"study", "what rehearse sweep prints", "it takes the study itself"},
    {"search", "what rehearse search prints", "it takes the scenario itself"},
    {"topology", "what rehearse topology prints", "its -o FILE.json writes a cluster"},
};

// "calibration" of "rehearse.calibration.v1".
std::string_view NameIn(std::string_view schema) {
  constexpr std::string_view kOurs = "rehearse.";
  if (schema.substr(0, kOurs.size()) != kOurs) return "";
  schema.remove_prefix(kOurs.size());
  return schema.substr(0, schema.find('.'));
}

const KnownKind* KindOfFile(const JsonReader& root) {
  const auto has = [&](const char* key) { return root.Has(key); };
  if (has("schema") && root.At("schema").IsString()) {
    const std::string schema = root.At("schema").String();
    if (NameIn(schema) == kCalibration.name) return &kCalibration;
    if (NameIn(schema) == kJobTrace.name) return &kJobTrace;
    for (const KnownKind& kind : kOthers)
      if (NameIn(schema) == kind.name) return &kind;
  }
  if (has("base") && has("metric")) return &kStudy;
  if (has("strategy") || has("jobs") || has("arrivals")) return has("base") ? nullptr : &kScenario;
  if (has("cluster")) return nullptr;
  if (has("vertices") || has("node")) return &kCluster;
  if (has("model_type") || (has("layers") && has("hidden"))) return &kModel;
  return nullptr;
}

const KnownKind& Of(FileKind kind) {
  switch (kind) {
    case FileKind::kScenario:
      return kScenario;
    case FileKind::kStudy:
      return kStudy;
    case FileKind::kCluster:
      return kCluster;
    case FileKind::kCalibration:
      return kCalibration;
    case FileKind::kJobTrace:
      return kJobTrace;
  }
  CHECK(false);
}

}  // namespace

void RefuseOtherKinds(const JsonReader& root, FileKind wanted) {
  if (!root.IsObject()) return;
  const KnownKind* const found = KindOfFile(root);
  if (found == nullptr || found == &Of(wanted)) return;
  root.Fail(
      fmt::format("found {}, expected {}: {}", found->words, Of(wanted).words, found->advice));
}

}  // namespace rehearse

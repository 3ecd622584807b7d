#include "scenarios/readers/software.h"

#include <algorithm>
#include <map>
#include <set>
#include <utility>

#include <fmt/format.h>

#include "scenarios/readers/model_reader.h"
#include "scenarios/readers/training_reader.h"
#include "sim/base/error.h"
#include "sim/base/json_reader.h"

namespace rehearse {
namespace {

using nlohmann::json;

std::vector<std::string> StackNames() {
  std::vector<std::string> names;
  for (const SoftwareStack& stack : SoftwareStacks()) names.push_back(stack.name);
  return names;
}

std::string TextAt(const json& object, const char* key) {
  const auto found = object.is_object() ? object.find(key) : object.end();
  return object.is_object() && found != object.end() && found->is_string()
             ? found->get<std::string>()
             : "";
}

const json& PartOf(const json& scenario, const char* key) {
  static const json nothing;
  const auto found = scenario.find(key);
  return found == scenario.end() ? nothing : *found;
}

bool HasStages(const json& pipeline) {
  const json& stages = pipeline.is_object() ? PartOf(pipeline, "stages") : pipeline;
  return stages.is_number_integer() && stages.get<int64_t>() > 1;
}

struct ModelTraits {
  std::string kind;  // the model's own, its preset's, or a decoder's
  bool has_experts = false;
};

ModelTraits TraitsOf(const json& model) {
  ModelTraits traits = {"decoder", model.is_object() && model.contains("experts")};
  const std::string preset = TextAt(model, "preset");
  for (const ModelPreset& known : ModelPresets()) {
    if (known.name != preset) continue;
    traits.kind = known.kind;
    traits.has_experts = traits.has_experts || known.has_experts;
    break;
  }
  const std::string kind = TextAt(model, "kind");
  if (!kind.empty()) traits.kind = kind;
  return traits;
}

// Whether trainings of such a model have the key, and the key can have the value.
bool Takes(const std::string& key, const json& value, const std::string& kind) {
  const JsonKey* const row = TrainingShape().Find(key);
  if (row == nullptr) return false;
  const std::vector<std::string>& choices = row->shape.choices;
  if (!choices.empty() && std::find(choices.begin(), choices.end(), value) == choices.end())
    return false;
  return row->only.empty() || row->only == VariantOfTraining(kind);
}

struct Applied {
  std::string key;  // "kernels"
  json value;
  const SoftwareSwitch* from = nullptr;
};

// The stack's switches that apply to such a scenario, by "training" and "strategy".
std::map<std::string, std::vector<Applied>> AppliedTo(const json& scenario,
                                                      const SoftwareStack& stack,
                                                      uint32_t capability) {
  const std::string strategy = TextAt(PartOf(scenario, "strategy"), "kind");
  const std::string schedule = TextAt(PartOf(scenario, "pipeline"), "schedule");
  const auto [model, has_experts] = TraitsOf(PartOf(scenario, "model"));
  const std::string products = TextAt(PartOf(scenario, "training"), "products");
  const std::vector<std::string> models = {"decoder", "mlp", "vgg", "u-net"};
  const bool is_known = std::find(models.begin(), models.end(), model) != models.end();
  std::map<std::string, std::vector<Applied>> applied;
  for (const SoftwareSwitch& one : stack.switches) {
    if (!one.products.empty() &&
        std::find(one.products.begin(), one.products.end(), products) == one.products.end())
      continue;
    const size_t dot = one.path.find('.');
    const bool is_of_pipeline = one.path.substr(0, dot) == "pipeline";
    const auto is_of = [&](const std::string& kind) {
      return std::find(one.kinds.begin(), one.kinds.end(), kind) != one.kinds.end();
    };
    const bool is_its_kind = is_of(strategy) || (is_of_pipeline && is_of(schedule));
    if (!one.kinds.empty() && !is_its_kind) continue;
    if (is_of_pipeline && !PartOf(scenario, "pipeline").is_object()) continue;
    if (one.least_capability > capability) continue;
    if (one.of_stages && !HasStages(PartOf(scenario, "pipeline"))) continue;
    Applied entry{one.path.substr(dot + 1), json::parse(one.value), &one};
    const std::string part = one.path.substr(0, dot);
    if (part == "training" && !(is_known && Takes(entry.key, entry.value, model))) continue;
    // Recipes of models without experts replay their whole layers as CUDA graphs.
    if ((entry.key == "permutation" || entry.key == "host_launch") && !has_experts) continue;
    // 16-bit sums go with 16-bit arithmetic.
    if (entry.key == "gradients" && TextAt(PartOf(scenario, "training"), "precision") == "fp32")
      continue;
    std::vector<Applied>& others = applied[part];
    std::erase_if(others, [&](const Applied& other) { return other.key == entry.key; });
    others.push_back(std::move(entry));
  }
  return applied;
}

}  // namespace

JsonShape SoftwareShape() { return OneOf(StackNames()); }

void ApplySoftware(JsonDocument* scenario, uint32_t capability) {
  const json& given = scenario->value();
  if (!given.is_object() || !given.contains("software")) return;
  const SoftwareStack& stack =
      SoftwareStacks()[scenario->Root().At("software").Choice(StackNames())];
  const Place by = {fmt::format("software \"{}\"", stack.name), 0, ""};
  std::vector<std::string> assignments;
  for (const auto& [part, switches] : AppliedTo(given, stack, capability)) {
    const json& written = PartOf(given, part.c_str());
    // A scenario need not say how it is simulated.
    const bool is_left_out = (part == "simulator" || part == "memory") && !given.contains(part);
    if (!written.is_object() && !is_left_out) continue;
    for (const Applied& one : switches) {
      if (!written.contains(one.key))
        assignments.push_back(fmt::format("{}.{}={}", part, one.key, one.value.dump()));
    }
  }
  for (const std::string& assignment : assignments) scenario->Set(assignment, by);
}

SoftwareUse SoftwareOf(const json& scenario, uint32_t capability) {
  SoftwareUse use;
  use.name = TextAt(scenario, "software");
  for (const SoftwareStack& stack : SoftwareStacks()) {
    if (stack.name != use.name) continue;
    for (const auto& [part, switches] : AppliedTo(scenario, stack, capability)) {
      for (const Applied& one : switches) {
        const json& now = PartOf(scenario, part.c_str()).at(one.key);
        use.switches.push_back({fmt::format("{}.{}", part, one.key), now.dump(),
                                now == one.value ? "" : one.value.dump()});
      }
    }
  }
  return use;
}

}  // namespace rehearse

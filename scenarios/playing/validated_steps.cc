#include "scenarios/playing/validated_steps.h"

#include <algorithm>
#include <array>
#include <string>
#include <variant>
#include <vector>

#include <fmt/format.h>
#include <nlohmann/json.hpp>

#include "sim/base/error.h"

namespace rehearse {
namespace {

constexpr StepClass kPlain = StepClass::kPlain;
constexpr StepClass kStages = StepClass::kStages;
constexpr StepClass kExperts = StepClass::kExperts;
constexpr StepClass kAdapters = StepClass::kAdapters;
constexpr StepClass kHybrids = StepClass::kHybrids;

constexpr std::array kTable = {
    ValidatedSteps{kPlain, "a100-40g", "llm-foundry", "fsdp", 23, 8, 128, 0.039, -0.020},
    ValidatedSteps{kPlain, "a100-80g", "llm-foundry", "fsdp", 31, 8, 8, 0.035, -0.027},
    ValidatedSteps{kPlain, "a100-80g", "megatron-core", "megatron", 1, 8, 8, 0.213, -0.213},
    ValidatedSteps{kPlain, "a100-80g", "megatron-lm-2021", "megatron", 6, 8, 256, 0.081, 0.081},
    ValidatedSteps{kPlain, "b200", "megatron-core", "megatron", 11, 8, 8, 0.140, -0.140},
    ValidatedSteps{kPlain, "b200", "nemo", "megatron", 6, 8, 16, 0.088, -0.088},
    ValidatedSteps{kPlain, "gb200", "megatron-core", "megatron", 1, 8, 8, 0.521, -0.521},
    ValidatedSteps{kPlain, "gb200", "nemo", "combined", 1, 128, 128, 0.159, -0.159},
    ValidatedSteps{kPlain, "h100", "llm-foundry", "fsdp", 38, 8, 512, 0.053, -0.031},
    ValidatedSteps{kPlain, "h100", "maxtext", "fsdp", 12, 64, 2048, 0.055, 0.031},
    ValidatedSteps{kPlain, "h100", "megatron-core", "megatron", 1, 8, 8, 0.213, -0.213},
    ValidatedSteps{kPlain, "h100", "nemo", "fsdp", 2, 8, 8, 0.064, 0.064},
    ValidatedSteps{kPlain, "h100", "nemo", "megatron", 6, 8, 32, 0.051, -0.051},
    ValidatedSteps{kPlain, "h100", "nemo-launcher", "megatron", 10, 4, 64, 0.095, -0.095},
    ValidatedSteps{kStages, "a100-80g", "megatron-lm-2021", "", 6, 64, 1920, 0.043, 0.043},
    ValidatedSteps{kStages, "b200", "megatron-core", "", 5, 8, 8, 0.073, -0.073},
    ValidatedSteps{kStages, "b200", "nemo", "", 6, 128, 448, 0.125, -0.125},
    ValidatedSteps{kStages, "gb200", "nemo", "", 9, 72, 512, 0.172, -0.172},
    ValidatedSteps{kStages, "gb300", "nemo", "", 2, 72, 512, 0.166, 0.066},
    ValidatedSteps{kStages, "h100", "nemo", "", 86, 32, 8192, 0.031, 0.001},
    ValidatedSteps{kStages, "h100", "nemo-launcher", "", 21, 8, 1024, 0.058, 0.030},
    ValidatedSteps{kExperts, "b300", "nemo", "", 14, 8, 256, 0.074, -0.065},
    ValidatedSteps{kExperts, "gb200", "nemo", "", 22, 128, 512, 0.097, -0.090},
    ValidatedSteps{kExperts, "gb300", "nemo", "", 8, 64, 64, 0.152, -0.005},
    ValidatedSteps{kExperts, "h100", "nemo", "", 43, 8, 2048, 0.043, -0.038},
    ValidatedSteps{kAdapters, "b200", "nemo", "megatron", 1, 8, 8, 0.089, -0.089},
    ValidatedSteps{kAdapters, "h100", "nemo", "data-parallel", 1, 1, 1, 0.140, -0.140},
    ValidatedSteps{kAdapters, "h100", "nemo", "megatron", 8, 8, 32, 0.042, -0.042},
    ValidatedSteps{kAdapters, "h100", "nemo-launcher", "megatron", 6, 8, 8, 0.143, -0.143},
    ValidatedSteps{kHybrids, "b300", "nemo", "combined", 10, 8, 64, 0.339, 0.260},
    ValidatedSteps{kHybrids, "gb200", "nemo", "combined", 11, 8, 64, 0.302, -0.302},
    ValidatedSteps{kHybrids, "gb300", "nemo", "combined", 6, 8, 8, 0.065, -0.065},
    ValidatedSteps{kHybrids, "h100", "nemo", "combined", 4, 16, 16, 0.013, -0.000},
    ValidatedSteps{kHybrids, "h100", "nemo", "megatron", 7, 32, 2048, 0.017, -0.016},
};

std::string TextAt(const nlohmann::json& given, const char* key) {
  if (!given.is_object() || !given.contains(key) || !given[key].is_string()) return "";
  return given[key].get<std::string>();
}

StepClass ClassOf(const Scenario& scenario) {
  const auto* workload = std::get_if<Workload>(&scenario.jobs.front().work);
  if (workload == nullptr) return StepClass::kPlain;
  for (const NetworkMatrix& matrix : workload->network->matrices)
    if (matrix.is_frozen) return StepClass::kAdapters;
  for (const NetworkNode& node : workload->network->nodes)
    if (node.kind == NodeKind::kRoute) return StepClass::kExperts;
  for (const NetworkNode& node : workload->network->nodes)
    if (node.kind == NodeKind::kStateSpace) return StepClass::kHybrids;
  const bool shares = workload->strategy.context.has_value();
  return workload->pipeline || shares ? StepClass::kStages : StepClass::kPlain;
}

const char* PartsOf(StepClass kind) {
  switch (kind) {
    case StepClass::kPlain:
      return "";
    case StepClass::kStages:
      return "stages or shared sequences";
    case StepClass::kExperts:
      return "experts";
    case StepClass::kAdapters:
      return "low-rank adapters";
    case StepClass::kHybrids:
      return "state-space layers";
  }
  CHECK(false);
}

Trust Together(const std::vector<const ValidatedSteps*>& likes, std::string like) {
  Trust trust;
  trust.like = std::move(like);
  trust.fewest = likes.front()->fewest;
  for (const ValidatedSteps* row : likes) {
    trust.rows += row->rows;
    trust.fewest = std::min(trust.fewest, row->fewest);
    trust.most = std::max(trust.most, row->most);
    trust.mean_error += row->rows * row->mean_error;
    trust.bias += row->rows * row->bias;
  }
  trust.mean_error /= trust.rows;
  trust.bias /= trust.rows;
  return trust;
}

}  // namespace

std::span<const ValidatedSteps> ValidatedTable() { return kTable; }

std::optional<Trust> TrustOf(const Scenario& scenario, const Job& job) {
  const DeviceSpec& device = scenario.cluster->DeviceOf(job.placement.front());
  if (!IsGpu(device) || device.measured || !scenario.given) return std::nullopt;
  // Published steps ran on machines that were well, and were predicted without a user's own times.
  const Perturbation& perturbation = scenario.lowering.perturbation;
  if (device.points || perturbation.compute_jitter > 0 || perturbation.link_jitter > 0 ||
      !perturbation.straggling.empty() || !perturbation.events.empty())
    return std::nullopt;
  // No table has an update on the host, or products in pieces.
  if (const auto* workload = std::get_if<Workload>(&scenario.jobs.front().work)) {
    if (workload->training.optimizer_on_host)
      return Trust{.like = "with its optimizer on the host"};
    const Strategy& planned = workload->strategy;
    if (planned.split_products != SplitProducts::kNone ||
        (planned.experts && planned.experts->pieces > 1))
      return Trust{.like = "with its products in pieces"};
  }
  // A step from others' traces says of no model how long it takes: it is as long as measured.
  if (job.schedule.tokens <= 0 && job.schedule.model_flops <= Flops(0)) return std::nullopt;
  const nlohmann::json& given = *scenario.given;
  const std::string software = TextAt(given, "software");
  const std::string strategy =
      given.contains("strategy") ? TextAt(given["strategy"], "kind") : std::string();
  const auto rows = [&](const auto& fits) {
    std::vector<const ValidatedSteps*> likes;
    for (const ValidatedSteps& row : kTable)
      if (row.device == device.name && fits(row)) likes.push_back(&row);
    return likes;
  };
  StepClass kind = ClassOf(scenario);
  const auto is_kind = [&](const ValidatedSteps& row) { return row.kind == kind; };
  std::string also = kind == StepClass::kPlain ? "" : fmt::format(", with {}", PartsOf(kind));
  if (rows(is_kind).empty() && kind != StepClass::kPlain) {
    also = fmt::format(", without {}", PartsOf(kind));
    kind = StepClass::kPlain;
  }
  const auto of_kind = rows(is_kind);
  if (of_kind.empty()) return Trust{};
  if (!software.empty()) {
    const auto likes =
        rows([&](const ValidatedSteps& row) { return is_kind(row) && row.software == software; });
    if (!likes.empty())
      return Together(likes, fmt::format("{} with {}{}", device.name, software, also));
  }
  const auto likes =
      rows([&](const ValidatedSteps& row) { return is_kind(row) && row.strategy == strategy; });
  if (!likes.empty())
    return Together(likes, fmt::format("{} with {}{}", device.name, strategy, also));
  return Together(of_kind, fmt::format("{}{}, other {}", device.name, also,
                                       kind == StepClass::kPlain ? "strategies" : "software"));
}

}  // namespace rehearse

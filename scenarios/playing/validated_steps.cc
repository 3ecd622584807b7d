#include "scenarios/playing/validated_steps.h"

#include <algorithm>
#include <array>
#include <string>
#include <vector>

#include <fmt/format.h>
#include <nlohmann/json.hpp>

namespace rehearse {
namespace {

constexpr std::array kTable = {
    ValidatedSteps{"a100-40g", "llm-foundry", "fsdp", 23, 8, 128, 0.039, -0.021},
    ValidatedSteps{"a100-80g", "llm-foundry", "fsdp", 31, 8, 8, 0.041, -0.011},
    ValidatedSteps{"a100-80g", "megatron-core", "megatron", 1, 8, 8, 0.218, -0.218},
    ValidatedSteps{"a100-80g", "megatron-lm-2021", "megatron", 6, 8, 256, 0.079, 0.079},
    ValidatedSteps{"b200", "megatron-core", "megatron", 11, 8, 8, 0.146, -0.146},
    ValidatedSteps{"b200", "nemo", "megatron", 4, 8, 16, 0.08, -0.080},
    ValidatedSteps{"gb200", "megatron-core", "megatron", 1, 8, 8, 0.532, -0.532},
    ValidatedSteps{"h100", "llm-foundry", "fsdp", 38, 8, 512, 0.086, -0.079},
    ValidatedSteps{"h100", "maxtext", "fsdp", 12, 64, 2048, 0.053, -0.030},
    ValidatedSteps{"h100", "megatron-core", "megatron", 1, 8, 8, 0.267, -0.267},
    ValidatedSteps{"h100", "nemo", "fsdp", 1, 8, 8, 0.005, -0.005},
    ValidatedSteps{"h100", "nemo", "megatron", 16, 4, 64, 0.141, -0.141},
};

std::string TextAt(const nlohmann::json& given, const char* key) {
  if (!given.is_object() || !given.contains(key) || !given[key].is_string()) return "";
  return given[key].get<std::string>();
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
  const nlohmann::json& given = *scenario.given;
  const std::string software = TextAt(given, "software");
  const std::string strategy =
      given.contains("strategy") ? TextAt(given["strategy"], "kind") : std::string();
  std::vector<const ValidatedSteps*> of_device;
  for (const ValidatedSteps& row : kTable)
    if (row.device == device.name) of_device.push_back(&row);
  if (of_device.empty()) return Trust{};
  const auto with = [&](const auto& fits) {
    std::vector<const ValidatedSteps*> likes;
    for (const ValidatedSteps* row : of_device)
      if (fits(*row)) likes.push_back(row);
    return likes;
  };
  if (!software.empty()) {
    const auto likes = with([&](const ValidatedSteps& row) { return row.software == software; });
    if (!likes.empty()) return Together(likes, fmt::format("{} with {}", device.name, software));
  }
  const auto likes = with([&](const ValidatedSteps& row) { return row.strategy == strategy; });
  if (!likes.empty()) return Together(likes, fmt::format("{} with {}", device.name, strategy));
  return Together(of_device, fmt::format("{}, other strategies", device.name));
}

}  // namespace rehearse

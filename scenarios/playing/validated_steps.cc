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
    ValidatedSteps{"h100", "llm-foundry", "fsdp", 38, 8, 512, 0.137, -0.136},
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
  const bool is_gpu = device.compute_capability > 0 || device.gfx > 0;
  if (!is_gpu || device.measured || !scenario.given) return std::nullopt;
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

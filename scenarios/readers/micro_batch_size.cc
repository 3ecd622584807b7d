#include "scenarios/readers/micro_batch_size.h"

#include <map>
#include <string>
#include <vector>

#include <fmt/format.h>
#include <nlohmann/json.hpp>

#include "sim/base/json_reader.h"

namespace rehearse {
namespace {

constexpr int64_t kMostSamples = 1 << 16;
constexpr int64_t kMostBatch = int64_t{1} << 32;

}  // namespace

std::optional<uint64_t> GroupsOfRows(const nlohmann::json& strategy) {
  static const std::map<std::string, std::vector<std::string>> kAxes = {
      {"megatron", {"data"}},
      {"data-parallel", {"data"}},
      {"zero-1", {"shard", "replicas"}},
      {"zero-2", {"shard", "replicas"}},
      {"fsdp", {"shard", "replicas"}},
      {"atp", {"data"}},
      {"combined", {"shard", "replicas", "data"}},
      {"4d", {"depth", "z", "data"}}};
  if (!strategy.is_object() || !strategy.contains("kind") || !strategy["kind"].is_string())
    return std::nullopt;
  const auto axes = kAxes.find(strategy["kind"].get<std::string>());
  if (axes == kAxes.end()) return std::nullopt;
  uint64_t groups = 1;
  for (const std::string& axis : axes->second) {
    const auto size = strategy.find(axis);
    if (size != strategy.end() && size->is_number_unsigned()) groups *= size->get<uint64_t>();
  }
  return groups;
}

void ResolveMicroBatchSize(JsonDocument* scenario) {
  const nlohmann::json& value = scenario->value();
  const auto training = value.find("training");
  if (training == value.end() || !training->is_object() || !training->contains("micro_batch_size"))
    return;
  const JsonReader reader = scenario->Root().At("training");
  const JsonReader given = reader.At("micro_batch_size");
  const auto size = static_cast<uint64_t>(given.Integer(1, kMostSamples));
  if (training->contains("micro_batches"))
    given.Fail("the training has \"micro_batches\" too; expected one of them");
  if (!value.contains("strategy")) return;
  const std::optional<uint64_t> groups = GroupsOfRows(value["strategy"]);
  if (!groups)
    given.Fail(
        "is for strategies that divide the batch among groups of ranks, which sbp and summa do "
        "not; expected \"micro_batches\"");
  const auto batch = static_cast<uint64_t>(reader.At("batch").Integer(1, kMostBatch));
  if (*groups == 0 || batch % (*groups * size) != 0)
    given.Fail(
        fmt::format("a batch of {} cannot be split over {} groups (axes that split rows) in "
                    "micro-batches of {} samples; expected {} to divide the batch",
                    batch, *groups, size, *groups * size));
  scenario->Set(fmt::format("training.micro_batches={}", batch / (*groups * size)));
}

}  // namespace rehearse

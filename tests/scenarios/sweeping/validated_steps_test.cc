// The table that `run` quotes is what validate finds. If it is not, this prints what it should be.
#include "scenarios/playing/validated_steps.h"

#include <cmath>
#include <map>
#include <tuple>

#include <fmt/format.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "scenarios/playing/rehearsal.h"
#include "scenarios/sweeping/validation.h"
#include "tests/support/places.h"

namespace rehearse {
namespace validated_steps_test {

struct Sums {
  uint32_t rows = 0;
  uint32_t fewest = 0xffffffff;
  uint32_t most = 0;
  double error = 0;
  double bias = 0;
};

std::string TextAt(const nlohmann::json& given, const char* key) {
  return given.contains(key) ? given[key].get<std::string>() : "";
}

TEST(ValidatedStepsTest, AreWhatValidateFinds) {
  const ValidationTable table =
      ReadValidationTable(ReadCsvFile(SourceDir() + "/scenarios/validation/published.csv"), {});
  const Validation validation = Validate(table, 0, NoObserver());
  std::map<std::tuple<std::string, std::string, std::string>, Sums> groups;
  for (size_t i = 0; i < table.rows.size(); ++i) {
    const Scenario scenario = ReadScenario(table.rows[i].document);
    const nlohmann::json& given = table.rows[i].document.value();
    const uint32_t ranks = static_cast<uint32_t>(scenario.jobs.front().placement.size());
    Sums& sums = groups[{scenario.cluster->DeviceOf(0).name, TextAt(given, "software"),
                         TextAt(given["strategy"], "kind")}];
    ++sums.rows;
    sums.fewest = std::min(sums.fewest, ranks);
    sums.most = std::max(sums.most, ranks);
    sums.error += std::abs(validation.rows[i].error);
    sums.bias += validation.rows[i].error;
  }
  std::string wanted;
  std::string found;
  const auto row = [](const std::string& device, const std::string& software,
                      const std::string& strategy, const Sums& sums) {
    return fmt::format(
        "    ValidatedSteps{{\"{}\", \"{}\", \"{}\", {}, {}, {}, {:.3f}, {:.3f}}},\n", device,
        software, strategy, sums.rows, sums.fewest, sums.most, sums.error, sums.bias);
  };
  for (auto& [key, sums] : groups) {
    sums.error /= sums.rows;
    sums.bias /= sums.rows;
    found += row(std::get<0>(key), std::get<1>(key), std::get<2>(key), sums);
  }
  for (const ValidatedSteps& steps : ValidatedTable()) {
    wanted += row(steps.device, steps.software, steps.strategy,
                  {steps.rows, steps.fewest, steps.most, steps.mean_error, steps.bias});
  }
  EXPECT_EQ(wanted, found) << "scenarios/playing/validated_steps.cc should have\n" << found;
}

TEST(ValidatedStepsTest, TheNearestRowsAreQuoted) {
  const auto trust_of = [](const std::string& scenario, const std::vector<std::string>& changes) {
    JsonDocument document =
        JsonDocument::FromFile(SourceDir() + "/scenarios/" + scenario + ".json");
    for (const std::string& change : changes) document.Set(change);
    return Rehearse(ReadScenario(document)).result.trust;
  };
  EXPECT_FALSE(trust_of("cpu-fsdp", {}).has_value());
  const auto fsdp = trust_of("strategy-fsdp", {"cluster=dgx-h100:nodes=2"});
  ASSERT_TRUE(fsdp.has_value());
  EXPECT_EQ(fsdp->like, "h100 with fsdp");
  EXPECT_GT(fsdp->rows, 30u);
  const auto none = trust_of("axonn-unet-4b-frontier", {});
  ASSERT_TRUE(none.has_value());
  EXPECT_EQ(none->rows, 0u);
}

}  // namespace validated_steps_test
}  // namespace rehearse

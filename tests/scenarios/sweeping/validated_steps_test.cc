// The table that `run` quotes is what validate finds. If it is not, this prints what it should be.
#include "scenarios/playing/validated_steps.h"

#include <cmath>
#include <map>
#include <regex>
#include <string>
#include <tuple>

#include <fmt/format.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "scenarios/playing/rehearsal.h"
#include "scenarios/sweeping/validation.h"
#include "sim/base/input_file.h"
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

// A row of the table as it stands in the program.
std::string Row(const char* kind, const std::string& device, const std::string& software,
                const std::string& strategy, const Sums& sums) {
  return fmt::format(
      "    ValidatedSteps{{{}, \"{}\", \"{}\", \"{}\", {}, {}, {}, {:.3f}, {:.3f}}},\n", kind,
      device, software, strategy, sums.rows, sums.fewest, sums.most, sums.error, sums.bias);
}

std::string RowsOf(StepClass kind, const char* name) {
  std::string rows;
  for (const ValidatedSteps& steps : ValidatedTable()) {
    if (steps.kind != kind) continue;
    rows += Row(name, steps.device, steps.software, steps.strategy,
                {steps.rows, steps.fewest, steps.most, steps.mean_error, steps.bias});
  }
  return rows;
}

void ExpectWhatValidateFinds(const char* file, StepClass kind, const char* name) {
  const ValidationTable table =
      ReadValidationTable(ReadCsvFile(SourceDir() + "/scenarios/validation/" + file), {});
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
  std::string found;
  for (auto& [key, sums] : groups) {
    sums.error /= sums.rows;
    sums.bias /= sums.rows;
    found += Row(name, std::get<0>(key), std::get<1>(key), std::get<2>(key), sums);
  }
  EXPECT_EQ(RowsOf(kind, name), found) << "scenarios/playing/validated_steps.cc should have\n"
                                       << found;
}

TEST(ValidatedStepsTest, AreWhatValidateFinds) {
  ExpectWhatValidateFinds("published.csv", StepClass::kPlain, "kPlain");
  ExpectWhatValidateFinds("published-adapters.csv", StepClass::kAdapters, "kAdapters");
  ExpectWhatValidateFinds("published-hybrids.csv", StepClass::kHybrids, "kHybrids");
}

// Error and bias as scenarios/STUDIES.md prints them below the name of the table's file; playing
// these rows takes minutes.
std::string RowsOfStudies(const std::string& file, const char* name) {
  std::map<std::pair<std::string, std::string>, Sums> groups;
  const ValidationTable table =
      ReadValidationTable(ReadCsvFile(SourceDir() + "/scenarios/validation/" + file), {});
  for (const MeasuredRow& row : table.rows) {
    const Scenario scenario = ReadScenario(row.document);
    const uint32_t ranks = static_cast<uint32_t>(scenario.jobs.front().placement.size());
    Sums& sums =
        groups[{scenario.cluster->DeviceOf(0).name, TextAt(row.document.value(), "software")}];
    ++sums.rows;
    sums.fewest = std::min(sums.fewest, ranks);
    sums.most = std::max(sums.most, ranks);
  }
  std::string text = ReadInputFile(SourceDir() + "/scenarios/STUDIES.md");
  text = text.substr(text.find("scenarios/validation/" + file));
  std::string rows;
  for (auto& [key, sums] : groups) {
    const std::regex line(
        fmt::format(R"(\| {}, {} \| (\d+) \| ([\d.]+) % \| [\d.]+ % \| ([-+][\d.]+) % \|)",
                    key.first, key.second));
    std::smatch found;
    if (!std::regex_search(text, found, line)) return "no row of " + key.first + " in STUDIES.md";
    EXPECT_EQ(std::stoul(found[1]), sums.rows) << key.first;
    sums.error = std::stod(found[2]) / 100;
    sums.bias = std::stod(found[3]) / 100;
    rows += Row(name, key.first, key.second, "", sums);
  }
  return rows;
}

TEST(ValidatedStepsTest, StagesAndExpertsAreWhatTheStudiesPrint) {
  EXPECT_EQ(RowsOf(StepClass::kStages, "kStages"),
            RowsOfStudies("published-stages.csv", "kStages"));
  EXPECT_EQ(RowsOf(StepClass::kExperts, "kExperts"),
            RowsOfStudies("published-experts.csv", "kExperts"));
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
  EXPECT_EQ(trust_of("mixtral-8x7b-experts", {})->like, "h100, with experts, other software");
  const auto none = trust_of("axonn-unet-4b-frontier", {});
  ASSERT_TRUE(none.has_value());
  EXPECT_EQ(none->rows, 0u);
}

}  // namespace validated_steps_test
}  // namespace rehearse

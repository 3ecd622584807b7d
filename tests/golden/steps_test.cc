// Steps of shipped scenarios at every fidelity, of shipped scenarios with changes, and of random
// ones, beside their golden records.
#include <algorithm>
#include <filesystem>
#include <fstream>
#include <sstream>

#include <fmt/format.h>
#include <gtest/gtest.h>

#include "sim/base/error.h"
#include "sim/base/json_document.h"
#include "tests/golden/record.h"
#include "tests/golden/step_entry.h"
#include "tests/support/places.h"
#include "tests/support/random_program.h"
#include "tests/support/random_scenario.h"

namespace rehearse {
namespace steps_test {

namespace fs = std::filesystem;

std::string EntryOf(const std::string& name, const std::vector<std::string>& changes,
                    const StepEntryOptions& options = {}) {
  try {
    JsonDocument document = JsonDocument::FromFile("scenarios/" + name + ".json");
    for (const std::string& change : changes) document.Set(change);
    Scenario scenario = ReadScenario(document);
    scenario.allow_out_of_memory = true;
    return StepEntry(scenario, options);
  } catch (const Error& error) {
    return fmt::format("refused: {}\n", error.what());
  }
}

std::vector<std::string> NamesIn(const std::string& folder, const std::string& extension) {
  std::vector<std::string> names;
  for (const auto& entry : fs::directory_iterator(fs::path(SourceDir()) / folder)) {
    if (entry.path().extension() == extension) names.push_back(entry.path().stem().string());
  }
  std::sort(names.begin(), names.end());
  return names;
}

std::string NameOf(const ::testing::TestParamInfo<std::string>& info) { return info.param; }

// In the repository's folder, so that messages name files as they are there.
class GoldenStepsTest : public ::testing::Test {
 protected:
  GoldenStepsTest() : before_(fs::current_path()) { fs::current_path(SourceDir()); }
  ~GoldenStepsTest() override { fs::current_path(before_); }

 private:
  fs::path before_;
};

class GoldenShippedStepsTest : public GoldenStepsTest,
                               public ::testing::WithParamInterface<std::string> {};

TEST_P(GoldenShippedStepsTest, ComeToWhatIsRecorded) {
  std::vector<std::string> names = NamesIn("scenarios", ".json");
  for (const std::string& lesson : NamesIn("scenarios/lessons", ".json"))
    if (lesson != "lessons") names.push_back("lessons/" + lesson);
  // Edge by edge, the others take seconds.
  if (GetParam() == "step") {
    std::erase_if(names, [](const std::string& name) {
      return name == "strategy-summa" || name == "strategy-sbp-vgg" ||
             !(name.starts_with("cpu-") || name.starts_with("strategy-") ||
               name.starts_with("lessons/"));
    });
  }
  GoldenRecord record("shipped-" + GetParam());
  for (size_t i = 0; i < names.size(); ++i) {
    if (record.IsLeftOut(i)) continue;
    const bool is_first = GetParam() == "fluid";
    record.Add(names[i], EntryOf(names[i], {"simulator.fidelity=" + GetParam()},
                                 {.brief = !is_first, .loads = is_first}));
  }
  record.End();
}

INSTANTIATE_TEST_SUITE_P(Fidelities, GoldenShippedStepsTest,
                         ::testing::Values("formula", "fluid", "step"), NameOf);

// Each file of tests/golden/steps is a list: a shipped scenario and changes to it on each line.
class GoldenChangedStepsTest : public GoldenStepsTest,
                               public ::testing::WithParamInterface<std::string> {};

TEST_P(GoldenChangedStepsTest, ComeToWhatIsRecorded) {
  GoldenRecord record("steps-" + GetParam());
  std::ifstream list("tests/golden/steps/" + GetParam() + ".txt");
  size_t number = 0;
  for (std::string line; std::getline(list, line);) {
    if (line.empty() || line.starts_with('#') || record.IsLeftOut(number++)) continue;
    std::istringstream words(line);
    std::string name;
    words >> name;
    std::vector<std::string> changes;
    for (std::string change; words >> change;) changes.push_back(change);
    record.Add(line, EntryOf(name, changes, {.loads = GetParam() != "pipelines"}));
  }
  record.End();
}

INSTANTIATE_TEST_SUITE_P(Lists, GoldenChangedStepsTest,
                         ::testing::ValuesIn(NamesIn("tests/golden/steps", ".txt")), NameOf);

// What random scenarios do not have by themselves; some steps refuse some of it, which is recorded
// as well.
constexpr const char* kChanges[] = {
    R"(training.recomputation="selective")",
    R"(training.recomputation="full")",
    R"(training.attention="unfused")",
    R"(training.attention="flash-1")",
    R"(training.optimizer="foreach")",
    R"(training.optimizer="loop")",
    R"(training.kernels="eager")",
    R"(training.kernels="compiled")",
    R"(training.cross_entropy="fused")",
    R"(training.accumulation="fused")",
    R"(training.gradients="bf16")",
    R"(training.products="fp8")",
    R"(training.tuned_kernels=true)",
    R"(training.host_launch="6us")",
    R"(training.metrics=1)",
    R"(training.offloaded_optimizer=true)",
    R"(training.precision="fp32")",
    R"(model.style="llama")",
    R"(model.window=128)",
    R"(model.tied=false)",
    R"(simulator.slowdown={"gemm":0.1,"attention":0.2,"memory":0.3,"communication":0.4})",
    R"(simulator.slowdown={})",
    R"(simulator.algorithm="ring")",
    R"(simulator.algorithm="tree")",
    R"(simulator.protocol="ll")",
    R"(simulator.protocol="simple")",
    R"(simulator.protocol="none")",
    R"(simulator.nccl="2.18")",
    R"(simulator.nvls=false)",
    R"(simulator.perturbation={"seed":7,"compute_jitter":0.03})",
    R"(simulator.perturbation={"stragglers":[{"devices":"*/gpu1","compute_time":"1.5x"}]})",
};

class GoldenRandomStepsTest : public GoldenStepsTest, public ::testing::WithParamInterface<int> {};

TEST_P(GoldenRandomStepsTest, ComeToWhatIsRecorded) {
  constexpr uint64_t kSteps = 20;
  constexpr const char* kFidelities[] = {"formula", "fluid", "step"};
  GoldenRecord record(fmt::format("random-{}", GetParam()));
  for (uint64_t i = 0; i < kSteps; ++i) {
    if (record.IsLeftOut(i)) continue;
    const uint64_t seed = kSteps * static_cast<uint64_t>(GetParam()) + i;
    Random random(seed);
    JsonDocument document = JsonDocument::FromText(DrawScenario(seed).text, "random.json");
    std::string key = fmt::format("{}", seed);
    const auto change = [&](const std::string& assignment) {
      document.Set(assignment);
      key += " " + assignment;
    };
    change(fmt::format("simulator.fidelity=\"{}\"", kFidelities[seed % 3]));
    const bool lists_jobs = document.value().contains("jobs");
    for (uint32_t changes = lists_jobs ? 0 : random.Below(3); changes > 0; --changes)
      change(kChanges[random.Below(static_cast<uint32_t>(std::size(kChanges)))]);
    try {
      Scenario scenario = ReadScenario(document);
      scenario.allow_out_of_memory = true;
      record.Add(key, StepEntry(scenario, {.brief = true, .loads = seed % 2 == 0}));
    } catch (const Error& error) {
      record.Add(key, fmt::format("refused: {}\n", error.what()));
    }
  }
  record.End();
}

INSTANTIATE_TEST_SUITE_P(Parts, GoldenRandomStepsTest, ::testing::Range(0, 8));

}  // namespace steps_test
}  // namespace rehearse

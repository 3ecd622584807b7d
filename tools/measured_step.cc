#include "tools/measured_step.h"

#include <algorithm>
#include <cmath>
#include <variant>

#include <fmt/format.h>

#include "scenarios/playing/rehearsal.h"
#include "scenarios/readers/scenario.h"
#include "sim/base/error.h"
#include "sim/base/input_file.h"
#include "sim/base/json_document.h"
#include "sim/base/units.h"
#include "sim/base/visible_text.h"
#include "sim/report/text_page.h"
#include "tools/foreign/logs/training/training_log.h"

namespace rehearse {
namespace {

// What a step computes, to make one figure of another.
struct StepSize {
  double tokens = 0;
  double samples = 0;
  double ranks = 1;
};

double SecondsOf(double value, StepUnit unit, const StepSize& size) {
  switch (unit) {
    case StepUnit::kSeconds:
      return value;
    case StepUnit::kTokensPerSecondOfADevice:
      return size.tokens / (value * size.ranks);
    case StepUnit::kSamplesPerSecond:
      return size.samples / value;
  }
  CHECK(false);
}

std::string Rate(double value) { return Grouped(static_cast<uint64_t>(std::llround(value))); }

}  // namespace

std::string MeasuredAndPredicted(const std::string& scenario_text, const std::string& log_path) {
  const TrainingLog log = ReadTrainingLog(ReadInputFile(log_path), InputName(log_path));
  const JsonDocument document = JsonDocument::FromText(scenario_text, "the imported scenario");
  Scenario scenario = ReadScenario(document);
  scenario.allow_out_of_memory = true;
  const auto& workload = std::get<Workload>(scenario.jobs.front().work);
  const StepSize size = {static_cast<double>(workload.training.batch) *
                             static_cast<double>(workload.training.sequence),
                         static_cast<double>(workload.training.batch),
                         static_cast<double>(workload.ranks())};
  const double median = SecondsOf(log.Median(), log.unit, size);
  const double one = SecondsOf(log.Share(0.1), log.unit, size);
  const double other = SecondsOf(log.Share(0.9), log.unit, size);
  const double predicted = Rehearse(scenario, {.hash = false, .spans = false}).result.step.value();
  std::string text = fmt::format(
      "Measured and predicted   {} of {}, {}", VisibleText(InputName(log_path)), log.program,
      log.values.size() == 1 ? "one figure" : fmt::format("{} steps", log.values.size()));
  if (log.left_out > 0) text += fmt::format(" without the first {}", log.left_out);
  text += "\n";
  const auto row = [&](const char* what, const std::string& measured, const std::string& ours) {
    text += fmt::format("  {:<22} {:>14}   {:>14}\n", what, measured, ours);
  };
  row("", "measured", "predicted");
  row("a step", Print(Seconds(median)), Print(Seconds(predicted)));
  row("tokens/s", Rate(size.tokens / median), Rate(size.tokens / predicted));
  row("tokens/s of a device", Rate(size.tokens / median / size.ranks),
      Rate(size.tokens / predicted / size.ranks));
  if (log.values.size() > 1) {
    text += fmt::format("  measured steps take {} to {} (10 % to 90 % of them)\n",
                        Print(Seconds(std::min(one, other))), Print(Seconds(std::max(one, other))));
  }
  if (log.unit == StepUnit::kTokensPerSecondOfADevice && log.program != "torchtitan") {
    text += fmt::format(
        "  {} counts tokens without padding: with it, steps are shorter than this\n", log.program);
  }
  const double error = (predicted / median - 1) * 100;
  text += fmt::format("  predicted is {:.1f} % {}\n", std::abs(error), error < 0 ? "less" : "more");
  return text;
}

}  // namespace rehearse

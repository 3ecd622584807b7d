#include "scenarios/searching/point_run.h"

#include <utility>

#include <nlohmann/json.hpp>

#include "scenarios/campaign/campaign.h"
#include "scenarios/campaign/costs.h"
#include "scenarios/playing/prepare.h"
#include "scenarios/readers/run_options.h"
#include "sim/base/error.h"

namespace rehearse {
namespace {

using nlohmann::ordered_json;

constexpr double kKilowattHours = 1000;  // of a megawatt hour

void AddCosts(const Scenario& scenario, const Result& result, RunOutcome outcome, PointRun* run) {
  const auto costs_of = [&](double seconds) {
    outcome.seconds.median = seconds;
    const CostOutcome costs = CostsOf(scenario, result, &outcome);
    CHECK(costs.run.has_value());
    return *costs.run;
  };
  const CostOfRun median = costs_of(run->seconds.median);
  const CostOfRun low = costs_of(run->seconds.low);
  const CostOfRun high = costs_of(run->seconds.high);
  run->money = {median.money, low.money, high.money};
  run->kilowatt_hours = {kKilowattHours * median.megawatt_hours,
                         kKilowattHours * low.megawatt_hours, kKilowattHours * high.megawatt_hours};
}

ordered_json SpreadJson(const RunSpread& spread) {
  return {{"median", spread.median}, {"low", spread.low}, {"high", spread.high}};
}

}  // namespace

PointRun PlayPointRun(const Scenario& scenario, const Result& result, ProgressObserver& observer) {
  Scenario planned = scenario;
  planned.allow_out_of_memory = true;  // whether it fits has been told
  const std::vector<Job> jobs = Prepare(planned);
  const RunOutcome outcome =
      PlayCampaign(scenario, jobs.front().schedule, result, observer).outcome;
  PointRun run;
  run.tokens = outcome.tokens;
  run.token_name = outcome.token_name;
  run.seeds = outcome.seeds;
  run.step = outcome.step;
  run.seconds = outcome.seconds;
  run.effective = outcome.effective;
  if (scenario.costs != nullptr) AddCosts(scenario, result, outcome, &run);
  return run;
}

PointRun PointRunWithoutFailures(const Scenario& scenario, double tokens, const Result& result) {
  const double seconds = tokens / result.tokens_per_second;
  PointRun run;
  run.tokens = tokens;
  run.token_name = result.token_name;
  run.step = result.step;
  run.seconds = {seconds, seconds, seconds};
  run.effective = {1, 1, 1};
  RunOutcome outcome;
  outcome.tokens = tokens;
  outcome.shares.useful = 1;
  if (scenario.costs != nullptr) AddCosts(scenario, result, std::move(outcome), &run);
  return run;
}

ordered_json ToJson(const PointRun& run) {
  ordered_json json = {{"seconds", SpreadJson(run.seconds)},
                       {"effective", SpreadJson(run.effective)}};
  if (run.money) json["money"] = SpreadJson(*run.money);
  if (run.kilowatt_hours) json["kilowatt_hours"] = SpreadJson(*run.kilowatt_hours);
  return json;
}

}  // namespace rehearse

#include "scenarios/campaign/costs.h"

#include <algorithm>
#include <numeric>
#include <utility>
#include <vector>

#include <fmt/format.h>

#include "scenarios/campaign/parts.h"
#include "scenarios/readers/cost_options.h"
#include "sim/base/error.h"
#include "topology/devices/board_power.h"

namespace rehearse {
namespace {

constexpr double kHour = 3600;
constexpr double kKilo = 1000;
constexpr double kMillion = 1e6;
constexpr double kIdleShare = 0.2;  // as of topology/devices/board_power.h
constexpr double kEndsOfACable = 2;

double AmountOf(const std::optional<Money>& money) { return money ? money->amount : 0; }

double PowerOf(const CostOptions& costs, const std::string& device) {
  if (costs.gpu_power) return *costs.gpu_power;
  const std::optional<double> board = BoardPowerOf(device);
  if (!board)
    throw Error(costs.place, fmt::format("the power of {} is not known from a data sheet; expected "
                                         "\"gpu_power\", such as \"700W\"",
                                         device));
  return *board;
}

class CostSheet {
 public:
  CostSheet(const CostOptions& costs, double hours) : costs_(costs), hours_(hours) {}

  void Add(const char* name, double count, const std::optional<Money>& price, double kilowatts) {
    const double written_off = hours_ > 0 ? count * AmountOf(price) / hours_ : 0;
    AddHourly(name, count, written_off, kilowatts);
  }
  void AddHourly(const char* name, double count, double per_hour, double kilowatts) {
    if (!(per_hour > 0) && !(kilowatts > 0)) return;
    outcome.parts.push_back({name, count, per_hour, kilowatts});
    outcome.per_hour += per_hour;
    outcome.kilowatts += kilowatts;
  }
  double ElectricityOf(double kilowatts) const { return kilowatts * AmountOf(costs_.electricity); }

  CostOutcome outcome;

 private:
  const CostOptions& costs_;
  const double hours_;
};

CostOfRun CostOfAll(const CostOutcome& cost, const CostOptions& costs, const RunOutcome& run) {
  const double hours = run.seconds.median / kHour;
  // However long a run takes, it trains the same. Of what comes on top, as much is done again or
  // slowly as on average over all seeds; the rest of it GPUs idle.
  const double training = run.steps > 0 ? static_cast<double>(run.steps) * run.step.value() / kHour
                                        : run.shares.useful * hours;
  const double on_top = std::max(0.0, hours - training);
  const double others = 1 - run.shares.useful;
  const double busy = others > 0 ? (run.shares.lost + run.shares.slow) / others : 0;
  const double energy =
      cost.kilowatts * (training + busy * on_top) + cost.idle_kilowatts * (1 - busy) * on_top;
  CostOfRun whole;
  whole.money = (cost.per_hour - cost.electricity) * hours + energy * AmountOf(costs.electricity);
  whole.megawatt_hours = energy / kKilo;
  whole.carbon_tonnes = energy * costs.carbon / kKilo;
  whole.per_million = whole.money / (run.tokens / kMillion);
  return whole;
}

}  // namespace

CostOutcome CostsOf(const Scenario& scenario, const Result& result, const RunOutcome* run) {
  CHECK(scenario.costs != nullptr);
  const CostOptions& costs = *scenario.costs;
  const Cluster& cluster = *scenario.cluster;
  if (!(result.tokens_per_second > 0))
    throw Error(costs.place, "expected a model that counts tokens or images; this one counts none");
  std::vector<uint32_t> all(cluster.device_count());
  std::iota(all.begin(), all.end(), 0u);
  const RunParts parts = CountParts(cluster, all);
  const double bought = costs.gpus_bought.value_or(cluster.device_count());
  const double used = result.ranks;
  if (bought < used)
    throw Error(Place{costs.place.file, 0, costs.place.pointer + "/gpus_bought"},
                fmt::format("found {:.0f}, expected at least the {:.0f} "
                            "that ranks are on",
                            bought, used));
  const auto count = [&](PartKind kind) {
    return parts.counts[static_cast<size_t>(kind)] * bought / cluster.device_count();
  };

  const double full = PowerOf(costs, cluster.DeviceOf(0).name);
  const double idle = costs.gpu_idle_power.value_or(kIdleShare * full);
  const double busy = 1 - result.breakdown.idle / result.step;
  const double gpus = (used * (idle + (full - idle) * busy) + (bought - used) * idle) / kKilo;
  CostSheet sheet(costs, costs.years ? costs.years->value() / kHour : 0);
  if (costs.gpu_hour) {
    sheet.AddHourly("GPU, rented", bought, bought * costs.gpu_hour->amount, gpus);
  } else {
    sheet.Add("GPU", bought, costs.gpu, gpus);
  }
  const double ends = kEndsOfACable * count(PartKind::kCable);
  const double hosts = count(PartKind::kHost);
  const double switches = count(PartKind::kSwitch);
  sheet.Add("host", hosts, costs.host, hosts * costs.host_power / kKilo);
  sheet.Add("NIC", count(PartKind::kNic), costs.nic, 0);
  sheet.Add("switch", switches, costs.switches, switches * costs.switch_power / kKilo);
  sheet.Add("cable", count(PartKind::kCable), costs.cable, 0);
  sheet.Add("optics", ends, costs.optics, ends * costs.optics_power / kKilo);
  sheet.Add("storage", 1, costs.storage, 0);
  sheet.Add("other", 1, costs.other, 0);

  CostOutcome& outcome = sheet.outcome;
  const double others = outcome.kilowatts - gpus;
  sheet.AddHourly("building", 1, 0, (costs.pue - 1) * outcome.kilowatts);
  outcome.idle_kilowatts = costs.pue * (others + bought * idle / kKilo);
  outcome.electricity = sheet.ElectricityOf(outcome.kilowatts);
  sheet.AddHourly("electricity", 1, outcome.electricity, 0);
  outcome.currency = costs.currency;
  outcome.token_name = result.token_name;
  outcome.gpus_used = result.ranks;
  outcome.gpus_bought = static_cast<uint32_t>(bought);
  const double hours_a_million = kMillion / result.tokens_per_second / kHour;
  outcome.per_million = outcome.per_hour * hours_a_million;
  outcome.kwh_per_million = outcome.kilowatts * hours_a_million;
  outcome.carbon_per_million = outcome.kwh_per_million * costs.carbon;
  if (run != nullptr) outcome.run = CostOfAll(outcome, costs, *run);
  return std::move(sheet.outcome);
}

}  // namespace rehearse

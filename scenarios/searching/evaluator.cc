#include "scenarios/searching/evaluator.h"

#include <algorithm>
#include <cmath>

#include <fmt/format.h>

#include "scenarios/campaign/costs.h"
#include "scenarios/readers/cost_options.h"
#include "scenarios/readers/run_options.h"
#include "scenarios/searching/stopped_observer.h"
#include "sim/base/error.h"
#include "sim/base/interruption.h"
#include "topology/devices/board_power.h"
#include "topology/files/cluster_file.h"

namespace rehearse {
namespace {

constexpr const char* kOutOfMemory = "out of memory";

// Errors that differ only in numbers have the same reason.
std::string ReasonOf(const std::string& error) {
  const std::string words = WithoutPlace(error);
  if (words.rfind(kOutOfMemory, 0) == 0) return kOutOfMemory;
  std::string reason;
  for (size_t i = 0; i < words.size();) {
    const auto is_digit = [&](size_t at) {
      return at < words.size() && words[at] >= '0' && words[at] <= '9';
    };
    // But not the 20 of "gpt-20b".
    const bool begins_word = i == 0 || words[i - 1] == ' ' || words[i - 1] == '(';
    if (!is_digit(i) || !begins_word) {
      reason += words[i++];
      continue;
    }
    while (is_digit(i) || (words[i] == '.' && is_digit(i + 1))) ++i;
    reason += '#';
  }
  return reason;
}

std::string BrokenWords(const std::string& constraint) {
  return "does not meet \"where\": " + constraint;
}

[[noreturn]] void FailBroken(const std::string& constraint) {
  throw Error(BrokenWords(constraint));
}

}  // namespace

std::string WithoutPlace(std::string text) {
  for (;;) {
    const size_t end = text.find(": ");
    if (end == std::string::npos || text.substr(0, end).find(' ') != std::string::npos) return text;
    text.erase(0, end + 2);
  }
}

PointEvaluator::PointEvaluator(const Search& search, const SearchRun& run)
    : search_(search),
      run_(run),
      conditions_(search.space, search.scenario.value()),
      rates_(search.space, search.rates),
      begin_(std::chrono::steady_clock::now()),
      is_over_([this] { return IsOver(); }),
      engine_({.stores = run.stores,
               .allow_out_of_memory = run.allow_out_of_memory,
               .hash = !run.stores.empty(),
               .bounds_memory = run.stores.empty(),
               .is_stopped = is_over_}),
      broken_(search.space.constraints.size()) {
  if (search.formula == FormulaKind::kComposed || search.is_wide)
    composed_ = std::make_unique<ComposedSteps>(search.space, search.scenario, search.is_wide,
                                                search.MostRanks(), &engine_);
  if (search.formula == FormulaKind::kClosedForms) return;
  if (search.formula != FormulaKind::kComposed)
    paper_.emplace(search.space, static_cast<PaperModel>(search.formula), search.scenario,
                   &papers_);
  if (search.space.Size() <= kMostExhaustivePoints)
    numbers_ = std::vector<std::atomic<double>>(static_cast<size_t>(search.space.Size()));
  for (std::atomic<double>& number : numbers_) number.store(kUnknown, std::memory_order_relaxed);
}

bool PointEvaluator::IsOver() const {
  if (run_.is_stopped()) return true;
  if (!search_.seconds) return false;
  const std::chrono::duration<double> past = std::chrono::steady_clock::now() - begin_;
  return past.count() >= *search_.seconds;
}

template <typename Visit>
void PointEvaluator::ForEach(const Visit& visit) {
  auto next = entries_.begin();
  for (size_t index = 0; index < numbers_.size(); ++index) {
    const double number = numbers_[index].load(std::memory_order_relaxed);
    const bool has_entry = next != entries_.end() && search_.space.IndexOf(next->first) == index;
    if (has_entry) {
      if (!std::isnan(number)) next->second.formula = number;
      visit(next->first, next->second);
      ++next;
    } else if (!std::isnan(number)) {
      Entry entry;
      entry.formula = number;
      visit(search_.space.PointAt(index), entry);
    }
  }
  for (; next != entries_.end(); ++next) visit(next->first, next->second);
}

PointEvaluator::Entry PointEvaluator::Known(const SpacePoint& point) {
  const std::lock_guard lock(mutex_);
  const auto known = entries_.find(point);
  return known == entries_.end() ? Entry() : known->second;
}

template <typename Make>
PointEvaluator::Entry PointEvaluator::Add(const SpacePoint& point, const Make& make) {
  Entry found;
  try {
    make(&found);
  } catch (const Stopped&) {
    return found;
  } catch (const Error& error) {
    found.error = error.what();
    found.reason = ReasonOf(found.error);
  }
  const std::lock_guard lock(mutex_);
  Entry& entry = entries_[point];
  if (found.formula) entry.formula = found.formula;
  if (found.simulated) entry.simulated = std::move(found.simulated);
  if (!found.IsOpen()) {
    entry.error = std::move(found.error);
    entry.reason = std::move(found.reason);
  }
  return entry;
}

void PointEvaluator::Note(const SpacePoint& point, double number) {
  if (!numbers_.empty()) {
    numbers_[search_.space.IndexOf(point)].store(number, std::memory_order_relaxed);
    return;
  }
  const std::lock_guard lock(mutex_);
  entries_[point].formula = number;
}

void PointEvaluator::NoteBest(const SpacePoint& point, double value) {
  const Objective& objective = search_.objectives.front();
  const std::lock_guard lock(mutex_);
  if (best_ && objective.CostOf(value) >= objective.CostOf(*best_)) return;
  best_ = value;
  run_.observer->Note(
      fmt::format("best {} ({})", Print(objective, value), search_.space.NameOf(point)));
}

JsonDocument PointEvaluator::DocumentOf(const SpacePoint& point) const {
  JsonDocument document = search_.scenario;
  for (size_t i = 0; i < point.size(); ++i) {
    const SpaceAxis& axis = search_.space.axes[i];
    for (const auto& [path, value] : axis.choices[point[i]].changes)
      document.Set(path + "=" + value.dump(), axis.place);
  }
  if (const auto broken = search_.space.Broken(document.value())) FailBroken(*broken);
  return document;
}

EvaluationKey PointEvaluator::KeyOf(const SpacePoint& point) const {
  if (run_.stores.empty()) return {};
  return {.study = search_.name,
          .point = search_.space.NameOf(point),
          .parameters = search_.space.ChangesOf(point)};
}

bool PointEvaluator::IsBroken(const SpacePoint& point) {
  const size_t condition = conditions_.BrokenBy(point);
  if (condition == PointConditions::kNone) return false;
  ++broken_[condition];
  return true;
}

double PointEvaluator::ClosedForms(const SpacePoint& point, Scenario scenario) {
  scenario.lowering.fidelity = Fidelity::kFormula;
  const Objective& objective = search_.objectives.front();
  const std::string device = scenario.cluster->DeviceOf(0).name;
  const Result result = engine_.Play(scenario);
  if (objective.IsOfRun())
    return ValueOf(objective, PointRunWithoutFailures(scenario, scenario.run->tokens, result));
  return objective.CostOf(ValueOf(objective, result, device, RatesAt(point, scenario, result)));
}

const std::string* PointEvaluator::Kept(const std::string& reason) {
  const std::lock_guard lock(mutex_);
  return &*reasons_.insert(reason).first;
}

void PointEvaluator::NoteExcluded(const std::string* reason) {
  const std::lock_guard lock(mutex_);
  ++not_planned_[reason];
}

// Where it needs far more memory than there is, it is not possible; where a little more, it comes
// after all that fit, as the memory is estimated too.
std::optional<double> PointEvaluator::Composed(const SpacePoint& point) {
  static const std::string kTooMuch = kOutOfMemory;
  constexpr double kFarMore = 1.15;
  ComposedSteps::Found found;
  try {
    found = run_.allow_out_of_memory ? composed_->At(point) : composed_->At(point, kFarMore);
  } catch (const Stopped&) {
    return std::nullopt;
  }
  if (found.excluded == nullptr && !run_.allow_out_of_memory && found.room > 0 &&
      found.memory > kFarMore * found.room)
    found.excluded = &kTooMuch;
  if (found.excluded != nullptr) {
    NoteExcluded(found.excluded);
    return std::nullopt;
  }
  const Objective& objective = search_.objectives.front();
  double cost = found.step;
  if (objective.kind != ObjectiveKind::kTime) {
    Result result;
    result.step = Seconds(found.step);
    result.breakdown.idle = found.idle * Seconds(found.step);
    result.ranks = found.ranks;
    result.tokens_per_second = found.tokens / found.step;
    result.memory.activations = Bytes(found.memory);
    try {
      cost = objective.IsOfRun()
                 ? RunByFormula(point, result)
                 : objective.CostOf(ValueOf(objective, result, *found.device, rates_.At(point)));
    } catch (const Error& error) {  // such as of a power that nobody knows
      NoteExcluded(Kept(WithoutPlace(error.what())));
      return std::nullopt;
    }
  }
  Note(point, cost);
  return cost;
}

// Of the scenario, only what is bought is read: a machine is read once, and all else would be read
// anew for each of very many points.
double PointEvaluator::RunByFormula(const SpacePoint& point, const Result& result) {
  Scenario scenario;
  const Objective& objective = search_.objectives.front();
  if (objective.IsOfRunCosts()) {
    std::call_once(is_priced_, [&] {
      const JsonDocument document = DocumentOf(point);
      priced_.cluster = ReadCluster(document.Root().At("cluster"));
      priced_.costs = std::make_shared<const CostOptions>(ReadCosts(document.Root().At("costs")));
    });
    scenario = priced_;
  }
  return ValueOf(objective, PointRunWithoutFailures(scenario, search_.tokens_of_run, result));
}

// By the scenario's own prices, if it has any: a GPU's hour has its share of all that is paid for,
// and its power that of all that draws any.
Rates PointEvaluator::RatesAt(const SpacePoint& point, const Scenario& scenario,
                              const Result& result) const {
  Rates rates = rates_.At(point);
  // Prices in some choices of an axis only are not those of an objective.
  if (scenario.costs == nullptr || search_.currency_of_costs.empty() ||
      !(result.tokens_per_second > 0))
    return rates;
  const CostOutcome costs = CostsOf(scenario, result, nullptr);
  if (costs.currency != search_.currency_of_costs)
    throw Error(scenario.jobs.front().place,
                fmt::format("/costs: found prices in {}, expected {} as at other points",
                            costs.currency, search_.currency_of_costs));
  rates.price = Price{costs.per_hour / result.ranks, costs.currency};
  const double busy = 1 - result.breakdown.idle / result.step;
  if (busy > 0) rates.watts = 1000 * costs.kilowatts / result.ranks / busy;
  return rates;
}

SimulatedPoint PointEvaluator::SimulatedOf(const SpacePoint& point, const Result& result,
                                           const std::string& device) {
  SimulatedPoint simulated;
  Rates rates = rates_.At(point);
  if (!search_.currency_of_costs.empty() || search_.tokens_of_run > 0) {
    const Scenario scenario = engine_.Read(DocumentOf(point));
    rates = RatesAt(point, scenario, result);
    StoppedObserver observer(is_over_, "a point's weeks are not simulated");
    if (scenario.run != nullptr) simulated.run = PlayPointRun(scenario, result, observer);
  }
  for (const Objective& objective : search_.objectives)
    simulated.values.push_back(objective.IsOfRun() ? ValueOf(objective, simulated.run.value())
                                                   : ValueOf(objective, result, device, rates));
  simulated.devices = result.ranks;
  simulated.tokens_per_second = result.tokens_per_second;
  simulated.token_name = result.token_name;
  if (rates.price)
    simulated.money = ValueOf({.kind = ObjectiveKind::kMoney}, result, device, rates);
  if (rates.watts || BoardPowerOf(device))
    simulated.energy = ValueOf({.kind = ObjectiveKind::kEnergy}, result, device, rates);
  simulated.step = result.step;
  simulated.compute = result.breakdown.compute;
  simulated.idle = result.breakdown.idle;
  for (const AxisUse& axis : result.axes) simulated.exposed.emplace_back(axis.name, axis.exposed);
  simulated.model_flops_utilization = result.model_flops_utilization;
  simulated.memory = result.MemoryNeeded();
  simulated.memory_capacity = result.memory_capacity;
  simulated.typical = result.typical;
  simulated.trust = result.trust;
  for (const LinkSummary& link : result.links) {
    if (link.kind == "memory") continue;
    simulated.busiest_link = link.name;
    simulated.busiest_share = link.utilization;
    break;
  }
  return simulated;
}

// A simulated step must meet the conditions on memory.
void PointEvaluator::CheckMemory(const Result& result) const {
  for (const SpaceConstraint& constraint : search_.space.constraints) {
    if (!constraint.memory) continue;
    if (!constraint.memory->Allows(result.MemoryNeeded(), result.memory_capacity))
      FailBroken(constraint.Text());
  }
}

std::optional<double> PointEvaluator::Formula(const SpacePoint& point) {
  if (IsBroken(point)) return std::nullopt;
  if (search_.formula == FormulaKind::kComposed) return Composed(point);
  if (paper_) {
    const SpaceFormula::Found found = paper_->At(point);
    if (found.seconds) {
      Note(point, *found.seconds);
      return found.seconds;
    }
    if (found.broken != nullptr) {
      Add(point, [&](Entry* /*entry*/) { FailBroken(found.broken->Text()); });
      return std::nullopt;
    }
  }
  Entry known = Known(point);
  if (known.IsOpen() && !known.formula) {
    known = Add(point, [&](Entry* entry) {
      const JsonDocument document = DocumentOf(point);
      const Scenario scenario = engine_.Read(document);
      if (!paper_) {
        entry->formula = ClosedForms(point, scenario);
        return;
      }
      const auto model = static_cast<PaperModel>(search_.formula);
      entry->formula = papers_.Predict(model, scenario).total.value();
      paper_->Learn(point, document, scenario);
    });
  }
  return known.IsOpen() ? known.formula : std::nullopt;
}

std::optional<std::vector<double>> PointEvaluator::Simulate(const SpacePoint& point) {
  if (IsBroken(point)) return std::nullopt;
  // What no framework would run is not simulated either, though it could be.
  if (const std::string* reason = search_.is_wide ? composed_->Excluded(point) : nullptr) {
    NoteExcluded(reason);
    return std::nullopt;
  }
  Entry known = Known(point);
  if (known.IsOpen() && !known.simulated) {
    known = Add(point, [&](Entry* entry) { entry->simulated = Simulated(point); });
  }
  if (!known.IsOpen() || !known.simulated) return std::nullopt;
  return known.simulated->values;
}

SimulatedPoint PointEvaluator::Simulated(const SpacePoint& point) {
  {
    const std::lock_guard lock(mutex_);
    const auto early = early_.find(point);
    if (early != early_.end()) return early->second;
  }
  const Evaluation evaluation = engine_.Evaluate(KeyOf(point), {DocumentOf(point)});
  if (!evaluation.error.empty()) throw Error(evaluation.error);
  CheckMemory(evaluation.results.front());
  SimulatedPoint simulated = SimulatedOf(point, evaluation.results.front(), evaluation.device);
  NoteBest(point, simulated.values.front());
  return simulated;
}

bool PointEvaluator::SimulateEarly(const SpacePoint& point) {
  try {
    SimulatedPoint simulated = Simulated(point);
    const std::lock_guard lock(mutex_);
    early_.emplace(point, std::move(simulated));
    return true;
  } catch (const Stopped&) {
    return false;
  } catch (const Error&) {
    return false;  // which is found out, and counted, if the point is looked at
  }
}

void PointEvaluator::BeginSimulations(size_t most) {
  run_.observer->Begin("simulating", "points", most);
  const std::lock_guard lock(mutex_);
  done_ = 0;
}

void PointEvaluator::EndOne() {
  const std::lock_guard lock(mutex_);
  run_.observer->Done(static_cast<double>(++done_));
}

std::vector<std::pair<double, SpacePoint>> PointEvaluator::ByFormula() {
  std::vector<std::pair<double, SpacePoint>> order;
  ForEach([&](const SpacePoint& point, const Entry& entry) {
    if (entry.error.empty() && entry.formula) order.emplace_back(*entry.formula, point);
  });
  std::sort(order.begin(), order.end());
  if (composed_ != nullptr && !run_.allow_out_of_memory)
    std::stable_partition(order.begin(), order.end(), [&](const auto& one) {
      try {
        return composed_->At(one.second).MayFit();
      } catch (const Stopped&) {  // time is over: what is simulated is all that there is
        return false;
      }
    });
  return order;
}

bool PointEvaluator::IsSimulated(const SpacePoint& point) const {
  const auto entry = entries_.find(point);
  return entry != entries_.end() &&
         (entry->second.simulated.has_value() || !entry->second.error.empty());
}

std::optional<SpacePoint> PointEvaluator::Best() const {
  std::optional<SpacePoint> best;
  double least = std::numeric_limits<double>::infinity();
  for (const auto& [point, entry] : entries_) {
    if (!entry.simulated) continue;
    const double cost = search_.objectives.front().CostOf(entry.simulated->values.front());
    if (cost >= least) continue;
    least = cost;
    best = point;
  }
  return best;
}

FoundPoints PointEvaluator::Found() {
  if (is_over_()) {
    for (auto& [point, simulated] : early_)
      if (Entry& entry = entries_[point]; !entry.simulated) entry.simulated = std::move(simulated);
  }
  FoundPoints found;
  ForEach([&](const SpacePoint& point, Entry& entry) {
    ++found.looked_at;
    if (!entry.error.empty()) {
      ExcludedPoints& excluded = found.excluded[entry.reason];
      if (++excluded.points == 1) {
        const bool may_be_short = entry.reason == kOutOfMemory && run_.stores.empty();
        excluded.example = may_be_short ? engine_.ErrorOf(DocumentOf(point)) : entry.error;
      }
    } else if (entry.formula || entry.simulated) {
      if (entry.simulated) ++found.simulated;
      found.points.push_back({point, entry.formula, std::move(entry.simulated)});
    }
  });
  for (const auto& [reason, points] : not_planned_) {
    ExcludedPoints& excluded = found.excluded[ReasonOf(*reason)];
    if (excluded.points == 0) excluded.example = *reason;
    excluded.points += points;
    found.looked_at += points;
  }
  for (size_t i = 0; i < broken_.size(); ++i) {
    if (broken_[i] == 0) continue;
    const std::string error = BrokenWords(search_.space.constraints[i].Text());
    ExcludedPoints& excluded = found.excluded[ReasonOf(error)];
    if (excluded.points == 0) excluded.example = error;
    excluded.points += broken_[i];
    found.looked_at += broken_[i];
  }
  return found;
}

}  // namespace rehearse

#include "scenarios/searching/search.h"

#include <algorithm>
#include <cmath>
#include <limits>
#include <map>
#include <string>
#include <utility>

#include <fmt/format.h>

#include "scenarios/explaining/explanation.h"
#include "scenarios/readers/micro_batch_size.h"
#include "scenarios/searching/best_simulations.h"
#include "scenarios/searching/early_simulations.h"
#include "scenarios/searching/evaluator.h"
#include "scenarios/searching/search_exchange.h"
#include "scenarios/searching/stopped_observer.h"
#include "sim/base/error.h"
#include "sim/base/interruption.h"

namespace rehearse {
namespace {

// As one number, smaller is better: with two objectives, each start weighs them differently.
double JointCost(const Search& search, const std::vector<double>& values, uint32_t start) {
  const std::vector<Objective>& objectives = search.objectives;
  if (objectives.size() == 1) return objectives.front().CostOf(values.front());
  const double weight =
      search.walk.starts > 1 ? static_cast<double>(start) / (search.walk.starts - 1) : 0.5;
  const auto log_cost = [&](size_t i) {
    const double logarithm = std::log(std::max(values[i], std::numeric_limits<double>::min()));
    return objectives[i].more_is_better ? -logarithm : logarithm;
  };
  return std::exp((1 - weight) * log_cost(0) + weight * log_cost(1));
}

bool IsBetter(const Search& search, const FoundPoint& a, const FoundPoint& b) {
  if (a.simulated.has_value() != b.simulated.has_value()) return a.simulated.has_value();
  if (a.simulated) {
    for (size_t i = 0; i < search.objectives.size(); ++i) {
      const double x = search.objectives[i].CostOf(a.simulated->values[i]);
      const double y = search.objectives[i].CostOf(b.simulated->values[i]);
      if (x != y) return x < y;
    }
  }
  return a.formula && b.formula && *a.formula < *b.formula;
}

// Points come in the order of the first objective: a point is on the front if none before it is as
// good in the second.
void MarkFront(const Search& search, FoundPoints* found) {
  if (search.objectives.size() < 2) return;
  double best = std::numeric_limits<double>::infinity();
  for (FoundPoint& point : found->points) {
    if (!point.simulated) return;
    const double cost = search.objectives[1].CostOf(point.simulated->values[1]);
    point.on_front = cost < best;
    best = std::min(best, cost);
  }
}

[[noreturn]] void FailEmpty(const Search& search, const FoundPoints& found) {
  const Place place{search.scenario.name(), 0, "/search"};
  std::vector<const ExcludedPoints*> reasons;
  for (const auto& [reason, points] : found.excluded) reasons.push_back(&points);
  if (reasons.empty())
    throw Error(place, "no point was looked at; expected more \"evaluations\" or \"seconds\"");
  // What more memory would help comes first, then what there is most of.
  const auto is_of_memory = [](const ExcludedPoints& points) {
    return points.example.find("out of memory") != std::string::npos;
  };
  std::stable_sort(reasons.begin(), reasons.end(), [&](const auto* a, const auto* b) {
    if (is_of_memory(*a) != is_of_memory(*b)) return is_of_memory(*a);
    return a->points > b->points;
  });
  constexpr size_t kMostNamed = 4;
  std::string text;
  size_t named = 0;
  for (size_t i = 0; i < std::min(reasons.size(), kMostNamed); ++i) {
    named += reasons[i]->points;
    text += fmt::format("{}{} of them: {}", i == 0 ? "" : "; ", reasons[i]->points,
                        WithoutPlace(reasons[i]->example));
  }
  if (reasons.size() > kMostNamed)
    text += fmt::format("; {} for {} other reason{}", found.looked_at - named,
                        reasons.size() - kMostNamed, reasons.size() - kMostNamed > 1 ? "s" : "");
  throw Error(place, fmt::format("none of {} points is possible; {}", found.looked_at, text));
}

void CheckPart(const Search& search, const SearchRun& run) {
  if (!run.IsPart()) return;
  const Place place{search.scenario.name(), 0, "/search"};
  if (search.decide == Decision::kFormula)
    throw Error(
        place,
        "ranks and shards share simulations, but with \"decide\": \"formula\" there are none");
  if (search.decide == Decision::kSimulation && search.walk.method != WalkMethod::kExhaustive &&
      search.walk.method != WalkMethod::kRandom)
    throw Error(place, fmt::format("the method {} goes where simulations lead it, which cannot be "
                                   "shared; expected exhaustive or random, or \"decide\": \"both\"",
                                   Name(search.walk.method)));
  if (search.per_axis && run.leases != nullptr)
    throw Error(
        place,
        "with \"per\" there are several searches, one after another, which ranks of one run "
        "do not share; expected --shard, or one process");
}

void Sort(const Search& search, FoundPoints* found) {
  std::stable_sort(
      found->points.begin(), found->points.end(),
      [&](const FoundPoint& a, const FoundPoint& b) { return IsBetter(search, a, b); });
  MarkFront(search, found);
}

// Walks in a wide space by descent go where the formula leads them, which errs more for one stage
// of ZeRO than for another: each has walks of its own.
void WalkWide(const Search& search, const SearchRun& run, const CostOfPoint& cost,
              const PointEvaluator& evaluator, const std::function<bool()>& is_over) {
  size_t axis = 0;
  for (size_t i = 0; i < search.space.axes.size(); ++i)
    for (const auto& [path, value] : search.space.axes[i].choices.front().changes)
      if (path == "strategy.zero") axis = i;
  const auto choices = static_cast<uint32_t>(search.space.axes[axis].choices.size());
  WalkOptions options = search.walk;
  options.evaluations = std::max<uint64_t>(1, options.evaluations / choices);
  for (uint32_t choice = 0; choice < choices; ++choice) {
    const auto is_allowed = [&](const SpacePoint& point) {
      return point[axis] == choice && evaluator.IsPlausible(point);
    };
    Walk(search.space, options, run.threads, cost, is_over, {}, is_allowed, search.from);
  }
}

// Nothing may be possible.
FoundPoints RunWhole(const Search& search, const SearchRun& run) {
  PointEvaluator evaluator(search, run);
  const bool by_formula = search.decide != Decision::kSimulation;
  const double most =
      search.walk.method == WalkMethod::kExhaustive
          ? search.space.Size()
          : std::min(search.space.Size(), static_cast<double>(search.walk.evaluations));
  if (by_formula)
    run.observer->Begin("looking at", "points", static_cast<uint64_t>(most));
  else
    evaluator.BeginSimulations(static_cast<size_t>(most));
  EarlySimulations early(run, &evaluator);
  const CostOfPoint cost = [&](const SpacePoint& point, uint32_t start) -> std::optional<double> {
    std::optional<double> value;
    if (by_formula) {
      value = evaluator.Formula(point);
      if (search.decide == Decision::kBoth) early.Note(point, value);
    } else if (const auto values = evaluator.Simulate(point)) {
      value = JointCost(search, *values, start);
      if (run.all_formulas) evaluator.Formula(point);
    }
    evaluator.EndOne();
    return value;
  };
  const WalkShare share = by_formula ? WalkShare() : WalkShare{run.leases, run.shard};
  const auto is_allowed = [&](const SpacePoint& point) { return evaluator.IsAllowed(point); };
  if (search.is_wide && by_formula && search.walk.method == WalkMethod::kDescent)
    WalkWide(search, run, cost, evaluator, evaluator.is_over());
  else
    Walk(search.space, search.walk, run.threads, cost, evaluator.is_over(), share, is_allowed,
         search.from);
  std::optional<double> worst_kept;
  if (search.decide == Decision::kBoth) worst_kept = SimulateBest(search, run, &evaluator);

  FoundPoints found = evaluator.Found();
  found.worst_kept = worst_kept;
  found.was_stopped = run.is_stopped();
  found.shard = run.shard;
  found.was_too_slow = evaluator.is_over()() && !found.was_stopped;
  Sort(search, &found);
  for (const FoundPoint& point : found.points) {
    if (!point.formula || point.simulated || search.decide != Decision::kBoth) continue;
    found.best_left = std::min(found.best_left.value_or(*point.formula), *point.formula);
  }
  return found;
}

void CheckFound(const Search& search, const SearchRun& run, const FoundPoints& found) {
  if (found.points.empty() && found.was_stopped) throw Stopped("no point was done");
  if (run.IsPart()) return;
  if (found.points.empty()) FailEmpty(search, found);
  if (search.decide == Decision::kFormula || found.simulated > 0) return;
  if (found.was_stopped) throw Stopped("no point was simulated");
  if (!found.was_too_slow) FailEmpty(search, found);
}

// Adds what was found with one choice of the axis, which was the only one of its space.
void AddGroup(size_t axis, uint32_t choice, FoundPoints group, FoundPoints* all) {
  for (FoundPoint& point : group.points) {
    point.point[axis] = choice;
    all->points.push_back(std::move(point));
  }
  for (const auto& [reason, points] : group.excluded) {
    ExcludedPoints& sum = all->excluded[reason];
    if (sum.points == 0) sum.example = points.example;
    sum.points += points.points;
  }
  all->looked_at += group.looked_at;
  all->simulated += group.simulated;
  all->was_stopped = all->was_stopped || group.was_stopped;
  all->was_too_slow = all->was_too_slow || group.was_too_slow;
  all->shard = group.shard;
  all->groups.push_back({.name = {},
                         .best = {},
                         .excluded = std::move(group.excluded),
                         .looked_at = group.looked_at,
                         .simulated = group.simulated});
}

// Each choice of the axis has a search of its own, with as many simulations as any search. What is
// good with one choice often is with the next, too: walks begin there, and the best of each is
// tried with the others.
FoundPoints RunPerChoice(const Search& search, const SearchRun& run) {
  const size_t axis = *search.per_axis;
  FoundPoints found;
  const std::vector<SpaceChoice>& choices = search.space.axes[axis].choices;
  std::vector<SpacePoint> from;
  for (uint32_t choice = 0; choice < choices.size() && !run.is_stopped(); ++choice) {
    Search one = OfChoice(search, choice);
    one.from = std::move(from);
    FoundPoints group = RunWhole(one, run);
    from.clear();
    for (const FoundPoint& point : group.points) from.push_back(point.point);
    AddGroup(axis, choice, std::move(group), &found);
    found.groups.back().name = choices[choice].name;
  }
  TryBestsElsewhere(search, run, &found);
  Sort(search, &found);
  for (size_t i = found.points.size(); i-- > 0;) found.groups[found.points[i].point[axis]].best = i;
  return found;
}

// Says what the best steps waited for. One that cannot be explained has no such line.
void ExplainBests(const Search& search, const SearchRun& run, FoundPoints* found) {
  std::vector<size_t> bests;
  for (const FoundGroup& group : found->groups)
    if (group.best) bests.push_back(*group.best);
  if (found->groups.empty() && !found->points.empty()) bests.push_back(0);
  run.observer->Begin("explaining", "bests", bests.size());
  StoppedObserver observer(run.is_stopped, "the best is not explained");
  size_t done = 0;
  for (const size_t best : bests) {
    std::optional<SimulatedPoint>& simulated = found->points[best].simulated;
    if (!simulated) continue;
    try {
      Scenario scenario = ReadScenario(ScenarioOf(search, found->points[best].point));
      scenario.allow_out_of_memory = true;  // whether it fits has been told
      simulated->waits_for = ToLine(CriticalKinds(scenario, observer));
    } catch (const Stopped&) {
      return;
    } catch (const Error&) {
      simulated->waits_for.clear();
    }
    run.observer->Done(static_cast<double>(++done));
  }
}

}  // namespace

FoundPoints RunSearch(const Search& search, const SearchRun& run) {
  CheckPart(search, run);
  FoundPoints found = search.per_axis ? RunPerChoice(search, run) : RunWhole(search, run);
  CheckFound(search, run, found);
  if (run.explains_bests && !run.IsPart()) ExplainBests(search, run, &found);
  return found;
}

JsonDocument ScenarioOf(const Search& search, const SpacePoint& point) {
  nlohmann::json value = search.scenario.Given();
  value.erase("search");
  // A file that a --set names is looked for from another place than those that the scenario names,
  // so the prices themselves stand here.
  if (value.contains("costs") && value["costs"].is_string()) {
    const JsonReader costs = search.scenario.Root().At("costs");
    JsonDocument prices = costs.Open(costs.Text());
    costs.Change(&prices);
    value["costs"] = prices.value();
  }
  JsonDocument document = JsonDocument::FromText(value.dump(), search.scenario.name());
  for (size_t i = 0; i < point.size(); ++i)
    for (const auto& [path, change] : search.space.axes[i].choices[point[i]].changes)
      document.Set(path + "=" + change.dump(), search.space.axes[i].place);
  ResolveMicroBatchSize(&document);
  value = document.value();
  if (!value.contains("training") || !value["training"].contains("micro_batch_size"))
    return document;
  // It has been counted how many there are, which every reader of scenarios knows.
  value["training"].erase("micro_batch_size");
  return JsonDocument::FromText(value.dump(), search.scenario.name());
}

}  // namespace rehearse

#include "scenarios/searching/search.h"

#include <algorithm>
#include <cmath>
#include <limits>
#include <set>

#include <fmt/format.h>

#include "scenarios/explaining/paper_models.h"
#include "scenarios/readers/search_options.h"
#include "scenarios/searching/evaluator.h"
#include "sim/base/error.h"
#include "sim/base/interruption.h"
#include "sim/base/threads.h"

namespace rehearse {
namespace {

bool IsOfTime(const Objective& objective) {
  return objective.kind == ObjectiveKind::kTime || objective.kind == ObjectiveKind::kTokens ||
         objective.kind == ObjectiveKind::kGpuHours || objective.kind == ObjectiveKind::kMoney;
}

// Whether all points do the same work on the same machine, so that communication decides which is
// the quickest.
bool DiffersInStrategyOnly(const SearchSpace& space) {
  for (const SpaceAxis& axis : space.axes)
    for (const SpaceChoice& choice : axis.choices)
      for (const auto& [path, value] : choice.changes)
        if (path.rfind("strategy.", 0) != 0 && path != "training.micro_batches") return false;
  return true;
}

FormulaKind FormulaOf(const Search& partial, const Scenario& scenario) {
  if (partial.formula != FormulaKind::kAuto) return partial.formula;
  if (partial.objectives.size() > 1 || !IsOfTime(partial.objectives.front()) ||
      !DiffersInStrategyOnly(partial.space))
    return FormulaKind::kClosedForms;
  const std::optional<PaperModel> model = PaperModels::ModelOf(scenario);
  return model ? static_cast<FormulaKind>(*model) : FormulaKind::kClosedForms;
}

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
  const auto most = std::max_element(
      found.excluded.begin(), found.excluded.end(),
      [](const auto& a, const auto& b) { return a.second.points < b.second.points; });
  if (most == found.excluded.end())
    throw Error({search.scenario.name(), 0, "/search"},
                "no point was looked at; expected more \"evaluations\" or \"seconds\"");
  throw Error({search.scenario.name(), 0, "/search"},
              fmt::format("none of {} points is possible; {} of them: {}", found.looked_at,
                          most->second.points, WithoutPlace(most->second.example)));
}

// Whether one axis has another choice, in which at most two numbers differ: a factor has moved from
// one axis of a mesh to another.
bool AreNeighbours(const SearchSpace& space, const SpacePoint& a, const SpacePoint& b) {
  size_t axes = 0;
  size_t values = 0;
  for (size_t i = 0; i < a.size(); ++i) {
    if (a[i] == b[i]) continue;
    ++axes;
    const Changes& one = space.axes[i].choices[a[i]].changes;
    const Changes& other = space.axes[i].choices[b[i]].changes;
    for (size_t k = 0; k < std::min(one.size(), other.size()); ++k)
      values += one[k] == other[k] ? 0 : 1;
  }
  return axes == 1 && values <= 2;
}

// How many of the points were possible.
size_t SimulateAll(const std::vector<SpacePoint>& points, const SearchRun& run,
                   PointEvaluator* evaluator, Leases* leases = nullptr) {
  std::vector<char> is_possible(points.size());
  ForLeased(points.size(), run.threads, leases, [&](size_t i) {
    if (evaluator->is_over()()) return;
    is_possible[i] = evaluator->Simulate(points[i]).has_value() ? 1 : 0;
    if (is_possible[i] != 0) evaluator->EndOne();
  });
  return static_cast<size_t>(std::count(is_possible.begin(), is_possible.end(), 1));
}

// Formulas know no overlap: the neighbours of the best point so far are tried too, until none of
// them is better.
void SimulateNeighbours(const Search& search, const SearchRun& run,
                        const std::vector<std::pair<double, SpacePoint>>& order,
                        PointEvaluator* evaluator) {
  std::optional<SpacePoint> before;
  while (!evaluator->is_over()()) {
    const std::optional<SpacePoint> best = evaluator->Best();
    if (!best || best == before) return;
    before = best;
    std::vector<SpacePoint> neighbours;
    for (const auto& [formula, point] : order)
      if (AreNeighbours(search.space, *best, point) && !evaluator->IsSimulated(point))
        neighbours.push_back(point);
    SimulateAll(neighbours, run, evaluator);
  }
}

// The formula's best points are simulated until enough of them were possible. Returns the formula's
// number of the last one.
std::optional<double> SimulateBest(const Search& search, const SearchRun& run,
                                   PointEvaluator* evaluator) {
  const std::vector<std::pair<double, SpacePoint>> order = evaluator->ByFormula();
  const auto share =
      static_cast<size_t>(std::ceil(search.keep * static_cast<double>(order.size())));
  const size_t wanted = std::min(order.size(), std::max<size_t>(share, search.keep_at_least));
  if (run.IsPart()) {
    std::vector<SpacePoint> own;
    const std::vector<bool> is_own = run.shard.Own(wanted);
    for (size_t i = 0; i < wanted; ++i)
      if (is_own[i]) own.push_back(order[i].second);
    evaluator->BeginSimulations(own.size());
    SimulateAll(own, run, evaluator, run.leases);
    return wanted > 0 ? std::optional(order[wanted - 1].first) : std::nullopt;
  }
  evaluator->BeginSimulations(wanted);
  size_t next = 0;
  size_t possible = 0;
  while (possible < wanted && next < order.size() && !evaluator->is_over()()) {
    std::vector<SpacePoint> points;
    for (; points.size() < wanted - possible && next < order.size(); ++next)
      points.push_back(order[next].second);
    possible += SimulateAll(points, run, evaluator);
  }
  if (search.objectives.size() == 1) SimulateNeighbours(search, run, order, evaluator);
  return next > 0 ? std::optional(order[next - 1].first) : std::nullopt;
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
}

}  // namespace

Search ReadSearch(const JsonDocument& document) {
  Search search;
  const JsonReader root = document.Root();
  search.scenario = document;
  search.name = root.Has("name") ? root.At("name").String() : "search";
  const Scenario scenario = ReadScenario(document);
  if (scenario.lists_jobs) root.At("jobs").Fail("a search is for one step; found \"jobs\"");
  search.space = ReadSpace(document, static_cast<uint32_t>(scenario.jobs.front().placement.size()));

  const JsonDocument nothing = JsonDocument::FromText("{}", document.name());
  const JsonReader reader =
      (root.Has("search") ? root.At("search") : nothing.Root()).As(SearchFields().shape());
  search.objectives = ReadObjectives(reader);
  SearchFields().ReadInto(reader, &search);
  search.formula = FormulaOf(search, scenario);
  if (search.decide == Decision::kFormula && search.objectives.size() > 1)
    reader.At("decide").Fail("a formula has one number; expected one objective");
  if (search.walk.method == WalkMethod::kExhaustive &&
      search.space.Size() > kMostExhaustivePoints) {
    throw Error(reader.place(),
                fmt::format("the space has {:.3g} points, too many for an exhaustive search (at "
                            "most {:.0f}); expected another \"method\", or fewer choices",
                            search.space.Size(), kMostExhaustivePoints));
  }
  return search;
}

FoundPoints RunSearch(const Search& search, const SearchRun& run) {
  CheckPart(search, run);
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
  const CostOfPoint cost = [&](const SpacePoint& point, uint32_t start) -> std::optional<double> {
    std::optional<double> value;
    if (by_formula) {
      value = evaluator.Formula(point);
    } else if (const auto values = evaluator.Simulate(point)) {
      value = JointCost(search, *values, start);
      if (run.all_formulas) evaluator.Formula(point);
    }
    evaluator.EndOne();
    return value;
  };
  const WalkShare share = by_formula ? WalkShare() : WalkShare{run.leases, run.shard};
  Walk(search.space, search.walk, run.threads, cost, evaluator.is_over(), share);
  std::optional<double> worst_kept;
  if (search.decide == Decision::kBoth) worst_kept = SimulateBest(search, run, &evaluator);

  FoundPoints found = evaluator.Found();
  found.worst_kept = worst_kept;
  found.was_stopped = run.is_stopped();
  found.shard = run.shard;
  if (found.points.empty() && found.was_stopped) throw Stopped("no point was done");
  if (found.points.empty() && !run.IsPart()) FailEmpty(search, found);
  if (search.decide != Decision::kFormula && found.simulated == 0 && !run.IsPart()) {
    if (found.was_stopped) throw Stopped("no point was simulated");
    if (!evaluator.is_over()()) FailEmpty(search, found);
  }
  std::stable_sort(
      found.points.begin(), found.points.end(),
      [&](const FoundPoint& a, const FoundPoint& b) { return IsBetter(search, a, b); });
  MarkFront(search, &found);
  for (const FoundPoint& point : found.points) {
    if (!point.formula || point.simulated || search.decide != Decision::kBoth) continue;
    found.best_left = std::min(found.best_left.value_or(*point.formula), *point.formula);
  }
  return found;
}

JsonDocument ScenarioOf(const Search& search, const SpacePoint& point) {
  nlohmann::json value = search.scenario.Given();
  value.erase("search");
  JsonDocument document = JsonDocument::FromText(value.dump(), search.scenario.name());
  for (const auto& [path, change] : search.space.ChangesOf(point))
    document.Set(path + "=" + change.dump());
  return document;
}

}  // namespace rehearse

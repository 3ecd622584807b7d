#include "scenarios/searching/search.h"

#include <algorithm>
#include <chrono>
#include <cmath>
#include <limits>
#include <map>
#include <mutex>
#include <set>
#include <utility>

#include <fmt/format.h>
#include <fmt/ranges.h>

#include "scenarios/explaining/explanation.h"
#include "scenarios/playing/paper_models.h"
#include "scenarios/readers/cost_options.h"
#include "scenarios/readers/micro_batch_size.h"
#include "scenarios/readers/run_options.h"
#include "scenarios/readers/search_options.h"
#include "scenarios/searching/composed_step.h"
#include "scenarios/searching/evaluator.h"
#include "scenarios/searching/point_rates.h"
#include "scenarios/searching/search_exchange.h"
#include "scenarios/searching/wide_space.h"
#include "sim/base/error.h"
#include "sim/base/interruption.h"
#include "sim/base/threads.h"
#include "topology/files/cluster_file.h"

namespace rehearse {
namespace {

bool IsOfTime(const Objective& objective) {
  return objective.kind == ObjectiveKind::kTime || objective.kind == ObjectiveKind::kTokens ||
         objective.kind == ObjectiveKind::kGpuHours || objective.kind == ObjectiveKind::kMoney ||
         objective.IsOfRun();
}

// Whether all points are on the same machine at the same prices, those of one search with "per".
bool IsOfOneMachine(const Search& search) {
  const std::vector<SpaceAxis>& axes = search.space.axes;
  for (size_t i = 0; i < axes.size(); ++i) {
    if (search.per_axis == i) continue;
    for (const SpaceChoice& choice : axes[i].choices)
      for (const auto& [path, value] : choice.changes)
        if (path.rfind("cluster", 0) == 0 || path.rfind("costs", 0) == 0) return false;
  }
  return true;
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

// Spaces of which closed forms would take minutes.
constexpr double kLargeSpace = 1000;

FormulaKind FormulaOf(const Search& partial, const std::optional<Scenario>& scenario,
                      const JsonReader& reader) {
  const auto is_composed = [&] {
    Engine engine({.hash = false});
    // What a scenario's own "costs" come to is counted from its parts.
    const Objective& objective = partial.objectives.front();
    const ObjectiveKind kind = objective.kind;
    const bool has_costs = kind == ObjectiveKind::kMoney || kind == ObjectiveKind::kEnergy;
    const bool has_number = kind != ObjectiveKind::kNumber &&
                            !(has_costs && !partial.currency_of_costs.empty()) &&
                            !(objective.IsOfRunCosts() && !IsOfOneMachine(partial));
    return has_number && ComposedSteps(partial.space, partial.scenario, partial.is_wide,
                                       partial.MostRanks(), &engine)
                             .is_known();
  };
  if (partial.formula == FormulaKind::kComposed && !is_composed())
    reader.At("formula").Fail(
        "\"composed\" is for decoders under the strategy combined, axes that change at most the "
        "cluster beside it, and an objective that it knows; expected \"closed-forms\"");
  if (partial.formula != FormulaKind::kAuto) return partial.formula;
  if ((partial.is_wide || partial.space.Size() > kLargeSpace) && is_composed())
    return FormulaKind::kComposed;
  if (partial.objectives.size() > 1 || !IsOfTime(partial.objectives.front()) ||
      !DiffersInStrategyOnly(partial.space) || !scenario)
    return FormulaKind::kClosedForms;
  const std::optional<PaperModel> model = PaperModels::ModelOf(*scenario);
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

// Simulations tell by how much a formula that is put together errs for each family of
// configurations. The best by numbers that are corrected so come next, a few at a time, until one
// more cannot be expected to be better: then the rest are left out.
class CorrectedOrder {
 public:
  CorrectedOrder(const std::vector<std::pair<double, SpacePoint>>& order, ComposedSteps* composed) {
    double before = -std::numeric_limits<double>::infinity();
    for (const auto& [formula, point] : order) {
      // Those that hardly fit begin where the order falls.
      has_all_that_fit_ = has_all_that_fit_ || formula < before;
      before = formula;
      (has_all_that_fit_ ? tight_ : points_)
          .push_back({formula, composed->At(point).family, &point});
    }
  }

  struct Choice {
    double least = std::numeric_limits<double>::infinity();  // as the luckiest of its family
    const SpacePoint* point = nullptr;                       // null if there is no more
  };
  Choice Next() {
    double least = std::numeric_limits<double>::infinity();
    size_t best = points_.size();
    for (size_t i = 0; i < points_.size(); ++i) {
      if (points_[i].point == nullptr) continue;
      const double corrected = Corrected(points_[i]);
      if (corrected >= least) continue;
      least = corrected;
      best = i;
    }
    if (best == points_.size() && !tight_.empty()) {
      points_ = std::exchange(tight_, {});
      return Next();
    }
    if (best == points_.size()) return {};
    const Point& one = points_[best];
    const auto known = factors_.find(one.family);
    if (known != factors_.end())
      for (const double factor : known->second) least = std::min(least, one.formula * factor);
    return {least, std::exchange(points_[best].point, nullptr)};
  }

  // Numbers are positive, or all negative: then more of an objective is better.
  void Learn(double formula, uint32_t family, double simulated) {
    if (formula != 0) factors_[family].push_back(simulated / formula);
  }

 private:
  struct Point {
    double formula;
    uint32_t family;
    const SpacePoint* point;  // null once it is taken
  };

  // What the point is expected to cost. One or two simulations do not tell how a family errs: then
  // it may err as the luckiest of the others does.
  double Corrected(const Point& point) const {
    constexpr size_t kEnough = 3;
    const auto known = factors_.find(point.family);
    std::optional<double> least;
    if (known != factors_.end()) least = point.formula * Median(known->second);
    if (known != factors_.end() && known->second.size() >= kEnough) return *least;
    for (const auto& [other, factors] : factors_) {
      const double cost = point.formula * Median(factors);
      if (!least || cost < *least) least = cost;
    }
    return least.value_or(point.formula);
  }
  static double Median(std::vector<double> values) {
    std::nth_element(values.begin(), values.begin() + static_cast<ptrdiff_t>(values.size() / 2),
                     values.end());
    return values[values.size() / 2];
  }

  bool has_all_that_fit_ = false;
  std::vector<Point> points_;
  std::vector<Point> tight_;  // for when there is nothing else
  std::map<uint32_t, std::vector<double>> factors_;
};

// Simulates what is expected to be best until `wanted` more were possible and nothing else can be
// expected to be better than the best.
void SimulateCorrected(const Search& search, const SearchRun& run, size_t wanted,
                       PointEvaluator* evaluator) {
  constexpr size_t kTogether = 2;  // whatever the number of threads, so that all find the same
  constexpr double kWorthIt = 1.01;
  constexpr size_t kMostImpossible = 60;
  const Objective& objective = search.objectives.front();
  std::vector<std::pair<double, SpacePoint>> order = evaluator->ByFormula();
  std::map<SpacePoint, double> formulas;
  for (const auto& [formula, point] : order) formulas.emplace(point, formula);
  std::vector<SpacePoint> known;
  std::erase_if(order, [&](const auto& one) {
    if (!evaluator->IsSimulated(one.second)) return false;
    known.push_back(one.second);
    return true;
  });
  CorrectedOrder corrected(order, evaluator->composed());
  std::optional<double> best;
  const auto learn = [&](const SpacePoint& point) {
    const auto values = evaluator->Simulate(point);  // as it is known
    if (!values) return;
    const double cost = objective.CostOf(values->front());
    corrected.Learn(formulas[point], evaluator->composed()->At(point).family, cost);
    if (!best || cost < *best) best = cost;
  };
  for (const SpacePoint& point : known) learn(point);
  size_t possible = 0;
  for (size_t tried = 0; tried < wanted + kMostImpossible || !best;) {
    if (evaluator->is_over()()) return;
    std::vector<SpacePoint> points;
    bool is_worth_it = false;
    while (points.size() < kTogether) {
      const auto [least, point] = corrected.Next();
      if (point == nullptr) break;
      is_worth_it = is_worth_it || !best || least < *best + (kWorthIt - 1) * std::abs(*best);
      points.push_back(*point);
    }
    if (points.empty() || (possible >= wanted && !is_worth_it)) return;
    tried += points.size();
    possible += SimulateAll(points, run, evaluator);
    for (const SpacePoint& point : points) learn(point);
  }
}

// Puts the formula to all points that differ from this one in two axes at most, one of which has
// the most choices: the mesh.
void LookAround(const Search& search, const SearchRun& run, const SpacePoint& from,
                PointEvaluator* evaluator) {
  const std::vector<SpaceAxis>& axes = search.space.axes;
  size_t widest = 0;
  for (size_t i = 1; i < axes.size(); ++i)
    if (axes[i].choices.size() > axes[widest].choices.size()) widest = i;
  std::vector<SpacePoint> points;
  for (uint32_t mesh = 0; mesh < axes[widest].choices.size(); ++mesh) {
    for (size_t other = 0; other < axes.size(); ++other) {
      for (uint32_t choice = 0; choice < axes[other].choices.size(); ++choice) {
        SpacePoint point = from;
        point[widest] = mesh;
        if (other != widest) point[other] = choice;
        if (evaluator->IsPlausible(point)) points.push_back(std::move(point));
      }
    }
  }
  ForLeased(points.size(), run.threads, nullptr, [&](size_t i) {
    if (!evaluator->is_over()()) evaluator->Formula(points[i]);
  });
}

// Descents may have passed by what is better: the best so far shows where else to look.
void SimulateComposed(const Search& search, const SearchRun& run, size_t wanted,
                      PointEvaluator* evaluator) {
  constexpr size_t kRounds = 3;
  constexpr size_t kMore = 2;
  SimulateCorrected(search, run, wanted, evaluator);
  std::optional<SpacePoint> before;
  for (size_t round = 0; round < kRounds && !evaluator->is_over()(); ++round) {
    const std::optional<SpacePoint> best = evaluator->Best();
    if (search.walk.method == WalkMethod::kExhaustive || !best || best == before) return;
    before = best;
    LookAround(search, run, *best, evaluator);
    SimulateCorrected(search, run, kMore, evaluator);
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
  if (evaluator->composed() != nullptr && search.objectives.size() == 1) {
    SimulateComposed(search, run, wanted, evaluator);
    return std::nullopt;
  }
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

// Money is in the currency of the prices.
void SetCurrency(const JsonReader& reader, Search* search) {
  const PointRates rates(search->space, search->rates);
  const std::string& own = search->currency_of_costs;
  if (!own.empty() && !rates.currency().empty())
    reader.Fail("has a \"price\", but the scenario has \"costs\"; expected one of them");
  for (Objective& objective : search->objectives) {
    if (objective.IsOfRun() && !(search->tokens_of_run > 0))
      reader.At("objective")
          .Fail(fmt::format("{} needs the scenario's \"run\", which says how many tokens are "
                            "trained",
                            objective.name));
    if (objective.IsOfRunCosts() && own.empty())
      reader.At("objective").Fail(fmt::format("{} needs the scenario's \"costs\"", objective.name));
    if (objective.kind == ObjectiveKind::kRunMoney) objective.unit = own;
    if (objective.kind != ObjectiveKind::kMoney) continue;
    if (own.empty() && !rates.AllHavePrice())
      reader.At("objective")
          .Fail(
              "money needs \"price\", such as \"2.5USD/h\" of a GPU, here or in each choice of "
              "an axis, or the scenario's \"costs\"");
    objective.unit = (own.empty() ? rates.currency() : own) + " a million";
  }
}

// The axis that changes a path.
size_t AxisOf(const SearchSpace& space, const JsonReader& path) {
  std::set<std::string> changed;
  for (size_t i = 0; i < space.axes.size(); ++i) {
    for (const SpaceChoice& choice : space.axes[i].choices) {
      for (const auto& [name, value] : choice.changes) {
        if (name == path.String()) return i;
        changed.insert(name);
      }
    }
  }
  path.Expected(fmt::format("a path that an axis changes: {}", fmt::join(changed, ", ")));
}

// The scenario as it is written; nothing if that is impossible, as one of the points may be.
std::optional<Scenario> ReadBase(const JsonDocument& document) {
  try {
    return ReadScenario(document);
  } catch (const Error&) {
    const JsonReader root = document.Root();
    if (!root.Has("cluster") || !root.Has("model") || !root.Has("strategy")) throw;
    return std::nullopt;
  }
}

uint32_t RanksOf(const std::optional<Scenario>& scenario, const JsonReader& root) {
  const bool has_gpus = root.Has("search") && root.At("search").Has("gpus");
  if (scenario && !has_gpus) return static_cast<uint32_t>(scenario->jobs.front().placement.size());
  const uint32_t all = ReadCluster(root.At("cluster"))->device_count();
  return has_gpus
             ? std::min(all,
                        static_cast<uint32_t>(root.At("search").At("gpus").Integer(1, 1 << 24)))
             : all;
}

// Throws what is wrong with the scenario as it is written if it is wrong with others too: then no
// axis has to do with it.
void CheckOthers(const JsonDocument& document, const SearchSpace& space) {
  const auto error_of = [](const JsonDocument& one) -> std::string {
    try {
      ReadScenario(one);
    } catch (const Error& error) {
      return error.what();
    }
    return "";
  };
  const std::string error = error_of(document);
  constexpr uint64_t kTried = 16;
  const auto size = static_cast<uint64_t>(std::min(space.Size(), 1e15));
  for (uint64_t i = 0; i < std::min(size, kTried); ++i) {
    JsonDocument other = document;
    for (const auto& [path, value] : space.ChangesOf(space.PointAt(size / kTried * i + i % size)))
      other.Set(path + "=" + value.dump());
    if (error_of(other) != error) return;
  }
  ReadScenario(document);
}

// Where nothing divides the ranks anew, a bound on them would have no effect.
void CheckGpusCount(const JsonReader& root) {
  const nlohmann::json& search = root.At("search").value();
  const bool has_defaults = search.value("default_axes", nlohmann::json(true)) != false;
  if (has_defaults && root.At("strategy").At("kind").String() != "sbp") return;
  root.At("search").At("gpus").Fail(
      "no axis of this search divides the ranks among the strategy's axes; expected axes that "
      "choose as many, or the default ones");
}

// A scenario without a strategy gets one to begin with; where fewer GPUs are wanted than there are,
// each machine has equally many.
JsonDocument Completed(const JsonDocument& written, bool is_wide) {
  JsonDocument document = is_wide ? WithAnyStrategy(written) : written;
  const JsonReader root = written.Root();
  const bool has_gpus = root.Has("search") && root.At("search").Has("gpus");
  if (has_gpus && root.Has("placement"))
    root.At("search").At("gpus").Fail(
        "the scenario has a \"placement\", which says which GPUs are used; expected one of them");
  if (has_gpus && !is_wide) CheckGpusCount(root);
  if (has_gpus) document.Set("placement=\"even\"");
  return document;
}

// Of a wide space, the best few by the formula are enough: simulations around them decide.
// Where it is large, most pieces that its formula is put together from (composed_step.h) are
// of no good configuration, and descents look at few of them.
void SetUsualWalk(const JsonReader& reader, Search* search) {
  constexpr double kMostWholly = 200'000;
  constexpr uint64_t kEvaluations = 3'500;
  constexpr uint32_t kStarts = 2;
  constexpr uint64_t kFewest = 8;
  if (!reader.Has("keep")) search->keep = 0;
  if (!reader.Has("keep_at_least")) search->keep_at_least = kFewest;
  double points = search->space.Size();
  if (search->per_axis)
    points /= static_cast<double>(search->space.axes[*search->per_axis].choices.size());
  if (!reader.Has("method") && points > kMostWholly) search->walk.method = WalkMethod::kDescent;
  if (!reader.Has("evaluations")) search->walk.evaluations = kEvaluations;
  if (!reader.Has("starts")) search->walk.starts = kStarts;
}

// Of a long look at formulas, simulates the best so far after a second, and again now and then, so
// that there is always something to show.
class EarlySimulations {
 public:
  EarlySimulations(const SearchRun& run, PointEvaluator* evaluator)
      : run_(run), evaluator_(*evaluator) {}

  void Note(const SpacePoint& point, std::optional<double> cost) {
    if (!cost || run_.IsPart()) return;
    std::unique_lock lock(mutex_);
    if (!least_ || *cost < *least_) {
      least_ = cost;
      best_ = point;
    }
    const std::chrono::duration<double> past = std::chrono::steady_clock::now() - begin_;
    if (past.count() < next_ || is_busy_ || best_.empty()) return;
    const SpacePoint tried = std::exchange(best_, {});
    is_busy_ = true;
    lock.unlock();
    const bool is_possible = evaluator_.SimulateEarly(tried);
    lock.lock();
    is_busy_ = false;
    if (!is_possible) {
      least_.reset();  // the next one is as good as any
      return;
    }
    const std::chrono::duration<double> now = std::chrono::steady_clock::now() - begin_;
    next_ = std::max(10.0, 3 * now.count());
  }

 private:
  const SearchRun& run_;
  PointEvaluator& evaluator_;
  const std::chrono::steady_clock::time_point begin_ = std::chrono::steady_clock::now();
  std::mutex mutex_;
  double next_ = 1;  // seconds from the beginning
  bool is_busy_ = false;
  std::optional<double> least_;
  SpacePoint best_;  // that has not been simulated; empty if there is none
};

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

class StoppedObserver : public ProgressObserver {
 public:
  explicit StoppedObserver(const std::function<bool()>& is_stopped) : is_stopped_(is_stopped) {}

  void Begin(std::string_view /*what*/, std::string_view /*parts*/, uint64_t /*all*/) override {
    Done(0);
  }
  void Done(double /*parts*/) override {
    if (is_stopped_()) throw Stopped("the best is not explained");
  }

 private:
  const std::function<bool()>& is_stopped_;
};

// Says what the best steps waited for. One that cannot be explained has no such line.
void ExplainBests(const Search& search, const SearchRun& run, FoundPoints* found) {
  std::vector<size_t> bests;
  for (const FoundGroup& group : found->groups)
    if (group.best) bests.push_back(*group.best);
  if (found->groups.empty() && !found->points.empty()) bests.push_back(0);
  run.observer->Begin("explaining", "bests", bests.size());
  StoppedObserver observer(run.is_stopped);
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

Search ReadSearch(const JsonDocument& written) {
  Search search;
  search.is_wide = LeavesStrategyOpen(written.Root());
  const JsonDocument document = Completed(written, search.is_wide);
  const JsonReader root = document.Root();
  search.scenario = document;
  search.name = root.Has("name") ? root.At("name").String() : "search";
  if (root.Has("jobs")) root.At("jobs").Fail("a search is for one step; found \"jobs\"");
  const std::optional<Scenario> scenario = ReadBase(document);
  search.space = ReadSpace(document, RanksOf(scenario, root), search.is_wide ? &written : nullptr);
  if (!scenario) CheckOthers(document, search.space);

  const JsonDocument nothing = JsonDocument::FromText("{}", document.name());
  const JsonReader reader =
      (root.Has("search") ? root.At("search") : nothing.Root()).As(SearchFields().shape());
  search.objectives = ReadObjectives(reader);
  SearchFields().ReadInto(reader, &search);
  search.rates = ReadRates(reader);
  if (root.Has("costs")) search.currency_of_costs = ReadCosts(root.At("costs")).currency;
  if (root.Has("run")) search.tokens_of_run = RunFields().Read(root.At("run")).tokens;
  SetCurrency(reader, &search);
  if (search.per) search.per_axis = AxisOf(search.space, reader.At("per"));
  search.formula = FormulaOf(search, scenario, reader);
  if (search.is_wide) SetUsualWalk(reader, &search);
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

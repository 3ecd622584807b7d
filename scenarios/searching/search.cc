#include "scenarios/searching/search.h"

#include <algorithm>
#include <atomic>
#include <chrono>
#include <cmath>
#include <limits>
#include <mutex>
#include <set>

#include <fmt/format.h>

#include "scenarios/explaining/paper_models.h"
#include "scenarios/readers/search_shapes.h"
#include "scenarios/searching/space_formula.h"
#include "sim/base/error.h"
#include "sim/base/interruption.h"
#include "sim/base/threads.h"

namespace rehearse {
namespace {

constexpr const char* kFormulaNames[] = {"axonn", "axonn-agnostic", "autoddl", "atp",
                                         "closed-forms"};

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

FormulaKind FormulaOf(const JsonReader& search, const Search& partial, const Scenario& scenario) {
  constexpr FormulaKind kKinds[] = {FormulaKind::kAxonn, FormulaKind::kAxonnAgnostic,
                                    FormulaKind::kAtp, FormulaKind::kAutoddl,
                                    FormulaKind::kClosedForms};
  const size_t choice = search.At("formula").Choice();
  if (choice > 0) return kKinds[choice - 1];
  if (partial.objectives.size() > 1 || !IsOfTime(partial.objectives.front()) ||
      !DiffersInStrategyOnly(partial.space))
    return FormulaKind::kClosedForms;
  const std::optional<PaperModel> model = PaperModels::ModelOf(scenario);
  return model ? static_cast<FormulaKind>(*model) : FormulaKind::kClosedForms;
}

// The text of an error without its place.
std::string WithoutPlace(std::string text) {
  for (;;) {
    const size_t end = text.find(": ");
    if (end == std::string::npos || text.substr(0, end).find(' ') != std::string::npos) return text;
    text.erase(0, end + 2);
  }
}

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

// What is known about the points that were looked at.
class Evaluator {
 public:
  Evaluator(const Search& search, const SearchRun& run)
      : search_(search),
        run_(run),
        begin_(std::chrono::steady_clock::now()),
        is_over_([this] { return IsOver(); }),
        engine_({.stores = run.stores,
                 .allow_out_of_memory = run.allow_out_of_memory,
                 .hash = !run.stores.empty(),
                 .bounds_memory = run.stores.empty(),
                 .is_stopped = is_over_}) {
    if (search.formula == FormulaKind::kClosedForms) return;
    paper_.emplace(search.space, static_cast<PaperModel>(search.formula), search.scenario,
                   &papers_);
    if (search.space.Size() <= kMostExhaustivePoints)
      numbers_ = std::vector<std::atomic<double>>(static_cast<size_t>(search.space.Size()));
    for (std::atomic<double>& number : numbers_) number.store(kUnknown, std::memory_order_relaxed);
  }

  const std::function<bool()>& is_over() const { return is_over_; }

  // The formula's number; nothing if the point is impossible.
  std::optional<double> Formula(const SpacePoint& point) {
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
          entry->formula = ClosedForms(scenario);
          return;
        }
        const auto model = static_cast<PaperModel>(search_.formula);
        entry->formula = papers_.Predict(model, scenario).total.value();
        paper_->Learn(point, document, scenario);
      });
    }
    return known.IsOpen() ? known.formula : std::nullopt;
  }

  // By objective.
  std::optional<std::vector<double>> Simulate(const SpacePoint& point) {
    Entry known = Known(point);
    if (known.IsOpen() && !known.simulated) {
      known = Add(point, [&](Entry* entry) {
        const Evaluation evaluation = engine_.Evaluate(KeyOf(point), {DocumentOf(point)});
        if (!evaluation.error.empty()) throw Error(evaluation.error);
        entry->simulated = SimulatedOf(evaluation.results.front(), evaluation.device);
        NoteBest(point, entry->simulated->values.front());
      });
    }
    if (!known.IsOpen() || !known.simulated) return std::nullopt;
    return known.simulated->values;
  }

  void BeginSimulations(size_t most) {
    run_.observer->Begin("simulating", "points", most);
    const std::lock_guard lock(mutex_);
    done_ = 0;
  }
  void EndOne() {
    const std::lock_guard lock(mutex_);
    run_.observer->Done(static_cast<double>(++done_));
  }

  // Possible points with a number from the formula, the best first.
  std::vector<std::pair<double, SpacePoint>> ByFormula() {
    std::vector<std::pair<double, SpacePoint>> order;
    ForEach([&](const SpacePoint& point, const Entry& entry) {
      if (entry.error.empty() && entry.formula) order.emplace_back(*entry.formula, point);
    });
    std::sort(order.begin(), order.end());
    return order;
  }
  bool IsSimulated(const SpacePoint& point) const {
    const auto entry = entries_.find(point);
    return entry != entries_.end() &&
           (entry->second.simulated.has_value() || !entry->second.error.empty());
  }
  // By the first objective; of equal ones, the first point.
  std::optional<SpacePoint> Best() const {
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

  FoundPoints Found() {
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
    return found;
  }

 private:
  static constexpr double kUnknown = std::numeric_limits<double>::quiet_NaN();

  struct Entry {
    std::optional<double> formula;
    std::optional<SimulatedPoint> simulated;
    std::string error;
    std::string reason;

    bool IsOpen() const { return error.empty(); }  // not known to be impossible
  };

  bool IsOver() const {
    if (run_.is_stopped()) return true;
    if (!search_.seconds) return false;
    const std::chrono::duration<double> past = std::chrono::steady_clock::now() - begin_;
    return past.count() >= *search_.seconds;
  }

  // The scenario of a point that meets the constraints.
  JsonDocument DocumentOf(const SpacePoint& point) const {
    JsonDocument document = search_.scenario;
    for (size_t i = 0; i < point.size(); ++i) {
      const SpaceAxis& axis = search_.space.axes[i];
      for (const auto& [path, value] : axis.choices[point[i]].changes)
        document.Set(path + "=" + value.dump(), axis.place);
    }
    if (const auto broken = search_.space.Broken(document.value())) FailBroken(*broken);
    return document;
  }
  [[noreturn]] static void FailBroken(const std::string& constraint) {
    throw Error("does not meet \"where\": " + constraint);
  }

  EvaluationKey KeyOf(const SpacePoint& point) const {
    if (run_.stores.empty()) return {};
    return {.study = search_.name,
            .point = search_.space.NameOf(point),
            .parameters = search_.space.ChangesOf(point)};
  }

  double ClosedForms(Scenario scenario) {
    scenario.lowering.fidelity = Fidelity::kFormula;
    const Objective& objective = search_.objectives.front();
    const std::string device = scenario.cluster->DeviceOf(0).name;
    return objective.CostOf(ValueOf(objective, engine_.Play(scenario), device));
  }

  SimulatedPoint SimulatedOf(const Result& result, const std::string& device) const {
    SimulatedPoint simulated;
    for (const Objective& objective : search_.objectives)
      simulated.values.push_back(ValueOf(objective, result, device));
    simulated.step = result.step;
    simulated.compute = result.breakdown.compute;
    simulated.idle = result.breakdown.idle;
    for (const AxisUse& axis : result.axes) simulated.exposed.emplace_back(axis.name, axis.exposed);
    simulated.model_flops_utilization = result.model_flops_utilization;
    simulated.memory = result.memory.Total();
    for (const LinkSummary& link : result.links) {
      if (link.kind == "memory") continue;
      simulated.busiest_link = link.name;
      simulated.busiest_share = link.utilization;
      break;
    }
    return simulated;
  }

  void Note(const SpacePoint& point, double number) {
    if (!numbers_.empty()) {
      numbers_[search_.space.IndexOf(point)].store(number, std::memory_order_relaxed);
      return;
    }
    const std::lock_guard lock(mutex_);
    entries_[point].formula = number;
  }

  // What is known about each point, in order.
  template <typename Visit>
  void ForEach(const Visit& visit) {
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

  Entry Known(const SpacePoint& point) {
    const std::lock_guard lock(mutex_);
    const auto known = entries_.find(point);
    return known == entries_.end() ? Entry() : known->second;
  }

  // Notes what `make` finds out about the point's scenario, or why it is impossible, and returns
  // all that is then known. Two threads may find the same thing about a point. Nothing is noted if
  // the search is over before that.
  template <typename Make>
  Entry Add(const SpacePoint& point, const Make& make) {
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

  void NoteBest(const SpacePoint& point, double value) {
    const Objective& objective = search_.objectives.front();
    const std::lock_guard lock(mutex_);
    if (best_ && objective.CostOf(value) >= objective.CostOf(*best_)) return;
    best_ = value;
    run_.observer->Note(
        fmt::format("best {} ({})", Print(objective, value), search_.space.NameOf(point)));
  }

  const Search& search_;
  const SearchRun& run_;
  const std::chrono::steady_clock::time_point begin_;
  const std::function<bool()> is_over_;
  Engine engine_;
  PaperModels papers_;
  std::optional<SpaceFormula> paper_;  // nothing if the formula is no paper's
  std::mutex mutex_;
  std::map<SpacePoint, Entry> entries_;
  // By the number of the point, of all points if there are not too many: what the paper's formula
  // says; most of them have no entry.
  std::vector<std::atomic<double>> numbers_;
  std::optional<double> best_;
  size_t done_ = 0;
};

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
                   Evaluator* evaluator, Leases* leases = nullptr) {
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
                        Evaluator* evaluator) {
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
                                   Evaluator* evaluator) {
  const std::vector<std::pair<double, SpacePoint>> order = evaluator->ByFormula();
  const auto share =
      static_cast<size_t>(std::ceil(search.keep * static_cast<double>(order.size())));
  const size_t wanted = std::min(order.size(), std::max(share, search.keep_at_least));
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
                                   kWalkMethodNames[static_cast<size_t>(search.walk.method)]));
}

}  // namespace

const char* Name(FormulaKind formula) { return kFormulaNames[static_cast<size_t>(formula)]; }

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
      (root.Has("search") ? root.At("search") : nothing.Root()).As(SearchShape());
  search.objectives = ReadObjectives(reader);
  search.decide = static_cast<Decision>(reader.At("decide").Choice());
  search.keep = reader.At("keep").Number();
  search.keep_at_least = reader.At("keep_at_least").Whole<size_t>();
  search.walk.method = static_cast<WalkMethod>(reader.At("method").Choice());
  search.walk.evaluations = reader.At("evaluations").Whole<uint64_t>();
  search.walk.starts = reader.At("starts").Whole<uint32_t>();
  search.walk.temperature = reader.At("temperature").Number();
  search.walk.seed = reader.At("seed").Whole<uint64_t>();
  if (reader.Has("seconds")) search.seconds = reader.At("seconds").Number();
  search.formula = FormulaOf(reader, search, scenario);
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
  Evaluator evaluator(search, run);
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
  WalkOptions walk = search.walk;
  if (!by_formula) {
    walk.shard = run.shard;
    walk.leases = run.leases;
  }
  Walk(search.space, walk, run.threads, cost, evaluator.is_over());
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

double MostEfficientCost(const std::vector<double>& costs) {
  CHECK(!costs.empty());
  constexpr size_t kBest = 5;
  const double best = costs.front();
  return std::max(best + 0.1 * std::abs(best), costs[std::min(kBest, costs.size()) - 1]);
}

SearchQuality ComputeQuality(const Search& search, const FoundPoints& found) {
  struct Pair {
    double formula;
    double cost;
    double value;
  };
  std::vector<Pair> pairs;
  for (const FoundPoint& point : found.points) {
    if (!point.formula || !point.simulated) continue;
    const double value = point.simulated->values.front();
    pairs.push_back({*point.formula, search.objectives.front().CostOf(value), value});
  }
  SearchQuality quality;
  quality.points = pairs.size();
  if (pairs.empty()) return quality;
  // Points were sorted by cost, best first.
  const double best = pairs.front().cost;
  std::vector<double> costs;
  for (const Pair& pair : pairs) costs.push_back(pair.cost);
  const double most = MostEfficientCost(costs);
  std::vector<size_t> order(pairs.size());
  for (size_t i = 0; i < order.size(); ++i) order[i] = i;
  std::stable_sort(order.begin(), order.end(),
                   [&](size_t a, size_t b) { return pairs[a].formula < pairs[b].formula; });
  double efficient = 0;
  double precision = 0;
  for (size_t i = 0; i < std::min(kFirstOfFormula, order.size()); ++i) {
    if (pairs[order[i]].cost > most) continue;
    ++efficient;
    precision += efficient / static_cast<double>(i + 1);
  }
  if (efficient > 0) quality.average_precision_at_5 = precision / efficient;
  quality.regret = std::abs(pairs[order.front()].value / pairs.front().value - 1);
  for (size_t i = 0; i < order.size(); ++i) {
    if (pairs[order[i]].cost > best) continue;
    quality.rank_of_best = i + 1;
    break;
  }
  double concordant = 0;
  double ties_of_formula = 0;
  double ties_of_cost = 0;
  double all = 0;
  for (size_t i = 0; i < pairs.size(); ++i) {
    for (size_t j = 0; j < i; ++j) {
      const double f = pairs[i].formula - pairs[j].formula;
      const double c = pairs[i].cost - pairs[j].cost;
      ++all;
      if (f == 0) ++ties_of_formula;
      if (c == 0) ++ties_of_cost;
      if (f != 0 && c != 0) concordant += (f > 0) == (c > 0) ? 1 : -1;
    }
  }
  const double norm = std::sqrt((all - ties_of_formula) * (all - ties_of_cost));
  if (norm > 0) quality.kendall_tau = concordant / norm;
  return quality;
}

}  // namespace rehearse

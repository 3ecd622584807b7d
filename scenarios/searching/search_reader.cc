// What a search's scenario says of it.
#include <algorithm>
#include <set>
#include <string>

#include <fmt/format.h>
#include <fmt/ranges.h>

#include "scenarios/playing/paper_models.h"
#include "scenarios/readers/cost_options.h"
#include "scenarios/readers/run_options.h"
#include "scenarios/readers/search_options.h"
#include "scenarios/searching/composed_step.h"
#include "scenarios/searching/point_rates.h"
#include "scenarios/searching/search.h"
#include "scenarios/searching/wide_space.h"
#include "sim/base/error.h"
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

}  // namespace rehearse

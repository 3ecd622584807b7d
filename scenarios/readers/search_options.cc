#include "scenarios/readers/search_options.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

namespace rehearse {
namespace {

constexpr int64_t kMostEvaluations = 100'000'000;

constexpr ValueName<Decision> kDecisions[] = {{"both", Decision::kBoth},
                                              {"simulation", Decision::kSimulation},
                                              {"formula", Decision::kFormula}};
constexpr ValueName<FormulaKind> kFormulas[] = {{"auto", FormulaKind::kAuto},
                                                {"axonn", FormulaKind::kAxonn},
                                                {"axonn-agnostic", FormulaKind::kAxonnAgnostic},
                                                {"atp", FormulaKind::kAtp},
                                                {"autoddl", FormulaKind::kAutoddl},
                                                {"closed-forms", FormulaKind::kClosedForms},
                                                {"composed", FormulaKind::kComposed}};
constexpr ValueName<WalkMethod> kMethods[] = {{"exhaustive", WalkMethod::kExhaustive},
                                              {"random", WalkMethod::kRandom},
                                              {"descent", WalkMethod::kDescent},
                                              {"metropolis", WalkMethod::kMetropolis},
                                              {"annealing", WalkMethod::kAnnealing}};

Field<SpaceConstraint> Bound(const char* name, std::optional<uint64_t> SpaceConstraint::*member,
                             const char* about, const char* example) {
  return {name, member, AWhole(1, int64_t{1} << 50), Optional("anything"), about, example};
}

void CheckConstraint(const JsonReader& reader, SpaceConstraint* constraint) {
  if (constraint->memory) {
    const bool has_more = !constraint->product.empty() || constraint->equals ||
                          constraint->at_least || constraint->at_most || constraint->divides;
    if (has_more)
      reader.Fail("\"memory\" is a condition of its own; expected no other key with it");
    return;
  }
  if (!reader.Has("product")) reader.Fail("expected \"product\" or \"memory\"");
  if (constraint->product.empty()) reader.At("product").Expected("at least one path");
  if (!constraint->equals && !constraint->at_least && !constraint->at_most && !constraint->divides)
    reader.Fail("expected \"equals\", \"at_least\", \"at_most\" or \"divides\"");
}

}  // namespace

const char* Name(WalkMethod method) { return NameIn(kMethods, method); }
const char* Name(FormulaKind formula) { return NameIn(kFormulas, formula); }

bool SpaceConstraint::Allows(uint64_t value) const {
  return (!equals || value == *equals) && (!at_least || value >= *at_least) &&
         (!at_most || value <= *at_most) && (!divides || (value > 0 && *divides % value == 0));
}

std::string SpaceConstraint::Text() const {
  if (memory) return fmt::format("memory is at most {}", memory->at_most);
  std::string text = fmt::format("{}", fmt::join(product, " * "));
  if (equals) text += fmt::format(" is {}", *equals);
  if (at_least) text += fmt::format(" is at least {}", *at_least);
  if (at_most) text += fmt::format(" is at most {}", *at_most);
  if (divides) text += fmt::format(" divides {}", *divides);
  return text;
}

const Fields<SpaceConstraint>& ConstraintFields() {
  static const Fields<SpaceConstraint> fields(
      "constraint",
      "A condition on a product of numbers in the scenario, or on the memory that a step needs.",
      {{"product", &SpaceConstraint::product, ListOf(AText("path of the scenario")),
        Optional("a condition on memory"), "the factors; a path that is not there counts as 1",
        R"(["strategy.tensor", "training.micro_batches"])"},
       Bound("equals", &SpaceConstraint::equals, "the product is this", "64"),
       Bound("at_least", &SpaceConstraint::at_least, "the product is at least this", "8"),
       Bound("at_most", &SpaceConstraint::at_most, "the product is at most this", "64"),
       Bound("divides", &SpaceConstraint::divides, "the product divides this", "96"),
       {"memory", &SpaceConstraint::memory, ObjectIn<MemoryBoundFields>(),
        Optional("a condition on a product"), "what the fullest rank may need",
        R"({"at_most": "90%"})"}},
      CheckConstraint);
  return fields;
}

JsonShape ChangesShape() { return Named(Anything("value"), "path of the scenario"); }

const Fields<SearchOptions>& SearchFields() {
  using Search = SearchOptions;
  using Walk = WalkOptions;
  static const FieldList<Walk> method = {
      {"method", &Walk::method, OneOf(kMethods), Usual(), "how the space is searched"},
      {"evaluations", &Walk::evaluations, AWhole(1, kMostEvaluations), Usual(),
       "how many points are looked at, at most (not with exhaustive)"}};
  static const FieldList<Walk> starts = {
      {"starts", &Walk::starts, AWhole(1, 1024), Usual(),
       "how many starting points descent, metropolis and annealing have"},
      {"temperature", &Walk::temperature, ANumberAbove(0, 10), Usual(),
       "temperature of metropolis, and annealing's first: a point worse by this fraction is "
       "accepted with probability 1/e"},
      {"seed", &Walk::seed, AWhole(0, int64_t{1} << 53), Usual(),
       "seed of the random numbers (not with exhaustive)"}};
  static const Fields<Search> fields(
      "search", "What `rehearse search` tries, and by what it judges; other commands ignore it.",
      {{"default_axes", &Search::default_axes, TrueFalse(), Usual(),
        "also try all ways to write the ranks as a product of the strategy's axes, and all numbers "
        "of micro-batches, except for paths that \"axes\" already has; without a strategy all that "
        "a "
        "framework lets one choose: layouts, experts' ranks, orders of stages, passes in pairs, "
        "multiprocessors of communication, the dispatcher, ZeRO, micro-batches, recomputation, "
        "products",
        "false"},
       {"axes",
        ListOf(Either({ObjectOf(ValuesShape), ObjectOf(ChoicesShape), ObjectOf(FactorsShape),
                       ObjectOf(SbpPlacementShape)})),
        Default("[]"), "what may vary; every combination is a point",
        R"([{"path": "training.recomputation", "values": ["none", "full"]}])"},
       {"where", &Search::where, ListOf(ObjectIn<ConstraintFields>()), Usual(),
        "conditions that a point must meet",
        R"([{"product": ["strategy.column", "strategy.row"], "at_most": 8}])"},
       {"per", &Search::per, AText("path of the scenario"), Optional("the best of all"),
        "a path that one of the axes changes, such as cluster: the best of each of its choices is "
        "searched for by itself, and they are compared",
        "\"cluster\""},
       {"gpus", &Search::gpus, AWhole(1, int64_t{1} << 24), Optional("all that a cluster has"),
        "use at most so many GPUs of each cluster, equally many of each machine", "1024"},
       {"most_p0", &Search::most_p0, AWhole(1, int64_t{1} << 24), Optional("no limit"),
        "of sbp by numbers: each weight is kept at most so often, as AutoDDL bounds memory", "8"},
       {"objective", Either({AText("objective"), ListOf(AText("objective"))}), Default("\"time\""),
        "time, tokens, gpu-hours, money, energy, memory, run-time, run-money, run-energy (of all "
        "of "
        "a \"run\"), or the dotted path of a number in result.json; with two, the Pareto front",
        R"(["time", "memory"])"},
       {"price", AText("price of a GPU an hour"), Optional("needed for money"),
        "what an hour of a GPU costs; an axis may set search.price and search.power too",
        "\"2.5USD/h\""},
       {"power", AText("power of a GPU"), Optional("the board's, where it is known"),
        "what a GPU draws while it computes or communicates", "\"700W\""},
       {"decide", &Search::decide, OneOf(kDecisions), Usual(),
        "both: the formula chooses what is simulated; simulation: everything is simulated; "
        "formula: nothing is"},
       {"formula", &Search::formula, OneOf(kFormulas), Usual(),
        "a paper's model, or the simulator's closed forms without contention; composed: put "
        "together from a few layers' closed forms, for large spaces; auto: that of the strategy's "
        "paper, composed for a scenario without a strategy and for large spaces, or closed forms"},
       {"keep", &Search::keep, ANumberAbove(0, 1), Usual(),
        "with decide both: the share of the space that is simulated, best by the formula first",
        "0.1"},
       {"keep_at_least", &Search::keep_at_least, AWhole(1, 1'000'000), Usual(),
        "with decide both: simulate at least this many points"},
       Within(&Search::walk, method),
       {"seconds", &Search::seconds, ANumberAbove(0, 1e6, "s"), Optional("no limit"),
        "no point is begun after this time", "60"},
       Within(&Search::walk, starts)});
  return fields;
}

const ObjectShape& ValuesShape() {
  static const ObjectShape shape = {
      "axis of values",
      "Values of one path of the scenario.",
      {{"path", AText("path of the scenario"), Required(), "what changes", "\"strategy.depth\""},
       {"values", ListOf(Anything("value")), Required(), "its values", "[1, 2, 4]"}}};
  return shape;
}

const ObjectShape& ChoicesShape() {
  static const ObjectShape shape = {
      "axis of choices",
      "Sets of changes that are made together.",
      {{"choices", ListOf(ObjectOf(ChoiceShape)), Required(), "the changes, tried in turn",
        R"([{"name": "two", "set": {"strategy.depth": 2}}])"}}};
  return shape;
}

const ObjectShape& ChoiceShape() {
  static const ObjectShape shape = {
      "choice",
      "Changes with a name.",
      {{"name", AText(), Required(), "what the names of points call it", "\"two\""},
       {"set", ChangesShape(), Required(), "the changes", R"({"training.batch": 512})"}}};
  return shape;
}

const ObjectShape& FactorsShape() {
  static const ObjectShape shape = {
      "axis of factors",
      "All ways to write a number as a product, in order.",
      {{"factors", ListOf(AText("path of the scenario")), Required(), "which paths are the factors",
        R"(["strategy.tensor", "strategy.shard"])"},
       {"of", AWhole(1, int64_t{1} << 24), Optional("the ranks: devices, or the placement's"),
        "the product", "64"}}};
  return shape;
}

const ObjectShape& SbpPlacementShape() {
  static const ObjectShape shape = {"axis of placements",
                                    "All (p0, p1, p2) of a product under the strategy sbp by "
                                    "numbers, for machines and for ranks of a machine.",
                                    {{"sbp_product", AText("weight's name, or \"default\""),
                                      Required(), "which product", "\"qkv\""}}};
  return shape;
}

}  // namespace rehearse

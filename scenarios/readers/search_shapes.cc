#include "scenarios/readers/search_shapes.h"

namespace rehearse {
namespace {

constexpr int64_t kMostEvaluations = 100'000'000;

}  // namespace

JsonShape ChangesShape() { return Named(Anything("value"), "path of the scenario"); }

const ObjectShape& SearchShape() {
  static const ObjectShape shape = {
      "search",
      "What `rehearse search` tries, and by what it judges; other commands ignore it.",
      {{"default_axes", TrueFalse(), Default("true"),
        "also try all ways to write the ranks as a product of the strategy's axes, and all numbers "
        "of micro-batches, except for paths that \"axes\" already has",
        "false"},
       {"axes",
        ListOf(Either({ObjectOf(ValuesShape), ObjectOf(ChoicesShape), ObjectOf(FactorsShape),
                       ObjectOf(SbpPlacementShape)})),
        Default("[]"), "what may vary; every combination is a point",
        R"([{"path": "training.recomputation", "values": ["none", "full"]}])"},
       {"where", ListOf(ObjectOf(ConstraintShape)), Default("[]"),
        "conditions that a point must meet",
        R"([{"product": ["strategy.column", "strategy.row"], "at_most": 8}])"},
       {"most_p0", AWhole(1, int64_t{1} << 24), Optional("no limit"),
        "of sbp by numbers: each weight is kept at most so often, as AutoDDL bounds memory", "8"},
       {"objective", Either({AText("objective"), ListOf(AText("objective"))}), Default("\"time\""),
        "time, tokens, gpu-hours, money, energy, memory, or the dotted path of a number in "
        "result.json; with two, the Pareto front",
        R"(["time", "memory"])"},
       {"price", AText("price of a GPU an hour"), Optional("needed for money"),
        "what an hour of a GPU costs", "\"2.5USD/h\""},
       {"power", AText("power of a GPU"), Optional("the board's, where it is known"),
        "what a GPU draws while it computes or communicates", "\"700W\""},
       {"decide", OneOf({"both", "simulation", "formula"}), Default("\"both\""),
        "both: the formula chooses what is simulated; simulation: everything is simulated; "
        "formula: nothing is"},
       {"formula", OneOf({"auto", "axonn", "axonn-agnostic", "atp", "autoddl", "closed-forms"}),
        Default("\"auto\""),
        "a paper's model, or the simulator's closed forms without contention; auto: that of the "
        "strategy's paper"},
       {"keep", ANumberAbove(0, 1), Default("0.25"),
        "with decide both: the share of the space that is simulated, best by the formula first",
        "0.1"},
       {"keep_at_least", AWhole(1, 1'000'000), Default("20"),
        "with decide both: simulate at least this many points"},
       {"method", OneOf({"exhaustive", "random", "descent", "metropolis", "annealing"}),
        Default("\"exhaustive\""), "how the space is searched"},
       {"evaluations", AWhole(1, kMostEvaluations), Default("2000"),
        "how many points are looked at, at most (not with exhaustive)"},
       {"seconds", ANumberAbove(0, 1e6, "s"), Optional("no limit"),
        "no point is begun after this time", "60"},
       {"starts", AWhole(1, 1024), Default("8"),
        "how many starting points descent, metropolis and annealing have"},
       {"temperature", ANumberAbove(0, 10), Default("0.05"),
        "temperature of metropolis, and annealing's first: a point worse by this fraction is "
        "accepted with probability 1/e"},
       {"seed", AWhole(0, int64_t{1} << 53), Default("1"),
        "seed of the random numbers (not with exhaustive)"}}};
  return shape;
}

const ObjectShape& ConstraintShape() {
  static const ObjectShape shape = {
      "constraint",
      "A condition on a product of numbers in the scenario.",
      {{"product", ListOf(AText("path of the scenario")), Required(),
        "the factors; a path that is not there counts as 1",
        R"(["strategy.tensor", "training.micro_batches"])"},
       {"equals", AWhole(1, int64_t{1} << 50), Optional("anything"), "the product is this", "64"},
       {"at_least", AWhole(1, int64_t{1} << 50), Optional("anything"),
        "the product is at least this", "8"},
       {"at_most", AWhole(1, int64_t{1} << 50), Optional("anything"), "the product is at most this",
        "64"},
       {"divides", AWhole(1, int64_t{1} << 50), Optional("anything"), "the product divides this",
        "96"}}};
  return shape;
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

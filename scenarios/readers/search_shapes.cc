#include "scenarios/readers/search_shapes.h"

namespace rehearse {
namespace {

constexpr int64_t kMostEvaluations = 100'000'000;

}  // namespace

JsonShape ChangesShape() { return Named(Anything("value"), "path of the scenario"); }

const ObjectShape& SearchShape() {
  static const ObjectShape shape = {
      "search",
      "What `rehearse search` tries and what it wants; other commands leave it alone.",
      {{"default_axes", TrueFalse(), Default("true"),
        "ways to write the ranks as a product of the strategy's axes, times micro-batches, beside "
        "\"axes\" but for paths that these have",
        "false"},
       {"axes",
        ListOf(Either({ObjectOf(ValuesShape), ObjectOf(ChoicesShape), ObjectOf(FactorsShape),
                       ObjectOf(SbpPlacementShape)})),
        Default("[]"), "what may differ, each with all others",
        R"([{"path": "training.recomputation", "values": ["none", "full"]}])"},
       {"where", ListOf(ObjectOf(ConstraintShape)), Default("[]"), "what must hold",
        R"([{"product": ["strategy.column", "strategy.row"], "at_most": 8}])"},
       {"most_p0", AWhole(1, int64_t{1} << 24), Optional("no limit"),
        "of sbp by numbers: each weight is kept at most so often, as AutoDDL bounds memory", "8"},
       {"objective", Either({AText("objective"), ListOf(AText("objective"))}), Default("\"time\""),
        "time, tokens, gpu-hours, money, energy, memory, or a number of result.json by its dotted "
        "path; of two, the Pareto front",
        R"(["time", "memory"])"},
       {"price", AText("price of a GPU an hour"), Optional("needed for money"),
        "what an hour of a GPU costs", "\"2.5USD/h\""},
       {"power", AText("power of a GPU"), Optional("the board's, where it is known"),
        "of a GPU while it computes or communicates", "\"700W\""},
       {"decide", OneOf({"both", "simulation", "formula"}), Default("\"both\""),
        "the formula chooses what is simulated; all is simulated; nothing is"},
       {"formula", OneOf({"auto", "axonn", "axonn-agnostic", "atp", "autoddl", "closed-forms"}),
        Default("\"auto\""),
        "a paper's, or the simulator's without contention; auto: the paper's whose strategy it is"},
       {"keep", ANumberAbove(0, 1), Default("0.25"),
        "with both: the share of the space that is simulated, in the order of the formula", "0.1"},
       {"keep_at_least", AWhole(1, 1'000'000), Default("20"), "... but so many where there are"},
       {"method", OneOf({"exhaustive", "random", "descent", "metropolis", "annealing"}),
        Default("\"exhaustive\""), "how the space is walked"},
       {"evaluations", AWhole(1, kMostEvaluations), Default("2000"),
        "points that are looked at, at most, by methods that are not exhaustive"},
       {"seconds", ANumberAbove(0, 1e6, "s"), Optional("no limit"),
        "no point is begun after so long", "60"},
       {"starts", AWhole(1, 1024), Default("8"), "of descent, metropolis and annealing"},
       {"temperature", ANumberAbove(0, 10), Default("0.05"),
        "of metropolis, and annealing's first: how much worse, relatively, is accepted in one of "
        "e cases"},
       {"seed", AWhole(0, int64_t{1} << 53), Default("1"), "of all methods but exhaustive"}}};
  return shape;
}

const ObjectShape& ConstraintShape() {
  static const ObjectShape shape = {
      "constraint",
      "What a product of numbers of the scenario may be.",
      {{"product", ListOf(AText("path of the scenario")), Required(),
        "the factors; a path that is not there counts as 1",
        R"(["strategy.tensor", "training.micro_batches"])"},
       {"equals", AWhole(1, int64_t{1} << 50), Optional("anything"), "it is this", "64"},
       {"at_least", AWhole(1, int64_t{1} << 50), Optional("anything"), "it is no less", "8"},
       {"at_most", AWhole(1, int64_t{1} << 50), Optional("anything"), "it is no more", "64"},
       {"divides", AWhole(1, int64_t{1} << 50), Optional("anything"), "this is a multiple of it",
        "96"}}};
  return shape;
}

const ObjectShape& ValuesShape() {
  static const ObjectShape shape = {
      "axis of values",
      "Values of one path of the scenario.",
      {{"path", AText("path of the scenario"), Required(), "what changes", "\"strategy.depth\""},
       {"values", ListOf(Anything("value")), Required(), "what to", "[1, 2, 4]"}}};
  return shape;
}

const ObjectShape& ChoicesShape() {
  static const ObjectShape shape = {
      "axis of choices",
      "Several changes at a time.",
      {{"choices", ListOf(ObjectOf(ChoiceShape)), Required(), "one after the other",
        R"([{"name": "two", "set": {"strategy.depth": 2}}])"}}};
  return shape;
}

const ObjectShape& ChoiceShape() {
  static const ObjectShape shape = {
      "choice",
      "Changes with a name.",
      {{"name", AText(), Required(), "in the names of points", "\"two\""},
       {"set", ChangesShape(), Required(), "its changes", R"({"training.batch": 512})"}}};
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
  static const ObjectShape shape = {
      "axis of placements",
      "All (p0, p1, p2) of a product under the strategy sbp by numbers, machines and ranks apart.",
      {{"sbp_product", AText("weight's name, or \"default\""), Required(), "which", "\"qkv\""}}};
  return shape;
}

}  // namespace rehearse

#include "sim/report/result_shape.h"

#include <limits>
#include <string>
#include <utility>

namespace rehearse {
namespace {

constexpr double kMost = std::numeric_limits<double>::max();

JsonKey Written(const char* name, JsonShape shape, const char* about, const char* example = "") {
  return {name, std::move(shape), Required(), about, example};
}

JsonKey Sometimes(const char* name, JsonShape shape, const char* without, const char* about) {
  return {name, std::move(shape), Optional(without), about};
}

JsonKey TimeKey(const char* name, const char* about) {
  return Written(name, ANumber(0, kMost, "s"), about, "0.7");
}
JsonKey BytesKey(const char* name, const char* about) {
  return Written(name, ANumber(0, kMost, "B"), about, "1048576");
}
JsonKey ShareKey(const char* name, const char* about) {
  return Written(name, ANumber(0, kMost), about, "0.42");
}
JsonKey CountKey(const char* name, const char* about) {
  return Written(name, ANumber(0, kMost), about, "16");
}
JsonKey NameKey(const char* name, const char* about) {
  return Written(name, AText(), about, "\"data\"");
}

const ObjectShape& BreakdownShape() {
  static const ObjectShape shape = {
      "breakdown",
      "Where the time goes, mean over ranks; the parts sum to the step.",
      {TimeKey("compute_seconds", "any kernel runs"),
       TimeKey("exposed_communication_seconds", "only transfers are active"),
       TimeKey("idle_seconds", "the rank waits for others")}};
  return shape;
}

const ObjectShape& AxisUseShape() {
  static const ObjectShape shape = {
      "axis",
      "What one communicator does, mean over its ranks.",
      {CountKey("operations", "collectives and messages"),
       BytesKey("bytes", "as nccl-tests counts sizes"), TimeKey("seconds", "active"),
       TimeKey("exposed_seconds", "of these, what no kernel hides")}};
  return shape;
}

const ObjectShape& RoleUseShape() {
  static const ObjectShape shape = {
      "role",
      "Where the time of one role's ranks goes, mean over them: a stage of a pipeline.",
      {NameKey("name", "of the role"), CountKey("ranks", "that play it"),
       TimeKey("compute_seconds", "any kernel runs"),
       TimeKey("exposed_communication_seconds", "only transfers are active"),
       TimeKey("idle_seconds", "the rank waits for others: a pipeline's bubble")}};
  return shape;
}

const ObjectShape& MemoryShape() {
  static const ObjectShape shape = {
      "memory",
      "Memory of the fullest rank.",
      {BytesKey("parameters", "weights"), BytesKey("gradients", "their gradients"),
       BytesKey("optimizer", "its state"), BytesKey("activations", "kept for the backward pass"),
       BytesKey("buffers", "of collectives and kernels"),
       Sometimes("capacity", ANumber(0, kMost, "B"), "not known", "of its device"),
       Sometimes("reserve", ANumber(0, kMost, "B"), "not known",
                 "about what the driver, NCCL and cuBLAS take besides"),
       Sometimes("rank", ANumber(0, kMost), "capacity is not known", "which rank it is")}};
  return shape;
}

const ObjectShape& LinkUseShape() {
  static const ObjectShape shape = {
      "busy link",
      "One of the links that carried most for their capacity.",
      {NameKey("name", "from vertex to vertex"), NameKey("kind", "which technology"),
       BytesKey("bytes", "carried"),
       Written("capacity_bytes_per_second", ANumber(0, kMost, "B/s"), "after its efficiency",
               "2.5e10"),
       ShareKey("utilization", "of its capacity over the step"),
       CountKey("count", "links like it")}};
  return shape;
}

const ObjectShape& ChosenShape() {
  static const ObjectShape shape = {
      "chosen collective",
      "What was chosen if the scenario says auto.",
      {NameKey("axis", "communicator"), NameKey("kind", "of collective"),
       BytesKey("bytes", "of it"), NameKey("algorithm", "chosen"), NameKey("protocol", "chosen"),
       CountKey("channels", "chosen")}};
  return shape;
}

const ObjectShape& SimulatorUseShape() {
  static const ObjectShape shape = {
      "simulator's work",
      "What the simulation itself cost.",
      {TimeKey("wall_seconds", "of simulating"), CountKey("events", "played"),
       CountKey("transfers", "played"), CountKey("classes", "of ranks that behave alike"),
       BytesKey("peak_rss_bytes", "memory of the program")}};
  return shape;
}

const ObjectShape& SeededStepShape() {
  static const ObjectShape shape = {
      "step of a seed",
      "What the step takes with one seed.",
      {CountKey("seed", "of the hash, or of the draw"), TimeKey("seconds", "the step")}};
  return shape;
}

const ObjectShape& RoutesShape() {
  static const ObjectShape shape = {
      "routes",
      "How much depends on a hash.",
      {Written("routing", AText(), "how the fabric chooses", "\"ecmp with 1 queue pair\""),
       CountKey("seed", "whose step this is: the median's"),
       Written("steps", ListOf(ObjectOf(SeededStepShape)), "of each seed, the quickest first",
               R"([{"seed": 0, "seconds": 0.7}])"),
       TimeKey("sprayed_step_seconds", "if traffic were spread over all equal routes"),
       Sometimes("worst_link", AText(), "no cable carries anything",
                 "the cable with the most to carry"),
       Sometimes("worst_link_share", ANumber(0, kMost), "no cable carries anything",
                 "times the mean of its bundle")}};
  return shape;
}

const ObjectShape& ExpertSpreadShape() {
  static const ObjectShape shape = {
      "experts",
      "How much depends on which experts are busy.",
      {Written("imbalance", ANumber(1, kMost), "of the busiest, over an equal share"),
       Written("steps", ListOf(ObjectOf(SeededStepShape)),
               "of each draw, the quickest first; the result is that of seed 1",
               R"([{"seed": 1, "seconds": 0.7}])"),
       TimeKey("even_step_seconds", "if all experts had as much to do")}};
  return shape;
}

const ObjectShape& TypicalShape() {
  static const ObjectShape shape = {
      "typical step",
      "What a step takes in practice: nominally equal devices differ, and it waits for the "
      "slowest.",
      {TimeKey("seconds", "in the median cluster"), TimeKey("low_seconds", "10 % are quicker"),
       TimeKey("high_seconds", "10 % are slower"),
       Written("slowest_device", ANumber(0, kMost), "times the median device's time", "1.05")}};
  return shape;
}

const ObjectShape& TrustShape() {
  static const char* const kNone = "no published step is like it";
  static const ObjectShape shape = {
      "trust",
      "How near predictions of steps like this have been to published ones (rehearse validate).",
      {CountKey("rows", "published steps like it"),
       Sometimes("like", AText(), kNone, "what they have in common with this step"),
       Sometimes("fewest_devices", ANumber(0, kMost), kNone, "that they ran on"),
       Sometimes("most_devices", ANumber(0, kMost), kNone, "that they ran on"),
       Sometimes("mean_error", ANumber(0, kMost), kNone, "of the steps, without signs"),
       Sometimes("bias", ANumber(-1, kMost), kNone, "below 0 if predictions are too quick")}};
  return shape;
}

const ObjectShape& JobResultShape() {
  static const ObjectShape shape = {
      "job's result",
      "What one job takes beside the others, and alone.",
      {NameKey("name", "of the job"),
       Written("placement",
               ListOf(Tuple({AWhole(0, std::numeric_limits<uint32_t>::max()),
                             AWhole(0, std::numeric_limits<uint32_t>::max())})),
               "first and last of each run of devices", "[[0, 7]]"),
       TimeKey("start_seconds", "when it may begin"), CountKey("repeat", "steps"),
       Written("steps_seconds", ListOf(ANumber(0, kMost, "s")), "of each step", "[0.7]"),
       TimeKey("alone_step_seconds", "a step, alone on the cluster"),
       ShareKey("slow_down", "its mean step against that"),
       Written("result", Anything("a result"), "as of one step, without links and simulator",
               "{}")}};
  return shape;
}

const ObjectShape& ChangeShape() {
  static const ObjectShape shape = {
      "change",
      "What --set and such changed in a file.",
      {NameKey("file", "which"),
       Sometimes("line", AWhole(1, std::numeric_limits<int>::max()), "there was no such line",
                 "of the value that was there"),
       Written("path", AText(), "of the value", "\"node.nics\""),
       Sometimes("was", Anything(), "there was none", "the value before; long ones shortened"),
       Written("is", Anything(), "the value now; long ones shortened", "8")}};
  return shape;
}

const ObjectShape& SwitchUseShape() {
  static const ObjectShape shape = {
      "switch",
      "A switch that a software stack sets, with the value that counts.",
      {Written("path", AText(), "in the scenario", "\"training.kernels\""),
       Written("value", Anything(), "the one that counts", "\"eager\""),
       Sometimes("stack", Anything(), "the same", "what the stack sets")}};
  return shape;
}

const ObjectShape& SoftwareUseShape() {
  static const ObjectShape shape = {
      "software",
      "A software stack and its switches.",
      {NameKey("name", "of the stack"),
       Written("switches", ListOf(ObjectOf(SwitchUseShape)), "those that apply")}};
  return shape;
}

JsonKey SoftwareKey() {
  return Sometimes("software", ObjectOf(SoftwareUseShape), "the scenario names none",
                   "what it sets");
}
JsonKey ChangesKey() {
  return Sometimes("changes", ListOf(ObjectOf(ChangeShape)), "nothing was changed",
                   "in the scenario and the files that it names");
}
JsonKey LinksKey() { return Written("links", ListOf(ObjectOf(LinkUseShape)), "the busiest"); }
JsonKey SimulatorKey() {
  return Written("simulator", ObjectOf(SimulatorUseShape), "what simulating took");
}
JsonKey RoutesKey() {
  return Sometimes("routes", ObjectOf(RoutesShape), "no seed decides", "what depends on a hash");
}
JsonKey ExpertsKey() {
  return Sometimes("experts", ObjectOf(ExpertSpreadShape), "no seed decides which are busy",
                   "what depends on which experts are busy");
}
JsonKey TypicalKey() {
  return Sometimes(
      "typical", ObjectOf(TypicalShape), "it is not known how far devices differ",
      "what it takes in practice, where it waits for the slowest of nominally equal devices");
}
JsonKey HashKey() {
  return Written("timeline_hash", AText(), "equal if the step is equal", "\"ace04d9f03d2cebe\"");
}

const ObjectShape& CostModelShape() {
  static const ObjectShape shape = {
      "cost model",
      "What a paper's own model says about a step's communication, without overlap and contention.",
      {Written("model", AText(), "whose", "\"axonn\""),
       TimeKey("communication_seconds", "sum of the terms"),
       Written("terms", Named(ANumber(0, 1e300, "s"), "term"), "one by one"),
       Written("source", AText(), "equations and bandwidths", "\"AxoNN, eq. 9\"")}};
  return shape;
}

JsonKey GivenKey() {
  return Sometimes("given", Anything("a scenario"), "not recorded",
                   "what was simulated, as it was read, --set included");
}

}  // namespace

const ObjectShape& ResultShape() {
  static const ObjectShape shape = {
      "result",
      "What one step takes, and where its time goes.",
      {SchemaVersion(kResultSchema),
       NameKey("scenario", "its name"),
       Written("fidelity", AText(), "formula, fluid or step", "\"fluid\""),
       Sometimes("left_out", AText(), "measured", "what the fidelity ignores"),
       CountKey("ranks", "of the step"),
       TimeKey("step_seconds", "one step of the whole batch"),
       Written("breakdown", ObjectOf(BreakdownShape), "where the time goes"),
       TimeKey("communication_seconds", "transfers are active, mean over ranks"),
       ShareKey("overlap_fraction", "of that, what kernels hide"),
       Written("by_axis", Named(ObjectOf(AxisUseShape), "communicator"), "communication"),
       Sometimes("by_role", ListOf(ObjectOf(RoleUseShape)), "there is one role",
                 "stages of a pipeline, and whatever roles a schedule has"),
       ShareKey("model_flops_utilization", "MFU: without recomputation, of the devices' peak"),
       ShareKey("hardware_flops_utilization", "HFU: with it"),
       CountKey("tokens_per_second", "of all ranks"),
       Written("memory", ObjectOf(MemoryShape), "of the fullest rank"),
       LinksKey(),
       Sometimes("collectives", ListOf(ObjectOf(ChosenShape)), "nothing was left to choose",
                 "what was chosen"),
       RoutesKey(),
       ExpertsKey(),
       TypicalKey(),
       Sometimes("trust", ObjectOf(TrustShape), "devices were measured, or jobs share a cluster",
                 "how near predictions of steps like this have been to published ones"),
       SimulatorKey(),
       HashKey(),
       ChangesKey(),
       SoftwareKey(),
       Sometimes("notes", ListOf(AText()), "nothing to note", "what a reader should know"),
       Sometimes("cost_model", ObjectOf(CostModelShape), "not asked for with --cost-model",
                 "what a paper's own model says about the communication"),
       GivenKey()}};
  return shape;
}

const ObjectShape& JobsResultShape() {
  static const ObjectShape shape = {
      "result of jobs",
      "What jobs that share a cluster take.",
      {SchemaVersion(kJobsSchema), NameKey("scenario", "its name"),
       Written("fidelity", AText(), "formula, fluid or step", "\"fluid\""),
       Written("left_out", AText(), "what the fidelity ignores", "\"packets\""),
       CountKey("devices", "of the cluster"), TimeKey("seconds", "until all have ended"),
       Written("jobs", ListOf(ObjectOf(JobResultShape)), "one by one"), LinksKey(), RoutesKey(),
       ExpertsKey(), SimulatorKey(), HashKey(), ChangesKey(), GivenKey()}};
  return shape;
}

JsonShape ResultFileShape() { return Either({ObjectOf(ResultShape), ObjectOf(JobsResultShape)}); }

}  // namespace rehearse

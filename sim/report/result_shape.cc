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
      "Where the time goes, as a mean over ranks; the parts add up to the step.",
      {TimeKey("compute_seconds", "any kernel runs"),
       TimeKey("exposed_communication_seconds", "only transfers are active"),
       TimeKey("idle_seconds", "the rank waits for others")}};
  return shape;
}

const ObjectShape& AxisUseShape() {
  static const ObjectShape shape = {
      "axis",
      "What one communicator does, mean over its ranks.",
      {CountKey("operations", "how many collectives and messages"),
       BytesKey("bytes", "as nccl-tests counts sizes"), TimeKey("seconds", "how long it is active"),
       TimeKey("exposed_seconds", "the part of that which no kernel hides")}};
  return shape;
}

const ObjectShape& RoleUseShape() {
  static const ObjectShape shape = {
      "role",
      "Where the time of one role's ranks goes, as a mean over them; a stage of a pipeline is a "
      "role.",
      {NameKey("name", "name of the role"), CountKey("ranks", "how many ranks have this role"),
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
       BytesKey("buffers", "buffers of collectives and kernels"),
       Sometimes("capacity", ANumber(0, kMost, "B"), "not known", "memory of its device"),
       Sometimes("reserve", ANumber(0, kMost, "B"), "not known",
                 "what driver, NCCL and cuBLAS take besides, roughly"),
       Sometimes("rank", ANumber(0, kMost), "capacity is not known", "which rank it is")}};
  return shape;
}

const ObjectShape& LinkUseShape() {
  static const ObjectShape shape = {
      "busy link",
      "One of the links that were used most, for their capacity.",
      {NameKey("name", "from vertex to vertex"), NameKey("kind", "its technology"),
       BytesKey("bytes", "bytes that it carried"),
       Written("capacity_bytes_per_second", ANumber(0, kMost, "B/s"),
               "bandwidth times its efficiency", "2.5e10"),
       ShareKey("utilization", "share of its capacity that was used over the step"),
       CountKey("count", "how many links are like it")}};
  return shape;
}

const ObjectShape& ChosenShape() {
  static const ObjectShape shape = {
      "chosen collective",
      "What was chosen where the scenario says auto.",
      {NameKey("axis", "communicator"), NameKey("kind", "kind of collective"),
       BytesKey("bytes", "size of the collective"), NameKey("algorithm", "chosen"),
       NameKey("protocol", "chosen"), CountKey("channels", "chosen")}};
  return shape;
}

const ObjectShape& SimulatorUseShape() {
  static const ObjectShape shape = {"simulator's work",
                                    "What the simulation itself took.",
                                    {TimeKey("wall_seconds", "how long the simulation took"),
                                     CountKey("events", "events that were simulated"),
                                     CountKey("transfers", "transfers that were simulated"),
                                     CountKey("classes", "classes of ranks that behave alike"),
                                     BytesKey("peak_rss_bytes", "peak memory of the program")}};
  return shape;
}

const ObjectShape& SeededStepShape() {
  static const ObjectShape shape = {"step of a seed",
                                    "What the step takes with one seed.",
                                    {CountKey("seed", "the seed of the hash or of the draw"),
                                     TimeKey("seconds", "how long the step takes")}};
  return shape;
}

const ObjectShape& RoutesShape() {
  static const ObjectShape shape = {
      "routes",
      "How much depends on a hash.",
      {Written("routing", AText(), "how the fabric chooses among equal paths",
               "\"ecmp with 1 queue pair\""),
       CountKey("seed", "the seed of this result, which is the median one"),
       Written("steps", ListOf(ObjectOf(SeededStepShape)),
               "the step for each seed, the quickest first", R"([{"seed": 0, "seconds": 0.7}])"),
       TimeKey("sprayed_step_seconds", "the step if equal paths shared the traffic evenly"),
       Sometimes("worst_link", AText(), "no cable carries anything",
                 "the link that has most to carry"),
       Sometimes("worst_link_share", ANumber(0, kMost), "no cable carries anything",
                 "its load, as a multiple of the mean of its bundle")}};
  return shape;
}

const ObjectShape& ExpertSpreadShape() {
  static const ObjectShape shape = {
      "experts",
      "How much depends on which experts are busy.",
      {Written("imbalance", ANumber(1, kMost),
               "tokens of the busiest expert, relative to an equal share"),
       Written("steps", ListOf(ObjectOf(SeededStepShape)),
               "the step for each draw, the quickest first; the result is that of seed 1",
               R"([{"seed": 1, "seconds": 0.7}])"),
       TimeKey("even_step_seconds", "the step if all experts had equally much to do")}};
  return shape;
}

const ObjectShape& TypicalShape() {
  static const ObjectShape shape = {
      "typical step",
      "How long a step takes in practice: equal devices differ, and it waits for the slowest.",
      {TimeKey("seconds", "in the median cluster"),
       TimeKey("low_seconds", "10 % of clusters are quicker"),
       TimeKey("high_seconds", "10 % of clusters are slower"),
       Written("slowest_device", ANumber(0, kMost),
               "its time, as a multiple of the median device's", "1.05")}};
  return shape;
}

const ObjectShape& TrustShape() {
  static const char* const kNone = "no published step is like it";
  static const ObjectShape shape = {
      "trust",
      "How close predictions of steps like this one come to published times (rehearse validate).",
      {CountKey("rows", "how many published steps are like it"),
       Sometimes("like", AText(), kNone, "what they have in common with this step"),
       Sometimes("fewest_devices", ANumber(0, kMost), kNone, "the fewest devices that they ran on"),
       Sometimes("most_devices", ANumber(0, kMost), kNone, "the most devices that they ran on"),
       Sometimes("mean_error", ANumber(0, kMost), kNone,
                 "mean absolute error of the steps, relative"),
       Sometimes("bias", ANumber(-1, kMost), kNone,
                 "mean relative error; below 0, predictions are too quick")}};
  return shape;
}

const ObjectShape& JobResultShape() {
  static const ObjectShape shape = {
      "job's result",
      "How long one job takes beside the others, and alone.",
      {NameKey("name", "name of the job"),
       Written("placement",
               ListOf(Tuple({AWhole(0, std::numeric_limits<uint32_t>::max()),
                             AWhole(0, std::numeric_limits<uint32_t>::max())})),
               "first and last of each run of devices", "[[0, 7]]"),
       TimeKey("start_seconds", "when it may begin"), CountKey("repeat", "how many steps"),
       Written("steps_seconds", ListOf(ANumber(0, kMost, "s")), "how long each step takes",
               "[0.7]"),
       TimeKey("alone_step_seconds", "how long a step takes alone on the cluster"),
       ShareKey("slow_down", "its mean step divided by that"),
       Written("result", Anything("a result"),
               "a result as of one step, without links and simulator", "{}")}};
  return shape;
}

const ObjectShape& ChangeShape() {
  static const ObjectShape shape = {
      "change",
      "What --set and similar options changed in a file.",
      {NameKey("file", "which file"),
       Sometimes("line", AWhole(1, std::numeric_limits<int>::max()), "there was no such line",
                 "line of the old value"),
       Written("path", AText(), "path of the value", "\"node.nics\""),
       Sometimes("was", Anything(), "there was none", "the value before; long ones shortened"),
       Written("is", Anything(), "the value now; long ones shortened", "8")}};
  return shape;
}

const ObjectShape& SwitchUseShape() {
  static const ObjectShape shape = {
      "switch",
      "A switch that a software stack sets, and its value in effect.",
      {Written("path", AText(), "path in the scenario", "\"training.kernels\""),
       Written("value", Anything(), "the value in effect", "\"eager\""),
       Sometimes("stack", Anything(), "the same", "what the stack sets")}};
  return shape;
}

const ObjectShape& SoftwareUseShape() {
  static const ObjectShape shape = {
      "software",
      "A software stack and its switches.",
      {NameKey("name", "name of the stack"),
       Written("switches", ListOf(ObjectOf(SwitchUseShape)), "the switches that apply")}};
  return shape;
}

JsonKey SoftwareKey() {
  return Sometimes("software", ObjectOf(SoftwareUseShape), "the scenario names none",
                   "the software stack, and what it sets");
}
JsonKey ChangesKey() {
  return Sometimes("changes", ListOf(ObjectOf(ChangeShape)), "nothing was changed",
                   "changes in the scenario and in the files that it names");
}
JsonKey LinksKey() { return Written("links", ListOf(ObjectOf(LinkUseShape)), "the busiest links"); }
JsonKey SimulatorKey() {
  return Written("simulator", ObjectOf(SimulatorUseShape), "what the simulation took");
}
JsonKey RoutesKey() {
  return Sometimes("routes", ObjectOf(RoutesShape), "no seed decides",
                   "how much depends on a hash");
}
JsonKey ExpertsKey() {
  return Sometimes("experts", ObjectOf(ExpertSpreadShape), "no seed decides which are busy",
                   "how much depends on which experts are busy");
}
JsonKey TypicalKey() {
  return Sometimes("typical", ObjectOf(TypicalShape), "it is not known how far devices differ",
                   "how long it takes in practice, waiting for the slowest of equal devices");
}
JsonKey HashKey() {
  return Written("timeline_hash", AText(), "the same whenever the step is the same",
                 "\"ace04d9f03d2cebe\"");
}

const ObjectShape& CostModelShape() {
  static const ObjectShape shape = {
      "cost model",
      "What a paper's own model says about a step's communication, without overlap and contention.",
      {Written("model", AText(), "the paper's model", "\"axonn\""),
       TimeKey("communication_seconds", "sum of the terms"),
       Written("terms", Named(ANumber(0, 1e300, "s"), "term"), "the terms, one by one"),
       Written("source", AText(), "equations and bandwidths that it uses", "\"AxoNN, eq. 9\"")}};
  return shape;
}

JsonKey GivenKey() {
  return Sometimes("given", Anything("a scenario"), "not told",
                   "what was simulated, as read, with --set applied");
}

}  // namespace

const ObjectShape& ResultShape() {
  static const ObjectShape shape = {
      "result",
      "How long one step takes, and where its time goes.",
      {SchemaVersion(kResultSchema),
       NameKey("scenario", "name of the scenario"),
       Written("fidelity", AText(), "formula, fluid or step", "\"fluid\""),
       Sometimes("left_out", AText(), "measured", "what the fidelity ignores"),
       CountKey("ranks", "how many ranks the step has"),
       TimeKey("step_seconds", "how long one step of the whole batch takes"),
       Written("breakdown", ObjectOf(BreakdownShape), "where the time goes"),
       TimeKey("communication_seconds", "how long transfers are active, as a mean over ranks"),
       ShareKey("overlap_fraction", "the share of that which kernels hide"),
       Written("by_axis", Named(ObjectOf(AxisUseShape), "communicator"),
               "communication of each communicator"),
       Sometimes("by_role", ListOf(ObjectOf(RoleUseShape)), "there is one role",
                 "stages of a pipeline, or the roles that a schedule has"),
       ShareKey("model_flops_utilization",
                "MFU: share of the devices' peak, without recomputation"),
       ShareKey("hardware_flops_utilization", "HFU: the same with recomputation"),
       CountKey("tokens_per_second", "tokens per second of all ranks"),
       Written("memory", ObjectOf(MemoryShape), "memory of the fullest rank"),
       LinksKey(),
       Sometimes("collectives", ListOf(ObjectOf(ChosenShape)), "nothing was left to choose",
                 "what was chosen for collectives"),
       RoutesKey(),
       ExpertsKey(),
       TypicalKey(),
       Sometimes("trust", ObjectOf(TrustShape), "devices were measured, or jobs share a cluster",
                 "how close predictions of steps like this one come to published times"),
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
      "How long jobs that share a cluster take.",
      {SchemaVersion(kJobsSchema), NameKey("scenario", "name of the scenario"),
       Written("fidelity", AText(), "formula, fluid or step", "\"fluid\""),
       Written("left_out", AText(), "what the fidelity ignores", "\"packets\""),
       CountKey("devices", "how many devices the cluster has"),
       TimeKey("seconds", "how long until all jobs have ended"),
       Written("jobs", ListOf(ObjectOf(JobResultShape)), "the jobs, one by one"), LinksKey(),
       RoutesKey(), ExpertsKey(), SimulatorKey(), HashKey(), ChangesKey(), GivenKey()}};
  return shape;
}

JsonShape ResultFileShape() { return Either({ObjectOf(ResultShape), ObjectOf(JobsResultShape)}); }

}  // namespace rehearse

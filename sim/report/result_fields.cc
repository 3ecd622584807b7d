#include "sim/report/result_fields.h"

#include <algorithm>
#include <cmath>
#include <limits>
#include <string>
#include <type_traits>
#include <vector>

#include <nlohmann/json.hpp>

#include "sim/base/error.h"
#include "sim/base/json_change_fields.h"
#include "sim/report/cost_outcome.h"
#include "sim/report/run_outcome.h"

namespace rehearse {
namespace {

using Json = nlohmann::ordered_json;

constexpr double kMost = std::numeric_limits<double>::max();

// ---- Rows that results always have --------------------------------------------------------------

template <typename T>
Field<T> TimeRow(const char* name, Seconds T::*member, const char* about) {
  return {name, member, ANumber(0, kMost, "s"), Required(), about, "0.7"};
}

template <typename T>
Field<T> ShareRow(const char* name, double T::*member, const char* about) {
  return {name, member, ANumber(0, kMost), Required(), about, "0.42"};
}

template <typename Count>
JsonShape ACount() {
  if constexpr (std::is_same_v<Count, double>) {
    return ANumber(0, kMost);
  } else {
    constexpr uint64_t kMostThere = std::numeric_limits<int64_t>::max();
    return AWhole(0, int64_t(std::min<uint64_t>(std::numeric_limits<Count>::max(), kMostThere)));
  }
}
template <typename T, typename Count>
Field<T> CountRow(const char* name, Count T::*member, const char* about) {
  return {name, member, ACount<Count>(), Required(), about, "16"};
}

template <typename T>
Field<T> NameRow(const char* name, std::string T::*member, const char* about) {
  return {name, member, AText(), Required(), about, "\"data\""};
}

// Bytes are whole except where they are means; whole ones are printed as such.
void ReadByteCount(const JsonReader& reader, Bytes* bytes) { *bytes = Bytes(reader.Number()); }
void WriteByteCount(const Bytes& bytes, Json* to) {
  constexpr double kExactIntegers = 0x1p53;
  const double value = bytes.value();
  CHECK(std::isfinite(value));
  if (value >= 0 && value < kExactIntegers && std::floor(value) == value) {
    *to = static_cast<uint64_t>(value);
  } else {
    *to = value;
  }
}
FieldShape AByteCount() { return ReadBy(ANumber(0, kMost, "B"), ReadByteCount, WriteByteCount); }
template <typename T>
Field<T> BytesRow(const char* name, Bytes T::*member, const char* about) {
  return {name, member, AByteCount(), Required(), about, "1048576"};
}

// ---- Parts of a result --------------------------------------------------------------------------

FieldList<Breakdown> BreakdownRows() {
  return {TimeRow("compute_seconds", &Breakdown::compute, "any kernel runs"),
          TimeRow("exposed_communication_seconds", &Breakdown::exposed_communication,
                  "only transfers are active"),
          TimeRow("idle_seconds", &Breakdown::idle,
                  "the rank waits for others: in a role, a pipeline's bubble")};
}

const Fields<Breakdown>& BreakdownFields() {
  static const Fields<Breakdown> fields(
      "breakdown", "Where the time goes, as a mean over ranks; the parts add up to the step.",
      BreakdownRows());
  return fields;
}

const Fields<AxisUse>& AxisUseFields() {
  static const Fields<AxisUse> fields(
      "axis", "What one communicator does, mean over its ranks.",
      {CountRow("operations", &AxisUse::operations, "how many collectives and messages"),
       BytesRow("bytes", &AxisUse::bytes, "as nccl-tests counts sizes"),
       TimeRow("seconds", &AxisUse::seconds, "how long it is active"),
       TimeRow("exposed_seconds", &AxisUse::exposed, "the part of that which no kernel hides")});
  return fields;
}

// Objects by the names of their axes; those that are read come in the order of the alphabet.
void ReadByAxis(const JsonReader& reader, std::vector<AxisUse>* axes) {
  axes->clear();
  for (const auto& [name, use] : reader.Members()) {
    axes->push_back(AxisUseFields().Read(use));
    axes->back().name = name;
  }
}
void WriteByAxis(const std::vector<AxisUse>& axes, Json* to) {
  *to = Json::object();
  for (const AxisUse& axis : axes) {
    CHECK(!to->contains(axis.name));  // communicators have different names
    AxisUseFields().Write(axis, &(*to)[axis.name]);
  }
}

const Fields<RoleUse>& RoleUseFields() {
  static const Fields<RoleUse> fields(
      "role",
      "Where the time of one role's ranks goes, as a mean over them; a stage of a pipeline is a "
      "role.",
      {NameRow("name", &RoleUse::name, "name of the role"),
       CountRow("ranks", &RoleUse::ranks, "how many ranks have this role"),
       Within(&RoleUse::breakdown, BreakdownRows())});
  return fields;
}

bool HasCapacity(const Result& result) { return result.memory_capacity > Bytes(0); }
bool HasReserve(const Result& result) {
  return HasCapacity(result) && result.memory_reserve > Bytes(0);
}

bool HasIdle(const Result& result) { return HasCapacity(result) && result.memory_idle > Bytes(0); }
bool HasHeadroom(const Result& result) { return HasCapacity(result) && result.memory_headroom > 0; }

const Fields<Result>& MemoryFields() {
  static const Fields<Result> fields(
      "memory", "Memory of the fullest rank.",
      {Within(&Result::memory,
              FieldList<MemoryUse>{
                  BytesRow("parameters", &MemoryUse::parameters, "weights"),
                  BytesRow("gradients", &MemoryUse::gradients, "their gradients"),
                  BytesRow("optimizer", &MemoryUse::optimizer, "its state"),
                  BytesRow("activations", &MemoryUse::activations, "kept for the backward pass"),
                  BytesRow("buffers", &MemoryUse::buffers, "buffers of collectives and kernels"),
                  {"host", &MemoryUse::host, AByteCount(), Optional("nothing is kept there"),
                   "in its host's memory"}}),
       {"capacity", &Result::memory_capacity, AByteCount(), Optional("not known"),
        "memory of its device"},
       {"rank", &Result::memory_rank, ACount<uint32_t>(),
        WrittenIf<HasCapacity>("capacity is not known"), "which rank it is"},
       {"reserve", &Result::memory_reserve, AByteCount(), WrittenIf<HasReserve>("not known"),
        "what driver, NCCL and cuBLAS take besides, roughly"},
       {"idle", &Result::memory_idle, AByteCount(), WrittenIf<HasIdle>("not known, or nothing"),
        "what the allocator reserves and does not use"},
       {"headroom", &Result::memory_headroom, ANumber(0, 1), WrittenIf<HasHeadroom>("0"),
        "the share of the capacity that must stay free", "0.05"}});
  return fields;
}

const Fields<LinkSummary>& LinkFields() {
  static const Fields<LinkSummary> fields(
      "busy link", "One of the links that were used most, for their capacity.",
      {NameRow("name", &LinkSummary::name, "from vertex to vertex"),
       NameRow("kind", &LinkSummary::kind, "its technology"),
       BytesRow("bytes", &LinkSummary::bytes, "bytes that it carried"),
       {"capacity_bytes_per_second", &LinkSummary::capacity, ANumber(0, kMost, "B/s"), Required(),
        "bandwidth times its efficiency", "2.5e10"},
       ShareRow("utilization", &LinkSummary::utilization,
                "share of its capacity that was used over the step"),
       CountRow("count", &LinkSummary::count, "how many links each carried this much")});
  return fields;
}

const Fields<ChosenCollective>& ChosenFields() {
  static const Fields<ChosenCollective> fields(
      "chosen collective", "What was chosen where the scenario says auto.",
      {NameRow("axis", &ChosenCollective::axis, "communicator"),
       NameRow("kind", &ChosenCollective::kind, "kind of collective"),
       BytesRow("bytes", &ChosenCollective::bytes, "size of the collective"),
       NameRow("algorithm", &ChosenCollective::algorithm, "chosen"),
       NameRow("protocol", &ChosenCollective::protocol, "chosen"),
       CountRow("channels", &ChosenCollective::channels, "chosen")});
  return fields;
}

const Fields<SimulatorCost>& SimulatorFields() {
  static const Fields<SimulatorCost> fields(
      "simulator's work", "What the simulation itself took.",
      {TimeRow("wall_seconds", &SimulatorCost::wall, "how long the simulation took"),
       CountRow("events", &SimulatorCost::events, "events that were simulated"),
       CountRow("transfers", &SimulatorCost::transfers, "transfers that were simulated"),
       CountRow("classes", &SimulatorCost::classes, "classes of ranks that behave alike"),
       BytesRow("peak_rss_bytes", &SimulatorCost::peak_rss, "peak memory of the program")});
  return fields;
}

const Fields<SeededStep>& SeededStepFields() {
  static const Fields<SeededStep> fields(
      "step of a seed", "What the step takes with one seed.",
      {CountRow("seed", &SeededStep::seed, "the seed of the hash or of the draw"),
       TimeRow("seconds", &SeededStep::step, "how long the step takes")});
  return fields;
}

bool CarriesMost(const RouteSpread& spread) { return !spread.worst_link.empty(); }

const Fields<RouteSpread>& RouteFields() {
  static const char* const kNone = "no cable carries anything";
  static const Fields<RouteSpread> fields(
      "routes", "How much depends on a hash.",
      {{"routing", &RouteSpread::routing, AText(), Required(),
        "how the fabric chooses among equal paths", "\"ecmp with 1 queue pair\""},
       CountRow("seed", &RouteSpread::seed, "the seed of this result, which is the median one"),
       {"steps", &RouteSpread::steps, ListOf(ObjectIn<SeededStepFields>()), Required(),
        "the step for each seed, the quickest first", R"([{"seed": 0, "seconds": 0.7}])"},
       TimeRow("sprayed_step_seconds", &RouteSpread::sprayed,
               "the step if equal paths shared the traffic evenly"),
       {"worst_link", &RouteSpread::worst_link, AText(), Optional(kNone),
        "the link that has most to carry"},
       {"worst_link_share", &RouteSpread::worst_share, ANumber(0, kMost),
        WrittenIf<CarriesMost>(kNone), "its load, as a multiple of the mean of its bundle"}});
  return fields;
}

bool IsDrawn(const PlacementSpread& spread) { return !spread.steps.empty(); }
bool HasBest(const PlacementSpread& spread) { return spread.best > Seconds(0); }

const Fields<PlacementSpread>& PlacementSpreadFields() {
  static const char* const kNone = "devices are not drawn";
  static const char* const kNotAsked = "nobody asked for it";
  static const Fields<PlacementSpread> fields(
      "placement", "What the devices that the step has cost it.",
      {{"busy", &PlacementSpread::busy, ANumber(0, 1), WrittenIf<IsDrawn>(kNone),
        "share of the devices that others hold", "0.8"},
       {"seed", &PlacementSpread::seed, ACount<uint64_t>(), WrittenIf<IsDrawn>(kNone),
        "the seed of this result, which is the median one"},
       {"steps", &PlacementSpread::steps, ListOf(ObjectIn<SeededStepFields>()),
        WrittenIf<IsDrawn>(kNone), "the step for each draw, the quickest first",
        R"([{"seed": 0, "seconds": 0.7}])"},
       {"best_step_seconds", &PlacementSpread::best, ANumber(0, kMost, "s"),
        WrittenIf<HasBest>(kNotAsked), "the step on the best devices of an empty cluster", "0.6"},
       {"best", &PlacementSpread::best_order, AText(), WrittenIf<HasBest>(kNotAsked),
        "how these are taken", "\"even\""}});
  return fields;
}

const Fields<ExpertSpread>& ExpertFields() {
  static const Fields<ExpertSpread> fields(
      "experts", "How much depends on which experts are busy.",
      {{"imbalance", &ExpertSpread::imbalance, ANumber(1, kMost), Required(),
        "tokens of the busiest expert, relative to an equal share"},
       {"steps", &ExpertSpread::steps, ListOf(ObjectIn<SeededStepFields>()), Required(),
        "the step for each draw, the quickest first; the result is that of seed 1",
        R"([{"seed": 1, "seconds": 0.7}])"},
       TimeRow("even_step_seconds", &ExpertSpread::even,
               "the step if all experts had equally much to do")});
  return fields;
}

const Fields<TypicalStep>& TypicalFields() {
  static const Fields<TypicalStep> fields(
      "typical step",
      "How long a step takes in practice: equal devices differ, and it waits for the slowest.",
      {TimeRow("seconds", &TypicalStep::median, "in the median cluster"),
       TimeRow("low_seconds", &TypicalStep::low, "10 % of clusters are quicker"),
       TimeRow("high_seconds", &TypicalStep::high, "10 % of clusters are slower"),
       {"slowest_device", &TypicalStep::slowest, ANumber(0, kMost), Required(),
        "its time, as a multiple of the median device's", "1.05"}});
  return fields;
}

bool IsLikeSome(const Trust& trust) { return trust.rows > 0; }

const Fields<Trust>& TrustFields() {
  static const FieldPresence kSome = WrittenIf<IsLikeSome>("no published step is like it");
  static const Fields<Trust> fields(
      "trust",
      "How close predictions of steps like this one come to published times (rehearse validate).",
      {CountRow("rows", &Trust::rows, "how many published steps are like it"),
       {"like", &Trust::like, AText(), kSome, "what they have in common with this step"},
       {"fewest_devices", &Trust::fewest, ACount<uint32_t>(), kSome,
        "the fewest devices that they ran on"},
       {"most_devices", &Trust::most, ACount<uint32_t>(), kSome,
        "the most devices that they ran on"},
       {"mean_error", &Trust::mean_error, ANumber(0, kMost), kSome,
        "mean absolute error of the steps, relative"},
       {"bias", &Trust::bias, ANumber(-1, kMost), kSome,
        "mean relative error; below 0, predictions are too quick"}});
  return fields;
}

const Fields<SwitchUse>& SwitchFields() {
  static const Fields<SwitchUse> fields(
      "switch", "A switch that a software stack sets, and its value in effect.",
      {{"path", &SwitchUse::path, AText(), Required(), "path in the scenario",
        "\"training.kernels\""},
       {"value", &SwitchUse::value, AnyJsonText(), Required(), "the value in effect", "\"eager\""},
       {"stack", &SwitchUse::stack, AnyJsonText(), Optional("the same"), "what the stack sets"}});
  return fields;
}

const Fields<SoftwareUse>& SoftwareFields() {
  static const Fields<SoftwareUse> fields(
      "software", "A software stack and its switches.",
      {NameRow("name", &SoftwareUse::name, "name of the stack"),
       {"switches", &SoftwareUse::switches, ListOf(ObjectIn<SwitchFields>()), Required(),
        "the switches that apply"}});
  return fields;
}

bool NamesSoftware(const Result& result) { return !result.software.name.empty(); }

const ObjectShape& CostModelShape() {
  static const ObjectShape shape = {
      "cost model",
      "What a paper's own model says about a step's communication, without overlap and contention.",
      {{"model", AText(), Required(), "the paper's model", "\"axonn\""},
       {"communication_seconds", ANumber(0, kMost, "s"), Required(), "sum of the terms", "0.7"},
       {"terms", Named(ANumber(0, 1e300, "s"), "term"), Required(), "the terms, one by one"},
       {"source", AText(), Required(), "equations and bandwidths that it uses",
        "\"AxoNN, eq. 9\""}}};
  return shape;
}

}  // namespace

JsonKey GivenRow() {
  return {"given", Anything("a scenario"), Optional("not told"),
          "what was simulated, as read, with --set applied"};
}

const Fields<Result>& ResultFields() {
  static const Fields<Result> fields(
      "result", "How long one step takes, and where its time goes.",
      {SchemaVersion(kResultSchema),
       NameRow("scenario", &Result::scenario, "name of the scenario"),
       {"fidelity", &Result::fidelity, AText(), Required(), "formula, fluid, step or packet",
        "\"fluid\""},
       {"left_out", &Result::left_out, AText(), Optional("measured"), "what the fidelity ignores"},
       CountRow("ranks", &Result::ranks, "how many ranks the step has"),
       TimeRow("step_seconds", &Result::step, "how long one step of the whole batch takes"),
       {"breakdown", &Result::breakdown, ObjectIn<BreakdownFields>(), Required(),
        "where the time goes"},
       TimeRow("communication_seconds", &Result::communication,
               "how long transfers are active, as a mean over ranks"),
       ShareRow("overlap_fraction", &Result::overlap_fraction,
                "the share of that which kernels hide"),
       {"by_axis", &Result::axes,
        ReadBy(Named(ObjectOf(ShapeIn<AxisUseFields>), "communicator"), ReadByAxis, WriteByAxis),
        Required(), "communication of each communicator"},
       {"by_role", &Result::roles, ListOf(ObjectIn<RoleUseFields>()), Optional("there is one role"),
        "stages of a pipeline, or the roles that a schedule has"},
       ShareRow("model_flops_utilization", &Result::model_flops_utilization,
                "MFU: share of the devices' peak, without recomputation"),
       ShareRow("hardware_flops_utilization", &Result::hardware_flops_utilization,
                "HFU: the same with recomputation"),
       CountRow("tokens_per_second", &Result::tokens_per_second, "tokens per second of all ranks"),
       {"memory", kItself, ObjectIn<MemoryFields>(), Required(), "memory of the fullest rank"},
       {"links", &Result::links, ListOf(ObjectIn<LinkFields>()), Required(), "the busiest links"},
       {"collectives", &Result::chosen, ListOf(ObjectIn<ChosenFields>()),
        Optional("nothing was left to choose"), "what was chosen for collectives"},
       {"routes", &Result::routes, ObjectIn<RouteFields>(), Optional("no seed decides"),
        "how much depends on a hash"},
       {"placement", &Result::placement, ObjectIn<PlacementSpreadFields>(),
        Optional("it has all devices, or the best ones"), "what its devices cost it"},
       {"experts", &Result::experts, ObjectIn<ExpertFields>(),
        Optional("no seed decides which are busy"), "how much depends on which experts are busy"},
       {"typical", &Result::typical, ObjectIn<TypicalFields>(),
        Optional("it is not known how far devices differ"),
        "how long it takes in practice, waiting for the slowest of equal devices"},
       {"trust", &Result::trust, ObjectIn<TrustFields>(),
        Optional("devices were measured, or jobs share a cluster"),
        "how close predictions of steps like this one come to published times"},
       {"simulator", &Result::simulator, ObjectIn<SimulatorFields>(), Required(),
        "what the simulation took"},
       {"timeline_hash", &Result::timeline_hash, AText(), Required(),
        "the same whenever the step is the same", "\"ace04d9f03d2cebe\""},
       {"changes", &Result::changes, ListOf(ObjectIn<ChangeFields>()),
        Optional("nothing was changed"), "changes in the scenario and in the files that it names"},
       {"software", &Result::software, ObjectIn<SoftwareFields>(),
        WrittenIf<NamesSoftware>("the scenario names none"),
        "the software stack, and what it sets"},
       {"notes", &Result::notes, ListOf(AText()), Optional("nothing to note"),
        "what a reader should know"},
       {"cost_model", ObjectOf(CostModelShape), Optional("not asked for with --cost-model"),
        "what a paper's own model says about the communication"},
       {"run", ObjectOf(ShapeIn<RunOutcomeFields>), Optional("the scenario has none"),
        "weeks of such steps, with failures and checkpoints"},
       {"costs", ObjectOf(ShapeIn<CostOutcomeFields>), Optional("the scenario has no prices"),
        "money, energy and carbon"},
       GivenRow()});
  return fields;
}

nlohmann::ordered_json ToJson(const Result& result) {
  Json json = {{"schema", kResultSchema}};
  ResultFields().Write(result, &json);
  return json;
}

nlohmann::ordered_json ToJson(const ExpertSpread& spread) {
  Json json;
  ExpertFields().Write(spread, &json);
  return json;
}

nlohmann::ordered_json ToJson(const RouteSpread& spread) {
  Json json;
  RouteFields().Write(spread, &json);
  return json;
}

nlohmann::ordered_json ToJson(const PlacementSpread& spread) {
  Json json;
  PlacementSpreadFields().Write(spread, &json);
  return json;
}

namespace {

void AddNumbers(const Json& json, const std::string& path, std::vector<std::string>* numbers) {
  if (json.is_number()) numbers->push_back(path);
  if (!json.is_object()) return;
  const std::string before = path.empty() ? "" : path + ".";
  for (const auto& [key, value] : json.items()) AddNumbers(value, before + key, numbers);
}

}  // namespace

std::vector<std::string> NumbersOfResults() {
  Result result;
  result.memory_capacity = Bytes(1);  // where it is known
  result.axes.emplace_back().name = "*";
  std::vector<std::string> numbers;
  AddNumbers(ToJson(result), "", &numbers);
  return numbers;
}

}  // namespace rehearse

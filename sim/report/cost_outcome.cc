#include "sim/report/cost_outcome.h"

#include <limits>

#include <nlohmann/json.hpp>

namespace rehearse {
namespace {

template <typename T>
Field<T> CostNumber(const char* name, double T::*member, const char* about) {
  return {name, member, ANumber(0, std::numeric_limits<double>::max()), Required(), about, "1.25"};
}

const Fields<CostPart>& CostPartFields() {
  static const Fields<CostPart> fields(
      "paid part", "What is paid for, or draws power.",
      {{"part", &CostPart::name, AText(), Required(), "which it is", "\"GPU\""},
       CostNumber("count", &CostPart::count, "how many there are"),
       CostNumber("per_hour", &CostPart::per_hour, "written off, or rented, an hour"),
       CostNumber("kilowatts", &CostPart::kilowatts, "that they draw in training")});
  return fields;
}

const Fields<CostOfRun>& CostOfRunFields() {
  static const Fields<CostOfRun> fields(
      "cost of a run", "What the \"run\" costs, in the median of its seeds.",
      {CostNumber("money", &CostOfRun::money, "all of it"),
       CostNumber("megawatt_hours", &CostOfRun::megawatt_hours, "energy"),
       CostNumber("carbon_tonnes", &CostOfRun::carbon_tonnes, "carbon dioxide"),
       CostNumber("per_million", &CostOfRun::per_million, "money for a million tokens")});
  return fields;
}

}  // namespace

const Fields<CostOutcome>& CostOutcomeFields() {
  using Cost = CostOutcome;
  constexpr int64_t kMostGpus = std::numeric_limits<uint32_t>::max();
  static const Fields<Cost> fields(
      "what it costs", "Money, energy and carbon of the step, and of a \"run\".",
      {{"currency", &Cost::currency, AText(), Required(), "of all money", "\"USD\""},
       {"token_name", &Cost::token_name, AText(), Required(), "what is counted", "\"tokens\""},
       {"gpus_used", &Cost::gpus_used, AWhole(0, kMostGpus), Required(), "with a rank", "64"},
       {"gpus_bought", &Cost::gpus_bought, AWhole(0, kMostGpus), Required(), "paid for", "72"},
       CostNumber("per_hour", &Cost::per_hour, "money an hour of training"),
       CostNumber("electricity_per_hour", &Cost::electricity, "the part of it that is electricity"),
       CostNumber("kilowatts", &Cost::kilowatts, "power in training, with the building's"),
       CostNumber("idle_kilowatts", &Cost::idle_kilowatts, "power while training stands still"),
       CostNumber("per_million", &Cost::per_million, "money for a million tokens"),
       CostNumber("kwh_per_million", &Cost::kwh_per_million, "energy for a million tokens"),
       CostNumber("carbon_kg_per_million", &Cost::carbon_per_million,
                  "carbon dioxide for a million tokens"),
       {"parts", &Cost::parts, ListOf(ObjectIn<CostPartFields>()), Required(), "what is paid for"},
       {"run", &Cost::run, ObjectIn<CostOfRunFields>(), Optional("the scenario has no run"),
        "what weeks of it cost"}});
  return fields;
}

nlohmann::ordered_json ToJson(const CostOutcome& outcome) {
  nlohmann::ordered_json json;
  CostOutcomeFields().Write(outcome, &json);
  return json;
}

}  // namespace rehearse

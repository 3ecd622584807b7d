// What a step, and weeks of them, cost: "costs" in result.json (scenarios/campaign/costs.h makes
// it).
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "sim/base/json_fields.h"
#include "sim/base/quantity.h"

namespace rehearse {

struct CostPart {
  std::string name;      // "GPU"
  double count = 0;      // bought, or drawing power
  double per_hour = 0;   // money: written off, or rented
  double kilowatts = 0;  // while it trains; of the building's overhead: its own
};

// Of all steps of a "run", with what fails in it.
struct CostOfRun {
  double money = 0;
  double megawatt_hours = 0;
  double carbon_tonnes = 0;
  double per_million = 0;  // tokens
};

struct CostOutcome {
  std::string currency;
  std::string token_name = "tokens";
  uint32_t gpus_used = 0;
  uint32_t gpus_bought = 0;
  double per_hour = 0;     // all of it, while it trains
  double electricity = 0;  // of that
  double kilowatts = 0;    // while it trains, with the building's overhead
  double idle_kilowatts = 0;
  double per_million = 0;  // tokens
  double kwh_per_million = 0;
  double carbon_per_million = 0;  // kg
  std::vector<CostPart> parts;
  std::optional<CostOfRun> run = {};
};

const Fields<CostOutcome>& CostOutcomeFields();
nlohmann::ordered_json ToJson(const CostOutcome& outcome);

}  // namespace rehearse

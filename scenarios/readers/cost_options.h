// What the "costs" of a scenario say: prices and powers, which are the user's; no preset has any
// (scenarios/campaign/costs.h says what is done with them).
//
// A price is a number with its currency, "30000USD"; all of them have one currency. What is bought
// is written off over `years`; "gpu_hour" is for machines by the hour, instead of the prices of
// GPUs, hosts and their network.
#pragma once

#include <map>
#include <optional>
#include <string>

#include "scenarios/readers/long_times.h"
#include "sim/base/error.h"
#include "sim/base/json_fields.h"
#include "sim/base/quantity.h"

namespace rehearse {

struct Money {
  double amount = 0;
  std::string currency;

  friend bool operator==(const Money&, const Money&) = default;
};

struct CostOptions {
  // Of one each; a cable has two ends with optics.
  std::optional<Money> gpu = {};
  std::optional<Money> host = {};
  std::optional<Money> nic = {};
  std::optional<Money> switches = {};
  std::optional<Money> cable = {};
  std::optional<Money> optics = {};
  std::optional<Money> storage = {};   // all of it
  std::optional<Money> other = {};     // all else that is bought once: building, installation
  std::optional<Money> gpu_hour = {};  // instead
  std::optional<Seconds> years = {};
  std::optional<Money> electricity = {};      // of a kWh
  double pue = 1;                             // power of the building over that of the machines
  double carbon = 0;                          // kg of CO2 a kWh
  std::optional<double> gpu_power = {};       // watts; none: the board's data sheet
  std::optional<double> gpu_idle_power = {};  // none: a fifth of that
  double host_power = 0;                      // of all in a machine but the GPUs
  double switch_power = 0;
  double optics_power = 0;                   // of one end
  std::optional<uint32_t> gpus_bought = {};  // none: all of the cluster's

  std::map<std::string, std::string> sources = {};  // for people

  std::string currency = {};  // of all prices; no key
  Place place = {};           // of the object; no key
};

const Fields<CostOptions>& CostFields();

// From the scenario's "costs": the object, or a file with it.
CostOptions ReadCosts(const JsonReader& reader);
JsonShape CostsShape();

}  // namespace rehearse

// What a search optimises, as a number of a result.
//
//   time        seconds per step                                        less is better
//   tokens      tokens, or what the model counts, per second            more
//   gpu-hours   of all GPUs, for a million tokens                       less
//   money       the same at a price                                     less
//   energy      kWh of all GPUs for a million tokens: their power in the share of the time in which
//               they compute or communicate                             less
//   memory      bytes that the fullest GPU needs, driver and libraries too   less
//   run-time    seconds that the scenario's "run" takes, with all that fails   less
//   run-money   what all of it costs, by the scenario's "costs"         less
//   run-energy  kWh of all of it, likewise                              less
//
// or any number of result.json: more is better for rates and utilisations, less for all else.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "scenarios/searching/point_run.h"
#include "sim/base/json_reader.h"
#include "sim/report/result.h"

namespace rehearse {

enum class ObjectiveKind : uint8_t {
  kTime,
  kTokens,
  kGpuHours,
  kMoney,
  kEnergy,
  kMemory,
  kRunTime,
  kRunMoney,
  kRunEnergy,
  kNumber
};
inline constexpr const char* kObjectiveNames[] = {"time",     "tokens",    "gpu-hours",
                                                  "money",    "energy",    "memory",
                                                  "run-time", "run-money", "run-energy"};

struct Objective {
  ObjectiveKind kind = ObjectiveKind::kTime;
  std::string name = "time";
  std::string number = {};  // path in a result
  std::string unit = "s";
  bool more_is_better = false;
  // What is minimised: negative if more is better.
  double CostOf(double value) const { return more_is_better ? -value : value; }
  // Of weeks of steps.
  bool IsOfRun() const { return kind >= ObjectiveKind::kRunTime && kind < ObjectiveKind::kNumber; }
  // What all of a run costs, or draws.
  bool IsOfRunCosts() const { return IsOfRun() && kind != ObjectiveKind::kRunTime; }
};

// What an hour of a GPU costs: "2.5USD/h".
struct Price {
  double number = 0;
  std::string currency;
};
// What money and energy are counted with, of the search or of one choice.
struct Rates {
  std::optional<Price> price = {};
  std::optional<double> watts = {};  // of a GPU; otherwise the board's
};
// The "price" and "power" of an object. Throws Error.
Price ReadPrice(const JsonReader& reader);
double ReadPower(const JsonReader& reader);
Rates ReadRates(const JsonReader& search);

// The objective's value for a result on devices called `device`; it is none of a run. Throws Error
// for money without a price, and for energy where no board's power is known.
double ValueOf(const Objective& objective, const Result& result, const std::string& device,
               const Rates& rates);
// Of an objective of a run. Where it is of costs, the run has them.
double ValueOf(const Objective& objective, const PointRun& run);

// From a "search" read through its table. Throws Error for unknown names, numbers that results
// lack and so on.
std::vector<Objective> ReadObjectives(const JsonReader& search);

// "1.374 s", "38.2 GiB", "12,345 tokens/s".
std::string Print(const Objective& objective, double value);

}  // namespace rehearse

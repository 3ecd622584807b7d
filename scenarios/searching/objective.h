// What a search wants, as a number of a result.
//
//   time        seconds a step                                          the less the better
//   tokens      tokens, or what the model counts, a second              the more
//   gpu-hours   of all GPUs, for a million tokens                       the less
//   money       the same at a price                                     the less
//   energy      kWh of all GPUs for a million tokens: their power in the share of the time in which
//               they compute or communicate                             the less
//   memory      bytes that the fullest GPU needs                        the less
//
// or any number of result.json: rates and utilisations had better be large, all else small.
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "sim/base/json_reader.h"
#include "sim/report/result.h"

namespace rehearse {

enum class ObjectiveKind : uint8_t { kTime, kTokens, kGpuHours, kMoney, kEnergy, kMemory, kNumber };
inline constexpr const char* kObjectiveNames[] = {"time",  "tokens", "gpu-hours",
                                                  "money", "energy", "memory"};

struct Objective {
  ObjectiveKind kind = ObjectiveKind::kTime;
  std::string name = "time";
  std::string number = {};  // path in a result
  std::string unit = "s";
  bool more_is_better = false;
  double price = 0;                  // of a GPU an hour
  std::optional<double> watts = {};  // of a GPU; else the board's

  // As things are minimised: negative where more is better.
  double CostOf(double value) const { return more_is_better ? -value : value; }
};

// What is wanted of results on devices called `device`.
double ValueOf(const Objective& objective, const Result& result, const std::string& device);

// Of a "search" read through its table. Throws Error for names that are not known, numbers that
// results lack, money without "price" and so on.
std::vector<Objective> ReadObjectives(const JsonReader& search);

// "1.374 s", "38.2 GiB", "12,345 tokens/s".
std::string Print(const Objective& objective, double value);

}  // namespace rehearse

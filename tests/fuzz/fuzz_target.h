// A fuzz target: a reader of what others wrote, texts to begin with, and words of its language.
//
// A reader may throw Error with one message of at most kLongestErrorText bytes. Anything else that
// it throws is a finding, as are a crash, more than kLongestSeconds and more than kMostMemory.
//
// Each file of tests/fuzz/targets is one target, and so is each NAME_fuzz.cc beside a reader in
// tools/foreign. It adds itself to FuzzTargets():
//   const FuzzTargetRow kRow({"cluster", ReadText, Seeds, Words, FuzzLanguage::kJson});
#pragma once

#include <cstddef>
#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "tests/support/sanitizers.h"

namespace rehearse {

// The cost of the sanitizers, in time, and in memory, including freed blocks that are kept.
inline constexpr double kFuzzSlowness = kIsSanitized ? 8 : 1;
inline constexpr size_t kFuzzBulk = kIsSanitized ? 4 : 1;
inline constexpr double kLongestSeconds = 1 * kFuzzSlowness;  // of the processor
inline constexpr size_t kMostMemory = (size_t{512} << 20) * kFuzzBulk;
inline constexpr size_t kLongestErrorText = 2000;         // bytes of an Error
inline constexpr size_t kLongestInput = size_t{1} << 18;  // that is tried

enum class FuzzLanguage : uint8_t { kText, kJson, kBytes };

struct FuzzTarget {
  std::string name;
  void (*read)(std::string_view input);
  std::vector<std::string> (*seeds)();  // that are valid, or nearly
  std::vector<std::string> (*words)();  // the dictionary
  FuzzLanguage language = FuzzLanguage::kText;
};

// By name.
const std::vector<FuzzTarget>& FuzzTargets();
// Null if there is none of that name.
const FuzzTarget* FindFuzzTarget(std::string_view name);

struct FuzzTargetRow {
  explicit FuzzTargetRow(FuzzTarget target);
};

// Reads the input. What it throws is a finding: any std::exception but Error, or an Error whose
// message is too long.
void RunFuzzTarget(const FuzzTarget& target, std::string_view input);

}  // namespace rehearse

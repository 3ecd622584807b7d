// The entry of libFuzzer (preset "fuzz"): REHEARSE_FUZZ says which target. Changes of JSON are ours
// half of the time; all others are libFuzzer's.
#include <algorithm>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <string>

#include "tests/fuzz/fuzz_target.h"
#include "tests/fuzz/mutator.h"

namespace {

using rehearse::FuzzTarget;

const FuzzTarget& Target() {
  static const FuzzTarget& target = [&]() -> const FuzzTarget& {
    const char* const name = std::getenv("REHEARSE_FUZZ");
    const FuzzTarget* const found = rehearse::FindFuzzTarget(name != nullptr ? name : "");
    if (found != nullptr) return *found;
    std::fputs("REHEARSE_FUZZ: expected the name of a target\n", stderr);
    std::exit(2);
  }();
  return target;
}

}  // namespace

extern "C" size_t LLVMFuzzerMutate(uint8_t* data, size_t size, size_t most);

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  rehearse::RunFuzzTarget(Target(), {reinterpret_cast<const char*>(data), size});
  return 0;
}

extern "C" size_t LLVMFuzzerCustomMutator(uint8_t* data, size_t size, size_t most, unsigned seed) {
  static const std::vector<std::string> texts = Target().seeds();
  static const std::vector<std::string> words = Target().words();
  rehearse::Mutator mutator(seed, texts, words);
  if (Target().language == rehearse::FuzzLanguage::kJson && mutator.Below(2) == 0) {
    std::string text(reinterpret_cast<const char*>(data), size);
    if (mutator.MutateJson(&text) && !text.empty() && text.size() <= most) {
      std::memcpy(data, text.data(), text.size());
      return text.size();
    }
  }
  return LLVMFuzzerMutate(data, size, most);
}

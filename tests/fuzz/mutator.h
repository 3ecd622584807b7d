// Seeded changes of a text: of bits, bytes and blocks, with parts of other texts, words of a
// dictionary and awkward numbers; and of JSON, which stays JSON.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "tests/fuzz/fuzz_target.h"

namespace rehearse {

class Mutator {
 public:
  // Both outlive it.
  Mutator(uint64_t seed, const std::vector<std::string>& texts,
          const std::vector<std::string>& words)
      : state_(seed), texts_(texts), words_(words) {}

  // A few changes in a row; at most kLongestInput bytes.
  std::string Mutate(std::string text, FuzzLanguage language);
  // Changes a JSON value in the text; false, with nothing changed, if the text is not JSON.
  bool MutateJson(std::string* text);

  uint64_t Below(uint64_t end);  // 0 to end - 1; 0 for 0

 private:
  uint64_t Next();
  bool OneIn(uint64_t n) { return Below(n) == 0; }
  const std::string& Any(const std::vector<std::string>& of);
  std::string AnyBlock(std::string_view of);
  void MutateBytes(std::string* text);
  void ReplaceToken(std::string* text);
  void ReplaceNumber(std::string* text);

  uint64_t state_;
  const std::vector<std::string>& texts_;
  const std::vector<std::string>& words_;
};

}  // namespace rehearse

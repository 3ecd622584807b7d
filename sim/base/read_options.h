// What reading a file means, as an argument of whoever reads it. A JSON document remembers where
// its files come from, and the documents that it names are read likewise.
#pragma once

#include <cstddef>
#include <cstdint>
#include <map>
#include <memory>
#include <string>

namespace rehearse {

// How large a file or a document may be. What others made may have 64 MiB and 4 million values, so
// that nobody's file fills the memory; what the user names as the thing to play, a scenario or a
// schedule, may have 1 GiB: a profile of many ranks has as many ops as they ran kernels. In memory
// a document takes some twelve times the bytes of its text.
enum class InputSize : uint8_t { kUsual, kLarge };
inline constexpr size_t kLargestInput = size_t{64} << 20;  // bytes
inline constexpr size_t kLargestDocument = size_t{1} << 30;
inline constexpr size_t LargestInput(InputSize size) {
  return size == InputSize::kLarge ? kLargestDocument : kLargestInput;
}

// Texts, by path, that are read in place of files of those names: a page that simulates has no
// files.
using GivenFiles = std::map<std::string, std::string>;

// Python writes NaN, Infinity and -Infinity where JSON has no number; its files may hold them, and
// they are read as strings of the same letters.
enum class JsonNumbers : uint8_t { kOfJson, kOfPython };

struct InputRecord;

struct ReadOptions {
  InputSize size = InputSize::kUsual;
  std::shared_ptr<const GivenFiles> given = nullptr;
  std::shared_ptr<InputRecord> record = nullptr;  // notes what is read (sim/base/input_record.h)
  JsonNumbers numbers = JsonNumbers::kOfJson;
};

}  // namespace rehearse

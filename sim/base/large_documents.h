// How large a JSON document may be. What others made may have 64 MiB and 4 million values, so that
// nobody's file fills the memory; what the user names as the thing to play, a scenario or a
// schedule, may have 1 GiB: a profile of many ranks has as many ops as they ran kernels. In memory
// a document takes some twelve times the bytes of its text.
#pragma once

#include <cstddef>

namespace rehearse {

// While one lives, its thread reads files and documents that are so large.
class LargeDocuments {
 public:
  LargeDocuments();
  ~LargeDocuments();
  LargeDocuments(const LargeDocuments&) = delete;
  LargeDocuments& operator=(const LargeDocuments&) = delete;

 private:
  bool outer_;
};

inline constexpr size_t kLargestDocument = size_t{1} << 30;  // bytes of its text
// On this thread, now; else kLargestInput (sim/base/input_file.h) and 4 million.
size_t LargestInput();
size_t MostJsonValues();

}  // namespace rehearse

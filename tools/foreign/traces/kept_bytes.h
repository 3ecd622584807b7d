// How much memory the parts of a profile take that are kept: the file is read as a stream and may
// be of any length, so that events, names and communicators are what could fill the memory.
#pragma once

#include <cstdint>
#include <string>

#include <fmt/format.h>

namespace rehearse {

class KeptBytes {
 public:
  // Some ten million kernels. With what tables and allocators add, less than 1 GiB.
  static constexpr uint64_t kMost = uint64_t{512} << 20;

  // Whether there is room for so many more bytes.
  bool Take(uint64_t bytes) {
    bytes_ += bytes;
    return bytes_ <= kMost;
  }
  // Of an entry of a list and its texts.
  template <typename Entry>
  bool TakeEntry(uint64_t bytes_of_texts = 0) {
    return Take(sizeof(Entry) + bytes_of_texts);
  }

  static std::string Complaint() {
    return fmt::format(
        "found kernels, launches and names of more than {} MiB, expected a profile of fewer steps",
        kMost >> 20);
  }

 private:
  uint64_t bytes_ = 0;
};

}  // namespace rehearse

// A file's text, gzipped or not, in pieces, so that files of any size can be parsed as they come.
#pragma once

#include <cstddef>
#include <cstdint>
#include <iterator>
#include <string>
#include <vector>

namespace rehearse {

class TextStream {
 public:
  // Throws Error, naming the file, when it cannot be read; reading on does when it is damaged or
  // cut off.
  explicit TextStream(const std::string& path);
  ~TextStream();
  TextStream(const TextStream&) = delete;
  TextStream& operator=(const TextStream&) = delete;

  bool AtEnd() { return at_ == end_ && !Refill(); }
  const char& Current() const { return *at_; }
  void Next() { ++at_; }
  // How much of the text has been passed.
  uint64_t offset() const { return before_ + static_cast<uint64_t>(at_ - piece_.data()); }

 private:
  bool Refill();

  std::string path_;
  void* file_;  // zlib's
  std::vector<char> piece_;
  const char* at_;
  const char* end_;
  uint64_t before_ = 0;  // bytes before the piece
};

// Its characters for parsers that take two iterators. All copies read on in the one stream.
class TextIterator {
 public:
  using iterator_category = std::input_iterator_tag;
  using value_type = char;
  using difference_type = std::ptrdiff_t;
  using pointer = const char*;
  using reference = const char&;

  TextIterator() = default;  // the end
  explicit TextIterator(TextStream* stream) : stream_(stream) {}

  reference operator*() const { return stream_->Current(); }
  TextIterator& operator++() {
    stream_->Next();
    return *this;
  }
  // Only for comparison with the end.
  friend bool operator==(const TextIterator& a, const TextIterator& b) {
    return a.IsAtEnd() == b.IsAtEnd();
  }

 private:
  bool IsAtEnd() const { return stream_ == nullptr || stream_->AtEnd(); }

  TextStream* stream_ = nullptr;
};

}  // namespace rehearse

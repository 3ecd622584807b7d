#include "sim/report/timeline_file.h"

#include <array>
#include <filesystem>
#include <limits>

#include <fmt/format.h>

#include "sim/base/error.h"
#include "sim/base/gzip.h"
#include "sim/base/input_file.h"
#include "sim/base/json_parse.h"
#include "sim/base/text_stream.h"

namespace rehearse {
namespace {

// Copies the text, and follows it as far as is needed to know where /steps/N/spans begins. What is
// no JSON is copied too: whoever parses the rest will say what is wrong.
class SpanCutter {
 public:
  SpanCutter(TextStream* stream, const std::string& name) : stream_(*stream), name_(name) {}

  TimelineFile Cut() {
    StepSpans spans;
    while (!stream_.AtEnd()) {
      const char c = Take();
      if (c == '"') {
        TakeString();
      } else if (c == '/') {
        TakeComment();
      } else if (c == '{' || c == '[') {
        if (c == '{' && depth_ == 2 && is_in_steps_) spans.emplace_back();
        const bool is_spans = c == '[' && depth_ == 3 && is_in_steps_ && key_ == "spans";
        if (is_spans && !spans.empty()) {
          ReadSpans(&spans);
          text_ += ']';
        } else {
          if (depth_ == 1) is_in_steps_ = c == '[' && key_ == "steps";
          ++depth_;
        }
        key_.clear();
      } else if (c == '}' || c == ']') {
        --depth_;
      } else if (c == ':') {
        key_ = string_;
      }
    }
    return {name_, std::move(text_), std::move(spans)};
  }

 private:
  char Take() {
    const char c = Pass();
    if (text_.size() == kLargestJson)
      throw Error({name_, line_, ""}, "found more than 64 MiB beside the spans of a timeline");
    text_ += c;
    return c;
  }
  char Pass() {
    const char c = stream_.Current();
    stream_.Next();
    if (c == '\n') ++line_;
    return c;
  }

  void TakeString() {
    constexpr size_t kLongestKey = 16;  // that matters here
    string_.clear();
    while (!stream_.AtEnd()) {
      const char c = Take();
      if (c == '"') return;
      if (string_.size() < kLongestKey) string_ += c;
      if (c == '\\' && !stream_.AtEnd()) Take();
    }
  }

  void TakeComment() {
    if (stream_.AtEnd()) return;
    const char kind = Take();
    char before = ' ';
    while ((kind == '/' || kind == '*') && !stream_.AtEnd()) {
      const char c = Take();
      if (kind == '/' ? c == '\n' : before == '*' && c == '/') return;
      before = c;
    }
  }

  [[noreturn]] void FailIn(const StepSpans& spans, const std::string& what) const {
    throw Error(
        {name_, line_, fmt::format("/steps/{}/spans/{}", spans.size() - 1, spans.back().size())},
        what);
  }

  // The next character that is no space; it is not passed.
  char Seen(const StepSpans& spans) {
    while (!stream_.AtEnd()) {
      const char c = stream_.Current();
      if (c != ' ' && c != '\n' && c != '\t' && c != '\r') return c;
      Pass();
    }
    FailIn(spans, "the file ends in a list of spans; it may be truncated");
  }

  uint64_t Number(const StepSpans& spans, uint64_t most) {
    char c = Seen(spans);
    uint64_t number = 0;
    bool has_digit = false;
    while (c >= '0' && c <= '9') {
      const auto digit = static_cast<uint64_t>(c - '0');
      if (number > (most - digit) / 10)
        FailIn(spans, fmt::format("found a number beyond {}", most));
      number = number * 10 + digit;
      has_digit = true;
      Pass();
      c = stream_.AtEnd() ? ' ' : stream_.Current();
    }
    if (!has_digit) FailIn(spans, "expected [rank, op, ready, begin, end] as whole numbers");
    return number;
  }

  // From behind the opening bracket to behind the closing one.
  void ReadSpans(StepSpans* spans) {
    constexpr uint64_t kMostIndex = std::numeric_limits<uint32_t>::max();
    constexpr auto kLatest = static_cast<uint64_t>(Time::kBeyond - 1);
    const auto expect = [&](char expected) {
      if (Seen(*spans) != expected) FailIn(*spans, fmt::format("expected '{}'", expected));
      Pass();
    };
    if (Seen(*spans) == ']') {
      Pass();
      return;
    }
    while (true) {
      expect('[');
      std::array<uint64_t, 5> numbers = {};
      for (size_t i = 0; i < numbers.size(); ++i) {
        if (i > 0) expect(',');
        numbers[i] = Number(*spans, i < 2 ? kMostIndex : kLatest);
      }
      expect(']');
      if (++count_ > kMostSpans)
        FailIn(*spans, fmt::format("found more than {} spans", kMostSpans));
      const auto time = [&](size_t i) { return Time(static_cast<int64_t>(numbers[i])); };
      spans->back().push_back({static_cast<uint32_t>(numbers[0]), static_cast<uint32_t>(numbers[1]),
                               time(2), time(3), time(4)});
      if (Seen(*spans) == ']') break;
      expect(',');
    }
    Pass();
  }

  TextStream& stream_;
  const std::string& name_;
  int line_ = 1;
  std::string text_;
  int64_t depth_ = 0;
  bool is_in_steps_ = false;
  std::string string_;  // the latest, from its beginning
  std::string key_;     // of the value that comes next
  uint64_t count_ = 0;
};

bool IsLarge(const std::string& path, uint64_t small) {
  std::error_code fault;
  if (path == kStandardInput || !std::filesystem::is_regular_file(path, fault)) return false;
  const uint64_t size = std::filesystem::file_size(path, fault);
  // Spans shrink to a sixth, rarely to less than a twentieth.
  constexpr uint64_t kOften = 20;
  return !fault && size > (path.ends_with(".gz") ? small / kOften : small);
}

}  // namespace

TimelineFile ReadTimelineFile(const std::string& path, uint64_t small) {
  if (!IsLarge(path, small)) return {InputName(path), ReadJsonText(path), std::nullopt};
  TextStream stream(path);
  return SpanCutter(&stream, path).Cut();
}

}  // namespace rehearse

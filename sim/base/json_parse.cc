#include "sim/base/json_parse.h"

#include <algorithm>
#include <iterator>
#include <utility>
#include <vector>

#include <fmt/format.h>

#include "sim/base/gzip.h"
#include "sim/base/input_file.h"
#include "sim/base/input_record.h"
#include "sim/base/units.h"

namespace rehearse {

using nlohmann::json;

std::string ShortenedJson(const json& value) {
  constexpr size_t kLongest = 60;
  std::string text = value.dump(-1, ' ', false, json::error_handler_t::replace);
  if (text.size() <= kLongest) return text;
  size_t end = kLongest;
  while (end > 0 && (static_cast<unsigned char>(text[end]) & 0xC0) == 0x80) --end;
  return text.substr(0, end) + "...";
}

std::string QuotedJson(std::string_view text) { return ShortenedJson(json(std::string(text))); }

void AppendToPointer(std::string& pointer, std::string_view key) {
  pointer += '/';
  for (const char c : key) {
    if (c == '~')
      pointer += "~0";
    else if (c == '/')
      pointer += "~1";
    else
      pointer += c;
  }
}

int LineOf(const JsonLines& lines, std::string_view pointer) {
  while (true) {
    const auto found = lines.find(pointer);
    if (found != lines.end()) return found->second;
    CHECK(!pointer.empty());
    pointer = pointer.substr(0, pointer.rfind('/'));
  }
}

namespace {

constexpr size_t kLongestKey = 1000;
constexpr size_t kMostPointerBytes = size_t{256} << 20;  // so that long keys do not fill the memory

// How far the lexer has read.
struct Progress {
  const char* at = nullptr;
  int line = 1;
};

// Feeds the lexer and counts the lines; its copies share one Progress.
class CountingIterator {
 public:
  using iterator_category = std::input_iterator_tag;
  using value_type = char;
  using difference_type = std::ptrdiff_t;
  using pointer = const char*;
  using reference = const char&;

  CountingIterator(const char* at, Progress* progress) : at_(at), progress_(progress) {}

  reference operator*() const { return *at_; }
  CountingIterator& operator++() {
    if (*at_ == '\n') ++progress_->line;
    progress_->at = ++at_;
    return *this;
  }
  CountingIterator operator++(int) {
    CountingIterator before = *this;
    ++*this;
    return before;
  }
  friend bool operator==(const CountingIterator& a, const CountingIterator& b) {
    return a.at_ == b.at_;
  }

 private:
  const char* at_;
  Progress* progress_;
};

constexpr size_t kMostValues = 4'000'000;  // of a document of the usual size

// Builds the value and the lines from nlohmann's events, and turns its complaints into ours.
class Builder {
 public:
  Builder(std::string_view text, const std::string& name, InputSize size)
      : text_(text),
        name_(name),
        most_values_(kMostValues * (LargestInput(size) / LargestInput(InputSize::kUsual))) {
    progress_.at = text.data();
  }

  ParsedJson Parse(JsonComments comments) {
    const char* const end = text_.data() + text_.size();
    json::sax_parse(CountingIterator(text_.data(), &progress_), CountingIterator(end, &progress_),
                    this, json::input_format_t::json, /*strict=*/true,
                    comments == JsonComments::kAllowed);
    RefuseNulByte();
    return {std::move(value_), std::move(lines_)};
  }

  // The interface of json_sax.
  bool null() { return Add(nullptr); }
  bool boolean(bool value) { return Add(value); }
  bool number_integer(int64_t value) { return Add(value); }
  bool number_unsigned(uint64_t value) { return Add(value); }
  bool number_float(double value, const std::string& /*text*/) { return Add(value); }
  bool string(std::string& value) { return Add(std::move(value)); }
  bool binary(json::binary_t& /*value*/) { return false; }
  bool start_object(size_t /*size*/) { return Open(json::object()); }
  bool start_array(size_t /*size*/) { return Open(json::array()); }
  bool end_object() { return Close(); }
  bool end_array() { return Close(); }
  bool key(std::string& key) {
    Frame& frame = frames_.back();
    pointer_.resize(frame.pointer_length);
    if (key.size() > kLongestKey)
      throw Error(Here(), fmt::format("found a key of {} bytes, expected at most {}", key.size(),
                                      kLongestKey));
    if (frame.value->contains(key)) {
      std::string first = pointer_;
      AppendToPointer(first, key);
      throw Error(Here(), fmt::format("key {} appears twice, first in line {}", QuotedJson(key),
                                      LineOf(lines_, first)));
    }
    AppendToPointer(pointer_, key);
    frame.key = std::move(key);
    return true;
  }
  bool parse_error(size_t position, const std::string& token, const json::exception& complaint);

 private:
  struct Frame {
    json* value;
    size_t pointer_length;
    int line;
    std::string key;  // of the member that comes next, in an object
  };

  // The lexer has read the character after a number, which may be the end of the line.
  int Line() const {
    const bool is_line_end = progress_.at != text_.data() && progress_.at[-1] == '\n';
    return progress_.line - (is_line_end ? 1 : 0);
  }
  Place Here() const {
    const size_t length = frames_.empty() ? 0 : frames_.back().pointer_length;
    return {name_, Line(), pointer_.substr(0, length)};
  }

  json* Insert(json value) {
    if (++count_ > most_values_)
      throw Error(Here(), fmt::format("found more than {} values", most_values_));
    const int line = Line();
    if (frames_.empty()) {
      value_ = std::move(value);
      lines_.emplace("", line);
      return &value_;
    }
    Frame& frame = frames_.back();
    json* inserted = nullptr;
    if (frame.value->is_array()) {
      pointer_.resize(frame.pointer_length);
      pointer_ += '/';
      pointer_ += std::to_string(frame.value->size());
      frame.value->push_back(std::move(value));
      inserted = &frame.value->back();
    } else {
      inserted = &((*frame.value)[frame.key] = std::move(value));
    }
    if (line != frame.line) {
      lines_.emplace(pointer_, line);
      pointer_bytes_ += pointer_.size();
      if (pointer_bytes_ > kMostPointerBytes)
        throw Error(Here(), "found too many long keys inside each other");
    }
    return inserted;
  }
  bool Add(json value) {
    Insert(std::move(value));
    return true;
  }
  bool Open(json empty) {
    has_begun_ = true;
    if (frames_.size() == kDeepestJson)
      throw Error({name_, Line(), ""},
                  fmt::format("found more than {} levels of nesting", kDeepestJson));
    json* const container = Insert(std::move(empty));
    frames_.push_back({container, pointer_.size(), Line(), ""});
    return true;
  }
  bool Close() {
    frames_.pop_back();
    return true;
  }

  // nlohmann takes a NUL byte to be the end of the text.
  void RefuseNulByte() const {
    if (progress_.at != text_.data() && progress_.at[-1] == '\0')
      throw JsonSyntaxError(Here(), "found a NUL byte, expected a text in JSON");
  }

  std::string_view text_;
  const std::string& name_;
  Progress progress_;
  json value_;
  JsonLines lines_;
  std::string pointer_;  // of the latest value or key
  std::vector<Frame> frames_;
  const size_t most_values_;
  size_t count_ = 0;
  size_t pointer_bytes_ = 0;  // in lines_
  bool has_begun_ = false;    // an object or array: it is JSON, perhaps with a mistake
};

// The word of the text around the position of a bad token: to the next space, bracket,
// quote or comma.
std::string_view WordAt(std::string_view text, size_t at) {
  constexpr std::string_view kNoWord = " \t\r\n[]{},:\"";
  const auto is_word = [&](size_t i) { return kNoWord.find(text[i]) == std::string_view::npos; };
  size_t begin = at;
  while (begin > 0 && is_word(begin - 1)) --begin;
  size_t end = at;
  while (end < text.size() && is_word(end)) ++end;
  return begin < end ? text.substr(begin, end - begin) : text.substr(at, 1);
}

// For a text that may be anything, such as a file of secrets that a scenario names by mistake: says
// what kind of character stands there, not which.
std::string KindOf(char c) {
  const auto byte = static_cast<unsigned char>(c);
  if (byte <= ' ' || byte >= 0x7f) return fmt::format("the byte 0x{:02x}", byte);
  if (c >= '0' && c <= '9') return "a digit";
  const bool is_letter = (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z');
  return is_letter ? "a letter" : fmt::format("'{}'", c);
}

// What nlohmann says about a bad string, in the words of a person who wrote a file.
std::string StringFault(std::string_view complaint) {
  const auto has = [&](const char* part) { return complaint.find(part) != std::string_view::npos; };
  if (has("UTF-8")) return "found bytes that are not UTF-8, expected a text in UTF-8";
  if (has("U+000A") || has("U+000D"))
    return "found the end of the line inside a string, expected its closing quote";
  if (has("control character"))
    return "found a control character inside a string, expected it escaped (\\t is a tab)";
  if (has("backslash"))
    return "found an unknown escape inside a string, expected \\\\ for a backslash";
  return "found a bad \\u escape inside a string, expected four hexadecimal digits, twice for a "
         "character beyond U+FFFF";
}

// nlohmann's message reads "... while parsing <context> - <fault>; expected <token>".
bool Builder::parse_error(size_t /*position*/, const std::string& token,
                          const json::exception& complaint) {
  RefuseNulByte();
  constexpr int kNumberOverflow = 406;
  if (complaint.id == kNumberOverflow)
    throw JsonSyntaxError(Here(), fmt::format("found {}, expected a number below 1.8e308", token));

  constexpr std::string_view kWhile = "while parsing ";
  std::string_view message = complaint.what();
  const size_t start = message.find(kWhile);
  CHECK(start != std::string_view::npos);
  message.remove_prefix(start + kWhile.size());
  const size_t dash = message.find(" - ");
  CHECK(dash != std::string_view::npos);
  const std::string_view context = message.substr(0, dash);
  const std::string_view fault = message.substr(dash + 3);

  std::string expected = "a value";
  if (context == "object key")
    expected = "a key in double quotes";
  else if (context == "object separator")
    expected = "':' after the key";
  else if (context == "object")
    expected = "',' or '}'";
  else if (context == "array")
    expected = "',' or ']'";
  else if (fault.ends_with("expected end of input"))
    expected = "nothing after the end of the document";

  const auto fail = [&](const std::string& text) { throw JsonSyntaxError(Here(), text); };
  const bool at_end = progress_.at == text_.data() + text_.size();
  if (fault.starts_with("unexpected end of input") ||
      fault.starts_with("invalid string: missing closing") ||
      fault.starts_with("invalid comment; missing closing")) {
    CHECK(at_end);
    std::string inside;
    if (fault.starts_with("invalid string")) inside = "a string";
    if (fault.starts_with("invalid comment")) inside = "a comment";
    if (frames_.empty() && inside.empty()) fail("found no JSON, expected a value");
    if (!frames_.empty())
      inside += fmt::format("{}{} that begins in line {}", inside.empty() ? "" : " in ",
                            frames_.back().value->is_array() ? "an array" : "an object",
                            frames_.back().line);
    fail(fmt::format("the text ends inside {}; it may be truncated", inside));
  }
  if (fault.starts_with("invalid string")) fail(StringFault(fault));
  if (fault.starts_with("invalid comment"))
    fail("found a single '/', expected a comment such as // or /* */");
  if (fault.starts_with("invalid BOM")) fail("found a broken byte order mark, expected UTF-8");

  // The library's token is sure to begin where the value does only for a string or a number.
  const auto consumed = static_cast<size_t>(progress_.at - text_.data());
  const size_t last = consumed == 0 ? 0 : consumed - 1;
  std::string_view found = WordAt(text_, last);
  if (fault.starts_with("unexpected '")) found = text_.substr(last, 1);
  if (fault.starts_with("unexpected number") || fault.starts_with("unexpected string"))
    found = token;
  if (!has_begun_)
    fail(fmt::format("found not JSON but a text with {}, expected {}", KindOf(found.front()),
                     expected));
  if (fault.starts_with("invalid number")) expected = "a number";
  fail(fmt::format("found {}, expected {}", QuotedJson(found), expected));
  return false;
}

void RefuseTooLarge(uintmax_t size, const std::string& name, InputSize input) {
  const size_t largest = LargestInput(input);
  if (size > largest)
    throw Error({name, 0, ""}, fmt::format("found more than {}, the largest JSON text that is read",
                                           Print(Bytes(static_cast<double>(largest)))));
}

// The text with quotes around NaN, Infinity and -Infinity where they stand for a value.
std::string WithPythonsNumbersQuoted(std::string_view text) {
  constexpr std::string_view kWords[] = {"NaN", "Infinity", "-Infinity"};
  std::string quoted;
  for (size_t at = 0; at < text.size();) {
    size_t end =
        at + 1;  // of what is taken over as it stands: a string, a comment, or one character
    if (text[at] == '"') {
      while (end < text.size() && text[end] != '"') end += text[end] == '\\' ? 2 : 1;
      ++end;
    } else if (text.substr(at, 2) == "//") {
      end = text.find('\n', at);
    } else if (text.substr(at, 2) == "/*") {
      end = text.find("*/", at);
    } else if (const std::string_view word = WordAt(text, at);
               word.data() == text.data() + at &&
               std::find(std::begin(kWords), std::end(kWords), word) != std::end(kWords)) {
      quoted += fmt::format("\"{}\"", word);
      at += word.size();
      continue;
    }
    end = std::min(end, text.size());
    quoted += text.substr(at, end - at);
    at = end;
  }
  return quoted;
}

}  // namespace

ParsedJson ParseJson(std::string_view text, const std::string& name, JsonComments comments,
                     InputSize size, JsonNumbers numbers) {
  RefuseTooLarge(text.size(), name, size);
  if (numbers == JsonNumbers::kOfJson) return Builder(text, name, size).Parse(comments);
  const std::string quoted = WithPythonsNumbersQuoted(text);
  return Builder(quoted, name, size).Parse(comments);
}

std::string ReadJsonText(const std::string& path, const ReadOptions& options) {
  std::string text = ReadInputFile(path, "JSON file", options);
  if (IsGzip(text)) {
    try {
      text = Gunzip(text, LargestInput(options.size));
    } catch (const Error& error) {
      throw Error({InputName(path), 0, ""}, error.what());
    }
  }
  if (options.record != nullptr) options.record->NoteFile(path, text);
  return text;
}

}  // namespace rehearse

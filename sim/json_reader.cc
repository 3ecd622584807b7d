#include "sim/json_reader.h"

#include <algorithm>
#include <cerrno>
#include <charconv>
#include <cmath>
#include <cstdio>
#include <filesystem>
#include <iterator>
#include <limits>
#include <memory>
#include <optional>
#include <system_error>

#include <fmt/format.h>

#include "sim/units.h"

namespace rehearse {
namespace {

using nlohmann::json;

constexpr size_t kDeepest = 64;
constexpr size_t kLargest = size_t{64} << 20;
constexpr size_t kMostValues = 4'000'000;
constexpr size_t kLongestKey = 1000;
constexpr size_t kMostPointerBytes = size_t{256} << 20;  // so that long keys do not fill the memory
constexpr const char* kSetFile = "--set";
constexpr int kSetLine = 0;

// ---- Words ----------------------------------------------------------------------------------------

// Dumps as JSON, so that control characters are escaped, cut between two characters.
std::string Shortened(const json& value) {
  constexpr size_t kLongest = 60;
  std::string text = value.dump(-1, ' ', false, json::error_handler_t::replace);
  if (text.size() <= kLongest) return text;
  size_t end = kLongest;
  while (end > 0 && (static_cast<unsigned char>(text[end]) & 0xC0) == 0x80) --end;
  return text.substr(0, end) + "...";
}

std::string Quoted(std::string_view text) { return Shortened(json(std::string(text))); }

std::string ListOf(const std::vector<std::string>& names, const std::string& last_separator) {
  std::string text;
  for (size_t i = 0; i < names.size(); ++i) {
    if (i > 0) text += i + 1 == names.size() ? last_separator : ", ";
    text += Quoted(names[i]);
  }
  return text;
}

template <typename T>
std::string WithRange(const char* what, T minimum, T maximum) {
  const bool from_below = minimum <= std::numeric_limits<T>::lowest();
  const bool to_above = maximum >= std::numeric_limits<T>::max();
  if (from_below && to_above) return what;
  if (to_above) return fmt::format("{} of at least {}", what, minimum);
  if (from_below) return fmt::format("{} of at most {}", what, maximum);
  return fmt::format("{} from {} to {}", what, minimum, maximum);
}

// ---- Pointers -------------------------------------------------------------------------------------

// RFC 6901: "~" is written "~0" and "/" is written "~1".
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

using Lines = std::map<std::string, int, std::less<>>;

// The line of the value itself or of the innermost listed value around it.
int LineOf(const Lines& lines, std::string_view pointer) {
  while (true) {
    const auto found = lines.find(pointer);
    if (found != lines.end()) return found->second;
    CHECK(!pointer.empty());
    pointer = pointer.substr(0, pointer.rfind('/'));
  }
}

// ---- Parsing --------------------------------------------------------------------------------------

// The text is not JSON, as against JSON that we refuse.
class SyntaxError : public Error {
 public:
  using Error::Error;
};

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

// Builds the value and the lines from nlohmann's events, and turns its complaints into ours.
class Builder {
 public:
  Builder(std::string_view text, const std::string& name) : text_(text), name_(name) {
    progress_.at = text.data();
  }

  void Parse(bool allow_comments) {
    const char* const end = text_.data() + text_.size();
    json::sax_parse(CountingIterator(text_.data(), &progress_), CountingIterator(end, &progress_),
                    this, json::input_format_t::json, /*strict=*/true, allow_comments);
    RefuseNulByte();
  }

  json TakeValue() { return std::move(value_); }
  Lines TakeLines() { return std::move(lines_); }

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
      throw Error(Here(), fmt::format("key {} appears twice, first in line {}", Quoted(key),
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

  // The lexer has read the character behind a number, and with it perhaps the end of the line.
  int Line() const {
    const bool is_line_end = progress_.at != text_.data() && progress_.at[-1] == '\n';
    return progress_.line - (is_line_end ? 1 : 0);
  }
  Place Here() const {
    const size_t length = frames_.empty() ? 0 : frames_.back().pointer_length;
    return {name_, Line(), pointer_.substr(0, length)};
  }

  json* Insert(json value) {
    if (++count_ > kMostValues)
      throw Error(Here(), fmt::format("found more than {} values", kMostValues));
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
    if (frames_.size() == kDeepest)
      throw Error({name_, Line(), ""},
                  fmt::format("found more than {} levels of nesting", kDeepest));
    json* const container = Insert(std::move(empty));
    frames_.push_back({container, pointer_.size(), Line(), ""});
    return true;
  }
  bool Close() {
    frames_.pop_back();
    return true;
  }

  // nlohmann takes a NUL byte for the end of the text.
  void RefuseNulByte() const {
    if (progress_.at != text_.data() && progress_.at[-1] == '\0')
      throw SyntaxError(Here(), "found a NUL byte, expected a text in JSON");
  }

  std::string_view text_;
  const std::string& name_;
  Progress progress_;
  json value_;
  Lines lines_;
  std::string pointer_;  // of the latest value or key
  std::vector<Frame> frames_;
  size_t count_ = 0;
  size_t pointer_bytes_ = 0;  // in lines_
};

// The word of the text around the position of a bad token: to the next space, bracket, quote or comma.
std::string_view WordAt(std::string_view text, size_t at) {
  constexpr std::string_view kNoWord = " \t\r\n[]{},:\"";
  const auto is_word = [&](size_t i) { return kNoWord.find(text[i]) == std::string_view::npos; };
  size_t begin = at;
  while (begin > 0 && is_word(begin - 1)) --begin;
  size_t end = at;
  while (end < text.size() && is_word(end)) ++end;
  return begin < end ? text.substr(begin, end - begin) : text.substr(at, 1);
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
    throw SyntaxError(Here(), fmt::format("found {}, expected a number below 1.8e308", token));

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

  const auto fail = [&](const std::string& text) { throw SyntaxError(Here(), text); };
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

  // Of the library's token only a string or a number is sure to begin where the token does.
  const auto consumed = static_cast<size_t>(progress_.at - text_.data());
  const size_t last = consumed == 0 ? 0 : consumed - 1;
  std::string_view found = WordAt(text_, last);
  if (fault.starts_with("unexpected '")) found = text_.substr(last, 1);
  if (fault.starts_with("unexpected number") || fault.starts_with("unexpected string"))
    found = token;
  if (fault.starts_with("invalid number")) expected = "a number";
  fail(fmt::format("found {}, expected {}", Quoted(found), expected));
  return false;
}

void RefuseTooLarge(uintmax_t size, const std::string& name) {
  if (size > kLargest)
    throw Error({name, 0, ""},
                fmt::format("found more than {}, which is the largest JSON text that "
                            "is read",
                            Print(Bytes(static_cast<double>(kLargest)))));
}

std::string ReadFile(const std::string& path) {
  const Place place{path, 0, ""};
  const auto fail = [&](int reason) {
    throw Error(place, "cannot be read: " + std::generic_category().message(reason));
  };
  std::error_code fault;
  const std::filesystem::file_status status = std::filesystem::status(path, fault);
  if (fault) fail(fault.value());
  if (std::filesystem::is_directory(status))
    throw Error(place, "found a directory, expected a JSON file");
  if (std::filesystem::is_regular_file(status)) {
    const uintmax_t size = std::filesystem::file_size(path, fault);
    if (!fault) RefuseTooLarge(size, path);
  }

  // A pipe has no size: read at most one byte too many.
  const std::unique_ptr<FILE, int (*)(FILE*)> file(std::fopen(path.c_str(), "rb"), &std::fclose);
  if (file == nullptr) fail(errno);
  std::string text;
  constexpr size_t kChunk = size_t{1} << 20;
  while (text.size() <= kLargest) {
    const size_t old_size = text.size();
    text.resize(old_size + kChunk);
    text.resize(old_size + std::fread(&text[old_size], 1, kChunk, file.get()));
    if (std::ferror(file.get()) != 0) fail(errno);
    if (text.size() == old_size) break;
  }
  return text;
}

// The value of `--set path=text`: JSON if it is JSON, else a string.
json ValueOf(std::string_view text) {
  const std::string name = kSetFile;
  try {
    RefuseTooLarge(text.size(), name);
    Builder builder(text, name);
    builder.Parse(/*allow_comments=*/false);
    return builder.TakeValue();
  } catch (const SyntaxError&) {
    return std::string(text);
  }
}

bool IsUtf8(std::string_view text) {
  try {
    json(std::string(text)).dump();
    return true;
  } catch (const json::type_error&) {
    return false;
  }
}

}  // namespace

// ---- JsonDocument -----------------------------------------------------------------------------------

JsonDocument JsonDocument::FromFile(const std::string& path) {
  return FromText(ReadFile(path), path);
}

JsonDocument JsonDocument::FromText(std::string_view text, const std::string& name) {
  RefuseTooLarge(text.size(), name);
  Builder builder(text, name);
  builder.Parse(/*allow_comments=*/true);
  JsonDocument document;
  document.name_ = name;
  document.value_ = builder.TakeValue();
  document.lines_ = builder.TakeLines();
  return document;
}

void JsonDocument::Set(std::string_view assignment) {
  const Place place{kSetFile, 0, ""};
  const size_t equals = assignment.find('=');
  if (equals == std::string_view::npos || equals == 0)
    throw Error(place, fmt::format("found {}, expected path=value such as cluster.nodes=8",
                                   Quoted(assignment)));
  if (!IsUtf8(assignment))
    throw Error(place, fmt::format("found {}, expected a text in UTF-8", Quoted(assignment)));
  json value = ValueOf(assignment.substr(equals + 1));

  std::vector<std::string> keys;
  std::string_view path = assignment.substr(0, equals);
  for (bool more = true; more;) {
    const size_t dot = path.find('.');
    more = dot != std::string_view::npos;
    keys.emplace_back(path.substr(0, dot));
    if (more) path.remove_prefix(dot + 1);
    if (keys.back().empty())
      throw Error(place, fmt::format("found an empty name in the path of {}, expected a path such "
                                     "as cluster.nodes",
                                     Quoted(assignment)));
  }
  if (keys.size() > kDeepest)
    throw Error(
        place, fmt::format("found a path of {} names, expected at most {}", keys.size(), kDeepest));

  json* target = &value_;
  std::string pointer;
  for (size_t i = 0; i < keys.size(); ++i) {
    const std::string& key = keys[i];
    const auto fail = [&](const std::string& expected) {
      throw Error({kSetFile, 0, pointer},
                  fmt::format("found {}, expected {} (to set {})", Shortened(*target), expected,
                              Quoted(assignment)));
    };
    if (target->is_array()) {
      size_t index = 0;
      const char* const end = key.data() + key.size();
      const auto [stop, fault] = std::from_chars(key.data(), end, index);
      if (fault != std::errc() || stop != end || index >= target->size())
        fail(target->empty() ? "elements"
                             : fmt::format("an index from 0 to {} instead of {}",
                                           target->size() - 1, Quoted(key)));
      target = &(*target)[index];
      // "01" and "1" are one element.
      AppendToPointer(pointer, std::to_string(index));
    } else if (target->is_object()) {
      const bool is_new = !target->contains(key);
      target = &(*target)[key];
      AppendToPointer(pointer, key);
      if (is_new && i + 1 < keys.size()) {
        *target = json::object();
        lines_[pointer] = kSetLine;
      }
    } else {
      fail(fmt::format("an object with a key {}", Quoted(key)));
    }
  }
  *target = std::move(value);
  // Forget what was below; '0' follows '/' in ASCII.
  lines_.erase(lines_.lower_bound(pointer + "/"), lines_.lower_bound(pointer + "0"));
  lines_[pointer] = kSetLine;
}

JsonReader JsonDocument::Root() const {
  JsonReader root;
  root.document_ = this;
  root.value_ = &value_;
  return root;
}

// ---- JsonReader -------------------------------------------------------------------------------------

Place JsonReader::place() const {
  const int line = LineOf(document_->lines_, pointer_);
  if (line == kSetLine) return {kSetFile, 0, pointer_};
  return {document_->name_, line, pointer_};
}

void JsonReader::Expected(const std::string& expected) const {
  Fail(fmt::format("found {}, expected {}", Shortened(*value_), expected));
}

void JsonReader::Fail(const std::string& message) const { throw Error(place(), message); }

void JsonReader::AllowKeys(const std::vector<std::string>& keys) const {
  for (const auto& [key, member] : Members()) {
    if (std::find(keys.begin(), keys.end(), key) != keys.end()) continue;
    Place here = member.place();  // the line of the key, but the object that has it
    here.pointer = pointer_;
    std::string hint = DidYouMean(key, keys);
    if (hint.empty() && keys.empty()) hint = "; no key is allowed here";
    if (hint.empty()) hint = "; allowed are " + ListOf(keys, " and ");
    throw Error(here, fmt::format("unknown key {}{}", Quoted(key), hint));
  }
}

bool JsonReader::Has(const std::string& key) const {
  if (!IsObject()) Expected("an object");
  return value_->contains(key);
}

JsonReader JsonReader::At(const std::string& key) const {
  if (!Has(key)) Fail(fmt::format("missing key {}", Quoted(key)));
  JsonReader member = *this;
  member.value_ = &(*value_)[key];
  AppendToPointer(member.pointer_, key);
  return member;
}

std::vector<std::pair<std::string, JsonReader>> JsonReader::Members() const {
  if (!IsObject()) Expected("an object");
  std::vector<std::pair<std::string, JsonReader>> members;
  for (const auto& [key, value] : value_->items()) members.emplace_back(key, At(key));
  return members;
}

std::vector<JsonReader> JsonReader::Elements() const {
  if (!IsArray()) Expected("an array");
  std::vector<JsonReader> elements;
  for (size_t i = 0; i < value_->size(); ++i) {
    JsonReader element = *this;
    element.value_ = &(*value_)[i];
    AppendToPointer(element.pointer_, std::to_string(i));
    elements.push_back(std::move(element));
  }
  return elements;
}

std::string JsonReader::String() const {
  if (!IsString()) Expected("a string");
  return value_->get<std::string>();
}

bool JsonReader::Bool() const {
  if (!value_->is_boolean()) Expected("true or false");
  return value_->get<bool>();
}

int64_t JsonReader::Integer(int64_t minimum, int64_t maximum) const {
  // 1e3 and 12.0 are whole numbers too.
  constexpr double kRange = 9223372036854775808.0;  // of int64_t
  std::optional<int64_t> integer;
  if (value_->is_number_float()) {
    const double number = value_->get<double>();
    if (std::trunc(number) == number && number >= -kRange && number < kRange)
      integer = static_cast<int64_t>(number);
  } else if (value_->is_number_unsigned()) {
    const auto number = value_->get<uint64_t>();
    if (number <= uint64_t{std::numeric_limits<int64_t>::max()})
      integer = static_cast<int64_t>(number);
    else
      Expected("a whole number below 2^63");
  } else if (value_->is_number_integer()) {
    integer = value_->get<int64_t>();
  }
  if (!integer || *integer < minimum || *integer > maximum)
    Expected(WithRange("a whole number", minimum, maximum));
  return *integer;
}

double JsonReader::Number(double minimum, double maximum) const {
  if (!value_->is_number()) Expected(WithRange("a number", minimum, maximum));
  const auto number = value_->get<double>();
  if (!(number >= minimum && number <= maximum)) Expected(WithRange("a number", minimum, maximum));
  return number;
}

namespace {

template <typename Parse>
auto ReadUnit(const JsonReader& reader, Parse parse, const char* expected) {
  if (!reader.IsString()) reader.Expected(expected);
  try {
    return parse(reader.value().get_ref<const std::string&>());
  } catch (const Error& error) {
    reader.Fail(error.what());
  }
}

}  // namespace

BytesPerSecond JsonReader::Bandwidth() const {
  return ReadUnit(*this, ParseBandwidth, "a bandwidth with its unit such as \"25GBps\"");
}
Seconds JsonReader::Duration() const {
  return ReadUnit(*this, ParseDuration, "a time with its unit such as \"1.5us\"");
}
Bytes JsonReader::Size() const {
  return ReadUnit(*this, ParseSize, "a size with its unit such as \"40GiB\"");
}
FlopsPerSecond JsonReader::FlopRate() const {
  return ReadUnit(*this, ParseFlopRate,
                  "a rate of computation with its unit such as \"312TFLOPS\"");
}

size_t JsonReader::Choice(const std::vector<std::string>& names) const {
  const std::string expected = ListOf(names, " or ");
  if (!IsString()) Expected(expected);
  const auto found = std::find(names.begin(), names.end(), value_->get_ref<const std::string&>());
  if (found == names.end()) Expected(expected + DidYouMean(String(), names));
  return static_cast<size_t>(found - names.begin());
}

}  // namespace rehearse

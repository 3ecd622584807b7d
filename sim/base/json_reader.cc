#include "sim/base/json_reader.h"

#include <algorithm>
#include <cmath>
#include <limits>
#include <optional>

#include <fmt/format.h>
#include <nlohmann/json.hpp>

#include "sim/base/json_document.h"
#include "sim/base/units.h"

namespace rehearse {
namespace {

std::string ListOf(const std::vector<std::string>& names, const std::string& last_separator) {
  std::string text;
  for (size_t i = 0; i < names.size(); ++i) {
    if (i > 0) text += i + 1 == names.size() ? last_separator : ", ";
    text += QuotedJson(names[i]);
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

}  // namespace

JsonReader JsonDocument::Root() const {
  JsonReader root;
  root.document_ = this;
  root.value_ = &value_;
  return root;
}

Place JsonReader::place() const {
  const int line = LineOf(document_->lines_, pointer_);
  if (line == kJsonSetLine) return {kJsonSetFile, 0, pointer_};
  return {document_->name_, line, pointer_};
}

void JsonReader::Expected(const std::string& expected) const {
  Fail(fmt::format("found {}, expected {}", ShortenedJson(*value_), expected));
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
    throw Error(here, fmt::format("unknown key {}{}", QuotedJson(key), hint));
  }
}

bool JsonReader::IsObject() const { return value_->is_object(); }

bool JsonReader::IsArray() const { return value_->is_array(); }

bool JsonReader::IsString() const { return value_->is_string(); }

bool JsonReader::Has(const std::string& key) const {
  if (!IsObject()) Expected("an object");
  return value_->contains(key);
}

JsonReader JsonReader::At(const std::string& key) const {
  if (!Has(key)) Fail(fmt::format("missing key {}", QuotedJson(key)));
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
Flops JsonReader::FlopCount() const {
  return ReadUnit(*this, ParseFlops, "a number of operations with its unit such as \"1.5TFLOP\"");
}

size_t JsonReader::Choice(const std::vector<std::string>& names) const {
  const std::string expected = ListOf(names, " or ");
  if (!IsString()) Expected(expected);
  const auto found = std::find(names.begin(), names.end(), value_->get_ref<const std::string&>());
  if (found == names.end()) {
    const std::string hint = DidYouMean(String(), names);
    if (hint.empty()) Expected(expected);
    Fail(fmt::format("found {}{} Expected {}", ShortenedJson(*value_), hint, expected));
  }
  return static_cast<size_t>(found - names.begin());
}

}  // namespace rehearse

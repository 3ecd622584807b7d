#include "sim/base/json_reader.h"

#include <algorithm>
#include <cmath>
#include <filesystem>
#include <limits>
#include <optional>

#include <fmt/format.h>
#include <nlohmann/json.hpp>

#include "sim/base/input_file.h"
#include "sim/base/input_record.h"
#include "sim/base/json_document.h"
#include "sim/base/known_names.h"
#include "sim/base/units.h"

namespace rehearse {

JsonReader JsonDocument::Root() const {
  JsonReader root;
  root.document_ = this;
  root.value_ = &value_;
  return root;
}

Place JsonReader::place() const { return document_->PlaceOf(pointer_); }

void JsonReader::Expected(const std::string& expected) const {
  Fail(fmt::format("found {}, expected {}", ShortenedJson(*value_), expected));
}

void JsonReader::Fail(const std::string& message) const { throw Error(place(), message); }

void JsonReader::AllowKeys(const std::vector<std::string>& keys) const {
  for (const auto& [key, member] : Members()) {
    if (std::find(keys.begin(), keys.end(), key) != keys.end()) continue;
    Place here = member.place();  // the line of the key, but the pointer of the object that has it
    here.pointer.resize(here.pointer.rfind('/'));
    std::string hint = DidYouMean(key, keys);
    if (hint.empty() && keys.empty()) hint = "; no key is allowed here";
    if (hint.empty()) hint = "; allowed are " + QuotedList(keys, " and ");
    throw Error(here, fmt::format("unknown key {}{}", QuotedJson(key), hint));
  }
}

bool JsonReader::IsObject() const { return value_->is_object(); }

bool JsonReader::IsArray() const { return value_->is_array(); }

bool JsonReader::IsString() const { return value_->is_string(); }

JsonReader JsonReader::As(const ObjectShape& shape, std::string_view variant) const {
  if (!IsObject()) Expected("an object");
  for (const auto& [key, value] : value_->items()) {
    const JsonKey* const row = shape.Find(key);
    if (row == nullptr || (!row->only.empty() && row->only != variant))
      AllowKeys(shape.KeysOf(variant));  // which says what is wrong
  }
  JsonReader object = *this;
  object.table_ = &shape;
  return object;
}

bool JsonReader::Has(const std::string& key) const {
  if (!IsObject()) Expected("an object");
  CHECK(table_ == nullptr || table_->Find(key) != nullptr);
  return value_->contains(key);
}

namespace {

// What a table says about the members of an object whose keys the user chooses.
const JsonShape* ShapeOfNamed(const JsonShape* shape) {
  const bool is_named = shape != nullptr && shape->type == JsonType::kNamed;
  return is_named ? &shape->parts.front() : nullptr;
}

}  // namespace

JsonReader JsonReader::At(const std::string& key) const {
  const bool is_there = Has(key);
  const JsonKey* const row = table_ != nullptr ? table_->Find(key) : nullptr;
  if (!is_there && (row == nullptr || row->presence.value == nullptr))
    Fail(fmt::format("missing key {}", QuotedJson(key)));
  JsonReader member = *this;
  member.value_ = is_there ? &(*value_)[key] : row->presence.value.get();
  member.shape_ = row != nullptr ? &row->shape : ShapeOfNamed(shape_);
  member.table_ = nullptr;
  AppendToPointer(member.pointer_, key);
  return member;
}

std::vector<std::pair<std::string, JsonReader>> JsonReader::Members() const {
  if (!IsObject()) Expected("an object");
  std::vector<std::pair<std::string, JsonReader>> members;
  for (const auto& [key, value] : value_->items()) members.emplace_back(key, At(key));
  return members;
}

namespace {

// What a table says about an array's element, where the list may be one of several shapes.
const JsonShape* PartOf(const JsonShape* shape, size_t element) {
  if (shape == nullptr) return nullptr;
  if (shape->type == JsonType::kList) return &shape->parts.front();
  if (shape->type == JsonType::kTuple && element < shape->parts.size())
    return &shape->parts[element];
  if (shape->type != JsonType::kEither) return nullptr;
  for (const JsonShape& part : shape->parts) {
    if (const JsonShape* const found = PartOf(&part, element)) return found;
  }
  return nullptr;
}

}  // namespace

std::vector<JsonReader> JsonReader::Elements() const {
  if (!IsArray()) Expected("an array");
  std::vector<JsonReader> elements;
  for (size_t i = 0; i < value_->size(); ++i) {
    JsonReader element = *this;
    element.value_ = &(*value_)[i];
    element.shape_ = PartOf(shape_, i);
    element.table_ = nullptr;
    AppendToPointer(element.pointer_, std::to_string(i));
    elements.push_back(std::move(element));
  }
  return elements;
}

const std::string& JsonReader::Text() const {
  if (!IsString()) Expected("a string");
  return value_->get_ref<const std::string&>();
}

std::string JsonReader::String() const {
  RefuseChanges();
  return Text();
}

bool JsonReader::HasChanges() const { return document_->deferred_.count(pointer_) > 0; }

void JsonReader::RefuseChanges() const {
  const auto found = document_->deferred_.find(pointer_);
  if (found == document_->deferred_.end()) return;
  const auto& [assignment, rest, by] = found->second.front();
  const std::string key = assignment.substr(rest, assignment.find_first_of(".=", rest) - rest);
  throw Error(by, fmt::format("found {}, expected an object with a key {} (to set {})",
                              ShortenedJson(*value_), QuotedJson(key), QuotedJson(assignment)));
}

const ReadOptions& JsonReader::FilesOfDocument() const { return document_->files_; }

std::string JsonReader::PathTo(const std::string& path) const {
  std::string there = (std::filesystem::path(place().file).parent_path() / path).string();
  if (!InputExists(there, FilesOfDocument())) Fail(fmt::format("there is no file \"{}\"", there));
  return there;
}

JsonDocument JsonReader::Open(const std::string& path, InputSize size, JsonNumbers numbers) const {
  ReadOptions options = FilesOfDocument();
  options.size = size;
  options.numbers = numbers;
  return JsonDocument::FromFile(PathTo(path), options);
}

NamedText JsonReader::OpenText(const std::string& kind) const {
  const std::string there = PathTo(String());
  NamedText file = {there, ReadInputFile(there, kind, FilesOfDocument())};
  if (FilesOfDocument().record != nullptr) FilesOfDocument().record->NoteFile(there, file.text);
  return file;
}

void JsonReader::Change(JsonDocument* named, const std::vector<std::string>& changes) const {
  InputRecord* const record = FilesOfDocument().record.get();
  for (const std::string& change : changes) named->Set(change, place());
  const auto found = document_->deferred_.find(pointer_);
  if (found != document_->deferred_.end())
    for (const auto& [assignment, rest, by] : found->second) {
      named->Set(std::string_view(assignment).substr(rest), by);
      // The value in this document does not show it.
      if (record != nullptr) record->NoteFile(by.file, assignment);
    }
  if (record == nullptr) return;
  record->changes.insert(record->changes.end(), named->changes().begin(), named->changes().end());
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
    Expected(InRange("a whole number", minimum, maximum));
  return *integer;
}

int64_t JsonReader::Integer() const {
  const JsonShape& shape = ShapeOf(JsonType::kWhole);
  return Integer(shape.least, shape.most);
}

namespace {

double NumberWithin(const JsonReader& reader, double minimum, double maximum, bool above) {
  const double number = reader.value().is_number() ? reader.value().get<double>()
                                                   : std::numeric_limits<double>::quiet_NaN();
  if (!(number >= minimum && number <= maximum) || (above && number == minimum))
    reader.Expected(InRange("a number", minimum, maximum, above));
  return number;
}

}  // namespace

double JsonReader::Number(double minimum, double maximum) const {
  return NumberWithin(*this, minimum, maximum, false);
}

double JsonReader::Number() const {
  const JsonShape& shape = ShapeOf(JsonType::kNumber);
  return NumberWithin(*this, shape.lowest, shape.highest, shape.above_lowest);
}

namespace {

template <typename Parse>
auto ReadUnit(const JsonReader& reader, Parse parse, const char* expected) {
  if (!reader.IsString()) reader.Expected(expected);
  const std::string text = reader.String();
  try {
    return parse(text);
  } catch (const Error& error) {
    reader.Fail(error.what());
  }
}

}  // namespace

BytesPerSecond JsonReader::Bandwidth() const {
  return ReadUnit(*this, ParseBandwidth, "a bandwidth with its unit such as \"25GBps\"");
}
Seconds JsonReader::Duration() const {
  const Seconds time = ReadUnit(*this, ParseDuration, "a time with its unit such as \"1.5us\"");
  if (shape_ != nullptr && shape_->type == JsonType::kDuration && time.value() > shape_->highest)
    Expected(fmt::format("at most {} s", shape_->highest));
  return time;
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
  if (!IsString()) Expected(QuotedList(names, " or "));
  RefuseChanges();
  const auto found = std::find(names.begin(), names.end(), Text());
  if (found == names.end()) {
    const std::string expected = QuotedList(names, " or ");
    const std::string hint = DidYouMean(Text(), names);
    constexpr size_t kMostListed = 12;
    if (names.size() > kMostListed)
      Fail(fmt::format("found {}{}", ShortenedJson(*value_), KnownNames(Text(), names)));
    if (hint.empty()) Expected(expected);
    Fail(fmt::format("found {}{} Expected {}", ShortenedJson(*value_), hint, expected));
  }
  return static_cast<size_t>(found - names.begin());
}

size_t JsonReader::Choice() const { return Choice(ShapeOf(JsonType::kChoice).choices); }

const JsonShape& JsonReader::ShapeOf(JsonType type) const {
  CHECK(shape_ != nullptr);
  if (shape_->type == type) return *shape_;
  CHECK(shape_->type == JsonType::kEither);
  for (const JsonShape& part : shape_->parts) {
    if (part.type == type) return part;
  }
  CHECK(false);
}

}  // namespace rehearse

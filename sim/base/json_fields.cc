#include "sim/base/json_fields.h"

#include <algorithm>
#include <cmath>

#include <fmt/format.h>
#include <nlohmann/json.hpp>

#include "sim/base/error.h"
#include "sim/base/units.h"

namespace rehearse {

using Json = nlohmann::ordered_json;

FieldPresence Usual() {
  FieldPresence presence = Required();
  presence.presence.kind = Presence::Kind::kDefault;
  presence.is_usual = true;
  return presence;
}

FieldPresence UsualAndWritten() {
  FieldPresence presence = Usual();
  presence.is_always_written = true;
  return presence;
}

FieldPresence AndWritten(Presence said) {
  FieldPresence presence = std::move(said);
  presence.is_always_written = true;
  return presence;
}

FieldPresence OrUsual(std::string words) {
  FieldPresence presence = Optional(std::move(words));
  presence.names_usual = true;
  return presence;
}

FieldPresence FilledIn(std::string words) {
  FieldPresence presence = Optional(std::move(words));
  presence.is_needed = true;
  return presence;
}

FieldShape ListOf(FieldShape element) {
  FieldShape shape = ListOf(element.shape);
  shape.parts.push_back(std::move(element));
  return shape;
}

FieldShape Named(FieldShape value, std::string words) {
  FieldShape shape = Named(value.shape, std::move(words));
  shape.parts.push_back(std::move(value));
  return shape;
}

FieldShape WrittenAs(JsonShape quantity, std::string (*text)(double)) {
  FieldShape shape = std::move(quantity);
  shape.text = text;
  return shape;
}

void MustHave(const JsonReader& reader, std::initializer_list<const char*> keys) {
  for (const char* const key : keys) (void)reader.At(key);
}

// ---- Tables -------------------------------------------------------------------------------------

namespace {

// As people write it: 80 rather than 80.0.
void MakeWhole(nlohmann::json* value) {
  constexpr double kMostExact = 0x1p53;
  if (value->is_structured()) {
    for (nlohmann::json& part : *value) MakeWhole(&part);
  } else if (value->is_number_float()) {
    const double number = value->get<double>();
    if (std::trunc(number) == number && std::abs(number) < kMostExact)
      *value = static_cast<int64_t>(number);
  }
}

const void* MemberOf(const void* object, const FieldRow& row) {
  return static_cast<const char*>(object) + row.offset;
}

std::shared_ptr<const nlohmann::json> DefaultOf(const FieldRow& row, const void* usual) {
  Json written;
  row.codec->Write(MemberOf(usual, row), &written);
  nlohmann::json value = written;
  MakeWhole(&value);
  return std::make_shared<const nlohmann::json>(std::move(value));
}

// As a sentence has it: softmax, [16, 8].
std::string InWords(const nlohmann::json& value) {
  if (value.is_string()) return value.get<std::string>();
  if (!value.is_array()) return value.dump();
  std::string text;
  for (const nlohmann::json& part : value) text += (text.empty() ? "" : ", ") + InWords(part);
  return "[" + text + "]";
}

// Whether the key must be there when the object is read.
bool IsNeeded(const FieldRow& row) {
  return row.key.presence.kind == Presence::Kind::kRequired || row.presence.is_needed;
}

bool IsFor(const FieldRow& row, std::string_view variant) {
  return row.key.only.empty() || row.key.only == variant;
}

}  // namespace

FieldTable::FieldTable(std::string name, std::string about, std::vector<FieldRow> rows,
                       const void* usual, Finish finish,
                       const std::vector<std::string>& written_last)
    : shape_{std::move(name), std::move(about), {}},
      rows_(std::move(rows)),
      usual_(usual),
      finish_(std::move(finish)) {
  for (FieldRow& row : rows_) {
    if (row.presence.is_usual) row.key.presence.value = DefaultOf(row, usual);
    if (row.presence.names_usual) row.key.presence.words += InWords(*DefaultOf(row, usual));
    shape_.keys.push_back(row.key);
  }
  const auto place = [&](size_t row) {  // 0: among the first
    const auto last = std::find(written_last.rbegin(), written_last.rend(), rows_[row].key.name);
    return written_last.rend() - last;
  };
  for (size_t i = 0; i < rows_.size(); ++i) written_.push_back(i);
  std::stable_sort(written_.begin(), written_.end(),
                   [&](size_t a, size_t b) { return place(a) < place(b); });
}

void FieldTable::ReadRows(const JsonReader& reader, std::string_view variant, void* object) const {
  for (const FieldRow& row : rows_) {
    if (row.codec == nullptr || !IsFor(row, variant)) continue;
    if (!IsNeeded(row) && !reader.Has(row.key.name)) continue;
    row.codec->Read(reader.At(row.key.name), static_cast<char*>(object) + row.offset);
  }
  if (finish_) finish_(reader, object);
}

void FieldTable::WriteRows(const void* object, std::string_view variant, Json* to) const {
  if (!to->is_object()) *to = Json::object();
  for (const size_t i : written_) {
    const FieldRow& row = rows_[i];
    if (row.codec == nullptr || !IsFor(row, variant)) continue;
    const bool may_be_left_out = !IsNeeded(row) && !row.presence.is_always_written;
    const void* const member = MemberOf(object, row);
    if (row.presence.is_written != nullptr) {
      if (!row.presence.is_written(static_cast<const char*>(object) + row.owner)) continue;
    } else if (may_be_left_out && row.codec->IsSame(member, MemberOf(usual_, row))) {
      continue;
    }
    Json value;
    row.codec->Write(member, &value);
    const bool must_stand = IsNeeded(row) || row.presence.is_written != nullptr;
    if (must_stand || !value.is_null()) (*to)[row.key.name] = std::move(value);
  }
}

std::vector<std::string> FieldTable::Differing(const void* a, const void* b) const {
  std::vector<std::string> names;
  for (const FieldRow& row : rows_) {
    if (row.codec != nullptr && !row.codec->IsSame(MemberOf(a, row), MemberOf(b, row)))
      names.push_back(row.key.name);
  }
  return names;
}

bool FieldTable::IsSame(const void* a, const void* b) const {
  return std::all_of(rows_.begin(), rows_.end(), [&](const FieldRow& row) {
    return row.codec == nullptr || row.codec->IsSame(MemberOf(a, row), MemberOf(b, row));
  });
}

const FieldRow& FieldTable::RowOf(std::string_view name) const {
  const auto found = std::find_if(rows_.begin(), rows_.end(),
                                  [&](const FieldRow& row) { return row.key.name == name; });
  CHECK(found != rows_.end());
  return *found;
}

// An object by its table.
class ObjectCodec final : public FieldCodec {
 public:
  explicit ObjectCodec(const FieldTable& (*table)()) : table_(table) {}

  void Read(const JsonReader& reader, void* value) const override {
    table_().ReadRows(reader.As(table_().shape()), "", value);
  }
  void Write(const void* value, Json* to) const override { table_().WriteRows(value, "", to); }
  bool IsSame(const void* a, const void* b) const override { return table_().IsSame(a, b); }

 private:
  const FieldTable& (*table_)();
};

// ---- Codecs -------------------------------------------------------------------------------------

namespace internal {
namespace {

class OfTrueFalse final : public FieldCodec {
 public:
  explicit OfTrueFalse(const WholeAccess& access) : access_(access) {}
  void Read(const JsonReader& reader, void* value) const override {
    access_.set(value, reader.Bool() ? 1 : 0);
  }
  void Write(const void* value, Json* to) const override { *to = access_.get(value) != 0; }
  bool IsSame(const void* a, const void* b) const override {
    return access_.get(a) == access_.get(b);
  }

 private:
  WholeAccess access_;
};

class OfWhole final : public FieldCodec {
 public:
  explicit OfWhole(const WholeAccess& access) : access_(access) {}
  void Read(const JsonReader& reader, void* value) const override {
    access_.set(value, reader.Integer());
  }
  void Write(const void* value, Json* to) const override { *to = access_.get(value); }
  bool IsSame(const void* a, const void* b) const override {
    return access_.get(a) == access_.get(b);
  }

 private:
  WholeAccess access_;
};

class OfNames final : public FieldCodec {
 public:
  OfNames(const FieldShape& shape, const WholeAccess& access)
      : names_(shape.shape.choices), values_(shape.values), access_(access) {
    CHECK_EQ(names_.size(), values_.size());
  }
  void Read(const JsonReader& reader, void* value) const override {
    access_.set(value, values_[reader.Choice()]);
  }
  void Write(const void* value, Json* to) const override {
    const auto found = std::find(values_.begin(), values_.end(), access_.get(value));
    CHECK(found != values_.end());
    *to = names_[static_cast<size_t>(found - values_.begin())];
  }
  bool IsSame(const void* a, const void* b) const override {
    return access_.get(a) == access_.get(b);
  }

 private:
  std::vector<std::string> names_;
  std::vector<int64_t> values_;
  WholeAccess access_;
};

std::string TextOf(JsonType unit, double value) {
  switch (unit) {
    case JsonType::kDuration:
      return PrintExactly(Seconds(value));
    case JsonType::kSize:
      return PrintExactly(Bytes(value));
    case JsonType::kFlopCount:
      return PrintExactly(Flops(value));
    case JsonType::kBandwidth:
      return fmt::format("{}Bps", value);
    default:
      return fmt::format("{}FLOPS", value);
  }
}

class OfNumber final : public FieldCodec {
 public:
  OfNumber(const FieldShape& shape, const NumberAccess& access)
      : unit_(shape.shape.type), text_(shape.text), access_(access) {}
  void Read(const JsonReader& reader, void* value) const override {
    access_.set(value, NumberOf(reader));
  }
  void Write(const void* value, Json* to) const override {
    const double number = access_.get(value);
    if (text_ != nullptr) {
      *to = text_(number);
    } else if (unit_ == JsonType::kNumber) {
      CHECK(std::isfinite(number));  // JSON knows neither infinity nor NaN
      *to = number;
    } else {
      *to = TextOf(unit_, number);
    }
  }
  bool IsSame(const void* a, const void* b) const override {
    return access_.get(a) == access_.get(b);
  }

 private:
  double NumberOf(const JsonReader& reader) const {
    switch (unit_) {
      case JsonType::kDuration:
        return reader.Duration().value();
      case JsonType::kSize:
        return reader.Size().value();
      case JsonType::kFlopCount:
        return reader.FlopCount().value();
      case JsonType::kBandwidth:
        return reader.Bandwidth().value();
      case JsonType::kFlopRate:
        return reader.FlopRate().value();
      default:
        return reader.Number();
    }
  }

  JsonType unit_;
  std::string (*text_)(double);
  NumberAccess access_;
};

class OfText final : public FieldCodec {
 public:
  explicit OfText(const std::vector<std::string>& choices) : choices_(choices) {}
  void Read(const JsonReader& reader, void* value) const override {
    *static_cast<std::string*>(value) =
        choices_.empty() ? reader.String() : choices_[reader.Choice()];
  }
  void Write(const void* value, Json* to) const override {
    *to = *static_cast<const std::string*>(value);
  }
  bool IsSame(const void* a, const void* b) const override {
    return *static_cast<const std::string*>(a) == *static_cast<const std::string*>(b);
  }

 private:
  std::vector<std::string> choices_;
};

template <typename AnyJson>
class OfAnything final : public FieldCodec {
 public:
  void Read(const JsonReader& reader, void* value) const override {
    *static_cast<AnyJson*>(value) = reader.value();
  }
  void Write(const void* value, Json* to) const override {
    *to = *static_cast<const AnyJson*>(value);
  }
  bool IsSame(const void* a, const void* b) const override {
    return *static_cast<const AnyJson*>(a) == *static_cast<const AnyJson*>(b);
  }
};

class OfOptional final : public FieldCodec {
 public:
  OfOptional(Codec held, const OptionalAccess& access) : held_(std::move(held)), access_(access) {}
  void Read(const JsonReader& reader, void* value) const override {
    held_->Read(reader, access_.make(value));
  }
  void Write(const void* value, Json* to) const override {
    if (const void* const held = access_.get(value)) held_->Write(held, to);
  }
  bool IsSame(const void* a, const void* b) const override {
    const void* const first = access_.get(a);
    const void* const second = access_.get(b);
    if (first == nullptr || second == nullptr) return first == second;
    return held_->IsSame(first, second);
  }

 private:
  Codec held_;
  OptionalAccess access_;
};

class OfList final : public FieldCodec {
 public:
  OfList(Codec element, const ListAccess& access) : element_(std::move(element)), access_(access) {}
  void Read(const JsonReader& reader, void* value) const override {
    access_.clear(value);
    for (const JsonReader& element : reader.Elements()) element_->Read(element, access_.add(value));
  }
  void Write(const void* value, Json* to) const override {
    *to = Json::array();
    for (size_t i = 0; i < access_.size(value); ++i) {
      Json element;
      element_->Write(access_.at(value, i), &element);
      to->push_back(std::move(element));
    }
  }
  bool IsSame(const void* a, const void* b) const override {
    if (access_.size(a) != access_.size(b)) return false;
    for (size_t i = 0; i < access_.size(a); ++i) {
      if (!element_->IsSame(access_.at(a, i), access_.at(b, i))) return false;
    }
    return true;
  }

 private:
  Codec element_;
  ListAccess access_;
};

class OfMap final : public FieldCodec {
 public:
  OfMap(Codec held, const MapAccess& access) : held_(std::move(held)), access_(access) {}
  void Read(const JsonReader& reader, void* value) const override {
    access_.clear(value);
    for (const auto& [key, member] : reader.Members()) held_->Read(member, access_.add(value, key));
  }
  void Write(const void* value, Json* to) const override {
    *to = Json::object();
    for (const auto& [key, held] : access_.all(value)) held_->Write(held, &(*to)[key]);
  }
  bool IsSame(const void* a, const void* b) const override {
    const auto first = access_.all(a);
    const auto second = access_.all(b);
    return std::equal(first.begin(), first.end(), second.begin(), second.end(),
                      [&](const auto& one, const auto& other) {
                        return one.first == other.first && held_->IsSame(one.second, other.second);
                      });
  }

 private:
  Codec held_;
  MapAccess access_;
};

bool IsSet(const FlagAt& flag, const void* value) {
  if (flag.offset == kNoFlag) return false;
  const void* const place = static_cast<const char*>(value) + flag.offset;
  return *static_cast<const bool*>(place);
}

void Set(const FlagAt& flag, bool is_set, void* value) {
  if (flag.offset == kNoFlag) return;
  void* const place = static_cast<char*>(value) + flag.offset;
  *static_cast<bool*>(place) = is_set;
}

class OfFlags : public FieldCodec {
 public:
  explicit OfFlags(std::vector<FlagAt> flags) : flags_(std::move(flags)) {}
  void Read(const JsonReader& reader, void* value) const override {
    for (const FlagAt& flag : flags_) Set(flag, false, value);
    for (const JsonReader& name : reader.Elements()) Set(flags_[name.Choice()], true, value);
  }
  void Write(const void* value, Json* to) const override {
    *to = Json::array();
    for (const FlagAt& flag : flags_) {
      if (IsSet(flag, value)) to->push_back(flag.name);
    }
  }
  bool IsSame(const void* a, const void* b) const override {
    return std::all_of(flags_.begin(), flags_.end(),
                       [&](const FlagAt& flag) { return IsSet(flag, a) == IsSet(flag, b); });
  }

 protected:
  const std::vector<FlagAt>& flags() const { return flags_; }

 private:
  std::vector<FlagAt> flags_;
};

class OfOneFlag final : public OfFlags {
 public:
  using OfFlags::OfFlags;
  void Read(const JsonReader& reader, void* value) const override {
    const size_t chosen = reader.Choice();
    for (size_t i = 0; i < flags().size(); ++i) Set(flags()[i], i == chosen, value);
  }
  void Write(const void* value, Json* to) const override {
    for (const FlagAt& flag : flags()) {
      if (flag.offset == kNoFlag ? to->is_null() : IsSet(flag, value)) *to = flag.name;
    }
  }
};

std::vector<std::string> NamesOf(const std::vector<FlagAt>& flags) {
  std::vector<std::string> names;
  for (const FlagAt& flag : flags) names.push_back(flag.name);
  return names;
}

}  // namespace

FieldShape NamedValues(std::vector<std::string> names, std::vector<int64_t> values,
                       const void* type) {
  FieldShape shape = OneOf(std::move(names));
  shape.values = std::move(values);
  shape.type = type;
  return shape;
}

FieldShape FlagsAt(std::vector<FlagAt> flags, const void* type) {
  FieldShape shape = ListOf(OneOf(NamesOf(flags)));
  shape.own = std::make_shared<const OfFlags>(std::move(flags));
  shape.type = type;
  return shape;
}

FieldShape OneFlagAt(std::vector<FlagAt> flags, const void* type) {
  FieldShape shape = OneOf(NamesOf(flags));
  shape.own = std::make_shared<const OfOneFlag>(std::move(flags));
  shape.type = type;
  return shape;
}

Codec WholeCodec(const FieldShape& shape, const WholeAccess& access) {
  if (shape.shape.type == JsonType::kChoice) return std::make_shared<const OfNames>(shape, access);
  if (shape.shape.type == JsonType::kTrueFalse) {
    CHECK(access.least == 0 && access.most == 1);
    return std::make_shared<const OfTrueFalse>(access);
  }
  CHECK(shape.shape.type == JsonType::kWhole);
  CHECK(shape.shape.least >= access.least && shape.shape.most <= access.most);
  return std::make_shared<const OfWhole>(access);
}

Codec NumberCodec(const FieldShape& shape, JsonType unit, const NumberAccess& access) {
  const JsonType type = shape.shape.type;
  const bool is_text = type == JsonType::kBandwidth || type == JsonType::kDuration ||
                       type == JsonType::kSize || type == JsonType::kFlopRate ||
                       type == JsonType::kFlopCount;
  // A plain double may be any quantity, in SI units.
  CHECK(type == unit || type == JsonType::kNumber || (unit == JsonType::kNumber && is_text));
  return std::make_shared<const OfNumber>(shape, access);
}

Codec TextCodec(const FieldShape& shape) {
  CHECK(shape.shape.type == JsonType::kText || shape.shape.type == JsonType::kChoice);
  CHECK(shape.values.empty());
  return std::make_shared<const OfText>(shape.shape.choices);
}

Codec AnythingCodec(const FieldShape& shape) {
  CHECK(shape.shape.type == JsonType::kAnything);
  return std::make_shared<const OfAnything<nlohmann::json>>();
}

Codec OrderedCodec(const FieldShape& shape) {
  CHECK(shape.shape.type == JsonType::kAnything);
  return std::make_shared<const OfAnything<Json>>();
}

Codec OptionalCodec(Codec held, const OptionalAccess& access) {
  return std::make_shared<const OfOptional>(std::move(held), access);
}

Codec ListCodec(Codec element, const ListAccess& access) {
  return std::make_shared<const OfList>(std::move(element), access);
}

Codec MapCodec(Codec value, const MapAccess& access) {
  return std::make_shared<const OfMap>(std::move(value), access);
}

Codec TableCodec(const FieldShape& shape) {
  CHECK(shape.table != nullptr);
  return std::make_shared<const ObjectCodec>(shape.table);
}

void CheckType(const FieldShape& shape, const void* type) {
  CHECK(shape.type == nullptr || shape.type == type);
}

FieldShape PartOf(const FieldShape& shape) {
  CHECK(shape.shape.type == JsonType::kList || shape.shape.type == JsonType::kNamed);
  return shape.parts.empty() ? FieldShape(shape.shape.parts.front()) : shape.parts.front();
}

bool AreWrittenTheSame(const FieldCodec& codec, const void* a, const void* b) {
  Json first;
  Json second;
  codec.Write(a, &first);
  codec.Write(b, &second);
  return first == second;
}

}  // namespace internal

}  // namespace rehearse

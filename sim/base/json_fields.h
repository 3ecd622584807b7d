// Tables that bind the keys of a JSON object to the members of a struct, so that a field is said
// once: its row reads it, writes it, compares it and describes it to `rehearse schema`.
//
//   const Fields<Wheel>& WheelFields() {
//     static const Fields<Wheel> fields(
//         "wheel", "One of the four.",
//         {{"spokes", &Wheel::spokes, AWhole(1, 40), Usual(), "that hold the rim"},
//          {"tyre", &Wheel::tyre, OneOf(kTyreNames), Required(), "what it rolls on"}});
//     return fields;
//   }
//
// A table extends an ObjectShape (sim/base/json_shape.h) and reads through it, with its messages.
// What holds where a key is missing is what a new struct has, which Usual() prints: no row repeats
// it. Checks across fields, and what follows from several, are written by hand beside the table: a
// function that is called whenever its rows have been read.
//
// What a row may bind:
//
//   | member                            | shape                                              |
//   | bool                              | TrueFalse(), or OneOf() of a list of names         |
//   | any integer                       | AWhole(), which must fit into it                   |
//   | an enum, or such an integer       | OneOf() of a list of names (sim/base/value_names.h)|
//   | double, Seconds, Bytes, ...       | ANumber(); ADuration(), ASize(), ...               |
//   | std::string                       | AText(), or OneOf() of texts                       |
//   | a struct, or the struct itself    | ObjectIn<ItsFields>(); flags: names of its bools      |
//   | std::vector, std::map of strings  | ListOf(), Named() of what an element takes         |
//   | std::optional                     | what it holds; not there where the key is missing  |
//   | std::shared_ptr<const ...>        | likewise: null where the key is missing            |
//   | nlohmann::json, ordered_json      | Anything()                                         |
//   | anything else                     | ReadBy() with functions of its own                 |
//
// Rows know their members by offset and by functions for each type of member, not of each struct:
// a table costs little to compile. Tables are made once, and constant from then on.
#pragma once

#include <cstddef>
#include <cstdint>
#include <functional>
#include <initializer_list>
#include <iterator>
#include <limits>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <type_traits>
#include <utility>
#include <vector>

#include <nlohmann/json_fwd.hpp>

#include "sim/base/json_reader.h"
#include "sim/base/json_shape.h"
#include "sim/base/quantity.h"
#include "sim/base/value_names.h"

namespace rehearse {

class FieldTable;

// How a value in memory is read from JSON, written and compared.
class FieldCodec {
 public:
  virtual ~FieldCodec() = default;
  virtual void Read(const JsonReader& reader, void* value) const = 0;
  virtual void Write(const void* value, nlohmann::ordered_json* to) const = 0;
  virtual bool IsSame(const void* a, const void* b) const = 0;
};

// A shape, and what reading needs to know besides.
struct FieldShape {
  FieldShape(JsonShape described)  // NOLINT(google-explicit-constructor): most say no more
      : shape(std::move(described)) {}

  JsonShape shape;
  std::vector<int64_t> values = {};            // of OneOf(): what each choice stands for
  const FieldTable& (*table)() = nullptr;      // of ObjectIn()
  std::vector<FieldShape> parts = {};          // of ListOf() and Named(): one, where it says more
  std::string (*text)(double) = nullptr;       // how a quantity is written; else exactly
  std::shared_ptr<const FieldCodec> own = {};  // of flags and ReadBy()
  const void* type = nullptr;                  // of the member, where only one will do
};

// ---- What a row says about a missing key --------------------------------------------------------

struct FieldPresence {
  FieldPresence(Presence said)  // NOLINT(google-explicit-constructor): Required(), Optional()
      : presence(std::move(said)) {}

  Presence presence;
  bool is_usual = false;           // its default is what a new struct has
  bool is_always_written = false;  // even if it equals that
  bool is_needed = false;          // by who reads, though a file need not say it
  bool names_usual = false;        // its words end with what a new struct has
  // Of the struct that has the member: whether the key is written; nothing: not if it is as usual.
  bool (*is_written)(const void* object) = nullptr;
};
// What a new struct has, which need not be written either.
FieldPresence Usual();
// Likewise, but results always say it.
FieldPresence UsualAndWritten();
// Without the key this holds, which is written all the same.
FieldPresence AndWritten(Presence said);
// What the words say ("the preset's, or "), or else what a new struct has, which ends the words.
FieldPresence OrUsual(std::string words);
// What something fills in before the object is read, where a file does not say it.
FieldPresence FilledIn(std::string words);

namespace internal {
template <auto kHolds, typename T>
bool HoldsOf(const void* object) {
  return kHolds(*static_cast<const T*>(object));
}
template <auto kHolds, typename T>
constexpr auto HoldsFor(bool (* /*holds*/)(const T& object)) {
  return &HoldsOf<kHolds, T>;
}
}  // namespace internal

// Written where the function says so of the struct, whatever the member has: what counts only
// beside another key.
template <auto kHolds>
FieldPresence WrittenIf(std::string without) {
  FieldPresence presence = Optional(std::move(without));
  presence.is_written = internal::HoldsFor<kHolds>(kHolds);
  return presence;
}

// ---- Shapes that bind ---------------------------------------------------------------------------

namespace internal {

FieldShape NamedValues(std::vector<std::string> names, std::vector<int64_t> values,
                       const void* type);

// Its address stands for the type.
template <typename Member>
inline constexpr char kTypeTag = 0;

inline constexpr ptrdiff_t kNoFlag = -1;
struct FlagAt {
  std::string name;
  ptrdiff_t offset = kNoFlag;
};
FieldShape FlagsAt(std::vector<FlagAt> flags, const void* type);
FieldShape OneFlagAt(std::vector<FlagAt> flags, const void* type);

// A struct as it is when nothing is said about it.
template <typename T>
const T& NewOf() {
  static const T value{};
  return value;
}

template <typename T, typename Member>
ptrdiff_t OffsetOf(Member T::*member) {
  const T& object = NewOf<T>();
  const void* const begin = &object;
  const void* const place = &(object.*member);
  return static_cast<const char*>(place) - static_cast<const char*>(begin);
}

}  // namespace internal

// Of an enum, a bool or a number: one of these names stands for it.
template <typename Value, size_t kCount>
FieldShape OneOf(const ValueName<Value> (&names)[kCount]) {
  std::vector<std::string> choices;
  std::vector<int64_t> values;
  for (const ValueName<Value>& one : names) {
    choices.emplace_back(one.name);
    values.push_back(static_cast<int64_t>(one.value));
  }
  return internal::NamedValues(std::move(choices), std::move(values), &internal::kTypeTag<Value>);
}

// Of values that have a function Name(): these ones, or all up to the last.
template <typename Values>
FieldShape OneNamedOf(const Values& values) {
  using Value = std::remove_cvref_t<decltype(*std::begin(values))>;
  std::vector<std::string> choices;
  std::vector<int64_t> numbers;
  for (const Value value : values) {
    choices.emplace_back(Name(value));
    numbers.push_back(static_cast<int64_t>(value));
  }
  return internal::NamedValues(std::move(choices), std::move(numbers), &internal::kTypeTag<Value>);
}
template <auto kLast>
FieldShape OneUpTo() {
  std::vector<decltype(kLast)> values;
  for (int i = 0; i <= static_cast<int>(kLast); ++i)
    values.push_back(static_cast<decltype(kLast)>(i));
  return OneNamedOf(values);
}

FieldShape ListOf(FieldShape element);
FieldShape Named(FieldShape value, std::string words = "name");
// A quantity that is written as this function says.
FieldShape WrittenAs(JsonShape quantity, std::string (*text)(double));

template <typename T>
struct FlagName {
  const char* name = "";
  bool T::*member = nullptr;
};
namespace internal {
template <typename T, size_t kCount>
std::vector<FlagAt> FlagsIn(const FlagName<T> (&names)[kCount]) {
  std::vector<FlagAt> flags;
  for (const FlagName<T>& one : names)
    flags.push_back({one.name, one.member != nullptr ? OffsetOf<T>(one.member) : kNoFlag});
  return flags;
}
}  // namespace internal

// Of a struct: a list of names, each of which sets a bool of it.
template <typename T, size_t kCount>
FieldShape FlagsOf(const FlagName<T> (&names)[kCount]) {
  return internal::FlagsAt(internal::FlagsIn(names), &internal::kTypeTag<T>);
}
// Of a struct: a name that sets one of its bools, or with nullptr none.
template <typename T, size_t kCount>
FieldShape OneFlagOf(const FlagName<T> (&names)[kCount]) {
  return internal::OneFlagAt(internal::FlagsIn(names), &internal::kTypeTag<T>);
}

// ---- Rows and tables ----------------------------------------------------------------------------

// A row as the table keeps it, whatever the types.
struct FieldRow {
  JsonKey key;
  FieldPresence presence = Required();
  ptrdiff_t offset = 0;
  std::shared_ptr<const FieldCodec> codec = nullptr;  // nothing: read by hand
  ptrdiff_t owner = 0;                                // where the struct that has the member is
};

class FieldTable {
 public:
  FieldTable(const FieldTable&) = delete;
  FieldTable& operator=(const FieldTable&) = delete;

  const ObjectShape& shape() const { return shape_; }

 protected:
  friend class ObjectCodec;

  using Finish = std::function<void(const JsonReader& reader, void* object)>;

  // Defaults are read from `usual`, which must outlive the table.
  FieldTable(std::string name, std::string about, std::vector<FieldRow> rows, const void* usual,
             Finish finish, const std::vector<std::string>& written_last);
  ~FieldTable() = default;

  // Through a reader that is As(shape()) already. Members whose key is missing stay as they are.
  void ReadRows(const JsonReader& reader, std::string_view variant, void* object) const;
  void WriteRows(const void* object, std::string_view variant, nlohmann::ordered_json* to) const;
  std::vector<std::string> Differing(const void* a, const void* b) const;
  bool IsSame(const void* a, const void* b) const;

  const FieldRow& RowOf(std::string_view name) const;

 private:
  ObjectShape shape_;
  std::vector<FieldRow> rows_;
  std::vector<size_t> written_;  // positions of rows, in the order of writing
  const void* usual_ = nullptr;
  Finish finish_;
};

// Says that a row is about the struct itself: ReadBy() and flags may set several members.
struct Itself {};
inline constexpr Itself kItself = {};

// One row, or several of another table.
template <typename T>
class Field {
 public:
  template <typename Member>
  Field(std::string name, Member T::*member, FieldShape shape, FieldPresence presence,
        std::string about, std::string example = "", std::string only = "");
  Field(std::string name, Itself itself, FieldShape shape, FieldPresence presence,
        std::string about, std::string example = "", std::string only = "");
  // Read by hand.
  Field(std::string name, JsonShape shape, Presence presence, std::string about,
        std::string example = "", std::string only = "");
  Field(JsonKey by_hand) {  // NOLINT(google-explicit-constructor): rows that several tables have
    Add(std::move(by_hand), Required(), 0, nullptr);
  }
  Field(const std::vector<Field>& fields) {  // NOLINT(google-explicit-constructor): likewise
    for (const Field& field : fields)
      rows_.insert(rows_.end(), field.rows_.begin(), field.rows_.end());
  }

  const std::vector<FieldRow>& rows() const { return rows_; }

  // Rows that bind a member of T, as rows of what has T as its member.
  template <typename Outer>
  Field<Outer> Within(T Outer::*member) const {
    Field<Outer> outer;
    outer.rows_ = rows_;
    for (FieldRow& row : outer.rows_) {
      row.offset += internal::OffsetOf<Outer>(member);
      row.owner += internal::OffsetOf<Outer>(member);
    }
    return outer;
  }

 private:
  template <typename>
  friend class Field;
  template <typename>
  friend class Fields;
  Field() = default;

  void Add(JsonKey key, FieldPresence presence, ptrdiff_t offset,
           std::shared_ptr<const FieldCodec> codec) {
    rows_.push_back({std::move(key), std::move(presence), offset, std::move(codec), 0});
  }

  std::vector<FieldRow> rows_;
};

template <typename T>
using FieldList = std::vector<Field<T>>;

// Several rows of a member's struct in the place of one.
template <typename Outer, typename T>
Field<Outer> Within(T Outer::*member, const FieldList<T>& fields) {
  return Field<T>(fields).Within(member);
}

template <typename T>
class Fields : public FieldTable {
 public:
  using Type = T;

  using FinishFunction = void (*)(const JsonReader& reader, T* value);

  // `finish` checks what has been read, and adds what follows from it. Keys that are `written_last`
  // are written after all others, in this order.
  Fields(std::string name, std::string about, const FieldList<T>& fields,
         FinishFunction finish = nullptr, const std::vector<std::string>& written_last = {})
      : FieldTable(std::move(name), std::move(about), Field<T>(fields).rows(),
                   &internal::NewOf<T>(), AnyFinish(finish), written_last) {}

  // Refuses keys that the table lacks, or has for another variant only.
  T Read(const JsonReader& object, std::string_view variant = "") const {
    T value{};
    ReadInto(object.As(shape(), variant), &value, variant);
    return value;
  }
  // The reader is As(shape()) already. Members whose key is missing stay as they are: a preset's.
  void ReadInto(const JsonReader& reader, T* value, std::string_view variant = "") const {
    ReadRows(reader, variant, value);
  }
  // In the order of the rows. What is as usual is left out, except where its row says otherwise.
  void Write(const T& value, nlohmann::ordered_json* to, std::string_view variant = "") const {
    WriteRows(&value, variant, to);
  }
  // The keys whose members differ.
  std::vector<std::string> Differing(const T& a, const T& b) const {
    return FieldTable::Differing(&a, &b);
  }
  bool IsSame(const T& a, const T& b) const { return FieldTable::IsSame(&a, &b); }

  // These rows, for another table that has them as well.
  Field<T> Rows(std::initializer_list<std::string_view> names) const {
    Field<T> some;
    for (const std::string_view name : names) some.rows_.push_back(RowOf(name));
    return some;
  }

 private:
  static Finish AnyFinish(FinishFunction finish) {
    if (finish == nullptr) return {};
    return
        [finish](const JsonReader& reader, void* value) { finish(reader, static_cast<T*>(value)); };
  }
};

// Error where one of them is neither in the document nor has a default: for what must be given
// only where other keys make it matter.
void MustHave(const JsonReader& reader, std::initializer_list<const char*> keys);

template <auto kFields>
const ObjectShape& ShapeIn() {
  return kFields().shape();
}

namespace internal {
template <auto kFields>
const FieldTable& TableIn() {
  return kFields();
}
template <auto kFields>
using TypeIn = typename std::remove_cvref_t<decltype(kFields())>::Type;
}  // namespace internal

// Of a struct: an object, by the table that the function returns.
template <auto kFields>
FieldShape ObjectIn() {
  FieldShape shape = ObjectOf(ShapeIn<kFields>);
  shape.table = internal::TableIn<kFields>;
  shape.type = &internal::kTypeTag<internal::TypeIn<kFields>>;
  return shape;
}

// ---- How members of each type are reached -------------------------------------------------------

namespace internal {

struct WholeAccess {
  int64_t (*get)(const void* member);
  void (*set)(void* member, int64_t value);
  int64_t least = 0;
  int64_t most = 0;
};
struct NumberAccess {
  double (*get)(const void* member);
  void (*set)(void* member, double value);
};
struct OptionalAccess {
  const void* (*get)(const void* member);  // nullptr where there is nothing
  void* (*make)(void* member);
};
struct ListAccess {
  size_t (*size)(const void* member);
  const void* (*at)(const void* member, size_t index);
  void (*clear)(void* member);
  void* (*add)(void* member);
};
struct MapAccess {
  std::vector<std::pair<std::string, const void*>> (*all)(const void* member);
  void (*clear)(void* member);
  void* (*add)(void* member, const std::string& key);
};

using Codec = std::shared_ptr<const FieldCodec>;
Codec WholeCodec(const FieldShape& shape, const WholeAccess& access);
Codec NumberCodec(const FieldShape& shape, JsonType unit, const NumberAccess& access);
Codec TextCodec(const FieldShape& shape);
Codec AnythingCodec(const FieldShape& shape);
Codec OrderedCodec(const FieldShape& shape);
Codec OptionalCodec(Codec held, const OptionalAccess& access);
Codec ListCodec(Codec element, const ListAccess& access);
Codec MapCodec(Codec value, const MapAccess& access);
Codec TableCodec(const FieldShape& shape);
// Faults of ours: names, a table or functions for another type.
void CheckType(const FieldShape& shape, const void* type);
FieldShape PartOf(const FieldShape& shape);  // of each element
bool AreWrittenTheSame(const FieldCodec& codec, const void* a, const void* b);

template <typename Member>
WholeAccess AccessWhole() {
  WholeAccess access = {
      [](const void* member) { return static_cast<int64_t>(*static_cast<const Member*>(member)); },
      [](void* member, int64_t value) {
        *static_cast<Member*>(member) = static_cast<Member>(value);
      }};
  if constexpr (std::is_enum_v<Member>) {
    access.most = -1;  // by names only
  } else {
    using Limits = std::numeric_limits<Member>;
    access.least = static_cast<int64_t>(Limits::lowest());
    access.most = std::in_range<int64_t>(Limits::max()) ? static_cast<int64_t>(Limits::max())
                                                        : std::numeric_limits<int64_t>::max();
  }
  return access;
}

// The kind of text that such a quantity is.
template <typename Number>
constexpr JsonType kUnitOf = JsonType::kNumber;
template <>
inline constexpr JsonType kUnitOf<Seconds> = JsonType::kDuration;
template <>
inline constexpr JsonType kUnitOf<Bytes> = JsonType::kSize;
template <>
inline constexpr JsonType kUnitOf<Flops> = JsonType::kFlopCount;
template <>
inline constexpr JsonType kUnitOf<BytesPerSecond> = JsonType::kBandwidth;
template <>
inline constexpr JsonType kUnitOf<FlopsPerSecond> = JsonType::kFlopRate;

inline double ValueOf(double number) { return number; }
template <typename Dimension>
double ValueOf(Quantity<Dimension> quantity) {
  return quantity.value();
}

template <typename Number>
NumberAccess AccessNumber() {
  return {[](const void* member) { return ValueOf(*static_cast<const Number*>(member)); },
          [](void* member, double value) { *static_cast<Number*>(member) = Number(value); }};
}

template <typename Member>
struct CodecFor {
  static Codec Make(const FieldShape& shape) {
    CheckType(shape, &kTypeTag<Member>);
    if constexpr (std::is_same_v<Member, bool>) {
      return WholeCodec(
          shape,
          {[](const void* member) { return int64_t{*static_cast<const bool*>(member)}; },
           [](void* member, int64_t value) { *static_cast<bool*>(member) = value != 0; }, 0, 1});
    } else if constexpr (std::is_integral_v<Member> || std::is_enum_v<Member>) {
      return WholeCodec(shape, AccessWhole<Member>());
    } else if constexpr (std::is_same_v<Member, double> || kUnitOf<Member> != JsonType::kNumber) {
      return NumberCodec(shape, kUnitOf<Member>, AccessNumber<Member>());
    } else if constexpr (std::is_same_v<Member, std::string>) {
      return TextCodec(shape);
    } else if constexpr (std::is_same_v<Member, nlohmann::json>) {
      return AnythingCodec(shape);
    } else if constexpr (std::is_same_v<Member, nlohmann::ordered_json>) {
      return OrderedCodec(shape);
    } else {
      return TableCodec(shape);
    }
  }
};

// Whether it may lack what it holds, which the shape may be of.
template <typename Member>
inline constexpr bool kMayBeEmpty = false;
template <typename Held>
inline constexpr bool kMayBeEmpty<std::optional<Held>> = true;
template <typename Held>
inline constexpr bool kMayBeEmpty<std::shared_ptr<const Held>> = true;

template <typename Member>
Codec MakeCodec(const FieldShape& shape) {
  const bool is_of_held = kMayBeEmpty<Member> && shape.type != &kTypeTag<Member>;
  if (shape.own != nullptr && !is_of_held) {
    CheckType(shape, &kTypeTag<Member>);
    return shape.own;
  }
  return CodecFor<Member>::Make(shape);
}

template <typename Held>
struct CodecFor<std::optional<Held>> {
  static Codec Make(const FieldShape& shape) {
    return OptionalCodec(MakeCodec<Held>(shape),
                         {[](const void* member) -> const void* {
                            const auto& held = *static_cast<const std::optional<Held>*>(member);
                            return held ? &*held : nullptr;
                          },
                          [](void* member) -> void* {
                            return &static_cast<std::optional<Held>*>(member)->emplace();
                          }});
  }
};

template <typename Held>
struct CodecFor<std::shared_ptr<const Held>> {
  using Pointer = std::shared_ptr<const Held>;
  static Codec Make(const FieldShape& shape) {
    return OptionalCodec(MakeCodec<Held>(shape),
                         {[](const void* member) -> const void* {
                            return static_cast<const Pointer*>(member)->get();
                          },
                          [](void* member) -> void* {
                            auto held = std::make_shared<Held>();
                            *static_cast<Pointer*>(member) = held;
                            return held.get();
                          }});
  }
};

template <typename Element>
struct CodecFor<std::vector<Element>> {
  using List = std::vector<Element>;
  static Codec Make(const FieldShape& shape) {
    return ListCodec(
        MakeCodec<Element>(PartOf(shape)),
        {[](const void* member) { return static_cast<const List*>(member)->size(); },
         [](const void* member, size_t index) -> const void* {
           return &(*static_cast<const List*>(member))[index];
         },
         [](void* member) { static_cast<List*>(member)->clear(); },
         [](void* member) -> void* { return &static_cast<List*>(member)->emplace_back(); }});
  }
};

template <typename Value>
struct CodecFor<std::map<std::string, Value>> {
  using Map = std::map<std::string, Value>;
  static Codec Make(const FieldShape& shape) {
    return MapCodec(MakeCodec<Value>(PartOf(shape)),
                    {[](const void* member) {
                       std::vector<std::pair<std::string, const void*>> all;
                       for (const auto& [key, value] : *static_cast<const Map*>(member))
                         all.emplace_back(key, &value);
                       return all;
                     },
                     [](void* member) { static_cast<Map*>(member)->clear(); },
                     [](void* member, const std::string& key) -> void* {
                       return &(*static_cast<Map*>(member))[key];
                     }});
  }
};

template <typename Member>
class FunctionCodec : public FieldCodec {
 public:
  using ReadFunction = void (*)(const JsonReader& reader, Member* member);
  using WriteFunction = void (*)(const Member& member, nlohmann::ordered_json* to);
  FunctionCodec(ReadFunction read, WriteFunction write) : read_(read), write_(write) {}

  void Read(const JsonReader& reader, void* value) const override {
    read_(reader, static_cast<Member*>(value));
  }
  void Write(const void* value, nlohmann::ordered_json* to) const override {
    write_(*static_cast<const Member*>(value), to);
  }
  bool IsSame(const void* a, const void* b) const override {
    return AreWrittenTheSame(*this, a, b);
  }

 private:
  ReadFunction read_;
  WriteFunction write_;
};

}  // namespace internal

// Of any type: by functions of its own. What is written leaves `to` null where the key is left out.
template <typename Member>
FieldShape ReadBy(JsonShape described, void (*read)(const JsonReader& reader, Member* member),
                  void (*write)(const Member& member, nlohmann::ordered_json* to)) {
  FieldShape shape = std::move(described);
  shape.own = std::make_shared<const internal::FunctionCodec<Member>>(read, write);
  shape.type = &internal::kTypeTag<Member>;
  return shape;
}
// What follows from other keys: it is not read.
template <typename Member>
FieldShape WrittenBy(JsonShape described,
                     void (*write)(const Member& member, nlohmann::ordered_json* to)) {
  return ReadBy<Member>(
      std::move(described), [](const JsonReader&, Member*) {}, write);
}

template <typename T>
template <typename Member>
Field<T>::Field(std::string name, Member T::*member, FieldShape shape, FieldPresence presence,
                std::string about, std::string example, std::string only) {
  auto codec = internal::MakeCodec<Member>(shape);
  Add({std::move(name), std::move(shape.shape), presence.presence, std::move(about),
       std::move(example), std::move(only)},
      presence, internal::OffsetOf<T>(member), std::move(codec));
}

template <typename T>
Field<T>::Field(std::string name, Itself /*itself*/, FieldShape shape, FieldPresence presence,
                std::string about, std::string example, std::string only) {
  auto codec = internal::MakeCodec<T>(shape);
  Add({std::move(name), std::move(shape.shape), presence.presence, std::move(about),
       std::move(example), std::move(only)},
      presence, 0, std::move(codec));
}

template <typename T>
Field<T>::Field(std::string name, JsonShape shape, Presence presence, std::string about,
                std::string example, std::string only) {
  Add({std::move(name), std::move(shape), std::move(presence), std::move(about), std::move(example),
       std::move(only)},
      Required(), 0, nullptr);
}

}  // namespace rehearse

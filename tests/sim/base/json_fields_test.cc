// Tables that bind keys to members.
#include "sim/base/json_fields.h"

#include <functional>
#include <limits>

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <nlohmann/json.hpp>

#include "sim/base/json_change.h"
#include "sim/base/json_document.h"

namespace rehearse {
namespace json_fields_test {

using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::IsEmpty;

using Json = nlohmann::ordered_json;

enum class Tyre : uint8_t { kSummer, kWinter };
constexpr ValueName<Tyre> kTyreNames[] = {{"winter", Tyre::kWinter}, {"summer", Tyre::kSummer}};
constexpr ValueName<bool> kPaintNames[] = {{"matt", false}, {"shiny", true}};

struct Wheel {
  uint32_t spokes = 12;
  Tyre tyre = Tyre::kSummer;
};

struct Extras {
  bool radio = false;
  bool roof = false;
};
constexpr FlagName<Extras> kExtraNames[] = {{"roof", &Extras::roof}, {"radio", &Extras::radio}};

struct Motor {
  double power = 80;
  Seconds start = Seconds(0.5);
};

struct Car {
  std::string colour;
  bool is_shiny = false;
  std::optional<Seconds> top;
  std::vector<Wheel> wheels;
  std::vector<std::vector<Tyre>> spares;
  std::map<std::string, Bytes> memory;
  Extras extras;
  Motor motor;
  uint16_t seats = 5;
  nlohmann::json note;
  std::pair<int, int> size = {1, 2};
  bool is_sold = false;
};

const Fields<Wheel>& WheelFields() {
  static const Fields<Wheel> fields(
      "wheel", "One of the four.",
      {{"spokes", &Wheel::spokes, AWhole(1, 40), Usual(), "that hold the rim"},
       {"tyre", &Wheel::tyre, OneOf(kTyreNames), Usual(), "what it rolls on"}});
  return fields;
}

FieldList<Motor> MotorRows() {
  return {{"power", &Motor::power, ANumberAbove(0, 500, "kW"), Usual(), "of the motor"},
          {"start", &Motor::start, ADurationUpTo(Seconds(2)), UsualAndWritten(), "time to start"}};
}

void ReadSize(const JsonReader& reader, std::pair<int, int>* size) {
  const std::vector<JsonReader> sides = reader.Elements();
  *size = {static_cast<int>(sides.at(0).Integer()), static_cast<int>(sides.at(1).Integer())};
}
void WriteSize(const std::pair<int, int>& size, Json* to) {
  *to = Json::array({size.first, size.second});
}

const Fields<Car>& CarFields() {
  static const Fields<Car> fields(
      "car", "Four wheels and a motor.",
      {{"kind", OneOf({"car"}), Required(), "what it is"},
       {"colour", &Car::colour, OneOf({"red", "blue"}), Required(), "of the paint"},
       {"paint", &Car::is_shiny, OneOf(kPaintNames), Usual(), "how it looks"},
       {"top", &Car::top, ADuration(), Optional("not told"), "time to 100"},
       {"wheels", &Car::wheels, ListOf(ObjectIn<WheelFields>()), Usual(), "from the front"},
       {"spares", &Car::spares, ListOf(ListOf(OneOf(kTyreNames))), Usual(), "by side"},
       {"memory", &Car::memory, Named(ASize()), Usual(), "of each computer"},
       {"extras", &Car::extras, FlagsOf(kExtraNames), Usual(), "what else it has"},
       Within(&Car::motor, MotorRows()),
       {"seats", &Car::seats, AWhole(1, 9), Required(), "for people", "5", "with people"},
       {"sold", &Car::is_sold, TrueFalse(), FilledIn("the dealer's"), "by the dealer"},
       {"note", &Car::note, Anything(), Optional("nothing"), "for people"},
       {"size", &Car::size, ReadBy(Tuple({AWhole(1, 9), AWhole(1, 9)}), ReadSize, WriteSize),
        Usual(), "length and width"}});
  return fields;
}

Car Read(const std::string& text, std::string_view variant = "") {
  const JsonDocument document = JsonDocument::FromText(text, "t.json");
  return CarFields().Read(document.Root(), variant);
}

std::string Written(const Car& car, std::string_view variant = "") {
  Json json;
  CarFields().Write(car, &json, variant);
  return json.dump();
}

std::string MessageOf(const std::function<void()>& act) {
  try {
    act();
  } catch (const Error& error) {
    return error.what();
  }
  return "";
}

constexpr const char* kFull =
    R"({"colour":"blue","paint":"shiny","top":"3s","wheels":[{"spokes":8},{"tyre":"winter"}],)"
    R"("spares":[["winter","summer"],[]],"memory":{"a":"1MiB","b":"7B"},"extras":["roof"],)"
    R"("power":60.5,"start":"1s","seats":2,"sold":true,"note":{"by":"me"},"size":[3,4]})";

TEST(JsonFieldsTest, ARowReadsItsMember) {
  const Car car = Read(kFull, "with people");
  EXPECT_EQ(car.colour, "blue");
  EXPECT_TRUE(car.is_shiny);
  EXPECT_EQ(car.top, Seconds(3));
  ASSERT_EQ(car.wheels.size(), 2u);
  EXPECT_EQ(car.wheels[0].spokes, 8u);
  EXPECT_EQ(car.wheels[0].tyre, Tyre::kSummer);
  EXPECT_EQ(car.wheels[1].tyre, Tyre::kWinter);
  ASSERT_EQ(car.spares.size(), 2u);
  EXPECT_THAT(car.spares[0], ElementsAre(Tyre::kWinter, Tyre::kSummer));
  EXPECT_EQ(car.memory.at("a"), Bytes(1 << 20));
  EXPECT_TRUE(car.extras.roof);
  EXPECT_FALSE(car.extras.radio);
  EXPECT_EQ(car.motor.power, 60.5);
  EXPECT_EQ(car.motor.start, Seconds(1));
  EXPECT_EQ(car.seats, 2u);
  EXPECT_EQ(car.note.at("by"), "me");
  EXPECT_EQ(car.size, std::pair(3, 4));
}

TEST(JsonFieldsTest, WhatIsReadIsWrittenAgain) {
  EXPECT_EQ(Written(Read(kFull, "with people"), "with people"), kFull);
}

TEST(JsonFieldsTest, WhatIsAsUsualIsLeftOutUnlessItsRowSaysOtherwise) {
  EXPECT_EQ(Written(Read(R"({"colour": "red", "sold": false})")),
            R"({"colour":"red","start":"0.5s","sold":false})");
}

TEST(JsonFieldsTest, ADefaultIsWhatANewStructHas) {
  const auto default_of = [](const char* key) {
    return CarFields().shape().Find(key)->presence.value->dump();
  };
  EXPECT_EQ(default_of("paint"), "\"matt\"");
  EXPECT_EQ(default_of("power"), "80");
  EXPECT_EQ(default_of("start"), "\"0.5s\"");
  EXPECT_EQ(default_of("wheels"), "[]");
  EXPECT_EQ(default_of("size"), "[1,2]");
}

TEST(JsonFieldsTest, AKeyThatIsMissingLeavesItsMemberAsItIs) {
  const JsonDocument document =
      JsonDocument::FromText(R"({"colour": "red", "sold": true})", "t.json");
  Car preset;
  preset.motor.power = 200;
  CarFields().ReadInto(document.Root().As(CarFields().shape()), &preset);
  EXPECT_EQ(preset.motor.power, 200);
  EXPECT_EQ(preset.colour, "red");
}

TEST(JsonFieldsTest, MistakesAreThoseOfTheShape) {
  EXPECT_EQ(MessageOf([] { Read(R"({"colour": "red", "wheels": [{"spokes": 41}]})"); }),
            "t.json:1: /wheels/0/spokes: found 41, expected a whole number from 1 to 40");
  EXPECT_THAT(MessageOf([] { Read(R"({"colour": "red", "paint": "mat"})"); }),
              HasSubstr("found \"mat\"; did you mean \"matt\"? Expected \"matt\" or \"shiny\""));
  EXPECT_THAT(MessageOf([] { Read(R"({"paint": "matt"})"); }), HasSubstr("missing key \"colour\""));
  EXPECT_THAT(MessageOf([] { Read(R"({"colour": "red", "seats": 2})"); }),
              HasSubstr("unknown key \"seats\""));
  EXPECT_THAT(MessageOf([] { Read(R"({"colour": "red"})"); }), HasSubstr("missing key \"sold\""));
  const JsonDocument document = JsonDocument::FromText("{\"colour\": \"red\"}", "t.json");
  const JsonReader car = document.Root().As(CarFields().shape());
  EXPECT_EQ(MessageOf([&] {
              MustHave(car, {"colour", "power", "top"});
            }),
            "t.json:1: missing key \"top\"");
}

TEST(JsonFieldsTest, DifferencesAreNamedByTheirKeys) {
  const Car one = Read(kFull, "with people");
  EXPECT_TRUE(CarFields().IsSame(one, one));
  EXPECT_THAT(CarFields().Differing(one, one), IsEmpty());
  Car other = one;
  other.wheels[1].spokes = 3;
  other.top.reset();
  other.motor.start = Seconds(2);
  other.size.second = 5;
  EXPECT_FALSE(CarFields().IsSame(one, other));
  EXPECT_THAT(CarFields().Differing(one, other), ElementsAre("top", "wheels", "start", "size"));
}

TEST(JsonFieldsTest, ARowThatDoesNotFitItsMemberIsAFaultOfOurs) {
  EXPECT_THROW((Field<Wheel>("spokes", &Wheel::spokes, AWhole(-1, 40), Usual(), "")),
               InternalError);
  EXPECT_THROW((Field<Wheel>("spokes", &Wheel::spokes, TrueFalse(), Usual(), "")), InternalError);
  EXPECT_THROW((Field<Wheel>("tyre", &Wheel::tyre, OneOf({"a"}), Usual(), "")), InternalError);
  EXPECT_THROW((Field<Wheel>("tyre", &Wheel::tyre, OneOf(kPaintNames), Usual(), "")),
               InternalError);
  EXPECT_THROW((Field<Motor>("start", &Motor::start, ASize(), Usual(), "")), InternalError);
  EXPECT_THROW((Field<Car>("motor", &Car::motor, ObjectIn<WheelFields>(), Usual(), "")),
               InternalError);
}

struct Trip {
  std::shared_ptr<const Motor> spare;
  std::optional<std::pair<int, int>> area;
  std::string from;
  std::string to = "home";
  Json log;
};

void CheckTrip(const JsonReader& reader, Trip* trip) {
  if (trip->from == trip->to) reader.At("to").Fail("is where it begins");
  if (trip->log.is_null()) trip->log = Json::array({trip->from});
}

const Fields<Motor>& MotorFields() {
  static const Fields<Motor> fields("motor", "What drives.", MotorRows());
  return fields;
}

const Fields<Trip>& TripFields() {
  static const Fields<Trip> fields(
      "trip", "From here to there.",
      {{"log", &Trip::log, Anything(), Optional("its beginning"), "what happened"},
       {"to", &Trip::to, AText(), AndWritten(Optional("home")), "its end"},
       {"spare", &Trip::spare, ObjectIn<MotorFields>(), Optional("none"), "a second motor"},
       {"area", &Trip::area, ReadBy(Tuple({AWhole(1, 9), AWhole(1, 9)}), ReadSize, WriteSize),
        Optional("anywhere"), "around it"},
       {"from", &Trip::from, AText(), Required(), "its beginning"}},
      CheckTrip, {"to", "log"});
  return fields;
}

std::string Again(const std::string& text) {
  const JsonDocument document = JsonDocument::FromText(text, "t.json");
  Json json;
  TripFields().Write(TripFields().Read(document.Root()), &json);
  return json.dump();
}

TEST(JsonFieldsTest, WhatFollowsFromTheRowsIsCheckedAndFilledInAfterThem) {
  EXPECT_EQ(MessageOf([] { Again(R"({"from": "a", "to": "a"})"); }),
            "t.json:1: /to: is where it begins");
  EXPECT_EQ(Again(R"({"from": "a"})"), R"({"from":"a","to":"home","log":["a"]})");
}

TEST(JsonFieldsTest, PointersHoldAnObjectAndKeysMayBeWrittenLast) {
  EXPECT_EQ(Again(R"({"log": {"b": 1, "a": 2}, "spare": {"power": 3}, "area": [1, 2], )"
                  R"("from": "x", "to": "y"})"),
            R"({"spare":{"power":3.0,"start":"0.5s"},"area":[1,2],"from":"x","to":"y",)"
            R"("log":{"a":2,"b":1}})");
}

struct Parcel {
  Wheel wheel;
  double weight = 0;
  uint32_t stamps = 0;
};

bool IsHeavy(const Parcel& parcel) { return parcel.weight > 10; }
void WriteSum(const Parcel& parcel, Json* to) { *to = parcel.wheel.spokes + parcel.stamps; }

const Fields<Parcel>& ContentFields() {
  static const Fields<Parcel> fields(
      "content", "What is in it.",
      {WheelFields().Rows({"spokes"}).Within(&Parcel::wheel),
       {"weight", &Parcel::weight, ANumber(0, 100), Required(), "of all"},
       {"stamps", &Parcel::stamps, AWhole(0, 9), WrittenIf<IsHeavy>("it is light"), "on it"}});
  return fields;
}

const Fields<Parcel>& ParcelFields() {
  static const Fields<Parcel> fields(
      "parcel", "A wheel on its way.",
      {{"content", kItself, ObjectIn<ContentFields>(), Required(), "an object of its own"},
       {"sum", kItself, WrittenBy(AWhole(0, 99), WriteSum), Optional("nobody asks"), "for fun"}});
  return fields;
}

TEST(JsonFieldsTest, AnObjectMayHoldMembersOfTheStructAround) {
  const auto again = [](const std::string& text) {
    const JsonDocument document = JsonDocument::FromText(text, "t.json");
    Json json;
    ParcelFields().Write(ParcelFields().Read(document.Root()), &json);
    return json.dump();
  };
  EXPECT_EQ(again(R"({"content": {"spokes": 8, "weight": 11}, "sum": 77})"),
            R"({"content":{"spokes":8,"weight":11.0,"stamps":0},"sum":8})");
  EXPECT_EQ(again(R"({"content": {"weight": 1, "stamps": 2}})"),
            R"({"content":{"weight":1.0},"sum":14})");
}

TEST(JsonFieldsTest, ANumberThatJsonDoesNotKnowIsAFaultOfOurs) {
  Parcel parcel;
  parcel.weight = std::numeric_limits<double>::infinity();
  Json json;
  EXPECT_THROW(ParcelFields().Write(parcel, &json), InternalError);
}

TEST(JsonFieldsTest, AListOfNamesHasThemBothWays) {
  EXPECT_STREQ(NameIn(kTyreNames, Tyre::kWinter), "winter");
}

// "null" is a value like others, and a text that is not there is none.
TEST(JsonFieldsTest, AChangeToNullIsWritten) {
  const JsonChange to_null = {.file = "a", .path = "b", .is = "null"};
  const JsonChange from_null = {.file = "a", .path = "b", .was = "null", .is = "1"};
  const Json written = ToJson(std::vector<JsonChange>{to_null, from_null});
  EXPECT_EQ(written.dump(),
            R"([{"file":"a","path":"b","is":null},{"file":"a","path":"b","was":null,"is":1}])");
}

}  // namespace json_fields_test
}  // namespace rehearse

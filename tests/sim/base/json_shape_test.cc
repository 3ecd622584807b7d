// Tables that readers read through.
#include "sim/base/json_shape.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <nlohmann/json.hpp>

#include "sim/base/json_document.h"
#include "sim/base/json_reader.h"
#include "sim/base/schema_version.h"
#include "sim/base/shape_print.h"

namespace rehearse {
namespace json_shape_test {

using ::testing::HasSubstr;

JsonDocument Parse(const std::string& text) { return JsonDocument::FromText(text, "t.json"); }

const ObjectShape& WheelShape() {
  static const ObjectShape shape = {
      "wheel", "One of the four.", {{"spokes", AWhole(1, 40), Default("12"), "that hold the rim"}}};
  return shape;
}

const ObjectShape& CarShape() {
  static const ObjectShape shape = {
      "car",
      "Four wheels and a motor.",
      {{"colour", OneOf({"red", "blue"}), Required(), "of the paint"},
       {"power", ANumberAbove(0, 500, "kW"), Default("80"), "of the motor", "60.5"},
       {"top", ADurationUpTo(Seconds(2)), Optional("not told"), "time to 100", "\"1.5s\""},
       {"wheels", ListOf(ObjectOf(WheelShape)), Default("[]"), "from the front"},
       {"seats", AWhole(1, 9), Required(), "for people", "5", "with people"}}};
  return shape;
}

std::string MessageOf(const std::function<void()>& act) {
  try {
    act();
  } catch (const Error& error) {
    return error.what();
  }
  return "";
}

TEST(JsonShapeTest, AMissingKeyHasTheDefaultOfTheTable) {
  const JsonDocument document = Parse(R"({"colour": "blue"})");
  const JsonReader car = document.Root().As(CarShape());
  EXPECT_EQ(car.At("power").Number(), 80);
  EXPECT_TRUE(car.At("wheels").Elements().empty());
  EXPECT_FALSE(car.Has("power"));  // in the document
  EXPECT_EQ(car.At("colour").Choice(), 1u);
}

TEST(JsonShapeTest, RangesAndChoicesAreThoseOfTheTable) {
  const JsonDocument document = Parse(
      "{\"colour\": \"bleu\", \"power\": 0, \"top\": \"3s\",\n\"wheels\": [{\"spokes\": 41}]}");
  const JsonReader car = document.Root().As(CarShape());
  EXPECT_THAT(MessageOf([&] { car.At("colour").Choice(); }),
              HasSubstr("found \"bleu\"; did you mean \"blue\"? Expected \"red\" or \"blue\""));
  EXPECT_THAT(MessageOf([&] { car.At("power").Number(); }),
              HasSubstr("found 0, expected a number above 0 and at most 500"));
  EXPECT_THAT(MessageOf([&] { car.At("top").Duration(); }), HasSubstr("expected at most 2 s"));
  const JsonReader wheel = car.At("wheels").Elements().front().As(WheelShape());
  EXPECT_EQ(MessageOf([&] { wheel.At("spokes").Integer(); }),
            "t.json:2: /wheels/0/spokes: found 41, expected a whole number from 1 to 40");
}

TEST(JsonShapeTest, AKeyThatTheTableLacksIsRefusedInAFileAndAFaultInAReader) {
  EXPECT_THAT(MessageOf([] { Parse(R"({"color": "red"})").Root().As(CarShape()); }),
              HasSubstr("unknown key \"color\"; did you mean \"colour\"?"));
  const JsonDocument document = Parse(R"({"colour": "red"})");
  const JsonReader car = document.Root().As(CarShape());
  EXPECT_THROW((void)car.At("motor"), InternalError);
  EXPECT_THROW((void)car.Has("motor"), InternalError);
}

TEST(JsonShapeTest, AVariantHasItsOwnKeys) {
  const JsonDocument document = Parse(R"({"colour": "red", "seats": 4})");
  EXPECT_EQ(document.Root().As(CarShape(), "with people").At("seats").Integer(), 4);
  EXPECT_THAT(MessageOf([&] { document.Root().As(CarShape()); }),
              HasSubstr("unknown key \"seats\""));
}

TEST(JsonShapeTest, APageTellsTypeDefaultAndExampleOfEachKey) {
  const DocumentShape document{"car", "what drives.", "", ObjectOf(CarShape)};
  EXPECT_EQ(ShapeText(document, {document}),
            R"(car: what drives.
Files of this kind say no version: keys keep their meaning, and unknown ones are refused.

car: Four wheels and a motor.
  colour                     of the paint
                             "red" or "blue"; must be given
  power                      of the motor
                             a number above 0 and at most 500 in kW; default 80; e.g. 60.5
  top                        time to 100
                             a time with its unit such as "1.5us", at most 2 s; without it: not
                             told; e.g. "1.5s"
  wheels                     from the front
                             a list, each an object, "wheel"; default []
  seats                      for people (with people)
                             a whole number from 1 to 9; must be given; e.g. 5

wheel: One of the four.
  spokes                     that hold the rim
                             a whole number from 1 to 40; default 12
)");
}

TEST(JsonShapeTest, AJsonSchemaRefersToEachObjectOnce) {
  const nlohmann::ordered_json schema = JsonSchema({"car", "what drives.", "", ObjectOf(CarShape)});
  EXPECT_EQ(schema["$ref"], "#/definitions/car");
  const auto& car = schema["definitions"]["car"];
  EXPECT_EQ(car["required"].dump(), R"(["colour"])");  // seats are of a variant only
  EXPECT_EQ(car["properties"]["power"]["exclusiveMinimum"], 0);
  EXPECT_EQ(car["properties"]["power"]["default"], 80);
  EXPECT_EQ(car["properties"]["wheels"]["items"]["$ref"], "#/definitions/wheel");
  EXPECT_EQ(car["additionalProperties"], false);
}

TEST(SchemaVersionTest, AFileOfAnotherVersionIsRefusedAndToldWhichItIs) {
  const auto refusal = [](const std::string& found) {
    return MessageOf([&] {
      const JsonDocument document = Parse("{\"schema\": \"" + found + "\"}");
      CheckVersion(document.Root().At("schema"), "rehearse.car.v2");
    });
  };
  EXPECT_EQ(refusal("rehearse.car.v2"), "");
  EXPECT_THAT(refusal("rehearse.car.v3"), HasSubstr("which a newer rehearse wrote; this one"));
  EXPECT_THAT(refusal("rehearse.car.v1"), HasSubstr("which an older rehearse wrote; this one"));
  EXPECT_THAT(refusal("rehearse.car.v1"), HasSubstr("reads rehearse.car.v2"));
  EXPECT_THAT(refusal("rehearse.boat.v2"), HasSubstr("expected \"rehearse.car.v2\""));
  EXPECT_THAT(refusal("rehearse.car.vx"), HasSubstr("expected \"rehearse.car.v2\""));
  EXPECT_THAT(VersionPolicy("rehearse.car.v2"), HasSubstr("reads no other version"));
}

}  // namespace json_shape_test
}  // namespace rehearse

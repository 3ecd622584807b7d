#include "sim/base/shape_print.h"

#include <algorithm>
#include <limits>

#include <fmt/format.h>
#include <nlohmann/json.hpp>

#include "sim/base/error.h"
#include "sim/base/schema_version.h"
#include "sim/base/units.h"

namespace rehearse {
namespace {

using Json = nlohmann::ordered_json;

constexpr size_t kColumns = 100;

// ---- For people ---------------------------------------------------------------------------------

// The text in lines, all but the first indented.
std::string Wrapped(const std::string& text, size_t indent, size_t first_column) {
  std::string lines;
  size_t column = first_column;
  for (size_t begin = 0; begin < text.size();) {
    const size_t end = std::min(text.find(' ', begin), text.size());
    const std::string word = text.substr(begin, end - begin);
    if (column + 1 + word.size() > kColumns && column > indent) {
      lines += "\n" + std::string(indent, ' ');
      column = indent;
    } else if (begin > 0) {
      lines += ' ';
      ++column;
    }
    lines += word;
    column += word.size();
    begin = end + 1;
  }
  return lines + "\n";
}

std::string Words(const Presence& presence) {
  switch (presence.kind) {
    case Presence::Kind::kRequired:
      return "must be given";
    case Presence::Kind::kDefault:
      return "default " + presence.value->dump();
    case Presence::Kind::kOptional:
      return "without it: " + presence.words;
  }
  CHECK(false);
}

std::string RowText(const JsonKey& row) {
  constexpr size_t kIndent = 29;
  std::string text = fmt::format("  {:<{}} ", row.name, kIndent - 3);
  if (text.size() > kIndent) text += "\n" + std::string(kIndent, ' ');
  const std::string only = row.only.empty() ? "" : fmt::format(" ({})", row.only);
  text += Wrapped(row.about + only, kIndent, kIndent);
  std::string rest = fmt::format("{}; {}", Described(row.shape), Words(row.presence));
  if (!row.example.empty()) rest += "; e.g. " + row.example;
  return text + std::string(kIndent, ' ') + Wrapped(rest, kIndent, kIndent);
}

// Leaves out objects that are documents of their own, and what only they mention.
void Collect(const JsonShape& shape, const std::vector<const ObjectShape*>& apart,
             std::vector<const ObjectShape*>* objects) {
  for (const JsonShape& part : shape.parts) Collect(part, apart, objects);
  if (shape.type != JsonType::kObject) return;
  const ObjectShape* const object = &shape.object();
  for (const auto& list : {apart, *objects}) {
    if (std::find(list.begin(), list.end(), object) != list.end()) return;
  }
  objects->push_back(object);
}

// The objects that stand for the whole document.
std::vector<const ObjectShape*> RootsOf(const JsonShape& shape) {
  std::vector<const ObjectShape*> roots;
  Collect(shape, {}, &roots);
  return roots;
}

// ---- For editors --------------------------------------------------------------------------------

std::string Reference(const ObjectShape& object) {
  std::string name = object.name;
  for (char& c : name) {
    if (c == ' ' || c == ':' || c == ',') c = '-';
  }
  return name;
}

Json Pattern(const std::string& pattern) { return {{"type", "string"}, {"pattern", pattern}}; }

Json SchemaOf(const JsonShape& shape);

Json AnyOf(const std::vector<JsonShape>& parts) {
  Json list = Json::array();
  for (const JsonShape& part : parts) list.push_back(SchemaOf(part));
  return {{"anyOf", std::move(list)}};
}

Json SchemaOf(const JsonShape& shape) {
  switch (shape.type) {
    case JsonType::kAnything:
      return Json::object();
    case JsonType::kText:
      return {{"type", "string"}};
    case JsonType::kTrueFalse:
      return {{"type", "boolean"}};
    case JsonType::kWhole: {
      Json schema = {{"type", "integer"}};
      if (shape.least > std::numeric_limits<int64_t>::lowest()) schema["minimum"] = shape.least;
      if (shape.most < std::numeric_limits<int64_t>::max()) schema["maximum"] = shape.most;
      return schema;
    }
    case JsonType::kNumber: {
      Json schema = {{"type", "number"}};
      if (shape.lowest > std::numeric_limits<double>::lowest())
        schema[shape.above_lowest ? "exclusiveMinimum" : "minimum"] = shape.lowest;
      if (shape.highest < std::numeric_limits<double>::max()) schema["maximum"] = shape.highest;
      return schema;
    }
    case JsonType::kBandwidth:
      return Pattern(BandwidthPattern());
    case JsonType::kDuration:
      return Pattern(DurationPattern());
    case JsonType::kSize:
      return Pattern(SizePattern());
    case JsonType::kFlopRate:
      return Pattern(FlopRatePattern());
    case JsonType::kFlopCount:
      return Pattern(FlopsPattern());
    case JsonType::kChoice:
      return {{"enum", shape.choices}};
    case JsonType::kObject:
      return {{"$ref", "#/definitions/" + Reference(shape.object())}};
    case JsonType::kNamed:
      return {{"type", "object"}, {"additionalProperties", SchemaOf(shape.parts.front())}};
    case JsonType::kList:
      return {{"type", "array"}, {"items", SchemaOf(shape.parts.front())}};
    case JsonType::kTuple: {
      Json items = Json::array();
      for (const JsonShape& part : shape.parts) items.push_back(SchemaOf(part));
      return {{"type", "array"},
              {"items", std::move(items)},
              {"minItems", shape.parts.size()},
              {"maxItems", shape.parts.size()}};
    }
    case JsonType::kEither:
      return AnyOf(shape.parts);
  }
  CHECK(false);
}

Json SchemaOf(const JsonKey& row) {
  Json schema = SchemaOf(row.shape);
  // Draft 7 ignores whatever stands beside "$ref".
  if (schema.contains("$ref")) schema = {{"allOf", Json::array({std::move(schema)})}};
  schema["description"] =
      row.about + (row.only.empty() ? "" : " (" + row.only + ")") +
      (row.presence.kind == Presence::Kind::kOptional ? "; without it: " + row.presence.words : "");
  if (row.presence.value != nullptr) schema["default"] = Json(*row.presence.value);
  if (!row.example.empty()) schema["examples"] = Json::array({Json::parse(row.example)});
  return schema;
}

Json SchemaOf(const ObjectShape& object) {
  Json schema = {{"type", "object"}, {"description", object.about}};
  Json required = Json::array();
  for (const JsonKey& row : object.keys) {
    schema["properties"][row.name] = SchemaOf(row);
    if (row.presence.kind == Presence::Kind::kRequired && row.only.empty())
      required.push_back(row.name);
  }
  if (!required.empty()) schema["required"] = std::move(required);
  schema["additionalProperties"] = false;
  return schema;
}

}  // namespace

std::string ShapeText(const DocumentShape& document, const std::vector<DocumentShape>& others) {
  std::string text = Wrapped(fmt::format("{}: {}", document.name, document.about), 0, 0);
  text += Wrapped(VersionPolicy(document.version), 0, 0);

  std::vector<const ObjectShape*> objects = RootsOf(document.shape);
  std::vector<const ObjectShape*> apart;
  for (const DocumentShape& other : others) {
    if (other.name == document.name) continue;
    for (const ObjectShape* root : RootsOf(other.shape)) {
      if (std::find(objects.begin(), objects.end(), root) == objects.end()) apart.push_back(root);
    }
  }
  if (objects.size() != 1 || document.shape.type != JsonType::kObject)
    text += Wrapped("The whole document is " + Described(document.shape) + ".", 0, 0);
  for (size_t i = 0; i < objects.size(); ++i) {  // grows meanwhile
    text += "\n" + Wrapped(fmt::format("{}: {}", objects[i]->name, objects[i]->about), 0, 0);
    for (const JsonKey& row : objects[i]->keys) {
      text += RowText(row);
      Collect(row.shape, apart, &objects);
    }
  }
  std::vector<std::string> named;
  for (const DocumentShape& other : others) {
    const std::vector<const ObjectShape*> roots = RootsOf(other.shape);
    const std::vector<const ObjectShape*> all = ObjectsIn(document.shape);
    const bool is_apart = std::find(apart.begin(), apart.end(), roots.front()) != apart.end();
    if (is_apart && std::find(all.begin(), all.end(), roots.front()) != all.end())
      named.push_back("rehearse schema " + other.name);
  }
  if (!named.empty())
    text += fmt::format(
        "\n"
        "Objects described elsewhere: {}\n",
        fmt::join(named, ", "));
  return text;
}

nlohmann::ordered_json JsonSchema(const DocumentShape& document) {
  Json schema = {{"$schema", "http://json-schema.org/draft-07/schema#"},
                 {"title", "Rehearse: " + document.name},
                 {"description", document.about}};
  schema.update(SchemaOf(document.shape));
  for (const ObjectShape* object : ObjectsIn(document.shape)) {
    Json& definition = schema["definitions"][Reference(*object)];
    CHECK(definition.is_null());  // names are unique in a document
    definition = SchemaOf(*object);
  }
  return schema;
}

}  // namespace rehearse

#include "tools/foreign/runs/torchtitan/toml_text.h"

#ifdef REHEARSE_HAS_TOML
#include <algorithm>
#include <cmath>
#include <sstream>
#include <vector>

#include <fmt/format.h>

namespace rehearse {
namespace {

struct TomlAssertion {};
constexpr void AssertOfToml(bool holds) {
  if (!holds) throw TomlAssertion();
}

}  // namespace
}  // namespace rehearse

// toml++ 3.3 takes for granted what malformed files lack, such as a key in "[#]": an assertion
// would end the program, and without assertions it would go on as if the key were there.
#undef NDEBUG
#define TOML_ASSERT(expr) ::rehearse::AssertOfToml(static_cast<bool>(expr))
#define TOML_HEADER_ONLY 1
#include <toml++/toml.h>
#endif

#include "sim/base/error.h"

namespace rehearse {

#ifdef REHEARSE_HAS_TOML
namespace {

struct LinedValue {
  size_t line = 0;
  std::string key;
  nlohmann::json value;
};

nlohmann::json ValueOf(const toml::node& node) {
  if (const auto* text = node.as_string()) return text->get();
  if (const auto* number = node.as_integer()) return number->get();
  if (const auto* truth = node.as_boolean()) return truth->get();
  if (const auto* number = node.as_floating_point()) {
    if (std::isfinite(number->get())) return number->get();
    return "not finite";
  }
  if (const auto* array = node.as_array()) {
    nlohmann::json values = nlohmann::json::array();
    for (const toml::node& element : *array) values.push_back(ValueOf(element));
    return values;
  }
  if (const auto* table = node.as_table()) {
    nlohmann::json values = nlohmann::json::object();
    for (const auto& [key, element] : *table) values[std::string(key.str())] = ValueOf(element);
    return values;
  }
  return "a date or time";
}

void AddValues(const toml::table& table, const std::string& before,
               std::vector<LinedValue>* values) {
  for (const auto& [key, node] : table) {
    const std::string name = before + std::string(key.str());
    if (const auto* inner = node.as_table()) {
      AddValues(*inner, name + ".", values);
    } else {
      values->push_back({key.source().begin.line, name, ValueOf(node)});
    }
  }
}

// Each value is on the line that it has in the file.
std::string JsonOf(std::vector<LinedValue> values) {
  std::stable_sort(values.begin(), values.end(),
                   [](const LinedValue& a, const LinedValue& b) { return a.line < b.line; });
  std::string text = "{";
  size_t line = 1;
  bool is_first = true;
  for (const LinedValue& one : values) {
    if (!is_first) text += ",";
    is_first = false;
    for (; line < one.line; ++line) text += "\n";
    text += fmt::format("{}: {}", nlohmann::json(one.key).dump(), one.value.dump());
  }
  return text + "}";
}

}  // namespace

bool HasToml() { return true; }

JsonDocument ReadToml(std::string_view text, const std::string& name) {
  try {
    std::vector<LinedValue> values;
    AddValues(toml::parse(text), "", &values);
    return JsonDocument::FromText(JsonOf(std::move(values)), name);
  } catch (const toml::parse_error& error) {
    throw Error({name, static_cast<int>(error.source().begin.line), ""},
                "no TOML: " + std::string(error.description()));
  } catch (const TomlAssertion&) {
    throw Error({name, 0, ""}, "no TOML: somewhere a key or a value is missing");
  }
}

#else

bool HasToml() { return false; }

JsonDocument ReadToml(std::string_view text, const std::string& name) {
  static_cast<void>(text);
  throw Error({name, 0, ""},
              "this build cannot read TOML: it was built without toml++ (libtomlplusplus-dev)");
}

#endif

}  // namespace rehearse

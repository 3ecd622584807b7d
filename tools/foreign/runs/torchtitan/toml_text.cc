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

// Bytes that are not UTF-8 become U+FFFD.
std::string DumpOf(const nlohmann::json& value) {
  return value.dump(-1, ' ', false, nlohmann::json::error_handler_t::replace);
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
    text += fmt::format("{}: {}", DumpOf(one.key), DumpOf(one.value));
  }
  return text + "}";
}

// The parser calls itself for each part of a key, and ours for each table in a table.
constexpr int kMostParts = 64;
constexpr int kDeepestBrackets = 64;

// Refuses keys of too many parts ("a.a.a"), and values too deep in others, before the parser sees
// them. Texts in quotes are passed over.
void LimitDepth(std::string_view text, const std::string& name) {
  int line = 1;
  int dots = 0;
  int depth = 0;
  for (size_t at = 0; at < text.size(); ++at) {
    const char c = text[at];
    if (c == '\n') {
      ++line;
      dots = 0;
    } else if (c == '#') {
      while (at + 1 < text.size() && text[at + 1] != '\n') ++at;
    } else if (c == '"' || c == '\'') {
      const std::string quote(text.substr(at, 3) == std::string(3, c) ? 3 : 1, c);
      at += quote.size();
      while (at < text.size() && text.substr(at, quote.size()) != quote) {
        if (c == '"' && text[at] == '\\') ++at;
        if (at < text.size() && text[at] == '\n') {
          if (quote.size() == 1) break;
          ++line;
        }
        ++at;
      }
      at += quote.size() - 1;
      // Before three quotes that end a text there may be one or two that belong to it.
      if (quote.size() == 3) {
        for (int more = 0; more < 2 && at + 1 < text.size() && text[at + 1] == c; ++more) ++at;
      }
    } else if (c == '.') {
      if (++dots >= kMostParts)
        throw Error({name, line, ""},
                    fmt::format("found a key of more than {} parts, expected fewer", kMostParts));
    } else if (c == '[' || c == '{') {
      dots = 0;
      if (++depth > kDeepestBrackets)
        throw Error({name, line, ""},
                    fmt::format("found more than {} brackets in one another", kDeepestBrackets));
    } else if (c == ']' || c == '}') {
      depth = std::max(depth - 1, 0);
    } else if (c == '=' || c == ',') {
      dots = 0;
    }
  }
}

}  // namespace

bool HasToml() { return true; }

JsonDocument ReadToml(std::string_view text, const std::string& name) {
  LimitDepth(text, name);
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

#include "sim/base/schema_version.h"

#include <charconv>
#include <optional>

#include <fmt/format.h>

#include "sim/base/json_parse.h"
#include "sim/base/version.h"

namespace rehearse {
namespace {

// "rehearse.calibration.v1": its kind and its number.
struct Numbered {
  std::string_view kind;
  int number = 0;
};

std::optional<Numbered> VersionOf(std::string_view schema) {
  const size_t dot = schema.rfind(".v");
  if (dot == std::string_view::npos) return std::nullopt;
  const std::string_view digits = schema.substr(dot + 2);
  Numbered version{schema.substr(0, dot), 0};
  const char* const end = digits.data() + digits.size();
  const auto [stop, fault] = std::from_chars(digits.data(), end, version.number);
  if (digits.empty() || fault != std::errc() || stop != end) return std::nullopt;
  return version;
}

}  // namespace

void CheckVersion(const JsonReader& version, const std::string& schema) {
  const std::string text = version.String();
  if (text == schema) return;
  const std::optional<Numbered> found = VersionOf(text);
  const std::optional<Numbered> wanted = VersionOf(schema);
  if (!found || found->kind != wanted->kind) version.Expected(QuotedJson(schema));
  version.Fail(
      fmt::format("found {}, which {} rehearse wrote; this one ({}) reads {}", QuotedJson(text),
                  found->number > wanted->number ? "a newer" : "an older", Version(), schema));
}

std::string VersionPolicy(const std::string& schema) {
  if (schema.empty())
    return "Files of this kind say no version: keys keep their meaning, and unknown ones are "
           "refused.";
  return fmt::format(
      "Files say \"schema\": \"{}\"; this rehearse reads no other version, older or newer, and "
      "names the one it found.",
      schema);
}

}  // namespace rehearse

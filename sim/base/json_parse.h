// Parses a text into a JSON value that remembers the line of every part; sim/base/json_document.h
// is built on it.
//
// nlohmann's parser does the work; we add the lines, the limits, the refusal of duplicate keys, and
// words that a person understands.
#pragma once

#include <map>
#include <string>
#include <string_view>

#include <nlohmann/json.hpp>

#include "sim/base/error.h"
#include "sim/base/read_options.h"

namespace rehearse {

inline constexpr size_t kDeepestJson = 64;             // levels of nesting
inline constexpr size_t kLargestJson = kLargestInput;  // bytes of a text, as a rule

// JSON pointer -> line; a value that is not listed is on the line of the value that contains it.
using JsonLines = std::map<std::string, int, std::less<>>;

struct ParsedJson {
  nlohmann::json value;
  JsonLines lines;
};

// The text is not JSON, as opposed to JSON that we refuse.
class JsonSyntaxError : public Error {
 public:
  using Error::Error;
};

enum class JsonComments : uint8_t { kRefused, kAllowed };
// Throws Error at its place in `name`.
ParsedJson ParseJson(std::string_view text, const std::string& name, JsonComments comments,
                     InputSize size = InputSize::kUsual,
                     JsonNumbers numbers = JsonNumbers::kOfJson);

// The text of a file that is to be parsed, which may be gzipped. Throws Error when it cannot be
// read or is too large.
std::string ReadJsonText(const std::string& path, const ReadOptions& options = {});

// Appends one step to a JSON pointer (RFC 6901: "~" is written "~0" and "/" is written "~1").
void AppendToPointer(std::string& pointer, std::string_view key);
// The line of the value itself or of the innermost listed value around it.
int LineOf(const JsonLines& lines, std::string_view pointer);

// The value as JSON for a message: control characters escaped, cut between two characters.
std::string ShortenedJson(const nlohmann::json& value);
std::string QuotedJson(std::string_view text);

}  // namespace rehearse

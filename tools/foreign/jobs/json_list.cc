#include "tools/foreign/jobs/json_list.h"

#include <cstring>
#include <utility>

#include <fmt/format.h>

#include "sim/base/input_file.h"

namespace rehearse {
namespace {

constexpr size_t kLargestElement = size_t{4} << 20;

bool IsJsonBlank(char c) { return c == ' ' || c == '\t' || c == '\r' || c == '\n'; }

// The message without the place that it begins with.
std::string MessageOf(const Error& error) {
  return std::string(error.what()).substr(std::strlen(Error(error.place(), "").what()));
}

}  // namespace

JsonList::JsonList(const std::string& path, std::string what)
    : name_(InputName(path)),
      what_(std::move(what)),
      text_(path == kStandardInput ? "/dev/stdin" : path) {}

bool JsonList::Next() {
  SkipBlanks();
  const bool is_first = !std::exchange(has_begun_, true);
  if (is_first) {
    if (text_.AtEnd() || text_.Current() != '[') Fail("expected " + what_);
    text_.Next();
    SkipBlanks();
  }
  if (!text_.AtEnd() && text_.Current() == ']') {
    text_.Next();
    SkipBlanks();
    if (!text_.AtEnd()) Fail("found text behind the list, expected its end");
    return false;
  }
  if (!is_first) {
    if (text_.AtEnd()) Fail("the text ends in the middle; it may be truncated");
    if (text_.Current() != ',') Fail("expected a comma, or the end of the list");
    text_.Next();
    SkipBlanks();
  }
  begin_ = line_;
  ++count_;
  if (!text_.AtEnd() && text_.Current() != '{') FailInside("", 1, "expected an object");
  ReadObject();
  try {
    parsed_ = ParseJson(element_, name_, JsonComments::kRefused);
  } catch (const Error& error) {
    FailInside(error.place().pointer, error.place().line, MessageOf(error));
  }
  return true;
}

void JsonList::SkipBlanks() {
  for (; !text_.AtEnd() && IsJsonBlank(text_.Current()); text_.Next())
    if (text_.Current() == '\n') ++line_;
}

// Up to the brace that closes it. Of many blanks one is enough.
void JsonList::ReadObject() {
  element_.clear();
  size_t depth = 0;
  bool is_string = false;
  bool is_escaped = false;
  do {
    if (text_.AtEnd()) Fail("the text ends in the middle; it may be truncated");
    if (element_.size() == kLargestElement)
      FailInside("", 1, fmt::format("found more than {} bytes", kLargestElement));
    const char c = text_.Current();
    text_.Next();
    if (c == '\n') ++line_;
    if (is_string) {
      is_string = c != '"' || is_escaped;
      is_escaped = c == '\\' && !is_escaped;
    } else if (c == '"') {
      is_string = true;
    } else if (c == '{' || c == '[') {
      ++depth;
    } else if (c == '}' || c == ']') {
      --depth;
    } else if (c == ' ' && element_.back() == ' ') {
      continue;
    }
    element_ += c;
  } while (depth > 0);
}

void JsonList::Expected(const std::string& pointer, const nlohmann::json& found,
                        const std::string& expected) const {
  FailInside(pointer, LineOf(parsed_.lines, pointer),
             fmt::format("found {}, expected {}", ShortenedJson(found), expected));
}

void JsonList::Fail(const std::string& message) const { throw Error({name_, line_, ""}, message); }

void JsonList::FailInside(const std::string& pointer, int line, const std::string& message) const {
  throw Error({name_, begin_ + line - 1, fmt::format("/{}{}", count_ - 1, pointer)}, message);
}

}  // namespace rehearse

#include "tools/foreign/runs/python_text.h"

#include <algorithm>

namespace rehearse {

bool IsPartOfPythonName(char c) {
  return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9') || c == '_';
}
bool IsPythonBlank(char c) { return c == ' ' || c == '\t' || c == '\n' || c == '\r'; }

std::string_view StrippedPython(std::string_view text) {
  while (!text.empty() && IsPythonBlank(text.front())) text.remove_prefix(1);
  while (!text.empty() && IsPythonBlank(text.back())) text.remove_suffix(1);
  return text;
}

// The text with blanks for comments and for texts in three quotes.
std::string WithoutPythonComments(std::string_view text) {
  std::string code(text);
  for (size_t at = 0; at < code.size(); ++at) {
    const char c = code[at];
    const auto blank = [&](size_t end) {
      for (; at < std::min(end, code.size()); ++at)
        if (code[at] != '\n') code[at] = ' ';
      --at;
    };
    if (c == '#') {
      blank(std::min(code.find('\n', at), code.size()));
    } else if (c == '"' || c == '\'') {
      const std::string three(3, c);
      if (code.compare(at, 3, three) == 0) {
        const size_t end = code.find(three, at + 3);
        blank(end == std::string::npos ? code.size() : end + 3);
      } else {
        ++at;
        while (at < code.size() && code[at] != c && code[at] != '\n')
          at += code[at] == '\\' ? 2 : 1;
      }
    }
  }
  return code;
}

std::vector<PythonFunction> PythonFunctionsOf(std::string_view code) {
  std::vector<PythonFunction> functions;
  for (size_t at = 0; at < code.size();) {
    const size_t end = std::min(code.find('\n', at), code.size());
    const std::string_view line = code.substr(at, end - at);
    const bool is_at_margin = !line.empty() && !IsPythonBlank(line[0]) && line[0] != ')';
    if (is_at_margin) {
      if (!functions.empty() && functions.back().end == 0) functions.back().end = at;
      constexpr std::string_view kDef = "def ";
      if (line.starts_with(kDef)) {
        size_t behind = kDef.size();
        while (behind < line.size() && IsPartOfPythonName(line[behind])) ++behind;
        functions.push_back({std::string(line.substr(kDef.size(), behind - kDef.size())), at, 0});
      }
    }
    at = end + 1;
  }
  if (!functions.empty() && functions.back().end == 0) functions.back().end = code.size();
  return functions;
}

// Where a name stands that is not the end of a longer one.
size_t FindPythonName(std::string_view text, std::string_view name, size_t from) {
  for (size_t at = text.find(name, from); at != std::string_view::npos;
       at = text.find(name, at + 1)) {
    if (at == 0 || (!IsPartOfPythonName(text[at - 1]) && text[at - 1] != '.')) return at;
  }
  return std::string_view::npos;
}

// Behind the parenthesis that closes the one before `at`.
size_t EndOfPythonCall(std::string_view text, size_t at) {
  int depth = 1;
  for (; at < text.size() && depth > 0; ++at) {
    const char c = text[at];
    if (c == '"' || c == '\'') {
      const size_t end = text.find(c, at + 1);
      if (end == std::string_view::npos) return text.size();
      at = end;
    } else if (c == '(' || c == '[' || c == '{') {
      ++depth;
    } else if (c == ')' || c == ']' || c == '}') {
      --depth;
    }
  }
  return at;
}

}  // namespace rehearse

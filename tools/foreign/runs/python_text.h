// Python's text, as far as it is read and not run: without comments, its functions, names and
// calls.
#pragma once

#include <string>
#include <string_view>
#include <vector>

namespace rehearse {

bool IsPartOfPythonName(char c);
bool IsPythonBlank(char c);
std::string_view StrippedPython(std::string_view text);

// The text with blanks for comments and for texts in three quotes.
std::string WithoutPythonComments(std::string_view text);

struct PythonFunction {
  std::string name;
  size_t begin = 0;  // of its "def"
  size_t end = 0;
};

// Those that begin at the margin.
std::vector<PythonFunction> PythonFunctionsOf(std::string_view code);

// Where a name stands that is not the end of a longer one.
size_t FindPythonName(std::string_view text, std::string_view name, size_t from = 0);

// Behind the bracket that closes the one before `at`.
size_t EndOfPythonCall(std::string_view text, size_t at);

}  // namespace rehearse

// A list in JSON, element by element, so that a log of any number of jobs takes no memory.
#pragma once

#include <cstdint>
#include <string>

#include <nlohmann/json.hpp>

#include "sim/base/json_parse.h"
#include "sim/base/text_stream.h"

namespace rehearse {

class JsonList {
 public:
  // `what` says what was expected where it is no list of objects.
  JsonList(const std::string& path, std::string what);

  // False at the end. Throws Error where the text is none, at its line and JSON pointer.
  bool Next();

  const nlohmann::json& value() const { return parsed_.value; }
  // Throws Error at this pointer in the element: "found ..., expected ...".
  [[noreturn]] void Expected(const std::string& pointer, const nlohmann::json& found,
                             const std::string& expected) const;

 private:
  void SkipBlanks();
  void ReadObject();
  [[noreturn]] void Fail(const std::string& message) const;
  [[noreturn]] void FailInside(const std::string& pointer, int line,
                               const std::string& message) const;

  std::string name_;
  std::string what_;
  TextStream text_;
  ParsedJson parsed_;
  std::string element_;  // its text
  uint64_t count_ = 0;   // of elements
  int line_ = 1;         // of the text
  int begin_ = 1;        // line of the element
  bool has_begun_ = false;
};

}  // namespace rehearse

#include "tools/foreign/runs/torchtitan/job_config.h"

#include <fmt/format.h>

#include "sim/base/error.h"

namespace rehearse {

const char* JobConfig::Given(Names names) const {
  for (const char* name : names) {
    if (overrides_.Has(name)) return name;
  }
  for (const char* name : names) {
    if (root_.Has(name)) return name;
  }
  return nullptr;
}

const JsonReader& JobConfig::Where(const char* name) const {
  return overrides_.Has(name) ? overrides_ : root_;
}

bool JobConfig::Has(Names names) {
  for (const char* name : names) read_.insert(name);
  return Given(names) != nullptr;
}

JsonReader JobConfig::At(Names names) {
  CHECK(Has(names));
  const char* const name = Given(names);
  return Where(name).At(name);
}

int64_t JobConfig::WholeOr(Names names, int64_t least, int64_t most, int64_t otherwise) {
  return Has(names) ? At(names).Integer(least, most) : otherwise;
}

bool JobConfig::BoolOr(Names names, bool otherwise) {
  return Has(names) ? At(names).Bool() : otherwise;
}

std::string JobConfig::TextOr(Names names, const std::string& otherwise) {
  return Has(names) ? At(names).String() : otherwise;
}

std::vector<std::string> JobConfig::Texts(Names names) {
  std::vector<std::string> texts;
  if (!Has(names)) return texts;
  const JsonReader value = At(names);
  if (value.IsArray()) {
    for (const JsonReader& element : value.Elements()) texts.push_back(element.String());
    return texts;
  }
  std::string word;
  for (const char c : value.String() + ",") {
    if (c == ',') {
      if (!word.empty()) texts.push_back(word);
      word.clear();
    } else if (c != ' ') {
      word += c;
    }
  }
  return texts;
}

void JobConfig::Fail(Names names, const std::string& message) {
  const Origin origin = OriginOf(names);
  const bool is_override = Given(names) != nullptr && overrides_.Has(Given(names));
  throw Error({is_override ? "--set" : root_.place().file, origin.line, ""},
              fmt::format("{}: {}", origin.name, message));
}

Origin JobConfig::OriginOf(Names names) const {
  const char* const given = Given(names);
  if (given == nullptr) return {*names.begin(), 0};
  return {given, overrides_.Has(given) ? 0 : root_.At(given).place().line};
}

std::vector<std::string> JobConfig::Unread() const {
  std::vector<std::string> unread;
  for (const auto& [key, value] : root_.Members()) {
    if (!read_.contains(key)) unread.push_back(key);
  }
  for (const auto& [key, value] : overrides_.Members()) {
    if (!read_.contains(key) && !root_.Has(key)) unread.push_back(key);
  }
  return unread;
}

}  // namespace rehearse

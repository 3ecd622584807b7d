#include "tools/foreign/runs/flat_keys.h"

#include <algorithm>
#include <map>
#include <utility>

#include <fmt/format.h>
#include <nlohmann/json.hpp>

#include "sim/base/error.h"
#include "sim/base/json_reader.h"

namespace rehearse {
namespace {

struct FlatValue {
  nlohmann::json value;
  int line = 0;
};
using FlatTable = std::map<std::string, FlatValue>;

std::string DumpOf(const nlohmann::json& value) {
  return value.dump(-1, ' ', false, nlohmann::json::error_handler_t::replace);
}

// YAML 1.1 has numbers such as 500_000.
nlohmann::json NumberOf(const nlohmann::json& value) {
  if (!value.is_string()) return value;
  std::string text = value.get<std::string>();
  const bool is_number = text.find('_') != std::string::npos && text.size() < 20 &&
                         text[0] >= '0' && text[0] <= '9' &&
                         text.find_first_not_of("0123456789_") == std::string::npos;
  if (!is_number) return value;
  std::erase(text, '_');
  return nlohmann::json::accept(text) ? nlohmann::json::parse(text) : value;
}

void Flatten(const JsonReader& table, const std::string& before, FlatTable* flat) {
  for (const auto& [key, value] : table.Members()) {
    const std::string name = before + key;
    if (value.IsObject()) {
      Flatten(value, name + ".", flat);
    } else if (!value.value().is_null()) {
      (*flat)[name] = {NumberOf(value.value()), value.place().line};
    }
  }
}

nlohmann::json SettingOf(const std::string& text) {
  if (text == "True" || text == "False") return text == "True";
  if (text == "None") return nullptr;
  return nlohmann::json::accept(text) ? nlohmann::json::parse(text) : nlohmann::json(text);
}

// "${a.b}" is what a.b says; only once, so that they cannot go round.
void Interpolate(FlatTable* flat) {
  const FlatTable before = *flat;
  for (auto& [name, value] : *flat) {
    if (!value.value.is_string()) continue;
    const std::string text = value.value.get<std::string>();
    if (!text.starts_with("${") || !text.ends_with("}")) continue;
    const auto other = before.find(text.substr(2, text.size() - 3));
    if (other != before.end()) value.value = other->second.value;
  }
}

// One key in a line of its own, the line that it has in the file.
std::string TextOf(const FlatTable& flat) {
  std::vector<std::pair<int, std::string>> rows;
  for (const auto& [key, value] : flat)
    rows.emplace_back(value.line, DumpOf(key) + ": " + DumpOf(value.value));
  std::stable_sort(rows.begin(), rows.end(),
                   [](const auto& a, const auto& b) { return a.first < b.first; });
  std::string text = "{";
  int line = 1;
  for (size_t i = 0; i < rows.size(); ++i) {
    if (i > 0) text += ",";
    for (; line < rows[i].first; ++line) text += "\n";
    text += rows[i].second;
  }
  return text + "}";
}

JsonDocument FileOf(const JsonDocument& file, const RunSettings& settings,
                    const std::string& expected) {
  const JsonReader root = file.Root();
  if (!root.IsObject()) root.Expected(expected);
  FlatTable flat;
  Flatten(root, "", &flat);
  Interpolate(&flat);
  for (const RunSetting& setting : settings)
    if (SettingOf(setting.value).is_null()) flat.erase(setting.name);
  return JsonDocument::FromText(TextOf(flat), file.name());
}

JsonDocument OverridesOf(const RunSettings& settings) {
  nlohmann::json keys = nlohmann::json::object();
  for (const RunSetting& setting : settings) {
    nlohmann::json value = SettingOf(setting.value);
    if (!value.is_null()) keys[setting.name] = std::move(value);
  }
  return JsonDocument::FromText(DumpOf(keys), "--set");
}

}  // namespace

FlatKeys::FlatKeys(const JsonDocument& file, const RunSettings& settings,
                   const std::string& expected)
    : file_(std::make_unique<const JsonDocument>(FileOf(file, settings, expected))),
      overrides_(std::make_unique<const JsonDocument>(OverridesOf(settings))),
      job_(file_->Root(), overrides_->Root()) {}

std::string FlatKeys::Word(JobConfig::Names names) {
  if (!job_.Has(names)) return "";
  const nlohmann::json& value = job_.At(names).value();
  if (value.is_object() || value.is_array()) return "";
  return value.is_string() ? value.get<std::string>() : value.dump();
}

bool FlatKeys::Flag(JobConfig::Names names, bool otherwise, bool is_auto) {
  if (!job_.Has(names)) return otherwise;
  std::string word = Word(names);
  std::transform(word.begin(), word.end(), word.begin(),
                 [](char c) { return c >= 'A' && c <= 'Z' ? static_cast<char>(c + 32) : c; });
  if (word == "auto") return is_auto;
  if (word == "true" || word == "yes" || word == "on" || word == "1") return true;
  if (word == "false" || word == "no" || word == "off" || word == "0") return false;
  return job_.BoolOr(names, otherwise);  // says what is wrong
}

uint64_t FlatKeys::WholeOr(JobConfig::Names names, int64_t least, int64_t most,
                           uint64_t otherwise) {
  if (!Has(names)) return otherwise;
  return static_cast<uint64_t>(job_.WholeOr(names, least, most, 0));
}

std::vector<std::string> FlatKeys::Unread(const std::vector<std::string>& quiet) const {
  std::vector<std::string> unread;
  for (std::string& key : job_.Unread()) {
    const bool is_quiet = std::any_of(quiet.begin(), quiet.end(), [&](const std::string& begin) {
      return key.starts_with(begin);
    });
    if (!is_quiet) unread.push_back(std::move(key));
  }
  return unread;
}

}  // namespace rehearse

#include "tests/fuzz/corpus.h"

#include <algorithm>
#include <cctype>
#include <filesystem>
#include <fstream>
#include <set>

#include <fmt/format.h>
#include <nlohmann/json.hpp>
#include <unistd.h>

#include "scenarios/playing/prepare.h"
#include "scenarios/readers/scenario.h"
#include "sim/base/input_file.h"
#include "sim/base/json_document.h"
#include "tests/fuzz/fuzz_target.h"
#include "tests/support/places.h"
#include "tools/documents.h"
#include "topology/files/cluster_file.h"

namespace rehearse {
namespace {

namespace fs = std::filesystem;
using Json = nlohmann::ordered_json;

std::vector<fs::path> ShippedFiles(const std::string& folder, const std::string& extension) {
  std::vector<fs::path> files;
  for (const auto& entry : fs::directory_iterator(fs::path(SourceDir()) / folder)) {
    if (entry.path().extension() == extension && entry.file_size() <= kLongestInput)
      files.push_back(entry.path());
  }
  std::sort(files.begin(), files.end());
  return files;
}

void AddScalars(const Json& value, std::set<std::string>* words) {
  if (value.is_structured()) {
    for (const auto& [key, part] : value.items()) {
      if (value.is_object()) words->insert(Json(key).dump());
      AddScalars(part, words);
    }
  } else {
    words->insert(value.dump());
  }
}

void AddShape(const JsonShape& shape, std::set<std::string>* words) {
  for (const std::string& choice : shape.choices) words->insert(Json(choice).dump());
  for (const JsonShape& part : shape.parts) AddShape(part, words);
}

std::map<std::string, std::vector<std::string>>& FrozenWords() {
  static std::map<std::string, std::vector<std::string>> words;
  return words;
}

// For what the readers treat specially: units, patterns, factors, limits of numbers.
constexpr const char* kAnyWords[] = {"\"1us\"",
                                     "\"-1us\"",
                                     "\"0s\"",
                                     "\"1e300s\"",
                                     "\"25GBps\"",
                                     "\"0GBps\"",
                                     "\"40GiB\"",
                                     "\"0B\"",
                                     "\"0.5x\"",
                                     "\"+2us\"",
                                     "\"-5GBps\"",
                                     "\"**\"",
                                     "\"node0/*\"",
                                     "\"\"",
                                     "\"auto\"",
                                     "null",
                                     "true",
                                     "false",
                                     "0",
                                     "1",
                                     "-1",
                                     "2",
                                     "64",
                                     "4294967295",
                                     "4294967296",
                                     "9223372036854775807",
                                     "-9223372036854775808",
                                     "18446744073709551615",
                                     "1e308",
                                     "1e-308",
                                     "0.5",
                                     "[]",
                                     "{}",
                                     "[[]]",
                                     "[0]",
                                     "\"\\u0000\"",
                                     "\"\\ud83d\\ude00\"",
                                     "//",
                                     "/*"};

}  // namespace

std::vector<std::string> ShippedTexts(const std::string& folder, const std::string& extension) {
  std::vector<std::string> texts;
  for (const fs::path& file : ShippedFiles(folder, extension))
    texts.push_back(ReadInputFile(file.string()));
  return texts;
}

std::vector<std::string> ShippedValues(const std::string& key) {
  std::vector<std::string> values;
  for (const std::string& text : ShippedTexts("scenarios", ".json")) {
    const Json document = Json::parse(text, nullptr, false, true);
    if (document.is_object() && document.contains(key)) values.push_back(document[key].dump());
  }
  return values;
}

void FreezeSchemaWords(std::map<std::string, std::vector<std::string>> words) {
  FrozenWords() = std::move(words);
}

std::vector<std::string> SchemaWords(const std::string& document) {
  if (const auto frozen = FrozenWords().find(document); frozen != FrozenWords().end())
    return frozen->second;
  std::set<std::string> words(std::begin(kAnyWords), std::end(kAnyWords));
  for (const DocumentShape& shape : Documents()) {
    if (shape.name != document) continue;
    for (const ObjectShape* object : ObjectsIn(shape.shape)) {
      for (const JsonKey& row : object->keys) {
        words.insert(Json(row.name).dump());
        AddShape(row.shape, &words);
        if (!row.example.empty()) {
          words.insert(row.example);
          AddScalars(Json::parse(row.example, nullptr, false, true), &words);
        }
        if (row.presence.value != nullptr) words.insert(row.presence.value->dump());
      }
    }
  }
  return {words.begin(), words.end()};
}

std::vector<std::string> SmallScenarios() {
  std::vector<std::string> scenarios;
  for (std::string& text : ShippedTexts("scenarios", ".json")) {
    if (text.find("\"cpu-") != std::string::npos) scenarios.push_back(std::move(text));
  }
  return scenarios;
}

std::vector<Schedule> SmallSchedules() {
  std::vector<Schedule> schedules;
  for (const std::string& text : SmallScenarios()) {
    const Scenario scenario =
        ReadScenario(JsonDocument::FromText(text, SourceDir() + "/scenarios/small.json"));
    for (const Job& job : Prepare(scenario)) schedules.push_back(job.schedule);
  }
  return schedules;
}

const Cluster& TwoMachines() {
  static const std::unique_ptr<Cluster> machines = ReadClusterArgument("dgx-a100:nodes=2");
  return *machines;
}

bool HasLarger(std::string_view text, const std::vector<std::string_view>& words, uint64_t most) {
  const auto is_digit = [](char c) { return c >= '0' && c <= '9'; };
  const auto is_letter = [](char c) { return std::isalpha(static_cast<unsigned char>(c)) != 0; };
  const size_t digits = std::to_string(most).size();
  for (const std::string_view word : words) {
    for (size_t at = text.find(word); at != std::string_view::npos; at = text.find(word, at + 1)) {
      size_t next = at + word.size();
      // Lists too: every number until the next word counts.
      for (; next < text.size() && !is_letter(text[next]); ++next) {
        if (!is_digit(text[next])) continue;
        const size_t begin = next;
        while (next < text.size() && is_digit(text[next])) ++next;
        if (next < text.size() && (text[next] == 'e' || text[next] == 'E')) return true;
        std::string_view number = text.substr(begin, next - begin);
        while (number.size() > 1 && number.front() == '0') number.remove_prefix(1);
        if (number.size() > digits || std::stoull(std::string(number)) > most) return true;
      }
    }
  }
  return false;
}

bool NamesALargeMachine(std::string_view text) {
  static const std::vector<std::string_view> words = {
      "nodes", "racks", "gpus",   "devices", "pods",     "nics",  "leaves", "spines", "ports",
      "count", "x",     "y",      "z",       "sizes",    "size",  "groups", "levels", "rails",
      "up",    "down",  "planes", "sockets", "switches", "hosts", "cables", "per",    "radix"};
  constexpr uint64_t kMost = 512;
  return HasLarger(text, words, kMost);
}

const std::string& FuzzFolder() {
  struct Folder {
    Folder() : owner(getpid()) {
      const fs::path memory = "/dev/shm";
      const fs::path parent =
          access(memory.c_str(), W_OK) == 0 ? memory : fs::temp_directory_path();
      path = (parent / fmt::format("rehearse-fuzz-{}", owner)).string() + "/";
      fs::create_directories(path);
    }
    ~Folder() {
      std::error_code fault;
      if (getpid() == owner) fs::remove_all(path, fault);
    }
    pid_t owner;
    std::string path;
  };
  static const Folder folder;
  return folder.path;
}

std::string WriteFuzzFile(const std::string& name, std::string_view content) {
  std::string path = FuzzFolder() + name;
  std::ofstream(path, std::ios::binary).write(content.data(), static_cast<long>(content.size()));
  return path;
}

}  // namespace rehearse

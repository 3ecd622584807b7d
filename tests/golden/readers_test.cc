// How readers refuse what is nearly right, beside golden records: of each fuzz target
// (tests/fuzz/fuzz_target.h) the smallest seeds, with one value replaced, added or left out at a
// time if it is JSON, and otherwise with seeded changes.
#include <algorithm>
#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <limits>
#include <map>

#include <fmt/format.h>
#include <gtest/gtest.h>
#include <nlohmann/json.hpp>

#include "sim/base/error.h"
#include "sim/base/fnv.h"
#include "sim/base/shape_print.h"
#include "sim/base/sqlite_connection.h"
#include "tests/fuzz/corpus.h"
#include "tests/fuzz/fuzz_target.h"
#include "tests/fuzz/mutator.h"
#include "tests/golden/record.h"
#include "tests/support/places.h"
#include "tools/documents.h"
#include "tools/foreign/traces/chakra/chakra_read.h"
#include "tools/foreign/traces/kineto/kineto_read.h"

namespace rehearse {
namespace readers_test {

namespace fs = std::filesystem;
using Json = nlohmann::ordered_json;

void ReplaceAll(const std::string& what, const std::string& with, std::string* text) {
  for (size_t at = text->find(what); at != std::string::npos; at = text->find(what, at)) {
    text->replace(at, what.size(), with);
    at += with.size();
  }
}

// What came of the files that a reader of traces was given, as commands would write it.
std::string ImportedBy(const std::string& target) {
  std::vector<std::string> files;
  for (const auto& entry : fs::directory_iterator(FuzzFolder()))
    if (entry.is_regular_file()) files.push_back(entry.path().string());
  std::sort(files.begin(), files.end());
  std::string text;
  const auto add = [&](const auto& imported) {
    text += imported.text;
    for (const std::string& remark : imported.remarks) text += remark + "\n";
  };
  if (target == "chakra") add(ImportChakra(files));
  for (const KinetoResult result : {KinetoResult::kTimeline, KinetoResult::kSchedule}) {
    if (target == "kineto") add(ImportKineto(files, result));
    if (target == "nsys" && HasSqlite()) add(ImportNsys(files, result));
  }
  return text;
}

// What the reader says of several inputs that have something in common.
class Outcomes {
 public:
  void Read(const FuzzTarget& target, std::string_view input) {
    ++tried_;
    for (const auto& entry : fs::directory_iterator(FuzzFolder())) fs::remove_all(entry);
    std::string said;
    bool is_refused = false;
    try {
      target.read(input);
      said = ImportedBy(target.name);
      ++read_;
    } catch (const Error& error) {
      said = error.what();
      is_refused = true;
    }
    ReplaceAll(FuzzFolder(), "", &said);
    ReplaceAll(SourceDir() + "/", "", &said);
    // One of them, and not always the first: that is often about the type.
    if (is_refused && (example_.empty() || tried_ % 5 == 0)) example_ = said;
    hash_.Add(RoundedNumbers(said));
    hash_.Add("\n");
  }
  std::string Line(const std::string& of) const {
    constexpr size_t kMost = 50;
    std::string example = example_.substr(0, kMost);
    for (char& c : example)
      if (static_cast<uint8_t>(c) < 0x20 || static_cast<uint8_t>(c) >= 0x7f) c = '?';
    return fmt::format("{}: {} of {} read{}{}{}\n", of, read_, tried_, example.empty() ? "" : "; ",
                       example, DigestOf("said", hash_));
  }

 private:
  int tried_ = 0;
  int read_ = 0;
  std::string example_;
  Fnv1a hash_;
};

// Places of the same shape, "/ops/*/name", are of one key of the reader: the first few of each.
struct Places {
  int of_a_shape = 1;
  std::map<std::string, int> seen = {};
  std::vector<Json::json_pointer> pointers = {};
};
void Collect(const Json& value, const Json::json_pointer& at, const std::string& shape,
             Places* places) {
  if (++places->seen[shape] <= places->of_a_shape) places->pointers.push_back(at);
  if (value.is_object())
    for (const auto& [key, part] : value.items())
      Collect(part, at / key, shape + "/" + key, places);
  if (value.is_array())
    for (size_t i = 0; i < value.size(); ++i) Collect(value[i], at / i, shape + "/*", places);
}

// The document with one change at this place; nothing is changed after the last.
std::vector<Json> ChangedAt(const Json& document, const Json::json_pointer& at) {
  std::vector<Json> changed;
  const auto with = [&](const Json& value) {
    if (document.at(at) == value) return;
    changed.push_back(document);
    changed.back().at(at) = value;
  };
  const Json& value = document.at(at);
  for (const char* other : {"null", "-1", "1.5", "1e30", "\"x\"", "[]", "{}", "true"})
    with(Json::parse(other));
  if (value.is_number()) {
    for (const int other : {0, 1, 2, 3}) with(other);
    with(value.get<double>() * 1000000);
  }
  if (value.is_string()) {
    with(value.get<std::string>() + "x");
    with("");
    for (const char* other : {"0s", "1us", "-1us", "2GBps", "0.5x", "+1us"}) with(other);
  }
  if (value.is_array() && !value.empty()) {
    Json other = value;
    other.push_back(other.back());
    with(other);
    other.erase(other.size() - 1);
    other.erase(other.size() - 1);
    with(other);
    other = value;
    std::reverse(other.begin(), other.end());
    with(other);
  }
  if (value.is_object()) {
    for (const auto& [key, part] : value.items()) {
      Json other = value;
      other.erase(key);
      with(other);
    }
    Json other = value;
    other["unknown"] = 1;
    with(other);
  }
  return changed;
}

// Where whole numbers may end.
std::vector<Json> Limits() {
  std::vector<Json> limits;
  for (const int64_t limit :
       {int64_t{4}, int64_t{100}, int64_t{1} << 10, int64_t{1} << 16, int64_t{1} << 20,
        int64_t{1} << 26, int64_t{1} << 30, int64_t{1} << 31, int64_t{1} << 32, int64_t{1} << 53,
        int64_t{1} << 62}) {
    for (const int more : {-1, 0, 1}) limits.emplace_back(limit + more);
  }
  limits.emplace_back(std::numeric_limits<int64_t>::max());
  limits.emplace_back(std::numeric_limits<uint64_t>::max());
  return limits;
}

bool IsOfSteps(const std::string& target) { return target == "schedule" || target == "timeline"; }

// Where in a document a line of the record is about: "/strategy", or "/roles/*".
std::string AreaOf(const Json::json_pointer& at) {
  std::string area;
  std::string text = at.to_string();
  for (int depth = 0; depth < 2 && !text.empty(); ++depth) {
    const size_t end = std::min(text.find('/', 1), text.size());
    area += text.substr(0, end).find_first_not_of("/0123456789") == std::string::npos
                ? "/*"
                : text.substr(0, end);
    text.erase(0, end);
  }
  return area.empty() ? "/" : area;
}

// Words of `rehearse schema` as they were when the record was made, so that a new key does not draw
// other inputs for all readers. REHEARSE_GOLDEN=words writes today's.
void FreezeWords() {
  const std::string path = SourceDir() + "/tests/golden/inputs/words.json";
  const char* asked = std::getenv("REHEARSE_GOLDEN");
  if (asked != nullptr && std::string_view(asked) == "words") {
    Json words;
    for (const DocumentShape& shape : Documents()) words[shape.name] = SchemaWords(shape.name);
    std::ofstream(path, std::ios::binary) << words.dump(0) << "\n";
  }
  std::ifstream file(path, std::ios::binary);
  FreezeSchemaWords(Json::parse(file).get<std::map<std::string, std::vector<std::string>>>());
}

class GoldenReadersTest : public ::testing::TestWithParam<std::string> {};

TEST_P(GoldenReadersTest, RefuseAsRecorded) {
  FreezeWords();
  constexpr size_t kSeeds = 3;
  constexpr size_t kLarge = 8000;       // bytes of a seed of which fewer places are changed
  constexpr size_t kTooLarge = 20'000;  // of one that takes too long
  constexpr int kChanges = 4;           // lines of a record, each of so many inputs:
  constexpr int kInputs = 25;
  const FuzzTarget& target = *FindFuzzTarget(GetParam());
  std::vector<std::string> seeds = target.seeds();
  // By size, without what differs from run to run.
  std::sort(seeds.begin(), seeds.end(), [](const std::string& a, const std::string& b) {
    const std::string of_a = WithoutCosts(a);
    const std::string of_b = WithoutCosts(b);
    return of_a.size() != of_b.size() ? of_a.size() < of_b.size() : of_a < of_b;
  });
  if (seeds.size() > kSeeds) {
    // And a large one, which has more keys.
    std::erase_if(seeds, [](const std::string& seed) { return seed.size() > kTooLarge; });
    if (seeds.size() > kSeeds) std::swap(seeds[kSeeds], seeds.back());
    seeds.resize(std::min(seeds.size(), kSeeds + 1));
  }
  GoldenRecord record("readers-" + target.name);
  for (size_t i = 0; i < seeds.size(); ++i) {
    if (record.IsLeftOut(i)) continue;
    const std::string key = fmt::format("seed {}", i);
    std::string lines;
    Outcomes itself;
    itself.Read(target, seeds[i]);
    lines += itself.Line("as it is");
    // Of several files, the first.
    const std::string_view seed = seeds[i];
    const size_t parting = std::min(seed.find("\n--8<--\n"), seed.size());
    const std::string_view others = seed.substr(parting);
    const Json document = target.language == FuzzLanguage::kJson
                              ? Json::parse(seed.substr(0, parting), nullptr, false, true)
                              : Json(Json::value_t::discarded);
    if (!document.is_discarded()) {
      Places places{.of_a_shape = parting > kLarge || !others.empty() ? 1 : 2};
      Collect(document, Json::json_pointer(), "", &places);
      std::vector<std::pair<std::string, Outcomes>> areas;
      for (const Json::json_pointer& place : places.pointers) {
        const std::string area = AreaOf(place);
        auto found = std::find_if(areas.begin(), areas.end(),
                                  [&](const auto& other) { return other.first == area; });
        if (found == areas.end()) found = areas.insert(found, {area, Outcomes()});
        for (const Json& changed : ChangedAt(document, place))
          found->second.Read(target, changed.dump(1).append(others));
      }
      for (const auto& [area, outcomes] : areas) lines += outcomes.Line(area);
      if (i < 2 && IsOfSteps(target.name)) {
        Outcomes limits;
        for (const Json::json_pointer& place : places.pointers) {
          if (!document.at(place).is_number()) continue;
          for (const Json& limit : Limits()) {
            Json changed = document;
            changed.at(place) = limit;
            limits.Read(target, changed.dump(1).append(others));
          }
        }
        lines += limits.Line("limits");
      }
    }
    // JSON too is damaged as a text: a few times, as that is mostly no JSON any more.
    const bool is_json = !document.is_discarded() && others.empty();
    const std::vector<std::string> words = target.words();
    Mutator mutator(1, seeds, words);
    const bool differs = is_json && WithoutCosts(seeds[i]) != seeds[i];
    for (int change = 0; change < (differs ? 0 : is_json ? 1 : kChanges); ++change) {
      Outcomes outcomes;
      for (int input = 0; input < kInputs; ++input) {
        outcomes.Read(target,
                      mutator.Mutate(seeds[i], is_json ? FuzzLanguage::kText : target.language));
      }
      lines += outcomes.Line(fmt::format("changes {}", change));
    }
    record.Add(key, lines);
  }
  record.End();
}

std::vector<std::string> Names() {
  std::vector<std::string> names;
  for (const FuzzTarget& target : FuzzTargets())
    if (target.name != "results_file") names.push_back(target.name);  // says the commit
  return names;
}

INSTANTIATE_TEST_SUITE_P(Targets, GoldenReadersTest, ::testing::ValuesIn(Names()),
                         [](const auto& info_of_target) { return info_of_target.param; });

}  // namespace readers_test
}  // namespace rehearse

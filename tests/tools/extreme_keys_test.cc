// Any shipped scenario with any one of its documented keys at its least, its greatest or its
// default value has an answer or one message: never a crash, a fault of ours, or silence.
//
// REHEARSE_CASES=40000 is the soak, of 5000 cases; REHEARSE_FIRST_CASE=N starts at another. What
// has not ended after some seconds counts as an answer: sizes may cost any time.
#include <algorithm>
#include <filesystem>
#include <random>

#include <fmt/format.h>
#include <nlohmann/json.hpp>

#include "scenarios/readers/scenario_shape.h"
#include "sim/base/json_document.h"
#include "tests/invariants/cases.h"
#include "tests/support/places.h"
#include "tests/tools/program_fixture.h"

namespace rehearse {
namespace extreme_keys_test {

namespace fs = std::filesystem;
using Json = nlohmann::json;

struct Change {
  std::string path;
  std::string value;  // JSON
};

// The least and the greatest value of the shape, and what else is at an end of what it allows.
std::vector<std::string> ExtremesOf(const JsonShape& shape) {
  switch (shape.type) {
    case JsonType::kTrueFalse:
      return {"true", "false"};
    case JsonType::kWhole:
      return {std::to_string(shape.least), std::to_string(shape.most)};
    case JsonType::kNumber:
      return {fmt::format("{}", shape.above_lowest ? std::max(1e-9, shape.lowest) : shape.lowest),
              fmt::format("{}", shape.highest)};
    case JsonType::kDuration:
      return {"\"0s\"", fmt::format("\"{}s\"", std::min(shape.highest, 1e6))};
    case JsonType::kChoice:
      return {Json(shape.choices.front()).dump(), Json(shape.choices.back()).dump()};
    case JsonType::kList:
      return {"[]"};
    default:
      return {};
  }
}

// The object that the shape allows, if it allows one.
const ObjectShape* ObjectIn(const JsonShape& shape) {
  if (shape.type == JsonType::kObject) return &shape.object();
  if (shape.type != JsonType::kEither) return nullptr;
  for (const JsonShape& part : shape.parts)
    if (part.type == JsonType::kObject) return &part.object();
  return nullptr;
}

void AddChanges(const ObjectShape& object, const Json& given, const std::string& before,
                std::vector<Change>* changes) {
  const std::string kind =
      given.contains("kind") && given["kind"].is_string() ? given["kind"].get<std::string>() : "";
  for (const JsonKey& key : object.keys) {
    if (!key.only.empty() && key.only != kind) continue;
    const std::string path = before + key.name;
    for (std::string& value : ExtremesOf(key.shape)) changes->push_back({path, std::move(value)});
    if (key.presence.value != nullptr) changes->push_back({path, key.presence.value->dump()});
    const ObjectShape* const inner = ObjectIn(key.shape);
    if (inner != nullptr && given.contains(key.name) && given[key.name].is_object())
      AddChanges(*inner, given[key.name], path + ".", changes);
  }
}

class ExtremeKeysTest : public ProgramTest {
 protected:
  // All but the largest, which take seconds as they are.
  static std::vector<fs::path> Scenarios() {
    constexpr uintmax_t kLargest = 20'000;
    std::vector<fs::path> paths;
    for (const auto& entry : fs::directory_iterator(SourceDir() + "/scenarios"))
      if (entry.path().extension() == ".json" && entry.file_size() < kLargest)
        paths.push_back(entry.path());
    std::sort(paths.begin(), paths.end());
    return paths;
  }
};

TEST_F(ExtremeKeysTest, AnyKeyAtAnEndOfItsRangeHasAnAnswerOrOneMessage) {
  const std::vector<fs::path> paths = Scenarios();
  ASSERT_GT(paths.size(), 20u);
  constexpr uint64_t kShare = 8;
  const Cases cases = CasesOf(kShare);
  for (uint64_t number = cases.first; number < cases.end; ++number) {
    std::mt19937_64 random(number);
    const fs::path& path = paths[random() % paths.size()];
    std::vector<Change> changes;
    AddChanges(ScenarioShape(), JsonDocument::FromFile(path.string()).value(), "", &changes);
    ASSERT_FALSE(changes.empty()) << path;
    const Change& change = changes[random() % changes.size()];
    Write("set.txt", change.path + "=" + change.value);
    const int status = Shell("ulimit -v 4000000; timeout 8 \"$rehearse\" run '" + path.string() +
                             "' --set \"$(cat set.txt)\" > out.txt 2> err.txt");
    const std::string out = ReadFile(folder_ / "out.txt");
    const std::string err = ReadFile(folder_ / "err.txt");
    const std::string what = fmt::format("case {}: {} --set '{}={}'\n{}", number,
                                         path.filename().string(), change.path, change.value, err);
    constexpr int kOutOfTime = 124;
    if (status == kOutOfTime) continue;
    if (status == 0) {
      EXPECT_NE(out, "") << what;
    } else {
      EXPECT_EQ(status, 1) << what;
      EXPECT_EQ(out, "") << what;
      EXPECT_EQ(std::count(err.begin(), err.end(), '\n'), 1) << what;
      EXPECT_LT(err.size(), 2000u) << what;
    }
  }
}

}  // namespace extreme_keys_test
}  // namespace rehearse

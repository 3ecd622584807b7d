// What a page asks of the simulator inside it, asked here of the very same code.
#include "scenarios/reporting/live.h"

#include <fstream>
#include <iterator>
#include <string>
#include <vector>

#include <fmt/format.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "scenarios/playing/rehearsal.h"
#include "sim/base/json_document.h"
#include "tests/support/places.h"

namespace rehearse {
namespace live_test {

using ::testing::HasSubstr;
using ::testing::StartsWith;
using Json = nlohmann::ordered_json;

std::string TextOf(const std::string& path) {
  std::ifstream file(SourceDir() + "/" + path, std::ios::binary);
  return {std::istreambuf_iterator<char>(file), {}};
}

Json RequestOf(const std::string& path) {
  LiveStep step;
  step.name = path;
  step.text = TextOf(path);
  return ToJson(step);
}

// The header of the page's data.
Json Answer(LiveSession& session, const Json& request) {
  const std::string answer = session.Play(request.dump());
  EXPECT_EQ(answer[0], 0) << answer.substr(1, 400);
  size_t size = 0;
  for (size_t i = 0; i < 4; ++i)
    size |= size_t{static_cast<unsigned char>(answer[1 + i])} << (8 * i);
  return Json::parse(answer.substr(5, size));
}

std::string Mistake(LiveSession& session, const Json& request) {
  const std::string answer = session.Play(request.dump());
  EXPECT_EQ(answer[0], 1);
  const Json said = Json::parse(answer.substr(1));
  EXPECT_FALSE(said["is_fault"].get<bool>());
  return said["message"];
}

double StepOf(const Json& run) { return run["step"].get<double>() * run["tick"].get<double>(); }

TEST(LiveSessionTest, WithoutChangesItIsTheStepOfTheCommand) {
  LiveSession session;
  const Json page = Answer(session, RequestOf("scenarios/strategy-fsdp.json"));
  ASSERT_EQ(page["runs"].size(), 1u);
  const Rehearsal rehearsal =
      Rehearse(ReadScenario(JsonDocument::FromFile(SourceDir() + "/scenarios/strategy-fsdp.json")));
  EXPECT_EQ(page["runs"][0]["result"]["timeline_hash"], ToJson(rehearsal.result)["timeline_hash"]);
}

TEST(LiveSessionTest, AStepThatThePageAlreadyHasIsNotSentAgain) {
  LiveSession session;
  Json request = RequestOf("scenarios/lessons/ring.json");
  const Json first = Answer(session, request)["runs"][0];
  request["known"] = first["result"]["timeline_hash"];
  request["changes"] = {"cluster.devices=8", "jobs.0.schedule.ranks=8"};
  Json page = Answer(session, request);
  ASSERT_EQ(page["runs"].size(), 2u);
  EXPECT_TRUE(page["runs"][0].is_null());
  EXPECT_EQ(StepOf(page["runs"][1]), 7.028e9);
  EXPECT_FALSE(page["comparison"].is_null());
  // A page of another version may hold another step.
  request["known"] = "0123456789abcdef";
  page = Answer(session, request);
  EXPECT_EQ(StepOf(page["runs"][0]), StepOf(first));
}

TEST(LiveSessionTest, AChangeStandsBelowTheStepAsItWas) {
  LiveSession session;
  Json request = RequestOf("scenarios/lessons/ring.json");
  request["changes"] = {"cluster.devices=8", "jobs.0.schedule.ranks=8"};
  Json page = Answer(session, request);
  ASSERT_EQ(page["runs"].size(), 2u);
  EXPECT_EQ(StepOf(page["runs"][0]), 6.012e9);
  EXPECT_EQ(StepOf(page["runs"][1]), 7.028e9);
  EXPECT_FALSE(page["comparison"].is_null());
  // The text itself, changed: 200 MB in place of 100.
  request.erase("changes");
  std::string text = request["text"];
  text.replace(text.find("100MB"), 5, "200MB");
  request["edited"] = text;
  page = Answer(session, request);
  ASSERT_EQ(page["runs"].size(), 2u);
  EXPECT_EQ(StepOf(page["runs"][1]), 12.012e9);
  // And back again.
  request.erase("edited");
  EXPECT_EQ(Answer(session, request)["runs"].size(), 1u);
}

// What a session knows of machines and their groups changes how soon it answers, and nothing else.
TEST(LiveSessionTest, AnAnswerDoesNotDependOnWhatWasPlayedBefore) {
  const std::vector<std::vector<std::string>> all = {
      {"strategy.prefetch=0"},
      {R"(edits=[{"links": "node*/nic*", "bandwidth": "0.5x"}])"},
      {"cluster.nodes=4"},
      {"strategy.prefetch=0"}};
  LiveSession session;
  for (const std::vector<std::string>& changes : all) {
    Json request = RequestOf("scenarios/strategy-fsdp.json");
    request["changes"] = changes;
    EXPECT_EQ(session.Play(request.dump()), LiveSession().Play(request.dump())) << changes.front();
  }
}

// After so many machines it forgets them.
TEST(LiveSessionTest, ManyMachinesAreForgotten) {
  LiveSession session;
  Json request = RequestOf("scenarios/lessons/ring.json");
  for (int i = 1; i <= 40; ++i) {
    request["changes"] = {fmt::format(R"(edits=[{{"links": "**", "bandwidth": "{}x"}}])", i)};
    const Json page = Answer(session, request);
    EXPECT_NEAR(StepOf(page["runs"][1]), 6e9 / i + 0.012e9, 2) << i;
  }
}

TEST(LiveSessionTest, MistakesSayWhereTheyAreAndTheNextRequestIsAnswered) {
  LiveSession session;
  Json request = RequestOf("scenarios/lessons/ring.json");
  std::string text = request["text"];
  text.replace(text.find("all-reduce"), 10, "all-redcue");
  request["edited"] = text;
  EXPECT_THAT(Mistake(session, request), StartsWith("scenarios/lessons/ring.json:10: /jobs/0/"));
  request["edited"] = "{\"name\": ";
  EXPECT_THAT(Mistake(session, request), StartsWith("scenarios/lessons/ring.json:1: "));
  request.erase("edited");
  request["changes"] = {"cluster.devices=3"};
  EXPECT_THAT(Mistake(session, request), HasSubstr("4"));
  request["changes"] = {"clutser.devices=3"};
  EXPECT_THAT(Mistake(session, request), HasSubstr("this page"));
  request.erase("changes");
  EXPECT_EQ(Answer(session, request)["runs"].size(), 1u);
}

TEST(LiveSessionTest, FilesThatAScenarioNamesTravelWithIt) {
  LiveSession session;
  Json request = RequestOf("scenarios/lessons/ring.json");
  Json scenario = Json::parse(request["text"].get<std::string>());
  const std::string cluster = scenario["cluster"].dump();
  scenario["cluster"] = "mine.json";
  request["text"] = scenario.dump();
  EXPECT_THAT(Mistake(session, request), HasSubstr("mine.json"));
  request["files"] = {{"scenarios/lessons/mine.json", cluster}};
  EXPECT_EQ(StepOf(Answer(session, request)["runs"][0]), 6.012e9);
}

TEST(LiveSessionTest, ASchedulePlaysOnTheClusterThatIsNamed) {
  LiveStep step;
  step.name = "two-ranks.json";
  step.text = TextOf("scenarios/schedules/two-ranks.json");
  step.cluster = "switch:devices=2";
  step.fidelity = "step";
  LiveSession session;
  const Json page = Answer(session, ToJson(step));
  EXPECT_EQ(page["runs"][0]["result"]["fidelity"], "step");
}

}  // namespace live_test
}  // namespace rehearse

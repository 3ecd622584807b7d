#include "sim/base/file_kind.h"

#include <string>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "sim/base/error.h"
#include "sim/base/json_document.h"

namespace rehearse {
namespace file_kind_test {

using ::testing::HasSubstr;

// What is found instead of the wanted kind, or nothing.
std::string Found(const std::string& text, FileKind wanted) {
  try {
    const JsonDocument document = JsonDocument::FromText(text, "file.json");
    RefuseOtherKinds(document.Root(), wanted);
  } catch (const Error& error) {
    const std::string message = error.what();
    const size_t begin = message.find("found ");
    return message.substr(begin + 6, message.find(", expected") - begin - 6);
  }
  return "";
}

TEST(FileKindTest, KeysTellWhatAFileIs) {
  struct Case {
    const char* text;
    const char* found;
    FileKind own;  // as which it is not refused
  };
  using enum FileKind;
  const Case cases[] = {
      {R"({"base": 1, "metric": 1})", "a study", kStudy},
      {R"({"strategy": 1})", "a scenario", kScenario},
      {R"({"jobs": 1})", "a scenario", kScenario},
      {R"({"strategy": 1, "cluster": 1})", "a scenario", kScenario},
      {R"({"vertices": 1})", "a cluster", kCluster},
      {R"({"node": 1})", "a cluster", kCluster},
      {R"({"schema": "rehearse.calibration.v1"})", "a calibration", kCalibration},
      {R"({"schema": "rehearse.job-trace.v1", "jobs": 1})", "a trace of jobs", kJobTrace},
  };
  for (const Case& one : cases) {
    for (const FileKind wanted : {kScenario, kStudy, kCluster, kCalibration, kJobTrace}) {
      EXPECT_THAT(Found(one.text, wanted), HasSubstr(wanted == one.own ? "" : one.found))
          << one.text;
      EXPECT_EQ(Found(one.text, wanted).empty(), wanted == one.own) << one.text;
    }
  }
}

TEST(FileKindTest, AModelIsNoneOfThem) {
  for (const FileKind wanted : {FileKind::kScenario, FileKind::kStudy, FileKind::kCluster}) {
    EXPECT_THAT(Found(R"({"model_type": "llama"})", wanted), HasSubstr("model"));
    EXPECT_THAT(Found(R"({"layers": 1, "hidden": 2})", wanted), HasSubstr("model"));
  }
}

TEST(FileKindTest, WhatMayBeAnythingIsLeftToItsReader) {
  for (const char* text :
       {"{}", "[]", "1", R"({"base": 1})", R"({"metric": 1})", R"({"cluster": 1})",
        R"({"cluster": 1, "node": 1})", R"({"cluster": 1, "layers": 1, "hidden": 1})",
        R"({"layers": 1})", R"({"hidden": 1})", R"({"base": 1, "strategy": 1})",
        R"({"base": 1, "jobs": 1})", R"({"schema": "other.calibration.v1"})",
        R"({"schema": "rehearse.none.v1"})", R"({"schema": 1})"}) {
    for (const FileKind wanted :
         {FileKind::kScenario, FileKind::kStudy, FileKind::kCluster, FileKind::kCalibration})
      EXPECT_EQ(Found(text, wanted), "") << text;
  }
}

}  // namespace file_kind_test
}  // namespace rehearse

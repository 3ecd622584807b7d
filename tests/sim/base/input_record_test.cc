#include "sim/base/input_record.h"

#include <filesystem>
#include <fstream>
#include <thread>

#include <gtest/gtest.h>
#include <unistd.h>

#include "sim/base/json_document.h"

namespace rehearse {
namespace input_record_test {

class InputRecordTest : public testing::Test {
 protected:
  InputRecordTest()
      : path_(testing::TempDir() + "/input_record_test-" + std::to_string(getpid()) + ".json") {
    std::ofstream(path_) << "{}";
  }
  ~InputRecordTest() override { std::filesystem::remove(path_); }

  std::string path_;
};

TEST_F(InputRecordTest, WhatIsReadDuringItsLifeIsNoted) {
  JsonDocument::FromFile(path_);
  const InputRecord outer;
  JsonDocument::FromFile(path_);
  {
    const InputRecord inner;
    JsonDocument::FromFile(path_);
    EXPECT_EQ(inner.files().size(), 1u);
  }
  ASSERT_EQ(outer.files().size(), 2u);
  EXPECT_EQ(outer.files()[0].path, path_);
  EXPECT_EQ(outer.files()[0].hash, outer.files()[1].hash);
}

TEST_F(InputRecordTest, AnotherContentIsAnotherHash) {
  const InputRecord record;
  JsonDocument::FromFile(path_);
  std::ofstream(path_) << "{ }";
  JsonDocument::FromFile(path_);
  EXPECT_NE(record.files()[0].hash, record.files()[1].hash);
}

TEST_F(InputRecordTest, OtherThreadsReadForThemselves) {
  const InputRecord record;
  std::thread([&] { JsonDocument::FromFile(path_); }).join();
  EXPECT_TRUE(record.files().empty());
}

}  // namespace input_record_test
}  // namespace rehearse

#include "sim/base/input_record.h"

#include <filesystem>
#include <fstream>

#include <gtest/gtest.h>
#include <unistd.h>

#include "sim/base/json_document.h"
#include "sim/base/json_reader.h"

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

TEST_F(InputRecordTest, NotesWhatIsReadForIt) {
  const auto record = std::make_shared<InputRecord>();
  JsonDocument::FromFile(path_);
  EXPECT_TRUE(record->files.empty());
  JsonDocument::FromFile(path_, {.record = record});
  JsonDocument::FromFile(path_, {.record = record});
  ASSERT_EQ(record->files.size(), 2u);
  EXPECT_EQ(record->files[0].path, path_);
  EXPECT_EQ(record->files[0].hash, record->files[1].hash);
}

TEST_F(InputRecordTest, NotesWhatADocumentNames) {
  JsonDocument document = JsonDocument::FromText("{}", "a.json");
  const auto record = std::make_shared<InputRecord>();
  document.NoteIn(record);
  document.Root().Open(path_);
  EXPECT_EQ(record->files.size(), 1u);
}

TEST_F(InputRecordTest, AnotherContentIsAnotherHash) {
  const auto record = std::make_shared<InputRecord>();
  JsonDocument::FromFile(path_, {.record = record});
  std::ofstream(path_) << "{ }";
  JsonDocument::FromFile(path_, {.record = record});
  EXPECT_NE(record->files[0].hash, record->files[1].hash);
}

}  // namespace input_record_test
}  // namespace rehearse

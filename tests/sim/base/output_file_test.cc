#include "sim/base/output_file.h"

#include <filesystem>
#include <fstream>
#include <iterator>
#include <string>

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <sys/stat.h>
#include <unistd.h>

#include "sim/base/error.h"

namespace rehearse {
namespace {

namespace fs = std::filesystem;
using testing::AllOf;
using testing::HasSubstr;
using testing::StartsWith;
using testing::ThrowsMessage;

// A folder of its own for each test.
class OutputFileTest : public testing::Test {
 protected:
  OutputFileTest() {
    folder_ = fs::path(testing::TempDir()) /
              ("output_file_test_" + std::to_string(getpid()) + "_" +
               testing::UnitTest::GetInstance()->current_test_info()->name());
    fs::remove_all(folder_);
    fs::create_directories(folder_);
  }
  void TearDown() override {
    fs::permissions(folder_, fs::perms::owner_all);
    fs::remove_all(folder_);
  }

  std::string In(const std::string& name) const { return (folder_ / name).string(); }
  static std::string Content(const std::string& path) {
    std::ifstream file(path, std::ios::binary);
    return {std::istreambuf_iterator<char>(file), {}};
  }
  size_t FileCount() const {
    return static_cast<size_t>(std::distance(fs::directory_iterator(folder_), {}));
  }

  fs::path folder_;
};

TEST_F(OutputFileTest, WritesEveryByte) {
  std::string content("a\0b\r\n", 5);
  content.append(3'000'000, 'x');
  WriteFileAtomically(In("file"), content);
  EXPECT_EQ(Content(In("file")), content);
  EXPECT_EQ(FileCount(), 1u);  // no temporary file is left
}

TEST_F(OutputFileTest, ReplacesAnExistingFileAndKeepsItsMode) {
  WriteFileAtomically(In("file"), "the old and longer content");
  ASSERT_EQ(chmod(In("file").c_str(), 0640), 0);
  WriteFileAtomically(In("file"), "new");
  EXPECT_EQ(Content(In("file")), "new");
  struct stat status {};
  ASSERT_EQ(stat(In("file").c_str(), &status), 0);
  EXPECT_EQ(status.st_mode & 0777, 0640u);
}

TEST_F(OutputFileTest, CheckWritableLeavesEverythingAsItWas) {
  CheckWritable(In("file"));
  CheckWritable("/dev/null");
  EXPECT_EQ(FileCount(), 0u);
  WriteFileAtomically(In("file"), "old");
  CheckWritable(In("file"));
  EXPECT_EQ(Content(In("file")), "old");
  EXPECT_EQ(FileCount(), 1u);
  EXPECT_THAT([&] { CheckWritable(In("missing/file")); },
              ThrowsMessage<Error>(HasSubstr("cannot write " + In("missing/file"))));
  EXPECT_THAT([&] { CheckWritable(In("")); }, ThrowsMessage<Error>(HasSubstr("cannot write")));
}

TEST_F(OutputFileTest, ASymbolicLinkStaysALink) {
  WriteFileAtomically(In("file"), "old");
  fs::create_symlink("file", folder_ / "link");
  WriteFileAtomically(In("link"), "new");
  EXPECT_TRUE(fs::is_symlink(folder_ / "link"));
  EXPECT_EQ(Content(In("file")), "new");
}

TEST_F(OutputFileTest, AMissingFolderIsAnError) {
  EXPECT_THAT([&] { WriteFileAtomically(In("missing/file"), "x"); },
              ThrowsMessage<Error>(AllOf(StartsWith("cannot write " + In("missing/file") + ": "),
                                         HasSubstr("No such file or directory"))));
}

TEST_F(OutputFileTest, AFolderInPlaceOfTheFileIsAnError) {
  fs::create_directory(folder_ / "taken");
  EXPECT_THAT([&] { WriteFileAtomically(In("taken"), "x"); },
              ThrowsMessage<Error>(HasSubstr("Is a directory")));
  EXPECT_EQ(FileCount(), 1u);
}

TEST_F(OutputFileTest, AFileInPlaceOfAFolderIsAnError) {
  WriteFileAtomically(In("file"), "x");
  EXPECT_THAT([&] { WriteFileAtomically(In("file/inner"), "x"); },
              ThrowsMessage<Error>(HasSubstr("Not a directory")));
}

TEST_F(OutputFileTest, AnEmptyNameIsAnError) {
  EXPECT_THAT([] { WriteFileAtomically("", "x"); },
              ThrowsMessage<Error>(HasSubstr("No such file or directory")));
}

TEST_F(OutputFileTest, ANameThatIsTooLongIsAnError) {
  EXPECT_THAT([&] { WriteFileAtomically(In(std::string(300, 'x')), "x"); },
              ThrowsMessage<Error>(HasSubstr("File name too long")));
  EXPECT_EQ(FileCount(), 0u);
}

TEST_F(OutputFileTest, AFolderThatMayNotBeWrittenIsAnError) {
  if (geteuid() == 0) GTEST_SKIP() << "root may write everywhere";
  fs::permissions(folder_, fs::perms::owner_read | fs::perms::owner_exec);
  EXPECT_THAT([&] { WriteFileAtomically(In("file"), "x"); },
              ThrowsMessage<Error>(HasSubstr("Permission denied")));
}

TEST_F(OutputFileTest, AFileThatMayNotBeWrittenIsNotReplaced) {
  if (geteuid() == 0) GTEST_SKIP() << "root may write everywhere";
  WriteFileAtomically(In("file"), "precious");
  fs::permissions(In("file"), fs::perms::owner_read);
  EXPECT_THAT([&] { WriteFileAtomically(In("file"), "x"); },
              ThrowsMessage<Error>(HasSubstr("Permission denied")));
  EXPECT_EQ(Content(In("file")), "precious");
}

TEST_F(OutputFileTest, AFullDiskIsAnError) {
  if (!fs::exists("/dev/full")) GTEST_SKIP() << "this machine has no /dev/full";
  EXPECT_THAT([] { WriteFileAtomically("/dev/full", "x"); },
              ThrowsMessage<Error>(HasSubstr("No space left on device")));
}

TEST_F(OutputFileTest, ADeviceIsWrittenToAndNotReplaced) {
  WriteFileAtomically("/dev/null", "x");
  EXPECT_TRUE(fs::is_character_file("/dev/null"));
}

}  // namespace
}  // namespace rehearse

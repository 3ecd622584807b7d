#include "sim/base/output_file.h"

#include <csignal>
#include <filesystem>
#include <fstream>
#include <iterator>
#include <string>
#include <thread>
#include <vector>

#include <fcntl.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <sys/file.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include "sim/base/error.h"

namespace rehearse {
namespace output_file_test {

namespace fs = std::filesystem;
using ::testing::AllOf;
using ::testing::HasSubstr;
using ::testing::StartsWith;
using ::testing::ThrowsMessage;

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

TEST_F(OutputFileTest, ALinkToNothingYetStaysALink) {
  fs::create_symlink("second", folder_ / "first");
  fs::create_symlink("file", folder_ / "second");
  WriteFileAtomically(In("first"), "new");
  EXPECT_TRUE(fs::is_symlink(folder_ / "first"));
  EXPECT_TRUE(fs::is_symlink(folder_ / "second"));
  EXPECT_EQ(Content(In("file")), "new");
  fs::create_symlink("circle", folder_ / "circle");
  EXPECT_THROW(WriteFileAtomically(In("circle"), "x"), Error);
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

TEST_F(OutputFileTest, APipeIsWrittenToOrAnErrorWhereNobodyReadsIt) {
  ASSERT_EQ(mkfifo(In("pipe").c_str(), 0600), 0);
  EXPECT_THAT([&] { WriteFileAtomically(In("pipe"), "x"); },
              ThrowsMessage<Error>(HasSubstr("nobody reads this pipe")));
  std::string read;
  const int end = open(In("pipe").c_str(), O_RDONLY | O_NONBLOCK);
  std::thread reader([&] {
    fcntl(end, F_SETFL, 0);
    char bytes[4096];
    ssize_t count = 0;  // as long as nobody writes, too
    while ((count = ::read(end, bytes, sizeof bytes)) > 0 || (count == 0 && read.empty()))
      read.append(bytes, static_cast<size_t>(count));
  });
  const std::string content(1 << 20, 'x');  // more than a pipe holds: writing waits for the reader
  WriteFileAtomically(In("pipe"), content);
  reader.join();
  close(end);
  EXPECT_EQ(read, content);
}

TEST_F(OutputFileTest, ADeviceIsWrittenToAndNotReplaced) {
  WriteFileAtomically("/dev/null", "x");
  EXPECT_TRUE(fs::is_character_file("/dev/null"));
}

// ---- What a killed program leaves ---------------------------------------------------------------

TEST_F(OutputFileTest, AbandonedFilesAreRemovedAndThoseInUseAreNot) {
  for (const char* name :
       {".rehearse-1-0.tmp", ".rehearse-1-1.tmp", ".rehearse-lock.tmp", "x.tmp", ".rehearse.json"})
    std::ofstream(In(name)) << "x";
  const int in_use = open(In(".rehearse-1-1.tmp").c_str(), O_RDWR);
  ASSERT_EQ(flock(in_use, LOCK_EX), 0);
  fs::create_symlink("x.tmp", folder_ / ".rehearse-2-0.tmp");
  RemoveAbandonedFiles(folder_.string());
  close(in_use);
  std::vector<std::string> left;
  for (const auto& entry : fs::directory_iterator(folder_))
    left.push_back(entry.path().filename().string());
  EXPECT_THAT(left, testing::UnorderedElementsAre(".rehearse-1-1.tmp", "x.tmp", ".rehearse.json",
                                                  ".rehearse-2-0.tmp"));
}

TEST_F(OutputFileTest, AFileHasNoNameBeforeAllOfItIsWritten) {
  OutputSet set;
  set.Add(In("a"), "a");
  set.Add(In("b"), "b");
  const size_t names = FileCount();
  set.Commit();
  EXPECT_EQ(FileCount(), 2u);
  if (names != 0) GTEST_SKIP() << "this file system has no files without a name";
}

TEST_F(OutputFileTest, AKilledWriterLeavesOneFileAndNoOther) {
  constexpr int kKills = 30;
  WriteFileAtomically(In("file"), std::string(1000, 'x'));  // slow machines get no further
  for (int i = 0; i < kKills; ++i) {
    const pid_t writer = fork();
    ASSERT_GE(writer, 0);
    if (writer == 0) {
      while (true) WriteFileAtomically(In("file"), std::string(1000, 'x'));
    }
    usleep(static_cast<useconds_t>(5000 + 300 * i));
    kill(writer, SIGKILL);
    waitpid(writer, nullptr, 0);
  }
  RemoveAbandonedFiles(folder_.string());
  EXPECT_EQ(Content(In("file")).size(), 1000u);
  EXPECT_EQ(FileCount(), 1u);
}

// ---- Sets ---------------------------------------------------------------------------------------

TEST_F(OutputFileTest, ASetIsThereAsAWholeOrNotAtAll) {
  WriteFileAtomically(In("b"), "old");
  {
    OutputSet set;
    set.Add(In("a"), "new");
    set.Add(In("b"), "new");
    EXPECT_THROW(set.Add(In("missing/c"), "new"), Error);
  }
  EXPECT_FALSE(fs::exists(In("a")));
  EXPECT_EQ(Content(In("b")), "old");
  EXPECT_EQ(FileCount(), 1u);
}

TEST_F(OutputFileTest, ADiskThatIsFullInTheMiddleOfASetLeavesNoneOfIt) {
  // The limit on a file's size stands in for a full disk.
  WriteFileAtomically(In("a"), "old");
  rlimit before{};
  getrlimit(RLIMIT_FSIZE, &before);
  const auto handler = signal(SIGXFSZ, SIG_IGN);
  const rlimit small{1 << 16, before.rlim_max};
  setrlimit(RLIMIT_FSIZE, &small);
  EXPECT_THAT(
      [&] {
        OutputSet set;
        set.Add(In("a"), "new");
        set.Add(In("b"), std::string(1 << 17, 'x'));
        set.Commit();
      },
      ThrowsMessage<Error>(HasSubstr("cannot write " + In("b"))));
  setrlimit(RLIMIT_FSIZE, &before);
  signal(SIGXFSZ, handler);
  EXPECT_EQ(Content(In("a")), "old");
  EXPECT_EQ(FileCount(), 1u);
}

TEST_F(OutputFileTest, AFolderOfManyNamesIsLockedOnce) {
  WriteFileAtomically(In("a"), "old");  // what is there has a name without the dot
  OutputSet set;
  set.Add(In("./a"), "new");
  set.Add(In("./b"), "new");
  set.Commit();  // would wait for itself
  EXPECT_EQ(Content(In("a")) + Content(In("b")), "newnew");
  EXPECT_EQ(FileCount(), 2u);
}

TEST_F(OutputFileTest, SetsOfSeveralWritersAreNotMixed) {
  const std::vector<std::string> names = {"a", "b", "c", "d"};
  for (int round = 0; round < 40; ++round) {
    std::vector<std::thread> writers;
    for (int writer = 0; writer < 4; ++writer) {
      writers.emplace_back([&, writer] {
        for (int i = 0; i < 3; ++i) {
          OutputSet set;
          for (const std::string& name : names) set.Add(In(name), std::to_string(writer));
          set.Commit();
        }
      });
    }
    for (std::thread& writer : writers) writer.join();
    for (const std::string& name : names) ASSERT_EQ(Content(In(name)), Content(In("a")));
    ASSERT_EQ(FileCount(), names.size());
    if (round % 2 == 0)  // new names, and names that are there
      for (const std::string& name : names) fs::remove(In(name));
  }
}

TEST_F(OutputFileTest, AFolderIsMadeOrAnErrorSaysWhyNot) {
  MakeFolder(In("a/b"));
  EXPECT_TRUE(fs::is_directory(In("a/b")));
  EXPECT_THAT([] { MakeFolder(""); }, ThrowsMessage<Error>(HasSubstr("cannot make folder \"\"")));
  WriteFileAtomically(In("file"), "x");
  EXPECT_THAT([&] { MakeFolder(In("file/a")); },
              ThrowsMessage<Error>(HasSubstr("cannot make folder")));
}

}  // namespace output_file_test
}  // namespace rehearse

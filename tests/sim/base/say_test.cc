#include "sim/base/say.h"

#include <filesystem>
#include <string>

#include <fcntl.h>
#include <gtest/gtest.h>
#include <unistd.h>

namespace rehearse {
namespace say_test {

// Redirects standard error while it lives.
class StderrTo {
 public:
  explicit StderrTo(int descriptor) : before_(dup(STDERR_FILENO)) {
    dup2(descriptor, STDERR_FILENO);
  }
  ~StderrTo() {
    dup2(before_, STDERR_FILENO);
    close(before_);
  }
  StderrTo(const StderrTo&) = delete;
  StderrTo& operator=(const StderrTo&) = delete;

 private:
  int before_;
};

TEST(SayTest, ALineIsOneWrite) {
  int ends[2];
  ASSERT_EQ(pipe2(ends, O_DIRECT), 0);  // keeps writes apart
  {
    const StderrTo there(ends[1]);
    Say("a ", "b");
    SayAsItIs("c");
  }
  char text[100];
  EXPECT_EQ(std::string(text, static_cast<size_t>(read(ends[0], text, sizeof text))),
            "rehearse: a b\n");
  EXPECT_EQ(std::string(text, static_cast<size_t>(read(ends[0], text, sizeof text))), "c");
  close(ends[0]);
  close(ends[1]);
}

TEST(SayTest, ALineInPlaceIsReplacedAndMakesWayForOthers) {
  int ends[2];
  ASSERT_EQ(pipe(ends), 0);
  {
    const StderrTo there(ends[1]);
    SayInPlace("1 of 2");
    SayInPlace("2 of 2");
    Say("careful");
    SayInPlace("");
    SayInPlace("done");
    SayInPlace("");
  }
  char text[200];
  EXPECT_EQ(std::string(text, static_cast<size_t>(read(ends[0], text, sizeof text))),
            "\r\x1b[K1 of 2\r\x1b[K2 of 2\r\x1b[Krehearse: careful\n\r\x1b[Kdone\r\x1b[K");
  close(ends[0]);
  close(ends[1]);
}

TEST(SayTest, APipeThatNobodyReadsIsNoSignal) {
  int ends[2];
  ASSERT_EQ(pipe(ends), 0);
  close(ends[0]);
  {
    const StderrTo there(ends[1]);
    Say("lost");  // a SIGPIPE would end the test
  }
  close(ends[1]);
}

TEST(SayTest, AFullDeviceIsNoError) {
  const int full = open("/dev/full", O_WRONLY);
  if (full < 0) GTEST_SKIP() << "this machine has no /dev/full";
  {
    const StderrTo there(full);
    Say("lost");
  }
  close(full);
}

TEST(SayTest, ANewFileDoesNotTakeTheNumberOfAClosedStream) {
  EXPECT_EXIT(
      {
        close(STDIN_FILENO);
        close(STDOUT_FILENO);
        OccupyClosedStreams();
        const bool fails = write(STDOUT_FILENO, "x", 1) < 0;
        _exit(fails && open("/dev/null", O_RDONLY) > STDERR_FILENO ? 0 : 1);
      },
      testing::ExitedWithCode(0), "");
}

}  // namespace say_test
}  // namespace rehearse

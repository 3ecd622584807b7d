// The program as its user meets it: runs the real binary in a folder of its own.
#pragma once

#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <string>
#include <vector>

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <sys/wait.h>
#include <unistd.h>

#include "real/transports/transport_mpi.h"
#include "tests/support/places.h"

namespace rehearse {

struct Outcome {
  int code = -1;
  std::string out;
  std::string err;
};

inline std::string ReadFile(const std::filesystem::path& path) {
  std::ifstream file(path, std::ios::binary);
  return {std::istreambuf_iterator<char>(file), {}};
}

class ProgramTest : public ::testing::Test {
 protected:
  ProgramTest() {
    const auto* info = ::testing::UnitTest::GetInstance()->current_test_info();
    folder_ = std::filesystem::temp_directory_path() /
              (std::string("rehearse-") + info->name() + "-" + std::to_string(getpid()));
    std::filesystem::create_directories(folder_);
  }
  ~ProgramTest() override { std::filesystem::remove_all(folder_); }

  Outcome Execute(const std::string& arguments) const {
    const std::string command = "cd '" + folder_.string() + "' && '" + ProgramPath() + "' " +
                                arguments + " > out.txt 2> err.txt";
    const int status = std::system(command.c_str());
    return {WIFEXITED(status) ? WEXITSTATUS(status) : -1, ReadFile(folder_ / "out.txt"),
            ReadFile(folder_ / "err.txt")};
  }

  // A line of the shell, run in the folder, where $rehearse is the program; its output is not
  // captured.
  int Shell(const std::string& line) const {
    const int status = std::system(
        ("cd '" + folder_.string() + "' && rehearse='" + ProgramPath() + "'; " + line).c_str());
    return WIFEXITED(status) ? WEXITSTATUS(status) : -1;
  }

  std::string Write(const std::string& name, const std::string& content) const {
    std::ofstream(folder_ / name) << content;
    return (folder_ / name).string();
  }

  static bool MpiIsAbsent() {
    return !HasMpi() || std::system("command -v mpirun > /dev/null") != 0;
  }
  // Oversubscribed, as CI machines are. Open MPI does not free all that it allocates, which is no
  // leak of ours. Runs at the same time would share a folder in /tmp, which the first to end
  // removes.
  inline static const std::string kMpirun =
      "env TMPDIR=\"$PWD\" ASAN_OPTIONS=\"$ASAN_OPTIONS:detect_leaks=0\" mpirun "
      "--allow-run-as-root --oversubscribe";

  static std::string Shipped(const std::string& name) {
    return SourceDir() + "/scenarios/" + name + ".json";
  }

  // One line on stderr, nothing on stdout, exit 1, and every part in the message.
  void ExpectMistake(const std::string& arguments, const std::vector<std::string>& parts) const {
    const Outcome outcome = Execute(arguments);
    EXPECT_EQ(outcome.code, 1) << arguments << "\n" << outcome.err;
    EXPECT_EQ(outcome.out, "");
    for (const std::string& part : parts) EXPECT_THAT(outcome.err, ::testing::HasSubstr(part));
    EXPECT_LT(outcome.err.size(), 600u) << outcome.err;
  }

  std::filesystem::path folder_;
};

}  // namespace rehearse

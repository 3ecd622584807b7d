// What `cmake --install` puts under a prefix, and programs that are built against it.
#include <cstdio>
#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <memory>
#include <sstream>
#include <string>

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <rehearse/rehearse.h>
#include <sys/wait.h>

#include "tests/support/places.h"

namespace {

namespace fs = std::filesystem;
using ::testing::HasSubstr;

std::string ReadAll(const fs::path& path) {
  std::ifstream file(path);
  std::ostringstream text;
  text << file.rdbuf();
  return text.str();
}

class InstalledTest : public ::testing::Test {
 protected:
  InstalledTest() : folder_(fs::temp_directory_path() / "rehearse-library-XXXXXX") {
    std::string pattern = folder_.string();
    folder_ = mkdtemp(pattern.data());
  }
  ~InstalledTest() override { fs::remove_all(folder_); }

  // Exit code; what it said is in out.txt.
  int Run(const std::string& command) const {
    const std::string whole =
        "cd '" + folder_.string() + "' && { " + command + "; } > out.txt 2>&1";
    const int status = std::system(whole.c_str());
    return WIFEXITED(status) ? WEXITSTATUS(status) : -1;
  }
  std::string Said() const { return ReadAll(folder_ / "out.txt"); }
  void Write(const std::string& name, const std::string& text) const {
    std::ofstream(folder_ / name) << text;
  }
  // Programs that use a sanitized library would have to be built with sanitizers, too.
  static bool IsSanitized() { return std::string(REHEARSE_SANITIZE) != "OFF"; }

  fs::path folder_;
};

TEST_F(InstalledTest, AProgramFindsThePackageAndPlaysTheSameHash) {
  if (IsSanitized()) GTEST_SKIP() << "a sanitized library needs a sanitized program";
  ASSERT_EQ(Run(REHEARSE_CMAKE " --install '" REHEARSE_BUILD "' --prefix prefix"), 0) << Said();
  Write("CMakeLists.txt",
        "cmake_minimum_required(VERSION 3.22)\n"
        "project(Mine LANGUAGES CXX)\n"
        "find_package(Rehearse 0.1 REQUIRED)\n"
        "add_executable(what_if prefix/share/doc/rehearse/examples/what_if.cc)\n"
        "target_link_libraries(what_if PRIVATE Rehearse::rehearse)\n");
  ASSERT_EQ(Run(REHEARSE_CMAKE " -S . -B build -DCMAKE_PREFIX_PATH=\"$PWD/prefix\" "
                               "-DCMAKE_CXX_COMPILER=" REHEARSE_CXX " && " REHEARSE_CMAKE
                               " --build build"),
            0)
      << Said();
  const std::string scenario = rehearse::SourceDir() + "/scenarios/strategy-megatron.json";
  ASSERT_EQ(Run("build/what_if '" + scenario + "' training.batch=64"), 0) << Said();
  const auto run = rehearse::Simulate(rehearse::Scenario::FromFile(scenario));
  EXPECT_THAT(Said(), HasSubstr("before " + run.hash()));

  // The same by hand, with pkg-config where there is one, and the library's path.
  const std::string flags =
      Run("command -v pkg-config") == 0
          ? "$(PKG_CONFIG_PATH=$(echo prefix/lib/*/pkgconfig prefix/lib/pkgconfig | tr ' ' :) "
            "pkg-config --cflags --libs rehearse)"
          : "-Iprefix/include -L$(dirname prefix/lib/*/librehearse.so) -lrehearse";
  ASSERT_EQ(Run(REHEARSE_CXX " -std=c++17 -Wall -Wextra -Wpedantic -Werror "
                             "prefix/share/doc/rehearse/examples/exposed.cc " +
                flags +
                " -o exposed && "
                "LD_LIBRARY_PATH=$(dirname prefix/lib/*/librehearse.so):prefix/lib ./exposed '" +
                scenario + "'"),
            0)
      << Said();
  EXPECT_THAT(Said(), HasSubstr(" ms  "));
  EXPECT_EQ(Run("prefix/bin/rehearse --version"), 0) << Said();
}

// Names that would clash with another program's (CHECK, nlohmann's, Boost's) stay inside.
TEST_F(InstalledTest, NothingButTheHeadersNamesIsShown) {
  if (Run("command -v nm") != 0) GTEST_SKIP() << "no nm here";
  ASSERT_EQ(Run("nm -D --defined-only -C '" REHEARSE_BUILD "/librehearse.so' | cut -d' ' -f3- | "
                "grep -v 'rehearse::v1::'"),
            1)
      << Said();
  const std::string header = ReadAll(rehearse::SourceDir() + "/scenarios/library/rehearse.h");
  for (size_t at = header.find("#define "); at != std::string::npos;
       at = header.find("#define ", at + 1))
    EXPECT_EQ(header.substr(at, 17), "#define REHEARSE_");
}

#ifdef REHEARSE_PYTHON
TEST_F(InstalledTest, PythonSeesTheSameNumbers) {
  const std::string tests = rehearse::SourceDir() + "/tests/library/python_module.py";
  ASSERT_EQ(
      Run("PYTHONDONTWRITEBYTECODE=1 PYTHONPATH='" REHEARSE_BUILD "/python' " REHEARSE_PYTHON " '" +
          tests + "' '" + rehearse::SourceDir() + "' '" + rehearse::ProgramPath() + "'"),
      0)
      << Said();
}
#endif

}  // namespace

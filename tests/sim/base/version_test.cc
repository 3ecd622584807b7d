// Which commit a build is of: sim/base/version.cmake in a repository of its own.
#include "sim/base/version.h"

#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <iterator>
#include <string>

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <unistd.h>

#include "tests/support/places.h"

namespace rehearse {
namespace version_test {

namespace fs = std::filesystem;
using ::testing::HasSubstr;
using ::testing::MatchesRegex;

TEST(VersionTest, IsThreeNumbersAndACommit) {
  EXPECT_THAT(std::string(Version()), MatchesRegex("[0-9]+\\.[0-9]+\\.[0-9]+"));
  EXPECT_THAT(std::string(BuildCommit()),
              MatchesRegex("unknown|[0-9a-f]{7,40}(-dirty-[0-9a-f]{8})?"));
}

class VersionFileTest : public ::testing::Test {
 protected:
  VersionFileTest()
      : folder_(fs::temp_directory_path() / ("rehearse-version-" + std::to_string(getpid()))) {
    fs::create_directories(folder_ / "tree");
  }
  ~VersionFileTest() override { fs::remove_all(folder_); }

  bool Run(const std::string& command) const {
    const std::string line = "cd '" + (folder_ / "tree").string() + "' && " + command;
    return std::system((line + " > /dev/null 2>&1").c_str()) == 0;
  }
  bool Commit() const {
    return Run("git add -A") && Run("git -c user.name=a -c user.email=a@b commit -m 'A change'");
  }
  void Write(const std::string& name, const std::string& content) const {
    std::ofstream(folder_ / "tree" / name) << content;
  }
  // What the file says after a build.
  std::string Build() const {
    EXPECT_TRUE(
        Run("cmake -DROOT=\"$PWD\" -DVERSION=1.2.3 -DOUTPUT=../version.cc -P "
            "'" +
            SourceDir() + "/sim/base/version.cmake'"));
    std::ifstream file(folder_ / "version.cc");
    return {std::istreambuf_iterator<char>(file), {}};
  }

  fs::path folder_;
};

TEST_F(VersionFileTest, FollowsCommitsAndChangesOfSourcesAndIsLeftAloneOtherwise) {
  if (!Run("git --version") || !Run("cmake --version")) GTEST_SKIP() << "no git or no cmake";
  EXPECT_THAT(Build(), HasSubstr("return \"unknown\""));  // no repository
  ASSERT_TRUE(Run("git init"));
  EXPECT_THAT(Build(), HasSubstr("return \"unknown\""));  // no commit

  Write("a.cc", "int a;");
  Write("a.md", "A.");
  ASSERT_TRUE(Commit());
  const std::string first = Build();
  EXPECT_THAT(first, HasSubstr("return \"1.2.3\""));
  EXPECT_THAT(first, MatchesRegex(".*return \"[0-9a-f]{7,40}\".*"));
  const fs::file_time_type written = fs::last_write_time(folder_ / "version.cc");
  Write("a.md", "No source.");
  EXPECT_EQ(Build(), first);
  EXPECT_EQ(fs::last_write_time(folder_ / "version.cc"), written);

  Write("a.cc", "int b;");
  const std::string changed = Build();
  EXPECT_THAT(changed, MatchesRegex(".*return \"[0-9a-f]{7,40}-dirty-[0-9a-f]{8}\".*"));
  Write("b.cc", "int c;");
  EXPECT_NE(Build(), changed);
  ASSERT_TRUE(Commit());
  const std::string second = Build();
  EXPECT_THAT(second, ::testing::Not(HasSubstr("dirty")));
  EXPECT_NE(second, first);
}

}  // namespace version_test
}  // namespace rehearse

// Pictures in READMEs are what the program draws today.
#include "tests/support/places.h"
#include "tests/tools/program_fixture.h"

namespace rehearse {
namespace pictures_test {

namespace fs = std::filesystem;

using PicturesTest = ProgramTest;

TEST_F(PicturesTest, OfReadmesAreWhatTheProgramDraws) {
  const fs::path root(SourceDir());
  const std::string command = "'" + (root / "tools/draw-pictures").string() + "' '" +
                              ProgramPath() + "' '" + folder_.string() + "' 2> '" +
                              (folder_ / "err.txt").string() + "'";
  ASSERT_EQ(std::system(command.c_str()), 0) << ReadFile(folder_ / "err.txt");
  size_t count = 0;
  for (const char* place : {"scenarios/pictures", "topology/pictures", "workloads/pictures"}) {
    for (const auto& kept : fs::directory_iterator(root / place)) {
      const fs::path drawn = folder_ / place / kept.path().filename();
      EXPECT_TRUE(ReadFile(drawn) == ReadFile(kept.path()))
          << kept.path() << " is not what is drawn now: tools/draw-pictures";
      ++count;
    }
  }
  EXPECT_EQ(count, 19u);
}

}  // namespace pictures_test
}  // namespace rehearse

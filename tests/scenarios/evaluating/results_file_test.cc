#include "scenarios/evaluating/results_file.h"

#include <filesystem>
#include <fstream>
#include <thread>

#include <fmt/format.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <unistd.h>

#include "scenarios/evaluating/results_table.h"
#include "sim/base/error.h"
#include "sim/base/sqlite_connection.h"

namespace rehearse {
namespace results_file_test {

namespace fs = std::filesystem;
using ::testing::AllOf;
using ::testing::ElementsAre;
using ::testing::HasSubstr;

class ResultsFileTest : public ::testing::Test {
 protected:
  void SetUp() override {
    if (!HasSqlite()) GTEST_SKIP() << "this build has no SQLite";
    folder_ = fs::temp_directory_path() / fmt::format("rehearse-results-{}", getpid());
    fs::remove_all(folder_);
    fs::create_directories(folder_);
  }
  void TearDown() override { fs::remove_all(folder_); }

  std::string File(const std::string& name) const { return (folder_ / name).string(); }
  static Evaluation Taking(double seconds, const std::string& hash) {
    Evaluation evaluation;
    Result& result = evaluation.results.emplace_back();
    result.scenario = "made up";
    result.ranks = 8;
    result.step = Seconds(seconds);
    result.tokens_per_second = 1 / seconds;
    for (const char* name : {"row", "column"}) {
      AxisUse& axis = result.axes.emplace_back();
      axis.name = name;
      axis.seconds = Seconds(seconds / 3);
    }
    LinkSummary& link = result.links.emplace_back();
    link.name = "nic";
    link.kind = "network";
    link.utilization = 0.25;
    result.timeline_hash = "abc";
    evaluation.hash = hash;
    return evaluation;
  }
  static EvaluationKey Key(const std::string& point) {
    return {.study = "s", .point = point, .parameters = {{"training.batch", point.size()}}};
  }
  static std::string Bytes(const std::string& path) {
    std::ifstream file(path, std::ios::binary);
    return {std::istreambuf_iterator<char>(file), {}};
  }
  static void WriteBytes(const std::string& path, const std::string& bytes) {
    std::ofstream(path, std::ios::binary) << bytes;
  }
  // A closed file of this many points, and its bytes.
  std::string MakeFile(const std::string& name, int points) const {
    ResultsFile file(File(name), ResultsFile::Opening::kMakeIfMissing);
    for (int i = 0; i < points; ++i)
      file.Keep(Key(fmt::format("p{}", i)), Taking(1.5 + i, fmt::format("hash{}", i)));
    return File(name);
  }
  static std::string ErrorOfOpening(const std::string& path) {
    try {
      ResultsFile file(path, ResultsFile::Opening::kMakeIfMissing);
      file.ForEach([](const KeptPoint&) {});
    } catch (const Error& error) {
      return error.what();
    }
    return "no error";
  }

  fs::path folder_;
};

TEST_F(ResultsFileTest, WhatIsKeptIsFoundByItsHashWithTheSameNumbers) {
  const std::string path = MakeFile("a.sqlite", 3);
  ResultsFile file(path, ResultsFile::Opening::kThere);
  EXPECT_FALSE(file.Find(Key("p1"), "another").has_value());
  const std::optional<Evaluation> found = file.Find(Key("p1"), "hash1");
  ASSERT_TRUE(found.has_value());
  const Evaluation kept = Taking(2.5, "hash1");
  EXPECT_EQ(ResultJson(found->results).dump(), ResultJson(kept.results).dump());
  EXPECT_EQ(found->results.front().axes[0].name, "row");  // in their order, not the alphabet's
}

TEST_F(ResultsFileTest, APointOfAnotherStudyIsOneOfThisFromThenOn) {
  ResultsFile file(MakeFile("a.sqlite", 1), ResultsFile::Opening::kThere);
  EXPECT_TRUE(file.Find({.study = "t", .point = "q"}, "hash0").has_value());
  std::vector<std::string> names;
  file.ForEach([&](const KeptPoint& point) { names.push_back(point.study + "/" + point.point); });
  EXPECT_THAT(names, ElementsAre("s/p0", "t/q"));
}

TEST_F(ResultsFileTest, WhatIsImpossibleIsKeptToo) {
  ResultsFile file(File("a.sqlite"), ResultsFile::Opening::kMakeIfMissing);
  Evaluation evaluation;
  evaluation.error = "out of memory";
  evaluation.hash = "h";
  file.Keep(Key("p"), evaluation);
  const std::optional<Evaluation> found = file.Find(Key("p"), "h");
  ASSERT_TRUE(found.has_value());
  EXPECT_EQ(found->error, "out of memory");
  EXPECT_TRUE(found->results.empty());
}

TEST_F(ResultsFileTest, FilesThatAreNotOursAreLeftAsTheyAre) {
  const std::string good = Bytes(MakeFile("good.sqlite", 40));
  ASSERT_GT(good.size(), 3 * 4096u);
  const auto expect = [&](const std::string& bytes, const std::string& words) {
    const std::string path = File("bad.sqlite");
    WriteBytes(path, bytes);
    EXPECT_THAT(ErrorOfOpening(path), AllOf(HasSubstr("bad.sqlite"), HasSubstr(words)));
    EXPECT_EQ(Bytes(path), bytes) << words;
  };
  expect("a,b\n1,2\n", "is not a results file");
  expect(std::string(5000, 'x'), "is not a results file");
  std::string foreign = good;
  foreign[68] = 'X';  // application_id, https://sqlite.org/fileformat2.html section 1.3
  expect(foreign, "another program's");
  std::string newer = good;
  newer[63] = 9;  // user_version
  expect(newer, "found version 9, expected 1");
  std::string broken = good;
  for (size_t i = 4096; i < 3 * 4096; ++i) broken[i] = '\xff';
  expect(broken, "is damaged");
  expect(good.substr(0, good.size() / 2), "is damaged");
}

// Neither is read before its checksum has been compared: the one nests deeper than any result.
TEST_F(ResultsFileTest, ARowThatHoldsNoResultIsSimulatedAgain) {
  if (!HasSqlite()) GTEST_SKIP() << "this build has no SQLite";
  for (const std::string& text : {std::string(300'000, '['), std::string("no JSON")}) {
    const std::string path = MakeFile("rows.sqlite", 1);
    SqliteConnection(path, path, SqliteConnection::Access::kChange)
        .Do("UPDATE points SET result = '" + text + "'");
    std::vector<std::string> said;
    ResultsFile file(path, ResultsFile::Opening::kThere,
                     [&](const std::string& message) { said.push_back(message); });
    EXPECT_FALSE(file.Find(Key("p0"), "hash0").has_value());
    EXPECT_THAT(said, ElementsAre(HasSubstr("checksum")));
  }
}

TEST_F(ResultsFileTest, ANumberThatHasChangedOnTheDiskIsNotTaken) {
  const std::string path = MakeFile("a.sqlite", 1);
  std::string bytes = Bytes(path);
  const size_t at = bytes.find("\"step_seconds\":1.5");
  ASSERT_NE(at, std::string::npos);
  bytes[at + std::string("\"step_seconds\":").size()] = '9';
  WriteBytes(path, bytes);
  std::vector<std::string> said;
  ResultsFile file(path, ResultsFile::Opening::kThere,
                   [&](const std::string& message) { said.push_back(message); });
  EXPECT_FALSE(file.Find(Key("p0"), "hash0").has_value());
  EXPECT_THAT(said, ElementsAre(AllOf(HasSubstr("\"p0\""), HasSubstr("simulated again"))));
  EXPECT_THAT(ErrorOfOpening(path), HasSubstr("checksum"));
  file.Keep(Key("p0"), Taking(1.5, "hash0"));
  EXPECT_TRUE(file.Find(Key("p0"), "hash0").has_value());
}

TEST_F(ResultsFileTest, TwoWritersOfOneFileLoseNothing) {
  const auto write = [&](const std::string& name) {
    ResultsFile file(File("a.sqlite"), ResultsFile::Opening::kMakeIfMissing);
    for (int i = 0; i < 100; ++i)
      file.Keep(Key(fmt::format("{}{}", name, i)), Taking(1, fmt::format("{}{}", name, i)));
  };
  std::thread other([&] { write("a"); });
  write("b");
  other.join();
  ResultsFile file(File("a.sqlite"), ResultsFile::Opening::kThere);
  EXPECT_EQ(ReadKeptPoints(file, {}, "a.sqlite").size(), 200u);
}

TEST_F(ResultsFileTest, MergedFilesHaveAllPointsTheLastOneFirst) {
  const std::string a = MakeFile("a.sqlite", 3);
  {
    ResultsFile file(File("b.sqlite"), ResultsFile::Opening::kMakeIfMissing);
    file.Keep(Key("p2"), Taking(0.5, "newer"));
    file.Keep(Key("p9"), Taking(9, "hash9"));
  }
  EXPECT_EQ(MergeResults({a, File("b.sqlite")}, File("c.sqlite")), 4u);
  ResultsFile merged(File("c.sqlite"), ResultsFile::Opening::kThere);
  const std::vector<KeptPoint> points =
      ReadKeptPoints(merged, {.sort = "step_seconds", .top = 2}, "c.sqlite");
  ASSERT_EQ(points.size(), 2u);
  EXPECT_EQ(points[0].point, "p2");
  EXPECT_EQ(points[0].hash, "newer");
  EXPECT_EQ(points[1].point, "p0");
  EXPECT_THROW(MergeResults({a}, a), Error);
  EXPECT_THROW(MergeResults({a, File("none.sqlite")}, File("d.sqlite")), Error);
  EXPECT_FALSE(fs::exists(File("d.sqlite")));
  EXPECT_FALSE(fs::exists(File("d.sqlite.part")));
}

TEST_F(ResultsFileTest, TheTableHasAColumnForEachNumberAndParameter) {
  ResultsFile file(MakeFile("a.sqlite", 1), ResultsFile::Opening::kThere);
  const std::string csv = ToCsv(TableOf(ReadKeptPoints(file, {}, "a.sqlite")));
  EXPECT_THAT(csv, AllOf(HasSubstr("study,point,training.batch,status,reason,"),
                         HasSubstr("step_seconds"), HasSubstr("by_axis.row.seconds"),
                         HasSubstr("busiest_link.name"), HasSubstr("\ns,p0,2,done,,")));
  EXPECT_THROW(ReadKeptPoints(file, {.sort = "stp_seconds"}, "a.sqlite"), Error);
}

// In its life, the folder can only be read by this user, who is nobody if it is root.
class ReadOnlyFolder {
 public:
  explicit ReadOnlyFolder(fs::path folder) : folder_(std::move(folder)) {
    Allow(fs::perms::owner_write, fs::perm_options::remove);
    constexpr uid_t kNobody = 65534;
    if (was_root_) is_nobody_ = seteuid(kNobody) == 0;
  }
  ~ReadOnlyFolder() {
    if (is_nobody_) {
      EXPECT_EQ(seteuid(0), 0);
    }
    Allow(fs::perms::owner_write, fs::perm_options::add);
  }
  ReadOnlyFolder(const ReadOnlyFolder&) = delete;
  ReadOnlyFolder& operator=(const ReadOnlyFolder&) = delete;

  bool is_in_force() const { return !was_root_ || is_nobody_; }

 private:
  void Allow(fs::perms what, fs::perm_options how) const { fs::permissions(folder_, what, how); }

  fs::path folder_;
  bool was_root_ = geteuid() == 0;
  bool is_nobody_ = false;
};

TEST_F(ResultsFileTest, AFolderThatCannotBeWrittenIsShown) {
  const std::string path = MakeFile("a.sqlite", 2);
  // How many points it shows, or why it does not.
  const auto shown = [&](ResultsFile::Opening opening) {
    try {
      ResultsFile file(path, opening);
      size_t count = 0;
      file.ForEach([&](const KeptPoint&) { ++count; });
      return std::to_string(count);
    } catch (const Error& error) {
      return std::string(error.what());
    }
  };
  EXPECT_EQ(shown(ResultsFile::Opening::kShown), "2");
  {
    const ReadOnlyFolder folder(folder_);
    if (!folder.is_in_force()) GTEST_SKIP() << "root cannot be anybody else here";
    EXPECT_EQ(shown(ResultsFile::Opening::kShown), "2");
    EXPECT_THAT(shown(ResultsFile::Opening::kThere), HasSubstr("a.sqlite: "));
  }
  std::ofstream(path + "-wal") << "points that are not yet in the file";
  const ReadOnlyFolder folder(folder_);
  EXPECT_THAT(shown(ResultsFile::Opening::kShown),
              HasSubstr("its latest points are in a.sqlite-wal, which SQLite does not read"));
}

TEST_F(ResultsFileTest, WhatIsMergedIntoALinkIsWhereItPoints) {
  MakeFile("a.sqlite", 1);
  fs::create_symlink(File("there.sqlite"), File("link.sqlite"));
  EXPECT_EQ(MergeResults({File("a.sqlite")}, File("link.sqlite")), 1u);
  EXPECT_TRUE(fs::is_symlink(File("link.sqlite")));
  EXPECT_TRUE(fs::is_regular_file(fs::symlink_status(File("there.sqlite"))));
}

}  // namespace results_file_test
}  // namespace rehearse

// "--results", "--shard" and "rehearse results" as their user meets them.
#include <algorithm>
#include <chrono>
#include <csignal>
#include <filesystem>
#include <sstream>
#include <thread>

#include <nlohmann/json.hpp>
#include <sys/stat.h>

#include "scenarios/evaluating/results_file.h"
#include "tests/scenarios/small_scenario.h"
#include "tests/tools/program_fixture.h"

namespace rehearse {
namespace results_test {

using ::testing::AllOf;
using ::testing::HasSubstr;
using ::testing::Not;
using ::testing::StartsWith;

class ResultsCommandTest : public ProgramTest {
 protected:
  void SetUp() override {
    if (!HasSqlite()) GTEST_SKIP() << "this build has no SQLite";
    Write("small.json", testing::kSmall);
    Write("study.json", Grid(6));
  }

  // Batches of 8, 16 and so on.
  static std::string Grid(int points) {
    std::string values;
    for (int i = 1; i <= points; ++i) values += (i > 1 ? ", " : "") + std::to_string(8 * i);
    return R"({"name": "batches", "metric": "tokens_per_second", "base": "small.json",
               "grid": [{"path": "training.batch", "values": [)" +
           values + "]}]}";
  }

  Outcome Mpirun(int ranks, const std::string& arguments, const std::string& wrapper = "") const {
    const int status =
        Shell("timeout 120 " + kMpirun + " -n " + std::to_string(ranks) + " " + wrapper +
              " \"$rehearse\" " + arguments + " > out.txt 2> err.txt < /dev/null");
    return {status, ReadFile(folder_ / "out.txt"), ReadFile(folder_ / "err.txt")};
  }

  // Points that the file has; it cannot be read while it is being made.
  size_t PointsIn(const std::string& file) const {
    const std::string rows = Execute("results show " + file + " --format csv").out;
    return static_cast<size_t>(std::max<ptrdiff_t>(std::count(rows.begin(), rows.end(), '\n'), 1)) -
           1;
  }
};

TEST_F(ResultsCommandTest, ASweepThatWasKilledLosesNoMoreThanWhatItWasSimulating) {
  Write("long.json", Grid(400));
  ASSERT_EQ(
      Shell("\"$rehearse\" sweep long.json --threads 1 --results r.sqlite > killed.txt 2>&1 & "
            "pid=$!; for i in $(seq 600); do sleep 0.05; test $(\"$rehearse\" results show "
            "r.sqlite --format csv 2> /dev/null | wc -l) -gt 5 && break; done; "
            "kill -9 $pid; wait $pid; test $? -eq 137"),
      0);
  const size_t kept = PointsIn("r.sqlite");
  EXPECT_GE(kept, 5u);
  EXPECT_LT(kept, 400u);
  // Everything that was kept is intact, and so is what is made from it.
  const Outcome resumed = Execute("sweep long.json --results r.sqlite --resume --format csv");
  EXPECT_EQ(resumed.code, 0) << resumed.err;
  // Nothing but progress, on a slow machine.
  std::istringstream printed(resumed.err);
  for (std::string line; std::getline(printed, line);)
    EXPECT_TRUE(line.starts_with("rehearse: sweeping: ")) << line;
  EXPECT_EQ(resumed.out, Execute("sweep long.json --format csv").out);
  EXPECT_EQ(PointsIn("r.sqlite"), 400u);
}

TEST_F(ResultsCommandTest, TwoProcessesMayUseOneFile) {
  ASSERT_EQ(
      Shell("\"$rehearse\" sweep study.json --results r.sqlite > a.txt 2> a.err & "
            "\"$rehearse\" sweep study.json --results r.sqlite > b.txt 2> b.err; test $? -eq 0 "
            "&& wait $!"),
      0)
      << ReadFile(folder_ / "a.err") << ReadFile(folder_ / "b.err");
  EXPECT_EQ(ReadFile(folder_ / "a.txt"), ReadFile(folder_ / "b.txt"));
  EXPECT_EQ(PointsIn("r.sqlite"), 6u);
}

TEST_F(ResultsCommandTest, ShardsMergedPrintTheWhole) {
  const std::string whole = Execute("sweep study.json").out;
  EXPECT_THAT(whole, HasSubstr("* the best is batch=48: tokens_per_second"));
  for (const char* part : {"1", "2", "3"}) {
    const Outcome shard = Execute(std::string("sweep study.json --results part") + part +
                                  ".sqlite --shard " + part + "/3");
    EXPECT_EQ(shard.code, 0) << shard.err;
    EXPECT_THAT(shard.out, HasSubstr(std::string("2 points of 6: shard ") + part + "/3"));
  }
  const Outcome merge =
      Execute("results merge part1.sqlite part2.sqlite part3.sqlite -o all.sqlite");
  EXPECT_EQ(merge.out, "all.sqlite: 6 points of 3 files\n") << merge.err;
  EXPECT_EQ(Execute("sweep study.json --results all.sqlite").out, whole);
}

TEST_F(ResultsCommandTest, ASearchGoesOnFromWhatItKept) {
  const Outcome first = Execute("search small.json --results s.sqlite");
  EXPECT_EQ(first.code, 0) << first.err;
  const size_t kept = PointsIn("s.sqlite");
  EXPECT_GE(kept, 20u);  // keep_at_least
  EXPECT_EQ(Execute("search small.json --results s.sqlite --resume").out, first.out);
  EXPECT_EQ(Execute("search small.json").out, first.out);
  EXPECT_EQ(PointsIn("s.sqlite"), kept);
}

TEST_F(ResultsCommandTest, ShowsTheBestFirst) {
  ASSERT_EQ(Execute("sweep study.json --results r.sqlite").code, 0);
  const Outcome show = Execute("results show r.sqlite --sort tokens_per_second --top 2");
  EXPECT_EQ(show.code, 0) << show.err;
  EXPECT_THAT(show.out,
              AllOf(StartsWith("study    point     "), HasSubstr("batch=48"), HasSubstr("batch=40"),
                    Not(HasSubstr("batch=8 ")), HasSubstr("2 points")));
  const auto json = nlohmann::json::parse(Execute("results show r.sqlite --format json").out);
  EXPECT_EQ(json["schema"], "rehearse.results.v1");
  EXPECT_FALSE(json["points"].empty());
  const Outcome rows = Execute("results show r.sqlite --sort step_seconds --top 1 --format jsonl");
  const auto row = nlohmann::json::parse(rows.out);
  EXPECT_EQ(row["training.batch"], 8);
  EXPECT_EQ(row["status"], "done");
  EXPECT_GT(row["step_seconds"].get<double>(), 0);
}

TEST_F(ResultsCommandTest, ASweepSortsMarksTheBestAndKeepsConstraints) {
  Write("where.json", R"({"name": "w", "metric": "step_seconds", "base": "small.json",
    "where": [{"product": ["strategy.column", "strategy.row", "strategy.depth"], "equals": 8}],
    "grid": [{"path": "strategy.column", "values": [1, 2, 4]}, {"path": "strategy.row",
              "values": [1, 2]}, {"path": "strategy.depth", "values": [1, 2, 4]}]})");
  const Outcome text = Execute("sweep where.json --sort step_seconds");
  EXPECT_EQ(text.code, 0) << text.err;
  // 1x2x4, 2x1x4, 2x2x2, 4x1x2, 4x2x1 of 18.
  EXPECT_THAT(text.out, AllOf(HasSubstr("5 points"), HasSubstr("13 combinations do not meet"),
                              HasSubstr(" *  "), HasSubstr("* the best is ")));
  const Outcome csv = Execute("sweep where.json --sort step_seconds --format jsonl");
  double before = 0;
  std::istringstream lines(csv.out);
  bool is_first = true;
  for (std::string line; std::getline(lines, line); is_first = false) {
    const auto row = nlohmann::json::parse(line);
    EXPECT_EQ(row["best"].get<bool>(), is_first);
    EXPECT_GE(row["step_seconds"].get<double>(), before);
    before = row["step_seconds"].get<double>();
  }
  Write("none.json", R"({"name": "w", "metric": "step_seconds", "base": "small.json",
    "where": [{"product": ["training.batch"], "at_least": 100}],
    "grid": [{"path": "training.batch", "values": [8, 16]}]})");
  ExpectMistake("sweep none.json", {"none.json:2", "/where", "none of 2 combinations"});
}

TEST_F(ResultsCommandTest, RanksOfMpiShareTheSimulations) {
  if (MpiIsAbsent()) GTEST_SKIP() << "no MPI here";
  for (const std::string& command :
       std::vector<std::string>{"sweep study.json", "search small.json"}) {
    const Outcome ranks = Mpirun(4, command + " --results r.sqlite --threads 1");
    EXPECT_EQ(ranks.code, 0) << ranks.err;
    EXPECT_EQ(ranks.out, Execute(command).out);
  }
  for (int rank = 0; rank < 4; ++rank)
    EXPECT_FALSE(std::filesystem::exists(folder_ / ("r.sqlite.rank" + std::to_string(rank))));
  const Outcome nowhere = Mpirun(2, "sweep study.json");
  EXPECT_NE(nowhere.code, 0);
  EXPECT_THAT(nowhere.err, HasSubstr("mpirun started 2 ranks"));
}

TEST_F(ResultsCommandTest, ARankThatIsKilledEndsTheRunByNameAndItsPointsAreSimulatedAgain) {
  if (MpiIsAbsent()) GTEST_SKIP() << "no MPI here";
  Write("long.json", Grid(400));
  const std::string wrapper =
      Write("pid.sh",
            "#!/bin/sh\n[ \"$OMPI_COMM_WORLD_RANK\" != 2 ] || echo $$ > victim.pid\nexec \"$@\"\n");
  chmod(wrapper.c_str(), 0755);
  // Rank 2 is killed when its file has something in it, which is long before the end.
  std::thread killer([&] {
    const auto file = folder_ / "r.sqlite.rank2-wal";
    std::error_code missing;
    for (int i = 0; i < 3000; ++i) {
      if (std::filesystem::exists(file, missing) && std::filesystem::file_size(file, missing) > 0)
        break;
      std::this_thread::sleep_for(std::chrono::milliseconds(5));
    }
    const std::string pid = ReadFile(folder_ / "victim.pid");
    if (!pid.empty()) kill(std::stoi(pid), SIGKILL);
  });
  const Outcome killed = Mpirun(4, "sweep long.json --results r.sqlite --threads 1", wrapper);
  killer.join();
  EXPECT_NE(killed.code, 0);
  EXPECT_EQ(killed.out, "");
  EXPECT_THAT(killed.err, ::testing::ContainsRegex("rehearse: rank [013]: .*rank 2 \\(process "));
  const Outcome again =
      Mpirun(4, "sweep long.json --results r.sqlite --resume --threads 1 --format csv");
  EXPECT_EQ(again.code, 0) << again.err;
  EXPECT_EQ(again.out, Execute("sweep long.json --format csv").out);
  EXPECT_EQ(PointsIn("r.sqlite"), 400u);
}

TEST_F(ResultsCommandTest, MistakesAreOneMessage) {
  Write("text.sqlite", "a,b\n");
  ExpectMistake("sweep study.json --results text.sqlite", {"text.sqlite", "not a results file"});
  EXPECT_EQ(ReadFile(folder_ / "text.sqlite"), "a,b\n");
  ExpectMistake("sweep study.json --results .", {"not a regular file"});
  ExpectMistake("sweep study.json --results no/such/r.sqlite", {"no/such/r.sqlite"});
  ExpectMistake("sweep study.json --results r.sqlite --resume", {"r.sqlite", "no such file"});
  ExpectMistake("sweep study.json --resume", {"--results FILE too"});
  ExpectMistake("sweep study.json --shard 1/2", {"--results FILE too"});
  for (const char* shard : {"0/2", "3/2", "1", "x/2", "1/", "-1/2"})
    ExpectMistake(std::string("sweep study.json --results r.sqlite --shard=") + shard,
                  {"--shard: found", "such as 1/4"});
  ExpectMistake("sweep study.json --sort step_second", {"did you mean \"step_seconds\"?"});
  ExpectMistake("search small.json --quality --results r.sqlite --shard 1/2",
                {"--quality needs all"});
  ExpectMistake("results", {"usage: rehearse results"});
  ExpectMistake("results shw r.sqlite", {"did you mean \"show\"?"});
  ExpectMistake("results show none.sqlite", {"none.sqlite", "no such file"});
  ExpectMistake("results merge text.sqlite -o c.sqlite", {"text.sqlite", "not a results file"});
  EXPECT_FALSE(std::filesystem::exists(folder_ / "c.sqlite"));
  ExpectMistake("results merge text.sqlite", {"expected -o FILE"});
}

}  // namespace results_test
}  // namespace rehearse

// rehearse execute as its user meets it: with threads, under mpirun, and when things go wrong.
#include <algorithm>
#include <chrono>
#include <csignal>
#include <cstdlib>
#include <regex>
#include <thread>

#include <nlohmann/json.hpp>
#include <sys/stat.h>

#include "tests/support/places.h"
#include "tests/support/sanitizers.h"
#include "tests/tools/program_fixture.h"

namespace rehearse {
namespace execute_test {

using ::testing::HasSubstr;
using Json = nlohmann::json;

class ExecuteProgramTest : public ProgramTest {
 protected:
  // `ranks` is -n's argument.
  Outcome Mpirun(int ranks, const std::string& arguments, const std::string& wrapper = "") const {
    const std::string command = "cd '" + folder_.string() + "' && timeout 60 " + kMpirun + " -n " +
                                std::to_string(ranks) + " " + wrapper + " '" + ProgramPath() +
                                "' " + arguments + " > out.txt 2> err.txt < /dev/null";
    const int status = std::system(command.c_str());
    return {WIFEXITED(status) ? WEXITSTATUS(status) : -1, ReadFile(folder_ / "out.txt"),
            ReadFile(folder_ / "err.txt")};
  }
  double SecondsSince(std::chrono::steady_clock::time_point start) const {
    return std::chrono::duration<double>(std::chrono::steady_clock::now() - start).count();
  }
};

TEST_F(ExecuteProgramTest, ThreadRanksPassTheCheckAndLeaveTheirFiles) {
  const Outcome outcome = Execute("execute " + Shipped("cpu-4d") +
                                  " --check --repeat 2 --warmup 1 --format json --out result");
  ASSERT_EQ(outcome.code, 0) << outcome.err;
  const Json json = Json::parse(outcome.out);
  EXPECT_EQ(json["schema"], "rehearse.execution.v1");
  EXPECT_EQ(json["transport"], "threads");
  EXPECT_EQ(json["repeat_seconds"].size(), 2u);
  EXPECT_EQ(json["check"]["passed"], true);
  EXPECT_LE(json["fastest_step_seconds"], json["result"]["step_seconds"]);
  EXPECT_EQ(json["lost"]["by_repeat"].size(), 2u);
  EXPECT_GE(json["lost"]["share"], 0.0);
  EXPECT_LE(json["lost"]["share"], 1.0);
  EXPECT_EQ(json["result"]["fidelity"], "measured");
  EXPECT_EQ(json["result"]["ranks"], 4);
  EXPECT_EQ(Json::parse(ReadFile(folder_ / "result/execution.json")), json);
  const Json timeline = Json::parse(ReadFile(folder_ / "result/timeline.json"));
  EXPECT_EQ(timeline["provenance"], "measured");
  EXPECT_EQ(timeline["steps"].size(), 3u);
  for (int rank = 0; rank < 4; ++rank) {
    const std::string lines =
        ReadFile(folder_ / ("result/rank-" + std::to_string(rank) + ".jsonl"));
    EXPECT_EQ(std::count(lines.begin(), lines.end(), '\n'), 4) << rank;  // a header and three steps
  }
  EXPECT_THAT(ReadFile(folder_ / "result/timeline.svg"), HasSubstr("<svg"));
}

// AxoNN's Fig. 7: whatever the strategy, the losses are those of one rank, step for step.
TEST_F(ExecuteProgramTest, StrategiesLearnWhatOneRankLearns) {
  const auto losses_of = [this](const std::string& arguments) {
    const Outcome outcome = Execute("execute " + arguments +
                                    " --steps 5 --repeat 1 --warmup 0 --format json --out trained");
    EXPECT_EQ(outcome.code, 0) << outcome.err;
    const Json training = Json::parse(outcome.out)["training"];
    EXPECT_EQ(training["arithmetic"], "fp64");
    EXPECT_LT(training["largest_difference"].get<double>(), 1e-12) << arguments;
    return training["losses"].get<std::vector<double>>();
  };
  const std::vector<double> by_4d = losses_of(Shipped("cpu-4d"));
  const std::vector<double> by_data = losses_of(Shipped("cpu-data-parallel"));
  const std::vector<double> u_net = losses_of(Shipped("cpu-u-net"));
  ASSERT_EQ(by_4d.size(), 5u);
  for (size_t step = 0; step < by_4d.size(); ++step) {
    EXPECT_NEAR(by_data[step], by_4d[step], 1e-12 * by_4d[step]);
    if (step == 0) continue;
    EXPECT_LT(by_4d[step], by_4d[step - 1]);
    EXPECT_LT(u_net[step], u_net[step - 1]);
  }
  EXPECT_THAT(ReadFile(folder_ / "trained/losses.csv"), HasSubstr("step,loss,serial_loss\n1,"));
}

TEST_F(ExecuteProgramTest, AScheduleTrainsWithoutOneRankBesideIt) {
  ASSERT_EQ(Execute("plan " + Shipped("cpu-data-parallel") + " -o step.json").code, 0);
  const Outcome outcome = Execute(
      "execute step.json --cluster local-cpu:ranks=2 --steps 2 --repeat 1 --warmup 0 --format "
      "json");
  ASSERT_EQ(outcome.code, 0) << outcome.err;
  const Json training = Json::parse(outcome.out)["training"];
  EXPECT_EQ(training["losses"].size(), 2u);
  EXPECT_FALSE(training.contains("serial_losses"));
}

TEST_F(ExecuteProgramTest, EveryShippedCpuScenarioPassesTheCheck) {
  for (const char* name : {"cpu-data-parallel", "cpu-megatron", "cpu-fsdp", "cpu-4d", "cpu-4d-8",
                           "cpu-vgg", "cpu-u-net"}) {
    const Outcome outcome = Execute("execute " + Shipped(name) + " --check --repeat 1 --warmup 0");
    EXPECT_EQ(outcome.code, 0) << name << outcome.out << outcome.err;
    EXPECT_THAT(outcome.out, HasSubstr("passed")) << name;
  }
}

TEST_F(ExecuteProgramTest, ARowHasEachNumberOfTheResult) {
  const std::string execute =
      "execute '" + Shipped("cpu-data-parallel") + "' --repeat 1 --warmup 0 --format ";
  const auto row = nlohmann::json::parse(Execute(execute + "jsonl").out);
  EXPECT_EQ(row["ranks"], 2);
  EXPECT_GT(row["step_seconds"].get<double>(), 0);
  EXPECT_GT(row["breakdown.compute_seconds"].get<double>(), 0);
  const std::string table = Execute(execute + "csv").out;
  EXPECT_EQ(std::count(table.begin(), table.end(), '\n'), 2);
}

TEST_F(ExecuteProgramTest, MistakesHaveOneClearMessage) {
  const std::string scenario = "execute " + Shipped("cpu-4d");
  ExpectMistake(scenario + " --backend cpus", {"--backend", "\"cpus\"", "cpu"});
  ExpectMistake(scenario + " --repeat 0", {"--repeat", "\"0\"", "whole number from 1"});
  ExpectMistake(scenario + " --streams blokking", {"--streams", "did you mean \"blocking\""});
  ExpectMistake(scenario + " --collectives mpi", {"threads", "mpirun"});
  ExpectMistake("execute", {"no scenario"});
}

TEST_F(ExecuteProgramTest, AFullDiskEndsAllRanksWithTheFilesName) {
  std::filesystem::create_directories(folder_ / "result");
  std::filesystem::create_symlink("/dev/full", folder_ / "result/rank-1.jsonl");
  const auto start = std::chrono::steady_clock::now();
  const Outcome outcome = Execute("execute " + Shipped("cpu-megatron") + " --out result");
  EXPECT_EQ(outcome.code, 1);
  EXPECT_THAT(outcome.err, HasSubstr("cannot write result/rank-1.jsonl"));
  EXPECT_FALSE(std::filesystem::exists(folder_ / "result/execution.json"));
  EXPECT_LT(SecondsSince(start), 10);
}

TEST_F(ExecuteProgramTest, ProcessesUnderMpirunGiveTheSameNumbers) {
  if (MpiIsAbsent()) GTEST_SKIP() << "no MPI here";
  for (const std::string collectives : {"own", "mpi"}) {
    const Outcome outcome =
        Mpirun(4, "execute " + Shipped("cpu-4d") +
                      " --check --repeat 2 --warmup 1 --format json --collectives " + collectives);
    ASSERT_EQ(outcome.code, 0) << outcome.err;
    const Json json = Json::parse(outcome.out);
    EXPECT_EQ(json["transport"], "mpi");
    EXPECT_EQ(json["collectives"], collectives);
    EXPECT_EQ(json["check"]["passed"], true) << outcome.out;
    EXPECT_EQ(json["clocks"].size(), 3u);
  }
}

TEST_F(ExecuteProgramTest, RanksThatDisagreeSayWhoDoes) {
  if (MpiIsAbsent()) GTEST_SKIP() << "no MPI here";
  const std::string wrapper =
      Write("seeds.sh", "#!/bin/sh\nexec \"$@\" --seed $OMPI_COMM_WORLD_RANK\n");
  chmod(wrapper.c_str(), 0755);
  const auto start = std::chrono::steady_clock::now();
  const Outcome outcome = Mpirun(2, "execute " + Shipped("cpu-megatron"), wrapper);
  EXPECT_EQ(outcome.code, 1);
  EXPECT_THAT(outcome.err, HasSubstr("rehearse: rank 0: rank 1 has scenario"));
  EXPECT_THAT(outcome.err, HasSubstr("rehearse: rank 1: rank 1 has scenario"));
  EXPECT_THAT(outcome.err, HasSubstr("seed 1"));
  EXPECT_LT(SecondsSince(start), 30);
}

TEST_F(ExecuteProgramTest, AnotherNumberOfRanksIsRefused) {
  if (MpiIsAbsent()) GTEST_SKIP() << "no MPI here";
  const Outcome outcome = Mpirun(2, "execute " + Shipped("cpu-4d"));
  EXPECT_EQ(outcome.code, 1) << outcome.out << outcome.err;
  EXPECT_THAT(outcome.err, HasSubstr("mpirun started 2 ranks, but the scenario has 4"));
}

TEST_F(ExecuteProgramTest, ARankThatNeverStartsIsNamedWithinTenSeconds) {
  if (MpiIsAbsent()) GTEST_SKIP() << "no MPI here";
  const std::string wrapper = Write(
      "late.sh",
      "#!/bin/sh\nif [ \"$OMPI_COMM_WORLD_RANK\" = 1 ]; then exec sleep 30; fi\nexec \"$@\"\n");
  chmod(wrapper.c_str(), 0755);
  const auto start = std::chrono::steady_clock::now();
  const Outcome outcome = Mpirun(2, "execute " + Shipped("cpu-megatron"), wrapper);
  EXPECT_NE(outcome.code, 0);
  EXPECT_THAT(outcome.err, HasSubstr("local rank 1 of 2 has not started"));
  EXPECT_LT(SecondsSince(start), 20);
}

TEST_F(ExecuteProgramTest, WhenARankIsKilledTheOthersNameItAndItsOpAndKeepTheirLogs) {
  if (MpiIsAbsent()) GTEST_SKIP() << "no MPI here";
  // Rank 1 prints its process id, runs on and on, and is killed when its log has a step.
  const std::string wrapper =
      Write("pid.sh",
            "#!/bin/sh\n[ \"$OMPI_COMM_WORLD_RANK\" != 1 ] || echo $$ > victim.pid\nexec \"$@\"\n");
  chmod(wrapper.c_str(), 0755);
  std::thread killer([&] {
    const auto log = folder_ / "result/rank-1.jsonl";
    for (int i = 0; i < 3000 && ReadFile(log).find("\"step\"") == std::string::npos; ++i) {
      std::this_thread::sleep_for(std::chrono::milliseconds(10));
    }
    const std::string pid = ReadFile(folder_ / "victim.pid");
    if (!pid.empty()) kill(std::stoi(pid), SIGKILL);
  });
  const Outcome outcome =
      Mpirun(4, "execute " + Shipped("cpu-4d") + " --repeat 100000 --out result", wrapper);
  killer.join();
  EXPECT_NE(outcome.code, 0);
  for (const int rank : {0, 2, 3}) {
    // In an op of its own, or between two steps.
    const std::regex said("rehearse: rank " + std::to_string(rank) +
                          "(, op [^\n]*)?: [^\n]*rank 1 \\(process [0-9]+\\)[^\n]* it was at op ");
    EXPECT_TRUE(std::regex_search(outcome.err, said)) << outcome.err;
    const std::string lines =
        ReadFile(folder_ / ("result/rank-" + std::to_string(rank) + ".jsonl"));
    ASSERT_FALSE(lines.empty());
    EXPECT_EQ(lines.back(), '\n');
    for (size_t begin = 0; begin < lines.size();) {
      const size_t end = lines.find('\n', begin);
      EXPECT_TRUE(Json::accept(lines.substr(begin, end - begin)));
      begin = end + 1;
    }
  }
}

TEST_F(ExecuteProgramTest, MoreRanksThanThereIsRoomForAreAMistake) {
  if (kIsSanitized) GTEST_SKIP() << "a sanitizer takes more addresses than the limit leaves";
  // 512 stacks of 8 MiB are more than 3 GB, and with one arena nothing else takes that much.
  EXPECT_EQ(
      Shell("ulimit -v 3000000; MALLOC_ARENA_MAX=1 \"$rehearse\" execute '" + Shipped("cpu-4d") +
            "' --set cluster=local-cpu:ranks=512 --set strategy.data=128 --set "
            "training.batch=1024 > out.txt 2> err.txt"),
      1);
  EXPECT_THAT(ReadFile(folder_ / "err.txt"),
              HasSubstr("no room for 512 threads, one for each rank"));
}

// OpenBLAS asks for addresses again and again, forever, where there are none left.
TEST_F(ExecuteProgramTest, WhereAddressesAreLimitedACalibrationEnds) {
  if (kIsSanitized) GTEST_SKIP() << "a sanitizer takes more addresses than the limit leaves";
  const int code = Shell(
      "ulimit -v 819200; export OPENBLAS_NUM_THREADS=1; timeout 50 \"$rehearse\" calibrate --ranks "
      "2 --kept 1 --patience "
      "0.02 --networks 1 --largest 1 > out.txt 2> err.txt");
  EXPECT_THAT(code, ::testing::AnyOf(0, 1)) << ReadFile(folder_ / "err.txt");
}

// jemalloc crashes where a thread finds no room for its arena.
TEST_F(ExecuteProgramTest, WhereAddressesAreFewItEndsInOneLine) {
  if (kIsSanitized) GTEST_SKIP() << "a sanitizer takes more addresses than the limit leaves";
  for (const int kilobytes : {220'000, 240'000, 256'000}) {
    EXPECT_EQ(Shell("ulimit -v " + std::to_string(kilobytes) +
                    "; OPENBLAS_NUM_THREADS=1 \"$rehearse\" execute '" + Shipped("cpu-4d") +
                    "' > out.txt 2> err.txt"),
              1);
    const std::string said = ReadFile(folder_ / "err.txt");
    EXPECT_THAT(said, ::testing::ContainsRegex("out of memory|no room|cannot allocate"));
    EXPECT_EQ(std::count(said.begin(), said.end(), '\n'), 1) << said;
  }
}

// A stopped process exists but does not answer; it is not continued before it is killed.
TEST_F(ExecuteProgramTest, WhenARankIsStoppedTheOthersNameItAndItsOpWithinTenSeconds) {
  if (MpiIsAbsent()) GTEST_SKIP() << "no MPI here";
  const std::string wrapper =
      Write("pid.sh",
            "#!/bin/sh\n[ \"$OMPI_COMM_WORLD_RANK\" != 1 ] || echo $$ > victim.pid\nexec \"$@\"\n");
  chmod(wrapper.c_str(), 0755);
  std::chrono::steady_clock::time_point stopped;
  std::thread stopper([&] {
    const auto log = folder_ / "result/rank-1.jsonl";
    for (int i = 0; i < 3000 && ReadFile(log).find("\"step\"") == std::string::npos; ++i) {
      std::this_thread::sleep_for(std::chrono::milliseconds(10));
    }
    const std::string pid = ReadFile(folder_ / "victim.pid");
    if (!pid.empty()) kill(std::stoi(pid), SIGSTOP);
    stopped = std::chrono::steady_clock::now();
  });
  const Outcome outcome =
      Mpirun(2, "execute " + Shipped("cpu-megatron") + " --repeat 100000 --out result", wrapper);
  stopper.join();
  EXPECT_EQ(outcome.code, 1);
  const std::regex said(
      "rehearse: rank 0(, op [^\n]*)?: [^\n]*rank 1 \\(process [0-9]+\\) has given no sign of life "
      "for 5 s: it is stopped; it was at op ");
  EXPECT_TRUE(std::regex_search(outcome.err, said)) << outcome.err;
  EXPECT_LT(SecondsSince(stopped), 15);  // and mpirun has killed it
}

// What disturbs one of two processes is found in what they measured: slower arithmetic of its
// products, a core that it shares, and stops. On a machine that does nothing else, since other
// programs disturb both: REHEARSE_DISTURBED=1.
TEST_F(ExecuteProgramTest, ADisturbedRankIsFoundInItsTimeline) {
  if (MpiIsAbsent() || std::getenv("REHEARSE_DISTURBED") == nullptr)
    GTEST_SKIP() << "needs mpirun, and a machine to itself";
  Write("slow.sh",
        "#!/bin/bash\n"
        "[ \"$OMPI_COMM_WORLD_RANK\" != 1 ] || export OPENBLAS_CORETYPE=Prescott\n"
        "exec \"$@\"\n");
  Write("shared.sh",
        "#!/bin/bash\n"
        "[ \"$OMPI_COMM_WORLD_RANK\" = 1 ] || exec \"$@\"\n"
        "core=$(taskset -cp $$ | sed 's/.*: //; s/[-,].*//')\n"
        "for i in 1 2 3; do timeout 60 taskset -c $core sh -c 'while :; do :; done' & done\n"
        "taskset -c $core \"$@\"\n"
        "code=$?\n"
        "kill $(jobs -p)\n"
        "exit $code\n");
  Write("stopped.sh",
        "#!/bin/bash\n"
        "[ \"$OMPI_COMM_WORLD_RANK\" = 1 ] || exec \"$@\"\n"
        "\"$@\" &\n"
        "rank=$!\n"
        "(while kill -0 $rank; do sleep 0.04; kill -STOP $rank; sleep 0.08; kill -CONT $rank; done "
        "2> /dev/null) &\n"
        "wait $rank\n");
  for (const char* name : {"slow", "shared", "stopped"}) {
    const std::string script = std::string(name) + ".sh";
    ASSERT_EQ(chmod((folder_ / script).c_str(), S_IRWXU), 0);
    const Outcome outcome = Mpirun(
        2, "execute " + Shipped("cpu-data-parallel") + " --warmup 1 --repeat 9 --out " + name,
        "./" + script);
    ASSERT_EQ(outcome.code, 0) << outcome.err;
    const Outcome found = Execute(std::string("diagnose ") + name + " --format json");
    ASSERT_EQ(found.code, 0) << found.err;
    const Json view = Json::parse(found.out);
    bool is_found = false;
    for (const Json& sign : view["signs"]) {
      const std::string what = sign["what"];
      is_found = is_found || (what.starts_with("rank 1 ") &&
                              (sign["sign"] == "straggler" || sign["sign"] == "interrupted"));
    }
    EXPECT_TRUE(is_found) << name << "\n" << found.out;
  }
}

}  // namespace execute_test
}  // namespace rehearse

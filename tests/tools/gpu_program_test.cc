// Commands on GPUs as their user meets them, on fake ones (tests/doubles): ranks as threads, and as
// processes of torchrun, srun and mpirun.
#include <chrono>
#include <set>

#include <fmt/format.h>
#include <nlohmann/json.hpp>

#include "real/cuda/kernel_image.h"
#include "tests/support/gpu_double.h"
#include "tests/support/places.h"
#include "tests/support/sanitizers.h"
#include "tests/tools/program_fixture.h"

namespace rehearse {
namespace gpu_program_test {

using ::testing::HasSubstr;
using Json = nlohmann::json;

class GpuProgramTest : public ProgramTest {
 protected:
  void SetUp() override {
    if (KernelImageName().empty()) GTEST_SKIP() << "built without GPU kernels";
    gpu_double::OpenGpuDouble();  // for the programs that are started too
    setenv("REHEARSE_DOUBLE_PROCESSES", "1", 1);
  }

  // A shell's work in the folder; `program` in it is the rehearse binary.
  Outcome Shell(const std::string& script) const {
    Write("script.sh", "program='" + ProgramPath() + "'\n" + script + "\n");
    const std::string command = "cd '" + folder_.string() +
                                "' && timeout 280 sh script.sh > out.txt 2> err.txt < /dev/null";
    const int status = std::system(command.c_str());
    return {WIFEXITED(status) ? WEXITSTATUS(status) : -1, ReadFile(folder_ / "out.txt"),
            ReadFile(folder_ / "err.txt")};
  }
  // `variables` names them with $rank and $ranks, `each` runs before the program of a rank.
  Outcome Processes(int ranks, const std::string& variables, const std::string& arguments,
                    const std::string& each = ":") const {
    const int port = 20000 + 8 * (getpid() % 1500);  // below those that Linux gives to connections
    return Shell(
        fmt::format("export MASTER_ADDR=127.0.0.1 MASTER_PORT={}\n"
                    "ranks={}; rank=0; processes=\n"
                    "while [ $rank -lt $ranks ]; do\n"
                    "  ( export {}; {}; exec \"$program\" {} ) & processes=\"$processes $!\"\n"
                    "  rank=$((rank + 1))\n"
                    "done\n"
                    "worst=0\n"
                    "for process in $processes; do wait $process || worst=$?; done\n"
                    "exit $worst",
                    port, ranks, variables, each, arguments));
  }

  static double SecondsSince(std::chrono::steady_clock::time_point start) {
    return std::chrono::duration<double>(std::chrono::steady_clock::now() - start).count();
  }
  static size_t Occurrences(const std::string& text, const std::string& part) {
    size_t count = 0;
    for (size_t at = text.find(part); at != std::string::npos; at = text.find(part, at + 1))
      ++count;
    return count;
  }

  static constexpr const char* kTorchrun =
      "RANK=$rank WORLD_SIZE=$ranks LOCAL_RANK=$rank LOCAL_WORLD_SIZE=$ranks "
      "TORCHELASTIC_RUN_ID=test";
  static constexpr const char* kSrun =
      "SLURM_PROCID=$rank SLURM_NTASKS=$ranks SLURM_LOCALID=$rank "
      "SLURM_STEP_TASKS_PER_NODE=$ranks SLURM_JOB_ID=1 SLURM_STEP_ID=0";
};

TEST_F(GpuProgramTest, ThreadsOnAGpuEachPassTheCheckAndSayWhatTimingCosts) {
  const Outcome outcome = Execute("execute " + Shipped("cpu-4d") +
                                  " --backend cuda --check --repeat 2 --warmup 1 --format json");
  ASSERT_EQ(outcome.code, 0) << outcome.err;
  const Json json = Json::parse(outcome.out);
  EXPECT_EQ(json["backend"], "cuda");
  EXPECT_EQ(json["collectives"], "nccl");
  EXPECT_EQ(json["check"]["passed"], true);
  EXPECT_EQ(json["gpu"]["device"]["name"], "Pretended GPU");
  EXPECT_EQ(json["representative"], true);
  EXPECT_GT(json["timing"]["untimed_step_seconds"].get<double>(), 0);
  EXPECT_TRUE(json["timing"].contains("cost"));
}

TEST_F(GpuProgramTest, WhatNcclChoseIsInTheResultTheTimelineAndTheComparison) {
  const Outcome outcome = Execute("execute " + Shipped("cpu-megatron") +
                                  " --backend cuda --repeat 1 --warmup 0 --out out");
  ASSERT_EQ(outcome.code, 0) << outcome.err;
  EXPECT_THAT(outcome.out, HasSubstr("tree, protocol ll, 1 channel"));
  const Json execution = Json::parse(ReadFile(folder_ / "out/execution.json"));
  EXPECT_EQ(execution["gpu"]["nccl_profiler"]["interface"], 5);  // of NCCL 2.28
  std::set<std::string> algorithms;
  for (const Json& chosen : execution["result"]["collectives"])
    algorithms.insert(chosen["algorithm"].get<std::string>());
  EXPECT_EQ(algorithms, (std::set<std::string>{"ring", "tree"}));
  const Json timeline = Json::parse(ReadFile(folder_ / "out/timeline.json"));
  for (const Json& op : timeline["roles"][0]["ops"]) {
    const bool is_told = op["axis"] != "";
    EXPECT_EQ(op.contains("algorithm"), is_told) << op;
    EXPECT_EQ(op.contains("channels"), is_told) << op;
  }
  // Our model of NCCL on a machine with NVLink beside what the fake NCCL took.
  const Outcome simulated = Execute("run " + Shipped("cpu-megatron") +
                                    " --set cluster=atp-ic5:devices=2 "
                                    "--set 'simulator={\"algorithm\": \"auto\"}' --out simulated");
  ASSERT_EQ(simulated.code, 0) << simulated.err;
  EXPECT_EQ(Execute("compare out/timeline.json out/timeline.json").code, 0);
  const Outcome compared =
      Execute("compare simulated/result.json out/execution.json --format json");
  ASSERT_EQ(compared.code, 0) << compared.err;
  const Json choices = Json::parse(compared.out)["collectives"];
  ASSERT_FALSE(choices.empty());
  for (const Json& choice : choices) {
    EXPECT_EQ(choice["a"].size(), 1u);
    EXPECT_EQ(choice["b"].size(), 1u);
    EXPECT_EQ(choice["same"], choice["a"] == choice["b"]);
  }
}

TEST_F(GpuProgramTest, AStepIsAlsoLaunchedAsAGraphThatIsCheckedAndTimed) {
  const Outcome outcome =
      Execute("execute " + Shipped("cpu-4d") +
              " --backend cuda --cuda-graph --check --repeat 2 --warmup 0 --format json");
  ASSERT_EQ(outcome.code, 0) << outcome.err;
  const Json json = Json::parse(outcome.out);
  EXPECT_EQ(json["check"]["passed"], true);
  EXPECT_GT(json["cuda_graph"]["step_seconds"].get<double>(), 0);
  EXPECT_EQ(json["cuda_graph"]["step_seconds_without"], json["timing"]["untimed_step_seconds"]);
  EXPECT_EQ(json["repeat_seconds"].size(), 2u);  // those of the graph are not among them
  ExpectMistake("execute " + Shipped("cpu-4d") + " --cuda-graph",
                {"--cuda-graph is for --backend cuda"});
}

TEST_F(GpuProgramTest, AProfilerOfTheUsersIsLeftAloneAndSaid) {
  const std::string arguments =
      "execute " + Shipped("cpu-megatron") + " --backend cuda --repeat 1 --warmup 0 --format json";
  const auto expect_none = [&](const char* reason) {
    const Outcome outcome = Execute(arguments);
    ASSERT_EQ(outcome.code, 0) << outcome.err;
    const Json json = Json::parse(outcome.out);
    EXPECT_EQ(json["gpu"]["nccl_profiler"]["interface"], 0);
    EXPECT_EQ(json["gpu"]["nccl_profiler"]["why_not"], reason);
    EXPECT_THAT(json["notes"].dump(), HasSubstr("how NCCL ran the collectives is not known"));
    EXPECT_FALSE(json["result"].contains("collectives"));
  };
  setenv("NCCL_PROFILER_PLUGIN", "/opt/inspector.so", 1);
  expect_none("NCCL_PROFILER_PLUGIN is \"/opt/inspector.so\"");
  unsetenv("NCCL_PROFILER_PLUGIN");
  setenv("REHEARSE_DOUBLE_NCCL_VERSION", "22105", 1);
  expect_none("NCCL 2.21.5 has no profiler interface; 2.23 was the first");
  unsetenv("REHEARSE_DOUBLE_NCCL_VERSION");
}

TEST_F(GpuProgramTest, ProcessesOfTorchrunAndSrunMeetByNccl) {
  for (const char* variables : {kTorchrun, kSrun}) {
    const Outcome outcome =
        Processes(4, variables,
                  "execute " + Shipped("cpu-4d") +
                      " --backend cuda --check --repeat 1 --warmup 0 --format json");
    ASSERT_EQ(outcome.code, 0) << outcome.err;
    const Json json = Json::parse(outcome.out);
    EXPECT_EQ(json["transport"], "tcp");
    EXPECT_EQ(json["check"]["passed"], true);
  }
}

TEST_F(GpuProgramTest, ProcessesOfMpirunMeetByNccl) {
  if (MpiIsAbsent()) GTEST_SKIP() << "no MPI here";
  const Outcome outcome = Shell(kMpirun + " -n 2 \"$program\" execute " + Shipped("cpu-megatron") +
                                " --backend cuda --check --repeat 1 --warmup 0 --format json");
  ASSERT_EQ(outcome.code, 0) << outcome.err;
  const Json json = Json::parse(outcome.out);
  EXPECT_EQ(json["transport"], "mpi");
  EXPECT_EQ(json["check"]["passed"], true);
}

TEST_F(GpuProgramTest, DifferentNcclVersionsEndAllRanks) {
  const Outcome outcome =
      Processes(2, kTorchrun, "execute " + Shipped("cpu-megatron") + " --backend cuda",
                "[ $rank = 0 ] || export REHEARSE_DOUBLE_NCCL_VERSION=22703");
  EXPECT_EQ(outcome.code, 1);
  EXPECT_THAT(outcome.err, HasSubstr("rank 1 has NCCL 2.27.3"));
  EXPECT_THAT(outcome.err, HasSubstr("rank 0 has 2.28.9"));
}

TEST_F(GpuProgramTest, ARankThatFailsOnItsGpuEndsTheOthers) {
  const auto start = std::chrono::steady_clock::now();
  const Outcome outcome =
      Processes(4, kTorchrun, "execute " + Shipped("cpu-4d") + " --backend cuda",
                "[ $rank != 2 ] || export REHEARSE_DOUBLE_FAIL=ncclReduceScatter");
  const std::chrono::duration<double> took = std::chrono::steady_clock::now() - start;
  EXPECT_EQ(outcome.code, 1);
  EXPECT_THAT(outcome.err, HasSubstr("rank 2, op "));
  EXPECT_THAT(outcome.err, HasSubstr("ncclReduceScatter failed"));
  EXPECT_LT(took.count(), 60);  // before any stall would have been noticed
}

// A rank that never starts. The others say so, and end, within the time that they are told to wait.
TEST_F(GpuProgramTest, ARankThatNeverStartsIsNamedByAllOthers) {
  setenv("REHEARSE_PATIENCE", "1.5", 1);
  for (const char* variables : {kTorchrun, kSrun}) {
    const auto start = std::chrono::steady_clock::now();
    const Outcome outcome =
        Processes(4, variables, "execute " + Shipped("cpu-4d") + " --backend cuda",
                  "[ $rank != 2 ] || exec sleep 3");
    EXPECT_EQ(outcome.code, 1);
    EXPECT_EQ(Occurrences(outcome.err, "rank 2 did not come within 1.5 s"), 3u) << outcome.err;
    EXPECT_LT(SecondsSince(start), 15);
  }
  const Outcome outcome =
      Processes(4, kTorchrun, "execute " + Shipped("cpu-4d") + " --backend cuda",
                "[ $rank != 0 ] || exec sleep 3");
  EXPECT_EQ(outcome.code, 1);
  EXPECT_EQ(Occurrences(outcome.err, "rank 0 does not answer"), 3u) << outcome.err;
  unsetenv("REHEARSE_PATIENCE");
}

TEST_F(GpuProgramTest, ARankThatNeverStartsUnderMpirunIsNamed) {
  if (MpiIsAbsent()) GTEST_SKIP() << "no MPI here";
  const auto start = std::chrono::steady_clock::now();
  const Outcome outcome = Shell(
      "cat > late.sh <<'END'\n#!/bin/sh\n[ \"$OMPI_COMM_WORLD_RANK\" != 1 ] || exec sleep 30\n"
      "exec \"$@\"\nEND\nchmod +x late.sh\n" +
      kMpirun + " -n 2 ./late.sh \"$program\" execute " + Shipped("cpu-megatron") +
      " --backend cuda");
  EXPECT_NE(outcome.code, 0);
  EXPECT_THAT(outcome.err, HasSubstr("local rank 1 of 2 has not started"));
  EXPECT_LT(SecondsSince(start), 25);
}

// Killed between two steps or during one: rank 0, where the others' connections end, or another.
TEST_F(GpuProgramTest, ARankThatDiesOnTheWayIsNamedByAllOthers) {
  for (const int victim : {0, 2}) {
    const auto start = std::chrono::steady_clock::now();
    const Outcome outcome = Processes(
        4, kTorchrun, "execute " + Shipped("cpu-4d") + " --backend cuda --repeat 100000 --out out",
        fmt::format(
            "[ $rank != {} ] || {{ sh -c 'echo $PPID' > pid; (looks=0; until [ $looks = 300 ] || "
            "grep -q '\"step\"' out/rank-{}.jsonl; do sleep 0.1; looks=$((looks + 1)); done; "
            "kill -9 $(cat pid)) 2> /dev/null & }}",
            victim, victim));
    EXPECT_NE(outcome.code, 0);
    const std::string lost = fmt::format("rank {} is lost", victim);
    EXPECT_EQ(Occurrences(outcome.err, lost), 3u) << outcome.err;
    EXPECT_LT(SecondsSince(start), 60);
    std::filesystem::remove_all(folder_ / "out");
  }
}

// Stopped, a rank keeps its connection; it is killed when the others should have gone.
TEST_F(GpuProgramTest, ARankThatIsStoppedIsNamedByAllOthersWithinTenSeconds) {
  for (const int victim : {0, 2}) {
    const auto start = std::chrono::steady_clock::now();
    const Outcome outcome = Processes(
        4, kTorchrun, "execute " + Shipped("cpu-4d") + " --backend cuda --repeat 100000 --out out",
        fmt::format(
            "[ $rank != {} ] || {{ sh -c 'echo $PPID' > pid; (looks=0; until [ $looks = 300 ] || "
            "grep -q '\"step\"' out/rank-{}.jsonl; do sleep 0.1; looks=$((looks + 1)); done; "
            "kill -STOP $(cat pid); sleep 10; kill -9 $(cat pid)) 2> /dev/null & }}",
            victim, victim));
    EXPECT_NE(outcome.code, 0);
    const std::string silent = fmt::format("rank {} has given no sign of life for 5 s", victim);
    EXPECT_EQ(Occurrences(outcome.err, silent), 3u) << outcome.err;
    EXPECT_LT(SecondsSince(start), 60);
    std::filesystem::remove_all(folder_ / "out");
  }
}

// NCCL's communicators are made in calls that do not return if a rank is gone.
TEST_F(GpuProgramTest, ARankThatFailsWhileOthersWaitInNcclEndsThem) {
  const auto start = std::chrono::steady_clock::now();
  const Outcome outcome =
      Processes(4, kTorchrun, "execute " + Shipped("cpu-4d") + " --backend cuda",
                "[ $rank != 1 ] || export REHEARSE_DOUBLE_FAIL=ncclCommInitRank");
  EXPECT_EQ(outcome.code, 1);
  EXPECT_EQ(Occurrences(outcome.err, "rank 1 gave up: ncclCommInitRank failed"), 3u) << outcome.err;
  EXPECT_LT(SecondsSince(start), 25);  // the fake NCCL would wait for 30 s
}

TEST_F(GpuProgramTest, WhatIsMissingIsSaidInOneLine) {
  const std::string arguments = "execute " + Shipped("cpu-4d") + " --backend cuda";
  setenv("REHEARSE_DOUBLE_DEVICES", "3", 1);
  ExpectMistake(arguments, {"found 3 GPUs, expected at least 4", "CUDA_VISIBLE_DEVICES"});
  ExpectMistake("calibrate --backend cuda --ranks 4", {"found 3 GPUs, expected at least 4"});
  unsetenv("REHEARSE_DOUBLE_DEVICES");
  setenv("REHEARSE_DOUBLE_DRIVER", "0", 1);
  ExpectMistake(arguments, {"no NVIDIA driver"});
  unsetenv("REHEARSE_DOUBLE_DRIVER");
  setenv("REHEARSE_NCCL", "/nowhere/libnccl.so.2", 1);
  ExpectMistake(arguments, {"/nowhere/libnccl.so.2", "collectives between GPUs"});
}

// The kernels are a file beside the program, which only GPU runs read.
TEST_F(GpuProgramTest, AProgramWithoutItsKernelsStillSimulates) {
  std::filesystem::copy_file(ProgramPath(), folder_ / "rehearse");
  const Outcome simulated = Shell("./rehearse run " + Shipped("cpu-4d"));
  EXPECT_EQ(simulated.code, 0) << simulated.err;
  const Outcome executed = Shell("./rehearse execute " + Shipped("cpu-4d") + " --backend cuda");
  EXPECT_EQ(executed.code, 1);
  for (const std::string& part :
       {std::string("no " + std::string(KernelImageName()) + " in " + folder_.string()),
        std::string("build the target rehearse_kernels")}) {
    EXPECT_THAT(executed.err, HasSubstr(part));
  }
}

TEST_F(GpuProgramTest, ARankAloneNeedsNoNccl) {
  setenv("REHEARSE_NCCL", "/nowhere/libnccl.so.2", 1);
  const std::string fsdp =
      "'strategy={\"kind\": \"fsdp\", \"shard\": 1, \"replicas\": 1, \"overlap_gradients\": false, "
      "\"overlap_reduce_scatter\": true, \"prefetch\": 1, \"reshard_after_forward\": true}'";
  const Outcome outcome = Execute(
      "execute " + Shipped("cpu-data-parallel") + " --set cluster=local-cpu:ranks=1 --set " + fsdp +
      " --backend cuda --check --cuda-graph --repeat 1 --warmup 0 --format json");
  ASSERT_EQ(outcome.code, 0) << outcome.err;
  const Json json = Json::parse(outcome.out);
  EXPECT_EQ(json["check"]["passed"], true);
  EXPECT_EQ(json["gpu"]["nccl"], "");
  EXPECT_EQ(json["gpu"]["nccl_profiler"]["why_not"], "there is no NCCL here");
}

TEST_F(GpuProgramTest, ACalibrationIsWrittenAndAScenarioUsesIt) {
  if (kIsSanitized) GTEST_SKIP() << "minutes with sanitizers; its parts are tested by themselves";
  const Outcome outcome = Execute(
      "calibrate --backend cuda --ranks 1,2 --kept 1 --networks 1 --largest 1 "
      "--largest-message 1KiB -o gpu.json");
  ASSERT_EQ(outcome.code, 0) << outcome.err;
  const Json json = Json::parse(ReadFile(folder_ / "gpu.json"));
  EXPECT_EQ(json["schema"], "rehearse.calibration.v1");
  EXPECT_EQ(json["about"]["backend"], "cuda");
  EXPECT_EQ(json["about"]["gpu"]["device"]["name"], "Pretended GPU");
  EXPECT_EQ(json["collectives"][0]["transport"], "nccl");
  EXPECT_TRUE(json["fit"]["overheads"]["copies"].contains("to_device"));
  const std::string scenario = Write("scenario.json",
                                     R"({"name": "on a pretended GPU",
          "cluster": {"preset": "local-cpu", "ranks": 2, "device": "h200", "calibration": "gpu.json"},
          "model": {"name": "small", "layers": 1, "hidden": 256, "heads": 4, "vocabulary": 1024},
          "training": {"batch": 2, "sequence": 128, "recomputation": "none"},
          "strategy": {"kind": "data-parallel", "data": 2, "overlap_gradients": false}})");
  const Outcome simulated = Execute("run " + scenario + " --format json");
  ASSERT_EQ(simulated.code, 0) << simulated.err;
  EXPECT_GT(Json::parse(simulated.out)["step_seconds"].get<double>(), 0);
}

TEST_F(GpuProgramTest, GpuCheckSaysWhatItTakes) {
  const Outcome help = Shell("'" + SourceDir() + "/tools/gpu-check' --help");
  EXPECT_EQ(help.code, 0);
  EXPECT_THAT(help.out, HasSubstr("gpu-check [--small] [--budget SECONDS]"));
  EXPECT_THAT(help.out, ::testing::Not(HasSubstr("pipefail")));
  EXPECT_EQ(Shell("'" + SourceDir() + "/tools/gpu-check' --hlep").code, 1);
}

TEST_F(GpuProgramTest, GpuCheckRunsEverythingInOneFolder) {
  if (kIsSanitized) GTEST_SKIP() << "minutes with sanitizers; its parts are tested by themselves";
  const std::filesystem::path tests =
      std::filesystem::path(ProgramPath()).parent_path() / "tests/test_gpu";
  if (!std::filesystem::exists(tests)) GTEST_SKIP() << "test_gpu is not built";
  setenv("REHEARSE_DOUBLE_DEVICES", "1", 1);
  setenv("GTEST_FILTER", "GpuTest.AStepOfOneRankGivesTheCpusNumbers", 1);
  const Outcome outcome = Shell("'" + SourceDir() + "/tools/gpu-check' --small results $program");
  unsetenv("GTEST_FILTER");
  unsetenv("REHEARSE_DOUBLE_DEVICES");
  EXPECT_EQ(outcome.code, 0) << outcome.out << outcome.err;
  for (const char* line : {"tests ", "numerics-summa", "numerics-experts", "numerics-latent",
                           "compare-experts", "processes-two", "processes-three", "calibration",
                           "compare-predicted", "predicted, measured, error: step"}) {
    EXPECT_THAT(outcome.out, HasSubstr(line));
  }
  EXPECT_THAT(outcome.out, HasSubstr("all passed"));
  EXPECT_EQ(ReadFile(folder_ / "results/summary.txt"), outcome.out);
  for (const char* file : {"results.tar.gz", "results/tests.json", "results/calibration.json",
                           "results/step/timeline.json", "results/predicted/result.json",
                           "results/compare-predicted.log", "results/machine.txt"}) {
    EXPECT_TRUE(std::filesystem::exists(folder_ / file)) << file;
  }
  const Json step = Json::parse(ReadFile(folder_ / "results/step/execution.json"));
  EXPECT_TRUE(step.contains("cuda_graph"));
  // To NCCL, ranks that share a GPU are on different machines; it says how it carried out
  // collectives.
  const Json two = Json::parse(ReadFile(folder_ / "results/processes-two/execution.json"));
  EXPECT_EQ(two["representative"], false);
  EXPECT_EQ(two["check"]["passed"], true);
  EXPECT_FALSE(two["result"]["collectives"].empty());
}

// A failure is reported and skipped; nothing starts when the budget is used up.
TEST_F(GpuProgramTest, GpuCheckKeepsWhatThereIsWhenSomethingFails) {
  if (kIsSanitized) GTEST_SKIP() << "minutes with sanitizers; its parts are tested by themselves";
  setenv("REHEARSE_DOUBLE_DEVICES", "1", 1);
  const Outcome late =
      Shell("'" + SourceDir() + "/tools/gpu-check' --small --budget 0 late $program");
  EXPECT_EQ(late.code, 1);
  EXPECT_THAT(late.out, HasSubstr("skipped: 0 s are used up"));
  EXPECT_TRUE(std::filesystem::exists(folder_ / "late.tar.gz"));
  setenv("REHEARSE_DOUBLE_DRIVER", "0", 1);
  const Outcome without = Shell("'" + SourceDir() + "/tools/gpu-check' --small without $program");
  unsetenv("REHEARSE_DOUBLE_DRIVER");
  unsetenv("REHEARSE_DOUBLE_DEVICES");
  EXPECT_EQ(without.code, 1);
  EXPECT_THAT(without.out, HasSubstr("no NVIDIA driver"));
  EXPECT_TRUE(std::filesystem::exists(folder_ / "without.tar.gz"));
}

TEST_F(GpuProgramTest, OptionsOfOneBackendAreRefusedByTheOther) {
  ExpectMistake("calibrate --share-gpus", {"--share-gpus is for --backend cuda"});
  ExpectMistake("calibrate --backend gpu", {"\"gpu\"", "cpu and cuda"});
  ExpectMistake("calibrate --largest-message 64", {"--largest-message", "\"64\"", "unit"});
}

}  // namespace gpu_program_test
}  // namespace rehearse

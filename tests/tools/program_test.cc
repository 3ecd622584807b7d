// The program as its user meets it: real processes, their output and exit codes.
#include <cstdio>
#include <filesystem>
#include <fstream>
#include <set>
#include <string>

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <nlohmann/json.hpp>

#include "tests/support/places.h"
#include "tests/tools/program_fixture.h"

namespace rehearse {
namespace program_test {

namespace fs = std::filesystem;
using ::testing::AllOf;
using ::testing::EndsWith;
using ::testing::HasSubstr;
using ::testing::Not;
using ::testing::StartsWith;

TEST_F(ProgramTest, EveryShippedScenarioRuns) {
  size_t count = 0;
  for (const auto& entry : fs::directory_iterator(fs::path(SourceDir()) / "scenarios")) {
    if (entry.path().extension() != ".json") continue;
    const Outcome outcome = Execute("run '" + entry.path().string() + "' --format json");
    ASSERT_EQ(outcome.code, 0) << entry.path() << outcome.err;
    const auto result = nlohmann::json::parse(outcome.out);
    EXPECT_EQ(result["scenario"], entry.path().stem().string());
    ++count;
    if (result["schema"] == "rehearse.jobs.v1") {
      for (const auto& job : result["jobs"]) EXPECT_GE(job["slow_down"].get<double>(), 1.0);
      continue;
    }
    const double parts = result["breakdown"]["compute_seconds"].get<double>() +
                         result["breakdown"]["exposed_communication_seconds"].get<double>() +
                         result["breakdown"]["idle_seconds"].get<double>();
    EXPECT_NEAR(parts, result["step_seconds"].get<double>(), 1e-9);
    // 1,024 dies with two images each are busy with communication: 6.3 %.
    const bool is_tiny_share = result["scenario"] == "axonn-unet-4b-frontier";
    EXPECT_GT(result["hardware_flops_utilization"].get<double>(), is_tiny_share ? 0.06 : 0.1);
    EXPECT_LT(result["hardware_flops_utilization"].get<double>(), 1.0);
  }
  EXPECT_GE(count, 12u);
}

TEST_F(ProgramTest, JsonHasTheKeysOfTheDesign) {
  const Outcome outcome = Execute("run '" + Shipped("axonn-gpt20b-perlmutter") + "' --format json");
  ASSERT_EQ(outcome.code, 0) << outcome.err;
  const auto result = nlohmann::ordered_json::parse(outcome.out);
  std::vector<std::string> keys;
  for (const auto& [key, value] : result.items()) keys.push_back(key);
  EXPECT_EQ(keys, (std::vector<std::string>{"schema",
                                            "scenario",
                                            "fidelity",
                                            "left_out",
                                            "ranks",
                                            "step_seconds",
                                            "breakdown",
                                            "communication_seconds",
                                            "overlap_fraction",
                                            "by_axis",
                                            "model_flops_utilization",
                                            "hardware_flops_utilization",
                                            "tokens_per_second",
                                            "memory",
                                            "links",
                                            "collectives",
                                            "typical",
                                            "trust",
                                            "simulator",
                                            "timeline_hash",
                                            "given"}));
  EXPECT_EQ(result["schema"], "rehearse.result.v1");
}

TEST_F(ProgramTest, ExplainTellsThePathTheLinksAndWhatWouldHelp) {
  const Outcome outcome = Execute("explain '" + Shipped("axonn-gpt20b-perlmutter") + "'");
  ASSERT_EQ(outcome.code, 0) << outcome.err;
  EXPECT_THAT(outcome.out, AllOf(HasSubstr("Critical path"), HasSubstr("Slack"),
                                 HasSubstr("Exposed communication"), HasSubstr("Links that held"),
                                 HasSubstr("What would help"), HasSubstr("arithmetic")));
  EXPECT_THAT(outcome.out, Not(HasSubstr("\x1b[")));
}

TEST_F(ProgramTest, ExplainTakesTheOptionsOfRun) {
  const Outcome outcome = Execute("explain '" + Shipped("axonn-gpt20b-perlmutter") +
                                  "' --set model.layers=4 --set strategy.cached_layers=4 "
                                  "--fidelity step --no-fold --format json");
  ASSERT_EQ(outcome.code, 0) << outcome.err;
  const auto explanation = nlohmann::json::parse(outcome.out);
  EXPECT_EQ(explanation["schema"], "rehearse.explanation.v1");
  EXPECT_EQ(explanation["fidelity"], "step");
  EXPECT_FALSE(explanation["links"].empty());
  ExpectMistake("explain", {"no scenario given", "rehearse explain scenarios/"});
  ExpectMistake("explain x.json --row 3", {"unknown option", "--rows"});
}

TEST_F(ProgramTest, TextTellsTheStepTheAxesAndTheBusiestLinks) {
  const Outcome outcome = Execute("run '" + Shipped("axonn-gpt20b-perlmutter") + "'");
  EXPECT_EQ(outcome.code, 0);
  EXPECT_THAT(outcome.out, AllOf(HasSubstr("exposed"), HasSubstr("depth"), HasSubstr("HFU"),
                                 HasSubstr("network"), HasSubstr("Simulated in")));
  EXPECT_THAT(outcome.out, Not(HasSubstr("\x1b[")));  // no colours when not on a terminal
}

TEST_F(ProgramTest, OutWritesResultTraceAndPicture) {
  const Outcome outcome = Execute("run '" + Shipped("axonn-gpt20b-perlmutter") +
                                  "' --out made/here --ranks 0,5 --window 0.1s-0.3s");
  ASSERT_EQ(outcome.code, 0) << outcome.err;
  std::set<std::string> names;
  for (const auto& entry : fs::directory_iterator(folder_ / "made/here")) {
    names.insert(entry.path().filename());
    EXPECT_GT(fs::file_size(entry), 1000u);
  }
  EXPECT_EQ(names, (std::set<std::string>{"result.json", "timeline.json", "timeline.svg",
                                          "trace.pftrace"}));
}

// 1,024 ranks that all do the same, with rings: one of them is written, unless others are asked
// for.
TEST_F(ProgramTest, OutHoldsOneRankOfEachKindUnlessAskedForMore) {
  const std::string run = "run '" + Shipped("axonn-weak-80b") + "' --set simulator.protocol=none ";
  ASSERT_EQ(Execute(run + "--out one").code, 0);
  EXPECT_LT(fs::file_size(folder_ / "one/trace.pftrace"), 1u << 20);
  EXPECT_THAT(ReadFile(folder_ / "one/trace.pftrace"), HasSubstr("(1 of 1,024 ranks)"));
  ASSERT_EQ(Execute(run + "--ranks 5-7 --out four").code, 0);
  const std::string trace = ReadFile(folder_ / "four/trace.pftrace");
  EXPECT_THAT(trace, HasSubstr("(4 of 1,024 ranks)"));
  EXPECT_THAT(trace, HasSubstr("(rank 7)"));
  EXPECT_THAT(Execute("compare one four").out, HasSubstr("order: the same"));
}

TEST_F(ProgramTest, SetChangesTheScenario) {
  const std::string scenario = "run '" + Shipped("axonn-gpt20b-perlmutter") + "' --format json ";
  const auto plain = nlohmann::json::parse(Execute(scenario).out);
  const auto changed =
      nlohmann::json::parse(Execute(scenario + "--set strategy.cached_layers=0").out);
  EXPECT_GT(changed["step_seconds"].get<double>(), plain["step_seconds"].get<double>());
}

// It is one product already; and gathered parameters are kept or not.
TEST_F(ProgramTest, AChangeThatChangesNothingIsSaid) {
  const std::string run = "run '" + Shipped("strategy-fsdp") + "' --set strategy.prefetch=1 ";
  EXPECT_THAT(Execute(run + "--set strategy.reshard_after_forward=false").out,
              AllOf(HasSubstr("--set strategy.prefetch=1 changes nothing about this step"),
                    Not(HasSubstr("reshard_after_forward=false changes nothing"))));
  EXPECT_THAT(Execute(run + "--format json").out, HasSubstr("changes nothing about this step"));
}

TEST_F(ProgramTest, HelpIsThereForTheProgramAndEveryCommand) {
  EXPECT_THAT(Execute("--help").out, HasSubstr("run"));
  EXPECT_EQ(Execute("--help").code, 0);
  for (const std::string command : {"run", "collective", "compare", "topology", "list"}) {
    const Outcome outcome = Execute(command + " --help");
    EXPECT_EQ(outcome.code, 0);
    EXPECT_THAT(outcome.out, AllOf(HasSubstr("usage: rehearse " + command), HasSubstr("--format")));
  }
}

TEST_F(ProgramTest, HelpLeavesRoomForWhatOptionsDo) {
  // Names that take more than 28 columns stand on lines of their own, so that 52 are left.
  const std::string help = Execute("execute --help").out;
  EXPECT_THAT(help, HasSubstr("\n  --streams auto|blocking|threads (=auto)\n" +
                              std::string(28, ' ') + "blocking: "));
  EXPECT_THAT(help, Not(HasSubstr(" \n")));
}

TEST_F(ProgramTest, HelpAndVersionAreFoundWhereOneLooksForThem) {
  EXPECT_EQ(Execute("help run").out, Execute("run --help").out);
  EXPECT_EQ(Execute("--help sweep").out, Execute("sweep --help").out);
  EXPECT_EQ(Execute("run --version").out, Execute("--version").out);
  ExpectMistake("help rnu", {"unknown command \"rnu\"", "did you mean \"run\"?"});
}

TEST_F(ProgramTest, AFileOfAnotherKindIsToldItsCommand) {
  const std::string study = SourceDir() + "/scenarios/studies/atp-fig11.json";
  ExpectMistake("run " + study, {"found a study", "rehearse sweep"});
  ExpectMistake("explain " + study, {"found a study", "rehearse sweep"});
  ExpectMistake("sweep " + Shipped("cpu-4d"), {"found a scenario", "rehearse run"});
  const std::string schedule = SourceDir() + "/scenarios/schedules/two-ranks.json";
  ExpectMistake("sweep " + schedule, {"found a schedule, expected a study", "rehearse run"});
  ASSERT_EQ(Execute("topology switch:devices=4 -o cluster.json").code, 0);
  ExpectMistake("run cluster.json", {"found a cluster, expected a scenario", "\"cluster\""});
  ExpectMistake("topology " + Shipped("cpu-4d"), {"found a scenario, expected a cluster"});
  ExpectMistake("trust cluster.json", {"found a cluster, expected a calibration"});
  ExpectMistake("run " + Shipped("cpu-4d") + " --calibration " + Shipped("cpu-4d"),
                {"found a scenario, expected a calibration"});
  ASSERT_EQ(Execute("run " + Shipped("cpu-4d") + " --out out").code, 0);
  ExpectMistake("run out/timeline.json", {"found a timeline, expected a scenario", "compare"});
  ExpectMistake("search out/result.json", {"found a result, expected a scenario"});
  Write("model.json", R"({"kind": "decoder", "layers": 2, "hidden": 64})");
  ExpectMistake("run model.json", {"found a model, expected a scenario", "\"file\""});
}

TEST_F(ProgramTest, ColoursAreForTerminalsThatKnowThem) {
  // A terminal of its own: util-linux's script.
  if (std::system("command -v script > /dev/null") != 0) GTEST_SKIP() << "no script here";
  const auto is_coloured = [&](const std::string& variables) {
    EXPECT_EQ(Shell("env -u NO_COLOR -u OMPI_COMM_WORLD_RANK -u SLURM_PROCID " + variables +
                    " script -qec \"'$rehearse' run '" + Shipped("cpu-4d") +
                    "'\" log.txt > out.txt 2>&1"),
              0);
    return ReadFile(folder_ / "out.txt").find("\x1b[") != std::string::npos;
  };
  EXPECT_TRUE(is_coloured("TERM=xterm"));
  EXPECT_FALSE(is_coloured("TERM=dumb"));
  EXPECT_FALSE(is_coloured("TERM=xterm NO_COLOR=1"));
  EXPECT_FALSE(is_coloured("TERM=xterm OMPI_COMM_WORLD_RANK=0"));
}

TEST_F(ProgramTest, HelpSaysWhatEachFidelityLeavesOut) {
  for (const std::string command : {"run", "explain", "collective", "compare"}) {
    const std::string help = Execute(command + " --help").out;
    for (const char* fidelity : {"formula", "fluid", "step"}) {
      EXPECT_THAT(help, HasSubstr(std::string("  ") + fidelity + " leaves out"));
    }
  }
}

TEST_F(ProgramTest, ListNamesWhatScenariosCanName) {
  const Outcome outcome = Execute("list");
  EXPECT_EQ(outcome.code, 0);
  for (const char* name :
       {"perlmutter", "dgx-a100", "switch", "a100-40g", "gpt-20b", "4d", "halving-doubling"}) {
    EXPECT_THAT(outcome.out, HasSubstr(name));
  }
  const auto json = nlohmann::json::parse(Execute("list clusters --format json").out);
  EXPECT_GE(json["clusters"].size(), 3u);
  EXPECT_EQ(json["schema"], "rehearse.list.v1");
  for (const auto& cluster : json["clusters"]) EXPECT_NE(cluster["source"], "");
}

TEST_F(ProgramTest, JobsAreToldOneByOneAndOnceTogether) {
  const Outcome outcome =
      Execute("run '" + Shipped("jobs-two-trainings") + "' --format json --out made");
  ASSERT_EQ(outcome.code, 0) << outcome.err;
  const auto result = nlohmann::ordered_json::parse(outcome.out);
  EXPECT_EQ(nlohmann::ordered_json::parse(ReadFile(folder_ / "made/result.json")), result);
  EXPECT_EQ(result["schema"], "rehearse.jobs.v1");
  EXPECT_FALSE(result["links"].empty());
  EXPECT_EQ(result["jobs"].size(), 2u);
  for (const auto& job : result["jobs"]) {
    EXPECT_EQ(job["result"]["schema"], "rehearse.result.v1");
    EXPECT_FALSE(job["result"].contains("links"));
    EXPECT_EQ(job["steps_seconds"].size(), job["repeat"].get<size_t>());
    // The picture has a device of each job, the trace all axes.
    EXPECT_THAT(ReadFile(folder_ / "made/timeline.svg"),
                HasSubstr(job["name"].get<std::string>() + "/"));
    EXPECT_THAT(ReadFile(folder_ / "made/trace.pftrace"),
                HasSubstr(job["name"].get<std::string>() + "/"));
  }
  const Outcome text = Execute("run '" + Shipped("jobs-two-trainings") + "'");
  EXPECT_THAT(text.out, AllOf(HasSubstr("sharing"), HasSubstr("strategy-fsdp"),
                              HasSubstr("Busiest links"), HasSubstr("Simulated in")));
  EXPECT_EQ(Execute("explain '" + Shipped("jobs-two-trainings") + "'").code, 0);
  ExpectMistake("execute '" + Shipped("jobs-two-trainings") + "'", {"lists jobs"});
}

TEST_F(ProgramTest, ASchedulesFileIsTakenWhereAScenarioIs) {
  const std::string schedule = "'" + Shipped("schedules/two-ranks") + "'";
  for (const std::string command : {"run ", "explain "}) {
    const Outcome outcome =
        Execute(command + schedule + " --cluster switch:devices=2 --format json");
    ASSERT_EQ(outcome.code, 0) << outcome.err;
    EXPECT_EQ(nlohmann::json::parse(outcome.out)["scenario"], "two-ranks");
  }
  ExpectMistake("run " + schedule, {"two-ranks.json is a schedule", "--cluster is needed"});
  ExpectMistake("run " + schedule + " --cluster switch:devices=4",
                {"/ranks", "2 ranks", "4 devices", "jobs"});
  ExpectMistake("run '" + Shipped("cpu-4d") + "' --cluster switch:devices=4", {"--set cluster="});
  const Outcome executed = Execute("execute " + schedule + " --cluster local-cpu:ranks=2");
  EXPECT_EQ(executed.code, 0) << executed.err;
  EXPECT_NE(executed.out.find("ops of a fixed duration are executed by waiting"),
            std::string::npos);
}

// ---- mistakes -----------------------------------------------------------------------------------

TEST_F(ProgramTest, WhatRunRefusesExecuteRefusesToo) {
  for (const std::string change :
       {"simulator.algorithm=bruck",
        "simulator.collectives='[{\"axis\": \"x\", \"protocol\": \"ll\"}]'",
        "model.hidden=49152"}) {
    const std::string rest = " '" + Shipped("cpu-4d") + "' --set " + change;
    const Outcome run = Execute("run" + rest);
    EXPECT_EQ(run.code, 1);
    EXPECT_EQ(Execute("execute" + rest).err, run.err);
  }
}

TEST_F(ProgramTest, MistakesOnTheCommandLine) {
  ExpectMistake("rum x", {"unknown command \"rum\"", "run"});
  ExpectMistake("run x --formt json", {"--formt", "--format"});
  ExpectMistake("run x --form json", {"--form"});  // no abbreviations
  ExpectMistake("run", {"no scenario"});
  ExpectMistake("run a b", {"found \"b\", an argument too many", "usage: rehearse run"});
  ExpectMistake("search x --method", {"--method: found nothing, expected exhaustive|random"});
  ExpectMistake("collective all-reduce -b", {"--minbytes: found nothing, expected SIZE"});
  ExpectMistake("collective all-reduce --cluster dgx-a100 --groups 3",
                {"--groups: found 3, expected a number that divides the 8 ranks"});
  ExpectMistake("run '" + Shipped("axonn-weak-5b") + "' --format yaml", {"yaml", "json"});
  ExpectMistake("run '" + Shipped("axonn-weak-5b") + "' --ranks 64", {"--ranks", "63"});
  ExpectMistake("run '" + Shipped("axonn-weak-5b") + "' --window 5", {"--window"});
  ExpectMistake("run '" + Shipped("cpu-4d") + "' --window 300-420 --out o",
                {"--window: found \"300\""});
  ExpectMistake("run '" + Shipped("cpu-4d") + "' --ranks 1", {"--ranks", "--out"});
  // A rank of GPT-20B keeps 32 GiB on a GPU, and 16 of them would run here.
  ExpectMistake("execute '" + Shipped("axonn-gpt20b-perlmutter") + "'",
                {"out of memory", "16 ranks", "rehearse run"});
  ExpectMistake("run '" + Shipped("axonn-weak-5b") + "' --fidelity exact", {"exact", "fluid"});
  ExpectMistake("list clutsers", {"clutsers", "clusters"});
}

TEST_F(ProgramTest, AMissingFile) { ExpectMistake("run nowhere.json", {"nowhere.json"}); }

// Names of files come with scenarios, which others may have written: the contents of a file that is
// not ours are not shown.
TEST_F(ProgramTest, AFileThatIsNoneOfOursIsNotShown) {
  const std::string scenario = "run " + Shipped("strategy-fsdp");
  const std::string secrets =
      "'" + Write("secrets", "password: hush, hush\n" + std::string(500, 'x')) + "'";
  for (const std::string& file : {std::string("/proc/self/environ"), secrets}) {
    for (const std::string& command : {scenario + " --set cluster=" + file,
                                       scenario + " --set calibration=" + file,
                                       scenario + " --set device_points=" + file,
                                       scenario + " --set model.file=" + file,
                                       scenario + " --set costs=" + file,
                                       "run " + file,
                                       "sweep " + file,
                                       "validate " + file,
                                       "compare " + file,
                                       "topology --cluster " + file,
                                       "import nccl " + file,
                                       "import smi " + file,
                                       "import lstopo " + file,
                                       "import slurm " + file,
                                       "import ibnetdiscover " + file,
                                       "import infragraph " + file,
                                       "import hf " + file,
                                       "import megatron " + file + " --cluster dgx-h100",
                                       "import torchtitan " + file + " --cluster dgx-h100",
                                       "import axolotl " + file + " --cluster dgx-h100",
                                       "import torchtune " + file + " --cluster dgx-h100",
                                       "import accelerate " + file,
                                       "import deepspeed " + file,
                                       "import nemo " + file,
                                       "import philly " + file,
                                       "import pai " + file,
                                       "import openb " + file,
                                       "import helios " + file,
                                       "import acme " + file}) {
      const std::string told = "SECRET=hush " + command;
      const std::string line = "SECRET=hush $rehearse " + command + " > out.txt 2> err.txt";
      EXPECT_EQ(Shell(line), 1) << told;
      const std::string message = ReadFile(folder_ / "err.txt");
      EXPECT_EQ(message.find("hush"), std::string::npos) << told << ": " << message;
      EXPECT_EQ(message.find("PATH="), std::string::npos) << told << ": " << message;
      EXPECT_LT(message.size(), 400u) << told << ": " << message;
    }
  }
}

TEST_F(ProgramTest, ATruncatedFile) {
  const std::string whole = ReadFile(Shipped("axonn-weak-5b"));
  const std::string path = Write("half.json", whole.substr(0, whole.size() / 2));
  ExpectMistake("run half.json", {"half.json:"});
}

TEST_F(ProgramTest, AHugeFileOfBrackets) {
  {
    std::ofstream file(folder_ / "brackets.json");
    const std::string brackets(1 << 20, '[');
    for (int i = 0; i < 200; ++i) file << brackets;
  }
  ExpectMistake("run brackets.json", {"brackets.json"});
  Write("deep.json", std::string(1 << 20, '['));
  ExpectMistake("run deep.json", {"deep.json", "deep"});
}

TEST_F(ProgramTest, AClusterFileWithAMissingUnit) {
  Write("cluster.json",
        R"({"name": "two", "device": "a100-40g",
            "vertices": [{"name": "g0", "kind": "device"}, {"name": "g1", "kind": "device"}],
            "links": [{"between": ["g0", "g1"], "kind": "nvlink", "bandwidth": 300, "latency": "1us"}],
            "step_overhead": "0us"})");
  ExpectMistake("run '" + Shipped("axonn-weak-5b") + "' --set cluster=./cluster.json",
                {"cluster.json:3", "/links/0/bandwidth", "300", "GBps"});
}

TEST_F(ProgramTest, AClusterFileWithANegativeBandwidth) {
  Write("cluster.json",
        R"({"name": "two", "device": "a100-40g",
            "vertices": [{"name": "g0", "kind": "device"}, {"name": "g1", "kind": "device"}],
            "links": [{"between": ["g0", "g1"], "kind": "nvlink", "bandwidth": "-3GBps", "latency": "1us"}],
            "step_overhead": "0us"})");
  ExpectMistake("run '" + Shipped("axonn-weak-5b") + "' --set cluster=./cluster.json",
                {"/links/0/bandwidth", "-3GBps"});
}

TEST_F(ProgramTest, ADisconnectedCluster) {
  Write("cluster.json",
        R"({"name": "two", "device": "a100-40g",
            "vertices": [{"name": "g0", "kind": "device"}, {"name": "g1", "kind": "device"}],
            "links": [], "step_overhead": "0us"})");
  ExpectMistake("run '" + Shipped("axonn-weak-5b") + "' --set cluster=./cluster.json",
                {"g0", "g1"});
}

TEST_F(ProgramTest, NothingHalfWrittenIsLeftWhenTheFolderCannotBeMade) {
  Write("file", "in the way");
  ExpectMistake("run '" + Shipped("axonn-weak-5b") + "' --out file/sub", {"file/sub"});
  EXPECT_EQ(ReadFile(folder_ / "file"), "in the way");
}

// ---- Streams, signals and files that are not as they should be ---------------------------------

TEST_F(ProgramTest, AMistakeThatCannotBeSaidIsAMistakeAllTheSame) {
  for (const char* where : {"/dev/full", "&-"}) {
    EXPECT_EQ(Shell("\"$rehearse\" run nothing.json 2>" + std::string(where)), 1) << where;
    EXPECT_EQ(Shell("\"$rehearse\" 2>" + std::string(where) + " >/dev/null"), 1) << where;
  }
}

TEST_F(ProgramTest, AResultThatCannotBePrintedIsAnError) {
  const std::string run = "\"$rehearse\" run '" + Shipped("cpu-4d") + "'";
  for (const std::string& command : {run, run + " --help", std::string("\"$rehearse\" --help")}) {
    for (const char* where : {"/dev/full", "&-"}) {
      EXPECT_EQ(Shell(command + " 2>err.txt >" + where), 1) << command << where;
      EXPECT_EQ(ReadFile(folder_ / "err.txt"), "rehearse: cannot write to standard output\n");
    }
  }
  // None of it goes into a file that takes the stream's place.
  EXPECT_EQ(Shell(run + " --out made 2>err.txt >&-"), 1);
  EXPECT_EQ(nlohmann::json::parse(ReadFile(folder_ / "made/result.json"))["scenario"], "cpu-4d");
}

TEST_F(ProgramTest, SignalsEndItWithALineAndLeaveNoTemporaryFile) {
  std::string seeds = "0";  // some 10 ms each
  for (int seed = 1; seed < 5000; ++seed) seeds += ", " + std::to_string(seed);
  Write("study.json",
        R"({"name": "long", "metric": "step_seconds", "base": ")" + Shipped("axonn-weak-80b") +
            R"(", "grid": [{"path": "simulator.routing_seed", "values": [)" + seeds + "]}]}");
  const auto end_by = [&](const std::string& signal) {
    // A shell has what it runs in the background ignore SIGINT.
    const int code = Shell(
        "rm -rf kept; env --default-signal=INT \"$rehearse\" sweep study.json --out kept "
        "--again > out.txt 2> err.txt & until [ -n \"$(ls kept 2> /dev/null)\" ]; "
        "do sleep 0.05; done; sleep 0.2; kill -s " +
        signal + " $!; wait $!");
    for (const auto& entry : fs::directory_iterator(folder_ / "kept"))
      EXPECT_EQ(entry.path().extension(), ".json") << entry.path();
    return code;
  };
  EXPECT_EQ(end_by("TERM"), 143);
  const std::string kept =
      " of 5000 points are kept in kept; the same command without --again "
      "goes on from there\n";
  EXPECT_THAT(ReadFile(folder_ / "err.txt"),
              AllOf(StartsWith("rehearse: ended by SIGTERM: "), EndsWith(kept)));
  EXPECT_EQ(end_by("INT"), 130);
  EXPECT_THAT(ReadFile(folder_ / "err.txt"),
              AllOf(StartsWith("rehearse: interrupted: "), EndsWith(kept)));
}

TEST_F(ProgramTest, AnOutputThatCannotBeIsSaid) {
  ExpectMistake("run '" + Shipped("cpu-4d") + "' --out ''", {"--out: found \"\""});
  ExpectMistake("execute '" + Shipped("cpu-4d") + "' --out ''", {"--out: found \"\""});
  ASSERT_EQ(Shell("mkfifo pipe"), 0);
  ExpectMistake("plan '" + Shipped("cpu-4d") + "' -o pipe",
                {"cannot write pipe: nobody reads this pipe"});
}

}  // namespace program_test
}  // namespace rehearse

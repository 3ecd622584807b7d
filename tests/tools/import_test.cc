// rehearse import, as its user meets it.
#include <algorithm>
#include <array>
#include <filesystem>
#include <sstream>
#include <string>
#include <utility>
#include <vector>

#include <nlohmann/json.hpp>

#include "tests/foreign/machines/fabric_files.h"
#include "tests/foreign/machines/hwloc_xml.h"
#include "tests/foreign/machines/infragraph_files.h"
#include "tests/tools/program_fixture.h"
#include "tools/foreign/machines/infragraph/yaml_text.h"
#include "tools/foreign/runs/torchtitan/toml_text.h"

namespace rehearse {
namespace import_test {

using ::testing::AllOf;
using ::testing::HasSubstr;
using ::testing::StartsWith;

class ImportTest : public ProgramTest {
 protected:
  // That of the step which a scenario's file plays.
  std::string HashOf(const std::string& file) const {
    const Outcome run = Execute("run " + file + " --format json");
    EXPECT_EQ(run.code, 0) << run.err;
    return run.code == 0 ? nlohmann::json::parse(run.out)["timeline_hash"].get<std::string>() : "";
  }
};

constexpr const char* kTwoGpus = "\tGPU0\tGPU1\nGPU0\tX\tNV4\nGPU1\tNV4\tX\n";
constexpr const char* kOneGpu = R"(<system version="1">
  <cpu numaid="0" arch="x86_64" vendor="AuthenticAMD" familyid="143" modelid="49">
    <pci busid="0000:01:00.0" class="0x030200" vendor="0x10de" device="0x20b2" link_speed="16.0 GT/s PCIe" link_width="16">
      <gpu dev="0" sm="80" rank="0" gdr="1"/>
    </pci>
    <heater watts="400"/>
  </cpu>
</system>
)";

TEST_F(ImportTest, HelpListsTheKinds) {
  const Outcome outcome = Execute("help import");
  EXPECT_EQ(outcome.code, 0);
  EXPECT_THAT(outcome.out, AllOf(HasSubstr("rehearse import [KIND] FILE"), HasSubstr("  nccl "),
                                 HasSubstr("  smi ")));
}

TEST_F(ImportTest, AMachineIsTheOneThatTopologyImports) {
  Write("topo.xml", kOneGpu);
  Write("smi.txt", kTwoGpus);
  for (const std::string kind : {"nccl topo.xml", "smi smi.txt"}) {
    ASSERT_EQ(Execute("import " + kind + " -o new.json").code, 0);
    ASSERT_EQ(Execute("topology --import-" + kind + " -o old.json").code, 0);
    EXPECT_EQ(ReadFile(folder_ / "new.json"), ReadFile(folder_ / "old.json"));
    EXPECT_EQ(Execute("topology ./new.json").code, 0);
  }
}

TEST_F(ImportTest, WhatWasNotUnderstoodIsListedUnderTheResult) {
  Write("topo.xml", kOneGpu);
  const Outcome outcome = Execute("import nccl topo.xml -o box.json");
  ASSERT_EQ(outcome.code, 0) << outcome.err;
  EXPECT_EQ(outcome.err, "");
  EXPECT_THAT(outcome.out, AllOf(StartsWith("box.json   a machine of 1 device, from topo.xml\n"),
                                 HasSubstr("heater")));
}

TEST_F(ImportTest, OnStandardOutputStandsTheFileAlone) {
  Write("smi.txt", kTwoGpus);
  const Outcome outcome = Execute("import smi - < smi.txt --device a100-80g");
  ASSERT_EQ(outcome.code, 0) << outcome.err;
  EXPECT_TRUE(nlohmann::json::accept(outcome.out));
  EXPECT_THAT(outcome.out, HasSubstr("a100-80g"));
  EXPECT_THAT(outcome.err,
              StartsWith("standard output   a machine of 2 devices, from standard input\n"));
}

constexpr const char* kConfig = R"({"model_type": "llama", "num_hidden_layers": 2,
  "hidden_size": 1024, "num_attention_heads": 16, "intermediate_size": 2816, "vocab_size": 4096,
  "max_position_embeddings": 2048, "residual_lanes": 4})";

constexpr const char* kRest = R"(, "training": {"batch": 8, "sequence": 256,
  "recomputation": "none"}, "strategy": {"kind": "fsdp", "shard": 8, "replicas": 1, "prefetch": 1,
  "reshard_after_forward": true, "overlap_reduce_scatter": true, "overlap_gradients": false}})";

constexpr const char* kDeepSpeed = R"({"train_micro_batch_size_per_gpu": 1,
  "bf16": {"enabled": true}, "zero_optimization": {"stage": 1}})";

TEST_F(ImportTest, ARunWithoutItsModelTakesOneBeside) {
  Write("ds.json", kDeepSpeed);
  Write("config.json", kConfig);
  const std::string import = "import deepspeed ds.json --set sequence=256 --cluster dgx-h100";
  const Outcome known = Execute(import + " --model-config config.json -o step.json");
  ASSERT_EQ(known.code, 0) << known.err;
  EXPECT_THAT(known.out, StartsWith("step.json   a scenario of 8 ranks"));
  EXPECT_EQ(Execute(import + " --model-config llama-3.2-1b -o step.json").code, 0);
  EXPECT_THAT(Execute(import + " --model-config unheard-9b").err,
              HasSubstr("--model-config: there is no file \"unheard-9b\""));
  EXPECT_THAT(Execute(import).err, HasSubstr("nothing says which model it is"));
}

TEST_F(ImportTest, AFileThatARunNamesIsLookedForBesideItAndAbove) {
  std::filesystem::create_directories(folder_ / "examples/tiny");
  Write("examples/tiny/run.yml",
        "base_model: a/Llama-3.2-1B\nsequence_len: 256\nmicro_batch_size: 1\n"
        "deepspeed: zeros/one.json\n");
  EXPECT_THAT(Execute("import examples/tiny/run.yml --cluster dgx-h100").err,
              HasSubstr("there is no \"zeros/one.json\" beside this file"));
  std::filesystem::create_directories(folder_ / "zeros");
  Write("zeros/one.json", kDeepSpeed);
  const Outcome outcome = Execute("import examples/tiny/run.yml --cluster dgx-h100 -o step.json");
  ASSERT_EQ(outcome.code, 0) << outcome.err;
  EXPECT_THAT(ReadFile(folder_ / "step.json"), HasSubstr("\"zero\": 1"));
}

TEST_F(ImportTest, WhatARunLoggedStandsBesideThePrediction) {
  Write("ds.json", kDeepSpeed);
  std::string log;
  for (const char* seconds : {"9.5", "2.0", "2.0"})
    log += std::string("completed step: 1, seconds: ") + seconds + ", loss: 1\n";
  Write("run.log", log);
  const std::string import =
      "import deepspeed ds.json --set sequence=256 --cluster dgx-h100 --model-config llama-3.2-1b";
  const Outcome outcome = Execute(import + " --compare run.log -o step.json");
  ASSERT_EQ(outcome.code, 0) << outcome.err;
  // 8 x 256 tokens in 2 s.
  EXPECT_THAT(outcome.out,
              AllOf(HasSubstr("run.log of MaxText, 2 steps without the first 1"),
                    HasSubstr("tokens/s                        1,024"), HasSubstr(" % less")));
  Write("empty.log", "nothing\n");
  EXPECT_THAT(Execute(import + " --compare empty.log").err,
              HasSubstr("no line says how long a step took"));
  EXPECT_THAT(Execute("import hf ds.json --compare run.log").err,
              HasSubstr("--compare goes with a run (megatron"));
}

TEST_F(ImportTest, AModelOfHuggingFaceIsPlayedFromItsFileAndFromWhatItBecame) {
  Write("config.json", kConfig);
  const Outcome outcome = Execute("import hf config.json -o model.json");
  ASSERT_EQ(outcome.code, 0) << outcome.err;
  EXPECT_THAT(outcome.out, AllOf(StartsWith("model.json   a model of 0.0341 billion parameters"),
                                 HasSubstr("not understood: residual_lanes")));
  // Two layers of 4·1024² and 3·1024·2816 weights and two norms, two tables of 4096 rows, a norm:
  // 34.1 million.
  const auto hash = [&](const std::string& model) {
    Write("step.json", R"({"name": "step", "cluster": "dgx-a100", "model": )" + model + kRest);
    const Outcome run = Execute("run step.json --format json");
    EXPECT_EQ(run.code, 0) << run.err;
    return nlohmann::json::parse(run.out)["timeline_hash"].get<std::string>();
  };
  const std::string whole = hash(R"({"file": "config.json"})");
  EXPECT_EQ(hash(R"({"file": "model.json"})"), whole);
  EXPECT_EQ(hash(R"({"style": "llama", "layers": 2, "hidden": 1024, "heads": 16,
                     "feed_forward": 2816, "vocabulary": 4096, "tied": false})"),
            whole);
  EXPECT_NE(hash(R"({"file": "config.json", "layers": 3})"), whole);
  Write("step.json", R"({"name": "step", "cluster": "dgx-a100",
    "model": {"file": "nowhere.json"})" +
                         std::string(kRest));
  ExpectMistake("run step.json", {"nowhere.json"});
}

TEST_F(ImportTest, AStepIsTheSameFromItsChakraTraces) {
  const std::string step = "'" + Shipped("axonn-gpt20b-perlmutter") + "'";
  const Outcome plan = Execute("plan " + step + " --chakra traces");
  ASSERT_EQ(plan.code, 0) << plan.err;
  EXPECT_THAT(plan.out, AllOf(StartsWith("traces   16 traces of Chakra"),
                              HasSubstr("rounded up to whole microseconds")));
  const Outcome import = Execute("import chakra traces -o imported.json");
  ASSERT_EQ(import.code, 0) << import.err;
  EXPECT_EQ(import.out, "imported.json   a schedule of 16 ranks, from traces\n");
  ASSERT_EQ(Execute("plan " + step + " -o planned.json").code, 0);
  EXPECT_EQ(ReadFile(folder_ / "imported.json"), ReadFile(folder_ / "planned.json"));
  const auto hash = [&](const std::string& what) {
    const Outcome run = Execute("run " + what + " --format json");
    EXPECT_EQ(run.code, 0) << run.err;
    return nlohmann::json::parse(run.out)["timeline_hash"].get<std::string>();
  };
  EXPECT_EQ(hash("imported.json --cluster perlmutter:nodes=4"), hash(step));

  ExpectMistake("plan " + step + " --chakra traces", {"traces", "a new or empty folder"});
  ExpectMistake("plan " + step + " --chakra -", {"--chakra: found \"-\", expected a folder"});
  EXPECT_FALSE(std::filesystem::exists(folder_ / "-"));
  std::filesystem::remove(folder_ / "traces/axonn-gpt20b-perlmutter.3.et");
  ExpectMistake("import chakra traces -o box.json", {"missing rank 3"});
  ExpectMistake("import chakra nowhere.0.et -o box.json", {"nowhere.0.et"});
  ExpectMistake("import chakra imported.json -o box.json",
                {"found no file named NAME.RANK.et, expected a trace of each rank"});
  ExpectMistake("import hf imported.json planned.json", {"found 2 files"});
  EXPECT_FALSE(std::filesystem::exists(folder_ / "box.json"));
}

TEST_F(ImportTest, AMeasuredStepIsTheSameFromItsKinetoTraces) {
  const Outcome execute = Execute("execute '" + Shipped("cpu-4d") +
                                  "' --warmup 0 --repeat 1 --trace kineto --out measured");
  ASSERT_EQ(execute.code, 0) << execute.err;
  EXPECT_FALSE(std::filesystem::exists(folder_ / "measured/trace.pftrace"));
  const Outcome import = Execute("import kineto measured/kineto -o timeline.json");
  ASSERT_EQ(import.code, 0) << import.err;
  EXPECT_THAT(import.out, StartsWith("timeline.json   a timeline of 1 step of "));
  const auto measured = nlohmann::json::parse(ReadFile(folder_ / "measured/timeline.json"));
  const auto imported = nlohmann::json::parse(ReadFile(folder_ / "timeline.json"));
  auto steps = measured["steps"];
  for (auto& step : steps) {  // traces do not tell what other programs took
    step.erase("disturbed");
    step.erase("lost");
  }
  EXPECT_EQ(imported["steps"], steps);
  EXPECT_EQ(imported["provenance"], "measured");
  EXPECT_EQ(imported["title"], measured["title"]);
  // Ranks that do the same share a role there, too; copies of micro-batches are kept apart.
  EXPECT_EQ(imported["roles"][0]["ops"][0], measured["roles"][0]["ops"][0]);
  EXPECT_EQ(Execute("compare timeline.json measured/timeline.json").code, 0);
  EXPECT_EQ(Execute("report timeline.json -o page.html").code, 0);
}

// What Holistic Trace Analysis makes of a trace, in microseconds. By its rules a kernel
// communicates if its name begins with "nccl", copies if it has "Memcpy" or "Memset" in it, and
// computes otherwise; the part of communication in which something computes is hidden; the time
// from the first kernel's begin to the last one's end is compute, the rest of what any kernel runs,
// and idle.
struct TraceAnalysis {
  double compute = 0;
  double non_compute = 0;
  double idle = 0;
  double hidden = 0;  // share of communication
};

TraceAnalysis Analyse(const nlohmann::json& trace) {
  enum Kind : size_t { kComputes, kCommunicates, kCopies };
  struct Edge {
    double at;
    int step;
    Kind kind;
  };
  std::vector<Edge> edges;
  for (const auto& event : trace["traceEvents"]) {
    if (event["ph"] != "X" || event["cat"] != "kernel") continue;
    const std::string name = event["name"];
    const bool copies =
        name.find("Memcpy") != std::string::npos || name.find("Memset") != std::string::npos;
    const Kind kind = name.rfind("nccl", 0) == 0 ? kCommunicates : copies ? kCopies : kComputes;
    edges.push_back({event["ts"], 1, kind});
    edges.push_back({event["ts"].get<double>() + event["dur"].get<double>(), -1, kind});
  }
  std::sort(edges.begin(), edges.end(), [](const Edge& a, const Edge& b) { return a.at < b.at; });
  TraceAnalysis analysis;
  double both = 0;
  double communication = 0;
  std::array<int, 3> running = {};
  double now = edges.front().at;
  for (const Edge& edge : edges) {
    const double passed = edge.at - now;
    const bool runs = running[kComputes] + running[kCommunicates] + running[kCopies] > 0;
    (running[kComputes] > 0 ? analysis.compute
     : runs                 ? analysis.non_compute
                            : analysis.idle) += passed;
    if (running[kCommunicates] > 0) communication += passed;
    if (running[kCommunicates] > 0 && running[kComputes] > 0) both += passed;
    now = edge.at;
    running[edge.kind] += edge.step;
  }
  analysis.hidden = both / communication;
  return analysis;
}

TEST_F(ImportTest, AKinetoTraceHasTheOverlapAndBreakdownThatAreReported) {
  Write("step.json", R"({"schema": "rehearse.schedule.v1", "ranks": 2,
    "communicators": [{"name": "all", "ranks": "all"}],
    "roles": [{"name": "all", "ops": [
      {"name": "first", "duration": "100us"},
      {"name": "sum", "collective": "all-reduce", "communicator": "all", "bytes": "64MiB",
       "after": "first"},
      {"name": "beside", "duration": "150us"},
      {"name": "last", "duration": "20us", "after": "sum"}]}]})");
  const Outcome run = Execute(
      "run step.json --cluster switch:devices=2 --format json --ranks 0-1 --trace kineto --out "
      "played");
  ASSERT_EQ(run.code, 0) << run.err;
  const auto result = nlohmann::json::parse(run.out);
  ASSERT_EQ(Shell("gunzip played/kineto/rank_0.json.gz"), 0);
  const auto trace = nlohmann::json::parse(ReadFile(folder_ / "played/kineto/rank_0.json"));
  EXPECT_EQ(trace["distributedInfo"]["world_size"], 2);
  const double hidden = result["overlap_fraction"];
  EXPECT_GT(hidden, 0.01);
  EXPECT_LT(hidden, 0.99);
  const TraceAnalysis analysis = Analyse(trace);
  EXPECT_NEAR(analysis.hidden, hidden, 1e-6);
  // Times are printed to a nanosecond.
  const auto& breakdown = result["breakdown"];
  EXPECT_NEAR(analysis.compute, 1e6 * breakdown["compute_seconds"].get<double>(), 0.01);
  EXPECT_NEAR(analysis.non_compute, 1e6 * breakdown["exposed_communication_seconds"].get<double>(),
              0.01);
  EXPECT_NEAR(analysis.idle, 1e6 * breakdown["idle_seconds"].get<double>(), 0.01);

  // What if? The trace as a schedule, on links that are twice as fast.
  ASSERT_EQ(Shell("gunzip played/kineto/*.gz; true"), 0);
  ASSERT_EQ(Execute("import kineto played/kineto --as schedule -o again.json").code, 0);
  EXPECT_EQ(Execute("run again.json --cluster switch:devices=2").code, 0);
  ExpectMistake("run step.json --cluster switch:devices=2 --trace chrome --out x",
                {"--trace", "\"chrome\""});
  ExpectMistake("run step.json --cluster switch:devices=2 --trace kineto", {"--out DIR"});
  ExpectMistake("import kineto played/kineto --as steps", {"--as", "\"steps\""});
  ExpectMistake("import hf step.json --as schedule", {"--as goes with a profile"});
}

// One rank's profile of 16 is enough where all do the same.
TEST_F(ImportTest, AJobIsPlayedFromOneRanksProfile) {
  const std::string shipped = Shipped("strategy-fsdp");
  const Outcome run = Execute("run '" + shipped + "' --format json --trace kineto --out played");
  ASSERT_EQ(run.code, 0) << run.err;
  const Outcome import = Execute(
      "import kineto played/kineto/rank_0.json.gz --as schedule --extrapolate 16 -o job.json");
  ASSERT_EQ(import.code, 0) << import.err;
  EXPECT_THAT(import.out, HasSubstr("a schedule of 16 ranks"));
  const Outcome again = Execute("run job.json --cluster perlmutter:nodes=4 --format json");
  ASSERT_EQ(again.code, 0) << again.err;
  const double step = nlohmann::json::parse(run.out)["step_seconds"];
  EXPECT_NEAR(nlohmann::json::parse(again.out)["step_seconds"].get<double>() / step, 1, 1e-3);
  ExpectMistake("import kineto played/kineto --extrapolate 64", {"--as schedule"});
  ExpectMistake("import kineto played/kineto --as schedule --extrapolate 0", {"--extrapolate"});
  ExpectMistake("import hf job.json --extrapolate 64", {"--extrapolate goes with a profile"});
}

TEST_F(ImportTest, AMachineOfHwlocIsThatOfNccl) {
  Write("lstopo.xml", DgxBox::Hwloc());
  Write("topo.xml", DgxBox::Nccl());
  const Outcome outcome = Execute("import lstopo lstopo.xml -o lstopo.json");
  ASSERT_EQ(outcome.code, 0) << outcome.err;
  EXPECT_THAT(outcome.out, StartsWith("lstopo.json   a machine of 8 devices, from lstopo.xml\n"));
  ASSERT_EQ(Execute("import nccl topo.xml -o nccl.json").code, 0);
  const auto time = [&](const std::string& file) {
    const Outcome sum = Execute("collective all-reduce -b 1G --format json --cluster ./" + file);
    EXPECT_EQ(sum.code, 0) << sum.err;
    return nlohmann::json::parse(sum.out)["rows"];
  };
  EXPECT_EQ(time("lstopo.json"), time("nccl.json"));
}

// Two levels of 64 boxes, four per leaf: drawn switch by switch, and as our own fat tree.
TEST_F(ImportTest, ATreeOfSlurmAndOfASubnetTakesAsLongAsTheHousesOwn) {
  Write("house.json", R"({"name": "house", "node": "dgx-h100", "nodes": 64,
    "fabric": {"kind": "fat-tree", "radix": 64, "levels": 2,
               "cable": {"bandwidth": "50GBps", "efficiency": 0.955, "latency": "0us"}}})");
  Write("topology.conf", SlurmTree(16, 4));
  Write("net.txt", IbTree{.leaves = 16, .spines = 4, .nodes = 64, .cables = 8}.Text());
  const Outcome slurm = Execute("import slurm topology.conf --node dgx-h100 -o slurm.json");
  ASSERT_EQ(slurm.code, 0) << slurm.err;
  EXPECT_THAT(slurm.out, StartsWith("slurm.json   a cluster of 64 nodes with 512 devices, from "
                                    "topology.conf\n"));
  ASSERT_EQ(Execute("import ibnetdiscover net.txt -o net.json").code, 0);
  EXPECT_EQ(Execute("topology ./slurm.json").code, 0);
  const auto time = [&](const std::string& file) {
    const Outcome sum = Execute("collective all-reduce -b 256M --format json --cluster ./" + file);
    EXPECT_EQ(sum.code, 0) << sum.err;
    nlohmann::json rows = nlohmann::json::parse(sum.out)["rows"];
    for (nlohmann::json& row : rows) row.erase("cut");  // machines have other names
    return rows;
  };
  const auto house = time("house.json");
  EXPECT_EQ(time("slurm.json"), house);
  EXPECT_EQ(time("net.json"), house);
}

// Ours as an infrastructure and back; with ranks that go to and fro between machines too.
TEST_F(ImportTest, AnInfrastructureTakesAsLongAsTheClusterThatItWasWrittenFrom) {
  Write("drawn.json", R"({"name": "drawn", "device": "h100", "vertices": [
    {"name": "a0", "kind": "device", "node": "a"}, {"name": "b0", "kind": "device", "node": "b"},
    {"name": "a1", "kind": "device", "node": "a"}, {"name": "an", "kind": "nic", "node": "a"},
    {"name": "bn", "kind": "nic", "node": "b"}, {"name": "s", "kind": "switch"}], "links": [
    {"between": ["a0", "a1"], "kind": "nvlink", "bandwidth": "450GBps", "latency": "3us",
     "efficiency": 0.75},
    {"between": ["a0", "an"], "kind": "pcie", "bandwidth": "63GBps", "latency": "1us"},
    {"between": ["a1", "an"], "kind": "pcie", "bandwidth": "63GBps", "latency": "1us"},
    {"between": ["b0", "bn"], "kind": "pcie", "bandwidth": "63GBps", "latency": "1us"},
    {"between": ["an", "s"], "kind": "network", "bandwidth": "50GBps", "latency": "2us"},
    {"from": "bn", "to": "s", "kind": "network", "bandwidth": "25GBps", "latency": "2us"},
    {"from": "s", "to": "bn", "kind": "network", "bandwidth": "50GBps", "latency": "2us"}],
    "step_overhead": "1us"})");
  const auto seconds = [&](const std::string& cluster, const std::string& size) {
    const Outcome sum =
        Execute("collective all-reduce --format json -b " + size + " --cluster " + cluster);
    EXPECT_EQ(sum.code, 0) << sum.err;
    return nlohmann::json::parse(sum.out)["rows"][0]["seconds"].get<double>();
  };
  for (const std::string cluster : {"dgx-a100", "perlmutter:nodes=2", "./drawn.json"}) {
    const Outcome written = Execute("topology " + cluster + " --infragraph -o infra.json");
    ASSERT_EQ(written.code, 0) << written.err;
    EXPECT_THAT(written.err, HasSubstr("stand in descriptions"));
    const Outcome read = Execute("import infragraph infra.json -o back.json");
    ASSERT_EQ(read.code, 0) << read.err;
    EXPECT_THAT(read.out, StartsWith("back.json   a cluster of "));
    for (const std::string size : {"64K", "1G"}) {
      const double before = seconds(cluster, size);
      EXPECT_NEAR(seconds("./back.json", size), before, 1e-9 * before) << cluster << " " << size;
    }
  }
  ExpectMistake("topology dgx-a100 --infragraph --svg", {"--svg and --infragraph"});
  ExpectMistake("topology dgx-a100 --infragraph --format json", {"--infragraph has its own form"});
}

TEST_F(ImportTest, AnInfrastructureInYamlIsRead) {
  Write("infra.yaml", kInfraClos);
  if (!HasYaml()) {
    ExpectMistake("import infragraph infra.yaml -o box.json", {"libyaml-cpp-dev"});
    return;
  }
  const Outcome read = Execute("import infragraph - --device h100 -o clos.json < infra.yaml");
  ASSERT_EQ(read.code, 0) << read.err;
  EXPECT_THAT(read.out,
              StartsWith("clos.json   a cluster of 4 nodes with 16 devices, from standard "
                         "input\n"));
  EXPECT_THAT(Execute("topology ./clos.json").out, HasSubstr("16 x h100"));
  Write("bad.yaml", "devices:\n- name: [\n");
  ExpectMistake("import infragraph bad.yaml -o bad.json", {"bad.yaml:", "no YAML"});
  EXPECT_FALSE(std::filesystem::exists(folder_ / "bad.json"));
}

constexpr const char* kScript = R"(GPUS_PER_NODE=8
ARGS="--num-layers 24 --hidden-size 2048 --num-attention-heads 16 --seq-length 2048 --bf16 \
  --micro-batch-size 4 --global-batch-size 256 --tokenizer-type GPT2BPETokenizer"
PARALLEL=(
  --tensor-model-parallel-size 2   # in each box
  --pipeline-model-parallel-size 4
  --make-vocab-size-divisible-by 512
  --use-distributed-optimizer
)
torchrun --nproc_per_node=$GPUS_PER_NODE --nnodes=2 pretrain_gpt.py $ARGS "${PARALLEL[@]}" --lr 1
)";

TEST_F(ImportTest, ARunOfMegatronIsTheStepByHand) {
  Write("gpt.sh", kScript);
  const Outcome outcome = Execute("import megatron gpt.sh -o gpt.json");
  ASSERT_EQ(outcome.code, 0) << outcome.err;
  EXPECT_THAT(outcome.out,
              AllOf(StartsWith("gpt.json   a scenario of 16 ranks, 1.31 billion parameters, from "),
                    HasSubstr("the machine is assumed: dgx-h100:nodes=2")));
  Write("hand.json", R"({"name": "hand", "software": "megatron-core",
    "cluster": "dgx-h100:nodes=2", "model": {"preset": "gpt-1.3b"},
    "training": {"batch": 256, "sequence": 2048, "micro_batches": 32, "recomputation": "none"},
    "strategy": {"kind": "megatron", "tensor": 2, "data": 2, "distributed_optimizer": true},
    "pipeline": {"stages": 4, "schedule": "1f1b"}})");
  EXPECT_EQ(HashOf("gpt.json"), HashOf("hand.json"));
  // From standard input, on another machine.
  ASSERT_EQ(Execute("import megatron - --cluster dgx-a100:nodes=4 -o other.json < gpt.sh").code, 0);
  EXPECT_THAT(ReadFile(folder_ / "other.json"),
              AllOf(HasSubstr("\"data\": 4"), HasSubstr("dgx-a100:nodes=4")));

  Write("bad.sh", std::string(kScript) + "echo 'never closed\n");
  ExpectMistake("import megatron bad.sh -o bad.json", {"bad.sh:11: a quote (')"});
  ExpectMistake("import megatron gpt.sh --cluster dgx-h100:nodes=3 -o bad.json",
                {"gpt.sh:3: --global-batch-size: 256 sequences"});
  ExpectMistake("import megatron gpt.sh --cluster local-cpu:ranks=6 -o bad.json",
                {"gpt.sh:6: 6 ranks (--cluster) cannot be shared by"});
  ExpectMistake("import hf gpt.sh --cluster dgx-h100 -o bad.json",
                {"--cluster goes with a run or rings"});
  EXPECT_FALSE(std::filesystem::exists(folder_ / "bad.json"));
}

TEST_F(ImportTest, ARunOfTorchtitanIsTheStepByHand) {
  Write("job.toml",
        "[model]\nname = \"llama3\"\nflavor = \"8B\"\n[training]\nlocal_batch_size = 2\n"
        "seq_len = 8192\ncompile = true\n[activation_checkpoint]\nmode = \"full\"\n");
  const std::string command = "import torchtitan job.toml --cluster dgx-h100:nodes=2 -o job.json";
  if (!HasToml()) {
    ExpectMistake(command, {"built without toml++", "libtomlplusplus-dev"});
    return;
  }
  const Outcome outcome = Execute(command);
  ASSERT_EQ(outcome.code, 0) << outcome.err;
  EXPECT_EQ(outcome.out,
            "job.json   a scenario of 16 ranks, 8.03 billion parameters, from job.toml\n");
  Write("hand.json", R"({"name": "hand", "software": "torchtitan",
    "cluster": "dgx-h100:nodes=2", "model": {"preset": "llama-3-8b"},
    "training": {"batch": 32, "sequence": 8192, "recomputation": "full", "kernels": "compiled",
                 "cross_entropy": "fused", "optimizer": "fused"},
    "strategy": {"kind": "combined", "shard": 16}})");
  EXPECT_EQ(HashOf("job.json"), HashOf("hand.json"));
  Write("bad.toml", "[model]\nflavor = \"8B\nname = 3\n");
  ExpectMistake("import torchtitan bad.toml --cluster dgx-h100 -o bad.json",
                {"bad.toml:2: no TOML"});
  EXPECT_FALSE(std::filesystem::exists(folder_ / "bad.json"));
}

TEST_F(ImportTest, RingsOfNcclGoOverTheMachineThatIsNamed) {
  Write("graph.xml", R"(<graphs version="1"><graph id="0" pattern="4" speedintra="20">
    <channel><gpu dev="0"/><gpu dev="2"/><gpu dev="1"/><gpu dev="3"/></channel></graph></graphs>)");
  const Outcome outcome =
      Execute("import nccl-graph graph.xml --cluster perlmutter:nodes=1 -o rings.json");
  ASSERT_EQ(outcome.code, 0) << outcome.err;
  EXPECT_THAT(outcome.out, AllOf(StartsWith("rings.json   1 rings of 4 devices, from graph.xml\n"),
                                 HasSubstr("NCCL assumes 20 GB/s in each")));
  const Outcome shown = Execute("topology ./rings.json");
  EXPECT_THAT(shown.out, HasSubstr("rings          1 given inside a machine"));
  // One of the six rings that a full mesh has: all-reduces by rings take three times as long.
  const auto time = [&](const std::string& cluster) {
    const Outcome sum = Execute(
        "collective all-reduce -b 1G --algorithm ring --protocol none "
        "--format json --cluster " +
        cluster);
    EXPECT_EQ(sum.code, 0) << sum.err;
    return nlohmann::json::parse(sum.out)["rows"][0]["seconds"].get<double>();
  };
  const double all = time("perlmutter:nodes=1");
  EXPECT_NEAR(time("./rings.json"), 3 * all, 0.01 * all);

  ExpectMistake("import nccl-graph graph.xml -o x.json", {"graph.xml: ", "expected --cluster"});
  ExpectMistake("import nccl-graph graph.xml --cluster dgx-a100 -o x.json",
                {"/rings/0: found a ring of 4 devices, expected all 8 of a machine"});
  EXPECT_FALSE(std::filesystem::exists(folder_ / "x.json"));
}

TEST_F(ImportTest, WhatIsWrittenIntoAnotherFolderStillFindsItsFiles) {
  std::filesystem::create_directories(folder_ / "machine");
  std::filesystem::create_directories(folder_ / "graphs");
  std::filesystem::create_directories(folder_ / "out");
  Write("graphs/graph.xml", R"(<graphs version="1"><graph id="0" pattern="4" speedintra="20">
    <channel><gpu dev="0"/><gpu dev="2"/><gpu dev="1"/><gpu dev="3"/></channel></graph></graphs>)");
  Write("machine/own.calibration.json",
        R"({"schema": "rehearse.calibration.v1", "collective_overhead": "1ms"})");
  Write("machine/box.json", R"({"preset": "perlmutter",
    "nodes": 1, "calibration": "own.calibration.json"})");
  const auto seconds = [&](const std::string& cluster) {
    const Outcome sum =
        Execute("collective all-reduce -b 8 -e 8 --format json --cluster " + cluster);
    EXPECT_EQ(sum.code, 0) << sum.err;
    return sum.code != 0 ? 0 : nlohmann::json::parse(sum.out)["rows"][0]["seconds"].get<double>();
  };
  const auto calibration_in = [&](const std::string& file) {
    return nlohmann::json::parse(ReadFile(folder_ / file))["calibration"].get<std::string>();
  };
  for (const std::string output : {"out/box.json", "machine/rings.json", "box.json"}) {
    const Outcome outcome =
        Execute("import nccl-graph graphs/graph.xml --cluster machine/box.json -o " + output);
    ASSERT_EQ(outcome.code, 0) << outcome.err;
    EXPECT_GE(seconds("./" + output), 1e-3);
  }
  // Where nothing has to change, nothing does.
  EXPECT_EQ(calibration_in("machine/rings.json"), "own.calibration.json");
  EXPECT_EQ(calibration_in("out/box.json"),
            std::filesystem::canonical(folder_ / "machine/own.calibration.json").string());
}

TEST_F(ImportTest, MistakesAreSaidInOneMessage) {
  Write("no.xml", "<html/>");
  Write("smi.txt", kTwoGpus);
  ExpectMistake("import", {"no kind given"});
  ExpectMistake("import ncc topo.xml", {"\"ncc\"", "did you mean \"nccl\""});
  ExpectMistake("import nowhere.xml -o box.json", {"nowhere.xml", "no such file"});
  ExpectMistake("import nccl", {"no file given", "NCCL_TOPO_DUMP_FILE"});
  ExpectMistake("import nccl nowhere.xml -o box.json", {"nowhere.xml"});
  ExpectMistake("import nccl no.xml -o box.json", {"no.xml"});
  ExpectMistake("import smi no.xml -o box.json", {"no.xml"});
  ExpectMistake("import smi smi.txt --device a100-80gb", {"a100-80gb", "did you mean"});
  ExpectMistake("import smi smi.txt -o nowhere/box.json", {"nowhere/box.json"});
  ExpectMistake("import hf smi.txt --set a=1", {"--set goes with a run"});
  Write("gpt.sh", "torchrun pretrain_gpt.py\n");
  ExpectMistake("import megatron gpt.sh --set vocab-size", {"--set", "expected NAME=VALUE"});
  ExpectMistake("import hf smi.txt -o box.json", {"smi.txt"});
  Write("bert.json", R"({"model_type": "bert"})");
  ExpectMistake("import hf bert.json -o box.json", {"bert.json:1", "/model_type", "\"bert\""});
  ExpectMistake("import hf bert.json --device a100-80g", {"--device goes with a machine"});
  ExpectMistake("import slurm smi.txt -o box.json", {"smi.txt:1", "SwitchName"});
  ExpectMistake("import ibnetdiscover smi.txt -o box.json", {"smi.txt", "ibnetdiscover"});
  ExpectMistake("import lstopo no.xml -o box.json", {"no.xml:1", "<html>", "<topology>"});
  Write("topology.conf", "SwitchName=s Nodes=n[1-2]\n");
  ExpectMistake("import slurm topology.conf --node dgx-a10 -o box.json",
                {"dgx-a10", "did you mean \"dgx-a100\""});
  ExpectMistake("import slurm topology.conf --device h100", {"--device goes with a machine"});
  ExpectMistake("import smi smi.txt --node dgx-a100",
                {"--node goes with a fabric (slurm, ibnetdiscover)"});
  EXPECT_FALSE(std::filesystem::exists(folder_ / "box.json"));
}

TEST_F(ImportTest, TablesOfNcclTestsLoseWhatALauncherPrintedAroundThem) {
  const Outcome printed = Execute("collective all-reduce --cluster dgx-a100 -b 1M -e 16M -f 4");
  ASSERT_EQ(printed.code, 0) << printed.err;
  std::string log = "srun: job 4711 queued\n";
  std::string line;
  std::istringstream lines(printed.out);
  while (std::getline(lines, line)) log += "0: " + line + "\n";
  Write("slurm.out", log + "slurmstepd: done\n");
  const Outcome outcome = Execute("import nccl-tests slurm.out -o clean.log");
  ASSERT_EQ(outcome.code, 0) << outcome.err;
  EXPECT_THAT(outcome.out, StartsWith("clean.log   1 table of 3 sizes, from slurm.out\n"));
  EXPECT_THAT(ReadFile(folder_ / "clean.log"),
              AllOf(HasSubstr("all_reduce_perf"), ::testing::Not(HasSubstr("slurmstepd"))));
  const std::string compare = " --cluster dgx-a100 --format json";
  EXPECT_EQ(nlohmann::json::parse(Execute("compare clean.log" + compare).out)["rows"],
            nlohmann::json::parse(Execute("compare slurm.out" + compare).out)["rows"]);
}

TEST_F(ImportTest, ATableThatSaysNotWhatItIsOfIsRefused) {
  Write("bare.log", "# size count time algbw busbw\n 1048576 262144 100.0 10.49 18.35\n");
  const Outcome outcome = Execute("import nccl-tests bare.log -o clean.log");
  EXPECT_EQ(outcome.code, 1);
  EXPECT_THAT(outcome.err, StartsWith("rehearse: bare.log: no table says which collective"));
  EXPECT_FALSE(std::filesystem::exists(folder_ / "clean.log"));
}

// A night of Helios, told by its columns.
constexpr const char* kNight =
    "job_id,user,vc,gpu_num,cpu_num,node_num,state,submit_time,start_time,end_time,duration,queue\n"
    "1,ua,vcb,1,4,1,COMPLETED,2020-05-01 01:00:00,2020-05-01 01:00:00,2020-05-01 02:00:00,3600,0\n"
    "2,ua,vcb,0,4,1,COMPLETED,2020-05-01 01:00:00,2020-05-01 01:00:00,2020-05-01 02:00:00,3600,0\n"
    "3,ub,vcb,16,64,2,FAILED,2020-05-02 01:00:00,2020-05-02 03:00:00,2020-05-02 04:00:00,3600,7\n"
    "4,ub,vcb,1,4,1,FAILED,2020-05-03 01:00:00,2020-05-03 01:00:00,2020-05-03 04:00:00,10800,0\n";

TEST_F(ImportTest, ATraceOfJobsBecomesOursInTheOrderOfSubmission) {
  Write("night.csv", kNight);
  const Outcome outcome = Execute("import night.csv -o jobs.json");
  EXPECT_EQ(outcome.code, 0) << outcome.err;
  // 1 + 16 + 3 hours on a GPU.
  EXPECT_THAT(
      outcome.out,
      AllOf(StartsWith("jobs.json   3 jobs in 2 days, on 1 to 16 GPUs, 67 % of them on one; "
                       "median 60 min, 20 GPU hours, from night.csv\n"),
            HasSubstr("  left out: 1 job without GPUs\n")));
  const nlohmann::json trace = nlohmann::json::parse(ReadFile(folder_ / "jobs.json"));
  EXPECT_EQ(trace["schema"], "rehearse.job-trace.v1");
  EXPECT_EQ(trace["source"], "night.csv");
  ASSERT_EQ(trace["jobs"].size(), 3u);
  EXPECT_EQ(trace["jobs"][1]["submitted_seconds"], 86400);
  EXPECT_EQ(trace["jobs"][1]["devices"], 16);
  EXPECT_THAT(Execute("run jobs.json").err,
              HasSubstr("found a trace of jobs, expected a scenario"));
}

TEST_F(ImportTest, OfATraceOnlyTheJobsThatAreAskedForAreTaken) {
  Write("night.csv", kNight);
  const Outcome some = Execute("import night.csv --from 0.5 --to 1.5");
  EXPECT_EQ(some.code, 0);
  const nlohmann::json jobs = nlohmann::json::parse(some.out)["jobs"];
  ASSERT_EQ(jobs.size(), 1u);
  EXPECT_EQ(jobs[0]["name"], "3");
  EXPECT_EQ(jobs[0]["submitted_seconds"], 0);
  EXPECT_EQ(nlohmann::json::parse(Execute("import night.csv --first 2").out)["jobs"].size(), 2u);
  EXPECT_THAT(Execute("import night.csv --first 0").err,
              HasSubstr("--first: found \"0\", expected a whole number from 1"));
  EXPECT_THAT(Execute("import night.csv --from soon").err,
              HasSubstr("--from: found \"soon\", expected a number of days from 0 to 36500"));
  EXPECT_THAT(Execute("import night.csv --from 2 --to 1").err,
              HasSubstr("--to: found 1, expected more than --from, 2"));
  Write("smi.txt", kTwoGpus);
  EXPECT_THAT(Execute("import smi.txt --first 3").err,
              HasSubstr("--first goes with a trace of jobs (philly, pai, openb, helios, acme)"));
}

TEST_F(ImportTest, ATraceOfJobsMayComeThroughAPipe) {
  Write("night.csv", kNight);
  EXPECT_EQ(
      Shell("gzip -k night.csv && $rehearse import helios night.csv.gz > packed.json 2> err.txt && "
            "$rehearse import helios - < night.csv > piped.json 2>> err.txt"),
      0)
      << ReadFile(folder_ / "err.txt");
  const auto jobs = [&](const char* file) {
    return nlohmann::json::parse(ReadFile(folder_ / file))["jobs"];
  };
  EXPECT_EQ(jobs("packed.json"), jobs("piped.json"));
}

TEST_F(ImportTest, AScriptThatOnlyAShellFollowsIsRunWithStubs) {
  Write("train.sh", R"sh(#!/bin/bash
sizes() { echo "--num-layers $1 --hidden-size 4096 --num-attention-heads 32"; }
read -r tensor data <<< "2 $((NNODES * 4))"
export NCCL_ALGO=Ring
port=$(python3 -c 'print(29500)')
echo "on port $port"
for part in launcher; do
  torchrun --nnodes $NNODES --nproc_per_node 8 pretrain_gpt.py $(sizes 32) --seq-length 4096 \
    --micro-batch-size 1 --global-batch-size $((data * 2)) --vocab-size 50257 \
    --tensor-model-parallel-size $tensor --data-path 'a b' --bf16 "$@"
done
touch ran
)sh");
  const Outcome outcome =
      Execute("import megatron train.sh --dry-run --set NNODES=2 --set 1=--sequence-parallel");
  ASSERT_EQ(outcome.code, 0) << outcome.err;
  const nlohmann::json scenario = nlohmann::json::parse(outcome.out);
  EXPECT_EQ(scenario["model"]["layers"], 32);
  EXPECT_EQ(scenario["strategy"]["tensor"], 2);
  EXPECT_EQ(scenario["strategy"]["sequence_parallel"], true);
  EXPECT_EQ(scenario["training"]["batch"], 16);
  EXPECT_EQ(scenario["cluster"], "dgx-h100:nodes=2");
  EXPECT_EQ(scenario["simulator"]["collectives"][0]["algorithm"], "ring");
  EXPECT_THAT(outcome.err, HasSubstr("on port 29500"));
  EXPECT_TRUE(std::filesystem::exists(folder_ / "ran"));
}

TEST_F(ImportTest, AScriptReadsInWhatLiesBesideIt) {
  Write("train.sh", "NODES=2\nLAYERS=32\n. `pwd`/conf.sh\nsbatch --nodes=$NODES job.sh\n");
  Write("conf.sh", R"sh(ARGS="--num-layers $LAYERS --hidden-size 4096 --num-attention-heads 32"
)sh");
  Write("job.sh", R"sh(#!/bin/bash
#SBATCH --ntasks-per-node=8
srun sh -c "python pretrain_gpt.py $ARGS --seq-length 4096 --micro-batch-size 1 --vocab-size 9 \
  --bf16"
)sh");
  const Outcome outcome = Execute("import megatron train.sh");
  ASSERT_EQ(outcome.code, 0) << outcome.err;
  const nlohmann::json scenario = nlohmann::json::parse(outcome.out);
  EXPECT_EQ(scenario["model"]["layers"], 32);
  EXPECT_EQ(scenario["cluster"], "dgx-h100:nodes=2");
  EXPECT_THAT(outcome.err, HasSubstr("line 3: reads conf.sh in its place"));
}

// ASTRA-sim's regression test once more, from its files.
TEST_F(ImportTest, CollectivesGoByDimensionAsASystemSays) {
  if (!HasYaml()) GTEST_SKIP() << "built without yaml-cpp";
  Write("network.yml",
        "topology: [ Ring ]\nnpus_count: [ 8 ]\nbandwidth: [ 50.0 ]\nlatency: [ 500.0 ]\n");
  Write("system.json", R"({"scheduling-policy": "LIFO", "endpoint-delay": 10,
    "preferred-dataset-splits": 4, "all-reduce-implementation": ["ring"], "local-mem-bw": 50,
    "collective-optimization": "localBWAware"})");
  Write("micro.txt", "MICRO\n1\nsum -1 1 NONE 0 1 NONE 0 1 ALLREDUCE 1048576 0\n");
  const Outcome machine = Execute("import astra-sim network.yml system.json -o cluster.json");
  ASSERT_EQ(machine.code, 0) << machine.err;
  EXPECT_THAT(machine.out + machine.err, HasSubstr("part of a schedule, not of a cluster"));
  for (const char* workload : {"--set all-reduce=1MiB", "micro.txt"}) {
    const Outcome step = Execute(std::string("import astra-sim system.json network.yml ") +
                                 workload + " -o step.json");
    ASSERT_EQ(step.code, 0) << step.err;
    const Outcome run = Execute("run step.json --cluster cluster.json --format json");
    ASSERT_EQ(run.code, 0) << run.err;
    const double seconds = nlohmann::json::parse(run.out)["step_seconds"].get<double>();
    EXPECT_NEAR(seconds, 117.78e-6, 0.0005 * 117.78e-6) << workload;
  }
  EXPECT_THAT(Execute("import astra-sim system.json").err, HasSubstr("expected the network"));
  EXPECT_THAT(Execute("import astra-sim network.yml network.yml").err,
              HasSubstr("found two networks"));
}

TEST_F(ImportTest, ADryRunThatStartsNothingIsAMistake) {
  Write("train.sh", "true\n");
  const Outcome outcome = Execute("import megatron train.sh --dry-run");
  EXPECT_EQ(outcome.code, 1);
  EXPECT_THAT(outcome.err, HasSubstr("train.sh: when it was run, it started none of torchrun"));
  EXPECT_THAT(Execute("import hf train.sh --dry-run").err, HasSubstr("goes with a script"));
}

TEST_F(ImportTest, WhatATimelineSpendsItsTimeOnIsSummedUp) {
  Write("rank0.json", R"({"distributedInfo": {"rank": 0, "world_size": 1}, "traceEvents": [
    {"ph": "X", "cat": "kernel", "name": "gemm", "ts": 0, "dur": 100, "tid": 7,
     "args": {"stream": 7, "correlation": 1}}]})");
  ASSERT_EQ(Execute("import kineto rank0.json -o timeline.json").code, 0);
  const Outcome outcome = Execute("summary timeline.json");
  EXPECT_EQ(outcome.code, 0) << outcome.err;
  EXPECT_THAT(outcome.out, HasSubstr("One step takes 100 us"));
  EXPECT_THAT(Execute("summary timeline.json --format csv").out, HasSubstr("gemm,gemm,1,0.0001"));
  EXPECT_THAT(Execute("explain timeline.json").err, HasSubstr("rehearse summary"));
}

TEST_F(ImportTest, AProfileOfOneRankIsPlayedOnADeviceOfAMachineAndComparedOpByOp) {
  Write("rank0.json", R"({"distributedInfo": {"rank": 0, "world_size": 1}, "traceEvents": [
    {"ph": "X", "cat": "kernel", "name": "gemm", "ts": 0, "dur": 100, "tid": 7,
     "args": {"stream": 7, "correlation": 1}}]})");
  ASSERT_EQ(Execute("import kineto rank0.json -o timeline.json").code, 0);
  ASSERT_EQ(Execute("import kineto rank0.json --as schedule -o step.json").code, 0);
  for (const std::string where : {" --ranks 0", " --ranks 3"}) {
    const Outcome run = Execute("run step.json --cluster dgx-h100 --out sim" + where);
    EXPECT_EQ(run.code, 0) << run.err;
    EXPECT_THAT(run.out, HasSubstr("One step takes 100 us"));
    const Outcome comparison = Execute("compare sim timeline.json");
    EXPECT_EQ(comparison.code, 0) << comparison.err;
    EXPECT_THAT(comparison.out, AllOf(HasSubstr("By kind"), HasSubstr("order: the same")));
  }
  EXPECT_THAT(Execute("run step.json --cluster dgx-h100").err,
              HasSubstr("rehearse run --ranks 0-0"));
  EXPECT_THAT(Execute("run step.json --cluster dgx-h100 --ranks 3,4").err,
              HasSubstr("a schedule of 1 ranks is placed on 2 devices"));
  EXPECT_THAT(Execute("run step.json --cluster dgx-h100 --ranks 8").err, HasSubstr("--ranks"));
}

}  // namespace import_test
}  // namespace rehearse

// rehearse import, as its user meets it.
#include <nlohmann/json.hpp>

#include "tests/tools/program_fixture.h"

namespace rehearse {
namespace {

using ::testing::AllOf;
using ::testing::HasSubstr;
using ::testing::StartsWith;

class ImportTest : public ProgramTest {};

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
  EXPECT_THAT(outcome.out, AllOf(HasSubstr("rehearse import KIND FILE"), HasSubstr("  nccl "),
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

  ExpectMistake("plan " + step + " --chakra traces", {"traces", "a new or an empty folder"});
  std::filesystem::remove(folder_ / "traces/axonn-gpt20b-perlmutter.3.et");
  ExpectMistake("import chakra traces -o box.json", {"missing rank 3"});
  ExpectMistake("import chakra nowhere.0.et -o box.json", {"nowhere.0.et"});
  ExpectMistake("import chakra imported.json -o box.json", {"no trace NAME.RANK.et given"});
  ExpectMistake("import hf imported.json planned.json", {"found 2 files"});
  EXPECT_FALSE(std::filesystem::exists(folder_ / "box.json"));
}

TEST_F(ImportTest, MistakesAreSaidInOneMessage) {
  Write("no.xml", "<html/>");
  Write("smi.txt", kTwoGpus);
  ExpectMistake("import", {"no kind given"});
  ExpectMistake("import ncc topo.xml", {"\"ncc\"", "did you mean \"nccl\""});
  ExpectMistake("import nccl", {"no file given", "NCCL_TOPO_DUMP_FILE"});
  ExpectMistake("import nccl nowhere.xml -o box.json", {"nowhere.xml"});
  ExpectMistake("import nccl no.xml -o box.json", {"no.xml"});
  ExpectMistake("import smi no.xml -o box.json", {"no.xml"});
  ExpectMistake("import smi smi.txt --device a100-80gb", {"a100-80gb", "did you mean"});
  ExpectMistake("import smi smi.txt -o nowhere/box.json", {"nowhere/box.json"});
  ExpectMistake("import hf smi.txt -o box.json", {"smi.txt"});
  Write("bert.json", R"({"model_type": "bert"})");
  ExpectMistake("import hf bert.json -o box.json", {"bert.json:1", "/model_type", "\"bert\""});
  ExpectMistake("import hf bert.json --device a100-80g", {"--device goes with a machine"});
  EXPECT_FALSE(std::filesystem::exists(folder_ / "box.json"));
}

}  // namespace
}  // namespace rehearse

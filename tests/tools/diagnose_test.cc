#include <nlohmann/json.hpp>

#include "tests/tools/program_fixture.h"

namespace rehearse {
namespace diagnose_test {

using ::testing::HasSubstr;
using ::testing::Not;

class DiagnoseProgramTest : public ProgramTest {
 protected:
  void WriteLog(const std::string& name, const std::string& options) const {
    const Outcome log = Execute("collective all-reduce -b 1K -e 4G -f 4 " + options);
    ASSERT_EQ(log.code, 0) << log.err;
    Write(name, log.out);
  }
  nlohmann::json Diagnosed(const std::string& arguments) const {
    const Outcome outcome = Execute("diagnose " + arguments + " --format json");
    EXPECT_EQ(outcome.code, 0) << outcome.err;
    return nlohmann::json::parse(outcome.out);
  }
};

TEST_F(DiagnoseProgramTest, NothingIsWrongWithWhatIsExpected) {
  WriteLog("nccl.log", "--cluster dgx-h100:nodes=4");
  const Outcome text = Execute("diagnose nccl.log --cluster dgx-h100:nodes=4");
  EXPECT_EQ(text.code, 0) << text.err;
  EXPECT_THAT(text.out, HasSubstr("Nothing is wrong that this log would show"));
  const nlohmann::json json = Diagnosed("nccl.log --cluster dgx-h100:nodes=4");
  EXPECT_EQ(json["schema"], "rehearse.diagnosis.v1");
  EXPECT_FALSE(json["is_something_wrong"]);
  EXPECT_TRUE(json["findings"].empty());
}

// A published question: the NICs reach 3 % of what they should. The share is found again, and so is
// that it cannot be one NIC alone that one sees: all-reduces look the same.
TEST_F(DiagnoseProgramTest, NicsAtThreePercentAreFound) {
  Write("slow.json", R"({"preset": "dgx-h100", "nodes": 2,
    "edits": [{"links": "node*/nic*", "kind": "network", "bandwidth": "0.03x"}]})");
  WriteLog("nccl.log", "--cluster ./slow.json");
  const nlohmann::json json = Diagnosed("nccl.log --cluster dgx-h100:nodes=2");
  ASSERT_TRUE(json["is_something_wrong"]);
  bool is_found = false;
  for (const auto& cause : json["findings"][0]["causes"]) {
    if (cause["cause"] != "slow-network") continue;
    is_found = true;
    EXPECT_NEAR(cause["strength"].get<double>(), 0.03, 0.005);
    EXPECT_GT(cause["explained"].get<double>(), 0.9);
  }
  EXPECT_TRUE(is_found) << json["findings"][0].dump(2);
  const Outcome text = Execute("diagnose nccl.log --cluster dgx-h100:nodes=2");
  EXPECT_THAT(text.out, HasSubstr("ibstat"));
}

TEST_F(DiagnoseProgramTest, APinnedAlgorithmIsToldFromASlowMachine) {
  WriteLog("nccl.log", "--cluster dgx-h100:nodes=32 -a ring");
  const nlohmann::json json = Diagnosed("nccl.log --cluster dgx-h100:nodes=32");
  ASSERT_TRUE(json["is_something_wrong"]);
  EXPECT_EQ(json["findings"][0]["causes"][0]["cause"], "algorithm-pinned");
  EXPECT_EQ(json["findings"][0]["causes"][0]["words"], "ring");
  // Who says that it was pinned gets no finding.
  EXPECT_FALSE(Diagnosed("nccl.log --cluster dgx-h100:nodes=32 -a ring")["is_something_wrong"]);
}

// Causes that the log cannot tell apart come with the measurement that would.
TEST_F(DiagnoseProgramTest, WhatWouldTellCausesApartIsSaid) {
  Write("slow.json", R"({"preset": "dgx-a100", "nodes": 4,
    "edits": [{"links": "node0/nic0", "kind": "network", "bandwidth": "0.2x"}]})");
  WriteLog("nccl.log", "--cluster ./slow.json -a ring");
  const Outcome text = Execute("diagnose nccl.log --cluster dgx-a100:nodes=4 -a ring");
  EXPECT_EQ(text.code, 0) << text.err;
  EXPECT_THAT(text.out, HasSubstr("which this log cannot tell apart"));
  EXPECT_THAT(text.out, HasSubstr("to tell them apart: all-reduce of 1 GiB"));
  EXPECT_THAT(text.out, HasSubstr("slow-cable"));
  EXPECT_THAT(text.out, HasSubstr("slow-network"));
}

// superbenchmark's all-gathers of eight A100 (commit 700d6501), driven by one process: a launch
// after the other.
TEST_F(DiagnoseProgramTest, OneProcessThatLaunchesForEightIsFoundInAPublishedTable) {
  Write("table.csv",
        "size,time\n32,35.03\n1024,35.38\n65536,36.34\n262144,46.45\n1048576,72.95\n"
        "4194304,100.7\n16777216,167.7\n67108864,379.7\n268435456,1192.2\n1073741824,4413.4\n"
        "4294967296,17016\n");
  const nlohmann::json json = Diagnosed("table.csv --cluster dgx-a100 --kind all-gather");
  ASSERT_TRUE(json["is_something_wrong"]);
  EXPECT_EQ(json["findings"][0]["causes"][0]["cause"], "slow-launch");
}

TEST_F(DiagnoseProgramTest, WhatIsFasterThanExpectedHasNoCause) {
  WriteLog("nccl.log", "--cluster dgx-b200:nodes=2");
  const Outcome text = Execute("diagnose nccl.log --cluster dgx-a100:nodes=2");
  EXPECT_EQ(text.code, 0) << text.err;
  EXPECT_THAT(text.out, HasSubstr("faster than expected"));
  EXPECT_THAT(text.out, Not(HasSubstr("look at")));
}

// 912 ms are expected of the step.
TEST_F(DiagnoseProgramTest, AStepIsDiagnosedByWhatWasMeasuredOfIt) {
  const std::string step = Shipped("strategy-fsdp");
  const nlohmann::json json = Diagnosed(step + " --measured '4490 tokens/s/gpu'");
  EXPECT_FALSE(json["is_something_wrong"]);
  const nlohmann::json slow =
      Diagnosed(step + " --measured '3.2 s' --measured 'exposed 2.33 s' --measured 'idle 0 s'");
  ASSERT_TRUE(slow["is_something_wrong"]);
  EXPECT_EQ(slow["findings"][0]["causes"][0]["cause"], "slow-network");
  EXPECT_NEAR(slow["findings"][0]["causes"][0]["strength"].get<double>(), 0.12, 0.02);
  // One channel moves 12.5 GB/s of 191, which is just what takes 2.5 s.
  const nlohmann::json few =
      Diagnosed(step + " --measured '2.5 s' --measured 'exposed 1.65 s' --measured 'idle 0 s'");
  EXPECT_EQ(few["findings"][0]["causes"][0]["cause"], "few-channels");
  EXPECT_EQ(few["findings"][0]["causes"][0]["strength"].get<double>(), 1);
  const Outcome text = Execute("diagnose " + step + " --measured '2.5 s'");
  EXPECT_THAT(text.out, HasSubstr("which what was measured cannot tell apart"));
  EXPECT_THAT(text.out, HasSubstr("a profile would show"));
}

// A timeline of the same step on a slower machine stands for a profile of it.
TEST_F(DiagnoseProgramTest, ATimelineIsDiagnosedByItsParts) {
  const std::string step = Shipped("strategy-megatron");
  ASSERT_EQ(Execute("run " + step +
                    " --no-fold --out slow --set 'edits=[{\"devices\": \"node0/gpu1\", "
                    "\"compute\": \"0.4x\"}]'")
                .code,
            0);
  const Outcome text = Execute("diagnose " + step + " --timeline slow/timeline.json");
  EXPECT_EQ(text.code, 0) << text.err;
  EXPECT_THAT(text.out, HasSubstr("rank 1 computes"));
  const nlohmann::json json = Diagnosed(step + " --timeline slow/timeline.json");
  ASSERT_TRUE(json["is_something_wrong"]);
  EXPECT_EQ(json["findings"][0]["causes"][0]["cause"], "straggler");
  EXPECT_NEAR(json["findings"][0]["causes"][0]["strength"].get<double>(), 0.4, 0.05);
  ExpectMistake("diagnose " + Shipped("strategy-fsdp") + " --timeline " + step,
                {"found a scenario", "expected a timeline"});
}

// What others wrote is read as import reads it, told by what it holds.
TEST_F(DiagnoseProgramTest, ScriptsProfilesAndDumpsNeedNoImport) {
  Write("train.sh",
        "#!/bin/bash\n"
        "torchrun --nproc_per_node 8 pretrain_gpt.py --num-layers 24 --hidden-size 2048 "
        "--num-attention-heads 16 --seq-length 2048 --max-position-embeddings 2048 "
        "--vocab-size 50257 --micro-batch-size 1 --global-batch-size 64 --bf16\n");
  const nlohmann::json slow = Diagnosed("train.sh --cluster dgx-h100 --measured '60 s'");
  EXPECT_TRUE(slow["is_something_wrong"]);
  ExpectMistake("diagnose train.sh --cluster dgx-h100", {"nothing that was measured"});

  const std::string step = Shipped("cpu-4d");
  ASSERT_EQ(Execute("run " + step + " --no-fold --out sim --trace kineto").code, 0);
  const Outcome alone = Execute("diagnose sim/kineto");
  EXPECT_EQ(alone.code, 0) << alone.err;
  EXPECT_THAT(alone.out, HasSubstr("what takes longest"));
  const Outcome beside = Execute("diagnose " + step + " --timeline sim/kineto");
  EXPECT_EQ(beside.code, 0) << beside.err;
  EXPECT_THAT(beside.out, HasSubstr("Nothing is wrong"));

  Write("pair.xml",
        "<system version=\"1\">\n"
        "  <cpu numaid=\"0\" arch=\"x86_64\" vendor=\"GenuineIntel\" familyid=\"6\" "
        "modelid=\"143\">\n"
        "    <pci busid=\"0000:10:00.0\" class=\"0x030200\" vendor=\"0x10de\" device=\"0x2330\" "
        "link_speed=\"32.0 GT/s PCIe\" link_width=\"16\"><gpu dev=\"0\" sm=\"90\" rank=\"0\" "
        "gdr=\"1\"/></pci>\n"
        "    <pci busid=\"0000:20:00.0\" class=\"0x030200\" vendor=\"0x10de\" device=\"0x2330\" "
        "link_speed=\"32.0 GT/s PCIe\" link_width=\"16\"><gpu dev=\"1\" sm=\"90\" rank=\"1\" "
        "gdr=\"1\"/></pci>\n"
        "  </cpu>\n"
        "</system>\n");
  WriteLog("pair.log", "--cluster pair.xml");
  EXPECT_FALSE(Diagnosed("pair.log --cluster pair.xml")["is_something_wrong"]);
  ExpectMistake("diagnose pair.xml", {"NCCL's topology file", "expected a log"});
}

TEST_F(DiagnoseProgramTest, MistakesAreNamed) {
  ExpectMistake("diagnose", {"nothing to diagnose", "usage"});
  WriteLog("nccl.log", "--cluster dgx-a100:nodes=2");
  ExpectMistake("diagnose nccl.log", {"--cluster is needed"});
  ExpectMistake("diagnose nccl.log --cluster dgx-a100",
                {"nccl.log:", "found 16 ranks", "expected at most 8"});
  Write("words.txt", "it is slow\n");
  ExpectMistake("diagnose words.txt --cluster dgx-a100", {"words.txt", "nccl-tests"});
  ExpectMistake("diagnose none.log --cluster dgx-a100", {"none.log"});
  Write("table.csv", "size,time\n1048576,74.78\n");
  ExpectMistake("diagnose table.csv --cluster dgx-a100", {"table.csv", "--kind"});
  ExpectMistake("diagnose nccl.log --cluster dgx-a100:nodes=2 --measured '2 s'",
                {"--measured is for scenarios"});
  const std::string step = Shipped("strategy-fsdp");
  ExpectMistake("diagnose " + step, {"nothing that was measured", "--measured"});
  ExpectMistake("diagnose " + step + " --measured '12 parsecs'", {"12 parsecs", "tokens/s/gpu"});
  ExpectMistake("diagnose " + step + " --measured '120 % MFU'", {"120 % MFU", "at most 100 %"});
  ExpectMistake("diagnose " + step + " --measured '2 s' --cluster dgx-a100",
                {"--cluster is for logs"});
}

}  // namespace diagnose_test
}  // namespace rehearse

// rehearse topology, as its user meets it.
#include <regex>
#include <set>

#include <nlohmann/json.hpp>
#include <pugixml.hpp>

#include "tests/tools/program_fixture.h"

namespace rehearse {
namespace topology_test {

using ::testing::AllOf;
using ::testing::HasSubstr;
using ::testing::Not;
using ::testing::StartsWith;

constexpr const char* kTwo = R"({"name": "two", "device": "a100-40g",
  "vertices": [{"name": "g0", "kind": "device"}, {"name": "g1", "kind": "device"},
               {"name": "a \"b\" <c>", "kind": "switch"}],
  "links": [{"between": ["g0", "a \"b\" <c>"], "kind": "nvlink", "bandwidth": "300GBps", "latency": "1us"},
            {"from": "g1", "to": "a \"b\" <c>", "kind": "nvlink", "bandwidth": "300GBps", "latency": "1us"},
            {"from": "a \"b\" <c>", "to": "g1", "kind": "nvlink", "bandwidth": "100GBps", "latency": "2us"}]})";

class TopologyProgramTest : public ProgramTest {
 protected:
  nlohmann::json Json(const std::string& arguments) const {
    const Outcome outcome = Execute("topology " + arguments + " --format json");
    EXPECT_EQ(outcome.code, 0) << outcome.err;
    return nlohmann::json::parse(outcome.out);
  }
};

TEST_F(TopologyProgramTest, HelpHasExamples) {
  const Outcome outcome = Execute("topology --help");
  EXPECT_EQ(outcome.code, 0);
  for (const char* part : {"usage: rehearse topology CLUSTER", "--path", "--matrix", "--dot",
                           "--svg", "--import-nccl", "--import-smi", "rehearse topology dgx-a100"})
    EXPECT_THAT(outcome.out, HasSubstr(part));
}

TEST_F(TopologyProgramTest, TextTellsWhatIsThere) {
  const Outcome outcome = Execute("topology dgx-a100:nodes=2");
  EXPECT_EQ(outcome.code, 0);
  EXPECT_EQ(outcome.err, "");
  EXPECT_THAT(outcome.out,
              AllOf(StartsWith("dgx-a100   16 devices on 2 nodes"), HasSubstr("16 x a100-40g"),
                    HasSubstr("device - nvswitch"), HasSubstr("229.5 GB/s"), HasSubstr("notes")));
}

TEST_F(TopologyProgramTest, JsonTellsTheSame) {
  const auto json = Json("dgx-a100:nodes=2");
  EXPECT_EQ(json["schema"], "rehearse.topology.v1");
  EXPECT_EQ(json["devices"], 16);
  EXPECT_EQ(json["vertices"]["nic"], 16);
  // 16 NICs of 25 GB/s x 0.955, half of them on each side.
  EXPECT_NEAR(json["bisection_bytes_per_second"].get<double>(), 191e9, 1e3);
  EXPECT_TRUE(json["grid"].is_null());
}

TEST_F(TopologyProgramTest, APathHopByHop) {
  const Outcome outcome = Execute("topology dgx-a100:nodes=2 --path 0,node1/gpu3");
  EXPECT_THAT(outcome.out, AllOf(HasSubstr("node0/gpu0 (rank 0) to node1/gpu3 (rank 11)"),
                                 HasSubstr("-> node0/nic0"), HasSubstr("bottleneck")));
  const auto json = Json("dgx-a100:nodes=2 --path 0,node1/gpu3");
  EXPECT_DOUBLE_EQ(json["bandwidth_bytes_per_second"].get<double>(), 25e9 * 0.955);
  double latency = 0;
  std::string at = json["from"]["name"];
  for (const auto& hop : json["hops"]) {
    EXPECT_EQ(hop["from"], at);
    at = hop["to"];
    latency += hop["latency_seconds"].get<double>();
  }
  EXPECT_EQ(at, "node1/gpu3");
  EXPECT_DOUBLE_EQ(json["latency_seconds"].get<double>(), latency);
}

TEST_F(TopologyProgramTest, AMatrixOfTheFirstSixteenOrOfThoseWanted) {
  const Outcome outcome = Execute("topology dgx-a100:nodes=4 --matrix");
  EXPECT_THAT(outcome.err, HasSubstr("first 16 of 32"));
  EXPECT_THAT(outcome.out, AllOf(HasSubstr("229.5"), HasSubstr("hierarchical"),
                                 HasSubstr("of all devices"), HasSubstr("bisection")));
  const auto json = Json("dgx-a100:nodes=4 --matrix --ranks 3,8-9");
  ASSERT_EQ(json["ranks"].size(), 3u);
  EXPECT_EQ(json["ranks"][1]["rank"], 8);
  EXPECT_DOUBLE_EQ(json["bandwidth_bytes_per_second"][1][2].get<double>(), 229.5e9);
  EXPECT_DOUBLE_EQ(json["bandwidth_bytes_per_second"][0][1].get<double>(), 23.875e9);
}

TEST_F(TopologyProgramTest, DotIsGraphvizLanguage) {
  Write("two.json", kTwo);
  const Outcome outcome = Execute("topology two.json --dot");
  EXPECT_EQ(outcome.code, 0) << outcome.err;
  // A name in quotes may hold escaped quotes.
  const std::string name = R"re("(?:[^"\\]|\\.)*")re";
  const std::string attributes = R"re(\[(?:\w+=(?:[\w.]+|)re" + name + R"re()(?:, )?)+\])re";
  const std::regex line(R"re(digraph G \{|label=)re" + name + R"re(;|rankdir=BT;|\d+)re" +
                        attributes + R"re( ?;|\d+->\d+ )re" + attributes + R"re( ?;|\})re");
  std::istringstream lines(outcome.out);
  int vertices = 0;
  int edges = 0;
  for (std::string text; std::getline(lines, text);) {
    EXPECT_TRUE(text.empty() || std::regex_match(text, line)) << text;
    if (text.find("->") != std::string::npos && text.find("[kind=") != std::string::npos) ++edges;
    if (text.find("[label=") != std::string::npos) ++vertices;
  }
  EXPECT_EQ(vertices, 3);
  EXPECT_EQ(edges, 4);
  EXPECT_THAT(outcome.out, HasSubstr(R"(label="a \"b\" <c>")"));
}

TEST_F(TopologyProgramTest, SvgIsWellFormedAndShowsEveryVertex) {
  Write("two.json", kTwo);
  const Outcome outcome = Execute("topology two.json --svg -o two.svg");
  EXPECT_EQ(outcome.code, 0) << outcome.err;
  EXPECT_EQ(outcome.out, "");
  pugi::xml_document document;
  ASSERT_TRUE(document.load_file((folder_ / "two.svg").c_str()));
  EXPECT_STREQ(document.first_child().name(), "svg");
  std::set<std::string> titles;
  for (const auto& node : document.select_nodes("//g/title"))
    titles.insert(node.node().child_value());
  EXPECT_EQ(titles, (std::set<std::string>{"g0", "g1", "a \"b\" <c>"}));
}

TEST_F(TopologyProgramTest, EveryPresetHasEveryView) {
  const auto presets = nlohmann::json::parse(Execute("list clusters --format json").out);
  for (const auto& preset : presets["clusters"]) {
    const std::string whole = preset["name"];
    const std::string name = whole.substr(0, whole.find(':'));
    for (const char* view : {"", " --matrix", " --dot", " --svg"}) {
      const Outcome outcome = Execute("topology " + name + view);
      EXPECT_EQ(outcome.code, 0) << name << view << ": " << outcome.err;
      EXPECT_GT(outcome.out.size(), 300u) << name << view;
    }
  }
}

TEST_F(TopologyProgramTest, APresetThatIsWrittenToAFileIsTheSameCluster) {
  for (const std::string preset : {"dgx-1-v100:nodes=3", "perlmutter:nodes=4,device=a100-80g"}) {
    ASSERT_EQ(Execute("topology " + preset + " -o box.json").code, 0);
    EXPECT_EQ(Execute("topology box.json").out, Execute("topology " + preset).out);
    const std::string collective = "collective all-reduce -b 64M --format json --cluster ";
    EXPECT_EQ(Execute(collective + "box.json").out, Execute(collective + preset).out);
    ASSERT_EQ(Execute("topology box.json -o again.json").code, 0);
    EXPECT_EQ(ReadFile(folder_ / "again.json"), ReadFile(folder_ / "box.json"));
    // Every vertex, if it is asked for.
    const Outcome graph = Execute("topology " + preset + " --graph");
    EXPECT_THAT(graph.out, HasSubstr("\"vertices\""));
    Write("graph.json", graph.out);
    EXPECT_EQ(Execute(collective + "graph.json").out, Execute(collective + preset).out);
  }
  // A summary, if it is asked for.
  ASSERT_EQ(Execute("topology dgx-a100 --format json -o summary.json").code, 0);
  EXPECT_EQ(nlohmann::json::parse(ReadFile(folder_ / "summary.json"))["schema"],
            "rehearse.topology.v1");
}

TEST_F(TopologyProgramTest, WhatCannotBeSaidDoesNotKeepAFileFromBeingWritten) {
  Write("smi.txt", "\tGPU0\tGPU1\nGPU0\tX\tNV4\nGPU1\tNV4\tX\n");
  for (const char* where : {"/dev/full", "&-"}) {
    EXPECT_EQ(
        Shell("\"$rehearse\" topology --import-smi smi.txt -o box.json 2>" + std::string(where)),
        0);
    EXPECT_EQ(Execute("topology box.json").code, 0) << where;
    std::filesystem::remove(folder_ / "box.json");
  }
}

// ---- imports ------------------------------------------------------------------------------------

constexpr const char* kNcclTopology = R"(<system version="1">
  <cpu numaid="0" affinity="ff" arch="x86_64" vendor="AuthenticAMD" familyid="143" modelid="49">
    <pci busid="0000:01:00.0" class="0x030200" vendor="0x10de" device="0x20b2" link_speed="16.0 GT/s PCIe" link_width="16">
      <gpu dev="0" sm="80" rank="0" gdr="1"/>
    </pci>
    <pci busid="0000:02:00.0" class="0x030200" vendor="0x10de" device="0x20b2" link_speed="16.0 GT/s PCIe" link_width="16">
      <gpu dev="1" sm="80" rank="1" gdr="1"/>
    </pci>
  </cpu>
</system>
)";

TEST_F(TopologyProgramTest, AnImportBecomesAClusterFileThatOtherCommandsTake) {
  Write("box.xml", kNcclTopology);
  const Outcome outcome = Execute("topology --import-nccl box.xml -o box.json");
  ASSERT_EQ(outcome.code, 0) << outcome.err;
  EXPECT_EQ(outcome.out, "");
  const auto json = Json("./box.json");
  EXPECT_EQ(json["devices"], 2);
  EXPECT_EQ(json["vertices"]["socket"], 1);
  const Outcome collective = Execute("collective all-reduce --cluster ./box.json");
  EXPECT_EQ(collective.code, 0) << collective.err;
}

TEST_F(TopologyProgramTest, WithoutAFileAnImportGoesToStandardOutputAndRemarksToStandardError) {
  Write("topo.txt", "\tGPU0\tGPU1\tCPU Affinity\nGPU0\t X \tPIX\t0-7\nGPU1\tPIX\t X \t0-7\n");
  const Outcome outcome = Execute("topology --import-smi topo.txt");
  ASSERT_EQ(outcome.code, 0) << outcome.err;
  EXPECT_TRUE(nlohmann::json::accept(outcome.out));
  EXPECT_THAT(outcome.err, StartsWith("rehearse: topo.txt: "));
  const Outcome other = Execute("topology --import-smi topo.txt --device a100-80g");
  EXPECT_THAT(other.out, HasSubstr("a100-80g"));
}

TEST_F(TopologyProgramTest, AnImportCanBeLookedAtAtOnce) {
  Write("box.xml", kNcclTopology);
  EXPECT_THAT(Execute("topology --import-nccl box.xml --svg").out, StartsWith("<svg"));
  EXPECT_THAT(Execute("topology --import-nccl box.xml --path 0,1").out, HasSubstr("whole path"));
}

// ---- mistakes -----------------------------------------------------------------------------------

TEST_F(TopologyProgramTest, MistakesAreSaidInOneMessage) {
  ExpectMistake("topology", {"no cluster given"});
  ExpectMistake("topology dgx-a10", {"dgx-a10", "did you mean \"dgx-a100\""});
  ExpectMistake("topology ./nowhere.json", {"nowhere.json"});
  ExpectMistake("topology dgx-a100 --path 0", {"--path", "two devices"});
  ExpectMistake("topology dgx-a100 --path 0,1,2", {"--path", "two devices"});
  ExpectMistake("topology dgx-a100 --path 0,8", {"--path", "0 to 7"});
  ExpectMistake("topology dgx-a100 --path 3,node0/gpu3", {"one device"});
  ExpectMistake("topology dgx-a100 --path 0,node0/gpu9", {"node0/gpu9", "did you mean"});
  ExpectMistake("topology dgx-a100 --path 0,node0/nic0", {"nic", "expected a device"});
  ExpectMistake("topology dgx-a100 --matrix --dot", {"--matrix and --dot"});
  ExpectMistake("topology dgx-a100 --ranks 0-3", {"--matrix"});
  ExpectMistake("topology dgx-a100 --matrix --ranks 0,0", {"--ranks", "twice"});
  ExpectMistake("topology dgx-a100:nodes=64 --matrix --ranks 0-300", {"at most 256"});
  ExpectMistake("topology dgx-a100 --svg --format json", {"--svg"});
  ExpectMistake("topology dgx-a100 --format yaml", {"yaml"});
  ExpectMistake("topology dgx-a100 --device a100-80g", {"--device"});
  ExpectMistake("topology dgx-a100 -o nowhere/x.txt", {"nowhere/x.txt"});
  ExpectMistake("topology dgx-a100 --import-smi x", {"one of"});
  ExpectMistake("topology --import-nccl nowhere.xml", {"nowhere.xml"});
  ExpectMistake("topology --import-nccl /", {"/: "});
  Write("no.xml", "<html/>");
  ExpectMistake("topology --import-nccl no.xml", {"no.xml"});
  ExpectMistake("topology --import-smi no.xml", {"no.xml"});
}

TEST_F(TopologyProgramTest, EditsOfAClusterFileAreShown) {
  Write("slow.json", R"({"preset": "dgx-a100", "nodes": 2,
                         "edits": [{"links": "node1/nic*", "bandwidth": "0.5x"}]})");
  EXPECT_THAT(Execute("topology ./slow.json").out, HasSubstr("12.5 GB/s"));
  Write("cut.json", R"({"preset": "dgx-a100", "nodes": 2,
                        "edits": [{"links": "node1/nic*", "down": true}]})");
  ExpectMistake("topology ./cut.json", {"cut.json:2", "/edits/0", "ranks 8-15"});
}

TEST_F(TopologyProgramTest, WhatLooksWrongIsSaidWithItsPlace) {
  Write("thin.json", "{\"preset\": \"dgx-h100\", \"nodes\": 2,\n \"nic\": \"800Gbps\"}");
  EXPECT_EQ(Execute("topology ./thin.json --check").out,
            "./thin.json:2: /nic: the cable of node0/nic0 carries 100 GB/s, but what joins it to "
            "its machine only 63 GB/s\n");
  EXPECT_EQ(Execute("topology dgx-h100:nodes=2 --check").out, "nothing looks wrong\n");
  EXPECT_THAT(Execute("topology ./thin.json --check --format csv").out,
              HasSubstr("./thin.json,2,/nic,"));
  ExpectMistake("topology dgx-h100 --check --bound", {"--bound and --check"});
}

TEST_F(TopologyProgramTest, BoundsOfAllReducesAreTwo) {
  const std::string text = Execute("topology dgx-h100:nodes=2 --bound").out;
  EXPECT_THAT(text, HasSubstr("all devices"));
  EXPECT_THAT(text, HasSubstr("leave node0, which carries 382 GB/s, if switches add"));
}

TEST_F(TopologyProgramTest, MachinesInOneLineAreListedWithThePresets) {
  EXPECT_THAT(Execute("list clusters").out, HasSubstr("dgx-h100:nodes=64,nics=4,nic=200Gbps"));
  EXPECT_THAT(Execute("topology dgx-h100:nodes=2,nics=4").out, HasSubstr("nic           8"));
}

}  // namespace topology_test
}  // namespace rehearse

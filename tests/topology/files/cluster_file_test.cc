#include "topology/files/cluster_file.h"

#include <filesystem>
#include <fstream>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "sim/base/json_document.h"
#include "topology/fabrics/router.h"

namespace rehearse {
namespace cluster_file_test {

using ::testing::AllOf;
using ::testing::HasSubstr;
using ::testing::StartsWith;

std::unique_ptr<Cluster> Read(const std::string& text) {
  const JsonDocument document = JsonDocument::FromText(text, "test.json");
  return ReadCluster(document.Root());
}

// What the error says; "" if there is none.
template <typename Function>
std::string ErrorOf(Function function) {
  try {
    function();
  } catch (const Error& error) {
    return error.what();
  }
  return "";
}

std::string ErrorOfText(const std::string& text) {
  return ErrorOf([&] { Read(text); });
}

// The example of topology/files/cluster_file.h; `with` replaces one piece of it by another.
std::string Example(const std::string& piece = "", const std::string& with = "") {
  std::string text = R"({ "name": "two GPUs on a switch", "device": "a100-40g",
  "vertices": [ {"name": "gpu0", "kind": "device"}, {"name": "gpu1", "kind": "device"},
                {"name": "sw", "kind": "switch"} ],
  "links": [ {"between": ["gpu0", "sw"], "kind": "nvlink", "bandwidth": "300GBps", "latency": "1us"},
             {"from": "gpu1", "to": "sw", "kind": "nvlink", "bandwidth": "300GBps", "latency": "1us"},
             {"from": "sw", "to": "gpu1", "kind": "nvlink", "bandwidth": "300GBps", "latency": "1us"} ],
  "step_overhead": "0us" })";
  if (piece.empty()) return text;
  const size_t at = text.find(piece);
  EXPECT_NE(at, std::string::npos) << piece;
  return text.replace(at, piece.size(), with);
}

// A folder that goes away with the test.
class Folder {
 public:
  Folder() {
    path_ = (std::filesystem::temp_directory_path() / "rehearse_XXXXXX").string();
    CHECK(mkdtemp(path_.data()) != nullptr);
  }
  ~Folder() { std::filesystem::remove_all(path_); }

  std::string Write(const std::string& name, const std::string& text) const {
    const std::filesystem::path path = std::filesystem::path(path_) / name;
    std::filesystem::create_directories(path.parent_path());
    std::ofstream(path) << text;
    return path.string();
  }

 private:
  std::string path_;
};

// ---- Graphs -------------------------------------------------------------------------------------

TEST(GraphFileTest, TheExampleOfTheDesignIsRead) {
  const auto cluster = Read(Example());
  EXPECT_EQ(cluster->name(), "two GPUs on a switch");
  ASSERT_EQ(cluster->device_count(), 2u);
  EXPECT_EQ(cluster->DeviceOf(1).name, "a100-40g");
  EXPECT_EQ(cluster->device_specs().size(), 1u);
  EXPECT_EQ(cluster->node_count(), 1u);  // no vertex says its machine: they are one
  ASSERT_EQ(cluster->link_count(), 4u);  // one between, two one-way
  EXPECT_EQ(cluster->LinkName(3), "sw->gpu1");
  EXPECT_EQ(cluster->Link(0).kind, LinkKind::kNvLink);
  Router router(*cluster);
  EXPECT_DOUBLE_EQ(router.Between(0, 1).latency.value(), 2e-6);
  EXPECT_EQ(router.Between(0, 1).bandwidth, BytesPerSecond(300e9));
}

TEST(GraphFileTest, EfficiencyNodeAndStepOverheadAreRead) {
  std::string text = Example("\"step_overhead\": \"0us\"", "\"step_overhead\": \"2us\"");
  const auto replace = [&](const std::string& piece, const std::string& with) {
    text.replace(text.find(piece), piece.size(), with);
  };
  replace("\"latency\": \"1us\"", "\"latency\": \"1us\", \"efficiency\": 0.5");
  replace("\"gpu0\", \"kind\": \"device\"", "\"gpu0\", \"kind\": \"device\", \"node\": \"m\"");
  replace("\"gpu1\", \"kind\": \"device\"", "\"gpu1\", \"kind\": \"device\", \"node\": \"n\"");
  const auto cluster = Read(text);
  EXPECT_DOUBLE_EQ(cluster->step_overhead().value(), 2e-6);
  EXPECT_EQ(cluster->Link(0).Capacity(), BytesPerSecond(150e9));  // half of 300
  EXPECT_EQ(cluster->Link(2).Capacity(), BytesPerSecond(300e9));
  EXPECT_EQ(cluster->NodeOf(1), "n");
  EXPECT_TRUE(Router(*cluster).Between(0, 1).crosses_nodes);
}

TEST(GraphFileTest, AVertexMayHaveADeviceOfItsOwn) {
  const auto cluster = Read(Example("\"gpu1\", \"kind\": \"device\"",
                                    "\"gpu1\", \"kind\": \"device\", \"device\": \"a100-80g\""));
  EXPECT_EQ(cluster->DeviceOf(0).name, "a100-40g");
  EXPECT_EQ(cluster->DeviceOf(1).name, "a100-80g");
}

TEST(GraphFileTest, ADeviceMayBeDescribedInPlace) {
  const auto cluster =
      Read(Example("\"a100-40g\"", R"({"name": "mine", "matrix_peak_16": "100TFLOPS",
      "memory": "32GiB", "memory_bandwidth": "900GBps", "memory_efficiency": 0.9, "launch_overhead": "4us"})"));
  const DeviceSpec& device = cluster->DeviceOf(0);
  EXPECT_EQ(device.name, "mine");
  EXPECT_EQ(device.matrix_peak_16, FlopsPerSecond(100e12));
  EXPECT_EQ(device.memory, Bytes(32.0 * 1024 * 1024 * 1024));
  EXPECT_EQ(device.memory_bandwidth, BytesPerSecond(900e9));
  EXPECT_EQ(device.memory_efficiency, 0.9);
  EXPECT_EQ(device.gemm_efficiency, 1);
  EXPECT_DOUBLE_EQ(device.launch_overhead.value(), 4e-6);
}

TEST(GraphFileTest, ADescribedDeviceNeedsItsMainFigures) {
  EXPECT_THAT(ErrorOfText(Example("\"a100-40g\"", R"({"name": "mine", "memory": "32GiB"})")),
              AllOf(HasSubstr("/device"), HasSubstr("matrix_peak_16")));
  EXPECT_THAT(ErrorOfText(Example("\"a100-40g\"", R"({"name": "mine", "matrix_peak": "1TFLOPS"})")),
              AllOf(HasSubstr("matrix_peak"), HasSubstr("did you mean")));
}

TEST(GraphFileTest, AnUnknownDeviceIsRefused) {
  EXPECT_THAT(ErrorOfText(Example("a100-40g", "a100-41g")),
              AllOf(StartsWith("test.json:1: /device: "), HasSubstr("did you mean \"a100-40g\"?")));
  EXPECT_THAT(ErrorOfText(Example("\"a100-40g\"", "7")), HasSubstr("/device"));
}

TEST(GraphFileTest, AGraphWithoutADeviceIsRefused) {
  EXPECT_THAT(
      ErrorOfText(R"({"name": "x", "vertices": [{"name": "s", "kind": "switch"}], "links": []})"),
      HasSubstr("cluster \"x\" has no device"));
}

TEST(GraphFileTest, ADeviceOfNoKnownKindIsRefused) {
  EXPECT_THAT(ErrorOfText(Example("\"device\": \"a100-40g\",", "")),
              AllOf(HasSubstr("/vertices/0"), HasSubstr("nothing says which device \"gpu0\" is")));
}

TEST(GraphFileTest, ASwitchIsNoDevice) {
  EXPECT_THAT(ErrorOfText(Example("\"kind\": \"switch\"",
                                  "\"kind\": \"switch\", \"device\": \"a100-40g\"")),
              AllOf(HasSubstr("/vertices/2/device"), HasSubstr("of kind switch")));
}

TEST(GraphFileTest, ADisconnectedGraphNamesTwoDevices) {
  EXPECT_THAT(
      ErrorOfText(Example(
          R"(,
             {"from": "sw", "to": "gpu1", "kind": "nvlink", "bandwidth": "300GBps", "latency": "1us"})",
          "")),
      AllOf(StartsWith("test.json:1: "), HasSubstr("\"gpu0\" has no path to device \"gpu1\"")));
}

TEST(GraphFileTest, ABandwidthIsPositiveAndHasAUnit) {
  for (const char* bad : {"\"0GBps\"", "\"-3GBps\"", "\"300\"", "300", "\"300GB\"", "\"nanGBps\""})
    EXPECT_THAT(ErrorOfText(Example("\"300GBps\"", bad)),
                AllOf(StartsWith("test.json:4: /links/0/bandwidth: "), HasSubstr("expected")))
        << bad;
}

TEST(GraphFileTest, ALatencyHasAUnitAndSomeSense) {
  for (const char* bad : {"\"-1us\"", "\"1\"", "1", "\"101s\""})
    EXPECT_THAT(ErrorOfText(Example("\"1us\"", bad)),
                AllOf(HasSubstr("/links/0/latency: "), HasSubstr("expected")))
        << bad;
  EXPECT_THAT(ErrorOfText(Example("\"0us\"", "\"1000s\"")), HasSubstr("/step_overhead: "));
}

TEST(GraphFileTest, AnEfficiencyIsAShare) {
  for (const char* bad : {"0", "-0.1", "1.5", "\"1\""})
    EXPECT_THAT(ErrorOfText(Example("\"latency\"",
                                    std::string("\"efficiency\": ") + bad + ", \"latency\"")),
                AllOf(HasSubstr("/links/0/efficiency: "), HasSubstr("expected")))
        << bad;
}

TEST(GraphFileTest, AnUnknownEndIsSuggested) {
  EXPECT_THAT(ErrorOfText(Example("\"from\": \"gpu1\"", "\"from\": \"gpu11\"")),
              AllOf(StartsWith("test.json:5: /links/1/from: "), HasSubstr("no vertex \"gpu11\""),
                    HasSubstr("did you mean \"gpu1\"?")));
}

TEST(GraphFileTest, ALinkHasTwoDifferentEnds) {
  EXPECT_THAT(ErrorOfText(Example("[\"gpu0\", \"sw\"]", "[\"gpu0\"]")),
              HasSubstr("/links/0/between"));
  EXPECT_THAT(ErrorOfText(Example("[\"gpu0\", \"sw\"]", "[\"sw\", \"sw\"]")),
              HasSubstr("to itself"));
  EXPECT_THAT(ErrorOfText(Example("\"from\": \"gpu1\", ", "")), HasSubstr("/links/1"));
  EXPECT_THAT(ErrorOfText(Example("\"from\": \"gpu1\", \"to\": \"sw\", ", "")),
              HasSubstr("\"between\" (both ways) or \"from\" and \"to\""));
  EXPECT_THAT(ErrorOfText(Example("\"from\": \"gpu1\"",
                                  "\"between\": [\"gpu1\", \"sw\"], \"from\": \"gpu1\"")),
              HasSubstr("\"between\" (both ways) or \"from\" and \"to\""));
}

TEST(GraphFileTest, ADuplicateVertexIsRefused) {
  EXPECT_THAT(
      ErrorOfText(Example("\"name\": \"gpu1\"", "\"name\": \"gpu0\"")),
      AllOf(StartsWith("test.json:2: /vertices/1/name: "), HasSubstr("another vertex \"gpu0\"")));
}

TEST(GraphFileTest, UnknownKindsAndKeysAreSuggested) {
  EXPECT_THAT(ErrorOfText(Example("\"kind\": \"switch\"", "\"kind\": \"swich\"")),
              AllOf(HasSubstr("/vertices/2/kind"), HasSubstr("did you mean \"switch\"?")));
  EXPECT_THAT(ErrorOfText(Example("\"kind\": \"nvlink\"", "\"kind\": \"nvlnk\"")),
              AllOf(HasSubstr("/links/0/kind"), HasSubstr("did you mean \"nvlink\"?")));
  EXPECT_THAT(ErrorOfText(Example("\"latency\"", "\"latncy\"")),
              HasSubstr("did you mean \"latency\"?"));
  EXPECT_THAT(ErrorOfText(Example("step_overhead", "step_overhed")),
              HasSubstr("did you mean \"step_overhead\"?"));
}

TEST(GraphFileTest, NamesAreNotEmpty) {
  EXPECT_THAT(ErrorOfText(Example("\"name\": \"sw\"", "\"name\": \"\"")),
              HasSubstr("/vertices/2/name"));
  EXPECT_THAT(ErrorOfText(Example("two GPUs on a switch", "")), HasSubstr("/name"));
}

// ---- Presets ------------------------------------------------------------------------------------

TEST(ClusterTextTest, APresetIsNamed) {
  EXPECT_EQ(Read(R"("perlmutter")")->device_count(), 4u);
  EXPECT_EQ(ReadClusterArgument("switch")->device_count(), 8u);
}

TEST(ClusterTextTest, APresetIsChanged) {
  const auto cluster = ReadClusterArgument("perlmutter:nodes=4,device=a100-80g");
  EXPECT_EQ(cluster->device_count(), 16u);
  EXPECT_EQ(cluster->DeviceOf(0).name, "a100-80g");
}

TEST(ClusterTextTest, BadChangesAreRefused) {
  const auto error = [](const std::string& text) {
    return ErrorOf([&] { ReadClusterArgument(text); });
  };
  EXPECT_THAT(error("perlmuter:nodes=4"), HasSubstr("did you mean \"perlmutter\"?"));
  EXPECT_THAT(error(""), HasSubstr("no cluster preset \"\""));
  EXPECT_THAT(error("perlmutter:"), HasSubstr("expected a change such as \"nodes=4\""));
  EXPECT_THAT(error("perlmutter:nodes"), HasSubstr("expected a change such as \"nodes=4\""));
  EXPECT_THAT(error("perlmutter:nodes=4,"), HasSubstr("expected a change such as \"nodes=4\""));
  EXPECT_THAT(error("perlmutter:nodes=four"),
              HasSubstr("\"nodes\" is \"four\", expected a whole number"));
  EXPECT_THAT(error("perlmutter:nodes=-1"), HasSubstr("expected a whole number"));
  EXPECT_THAT(error("perlmutter:nodes=99999999999"), HasSubstr("expected a whole number"));
  EXPECT_THAT(error("perlmutter:nodes=0"), HasSubstr("expected 1 to 262144"));
  EXPECT_THAT(error("perlmutter:nodes=2,nodes=3"), HasSubstr("appears twice"));
  EXPECT_THAT(error("perlmutter:nods=2"), HasSubstr("did you mean \"nodes\"?"));
  EXPECT_THAT(error("perlmutter:device=a100-4g"), HasSubstr("did you mean \"a100-40g\"?"));
}

TEST(ClusterTextTest, ABadTextInAScenarioHasItsPlace) {
  EXPECT_THAT(ErrorOfText("\n\"perlmutter:nodes=x\""), StartsWith("test.json:2: "));
  EXPECT_THAT(ErrorOfText("7"), HasSubstr("expected a cluster"));
}

TEST(ClusterObjectTest, APresetIsChangedByKeys) {
  const auto cluster = Read(R"({"preset": "perlmutter", "nodes": 4, "device": "a100-80g"})");
  EXPECT_EQ(cluster->device_count(), 16u);
  EXPECT_EQ(cluster->DeviceOf(15).name, "a100-80g");
}

TEST(ClusterObjectTest, BadChangesAreRefused) {
  EXPECT_THAT(
      ErrorOfText(R"({"preset": "perlmuter"})"),
      AllOf(StartsWith("test.json:1: /preset: "), HasSubstr("did you mean \"perlmutter\"?")));
  EXPECT_THAT(ErrorOfText(R"({"preset": "perlmutter", "nods": 4})"),
              HasSubstr("did you mean \"nodes\"?"));
  EXPECT_THAT(ErrorOfText(R"({"preset": "perlmutter", "nodes": 0})"), HasSubstr("/nodes: "));
  EXPECT_THAT(ErrorOfText(R"({"preset": "perlmutter", "nodes": "four"})"), HasSubstr("/nodes: "));
  EXPECT_THAT(ErrorOfText(R"({"preset": "perlmutter", "nodes": 1e99})"), HasSubstr("/nodes: "));
  EXPECT_THAT(ErrorOfText(R"({"nodes": 4})"), HasSubstr("\"preset\""));
}

// ---- Files --------------------------------------------------------------------------------------

TEST(ClusterPathTest, AFileHoldsAGraphOrAPreset) {
  const Folder folder;
  EXPECT_EQ(ReadClusterArgument(folder.Write("graph.json", Example()))->device_count(), 2u);
  EXPECT_EQ(
      ReadClusterArgument(folder.Write("preset.json", R"({"preset": "switch", "devices": 3})"))
          ->device_count(),
      3u);
}

TEST(ClusterPathTest, APathIsRelativeToTheFileItStandsIn) {
  const Folder folder;
  folder.Write("clusters/two.json", Example());
  const std::string scenario =
      folder.Write("scenarios/a.json", R"({"cluster": "../clusters/two.json"})");
  const JsonDocument document = JsonDocument::FromFile(scenario);
  EXPECT_EQ(ReadCluster(document.Root().At("cluster"))->device_count(), 2u);
}

TEST(ClusterPathTest, AMistakeInTheFileNamesTheFile) {
  const Folder folder;
  const std::string path = folder.Write("bad.json", Example("300GBps", "300"));
  EXPECT_THAT(ErrorOf([&] { ReadClusterArgument(path); }),
              StartsWith(path + ":4: /links/0/bandwidth: "));
}

TEST(ClusterPathTest, AFileThatIsMissingTruncatedOrATextIsRefused) {
  const Folder folder;
  EXPECT_THAT(ErrorOf([] { ReadClusterArgument("no/such.json"); }), HasSubstr("no/such.json"));
  EXPECT_THAT(ErrorOfText("\"no/such.json\""),
              AllOf(StartsWith("test.json:1: "), HasSubstr("no file \"no/such.json\"")));
  const std::string truncated = folder.Write("truncated.json", Example().substr(0, 200));
  EXPECT_THAT(ErrorOf([&] { ReadClusterArgument(truncated); }), StartsWith(truncated));
  const std::string text = folder.Write("text.json", "\"text.json\"");  // a file that names itself
  EXPECT_THAT(ErrorOf([&] { ReadClusterArgument(text); }), HasSubstr("expected a cluster"));
}

}  // namespace cluster_file_test
}  // namespace rehearse

// rehearse schema: the tables of all documents, against the files that we ship and write.
#include <algorithm>
#include <filesystem>
#include <fstream>
#include <regex>
#include <set>

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <nlohmann/json.hpp>

#include "sim/base/json_document.h"
#include "tests/support/places.h"
#include "tests/support/shape_check.h"
#include "tests/tools/program_fixture.h"
#include "tools/documents.h"

namespace rehearse {
namespace schema_test {

namespace fs = std::filesystem;
using ::testing::HasSubstr;
using Json = nlohmann::json;

const DocumentShape& Find(const std::string& name) {
  for (const DocumentShape& document : Documents()) {
    if (document.name == name) return document;
  }
  ADD_FAILURE() << "no document " << name;
  return Documents().front();
}

std::vector<fs::path> FilesIn(const std::string& folder) {
  std::vector<fs::path> files;
  for (const auto& entry : fs::directory_iterator(SourceDir() + "/scenarios/" + folder)) {
    if (entry.path().extension() == ".json") files.push_back(entry.path());
  }
  std::sort(files.begin(), files.end());
  return files;
}

Json Read(const fs::path& path) { return JsonDocument::FromFile(path.string()).value(); }

TEST(SchemaTest, EveryShippedFileIsWhatItsTableSays) {
  for (const auto& [folder, kind] :
       {std::pair("", "scenario"), {"studies", "study"}, {"schedules", "schedule"}}) {
    for (const fs::path& path : FilesIn(folder))
      EXPECT_EQ(Mismatch(Find(kind).shape, Read(path)), "") << path;
  }
}

// For every row of every document.
template <typename Visit>
void ForEachRow(Visit visit) {
  std::set<const ObjectShape*> seen;
  for (const DocumentShape& document : Documents()) {
    for (const ObjectShape* object : ObjectsIn(document.shape)) {
      if (!seen.insert(object).second) continue;
      for (const JsonKey& row : object->keys) visit(document, *object, row);
    }
  }
}

TEST(SchemaTest, EveryDefaultAndExampleIsOfItsOwnType) {
  ForEachRow([](const DocumentShape& document, const ObjectShape& object, const JsonKey& row) {
    const std::string where = document.name + ", " + object.name + ", " + row.name;
    if (row.presence.value != nullptr) {
      EXPECT_EQ(Mismatch(row.shape, *row.presence.value), "") << where;
    }
    if (!row.example.empty()) {
      EXPECT_EQ(Mismatch(row.shape, Json::parse(row.example)), "") << where;
    }
  });
}

TEST(SchemaTest, EveryKeyHasAnExampleOrTellsItsChoicesOrDefault) {
  ForEachRow([](const DocumentShape& document, const ObjectShape& object, const JsonKey& row) {
    if (document.name == "result") return;  // written only: nobody types it
    const bool speaks = !row.example.empty() || row.presence.value != nullptr ||
                        row.shape.type == JsonType::kChoice ||
                        row.shape.type == JsonType::kTrueFalse;
    EXPECT_TRUE(speaks) << document.name << ", " << object.name << ", " << row.name;
    EXPECT_FALSE(row.about.empty()) << object.name << ", " << row.name;
  });
}

// Keys that readers know in any other way would be missing from what `rehearse schema` prints.
TEST(SchemaTest, ReadersReadThroughTables) {
  const std::set<std::string> by_the_document = {
      "json_reader.cc",         // the function itself
      "sbp_reader.cc",          // names of the network's weights
      "schedule_read_role.cc",  // keys of all tables of ops, before it is known which
  };
  for (const char* folder : {"sim", "topology", "collectives", "workloads", "real", "scenarios"}) {
    for (const auto& entry : fs::recursive_directory_iterator(SourceDir() + "/" + folder)) {
      if (entry.path().extension() != ".cc") continue;
      std::ifstream file(entry.path());
      const std::string text(std::istreambuf_iterator<char>(file), {});
      if (text.find("AllowKeys(") == std::string::npos) continue;
      EXPECT_TRUE(by_the_document.count(entry.path().filename().string()) > 0)
          << entry.path() << " calls AllowKeys: As() with a table says the same to users";
    }
  }
}

// "a.b" for the keys of every object.
void KeysOf(const JsonShape& shape, std::set<std::string>* keys) {
  for (const JsonShape& part : shape.parts) KeysOf(part, keys);
  if (shape.type != JsonType::kObject) return;
  for (const JsonKey& row : shape.object().keys) {
    keys->insert(shape.object().name + "." + row.name);
    KeysOf(row.shape, keys);
  }
}

void FoundIn(const JsonShape& shape, const Json& value, std::set<std::string>* keys) {
  if (shape.type == JsonType::kObject) {
    for (const auto& [key, member] : value.items()) {
      keys->insert(shape.object().name + "." + key);
      const JsonKey* const row = shape.object().Find(key);
      if (row != nullptr) FoundIn(row->shape, member, keys);
    }
    return;
  }
  for (const JsonShape& part : shape.parts) {
    if (shape.type == JsonType::kEither && Mismatch(part, value).empty())
      FoundIn(part, value, keys);
    if (shape.type == JsonType::kNamed || shape.type == JsonType::kList) {
      for (const auto& [key, member] : value.items()) FoundIn(part, member, keys);
    }
  }
}

class SchemaProgramTest : public ProgramTest {};

TEST_F(SchemaProgramTest, ResultsHaveTheKeysOfTheTableAndNoOthers) {
  std::set<std::string> written;
  Write("shared.json", R"({"schema": "rehearse.calibration.v1", "collective_overhead": "10us",
                           "channel_overhead": "0us", "about": {"representative": false}})");
  Write("tree.json", R"({"name": "tree", "nodes": 8, "node": {"kind": "nvswitch", "devices": 4,
      "device": "a100-80g", "nvlink": {"bandwidth": "300GBps", "latency": "2us"},
      "pcie": {"bandwidth": "32GBps", "latency": "1us"}, "sockets": 1, "pcie_switches": 4,
      "nics": 4, "cable": {"bandwidth": "25GBps", "latency": "1us"}},
      "fabric": {"kind": "fat-tree", "radix": 8, "routing": "ecmp",
                 "cable": {"bandwidth": "25GBps", "latency": "1us"}}})");
  Write("busy.json", R"({"name": "busy", "cluster": "local-cpu:ranks=4",
      "jobs": [{"scenario": ")" +
                         Shipped("cpu-experts") + R"(", "placement": "round-robin"}]})");
  for (const std::string& arguments :
       {std::string("busy.json --set jobs.0.scenario.model.experts.imbalance=2 --set "
                    "jobs.0.scenario.training.batch=16"),
        Shipped("cpu-4d") + " --calibration shared.json",
        Shipped("axonn-gpt20b-perlmutter") +
            " --set simulator.algorithm=auto --set strategy.cached_layers=0" +
            " --set software=axonn --set training.kernels=eager --cost-model axonn",
        Shipped("strategy-data-parallel") + " --set cluster=tree.json --set strategy.data=32 " +
            "--set training.batch=64",
        Shipped("cpu-experts") + " --set model.experts.imbalance=2 --set training.batch=16",
        Shipped("cpu-pipeline"),
        Shipped("strategy-fsdp-llama") +
            R"( --set 'run={"tokens": "100G", "checkpoint": {"storage_bandwidth": "10GBps"}}')" +
            R"( --set 'costs={"gpu_hour": "2.5USD/h"}')",
        Shipped("llama-8b-offload") + " --set memory.headroom=5% --fidelity formula",
        Shipped("jobs-two-trainings") + " --set cluster=tree.json",
        Shipped("axonn-gpt20b-perlmutter") +
            R"( --set cluster.nodes=8 --set 'placement={"busy": 0.4}')",
        Shipped("jobs-two-trainings") + " --set jobs.0.repeat=2"}) {
    const Outcome run = Execute("run " + arguments + " --format json");
    ASSERT_EQ(run.code, 0) << run.err;
    const Json result = Json::parse(run.out);
    EXPECT_EQ(Mismatch(Find("result").shape, result), "") << arguments;
    FoundIn(Find("result").shape, result, &written);
  }
  std::set<std::string> told;
  KeysOf(Find("result").shape, &told);
  for (const std::string& key : told) EXPECT_TRUE(written.count(key) > 0) << key;
}

TEST_F(SchemaProgramTest, CalibrationsAndSchedulesThatAreWrittenAreWhatTheirTablesSay) {
  ASSERT_EQ(Execute("plan " + Shipped("cpu-4d") + " -o s.json").code, 0);
  EXPECT_EQ(Mismatch(Find("schedule").shape, Read(folder_ / "s.json")), "");
  ASSERT_EQ(Execute("topology dgx-a100:nodes=2 -o c.json").code, 0);
  EXPECT_EQ(Mismatch(Find("cluster").shape, Read(folder_ / "c.json")), "");
  Write("nccl.csv", "size,time\n1048576,40\n16777216,150\n67108864,500\n268435456,1900\n");
  ASSERT_EQ(
      Execute("compare nccl.csv --cluster dgx-a100 --kind all-reduce --calibration k.json").code,
      0);
  EXPECT_EQ(Mismatch(Find("calibration").shape, Read(folder_ / "k.json")), "");
}

TEST_F(SchemaProgramTest, TellsTheKeysOfAScenarioWithDefaultsAndExamples) {
  const Outcome page = Execute("schema scenario");
  EXPECT_EQ(page.code, 0);
  EXPECT_THAT(page.out, HasSubstr("micro_batches"));
  EXPECT_THAT(page.out, HasSubstr("a whole number from 1 to 65536; default 1; e.g. 4"));
  EXPECT_THAT(page.out, HasSubstr("strategy summa: SUMMA on q x q"));
  EXPECT_THAT(page.out,
              HasSubstr("Objects described elsewhere: rehearse schema cluster, rehearse schema "
                        "calibration, rehearse schema edits, rehearse schema perturbation"));
  EXPECT_THAT(Execute("schema schedule").out,
              HasSubstr("this rehearse reads no other version, older or newer"));
  EXPECT_THAT(page.out, HasSubstr("Files of this kind say no version: keys keep their meaning"));
  ExpectMistake("schema scenaro", {"did you mean \"scenario\"?", "Known are scenario, cluster"});
  ExpectMistake("schema --json", {"of which KIND?"});
  EXPECT_THAT(Execute("schema device-points").out, HasSubstr("microseconds     of the whole op"));
  EXPECT_THAT(Execute("schema").out, HasSubstr("device-points"));
  ExpectMistake("schema device-points --json", {"CSV"});
}

// Independent of all the above, if Python has a validator.
TEST_F(SchemaProgramTest, AnEditorsValidatorTakesWhatWeShipAndRefusesMistakes) {
  if (Shell("python3 -c 'import jsonschema' 2> /dev/null") != 0) GTEST_SKIP() << "no jsonschema";
  for (const char* kind : {"scenario", "cluster", "study", "schedule", "result"}) {
    ASSERT_EQ(Shell(std::string("$rehearse schema ") + kind + " --json > " + kind), 0);
  }
  const std::string script = R"(
import json, re, sys, jsonschema
schema = json.load(open(sys.argv[1]))
jsonschema.Draft7Validator.check_schema(schema)
validator = jsonschema.Draft7Validator(schema)
for path in sys.argv[2:]:
    print(path, file=sys.stderr)
    validator.validate(json.load(open(path)))
)";
  Write("validate.py", script);
  const auto validates = [&](const std::string& kind, const std::string& paths) {
    return Shell("python3 validate.py " + kind + " " + paths + " 2> err.txt") == 0;
  };
  for (const auto& [folder, kind] :
       {std::pair("", "scenario"), {"studies", "study"}, {"schedules", "schedule"}}) {
    std::string paths;
    for (const fs::path& path : FilesIn(folder)) paths += "'" + path.string() + "' ";
    EXPECT_TRUE(validates(kind, paths)) << ReadFile(folder_ / "err.txt");
  }
  EXPECT_FALSE(validates("scenario", Write("a.json", R"({"name": "x", "clustr": "dgx-a100"})")));
  const auto cluster_of = [&](const std::string& bandwidth) {
    return Write("c.json", R"({"name": "x", "vertices": [], "links": [{"between": ["a", "b"], )"
                           R"("kind": "nvlink", "latency": "1us", "bandwidth": ")" +
                               bandwidth + "\"}]}");
  };
  EXPECT_TRUE(validates("cluster", cluster_of("300GBps")));
  EXPECT_FALSE(validates("cluster", cluster_of("300")));
}

}  // namespace schema_test
}  // namespace rehearse

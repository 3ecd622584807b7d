// Chakra execution traces as JSON, of one rank.
#include "tests/fuzz/corpus.h"
#include "tests/fuzz/fuzz_target.h"
#include "tools/foreign/traces/chakra/chakra_read.h"

namespace rehearse {
namespace {

void ReadJsonTrace(std::string_view input) { ImportChakra({WriteFuzzFile("step.0.json", input)}); }

std::vector<std::string> JsonTraceSeeds() {
  return {R"({"version": "0.0.4"}
{"id": "1", "name": "a", "type": "COMP_NODE", "durationMicros": "5",
 "attr": [{"name": "is_cpu_op", "boolVal": false}]}
{"id": "2", "name": "b", "type": "COMM_COLL_NODE", "dataDeps": ["1"],
 "attr": [{"name": "comm_type", "int64Val": "0"}, {"name": "comm_size", "int64Val": "4096"},
          {"name": "pg_name", "stringVal": "0.0"}]}
)",
          R"({"workload_graph": [
{"Id": 1, "Name": "a", "NodeType": 4, "is_cpu_op": false, "runtime": 5, "data_deps": []},
{"Id": 2, "Name": "b", "NodeType": 7, "is_cpu_op": true, "data_deps": [1, 2, 9], "comm_type": 0,
 "comm_size": 4096}]}
)"};
}

std::vector<std::string> JsonTraceWords() {
  return {"\"workload_graph\": []", "\"schema\": \"1\"",  "\"nodes\"",        "\"type\": 7",
          "\"ctrlDeps\": [\"1\"]",  "\"data_deps\": [1]", "\"comm_type\"",    "\"comm_src\": 0",
          "\"comm_dst\": 0",        "\"comm_tag\"",       "\"num_ops\": 1e9", "}{"};
}

const FuzzTargetRow kJsonTraceRow({"chakra_json", ReadJsonTrace, JsonTraceSeeds, JsonTraceWords,
                                   FuzzLanguage::kJson});

}  // namespace
}  // namespace rehearse

// What-ifs on links and devices, applied to two machines.
#include "topology/files/edits.h"

#include "sim/base/json_document.h"
#include "sim/base/json_reader.h"
#include "tests/fuzz/corpus.h"
#include "tests/fuzz/fuzz_target.h"

namespace rehearse {
namespace {

void ReadEditsText(std::string_view input) {
  const JsonDocument document = JsonDocument::FromText(input, "edits.json");
  ApplyEdits(TwoMachines(), ReadEdits(document.Root()));
}

std::vector<std::string> EditsSeeds() {
  return {R"([{"links": "node1/nic*", "bandwidth": "0.5x"},
 {"devices": "node1/gpu2", "compute": "0.8x", "memory_bandwidth": "0.9x"},
 {"links": "**", "latency": "+2us"}])",
          R"([{"links": "node0/gpu0 -> **", "one_way": true, "bandwidth": "-5GBps"}])",
          R"([{"links": "node1/nic0", "down": true}, {"links": "*", "latency": "5us"}])",
          R"([{"links": "node[01]/nic{0,1}", "bandwidth": "20GBps"}])"};
}

std::vector<std::string> EditsWords() { return SchemaWords("edits"); }

const FuzzTargetRow kEditsRow({"edits", ReadEditsText, EditsSeeds, EditsWords,
                               FuzzLanguage::kJson});

}  // namespace
}  // namespace rehearse

// A machine drawn link by link, as `rehearse topology` and `rehearse import` write it; what was
// read and is written again reads the same.
#include "sim/base/error.h"
#include "sim/base/json_document.h"
#include "sim/base/json_reader.h"
#include "tests/fuzz/corpus.h"
#include "tests/fuzz/fuzz_target.h"
#include "topology/files/cluster_export.h"
#include "topology/files/cluster_file.h"

namespace rehearse {
namespace {

void ReadGraphText(std::string_view input) {
  if (NamesALargeMachine(input)) return;
  const JsonDocument document = JsonDocument::FromText(input, "graph.json");
  const std::unique_ptr<Cluster> cluster = ReadCluster(document.Root());
  std::string text;
  try {
    text = ClusterToText(*cluster);
  } catch (const Error&) {
    return;  // measured times cannot be written
  }
  const JsonDocument again = JsonDocument::FromText(text, "written.json");
  CHECK(ClusterToText(*ReadCluster(again.Root())) == text);
}

std::vector<std::string> GraphSeeds() {
  std::vector<std::string> seeds;
  for (const char* name : {"dgx-a100:nodes=2", "perlmutter:nodes=2", "atp-ic6:x=2,y=2", "atp-ic1"})
    seeds.push_back(ClusterToText(*ReadClusterArgument(name)));
  seeds.push_back(ClusterToText(*ReadClusterArgument("dgx-a100:nodes=2"), "dgx-a100:nodes=2"));
  return seeds;
}

std::vector<std::string> GraphWords() { return SchemaWords("cluster"); }

const FuzzTargetRow kGraphRow({"graph", ReadGraphText, GraphSeeds, GraphWords,
                               FuzzLanguage::kJson});

}  // namespace
}  // namespace rehearse

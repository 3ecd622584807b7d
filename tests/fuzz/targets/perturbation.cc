// What is not steady: a scenario's "perturbation", on two machines.
#include "scenarios/readers/perturbation.h"

#include "sim/base/json_document.h"
#include "sim/base/json_reader.h"
#include "tests/fuzz/corpus.h"
#include "tests/fuzz/fuzz_target.h"

namespace rehearse {
namespace {

void ReadPerturbationText(std::string_view input) {
  const JsonDocument document = JsonDocument::FromText(input, "perturbation.json");
  for (const Fidelity fidelity : {Fidelity::kFluid, Fidelity::kFormula})
    ReadPerturbation(document.Root(), TwoMachines(), fidelity);
}

std::vector<std::string> PerturbationSeeds() {
  return {
      R"({"seed": 7, "compute_jitter": 0.03, "link_jitter": 0.05})",
      R"({"stragglers": [{"devices": "node1/gpu1", "compute_time": "1.5x"}]})",
      R"({"events": [{"at": "12ms", "links": "node1/nic*", "bandwidth": "0.5x"},
 {"at": "20ms", "links": "node1/nic0", "fail": true},
 {"at": "25ms", "links": "node1/nic0", "recover": true}]})",
      R"({"events": [{"at": "1s", "links": "node0/**", "one_way": true, "bandwidth": "-5GBps"}]})"};
}

std::vector<std::string> PerturbationWords() { return SchemaWords("perturbation"); }

const FuzzTargetRow kPerturbationRow({"perturbation", ReadPerturbationText, PerturbationSeeds,
                                      PerturbationWords, FuzzLanguage::kJson});

}  // namespace
}  // namespace rehearse

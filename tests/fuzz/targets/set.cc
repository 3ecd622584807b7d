// `--set` of a scenario: one assignment per line.
#include <algorithm>

#include "scenarios/readers/scenario.h"
#include "sim/base/json_document.h"
#include "tests/fuzz/corpus.h"
#include "tests/fuzz/fuzz_target.h"
#include "tests/support/places.h"

namespace rehearse {
namespace {

void SetAndRead(std::string_view input) {
  if (NamesALargeMachine(input)) return;
  static const JsonDocument scenario =
      JsonDocument::FromFile(SourceDir() + "/scenarios/strategy-fsdp.json");
  JsonDocument changed = scenario;
  while (!input.empty()) {
    const size_t end = std::min(input.find('\n'), input.size());
    changed.Set(input.substr(0, end));
    input.remove_prefix(std::min(end + 1, input.size()));
  }
  ReadScenario(changed);
}

std::vector<std::string> SetSeeds() {
  return {"cluster.nodes=8\ntraining.batch=64",
          "cluster.node.nics=8",
          "simulator.fidelity=formula\nsimulator.channels=4",
          "strategy.data=2\nstrategy.prefetch=0",
          "model={\"preset\": \"gpt-5b\"}",
          "edits=[{\"links\": \"**\", \"latency\": \"+2us\"}]\nedits.0.latency=1us",
          "cluster=dgx-a100:nodes=2\ncluster.nodes=4\ncluster.device=h100",
          "name=x y\ndescription=\"z\""};
}

std::vector<std::string> SetWords() {
  std::vector<std::string> words = {"=", ".", "\n", "0.", "cluster.", "model.", "edits.0.", "["};
  for (const std::string& word : SchemaWords("scenario")) {
    words.push_back(word);
    if (word.size() > 2 && word.front() == '"') words.push_back(word.substr(1, word.size() - 2));
  }
  return words;
}

const FuzzTargetRow kSetRow({"set", SetAndRead, SetSeeds, SetWords});

}  // namespace
}  // namespace rehearse

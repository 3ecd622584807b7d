// Systems of ASTRA-sim, and what they make of two collectives.
#include "sim/base/json_document.h"
#include "sim/base/json_reader.h"
#include "sim/schedule/schedule_json.h"
#include "tests/fuzz/corpus.h"
#include "tests/fuzz/fuzz_target.h"
#include "tools/foreign/traces/astra_sim/dimension_collectives.h"

namespace rehearse {
namespace {

constexpr const char* kTwoCollectives =
    R"({"schema": "rehearse.schedule.v1", "ranks": 12,
  "communicators": [{"name": "all", "ranks": "all"},
                    {"name": "some", "mesh": {"members": [[3, 1]], "groups": [[4, 3]]}}],
  "ops": [{"name": "sum", "collective": "all-reduce", "communicator": "all", "bytes": "1MiB"},
          {"name": "share", "collective": "all-to-all", "communicator": "all", "bytes": "1MiB"},
          {"name": "few", "collective": "all-gather", "communicator": "some", "bytes": "1MiB"}]})";

void ReadAstraSystemFile(std::string_view input) {
  const JsonDocument document = JsonDocument::FromText(std::string(input), "system.json");
  const AstraSystem system = ReadAstraSystem(document.Root());
  static const JsonDocument step = JsonDocument::FromText(kTwoCollectives, "step");
  Schedule schedule = ReadSchedule(step.Root());
  std::vector<std::string> remarks;
  GoByDimension({{AstraShape::kRing, 4, BytesPerSecond(1e9), Seconds(1e-6)},
                 {AstraShape::kSwitch, 3, BytesPerSecond(2e9), Seconds(0)}},
                system, &schedule, &remarks);
  if (schedule.roles.front().ops.size() < 1000) WriteSchedule(schedule);
}

std::vector<std::string> AstraSystemSeeds() {
  return {R"({"scheduling-policy": "LIFO", "endpoint-delay": 10, "preferred-dataset-splits": 4,
  "active-chunks-per-dimension": 2, "all-reduce-implementation": ["ring", "direct"],
  "all-to-all-implementation": ["ring", "direct2"], "all-gather-implementation": ["ring", "ring"],
  "collective-optimization": "localBWAware", "local-mem-bw": 50, "boost-mode": 0})",
          R"({"all-reduce-implementation": ["halvingDoubling", "doubleBinaryTree"],
  "all-to-all-implementation": ["oneDirect"], "collective-optimization": "baseline"})"};
}

std::vector<std::string> AstraSystemWords() {
  return {"\"ring\"",
          "\"direct\"",
          "\"oneRing\"",
          "\"halvingDoubling\"",
          "\"doubleBinaryTree\"",
          "4096",
          "1e300",
          "-1",
          "\"localBWAware\"",
          "\"baseline\"",
          "[",
          "]",
          "null",
          "0"};
}

const FuzzTargetRow kAstraSystemRow({"astra_system", ReadAstraSystemFile, AstraSystemSeeds,
                                     AstraSystemWords});

}  // namespace
}  // namespace rehearse

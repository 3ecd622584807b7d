// Chakra execution traces. The input is several files, parted by kParting: traces by rank, and
// where the last begins with {, the JSON of their groups.
#include <filesystem>
#include <iterator>

#include <protozero/pbf_writer.hpp>

#include "sim/base/input_file.h"
#include "tests/fuzz/corpus.h"
#include "tests/fuzz/fuzz_target.h"
#include "tools/foreign/traces/chakra/chakra_format.h"
#include "tools/foreign/traces/chakra/chakra_read.h"
#include "tools/foreign/traces/chakra/chakra_write.h"

namespace rehearse {
namespace {

constexpr std::string_view kParting = "\n--8<--\n";
constexpr size_t kMostFiles = 16;

void ReadTraces(std::string_view input) {
  std::vector<std::string> paths;
  for (bool more = true; more && paths.size() < kMostFiles;) {
    const size_t end = input.find(kParting);
    more = end != std::string_view::npos;
    const std::string_view part = input.substr(0, end);
    const bool is_groups = !more && part.starts_with('{');
    const std::string name =
        is_groups ? "step.comm_groups.json" : "step." + std::to_string(paths.size()) + ".et";
    paths.push_back(WriteFuzzFile(name, part));
    if (more) input.remove_prefix(end + kParting.size());
  }
  ImportChakra(paths);
}

// The trace with one more node at its end.
std::string NotingGroups(std::string trace) {
  std::string inputs;
  protozero::pbf_writer(inputs).add_string(
      chakra::kInputValues, R"(['[{"pg_name": "0", "ranks": [0, 1], "group_size": 2}]'])");
  std::string node;
  protozero::pbf_writer writer(node);
  writer.add_uint64(chakra::kNodeId, 1'000'000);
  writer.add_string(chakra::kNodeName, chakra::kGroupsNode);
  writer.add_uint32(chakra::kNodeType, chakra::kMetadata);
  writer.add_message(chakra::kNodeInputs, inputs);
  protozero::write_varint(std::back_inserter(trace), node.size());
  return trace + node;
}

std::vector<std::string> TraceSeeds() {
  std::vector<std::string> seeds;
  const std::string folder = FuzzFolder() + "traces";
  for (const Schedule& schedule : SmallSchedules()) {
    if (schedule.ranks() > kMostFiles) continue;
    std::filesystem::remove_all(folder);
    const ChakraDevices devices{std::vector<uint32_t>(schedule.ranks(), 0),
                                [](uint32_t, const Op&) { return Seconds(1.5e-6); }};
    const ChakraFiles files = WriteChakra(schedule, {"step", ""}, devices, folder);
    std::string seed;
    for (uint32_t rank = 0; rank < files.ranks; ++rank) {
      seed += ReadInputFile(folder + "/step." + std::to_string(rank) + ".et");
      seed += kParting;
    }
    seed += ReadInputFile(folder + "/" + files.groups);
    // Without our own schedule in it, as others write it: what is under these keys is skipped.
    std::string foreign = seed;
    for (size_t at = foreign.find("rehearse"); at != std::string::npos;
         at = foreign.find("rehearse", at))
      foreign[at] = 'x';
    // With what PyTorch notes of its groups instead of the file.
    std::string noted = NotingGroups(foreign.substr(0, foreign.rfind(kParting)));
    for (std::string* text : {&seed, &foreign, &noted}) {
      if (text->size() <= kLongestInput) seeds.push_back(*text);
    }
  }
  std::filesystem::remove_all(folder);
  return seeds;
}

std::vector<std::string> TraceWords() {
  return {std::string(kParting),
          "comm_type",
          "comm_size",
          "comm_src",
          "comm_dst",
          "comm_tag",
          "pg_name",
          "num_ops",
          "tensor_size",
          "is_cpu_op",
          "{\"0\": [0, 1]}",
          chakra::kGroupsNode,
          "\"group_size\"",
          "\"ranks\"",
          "0.0.4",
          "\x08\x01",
          "\x10\x07",
          "\xff\xff\xff\xff\x0f"};
}

const FuzzTargetRow kChakraRow({"chakra", ReadTraces, TraceSeeds, TraceWords,
                                FuzzLanguage::kBytes});

}  // namespace
}  // namespace rehearse

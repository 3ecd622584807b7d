// Snapshots of PyTorch's allocator.
#include <nlohmann/json.hpp>

#include "tests/fuzz/corpus.h"
#include "tests/fuzz/fuzz_target.h"
#include "tools/foreign/traces/pytorch_memory/memory_snapshot.h"

namespace rehearse {
namespace {

void ReadFuzzedSnapshot(std::string_view input) {
  const MemorySnapshot snapshot = ReadMemorySnapshot(input, "snapshot.pickle", std::nullopt);
  ToText(snapshot, "snapshot.pickle", MemoryPicture(), false);
  (void)ToJson(snapshot, "snapshot.pickle").dump();
}

std::vector<std::string> SnapshotSeeds() {
  using namespace std::string_literals;
  return {R"({"segments": [{"device": 0, "address": 4096, "total_size": 2097152, "blocks": [)"
          R"({"size": 1024, "requested_size": 1000, "state": "active_allocated", "frames": []}]}],)"
          R"("device_traces": [[{"action": "segment_alloc", "addr": 4096, "size": 2097152},)"
          R"({"action": "alloc", "addr": 4096, "size": 1000, "time_us": 1, "frames": [)"
          R"({"filename": "a/model.py", "line": 8, "name": "forward"}]},)"
          R"({"action": "oom", "size": 99, "device_free": 7}]]})",
          "\x80\x04}\x94(\x8c\x08segments\x94]\x94\x8c\rdevice_traces\x94]\x94]\x94}\x94("
          "\x8c\x06"
          "action\x94\x8c\x05"
          "alloc\x94\x8c\x04"
          "addrK\x08\x8c\x04sizeM\x00\x02uaau."s,
          "<html>[{\"name\": \"snapshot.pickle\", \"base64\": "
          "\"gASVRAAAAAAAAAB9lCiMCHNlZ21lbnRzlF2UjA1kZXZpY2VfdHJhY2VzlF2U"
          "XZR9lCiMBmFjdGlvbpSMA29vbZSMBHNpemWUSwl1YWF1LgAA\"}]"};
}

std::vector<std::string> SnapshotWords() {
  using namespace std::string_literals;
  return {"alloc",
          "free_requested",
          "free_completed",
          "segment_alloc",
          "segment_free",
          "segment_map",
          "segment_unmap",
          "oom",
          "time_us",
          "requested_size",
          "total_size",
          "active_allocated",
          "inactive",
          "\x80\x05",
          "\x8c",
          "\x94",
          "\x95",
          "\x8a\x08",
          "(",
          "u",
          "e",
          "h\x00"s,
          "]",
          "}",
          ".",
          "\"base64\": \"",
          "2",
          "0"};
}

const FuzzTargetRow kSnapshotRow({"memory_snapshot", ReadFuzzedSnapshot, SnapshotSeeds,
                                  SnapshotWords, FuzzLanguage::kBytes});

}  // namespace
}  // namespace rehearse

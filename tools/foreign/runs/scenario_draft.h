// A scenario made from the settings of another program, key by key, with the place that each is
// from: what our own reader then refuses is reported at that place.
#pragma once

#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include <nlohmann/json.hpp>

#include "tools/foreign/runs/origin.h"

namespace rehearse {

// Limits of an imported run, so that checking it takes neither long nor much memory.
inline constexpr int64_t kMostDegree = 1 << 17;
inline constexpr int64_t kMostSequences = int64_t{1} << 32;        // per step
inline constexpr uint64_t kMostPipelineParts = uint64_t{1} << 20;  // stages x micro-batches

struct ImportedScenario {
  std::string text;  // of the file
  uint32_t ranks = 0;
  double parameters = 0;
  std::vector<std::string> remarks;
};

// The machine that the run is on.
struct ImportedMachine {
  nlohmann::ordered_json cluster;  // of a scenario
  uint64_t ranks = 0;
  Origin from;          // of the ranks
  bool spares = false;  // it has devices without a rank
  uint64_t of_node = 8;
};

// What a run is on unless --cluster says it: so many units of a preset as it needs.
struct AssumedMachine {
  const char* preset = "dgx-h100";
  const char* unit = "nodes";
  uint64_t devices = 8;  // of a unit
  uint64_t used = 8;     // of these; where several units are, a run takes as many of each
};

class ScenarioDraft {
 public:
  // `file` is what is imported; "-" is standard input.
  explicit ScenarioDraft(const std::string& file);

  const std::string& file() const { return file_; }
  void Remark(std::string remark) { remarks_.push_back(std::move(remark)); }
  // "not understood: ..."; of very many, only the first.
  void RemarkOnUnknown(const std::vector<std::string>& names);
  [[noreturn]] void Fail(const Origin& from, const std::string& message) const;

  // A value at a pointer such as "/strategy/tensor".
  void Set(const std::string& pointer, nlohmann::ordered_json value, const Origin& from = {});
  const nlohmann::ordered_json& json() const { return json_; }

  // Boxes of eight H100s if it is not called.
  void Assume(const AssumedMachine& machine) { assumed_ = machine; }

  // The machine of --cluster, otherwise the assumed one for as many ranks. Throws
  // Error if nothing says how many ranks there are; `hint` says what would.
  ImportedMachine PutOnMachine(const std::string& cluster, std::optional<uint64_t> ranks,
                               const Origin& from, const std::string& hint);

  // Reads it as `rehearse run` would. Throws Error at the place of what is impossible.
  ImportedScenario Finish();

 private:
  std::string file_;
  AssumedMachine assumed_;
  nlohmann::ordered_json json_;
  std::map<std::string, Origin, std::less<>> origins_;  // by pointer
  std::vector<std::string> remarks_;
};

// One of the numbers that the ranks are a product of.
struct Degree {
  uint64_t value = 1;
  Origin from;
};

// Ranks divided by the product of the degrees: those of data parallelism. Throws Error if there is
// a remainder.
uint64_t RanksLeft(const ScenarioDraft& draft, const ImportedMachine& machine,
                   const std::vector<Degree>& degrees);

// Parts of the batch that a rank computes one after the other. Throws Error if there is a
// remainder.
uint64_t MicroBatchesOf(const ScenarioDraft& draft, const Degree& batch, const Degree& micro_batch,
                        uint64_t data);

}  // namespace rehearse

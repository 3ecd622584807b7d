// A scenario that is made of what another program is told, key by key, with the place that each is
// from: what the house's reader then refuses is said of that place.
#pragma once

#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include <nlohmann/json.hpp>

#include "scenarios/imports/origin.h"

namespace rehearse {

// What an imported run may have at most, so that to check it takes neither long nor much memory.
inline constexpr int64_t kMostDegree = 1 << 17;
inline constexpr int64_t kMostSequences = int64_t{1} << 32;        // of a step
inline constexpr uint64_t kMostPipelineParts = uint64_t{1} << 20;  // stages x micro-batches

struct ImportedScenario {
  std::string text;  // of the file
  uint32_t ranks = 0;
  double parameters = 0;
  std::vector<std::string> remarks;
};

// The machine that a run is put on.
struct ImportedMachine {
  nlohmann::ordered_json cluster;  // of a scenario
  uint64_t ranks = 0;
  Origin from;          // of the ranks
  bool spares = false;  // it has devices that no rank is on
};

class ScenarioDraft {
 public:
  // `file` is what is imported, "-" standard input.
  explicit ScenarioDraft(const std::string& file);

  const std::string& file() const { return file_; }
  void Remark(std::string remark) { remarks_.push_back(std::move(remark)); }
  // "not understood: ..."; of very many only the first.
  void RemarkOnUnknown(const std::vector<std::string>& names);
  [[noreturn]] void Fail(const Origin& from, const std::string& message) const;

  // A value at a pointer such as "/strategy/tensor".
  void Set(const std::string& pointer, nlohmann::ordered_json value, const Origin& from = {});
  const nlohmann::ordered_json& json() const { return json_; }

  // The machine of --cluster, else as many boxes of eight H100 as make up these ranks. Throws Error
  // where nothing says how many there are; `hint` says what would.
  ImportedMachine PutOnMachine(const std::string& cluster, std::optional<uint64_t> ranks,
                               const Origin& from, const std::string& hint);

  // Reads it as `rehearse run` would. Throws Error at the place of what cannot be.
  ImportedScenario Finish();

 private:
  std::string file_;
  nlohmann::ordered_json json_;
  std::map<std::string, Origin, std::less<>> origins_;  // by pointer
  std::vector<std::string> remarks_;
};

// One of the numbers that the ranks are a product of.
struct Degree {
  uint64_t value = 1;
  Origin from;
};

// Ranks over the product of the degrees: those of data parallelism. Throws Error where it is not
// whole.
uint64_t RanksLeft(const ScenarioDraft& draft, const ImportedMachine& machine,
                   const std::vector<Degree>& degrees);

// Parts of the batch that a rank computes one after the other. Throws Error where it is not whole.
uint64_t MicroBatchesOf(const ScenarioDraft& draft, const Degree& batch, const Degree& micro_batch,
                        uint64_t data);

}  // namespace rehearse

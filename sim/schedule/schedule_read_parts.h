// What the readers of a schedule's parts share. Only for the files schedule_read*.cc.
#pragma once

#include <cstdint>
#include <limits>
#include <map>
#include <string>
#include <vector>

#include "sim/base/json_reader.h"
#include "sim/schedule/schedule.h"

namespace rehearse {

inline constexpr uint32_t kMostRanks = 1 << 24;
inline constexpr int64_t kMost32 = std::numeric_limits<int32_t>::max();
inline constexpr int64_t kMost64 = std::numeric_limits<int64_t>::max();

uint32_t CountAt(const JsonReader& reader, int64_t least, int64_t most = kMost32);
// Bytes may be zero where ops communicate or compute.
Bytes SizeOrNone(const JsonReader& reader);
// Reads one thing, or a list of them.
std::vector<JsonReader> OneOrMore(const JsonReader& reader);

// Things of one kind that are referred to by name, or by place.
class ListedNames {
 public:
  explicit ListedNames(std::string noun) : noun_(std::move(noun)) {}

  void Add(const std::string& name);
  uint32_t count() const { return count_; }

  uint32_t Find(const JsonReader& reader) const;
  // `name` was read from `reader`, where errors point.
  uint32_t FindNamed(const std::string& name, const JsonReader& reader) const;
  // The latest of this name so far.
  uint32_t FindLatest(const JsonReader& reader) const;
  bool Has(const std::string& name) const { return places_.contains(name); }

 private:
  std::string One() const { return (noun_.starts_with('e') ? "an " : "a ") + noun_; }
  std::string HintFor(const std::string& name) const;

  std::string noun_;
  uint32_t count_ = 0;
  std::map<std::string, std::vector<uint32_t>> places_;
  std::vector<std::string> names_;  // those that are not empty, in order
};

Communicator ReadCommunicator(const JsonReader& object, uint32_t ranks);

// `reader` must know a role's keys; it may know others. `schedule` has its communicators already.
Role ReadRole(const JsonReader& reader, const Schedule& schedule, const ListedNames& communicators);

}  // namespace rehearse

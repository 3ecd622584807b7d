// What the ranks of a step of PyTorch did together: their groups, which kernel of one rank met
// which of the others, and by how much the ranks' clocks differ.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "sim/schedule/schedule.h"
#include "tools/foreign/traces/kineto/kineto_file.h"

namespace rehearse {

// A KinetoTransfer, as far as it is understood.
struct KinetoWork {
  std::optional<CollectiveKind> collective;
  bool is_send = false;
  bool is_receive = false;
  DType dtype = DType::kBf16;
  Bytes bytes;
  uint32_t group = kNotGiven;
  uint32_t peer = 0;  // a member of the group

  // Whether it can be matched and simulated: what it is, how large, and between which of the
  // traces.
  bool is_understood() const { return group != kNotGiven && (collective || is_send || is_receive); }
};

struct KinetoGroup {
  std::string name;
  std::string axis;               // what it is called, unlike any other
  std::vector<uint32_t> members;  // positions of traces, ascending
};

// Kernels that met: for each of these ranks, the event at this position.
struct KinetoMeeting {
  std::vector<std::pair<uint32_t, uint32_t>> events;
  bool ends_together = false;
};

// Traces are of some of the ranks that there were, or of all.
struct KinetoRanksOfStep {
  std::vector<KinetoTrace> traces;  // by rank; their positions here are the ranks of what is made
  uint32_t world = 0;               // how many ranks there were
  std::vector<KinetoGroup> groups;  // those whose members all have traces
  std::vector<std::vector<KinetoWork>> works;  // by rank, as KinetoTrace::transfers

  bool is_whole() const { return traces.size() == world; }
};

// What the transfer is between so many members of a group; kNotGiven: of a group that is not known.
KinetoWork WorkInGroup(const KinetoTransfer& transfer, uint32_t group, uint32_t members);

// Sorts the traces by rank and finds their groups. Throws Error for ranks that appear twice and,
// where no trace is missing, groups whose members are not known.
KinetoRanksOfStep GatherRanks(std::vector<KinetoTrace> traces);
// "rank 3 of 64", "ranks 0, 8, 16 and 5 more of 64".
std::string RanksPresent(const KinetoRanksOfStep& ranks);

// Events of one step, by rank, in their order. Throws Error, naming two ranks, where collectives or
// messages do not match.
std::vector<KinetoMeeting> MatchEvents(const KinetoRanksOfStep& ranks,
                                       const std::vector<std::vector<uint32_t>>& events);

// What to add to each rank's times. `remark` says how well they agree then. Throws Error where no
// evenly running clocks could have measured these times.
struct KinetoClocks {
  std::vector<int64_t> later;  // picoseconds, by rank
  std::string remark;          // "": nothing was changed
};
KinetoClocks AlignClocks(const KinetoRanksOfStep& ranks,
                         const std::vector<KinetoMeeting>& meetings);

}  // namespace rehearse

// Two timelines of the same work, side by side: simulated and measured, or any two.
//
// Ops are told apart by name, kind, axis, phase, layer, micro-batch and their index among such ops
// on their rank; what is compared is the mean over all ranks that have the op, so that timelines
// with different numbers of ranks, or only one of which overlaps, can be compared as well.
// Differences are (a - b)/b; they are errors of a where it is simulated and b was measured,
// otherwise just how much longer one takes than the other.
//
// What explains the gap: at each moment a rank computes; or else one of its transfers is under way;
// or else it has arrived at one and waits for the others; or it does none of these (a stream waits
// for another one, or the rank is done). The means of the four over ranks sum to the step, so their
// differences sum to the gap. Order: a pair of ops of a rank that begins in one order in a and in
// the opposite order in b.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include <nlohmann/json_fwd.hpp>

#include "sim/base/quantity.h"
#include "sim/report/data_table.h"
#include "sim/report/timeline_record.h"

namespace rehearse {

struct StepShares {
  Seconds compute;
  Seconds communication;  // exposed
  Seconds waiting;
  Seconds nothing;
};

// How long one thing took in both. The difference is 0 where b took no time.
struct TimePair {
  Seconds a;
  Seconds b;

  double Difference() const { return b > Seconds(0) ? (a - b) / b : 0; }
};

struct ComparedOp {
  RecordedOp op;
  uint32_t occurrence = 0;  // on its rank, from 0
  TimePair time;            // mean over ranks; a transfer from when all had arrived
  TimePair waiting;         // before that; zero for compute
};

// Ops that have something in common, of those that both timelines have.
struct ComparedGroup {
  std::string name;
  size_t ops = 0;
  TimePair total;   // per rank
  TimePair median;  // of the ops' times
  double median_difference = 0;
  double median_absolute_difference = 0;
};

// How collectives of one axis, kind and size were carried out in both; several ways where
// groups differ.
struct ComparedChoice {
  std::string axis;
  std::string kind;
  Bytes bytes;
  std::vector<std::string> a;  // "ring, simple, 24 channels"
  std::vector<std::string> b;
};

// A value that was given, by its path ("strategy.depth"), as JSON; "" where there is none.
struct GivenDifference {
  std::string path;
  std::string a;
  std::string b;
};

struct Comparison {
  std::string a_title;
  std::string b_title;
  std::string a_file;  // where it was read, "" where it was not
  std::string b_file;
  // How the scenarios differ, except in their names; nothing if one of them is not known.
  std::optional<std::vector<GivenDifference>> given;
  std::vector<std::string> warnings;  // why the times may not be comparable
  Provenance a_provenance = Provenance::kSimulated;
  Provenance b_provenance = Provenance::kSimulated;
  // Ranks without spans, for which others of their roles count (sim/report/kept_ranks.h).
  size_t a_left_out = 0;
  size_t b_left_out = 0;
  TimePair step;
  StepShares a_shares;
  StepShares b_shares;
  // "unknown" or "partly unknown", where a measured timeline says that of how long ranks waited for
  // each other (kWaitingKey); "": it is known. What is not known counts as communication.
  std::string a_waiting;
  std::string b_waiting;
  std::vector<ComparedOp> ops;  // in a's order
  size_t only_in_a = 0;         // descriptions
  size_t only_in_b = 0;
  std::vector<ComparedGroup> kinds;
  std::vector<ComparedGroup> axes;
  std::vector<ComparedGroup> layers;
  std::vector<ComparedChoice> choices;  // where both results have them
  double pairs_out_of_order = 0;        // share, over ranks; 0 where the numbers of ranks differ
  std::string first_out_of_order;

  // Whether b is the truth, so that differences from it are errors.
  bool IsJudged() const {
    return a_provenance == Provenance::kSimulated && b_provenance == Provenance::kMeasured;
  }
  // The ops whose times differ most, in seconds; positions in `ops`.
  std::vector<size_t> Worst(size_t count) const;
};

// The key of a measured timeline's environment that says whether it is known how long ranks waited.
inline constexpr const char* kWaitingKey = "waiting";
inline constexpr const char* kWaitingUnknown = "unknown";
inline constexpr const char* kWaitingPartlyUnknown = "partly unknown";

// Compares the two medians.
Comparison Compare(const TimelineRecord& a, const TimelineRecord& b);

// Compares two results (rehearse.result.v1), which have the step, its shares (with waiting counted
// as doing nothing), the axes and how collectives were carried out, but no ops. Throws Error if
// something is missing.
Comparison CompareResults(const JsonReader& a, const JsonReader& b);

// `rows`: at most this many of each list. If not given, ten of the ops that differ most, and all of
// the other lists; in a table, all ops. The JSON has all lists except the ops.
std::string ToText(const Comparison& comparison, bool color, std::optional<size_t> rows = {});
nlohmann::ordered_json ToJson(const Comparison& comparison, std::optional<size_t> rows = {});
// A row for the step, each part of the gap, each group and each op: `list` says which it is.
DataTable TableOf(const Comparison& comparison, std::optional<size_t> rows = {});

}  // namespace rehearse

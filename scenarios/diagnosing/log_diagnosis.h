// What is wrong where a log of nccl-tests is slower than it should be.
//
// Every cause of the table (scenarios/diagnosing/collective_cause.h) is simulated on the machine,
// and weighed (scenarios/diagnosing/weighing.h); nothing is wrong until the log speaks against it.
// What would make the log faster is no cause, and a log that is faster than expected has none.
// Causes that the log cannot tell apart are one finding. Where no cause alone does, two at once are
// looked for (scenarios/diagnosing/pairs.h).
#pragma once

#include <optional>
#include <string>
#include <vector>

#include <nlohmann/json_fwd.hpp>

#include "real/calibration/nccl_table.h"
#include "scenarios/diagnosing/cause_curve.h"
#include "scenarios/diagnosing/evidence.h"
#include "scenarios/diagnosing/pairs.h"

namespace rehearse {

struct DiagnosedRow {
  size_t table = 0;
  Bytes bytes;
  Seconds measured;
  Seconds expected;
  std::optional<Seconds> explained;  // by the first finding's first cause
};

// Another collective on the same machine, of which causes predict different times.
struct OtherMeasurement {
  std::string what;                  // "an all-reduce of 1 GiB within the first box"
  std::string command;               // "all_reduce_perf -b 1G -e 1G -g 8"
  CollectiveRun run;                 // one trial, of all ranks of the log's first group
  std::vector<uint32_t> ranks = {};  // those that take part; none: all
  Bytes bytes;
  Seconds expected;
};

struct SuspectedCause : WeighedStrength {
  const CollectiveCause* cause = nullptr;
  // The other of two at once; null: it is alone.
  const CollectiveCause* also = nullptr;
  double also_strength = 0;
  double probability = 0;
  double explained = 0;            // share of the gap, 0 to 1
  double remaining = 0;            // what is left at a size, as a share, in the median
  std::optional<Bytes> from = {};  // the sizes that it changes by more than 5 %
  std::optional<Bytes> to = {};
  std::vector<Seconds> elsewhere = {};  // of the other measurements; zero where they cannot be
};

// "slow-cable", or "slow-cable and nvls-off".
std::string NameOf(const SuspectedCause& suspect);

struct Finding {
  std::vector<SuspectedCause> causes;  // the likeliest first
  double probability = 0;
  // The other measurement in which the causes differ most, and by which factor; none if it is less
  // than a tenth, or there is one cause.
  std::optional<size_t> tells_apart;
  double tells_apart_by = 1;
};

struct LogDiagnosis {
  std::vector<std::string> tables;  // "all-reduce of 16 ranks"
  std::vector<DiagnosedRow> rows;
  double median_factor = 1;  // measured/expected
  double largest_factor = 1;
  Bytes largest_at;
  double noise = 0;           // of a row, as a share
  double model_error = 0;     // what predictions are off by at the largest size
  double chance = 1;          // of such a gap by itself
  double nothing_wrong = 1;   // probability
  double something_else = 0;  // probability of a cause that the table lacks
  bool is_faster = false;     // by more than chance, mean over sizes; then nothing is looked for
  bool is_something_wrong = false;
  std::vector<Finding> findings;  // the likeliest first; none if nothing is wrong
  std::vector<OtherMeasurement> elsewhere;
};

// What does not depend on what was measured: expected times and those of all causes. May serve many
// logs of the same machine, tables and sizes.
class LogExpectation {
 public:
  // Throws Error where the run cannot be simulated.
  LogExpectation(const CollectiveRun& run, SizesOfTables sizes);

  const CollectiveRun& run() const { return run_; }
  const SizesOfTables& sizes() const { return sizes_; }
  const std::vector<double>& expected() const { return expected_; }
  const std::vector<CauseCurve>& curves() const { return curves_; }
  // The logarithms of the times with two of the curves' causes; nothing where they cannot be.
  std::optional<std::vector<double>> WithBoth(const PairStrengths& pair) const;
  // What a prediction of each row is off by when nothing is wrong: the model's error, and what the
  // seed of hashed routes may do.
  const std::vector<double>& errors() const { return errors_; }

 private:
  SizesOfTables sizes_;
  std::vector<double> errors_;
  CollectiveRun run_;
  std::vector<double> expected_;
  std::vector<CauseCurve> curves_;
};

// `measured` by row, table after table. Other measurements are left out.
LogDiagnosis WeighCauses(const LogExpectation& expectation, const std::vector<Seconds>& measured);

// The whole: at most kMostUsedRows sizes of each table are used, evenly from the first to the last.
inline constexpr size_t kMostUsedRows = 14;
LogDiagnosis DiagnoseLog(const CollectiveRun& run, const std::vector<NcclTable>& tables);

std::string ToText(const LogDiagnosis& diagnosis, size_t most_findings);
nlohmann::ordered_json ToJson(const LogDiagnosis& diagnosis);

}  // namespace rehearse

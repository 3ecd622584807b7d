// Steps that others have measured, beside what is predicted for them: the table of
// `rehearse validate`, as a CSV file.
//
// A row is a run. A column whose name is none of these is a path of the scenario, as --set takes it
// ("training.batch", "strategy.kind"), and its cell the value; an empty cell says nothing of it. So
// a row becomes a scenario, and every check of scenarios applies.
//
//   name             of the row; no two are the same
//   source           where it is published
//   group            what it is compared within; without one "DEVICE, SOFTWARE", or the strategy's
//                    kind where no software is named
//   note             for people
//   step             measured: "0.853s"; a time with its unit. Each row has one of these three:
//   tokens_per_second   of all GPUs
//   mfu              a share of the peak from 0 to 1, of the operations that Rehearse counts
//   memory           measured: "60.5GiB" on the fullest GPU; optional
//
// Where a plan does not fit the memory it is played all the same, for the run did.
#pragma once

#include <functional>
#include <optional>
#include <string>
#include <vector>

#include "scenarios/readers/scenario.h"
#include "sim/base/csv_file.h"
#include "sim/base/json_document.h"
#include "sim/base/progress.h"

namespace rehearse {

struct MeasuredRow {
  std::string name;
  std::string source;
  std::string group;
  int line = 0;
  JsonDocument document;
  std::optional<Seconds> step;  // one of three
  std::optional<double> tokens_per_second;
  std::optional<double> mfu;
  std::optional<Bytes> memory;
};

struct ValidationTable {
  std::string name;  // the file's
  std::vector<MeasuredRow> rows;
};

// Throws Error (file, line) for what is no such table; `changes` are those of --set, to every row.
ValidationTable ReadValidationTable(const CsvFile& file, const std::vector<std::string>& changes);

// A step by what its time goes into: kernels by their kind, without what it takes to launch them,
// their launches, and the time in which no kernel runs. Means over ranks, they sum to the step.
enum class StepPart : uint8_t { kGemm, kAttention, kMemory, kLaunches, kCommunication, kIdle };
inline constexpr size_t kStepParts = 6;
const char* Name(StepPart part);  // "gemm", ..., "idle"

struct ValidatedRow {
  Seconds measured;
  Seconds predicted;  // typically (scenarios/playing/typical_step.h), where devices differ
  double error = 0;   // predicted / measured - 1
  double measured_mfu = 0;
  double predicted_mfu = 0;
  std::vector<Seconds> parts;  // by StepPart
  // The factor of each part that would make the step as long as measured if all else stayed;
  // nothing where none would.
  std::vector<std::optional<double>> factors;
  Bytes memory;  // predicted
  std::optional<double> memory_error;
};

// Rows of one device and software.
struct ValidatedGroup {
  std::string name;
  std::vector<size_t> rows;
  double mean = 0;    // of the errors without their signs
  double median = 0;  // likewise
  double bias = 0;    // the mean with signs
  size_t within = 0;  // 10 %
  // Pairs of rows that are measured more than 2 points of MFU apart, and those among them whose
  // predictions are ordered alike.
  size_t pairs = 0;
  size_t ordered = 0;
  size_t memory_rows = 0;  // that publish memory
  double memory_mean = 0;
  double memory_worst = 0;
};

struct Validation {
  std::vector<ValidatedRow> rows;      // as the table's
  std::vector<ValidatedGroup> groups;  // in order of their first rows; then all, if there are more
};

inline constexpr double kNearEnough = 0.10;
inline constexpr double kApart = 0.02;

// Plays all rows, `threads` at a time, 0: one a core. Throws Error (file, line) for rows that
// cannot be played, the first by line.
Validation Validate(const ValidationTable& table, unsigned threads, ProgressObserver& observer);
// When `is_stopped` says so no row is begun any more, and those that were not are taken out of the
// table. Throws Stopped when that leaves none.
Validation Validate(ValidationTable* table, unsigned threads, ProgressObserver& observer,
                    const std::function<bool()>& is_stopped);

// The same from measured and predicted steps on.
ValidatedGroup Judge(std::string name, std::vector<size_t> members,
                     const std::vector<ValidatedRow>& rows);

}  // namespace rehearse

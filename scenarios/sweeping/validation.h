// Steps that others have measured, compared with what is predicted for them: the table of
// `rehearse validate`, as a CSV file.
//
// A row is a run. Any column not listed here is a path of the scenario, as --set takes it
// ("training.batch", "strategy.kind"), and its cell is the value; an empty cell sets nothing. So a
// row becomes a scenario, and every check of scenarios applies.
//
//   name             of the row; no two are the same
//   source           where it is published
//   group            what it is compared within; by default "DEVICE, SOFTWARE", or the strategy's
//                    kind if no software is named
//   note             for people
//   step             measured: "0.853s"; a time with its unit. Each row has one of these three:
//   tokens_per_second   of all GPUs
//   mfu              a share of the peak from 0 to 1, of the operations that Rehearse counts
//   memory           measured: "60.5GiB" of arrays on the fullest GPU, as PyTorch's
//                    max_memory_allocated() counts; optional
//   memory_reserved  measured: with what the allocator keeps idle, as max_memory_reserved() counts;
//                    optional, instead
//
// A plan that does not fit the memory is still played, because the run did fit.
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
  std::optional<Bytes> memory_reserved;

  std::optional<Bytes> Memory() const { return memory ? memory : memory_reserved; }
};

struct ValidationTable {
  std::string name;  // the file's
  std::vector<MeasuredRow> rows;
};

// Throws Error (file, line) if it is not such a table; `changes` are those of --set, to every row.
ValidationTable ReadValidationTable(const CsvFile& file, const std::vector<std::string>& changes);

// The parts of a step's time: kernels by their kind, without the time to launch them; their
// launches; and the time in which no kernel runs. Means over ranks that add up to the step.
enum class StepPart : uint8_t { kGemm, kAttention, kMemory, kLaunches, kCommunication, kIdle };
inline constexpr size_t kStepParts = 6;
const char* Name(StepPart part);  // "gemm", ..., "idle"

struct ValidatedRow {
  Seconds measured;
  Seconds predicted;  // the typical step (scenarios/playing/typical_step.h) if devices differ
  double error = 0;   // predicted / measured - 1
  double measured_mfu = 0;
  double predicted_mfu = 0;
  std::vector<Seconds> parts;  // by StepPart
  // For each part, the factor that alone would make the step as long as measured; nothing if there
  // is none.
  std::vector<std::optional<double>> factors;
  Bytes memory;  // predicted, as the row counts
  std::optional<double> memory_error;
  bool fits = true;  // predicted
  // What it is judged by: what the fullest rank needs, with driver and libraries, and its device.
  Bytes memory_needed;
  Bytes memory_capacity;
};

// Rows of one device and software.
struct ValidatedGroup {
  std::string name;
  std::vector<size_t> rows;
  double mean = 0;    // of the absolute errors
  double median = 0;  // likewise
  double bias = 0;    // the mean with signs
  size_t within = 0;  // 10 %
  // Pairs of rows measured more than 2 points of MFU apart, and those among them whose predictions
  // are in the same order.
  size_t pairs = 0;
  size_t ordered = 0;
  size_t memory_rows = 0;  // with published memory
  size_t memory_fits = 0;  // predicted to fit; all did
  double memory_mean = 0;
  double memory_worst = 0;
};

struct Validation {
  std::vector<ValidatedRow> rows;  // as the table's
  std::vector<ValidatedGroup>
      groups;  // in the order of their first rows; then all, if there are several
};

inline constexpr double kNearEnough = 0.10;
inline constexpr double kApart = 0.02;

// Plays all rows, `threads` at a time (0: one per core). Throws Error (file, line) for the first
// row that cannot be played.
Validation Validate(const ValidationTable& table, unsigned threads, ProgressObserver& observer);
// When `is_stopped` says so no row is begun any more, and those that were not are taken out of the
// table. Throws Stopped when that leaves none.
Validation Validate(ValidationTable* table, unsigned threads, ProgressObserver& observer,
                    const std::function<bool()>& is_stopped);

// The same, starting from measured and predicted steps.
ValidatedGroup Judge(std::string name, std::vector<size_t> members,
                     const std::vector<ValidatedRow>& rows);

}  // namespace rehearse

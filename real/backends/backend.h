// What a kind of device has to offer so that a rank's part of a Schedule runs on it: memory that
// can be written and read, and a step.
//
// One Backend belongs to one rank; its functions are called from one thread. The CPU's is in
// real/cpu/cpu_backend.h. Values cross as doubles, row by row, whatever the device computes in.
#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <string>
#include <vector>

#include "real/backends/library_choice.h"
#include "real/backends/rank_plan.h"
#include "real/kernels/kernel_call.h"
#include "real/transports/transport.h"
#include "sim/base/error.h"

namespace rehearse {

// When the ops of a step were ready, and ended, in nanoseconds of the rank's own clock. An op of
// communication is ready when the rank arrives; when the transfer begins follows from all arrivals.
struct OpTime {
  int64_t ready = kNever;
  int64_t end = kNever;

  static constexpr int64_t kNever = -1;
};

// Ways of doing a step that cost differently; the numbers are the same.
enum class StepMode : uint8_t {
  kTimedOps,  // every op is timed
  kWhole,     // the step is timed, its ops are not
  kGraph,     // so too; all ops are launched at once, as the first step in this mode captured them
};

class Backend {
 public:
  virtual ~Backend() = default;
  // What it is, for the record: library and processor.
  virtual std::string Description() const = 0;
  // What it computes in.
  virtual DType arithmetic() const = 0;

  // All elements of a buffer (or view), rows × columns, or those of its first rows.
  virtual void Write(BufferId buffer, const std::vector<double>& values) = 0;
  virtual std::vector<double> Read(BufferId buffer) const = 0;  // all
  // Every element of the buffer's memory, padding included. Not for views.
  virtual void Fill(BufferId buffer, double value) = 0;

  // Runs all ops; times->at(op) is written as each ends, so that a step that fails leaves those
  // that did. Losses are appended when facts.keep_loss. Throws Error or RankLost, naming the op.
  virtual void Step(const StepFacts& facts, std::vector<OpTime>* times,
                    std::vector<RowLoss>* losses) = 0;

  // How steps are done from now on; false where the backend has no such way.
  virtual bool Use(StepMode /*mode*/) { return false; }

  // How the last step's communication was carried out, by op, as far as its library tells.
  virtual std::vector<LibraryChoice> Choices() const { return {}; }
};

// Makes a rank's backend; plan and transport outlive it. All ranks call it at the same time.
using BackendFactory =
    std::function<std::unique_ptr<Backend>(const RankPlan& plan, Transport& transport)>;

// Of the values that are given to Write.
inline uint64_t RowsOf(const std::vector<double>& values, uint64_t columns) {
  if (values.empty()) return 0;
  CHECK_EQ(values.size() % columns, 0u);
  return values.size() / columns;
}

}  // namespace rehearse

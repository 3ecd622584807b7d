// What a kind of device has to offer to run a rank's part of a Schedule: memory that can be written
// and read, and a step.
//
// One Backend belongs to one rank; its functions are called from one thread. The CPU's is in
// real/cpu/cpu_backend.h. Values are passed as doubles, row by row, whatever the device computes
// in.
#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "real/backends/library_choice.h"
#include "real/backends/rank_plan.h"
#include "real/kernels/kernel_call.h"
#include "real/transports/transport.h"
#include "sim/base/error.h"
#include "sim/schedule/memory.h"

namespace rehearse {

// When an op of a step was ready and when it ended, in nanoseconds of the rank's own clock. A
// communication op is ready when the rank arrives; all arrivals decide when the transfer begins.
struct OpTime {
  int64_t ready = kNever;
  int64_t end = kNever;

  static constexpr int64_t kNever = -1;
};

// Ways to do a step with different costs; the numbers are the same.
enum class StepMode : uint8_t {
  kTimedOps,  // every op is timed
  kWhole,     // the step is timed, its ops are not
  kGraph,     // as kWhole, and all ops are launched at once, as the mode's first step captured them
};

class Backend {
 public:
  virtual ~Backend() = default;
  // Describes it for the record: library and processor.
  virtual std::string Description() const = 0;
  // What it computes in.
  virtual DType arithmetic() const = 0;

  // Writes all elements of a buffer (or view), rows × columns, or those of its first rows.
  virtual void Write(BufferId buffer, const std::vector<double>& values) = 0;
  virtual std::vector<double> Read(BufferId buffer) const = 0;  // all
  // Writes every element of the buffer's memory, padding included; views cannot be filled.
  virtual void Fill(BufferId buffer, double value) = 0;

  // Runs all ops; times->at(op) is written when each ends, so that a failed step still has the
  // times of those that did. Losses are appended if facts.keep_loss. Throws Error or RankLost,
  // naming the op.
  virtual void Step(const StepFacts& facts, std::vector<OpTime>* times,
                    std::vector<RowLoss>* losses) = 0;

  // Sets how steps are done from now on; false if the backend cannot do that.
  virtual bool Use(StepMode /*mode*/) { return false; }

  // What its arrays took, counted in its first step; nothing if it does not count.
  virtual std::optional<MemoryUse> CountedMemory() const { return {}; }

  // How the last step's communication was run, by op, as far as its library says.
  virtual std::vector<LibraryChoice> Choices() const { return {}; }
};

// Makes a rank's backend; plan and transport must outlive it. All ranks call it at the same time.
using BackendFactory =
    std::function<std::unique_ptr<Backend>(const RankPlan& plan, Transport& transport)>;

// How many rows the values given to Write have.
inline uint64_t RowsOf(const std::vector<double>& values, uint64_t columns) {
  if (values.empty()) return 0;
  CHECK_EQ(values.size() % columns, 0u);
  return values.size() / columns;
}

}  // namespace rehearse

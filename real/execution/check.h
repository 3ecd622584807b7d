// Do the ranks compute what one rank computes? Compares loss, gradients and updated parameters of a
// distributed step with those of the serial schedule of the same network.
//
// Both begin with the same numbers (real/kernels/numbers.h), compute in double, and have arrays
// with the same names. Every rank's piece counts, also replicas. A difference is relative to the
// largest element of the array (or of all arrays of its kind times 1e-6, for arrays that are zero
// except for rounding).
#pragma once

#include <cstdint>
#include <map>
#include <string>
#include <vector>

#include "real/backends/backend.h"
#include "real/transports/transport.h"
#include "sim/schedule/schedule.h"

namespace rehearse {

struct GlobalArray {
  BufferKind kind = BufferKind::kParameter;
  uint64_t rows = 0;
  uint64_t columns = 0;
  std::vector<double> values;
};

struct StepNumbers {
  double loss = 0;  // mean over the step's tokens (or samples)
  // Parameters after the step, and gradients, by buffer name.
  std::map<std::string, GlobalArray> arrays;
};

// The numbers of one step of a schedule with one rank. Throws Error if it has more.
StepNumbers ComputeSerially(const Schedule& serial, uint64_t seed);

struct ArrayDifference {
  std::string name;
  BufferKind kind = BufferKind::kParameter;
  double relative = 0;  // largest difference over all ranks; infinite if something is not a number
  uint32_t rank = 0;    // where that is
};

struct CheckReport {
  double serial_loss = 0;
  double loss = 0;
  std::vector<ArrayDifference> arrays;  // in the order of names
  std::vector<std::string> missing;     // arrays of the serial step that no rank holds

  double LossDifference() const;  // relative
  double WorstOf(BufferKind kind) const;
  bool Passes(double tolerance) const;
};

// Runs one step of `planned` on all ranks of the transport and compares on rank 0; elsewhere the
// report is empty. `serial` is needed only on rank 0. The ranks run on what `backend` makes, by
// default the CPU in double.
CheckReport CheckAgainst(const StepNumbers& serial, const Schedule& planned, Transport& transport,
                         uint64_t seed, const BackendFactory& backend = nullptr);

}  // namespace rehearse

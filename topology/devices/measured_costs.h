// How long kernels and collectives were measured to take on one machine, and what that says about
// others.
//
// A kernel's cost is looked up in this order:
//   exact     the median time of this very piece of work, if it was measured
//   fitted    a sum of terms with coefficients that are not negative, times a correction: the mean
//             of measured/fit of all points of the kernel, weighted by distance^-4 in the
//             logarithms of the sizes, and of 1 at distance log 2.
//             Terms of a GEMM m×n×k (m counts the whole batch):  1, 2mnk, mk, kn, mn;
//             of other kernels:  1, bytes, flops, and bytes above each of `knots` (what leaves a
//             cache costs more).
//   outside   the same, of a size beyond those measured by more than half of that
// A collective's cost is steps times a piecewise-linear function of the bytes of a step, for each
// kind and group size; knots on both sides of a switch (protocol, cache) make the line steep there.
// Between measured group sizes the nearest in log is taken, and counts as outside.
// Assumption: work is done in `computes_in` whatever type it is written in, if that is set; sizes
// are then of that type.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "sim/base/quantity.h"
#include "sim/schedule/schedule.h"

namespace rehearse {

enum class CostSource : uint8_t { kExact, kFitted, kOutside };

struct MeasuredTime {
  Seconds time;
  CostSource source = CostSource::kExact;
};

// What distinguishes one piece of work of a kernel from another. `gemm` counts for GEMMs only,
// and has batch 1.
struct KernelWork {
  Gemm gemm;
  Bytes bytes;
  Flops flops;
};

struct KernelPoint {
  KernelWork work;
  Seconds time;
};

struct KernelCosts {
  Kernel kernel = Kernel::kNone;
  GemmMode mode = GemmMode::kNN;  // GEMMs
  DType dtype = DType::kFp32;
  std::vector<Bytes> knots;          // other kernels
  std::vector<double> coefficients;  // of the terms, SI
  std::vector<KernelPoint> points;   // at least one; any order
};

struct MeasuredKernels {
  std::optional<DType> computes_in;
  std::vector<KernelCosts> kernels;  // each (kernel, mode, dtype) once
};

struct CostKnot {
  Bytes bytes;
  Seconds time;
};

// The cost is piecewise linear between knots, which ascend strictly; below them the first value
// counts, above them the last slope.
struct CostCurve {
  std::vector<CostKnot> knots;  // at least one

  Seconds At(Bytes bytes) const;
  bool Covers(Bytes bytes) const;  // up to 1.5 times beyond the knots
};

struct CollectiveCosts {
  CollectiveKind kind = CollectiveKind::kAllReduce;
  uint32_t ranks = 2;  // in a group; the other groups do the same at the same time
  CostCurve step;      // bytes/ranks -> one step
};

// Measured while `ranks` ranks ran on the machine.
struct MeasuredCollectives {
  uint32_t ranks = 2;
  std::string transport;  // "threads", "mpi", "nccl"
  std::optional<DType> computes_in;
  std::vector<CollectiveCosts> collectives;  // each (kind, ranks) once
  std::optional<CostCurve> message;          // a send and its receive
};

// The terms of a piece of work, in the order of the coefficients.
std::vector<double> TermsOf(const KernelCosts& costs, const KernelWork& work);
// Their names, for a calibration's reader: "constant", "2mnk", ...
std::vector<std::string> TermNames(const KernelCosts& costs);

// The work of a compute op in terms of a calibration that computes in `dtype`.
KernelWork WorkOf(const Compute& compute, DType dtype);

// Returns nothing if the kernel was not measured.
std::optional<MeasuredTime> TimeOf(const MeasuredKernels& measured, const Compute& compute);
// The time from when all ranks of the group have arrived; nothing if the kind was not measured.
// Collectives of zero bytes still cost their steps.
std::optional<MeasuredTime> TimeOf(const MeasuredCollectives& measured,
                                   const Collective& collective, uint32_t ranks);
std::optional<MeasuredTime> MessageTimeOf(const MeasuredCollectives& measured, Bytes bytes);

// Steps of the ring (and of all-to-all among all): what TimeOf multiplies by.
uint32_t MeasuredSteps(CollectiveKind kind, uint32_t ranks);

}  // namespace rehearse

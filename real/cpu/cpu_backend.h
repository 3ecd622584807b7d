// Runs a rank on the CPU: kernels of real/kernels/kernels.h, collectives as our own steps over a
// Transport. Each stream is a thread; the first one is the caller's, so that a schedule with one
// stream needs no other.
#pragma once

#include <memory>

#include "real/backends/backend.h"
#include "real/transports/collective_run.h"
#include "real/transports/transport.h"

namespace rehearse {

// `arithmetic` is fp32 or fp64; without `collectives`, our own steps run them. Plan and transport
// must outlive the backend. Throws Error if this machine does not have the memory that the ranks of
// this process need.
std::unique_ptr<Backend> MakeCpuBackend(const RankPlan& plan, Transport& transport,
                                        DType arithmetic,
                                        std::unique_ptr<Collectives> collectives = nullptr);

}  // namespace rehearse

// What a kernel of a trace does, told by its name alone: profilers record no more of most kernels.
#pragma once

#include <optional>
#include <string>
#include <string_view>

#include "sim/schedule/schedule.h"

namespace rehearse {

// What is known of a kernel that communicates when nothing but its name is known.
inline constexpr const char* kSomeCommunication = "communication";

// The collective that a library's or a profiler's word stands for: "allreduce", "_allgather_base",
// "all_gather_into_tensor_coalesced", "nccl:all_reduce". Nothing for other words.
std::optional<CollectiveKind> CollectiveOfWord(std::string_view word);

// A kernel that moves data between devices, whichever library it is of: NCCL and RCCL, DeepEP,
// NVSHMEM, symmetric memory's (multimem_*, one_shot_*), all-reduces of inference servers
// (cross_device_reduce_*), FLUX, MSCCL++. Its kind: "all-reduce", or kSomeCommunication where the
// name does not say it. Nothing for kernels that compute.
std::optional<std::string> CommunicationOfKernel(std::string_view name);

// "gemm", "attention" or "memory", of a kernel that computes.
const char* ComputeOfKernel(std::string_view name);

}  // namespace rehearse

// Traces as PyTorch's profiler writes them, made up: what a training step of a few ranks looks
// like.
#pragma once

#include <cstdint>
#include <string>
#include <utility>
#include <vector>

#include <fmt/format.h>

namespace rehearse {

// Microseconds, as in the files.
class KinetoText {
 public:
  KinetoText(uint32_t rank, uint32_t world) : rank_(rank), world_(world) {}

  KinetoText& Event(const std::string& category, const std::string& name, double begin,
                    double duration, const std::string& arguments = "{}", int64_t of_thread = 7) {
    events_.push_back(fmt::format(R"({{"ph": "X", "cat": "{}", "name": "{}", "pid": 0, "tid": {}, )"
                                  R"("ts": {:.3f}, "dur": {:.3f}, "args": {}}})",
                                  category, name, of_thread, begin + clock, duration, arguments));
    return *this;
  }
  KinetoText& Kernel(const std::string& name, uint32_t stream, double launch, double begin,
                     double duration, const std::string& more = "") {
    ++correlation_;
    Event("cuda_runtime", "cudaLaunchKernel", launch, 2,
          fmt::format(R"({{"External id": 5, "correlation": {}}})", correlation_), thread);
    return Event(
        "kernel", name, begin, duration,
        fmt::format(R"({{"device": 0, "stream": {}, "correlation": {}, "grid": [1, 1, 1]{}}})",
                    stream, correlation_, more),
        stream);
  }
  KinetoText& Collective(const std::string& name, uint32_t stream, double launch, double begin,
                         double duration, int64_t in, int64_t out, const std::string& group,
                         uint32_t size, const std::string& ranks, int64_t sequence = -1) {
    std::string more = fmt::format(
        R"(, "Collective name": "{}", "In msg nelems": {}, "Out msg nelems": {}, "Group size": {},)"
        R"( "dtype": "BFloat16", "Process Group Name": "{}", "Process Group Ranks": "{}")",
        name, in, out, size, group, ranks);
    if (sequence >= 0) more += fmt::format(R"(, "Seq": {})", sequence);
    return Kernel("ncclDevKernel_Generic_RING_LL(ncclDevKernelArgsStorage<4096ul>)", stream, launch,
                  begin, duration, more);
  }
  KinetoText& Step(uint32_t number, double begin, double duration) {
    return Event("user_annotation", fmt::format("ProfilerStep#{}", number), begin, duration);
  }

  std::string text() const {
    return fmt::format(
        R"({{
  "schemaVersion": 1,
  "deviceProperties": [{{"id": 0, "name": "NVIDIA H100 80GB HBM3", "totalGlobalMem": 85017493504}}],
  "distributedInfo": {{"backend": "nccl", "rank": {}, "world_size": {}, "pg_count": 1, "pg_config":
    [{{"pg_name": "0", "pg_desc": "default_pg", "backend_config": "cuda:nccl",
      "pg_size": {}, "ranks": [{}]}}],
    "nccl_version": "2.21.5"}},
  "traceEvents": [
  {}
  ],
  "traceName": "made/up.json"
}}
)",
        rank_, world_, world_, group_ranks, fmt::join(events_, ",\n  "));
  }

  double clock = 0;  // what this rank's clock is ahead
  int64_t thread = 7;
  std::string group_ranks;

 private:
  uint32_t rank_;
  uint32_t world_;
  int64_t correlation_ = 0;
  std::vector<std::string> events_;
};

}  // namespace rehearse

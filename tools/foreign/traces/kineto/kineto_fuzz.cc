// Traces of PyTorch's profiler, of one or two ranks separated by kBetweenRanks: as a timeline and
// as a schedule.
#include "tests/foreign/traces/kineto_traces.h"
#include "tests/fuzz/corpus.h"
#include "tests/fuzz/fuzz_target.h"
#include "tools/foreign/traces/kineto/kineto_read.h"

namespace rehearse {
namespace {

constexpr std::string_view kBetweenRanks = "\n--8<--\n";

void ReadProfiles(std::string_view input) {
  const size_t end = input.find(kBetweenRanks);
  std::vector<std::string> paths = {WriteFuzzFile("rank0.json", input.substr(0, end))};
  if (end != std::string_view::npos)
    paths.push_back(WriteFuzzFile("rank1.json", input.substr(end + kBetweenRanks.size())));
  ImportKineto(paths, KinetoResult::kTimeline);
  ImportKineto(paths, KinetoResult::kSchedule);
  // The patterns and the step that a user may name.
  ImportKineto(paths, KinetoResult::kTimeline, {"gemm|sum", "^Step", std::nullopt});
  ImportKineto(paths, KinetoResult::kSchedule, {"", "", 1});
}

std::vector<std::string> ProfileSeeds() {
  std::vector<std::string> seeds;
  for (const uint32_t world : {1u, 2u}) {
    std::string seed;
    for (uint32_t rank = 0; rank < world; ++rank) {
      const std::string ranks = world == 1 ? "[0]" : "[0, 1]";
      KinetoText trace(rank, world);
      for (uint32_t step = 0; step < 2; ++step) {
        const double at = 300.0 * step;
        trace.Step(step, at, 290)
            .Kernel("ampere_bf16_gemm", 7, at, at + 10, 90)
            .Collective("allreduce", 20, at + 5, at + 110, 40, 64, 64, "0", world, ranks, step)
            .Kernel("reads the sum", 7, at + 8, at + 160, 10)
            .Event("gpu_memcpy", "Memcpy DtoD", at + 180, 3)
            .Event("cpu_op", "aten::mm", at, 3);
      }
      if (world == 2)
        trace.Collective(rank == 0 ? "send" : "recv", 21, 600, 610, 5, 8, 8, "0", 2, ranks);
      seed += (rank > 0 ? std::string(kBetweenRanks) : "") + trace.text();
    }
    seeds.push_back(seed);
  }
  // One rank of four, by an older profiler, with steps that overlap.
  KinetoText trace(2, 4);
  for (uint32_t step = 0; step < 3; ++step) {
    const double at = 100.0 * step;
    trace.Event("Operator", fmt::format("ProfilerStep#{}", step), at, 100)
        .Event("cpu_op", "record_param_comms", at + 1, 5,
               R"({"Collective name": "all_gather", "Process Group Name": "0"})")
        .Kernel("ncclDevKernel_Generic", 20, at + 2, at + 80, 40)
        .Kernel("void deep_ep::intranode::dispatch<8>()", 7, at + 10, at + 20, 50)
        .Event("Memcpy", "Memcpy HtoD", at + 90, 30, R"({"stream": 9, "device": 0})");
  }
  seeds.push_back(trace.text());
  return seeds;
}

std::vector<std::string> ProfileWords() {
  return {std::string(kBetweenRanks),
          "\"ph\": \"X\"",
          "\"ts\": 1e300",
          "\"dur\": -1",
          "\"correlation\": 1",
          "\"cat\": \"kernel\"",
          "\"Collective name\": \"allgather\"",
          "\"Process Group Ranks\": \"[0, 1, ...]\"",
          "\"Group size\": 2",
          "\"In msg nelems\": 1",
          "\"Src Rank\": 0",
          "\"Dst Rank\": 1",
          "\"rank\": 1",
          "ProfilerStep#1",
          "Optimizer.step#Adam",
          "autograd::engine::",
          "\"cat\": \"Kernel\"",
          "\"cat\": \"gpu_user_annotation\"",
          "nccl:all_reduce",
          "record_param_comms",
          "\"world_size\": 8",
          "\"rehearse\": {}"};
}

const FuzzTargetRow kKinetoRow({"kineto", ReadProfiles, ProfileSeeds, ProfileWords,
                                FuzzLanguage::kJson});

}  // namespace
}  // namespace rehearse

// Speed of `rehearse collective`: a sweep over sizes, as nccl-tests runs it.
#include <numeric>
#include <string>

#include <benchmark/benchmark.h>

#include "collectives/lowering/trial.h"
#include "topology/files/cluster_file.h"

namespace rehearse {
namespace {

// 24 sizes from 1 KiB to 8 GiB on 64 ranks; routes and channels are found anew each time, as
// the command does.
void Sweep(benchmark::State& state, const std::string& cluster_name, CollectiveKind kind,
           const std::string& algorithm) {
  const auto cluster = ReadClusterArgument(cluster_name);
  Trial trial;
  trial.kind = kind;
  trial.groups = {std::vector<uint32_t>(cluster->device_count())};
  std::iota(trial.groups[0].begin(), trial.groups[0].end(), 0u);
  trial.algorithm = ParseAlgorithm(algorithm);
  trial.protocol = Protocol::kAuto;
  std::vector<Bytes> sizes;
  for (int power = 10; power < 34; ++power) sizes.emplace_back(static_cast<double>(1LL << power));
  for (auto _ : state) {
    Router router(*cluster);
    benchmark::DoNotOptimize(TimesOf(trial, sizes, router));
  }
  state.counters["ranks"] = cluster->device_count();
  state.counters["sizes"] = static_cast<double>(sizes.size());
}

BENCHMARK_CAPTURE(Sweep, all_reduce_64_gpus_auto, "dgx-a100:nodes=8", CollectiveKind::kAllReduce,
                  "auto")
    ->Unit(benchmark::kMillisecond);
BENCHMARK_CAPTURE(Sweep, all_reduce_64_gpus_tree, "dgx-a100:nodes=8", CollectiveKind::kAllReduce,
                  "tree")
    ->Unit(benchmark::kMillisecond);
BENCHMARK_CAPTURE(Sweep, all_to_all_64_gpus, "dgx-a100:nodes=8", CollectiveKind::kAllToAll, "auto")
    ->Unit(benchmark::kMillisecond);
// Of each pair of machines only its hash is looked at.
BENCHMARK_CAPTURE(Sweep, all_to_all_1024_gpus_hashed, "roce-h100:nodes=128",
                  CollectiveKind::kAllToAll, "auto")
    ->Unit(benchmark::kMillisecond);

}  // namespace
}  // namespace rehearse

// Speed of large clusters: building them, and routing a ring over all their devices. "peak MiB" is
// the process's peak resident memory so far, so run one at a time (--benchmark_filter) to read it.
#include <map>
#include <string>

#include <benchmark/benchmark.h>
#include <sys/resource.h>

#include "topology/fabrics/router.h"
#include "topology/presets/presets.h"

namespace rehearse {
namespace {

double PeakMebibytes() {
  rusage usage{};
  getrusage(RUSAGE_SELF, &usage);
  return static_cast<double>(usage.ru_maxrss) / 1024;  // Linux counts in KiB
}

void BuildAndRouteRing(benchmark::State& state, const char* preset,
                       const std::map<std::string, uint32_t>& parameters) {
  uint32_t devices = 0;
  uint32_t links = 0;
  size_t hops = 0;
  while (state.KeepRunning()) {
    const auto cluster = BuildPreset(preset, parameters, Place());
    Router router(*cluster);
    devices = cluster->device_count();
    links = cluster->link_count();
    hops = 0;
    for (uint32_t rank = 0; rank < devices; ++rank)
      hops += router.Between(rank, (rank + 1) % devices).links.size();
  }
  state.counters["devices"] = devices;
  state.counters["links"] = links;
  state.counters["hops"] = static_cast<double>(hops);
  state.counters["peak MiB"] = PeakMebibytes();
}

void RouteStridedRings(benchmark::State& state, const char* preset,
                       const std::map<std::string, uint32_t>& parameters, uint32_t stride) {
  const auto cluster = BuildPreset(preset, parameters, Place());
  const uint32_t devices = cluster->device_count();
  while (state.KeepRunning()) {
    Router router(*cluster);
    for (uint32_t rank = 0; rank < devices; ++rank)
      benchmark::DoNotOptimize(router.Between(rank, (rank + stride) % devices).links.size());
  }
  state.counters["routes/s"] =
      benchmark::Counter(devices, benchmark::Counter::kIsIterationInvariantRate);
}

using Parameters = std::map<std::string, uint32_t>;

BENCHMARK_CAPTURE(BuildAndRouteRing, rails_131072, "dgx-h100", Parameters{{"nodes", 16384}})
    ->Unit(benchmark::kMillisecond)
    ->Iterations(1);
BENCHMARK_CAPTURE(BuildAndRouteRing, perlmutter_131072, "perlmutter", Parameters{{"nodes", 32768}})
    ->Unit(benchmark::kMillisecond)
    ->Iterations(1);
BENCHMARK_CAPTURE(BuildAndRouteRing, torus_4096, "tpu-v4",
                  Parameters{{"x", 16}, {"y", 16}, {"z", 16}})
    ->Unit(benchmark::kMillisecond);
BENCHMARK_CAPTURE(BuildAndRouteRing, frontier_9856, "frontier", Parameters{{"nodes", 9856}})
    ->Unit(benchmark::kMillisecond);
BENCHMARK_CAPTURE(RouteStridedRings, rails_8192_nodes_apart, "dgx-h100",
                  Parameters{{"nodes", 1024}}, 4096)
    ->Unit(benchmark::kMillisecond);

}  // namespace
}  // namespace rehearse

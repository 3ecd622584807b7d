// Speed of packets: cables crossed a second, where many collide and where none do.
#include <cstdint>
#include <vector>

#include <benchmark/benchmark.h>

#include "tests/sim/packets/packet_runs.h"

namespace rehearse {
namespace {

// Every one of 128 hosts sends 2 MB to the one so far ahead, on hashed ways, with pauses.
void Shift(benchmark::State& state, uint32_t by) {
  PacketOptions options;
  options.mtu = 4000;
  std::vector<PacketMessage> messages;
  for (uint32_t i = 0; i < 128; ++i) messages.push_back({i, (i + by) % 128, 2'000'000});
  uint64_t hops = 0;
  for (auto _ : state) hops += PlayPackets(8, 50e9, Time(1'000'000), options, messages).stats.hops;
  state.counters["hops"] =
      benchmark::Counter(static_cast<double>(hops), benchmark::Counter::kIsRate);
}

BENCHMARK_CAPTURE(Shift, between_pods, 48)->Unit(benchmark::kMillisecond);
BENCHMARK_CAPTURE(Shift, within_leaves, 1)->Unit(benchmark::kMillisecond);

}  // namespace
}  // namespace rehearse

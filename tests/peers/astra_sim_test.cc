// Against ASTRA-sim's analytical network without congestion (github.com/astra-sim), by its
// published equations: it is not run here. tests/peers/README.md says where the two agree, and why
// not elsewhere.
#include <algorithm>
#include <cmath>
#include <filesystem>
#include <functional>
#include <map>
#include <memory>
#include <numeric>
#include <string>
#include <vector>

#include <fmt/format.h>
#include <gtest/gtest.h>
#include <unistd.h>

#include "collectives/lowering/lower.h"
#include "collectives/lowering/trial.h"
#include "sim/base/json_document.h"
#include "sim/base/json_reader.h"
#include "sim/engine/simulate.h"
#include "sim/schedule/schedule_json.h"
#include "tools/foreign/traces/chakra/chakra_file.h"
#include "tools/foreign/traces/chakra/chakra_format.h"
#include "tools/foreign/traces/chakra/chakra_write.h"
#include "topology/cluster/builder.h"
#include "topology/presets/presets.h"

namespace rehearse {
namespace astra_sim_test {

// ---- Theirs -------------------------------------------------------------------------------------

// A dimension of `npus`, as its building blocks are called there.
enum class Block { kRing, kFullyConnected, kSwitch };

struct Network {
  Block block = Block::kRing;
  uint32_t npus = 2;
  double gigabytes_per_second = 50;  // of 2^30 bytes
  double latency = 500;              // of a link, ns

  double BytesPerNanosecond() const { return gigabytes_per_second * 0x1p30 / 1e9; }
};

uint32_t Hops(const Network& network, uint32_t from, uint32_t to) {
  switch (network.block) {
    case Block::kFullyConnected:
      return 1;
    case Block::kSwitch:
      return 2;  // up and down
    case Block::kRing:
      break;
  }
  const uint32_t clockwise = (to + network.npus - from) % network.npus;
  return std::min(clockwise, network.npus - clockwise);
}

// Nanoseconds that a message takes: the latency of each hop, its bytes once. Whole ones.
double Delay(const Network& network, uint32_t from, uint32_t to, double bytes) {
  return std::floor(Hops(network, from, to) * network.latency +
                    bytes / network.BytesPerNanosecond());
}

// One chunk, no delay at the endpoints. `bytes` are those of nccl-tests: of the whole array.
double RingSteps(const Network& network, double bytes, uint32_t steps) {
  return steps * Delay(network, 0, 1, bytes / network.npus);
}

// ---- Ours ---------------------------------------------------------------------------------------

ClusterLink Cable(const Network& network) {
  ClusterLink link;
  link.kind = LinkKind::kNetwork;
  link.bandwidth = BytesPerSecond(network.gigabytes_per_second * 0x1p30);
  link.latency = Seconds(network.latency * 1e-9);
  return link;
}

// Every device is a machine of its own, with a router that neither takes time nor binds: our
// devices do not pass on what is for others.
std::unique_ptr<Cluster> Built(const Network& network) {
  ClusterBuilder cluster("peers");
  const uint32_t spec = cluster.AddDeviceSpec(BuildPreset("switch", {}, {})->DeviceOf(0));
  ClusterLink inside = Cable(network);
  inside.bandwidth = inside.bandwidth * 1e6;
  inside.latency = Seconds(0);
  std::vector<VertexId> routers;
  for (uint32_t i = 0; i < network.npus; ++i) {
    const std::string node = fmt::format("node{}", i);
    const VertexId device = cluster.AddVertex({node + "/gpu", VertexKind::kDevice, node}, spec);
    routers.push_back(cluster.AddVertex({node + "/router", VertexKind::kSwitch, ""}));
    cluster.AddLinks(device, routers.back(), inside);
  }
  const auto join = [&](VertexId a, VertexId b) { cluster.AddLinks(a, b, Cable(network)); };
  if (network.block == Block::kSwitch) {
    const VertexId center = cluster.AddVertex({"switch", VertexKind::kSwitch, ""});
    for (const VertexId router : routers) join(router, center);
  }
  for (uint32_t i = 0; i < network.npus; ++i) {
    if (network.block == Block::kRing && (network.npus > 2 || i == 0))
      join(routers[i], routers[(i + 1) % network.npus]);
    for (uint32_t j = 0; network.block == Block::kFullyConnected && j < i; ++j)
      join(routers[i], routers[j]);
  }
  return std::make_unique<Cluster>(cluster.Finish());
}

// Nanoseconds.
double Played(const Network& network, CollectiveKind kind, const char* algorithm, double bytes,
              Fidelity fidelity, std::vector<uint32_t> group = {}) {
  if (group.empty()) {
    group.resize(network.npus);
    std::iota(group.begin(), group.end(), 0u);
  }
  const auto cluster = Built(network);
  Router router(*cluster);
  Trial trial;
  trial.kind = kind;
  trial.groups = {group};
  trial.fidelity = fidelity;
  trial.algorithm = ParseAlgorithm(algorithm);
  return TimeOf(trial, Bytes(bytes), router).value() * 1e9;
}

// Theirs is rounded down to nanoseconds in each of so many steps. `theirs` is not longer.
void ExpectSame(double ours, double theirs, double steps, const std::string& what) {
  EXPECT_NEAR(ours, theirs + steps / 2, steps / 2 + 1e-6 * ours + 0.01) << what;
}

void ForCases(
    const std::vector<Block>& blocks,
    const std::function<void(const Network&, double, Fidelity, const std::string&)>& test) {
  for (const Block block : blocks) {
    for (const uint32_t npus : {2u, 3u, 4u, 8u, 16u}) {
      for (const double bytes : {96e3, 3e6, 1e9}) {
        for (const Fidelity fidelity : {Fidelity::kFormula, Fidelity::kStep}) {
          Network network;
          network.block = block;
          network.npus = npus;
          test(network, bytes, fidelity,
               fmt::format("block {}, {} npus, {} bytes, {}", static_cast<int>(block), npus, bytes,
                           Name(fidelity)));
        }
      }
    }
  }
}

const std::vector<Block> kAllBlocks = {Block::kRing, Block::kFullyConnected, Block::kSwitch};

TEST(AstraSimTest, RingsTakeAsLong) {
  using enum CollectiveKind;
  ForCases(kAllBlocks,
           [](const Network& network, double bytes, Fidelity fidelity, const std::string& what) {
             const uint32_t half = network.npus - 1;
             ExpectSame(Played(network, kAllReduce, "ring", bytes, fidelity),
                        RingSteps(network, bytes, 2 * half), 2 * half, what + ", all-reduce");
             ExpectSame(Played(network, kAllGather, "ring", bytes, fidelity),
                        RingSteps(network, bytes, half), half, what + ", all-gather");
             ExpectSame(Played(network, kReduceScatter, "ring", bytes, fidelity),
                        RingSteps(network, bytes, half), half, what + ", reduce-scatter");
           });
}

TEST(AstraSimTest, MessagesTakeAsLongOverAnyDistance) {
  ForCases(kAllBlocks, [](const Network& network, double bytes, Fidelity fidelity,
                          const std::string& what) {
    for (uint32_t to = 1; to < network.npus; ++to) {
      ExpectSame(Played(network, CollectiveKind::kSendReceive, "direct", bytes, fidelity, {0, to}),
                 Delay(network, 0, to, bytes), 1, what + fmt::format(", to {}", to));
    }
  });
}

// In step k the partner is 2^k away; half of what is left is exchanged.
TEST(AstraSimTest, HalvingAndDoublingTakesAsLong) {
  ForCases({Block::kFullyConnected, Block::kSwitch},
           [](const Network& network, double bytes, Fidelity fidelity, const std::string& what) {
             if ((network.npus & (network.npus - 1)) != 0) return;
             double time = 0;
             double steps = 0;
             for (uint32_t distance = 1; distance < network.npus; distance *= 2) {
               time += 2 * Delay(network, 0, distance, bytes * distance / network.npus);
               steps += 2;
             }
             ExpectSame(
                 Played(network, CollectiveKind::kAllReduce, "halving-doubling", bytes, fidelity),
                 time, steps, what);
           });
}

// Each pair has a link of its own: p - 1 messages at once, none of which waits.
TEST(AstraSimTest, DirectAllToAllsTakeAsLongWhereNothingIsShared) {
  ForCases({Block::kFullyConnected},
           [](const Network& network, double bytes, Fidelity fidelity, const std::string& what) {
             ExpectSame(Played(network, CollectiveKind::kAllToAll, "direct", bytes, fidelity),
                        Delay(network, 0, 1, bytes / network.npus), 1, what);
           });
}

// Through a switch the p - 1 messages share a port. ASTRA-sim's network without congestion lets
// each have all of it; ours, and theirs with congestion, do not: p - 2 more messages have to pass.
TEST(AstraSimTest, WhereAPortIsSharedOursTakesLonger) {
  ForCases({Block::kSwitch},
           [](const Network& network, double bytes, Fidelity fidelity, const std::string& what) {
             const double part = bytes / network.npus;
             ExpectSame(Played(network, CollectiveKind::kAllToAll, "direct", bytes, fidelity),
                        Delay(network, 0, 1, part) +
                            (network.npus - 2.0) * part / network.BytesPerNanosecond(),
                        1, what);
           });
}

// ---- A whole trace ------------------------------------------------------------------------------

// Nanoseconds until the last node of a rank's trace has ended, as ASTRA-sim's workload layer issues
// them (a node when all that it depends on are done, compute for its whole microseconds), with
// rings of one chunk and their meaning of comm_size: of an all-gather, what a rank gives.
double Replayed(const Network& network, const std::string& file) {
  std::map<uint64_t, double> ends;
  double last = 0;
  ReadChakraFile(file, 0, [&](const ChakraHeader&, ChakraNode&& node) {
    double end = 0;
    for (const uint64_t id : node.before) end = std::max(end, ends.at(id));
    if (node.type == chakra::kCollective) {
      const uint32_t half = network.npus - 1;
      const auto type = static_cast<uint32_t>(*node.comm_type);
      const bool is_sum = type == chakra::kAllReduce;
      const bool is_gather = type == chakra::kAllGather;
      EXPECT_TRUE(is_sum || is_gather || type == chakra::kReduceScatter);
      EXPECT_EQ(node.group, "0");
      end += RingSteps(network, *node.comm_size * (is_gather ? network.npus : 1.0),
                       is_sum ? 2 * half : half);
    } else {
      EXPECT_EQ(node.type, chakra::kCompute);
      end += 1e3 * static_cast<double>(node.microseconds);
    }
    ends[node.id] = end;
    last = std::max(last, end);
  });
  return last;
}

// A layer with sharded weights, and one more sum beside a kernel.
constexpr const char* kStep = R"({"schema": "rehearse.schedule.v1", "ranks": RANKS,
  "communicators": [{"name": "all", "ranks": "all"}],
  "ops": [
    {"name": "first", "duration": "7us"},
    {"name": "gather", "collective": "all-gather", "communicator": "all", "bytes": "BYTES",
     "after": "first"},
    {"name": "forward", "duration": "30us", "after": "gather"},
    {"name": "scatter", "collective": "reduce-scatter", "communicator": "all", "bytes": "BYTES",
     "after": "forward"},
    {"name": "sum", "collective": "all-reduce", "communicator": "all", "bytes": "BYTES"},
    {"name": "beside", "duration": "90us", "after": "scatter"},
    {"name": "update", "duration": "4us", "after": ["sum", "beside"]}]})";

TEST(AstraSimTest, OurTracesTakeAsLongThereAsTheirScheduleHere) {
  ForCases(kAllBlocks, [](const Network& network, double bytes, Fidelity fidelity,
                          const std::string& what) {
    // Whole elements for every rank.
    const auto whole = static_cast<uint64_t>(bytes) / 96 * 96;
    std::string text = kStep;
    for (size_t at = 0; (at = text.find("BYTES")) != std::string::npos;)
      text.replace(at, 5, fmt::format("{}B", whole));
    text.replace(text.find("RANKS"), 5, fmt::format("{}", network.npus));
    const JsonDocument document = JsonDocument::FromText(text, "step");
    const Schedule schedule = ReadSchedule(document.Root());

    const std::filesystem::path folder =
        std::filesystem::temp_directory_path() / fmt::format("astra-sim-{}", getpid());
    const ChakraDevices devices = {
        std::vector<uint32_t>(network.npus, 0),
        [](uint32_t, const Op& op) { return std::get<Compute>(op.work).duration; }};
    WriteChakra(schedule, {"step", ""}, devices, folder.string());
    const double theirs = Replayed(network, folder / "step.0.et");
    std::filesystem::remove_all(folder);

    const auto cluster = Built(network);
    Router router(*cluster);
    const Lowered lowered = Lower(schedule, router, {.fidelity = fidelity});
    const Timeline timeline = Simulate(lowered.program, network.npus).timeline;
    ExpectSame(1e9 * ToSeconds(timeline.step).value(), theirs, 4.0 * (network.npus - 1), what);
  });
}

}  // namespace astra_sim_test
}  // namespace rehearse

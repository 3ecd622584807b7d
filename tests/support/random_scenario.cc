#include "tests/support/random_scenario.h"

#include <algorithm>
#include <array>
#include <vector>

#include <fmt/format.h>
#include <nlohmann/json.hpp>

#include "scenarios/playing/prepare.h"
#include "sim/base/error.h"
#include "sim/base/json_document.h"
#include "tests/support/random_program.h"

namespace rehearse {
namespace {

using Json = nlohmann::ordered_json;

template <typename T, size_t kCount>
const T& Any(Random& random, const std::array<T, kCount>& values) {
  return values[random.Below(static_cast<uint32_t>(kCount))];
}

// Sizes of this many axes whose product is `ranks`, a power of two.
std::vector<uint32_t> Split(Random& random, uint32_t ranks, uint32_t axes) {
  std::vector<uint32_t> sizes(axes, 1);
  for (; ranks > 1; ranks /= 2) sizes[random.Below(axes)] *= 2;
  return sizes;
}

// ---- Machines -----------------------------------------------------------------------------------

struct Machine {
  Json cluster;
  uint32_t devices = 0;
};

Json Cable(Random& random, uint32_t least_microseconds = 1) {
  return {{"bandwidth", fmt::format("{}GBps", 5 + random.Below(60))},
          {"latency", fmt::format("{}us", least_microseconds + random.Below(4))}};
}

// The nodes are in the compact form (topology/files/compact_form.h). The latency of PCIe is more
// than that of NVLink, and out through a NIC and back is further than from socket to socket, as in
// any machine, whatever a test adds to all links.
Machine HandMadeNodes(Random& random) {
  const uint32_t devices = 4u << random.Below(2);
  const uint32_t nodes = 1u << random.Below(3);
  Json node = {{"kind", Any(random, std::array{"nvswitch", "all-to-all", "pairs"})},
               {"devices", devices},
               {"device", Any(random, std::array{"a100-40g", "h100", "mi300x"})},
               {"nvlink", Cable(random)},
               {"pcie", Cable(random, 5)},
               {"sockets", 2},
               {"pcie_switches", 2},
               {"between_sockets", Cable(random)},
               {"nics", 2u << random.Below(2)},
               {"cable", Cable(random, 3)}};
  Json cluster = {{"name", "hand-made"}, {"nodes", nodes}, {"node", std::move(node)}};
  if (nodes > 1) {
    Json fabric = {{"kind", Any(random, std::array{"switch", "fat-tree", "rails"})}};
    if (fabric["kind"] != "switch") {
      fabric["radix"] = 16;
      fabric["cable"] = Cable(random);
      fabric["oversubscription"] = 1 + random.Below(2);
    }
    cluster["fabric"] = std::move(fabric);
  }
  return {std::move(cluster), devices * nodes};
}

// The devices are in a tree of switches that is given link by link.
Machine HandMadeGraph(Random& random) {
  const uint32_t devices = 4u << random.Below(2);
  Json vertices = Json::array();
  Json links = Json::array();
  const auto join = [&](const std::string& from, const std::string& to) {
    Json link = {{"between", {from, to}}, {"kind", "nvlink"}};
    link.update(Cable(random));
    links.push_back(std::move(link));
  };
  for (uint32_t i = 0; i < devices; ++i)
    vertices.push_back({{"name", fmt::format("gpu{}", i)}, {"kind", "device"}});
  for (const char* name : {"left", "right", "top"})
    vertices.push_back({{"name", name}, {"kind", "switch"}});
  for (uint32_t i = 0; i < devices; ++i)
    join(fmt::format("gpu{}", i), random.Chance(50) ? "left" : "right");
  join("left", "top");
  join("right", "top");
  return {{{"name", "drawn"},
           {"device", "a100-40g"},
           {"vertices", std::move(vertices)},
           {"links", std::move(links)},
           {"step_overhead", "2us"}},
          devices};
}

Machine AnyMachine(Random& random) {
  if (random.Chance(15)) return HandMadeNodes(random);
  if (random.Chance(10)) return HandMadeGraph(random);
  struct Preset {
    const char* name;
    uint32_t devices;
    const char* parameter;
  };
  constexpr std::array kPresets = {
      Preset{"perlmutter", 4, "nodes"}, Preset{"dgx-a100", 8, "nodes"},
      Preset{"dgx-h100", 8, "nodes"},   Preset{"leonardo", 4, "nodes"},
      Preset{"frontier", 8, "nodes"},   Preset{"alps", 4, "nodes"},
      Preset{"atp-ic1", 8, ""},         Preset{"atp-ic2", 8, ""},
      Preset{"atp-ic3", 8, ""},         Preset{"atp-ic4", 4, "nodes"},
      Preset{"mi300x", 8, "nodes"},     Preset{"dgx-1-v100", 8, "nodes"},
      Preset{"piz-daint", 1, "nodes"},  Preset{"rtx4090-pcie", 8, "nodes"}};
  const Preset& preset = Any(random, kPresets);
  if (preset.parameter[0] == '\0') return {preset.name, preset.devices};
  const uint32_t nodes = (preset.devices == 1 ? 4u : 1u)
                         << random.Below(preset.devices == 8 ? 2 : 3);
  return {fmt::format("{}:{}={}", preset.name, preset.parameter, nodes), preset.devices * nodes};
}

// ---- What is done -------------------------------------------------------------------------------

struct Drawn {
  Json strategy;
  uint32_t split_of_batch = 1;  // ranks that share the batch, or more
};

Json Switches(Random& random, const std::vector<const char*>& names) {
  Json switches = Json::object();
  for (const char* name : names) switches[name] = random.Chance(50);
  return switches;
}

Json WithSplitProducts(Random& random, Json strategy) {
  constexpr const char* kHow[] = {"none", "user-buffers", "async-tp", "tiles"};
  if (strategy["sequence_parallel"].get<bool>())
    strategy["split_products"] = kHow[random.Below(std::size(kHow))];
  return strategy;
}

Drawn AnyStrategy(Random& random, uint32_t ranks, bool in_stages, bool has_experts) {
  const auto with = [](Json strategy, const Json& switches) {
    strategy.update(switches);
    return strategy;
  };
  const std::vector<uint32_t> two = Split(random, ranks, 2);
  const std::vector<uint32_t> three = Split(random, ranks, 3);
  const std::vector<uint32_t> four = Split(random, ranks, 4);
  if (has_experts) {
    const uint32_t experts = std::min(8u, two[1]);
    return {with({{"kind", "combined"},
                  {"tensor", two[0]},
                  {"shard", two[1]},
                  {"zero", 1},
                  {"expert", experts},
                  {"sequence_parallel", two[0] > 1}},
                 Switches(random, {"overlap_gradients"})),
            ranks};
  }
  const auto gathered = [&](const char* kind, uint32_t shard, uint32_t replicas) {
    Json strategy = {{"kind", kind}, {"shard", shard}, {"replicas", replicas}};
    strategy.update(Switches(random, {"overlap_gradients"}));
    if (kind != std::string_view("zero-1"))
      strategy.update(Switches(random, {"overlap_reduce_scatter"}));
    if (kind == std::string_view("fsdp")) {
      strategy["prefetch"] = random.Below(3);
      strategy.update(Switches(random, {"reshard_after_forward", "within_layer"}));
    }
    return strategy;
  };
  switch (random.Below(in_stages ? 5 : 9)) {
    case 0:
      return {WithSplitProducts(
                  random, with({{"kind", "megatron"}, {"tensor", two[0]}, {"data", two[1]}},
                               Switches(random, {"sequence_parallel", "overlap_all_reduce",
                                                 "overlap_gradients", "distributed_optimizer"}))),
              ranks};
    case 1:
      return {with({{"kind", "data-parallel"}, {"data", ranks}},
                   Switches(random, {"overlap_gradients"})),
              ranks};
    case 2:
      return {gathered("zero-1", two[0], two[1]), ranks};
    case 3:
      return {gathered("fsdp", two[0], two[1]), ranks};
    case 4:
      return {with({{"kind", "4d"},
                    {"column", four[0]},
                    {"row", four[1]},
                    {"depth", four[2]},
                    {"data", four[3]},
                    {"cached_layers", 0}},
                   Switches(random, {"transpose_alternate_layers", "overlap_all_reduce",
                                     "overlap_reduce_scatter", "overlap_all_gather"})),
              ranks};
    case 5:
      return {gathered("zero-2", two[0], two[1]), ranks};
    case 6: {
      // Arguments of a call are drawn in any order, so one of them is drawn before.
      const Json switches = Switches(random, {"overlap_all_reduce"});
      return {with({{"kind", "atp"},
                    {"d1", three[0]},
                    {"d2", three[1]},
                    {"data", three[2]},
                    {"first", random.Chance(50) ? "column" : "row"},
                    {"chunks", 1u << random.Below(2)}},
                   switches),
              2 * ranks};
    }
    case 7:
      return {
          with({{"kind", "sbp"}, {"nodes", ranks}, {"gpus", 1}, {"products", {{"default", three}}}},
               Switches(random, {"overlap_all_reduce", "overlap_gradients"})),
          ranks};
    default: {
      const uint32_t q = ranks >= 4 ? 2 : 1;
      const std::vector<uint32_t> rest = Split(random, ranks / (q * q), 2);
      return {with({{"kind", "summa"}, {"q", q}, {"depth", rest[0]}, {"data", rest[1]}},
                   Switches(random, {"overlap_panels"})),
              ranks};
    }
  }
}

// Model, training, strategy and pipeline of a step of this many ranks.
Json AnyStep(Random& random, uint32_t ranks, const RandomScenarioLimits& limits) {
  const bool is_tiny = limits.for_execution;
  Json step;
  const uint32_t stages =
      ranks >= 2 && random.Chance(30) ? (ranks >= 4 && random.Chance(30) ? 4 : 2) : 1;
  const bool has_experts = random.Chance(15);
  const uint32_t mesh = ranks / stages;
  const uint32_t layers = stages > 1 ? 2 * stages : 1 + random.Below(3);
  const uint32_t heads = 16;
  const uint32_t hidden = is_tiny ? 64 : Any(random, std::array{64u, 256u, 1024u, 2048u, 4096u});
  step["model"] = {{"layers", layers},
                   {"hidden", hidden},
                   {"heads", heads},
                   {"vocabulary", is_tiny ? 128 : 4096}};
  if (has_experts) {
    step["model"]["style"] = "llama";
    step["model"]["feed_forward"] = 2 * hidden;
    step["model"]["experts"] = {
        {"count", 8}, {"per_token", 1 + random.Below(2)}, {"hidden", hidden}};
  }
  const Drawn drawn = AnyStrategy(random, mesh, stages > 1, has_experts);
  const uint32_t micro_batches = stages > 1 ? stages << random.Below(2) : 1u << random.Below(2);
  step["training"] = {{"batch", micro_batches * drawn.split_of_batch * (1 + random.Below(2))},
                      {"sequence", is_tiny ? 32 : Any(random, std::array{64u, 512u, 2048u})},
                      {"micro_batches", micro_batches},
                      {"recomputation", random.Chance(50) || stages > 1 ? "none" : "full"},
                      {"precision", is_tiny ? "fp32" : "bf16"}};
  step["strategy"] = drawn.strategy;
  if (stages > 1) {
    step["pipeline"] = {{"stages", stages},
                        {"schedule", Any(random, std::array{"gpipe", "1f1b", "zb-h1"})}};
  }
  return step;
}

Json AnyEdits(Random& random) {
  Json edits = Json::array();
  if (random.Chance(50))
    edits.push_back({{"links", "**"}, {"latency", fmt::format("+{}us", 1 + random.Below(5))}});
  if (random.Chance(50)) {
    constexpr uint32_t kTenths = 10;
    const double compute = kMostOfPeak - 0.1 * (kTenths - 1 - random.Below(kTenths));
    edits.push_back({{"devices", "**"}, {"compute", fmt::format("{:.1f}x", compute)}});
  }
  return edits;
}

// Now and then something waits on the host, where the machine is known to have one.
void AddOffload(Random& random, const RandomScenarioLimits& limits, Json* scenario) {
  const Json& cluster = (*scenario)["cluster"];
  const bool has_host = limits.for_execution ||
                        (cluster.is_string() && cluster.get<std::string>().starts_with("dgx"));
  if (!has_host || !scenario->contains("training") || !random.Chance(20)) return;
  Json& training = (*scenario)["training"];
  if ((*scenario)["model"]["layers"] != 1 && random.Chance(70)) training["offloaded_layers"] = 1;
  const std::string kind = (*scenario)["strategy"].value("kind", "");
  const bool is_simple = !training.contains("update_rule") && !scenario->contains("pipeline");
  if (is_simple && random.Chance(40)) {
    training["optimizer_on_host"] = true;
    if (kind == "fsdp" && random.Chance(50)) training["parameters_on_host"] = true;
  } else if (random.Chance(50)) {
    training["offloaded_optimizer"] = true;
  }
}

// Many layers on all devices of a stage, or many micro-batches.
void Lengthen(Random& random, Json* scenario) {
  if (!scenario->contains("training")) return;
  Json& training = (*scenario)["training"];
  if (!scenario->contains("pipeline") && random.Chance(60)) {
    (*scenario)["model"]["layers"] = 8 + random.Below(12);
    return;
  }
  const uint32_t times = 16 << random.Below(2);
  training["batch"] = times * training["batch"].get<uint32_t>();
  training["micro_batches"] = times * training["micro_batches"].get<uint32_t>();
}

}  // namespace

std::string RandomScenarioText(uint64_t seed, const RandomScenarioLimits& limits) {
  Random random(seed);
  Json scenario = {{"name", fmt::format("random {}", seed)}};
  Machine machine;
  if (limits.for_execution) {
    machine.devices = 2u << random.Below(2);
    machine.cluster = fmt::format("local-cpu:ranks={}", machine.devices);
  } else {
    machine = AnyMachine(random);
  }
  scenario["cluster"] = machine.cluster;
  constexpr uint32_t kMostRanks = 16;
  const bool all_devices = machine.devices <= kMostRanks && !random.Chance(20);
  if (limits.jobs && !limits.for_execution && machine.devices >= 8 && random.Chance(12)) {
    const uint32_t half = std::min(machine.devices, kMostRanks) / 2;
    Json jobs = Json::array();
    for (uint32_t job = 0; job < 2; ++job) {
      Json step = AnyStep(random, half, limits);
      step["name"] = fmt::format("job{}", job);
      step["cluster"] = machine.cluster;
      jobs.push_back({{"scenario", std::move(step)},
                      {"placement", fmt::format("{}-{}", job * half, (job + 1) * half - 1)},
                      {"start", fmt::format("{}us", random.Below(500))},
                      {"repeat", 1 + random.Below(2)}});
    }
    scenario["jobs"] = std::move(jobs);
  } else {
    uint32_t ranks = 1;
    while (2 * ranks <= std::min(machine.devices, kMostRanks)) ranks *= 2;
    if (!all_devices && !limits.for_execution && ranks > 2) ranks /= 2;
    scenario.update(AnyStep(random, ranks, limits));
    if (ranks < machine.devices) scenario["placement"] = fmt::format("0-{}", ranks - 1);
  }
  Random apart(~seed);  // so that what else is drawn stays the same
  AddOffload(apart, limits, &scenario);
  if (limits.long_steps) Lengthen(apart, &scenario);
  if (limits.edits && !limits.for_execution && random.Chance(30))
    scenario["edits"] = AnyEdits(random);
  Json simulator = Json::object();
  if (limits.pinned) {
    simulator = {{"algorithm", "ring"}, {"protocol", "none"}, {"channels", 1}};
    if (random.Chance(50)) simulator["slowdown"] = Json::object();
  } else if (random.Chance(30)) {
    simulator["channels"] = 1 + random.Below(4);
  }
  if (!simulator.empty()) scenario["simulator"] = std::move(simulator);
  return scenario.dump(1);
}

RandomScenario DrawScenario(uint64_t seed, const RandomScenarioLimits& limits) {
  constexpr uint64_t kTries = 50;
  std::string why;
  for (uint64_t i = 0; i < kTries; ++i) {
    RandomScenario drawn;
    drawn.text = RandomScenarioText(seed * kTries + i, limits);
    try {
      drawn.scenario = ReadScenario(JsonDocument::FromText(drawn.text, "random.json"));
      drawn.scenario.allow_out_of_memory = true;
      drawn.jobs = Prepare(drawn.scenario);
      return drawn;
    } catch (const Error& error) {
      why = error.what();
    }
  }
  throw InternalError(fmt::format("seed {}: nothing that can be planned: {}", seed, why));
}

}  // namespace rehearse

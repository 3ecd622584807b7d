#include "scenarios/trials/random_step.h"

#include <algorithm>
#include <array>
#include <optional>
#include <utility>
#include <vector>

#include <fmt/format.h>
#include <nlohmann/json.hpp>

#include "real/kernels/numbers.h"
#include "scenarios/playing/prepare.h"
#include "sim/base/error.h"
#include "sim/base/json_document.h"
#include "workloads/planner/pair_order.h"

namespace rehearse {
namespace {

using Json = nlohmann::ordered_json;

constexpr int kMostDraws = 10000;
constexpr int kDrawsOfStrategy = 8;

// Random numbers, one after the other.
class Dice {
 public:
  explicit Dice(uint64_t seed) : seed_(seed) {}

  uint64_t Below(uint64_t n) { return HashAt(seed_, next_++) % n; }
  bool Flip() { return Below(2) == 0; }
  template <typename T>
  const T& OneOf(const std::vector<T>& values) {
    return values[Below(values.size())];
  }
  // Sizes of `count` axes whose product is `ranks`.
  std::vector<uint32_t> Split(uint32_t ranks, size_t count) {
    std::vector<uint32_t> sizes(count, 1);
    for (uint32_t factor = 2; ranks > 1;) {
      if (ranks % factor != 0) {
        ++factor;
        continue;
      }
      sizes[Below(count)] *= factor;
      ranks /= factor;
    }
    return sizes;
  }

 private:
  uint64_t seed_;
  uint64_t next_ = 0;
};

struct Sizes {
  std::vector<uint64_t> hidden;
  std::vector<uint64_t> sequence;
  std::vector<uint64_t> vocabulary;
};
// No size of a product is in both uses: one has multiples of 64, the other 32, 48 or 80 more than
// one. On GPUs, where heads need multiples of 64, the two lists have no size in common.
Sizes SizesFor(StepUse use, StepDevice device) {
  if (device == StepDevice::kGpu && use == StepUse::kLearning) {
    return {{128, 256, 512, 1024, 2048, 3072, 4096},
            {64, 128, 256, 512, 1024, 2048},
            {1024, 4096, 16384, 32768, 51200}};
  }
  if (device == StepDevice::kGpu)
    return {{384, 768, 1536, 2560, 5120}, {96, 192, 384, 768, 1536}, {3072, 12288, 24576, 40960}};
  if (use == StepUse::kLearning)
    return {{64, 128, 192, 256, 320, 384, 512}, {32, 64, 128}, {256, 512, 1024, 2048}};
  return {{96, 160, 224, 288, 352, 416}, {48, 80, 112}, {288, 672, 1184}};
}

struct StrategyRow {
  const char* name = "";
  const char* kind = "";
  Json (*draw)(Dice& dice, uint32_t ranks) = nullptr;
  // Adds what else has to be said in a scenario that already has the strategy.
  void (*complete)(Dice& dice, uint32_t ranks, Json* scenario) = nullptr;
  // Its kernels and collectives are those of other rows, from which calibrations learn them.
  bool is_only_judged = false;
};

Json FourD(Dice& dice, uint32_t ranks) {
  const auto axes = dice.Split(ranks, 4);
  return {{"column", axes[0]},
          {"row", axes[1]},
          {"depth", axes[2]},
          {"data", axes[3]},
          {"transpose_alternate_layers", dice.Flip()},
          {"overlap_all_reduce", dice.Flip()},
          {"overlap_reduce_scatter", dice.Flip()},
          {"overlap_all_gather", dice.Flip()},
          {"cached_layers", 0}};
}
Json Megatron(Dice& dice, uint32_t ranks) {
  const auto axes = dice.Split(ranks, 2);
  return {{"tensor", axes[0]},
          {"data", axes[1]},
          {"sequence_parallel", dice.Flip()},
          {"overlap_all_reduce", dice.Flip()},
          {"overlap_gradients", dice.Flip()},
          {"distributed_optimizer", dice.Flip()}};
}
Json Fsdp(Dice& dice, uint32_t ranks) {
  const auto axes = dice.Split(ranks, 2);
  return {{"shard", axes[0]},
          {"replicas", axes[1]},
          {"overlap_gradients", dice.Flip()},
          {"overlap_reduce_scatter", dice.Flip()},
          {"prefetch", dice.Below(3)},
          {"reshard_after_forward", dice.Flip()}};
}
Json Sbp(Dice& dice, uint32_t ranks) {
  return {{"nodes", ranks},
          {"gpus", 1},
          {"overlap_all_reduce", dice.Flip()},
          {"overlap_gradients", dice.Flip()},
          {"products", {{"default", dice.Split(ranks, 3)}}}};
}
Json Atp(Dice& dice, uint32_t ranks) {
  const auto axes = dice.Split(ranks, 3);
  return {{"d1", axes[0]},   {"d2", axes[1]},
          {"data", axes[2]}, {"first", dice.Flip() ? "column" : "row"},
          {"chunks", 1},     {"overlap_all_reduce", dice.Flip()}};
}
Json Combined(Dice& dice, uint32_t) {
  return {{"overlap_all_reduce", dice.Flip()}, {"overlap_gradients", dice.Flip()}};
}

// Makes two stages, or as many as there are ranks.
void MakeStages(Dice& dice, uint32_t ranks, Json* scenario) {
  const uint32_t stages = ranks % 2 == 0 && dice.Flip() ? 2 : ranks;
  const uint64_t micro_batches = stages * (1 + dice.Below(2));
  Json& layers = (*scenario)["model"]["layers"];
  layers = std::max<uint64_t>(stages, layers.get<uint64_t>());
  (*scenario)["training"]["micro_batches"] = micro_batches;
  (*scenario)["training"]["batch"] = micro_batches * (ranks / stages);
  (*scenario)["strategy"].update({{"data", ranks / stages}, {"zero", 0}});
  (*scenario)["pipeline"] = {{"stages", stages}, {"schedule", dice.Flip() ? "1f1b" : "zb-h1"}};
}

// Adds experts, of which every rank has a few.
void AddExperts(Dice& dice, uint32_t ranks, Json* scenario) {
  Json& model = (*scenario)["model"];
  const auto hidden = model["hidden"].get<uint64_t>();
  model["style"] = "llama";
  model["feed_forward"] = 2 * hidden;
  model["experts"] = {
      {"count", ranks * (1 + dice.Below(4))}, {"per_token", 1 + dice.Below(2)}, {"hidden", hidden}};
  (*scenario)["strategy"].update({{"shard", ranks}, {"expert", ranks}, {"zero", 1}});
}

// Experts in one stage or several, passes in pairs in any order of their parts.
void MakePairs(Dice& dice, uint32_t ranks, Json* scenario) {
  const uint32_t stages = ranks % 2 == 0 && dice.Flip() ? 2 : dice.Flip() ? ranks : 1;
  const uint32_t mesh = ranks / stages;
  AddExperts(dice, mesh, scenario);
  const bool is_even = stages > 1 && stages % 2 == 0;
  std::vector<const char*> orders = {"1f1b"};
  if (stages > 1) orders.insert(orders.end(), {"interleaved", "zb-v", "dualpipev"});
  if (is_even) orders.emplace_back("dualpipe");
  const std::string order = dice.OneOf(orders);
  const bool is_one = order == "1f1b" || order == "dualpipe";
  Json& layers = (*scenario)["model"]["layers"];
  layers = is_one ? std::max<uint64_t>(stages, layers.get<uint64_t>()) : uint64_t{2} * stages;
  const uint64_t micro_batches = uint64_t{2} * stages * (1 + dice.Below(2));
  (*scenario)["training"]["micro_batches"] = micro_batches;
  (*scenario)["training"]["batch"] = micro_batches * mesh;
  Json& pipeline = (*scenario)["pipeline"];
  pipeline = {{"stages", stages}, {"schedule", order}, {"pair_passes", true}};
  const uint64_t table = dice.Below(PairOrders().size() + 1);
  if (table < PairOrders().size()) pipeline["pair_order"] = PairOrders()[table].name;
}

constexpr std::array kStrategies = {
    StrategyRow{"4d", "4d", FourD},
    StrategyRow{"sbp", "sbp", Sbp},
    StrategyRow{"atp", "atp", Atp},
    StrategyRow{"megatron", "megatron", Megatron},
    StrategyRow{"fsdp", "fsdp", Fsdp},
    StrategyRow{"stages", "combined", Combined, MakeStages},
    StrategyRow{"experts", "combined", Combined, AddExperts},
    StrategyRow{"pairs", "combined", Combined, MakePairs, true},
};

Json DrawNetwork(Dice& dice, uint32_t ranks, StepUse use, StepDevice device) {
  const Sizes sizes = SizesFor(use, device);
  const bool on_gpu = device == StepDevice::kGpu;
  const uint64_t layers = 1 + dice.Below(3);
  const uint64_t hidden = dice.OneOf(sizes.hidden);
  const uint64_t heads = on_gpu ? hidden / (dice.Flip() ? 64 : 128) : ranks * (1 + dice.Below(3));
  Json json;
  json["cluster"] = fmt::format("local-cpu:ranks={}", ranks);
  json["model"] = {{"name", "random"},
                   {"layers", layers},
                   {"hidden", hidden},
                   {"heads", heads},
                   {"vocabulary", dice.OneOf(sizes.vocabulary)}};
  json["training"] = {{"batch", ranks * (1 + dice.Below(4))},
                      {"sequence", dice.OneOf(sizes.sequence)},
                      {"micro_batches", 1},
                      {"recomputation", dice.Flip() ? "none" : "full"},
                      {"precision", on_gpu ? "bf16" : "fp32"}};
  return json;
}

// The name says sizes and switches, as in "h64 l2 s32 b4 v256, recomputed".
std::string NetworkName(const Json& json) {
  const Json& model = json["model"];
  const Json& training = json["training"];
  const auto number = [](const Json& object, const char* key) {
    return object[key].get<uint64_t>();
  };
  return fmt::format("h{} l{} s{} b{} v{}{}", number(model, "hidden"), number(model, "layers"),
                     number(training, "sequence"), number(training, "batch"),
                     number(model, "vocabulary"),
                     training["recomputation"] == "full" ? " recomputed" : "");
}

// The sizes of the mesh's axes: the first numbers of the strategy; for SBP, those of its products.
// Stages and experts are said as well.
std::string MeshName(const Json& scenario) {
  const Json& strategy = scenario["strategy"];
  if (scenario.contains("pipeline") && scenario["pipeline"].contains("pair_passes")) {
    const Json& pipeline = scenario["pipeline"];
    return fmt::format("{}x{} {} {}", pipeline["stages"].dump(), strategy["expert"].dump(),
                       pipeline["schedule"].get<std::string>(),
                       pipeline.value("pair_order", std::string("turns")));
  }
  if (scenario.contains("pipeline")) {
    return fmt::format("{}x{} {}", scenario["pipeline"]["stages"].dump(), strategy["data"].dump(),
                       scenario["pipeline"]["schedule"].get<std::string>());
  }
  if (scenario["model"].contains("experts")) {
    const Json& experts = scenario["model"]["experts"];
    return fmt::format("{} of {}", experts["per_token"].dump(), experts["count"].dump());
  }
  std::vector<std::string> sizes;
  if (strategy.contains("products")) {
    for (const Json& size : strategy["products"]["default"]) sizes.push_back(size.dump());
  } else {
    for (const auto& [key, value] : strategy.items()) {
      if (value.is_number() && key != "prefetch" && key != "cached_layers" && key != "chunks")
        sizes.push_back(value.dump());
    }
  }
  return fmt::format("{}", fmt::join(sizes, "x"));
}

// Returns nothing if the network cannot be split like that, or is too small or too large.
std::optional<RandomStep> TryStep(Json json, const StrategyRow& row, Dice& dice, uint32_t ranks,
                                  Flops least, Flops most) {
  Json strategy = {{"kind", row.kind}};
  strategy.update(row.draw(dice, ranks));
  RandomStep step;
  json["strategy"] = std::move(strategy);
  if (row.complete != nullptr) row.complete(dice, ranks, &json);
  step.strategy = row.name;
  step.name = fmt::format("{} {} {}", row.name, MeshName(json), NetworkName(json));
  json["name"] = step.name;
  step.scenario = json.dump(2);
  try {
    Scenario scenario = ReadScenario(JsonDocument::FromText(step.scenario, "random step"));
    scenario.allow_out_of_memory = true;  // it is drawn for devices other than the scenario's
    step.schedule = PrepareOne(scenario, "a random step").schedule;
  } catch (const Error&) {
    return std::nullopt;
  }
  const Flops own = step.schedule.hardware_flops / ranks;
  if (own < least || own > most) return std::nullopt;
  return step;
}

}  // namespace

std::vector<RandomStep> DrawSteps(uint64_t seed, uint32_t index, uint32_t ranks, StepUse use,
                                  Flops least, Flops most, StepDevice device) {
  Dice dice(HashAt(SeedOf(seed, use == StepUse::kLearning ? "learning" : "judging"), index));
  for (int draw = 0; draw < kMostDraws; ++draw) {
    const Json network = DrawNetwork(dice, ranks, use, device);
    std::vector<RandomStep> steps;
    bool has_all = true;
    for (const StrategyRow& row : kStrategies) {
      if (row.is_only_judged && use == StepUse::kLearning) continue;
      std::optional<RandomStep> step;
      for (int i = 0; i < kDrawsOfStrategy && !step; ++i)
        step = TryStep(network, row, dice, ranks, least, most);
      has_all = step.has_value();
      if (!has_all) break;
      steps.push_back(std::move(*step));
    }
    if (has_all) return steps;
  }
  throw InternalError(fmt::format("no random network for {} ranks", ranks));
}

}  // namespace rehearse

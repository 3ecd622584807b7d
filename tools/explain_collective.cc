#include "tools/explain_collective.h"

#include <algorithm>
#include <map>
#include <optional>
#include <set>

#include <fmt/format.h>
#include <nlohmann/json.hpp>

#include "collectives/algorithms/algorithm.h"
#include "collectives/lowering/plan_load.h"
#include "collectives/lowering/wire_bound.h"
#include "sim/base/units.h"
#include "sim/base/visible_text.h"
#include "tools/wire_bound_view.h"

namespace rehearse {
namespace {

using Json = nlohmann::ordered_json;

constexpr size_t kHopsShown = 64;   // of a part, in the text
constexpr size_t kPartsShown = 32;  // in the text

// Who sends to whom in a part; a switch that reduces has no rank.
struct Hop {
  std::optional<uint32_t> from;
  std::optional<uint32_t> to;

  friend auto operator<=>(const Hop&, const Hop&) = default;
};

struct CollectiveExplanation {
  Bytes bytes;
  Seconds time;
  GroupPlan plan;
  std::string library;                 // NCCL or RCCL; "" on other makers' devices
  std::vector<NcclCost> costs;         // what its model says; empty on other devices
  std::vector<Seconds> simulated;      // what each takes here
  std::vector<std::vector<Hop>> hops;  // by part, each once
  BindingLink binding;
  double busy = 0;  // share of the time in which the binding link moves bytes
  WireBound bound;  // zero where it was not looked for
};

std::vector<Hop> HopsOf(const GroupPlan& plan, size_t part_index) {
  const Part& part = plan.parts[part_index];
  const auto rank = [&](uint32_t position) -> std::optional<uint32_t> {
    if (position >= part.input.ranks()) return std::nullopt;
    return plan.ranks[part.order[position]];
  };
  std::vector<Hop> hops;
  std::set<Hop> seen;
  for (const PartMessage& message : MessagesOfPart(plan, part_index)) {
    const Hop hop{rank(message.from), rank(message.to)};
    if (seen.insert(hop).second) hops.push_back(hop);
  }
  return hops;
}

// Writes "0 > 1 > 2 > 0" as long as each hop begins where the one before ends.
std::string TextOf(const std::vector<Hop>& hops) {
  const auto name = [](std::optional<uint32_t> rank) {
    return rank ? fmt::format("{}", *rank) : std::string("switch");
  };
  std::string text;
  for (size_t i = 0; i < hops.size() && i < kHopsShown; ++i) {
    const bool goes_on = i > 0 && hops[i - 1].to == hops[i].from;
    if (!goes_on) text += (i > 0 ? ", " : "") + name(hops[i].from);
    text += " > " + name(hops[i].to);
  }
  if (hops.size() > kHopsShown) text += fmt::format(", ... ({} hops)", hops.size());
  return text;
}

// Sorts hops by sender, in the order of the part, so that a ring is listed all the way round.
void SortBySender(const Part& part, const std::vector<uint32_t>& ranks, std::vector<Hop>* hops) {
  std::map<std::optional<uint32_t>, size_t> place;
  for (const uint32_t member : part.order) place.emplace(ranks[member], place.size());
  place.emplace(std::nullopt, place.size());
  std::stable_sort(hops->begin(), hops->end(),
                   [&](const Hop& a, const Hop& b) { return place.at(a.from) < place.at(b.from); });
}

CollectiveExplanation Explain(const Trial& trial, Bytes bytes, Router& router,
                              ChannelFinder& finder, Tuner& tuner) {
  const std::vector<uint32_t>& ranks = trial.groups.front();
  CollectiveExplanation explanation;
  explanation.bytes = bytes;
  explanation.time = TimeOf(trial, bytes, router);
  explanation.plan =
      ArrangePlan(ChoiceOf(trial, bytes, tuner), trial.kind, trial.root, ranks, router, finder);
  explanation.library = tuner.LibraryOf(ranks);
  explanation.costs = tuner.CostsOf(ranks, trial.kind, bytes);
  for (const NcclCost& cost : explanation.costs) {
    Trial pinned = trial;
    pinned.algorithm = IdOf(cost.algorithm);
    pinned.protocol = cost.protocol;
    explanation.simulated.push_back(TimeOf(pinned, bytes, router));
  }
  for (size_t part = 0; part < explanation.plan.parts.size(); ++part) {
    explanation.hops.push_back(HopsOf(explanation.plan, part));
    SortBySender(explanation.plan.parts[part], ranks, &explanation.hops.back());
  }
  explanation.binding = BindingLinkOf(explanation.plan, router);
  const BytesPerSecond capacity = router.cluster().Link(explanation.binding.link).Capacity();
  explanation.busy = explanation.binding.bytes * bytes / capacity / explanation.time;
  if (ranks.size() > 1 && router.cluster().device_count() <= kMostForBound)
    explanation.bound =
        WireBounds(router.cluster(), ranks)
            .Of(trial.kind, bytes, trial.root, SwitchesOf(explanation.plan.choice.algorithm->id));
  return explanation;
}

// No remark is made unless the choice is at least twice as slow as the best.
constexpr double kMuchSlower = 2;
std::optional<size_t> MuchQuicker(const CollectiveExplanation& explanation) {
  if (explanation.simulated.empty()) return std::nullopt;
  const auto least = std::min_element(explanation.simulated.begin(), explanation.simulated.end());
  if (explanation.time < kMuchSlower * *least) return std::nullopt;
  return static_cast<size_t>(least - explanation.simulated.begin());
}

std::string TextOf(const CollectiveExplanation& explanation, const Trial& trial,
                   const Cluster& cluster) {
  const Choice& choice = explanation.plan.choice;
  std::string text =
      fmt::format("{} of {} on {}, {} ranks{}: {}\n\n", Name(trial.kind), Print(explanation.bytes),
                  VisibleText(cluster.name()), explanation.plan.ranks.size(),
                  trial.groups.size() > 1 ? " (the first group)" : "", Print(explanation.time));
  text +=
      fmt::format("chosen       {}, protocol {}", choice.algorithm->name(), Name(choice.protocol));
  if (choice.nccl_channels > 0)
    text +=
        fmt::format(", {} channel{}", choice.nccl_channels, choice.nccl_channels == 1 ? "" : "s");
  text +=
      fmt::format("\n             {} at the start; {:.1f} % of the bytes on the wire are data\n",
                  Print(choice.start), choice.bandwidth_share * 100);
  if (!explanation.costs.empty()) {
    text += fmt::format("\n{:<12} {:<10} {:<9} {:>10} {:>12} {:>12} {:>12}\n", explanation.library,
                        "algorithm", "protocol", "latency", "bandwidth", "expected", "simulated");
    for (size_t i = 0; i < explanation.costs.size(); ++i) {
      const NcclCost& cost = explanation.costs[i];
      text += fmt::format("             {:<10} {:<9} {:>10} {:>12} {:>12} {:>12}\n",
                          NcclName(IdOf(cost.algorithm)), Name(cost.protocol), Print(cost.latency),
                          Print(cost.bandwidth), Print(cost.Time(explanation.bytes)),
                          Print(explanation.simulated[i]));
    }
    if (const auto quicker = MuchQuicker(explanation)) {
      text +=
          fmt::format("             {}'s choice takes {:.1f} times as long here as {} with {}\n",
                      explanation.library, explanation.time / explanation.simulated[*quicker],
                      NcclName(IdOf(explanation.costs[*quicker].algorithm)),
                      Name(explanation.costs[*quicker].protocol));
    }
  }
  const std::vector<Part>& parts = explanation.plan.parts;
  text += fmt::format("\n{} part{}, by rank\n", parts.size(), parts.size() == 1 ? "" : "s");
  for (size_t i = 0; i < parts.size() && i < kPartsShown; ++i)
    text += fmt::format("{:>9.1f} %  {}\n", parts[i].share * 100, TextOf(explanation.hops[i]));
  if (parts.size() > kPartsShown)
    text += fmt::format("             ... ({} parts)\n", parts.size());
  const BindingLink& binding = explanation.binding;
  const ClusterLink& link = cluster.Link(binding.link);
  text += fmt::format(
      "\n"
      "binding link {} ({}, {} of {})\n"
      "             carries {:.3g} times the size, busy {:.1f} % of the time\n",
      cluster.LinkName(binding.link), Name(link.kind), Print(link.Capacity()),
      Print(link.bandwidth), binding.bytes, explanation.busy * 100);
  const WireBound& bound = explanation.bound;
  if (bound.time > Seconds(0))
    text += fmt::format(
        "the wires    allow {}: {} have to {} {}, which {} {} a second\n"
        "             {:.1f} % of this is reached\n",
        Print(bound.time), Print(bound.bytes), bound.leaves ? "leave" : "enter",
        VisibleText(bound.cut), bound.leaves ? "sends" : "takes",
        Print(Bytes(bound.carries.value())), 100 * (bound.time / explanation.time));
  return text;
}

Json JsonOf(const CollectiveExplanation& explanation, const Trial& trial, const Cluster& cluster) {
  const Choice& choice = explanation.plan.choice;
  Json json;
  json["schema"] = "rehearse.collective_explanation.v1";
  json["kind"] = Name(trial.kind);
  json["bytes"] = static_cast<uint64_t>(explanation.bytes.value());
  json["cluster"] = cluster.name();
  json["ranks"] = explanation.plan.ranks;
  json["seconds"] = explanation.time.value();
  json["chosen"] = {{"algorithm", choice.algorithm->name()},
                    {"protocol", Name(choice.protocol)},
                    {"channels", choice.nccl_channels},
                    {"start_seconds", choice.start.value()},
                    {"bandwidth_share", choice.bandwidth_share}};
  json["library"] = explanation.library;
  json["nccl_model"] = Json::array();
  for (size_t i = 0; i < explanation.costs.size(); ++i) {
    const NcclCost& cost = explanation.costs[i];
    json["nccl_model"].push_back({{"algorithm", NcclName(IdOf(cost.algorithm))},
                                  {"protocol", Name(cost.protocol)},
                                  {"latency_seconds", cost.latency.value()},
                                  {"bandwidth_bytes_per_second", cost.bandwidth.value()},
                                  {"seconds", cost.Time(explanation.bytes).value()},
                                  {"simulated_seconds", explanation.simulated[i].value()}});
  }
  const auto end = [](std::optional<uint32_t> rank) { return rank ? Json(*rank) : Json("switch"); };
  json["parts"] = Json::array();
  for (size_t i = 0; i < explanation.hops.size(); ++i) {
    Json hops = Json::array();
    for (const Hop& hop : explanation.hops[i]) hops.push_back({end(hop.from), end(hop.to)});
    json["parts"].push_back({{"share", explanation.plan.parts[i].share}, {"hops", hops}});
  }
  const ClusterLink& link = cluster.Link(explanation.binding.link);
  json["binding_link"] = {{"name", cluster.LinkName(explanation.binding.link)},
                          {"kind", Name(link.kind)},
                          {"capacity_bytes_per_second", link.Capacity().value()},
                          {"times_the_size", explanation.binding.bytes},
                          {"busy_share", explanation.busy}};
  const WireBound& bound = explanation.bound;
  if (bound.time > Seconds(0))
    json["bound"] = {{"seconds", bound.time.value()},
                     {"share", bound.time / explanation.time},
                     {"cut", bound.cut},
                     {"leaves", bound.leaves},
                     {"bytes", bound.bytes.value()},
                     {"bytes_per_second", bound.carries.value()}};
  return json;
}

}  // namespace

std::string ExplainCollective(const Trial& trial, Bytes bytes, Router& router,
                              ChannelFinder& finder, Tuner& tuner, OutputFormat format) {
  const CollectiveExplanation explanation = Explain(trial, bytes, router, finder, tuner);
  std::optional<NetworkPicture> network;
  if (trial.fidelity == Fidelity::kPacket) network = NetworkOf(trial, bytes, router);
  if (format == OutputFormat::kJson) {
    nlohmann::ordered_json json = JsonOf(explanation, trial, router.cluster());
    if (network) json["network"] = ToJson(*network);
    return json.dump(2) + "\n";
  }
  std::string text = TextOf(explanation, trial, router.cluster());
  if (network) {
    constexpr size_t kRows = 8;
    text +=
        "\nPorts of the network: longest queues, bars over time as shares of the longest; x: it "
        "had "
        "to stand still\n";
    for (const std::string& line : NetworkLines(*network, kRows)) text += "  " + line + "\n";
  }
  return text;
}

}  // namespace rehearse

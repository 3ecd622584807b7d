#include "tools/explain_collective.h"

#include <fmt/format.h>
#include <nlohmann/json.hpp>

#include "collectives/channels.h"
#include "sim/units.h"

namespace rehearse {
namespace {

using Json = nlohmann::ordered_json;

constexpr size_t kRanksShown = 64;  // of a ring, in text

struct Explanation {
  Choice choice;
  std::vector<NcclCost> costs;  // what NCCL's model has; none on other devices
  std::vector<Channel> channels;
  BindingLink binding;
};

std::string RingText(const Channel& channel) {
  std::string text;
  for (size_t i = 0; i < channel.ranks.size() && i < kRanksShown; ++i)
    text += fmt::format("{} ", channel.ranks[i]);
  if (channel.ranks.size() > kRanksShown)
    return text + fmt::format("... ({} in all)", channel.ranks.size());
  return text + fmt::format("{}", channel.ranks.front());
}

std::string TextOf(const Explanation& explanation, const Trial& trial, Bytes bytes,
                   const Cluster& cluster) {
  const auto& [choice, costs, channels, binding] = explanation;
  std::string text =
      fmt::format("{} of {} on {}, {} ranks{}\n\n", Name(trial.kind), Print(bytes), cluster.name(),
                  trial.groups.front().size(), trial.groups.size() > 1 ? " (the first group)" : "");
  text +=
      fmt::format("chosen       {}, protocol {}", choice.algorithm->name, Name(choice.protocol));
  if (choice.nccl_channels > 0)
    text +=
        fmt::format(", {} channel{}", choice.nccl_channels, choice.nccl_channels == 1 ? "" : "s");
  text +=
      fmt::format("\n             {} at the start; {:.1f} % of the bytes on the wire are data\n",
                  Print(choice.start), choice.bandwidth_share * 100);
  if (!costs.empty()) {
    text += fmt::format("\nNCCL's model {:<10} {:<9} {:>10} {:>12} {:>12}\n", "algorithm",
                        "protocol", "latency", "bandwidth", "time");
    for (const NcclCost& cost : costs) {
      text += fmt::format("             {:<10} {:<9} {:>10} {:>12} {:>12}\n", Name(cost.algorithm),
                          Name(cost.protocol), Print(cost.latency), Print(cost.bandwidth),
                          Print(cost.Time(bytes)));
    }
  }
  text += fmt::format("\n{} ring{}, {} together\n", channels.size(),
                      channels.size() == 1 ? "" : "s", Print(TotalRate(cluster, channels)));
  for (const Channel& channel : channels) {
    text += fmt::format("{:>9.1f} %  {}\n", channel.share * 100, RingText(channel));
  }
  const ClusterLink& link = cluster.Link(binding.link);
  text += fmt::format("\nbinding link {} ({}, {} of {}): {:.0f} % full, crossed {} time{}\n",
                      cluster.LinkName(binding.link), Name(link.kind), Print(link.Capacity()),
                      Print(link.bandwidth), binding.utilization * 100, binding.crossings,
                      binding.crossings == 1 ? "" : "s");
  return text;
}

Json JsonOf(const Explanation& explanation, const Trial& trial, Bytes bytes,
            const Cluster& cluster) {
  const auto& [choice, costs, channels, binding] = explanation;
  Json json;
  json["schema"] = "rehearse.collective_explanation.v1";
  json["kind"] = Name(trial.kind);
  json["bytes"] = bytes.value();
  json["cluster"] = cluster.name();
  json["ranks"] = trial.groups.front();
  json["chosen"] = {{"algorithm", choice.algorithm->name},
                    {"protocol", Name(choice.protocol)},
                    {"channels", choice.nccl_channels},
                    {"start_seconds", choice.start.value()},
                    {"bandwidth_share", choice.bandwidth_share}};
  json["nccl_model"] = Json::array();
  for (const NcclCost& cost : costs) {
    json["nccl_model"].push_back({{"algorithm", Name(cost.algorithm)},
                                  {"protocol", Name(cost.protocol)},
                                  {"latency_seconds", cost.latency.value()},
                                  {"bandwidth_bytes_per_second", cost.bandwidth.value()},
                                  {"seconds", cost.Time(bytes).value()}});
  }
  json["rings"] = Json::array();
  for (const Channel& channel : channels)
    json["rings"].push_back({{"ranks", channel.ranks}, {"share", channel.share}});
  json["rings_bytes_per_second"] = TotalRate(cluster, channels).value();
  const ClusterLink& link = cluster.Link(binding.link);
  json["binding_link"] = {{"name", cluster.LinkName(binding.link)},
                          {"kind", Name(link.kind)},
                          {"capacity_bytes_per_second", link.Capacity().value()},
                          {"utilization", binding.utilization},
                          {"crossings", binding.crossings}};
  return json;
}

}  // namespace

std::string ExplainCollective(const Trial& trial, Bytes bytes, Router& router, Tuner& tuner,
                              OutputFormat format) {
  const std::vector<uint32_t>& ranks = trial.groups.front();
  Explanation explanation;
  explanation.choice = ChoiceOf(trial, bytes, tuner);
  if (const auto& group = tuner.GroupOf(ranks))
    explanation.costs = AllCosts(*group, trial.kind, bytes);
  explanation.channels = ChannelFinder(router).Find(ranks, trial.channels);
  explanation.binding = FindBindingLink(router.cluster(), explanation.channels);
  if (format == OutputFormat::kJson)
    return JsonOf(explanation, trial, bytes, router.cluster()).dump(2) + "\n";
  return TextOf(explanation, trial, bytes, router.cluster());
}

}  // namespace rehearse

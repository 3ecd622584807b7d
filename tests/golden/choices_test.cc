// What groups on many machines get: their channels, how each algorithm lays them out, and what NCCL
// or RCCL would choose for each kind and size, at what cost, beside golden records.
#include <fmt/format.h>
#include <gtest/gtest.h>

#include "collectives/lowering/tuning.h"
#include "sim/base/error.h"
#include "sim/base/fnv.h"
#include "tests/collectives/schedules.h"
#include "tests/golden/record.h"

namespace rehearse {
namespace choices_test {

struct Machine {
  const char* name;
  const char* parameter;
  uint32_t value;
};
constexpr Machine kMachines[] = {
    {"dgx-a100", "nodes", 1},    {"dgx-a100", "nodes", 3},     {"dgx-h100", "nodes", 2},
    {"dgx-h100", "nodes", 3},    {"dgx-b200", "nodes", 2},     {"perlmutter", "nodes", 3},
    {"frontier", "nodes", 1},    {"frontier", "nodes", 3},     {"frontier-rocm6", "nodes", 2},
    {"mi300x", "nodes", 1},      {"mi300x", "nodes", 3},       {"mi355x", "nodes", 2},
    {"dgx-1-v100", "nodes", 2},  {"oneflow-v100", "nodes", 2}, {"rtx4090-pcie", "nodes", 1},
    {"leonardo", "nodes", 2},    {"alps", "nodes", 2},         {"piz-daint", "nodes", 6},
    {"roce-h100", "nodes", 2},   {"atp-ic4", "nodes", 2},      {"aws-p4d", "nodes", 2},
    {"gcp-a3-high", "nodes", 2}, {"gb200-nvl72", "racks", 1},  {"switch", "devices", 6}};

// All, the first three quarters, every second one, the first of each pair and the second of the
// other, backwards.
std::vector<std::vector<uint32_t>> GroupsOf(uint32_t devices) {
  std::vector<std::vector<uint32_t>> groups(4);
  for (uint32_t i = 0; i < devices; ++i) {
    groups[0].push_back(i);
    if (4 * i < 3 * devices) groups[1].push_back(i);
    if (i % 2 == 0) groups[2].push_back(i);
    if (i % 4 == 1 || i % 4 == 2) groups[3].insert(groups[3].begin(), i);
  }
  std::erase_if(groups, [](const auto& group) { return group.size() < 2; });
  return groups;
}

std::string TextOf(const std::vector<uint32_t>& numbers) {
  return fmt::format("{}", fmt::join(numbers, ","));
}

std::string ChannelsText(ChannelFinder* finder, const std::vector<uint32_t>& group,
                         uint32_t limit) {
  std::string text;
  for (const Channel& channel : finder->Find(group, limit)) {
    text += fmt::format("{} {:.9g} {} {:.9g}", TextOf(channel.ranks), channel.share, channel.ways,
                        1e-9 * channel.rate.value());
    for (const auto* uses : {&channel.uses, &channel.detour})
      for (const LinkUse& use : *uses)
        text += fmt::format(" {}x{}", use.link.index(), use.multiplicity);
    for (const Route* edge : channel.edges) text += " " + TextOf(edge->links);
    text += ";";
  }
  return text;
}

std::string PartsText(const std::vector<Part>& parts) {
  std::string text;
  for (const Part& part : parts) {
    text += fmt::format("{:.9g} {} {} {} {} {} {}", part.share, TextOf(part.input.extents),
                        part.input.root, part.input.pieces, part.input.variant, part.input.reversed,
                        TextOf(part.order));
    for (const auto* ways : {&part.to_switch, &part.from_switch})
      for (const SwitchWay& way : *ways)
        text += fmt::format(" {} {:.9g} {}", TextOf(way.links), 1e6 * way.latency.value(),
                            way.crosses_nodes);
    text += ";";
  }
  return text;
}

std::string TextOf(const Choice& choice) {
  return fmt::format("{} {} {} {} {:.9g} {:.9g} {} {:.9g} {:.9g};", choice.algorithm->name(),
                     Name(choice.protocol), choice.channels, choice.nccl_channels,
                     1e6 * choice.latency.value(), 1e6 * choice.start.value(), choice.steps_wait,
                     1e6 * choice.step_overhead.value(), choice.bandwidth_share);
}

// A line: how often it was refused, and an example; with a digest of all that was said.
class Outcomes {
 public:
  template <typename Say>
  void Add(const Say& say) {
    try {
      const std::string text = say();
      hash_.Add(text);
      example_ = text.substr(0, 60);
    } catch (const Error& error) {
      ++refused_;
      hash_.Add(error.what());
    }
    ++tried_;
  }
  std::string Line(const char* what) const {
    return fmt::format("{}: {} tried, {} refused; {}{}\n", what, tried_, refused_, example_,
                       DigestOf(what, hash_));
  }

 private:
  int tried_ = 0;
  int refused_ = 0;
  Fnv1a hash_;
  std::string example_;
};

void AddChoices(Router& router, const NcclSettings& settings, const std::vector<uint32_t>& group,
                Outcomes* choices, Outcomes* costs) {
  Tuner tuner(router, settings);
  for (const CollectiveKind kind : kCollectiveKinds) {
    for (double bytes = 16; bytes < 2e9; bytes *= 8) {
      Collective collective;
      collective.kind = kind;
      collective.bytes = Bytes(kind == CollectiveKind::kBarrier ? 0 : bytes);
      collective.algorithm = AlgorithmId::kAuto;
      collective.protocol = Protocol::kAuto;
      choices->Add([&] { return TextOf(tuner.Choose({collective, group})); });
      costs->Add([&] {
        std::string text;
        for (const NcclCost& cost : tuner.CostsOf(group, kind, collective.bytes)) {
          text += fmt::format("{} {} {:.9g} {:.9g};", static_cast<int>(cost.algorithm),
                              static_cast<int>(cost.protocol), 1e6 * cost.latency.value(),
                              1e-9 * cost.bandwidth.value());
        }
        return text;
      });
    }
  }
}

TEST(GoldenChoicesTest, AreThoseRecorded) {
  GoldenRecord record("choices");
  size_t number = 0;
  for (const Machine& machine : kMachines) {
    const auto cluster = testing::Preset(machine.name, machine.parameter, machine.value);
    for (const std::vector<uint32_t>& group : GroupsOf(cluster->device_count())) {
      if (record.IsLeftOut(number++)) continue;
      Router router(*cluster);
      ChannelFinder finder(router);
      Outcomes channels;
      for (const uint32_t limit : {0u, 1u, 3u})
        channels.Add([&] { return ChannelsText(&finder, group, limit); });
      Outcomes parts;
      for (const Algorithm& algorithm : Algorithms()) {
        for (const CollectiveKind kind : kCollectiveKinds) {
          if (!algorithm.kinds.Has(kind)) continue;
          const bool has_root =
              kind == CollectiveKind::kBroadcast || kind == CollectiveKind::kReduce;
          const uint32_t root = has_root ? static_cast<uint32_t>(group.size()) / 2 : 0;
          for (const uint32_t limit : {0u, 2u}) {
            parts.Add([&] {
              return PartsText(algorithm.arrange({kind, root, group, limit, router, finder}));
            });
          }
        }
      }
      Outcomes choices;
      Outcomes costs;
      for (const NcclVersion version : kNcclVersions)
        for (const bool nvls : {true, false})
          AddChoices(router, {version, nvls}, group, &choices, &costs);
      record.Add(fmt::format("{}:{} {}", machine.name, machine.value, TextOf(group)),
                 channels.Line("channels") + parts.Line("parts") + choices.Line("choices") +
                     costs.Line("costs"));
    }
  }
  record.End();
}

}  // namespace choices_test
}  // namespace rehearse

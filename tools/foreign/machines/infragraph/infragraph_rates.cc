#include "tools/foreign/machines/infragraph/infragraph_rates.h"

#include <algorithm>
#include <array>
#include <charconv>
#include <initializer_list>
#include <string_view>
#include <vector>

#include <fmt/format.h>

#include "sim/base/units.h"
#include "tools/foreign/machines/import_rates.h"

namespace rehearse {
namespace {

bool IsSmallLetter(char c) { return c >= 'a' && c <= 'z'; }
bool IsInfraDigit(char c) { return c >= '0' && c <= '9'; }

// Where a word of the text begins with this; npos: nowhere.
size_t FindWord(std::string_view text, std::string_view begin) {
  for (size_t at = text.find(begin); at != std::string_view::npos; at = text.find(begin, at + 1))
    if (at == 0 || !IsSmallLetter(text[at - 1])) return at;
  return std::string_view::npos;
}
bool HasWord(std::string_view text, std::initializer_list<std::string_view> begins) {
  return std::any_of(begins.begin(), begins.end(), [&](std::string_view begin) {
    return FindWord(text, begin) != std::string_view::npos;
  });
}

std::optional<double> LeadingNumber(std::string_view text) {
  double value = 0;
  if (text.empty() || !IsInfraDigit(text[0])) return std::nullopt;
  const auto [stop, fault] = std::from_chars(text.data(), text.data() + text.size(), value);
  if (fault != std::errc()) return std::nullopt;
  return value;
}

// "nvlink_3" and "nvlink 3.0" are 3 after "nvlink".
std::optional<double> NumberAfter(std::string_view text, std::string_view word) {
  const size_t at = FindWord(text, word);
  if (at == std::string_view::npos) return std::nullopt;
  std::string_view rest = text.substr(at + word.size());
  while (!rest.empty() && (rest[0] == ' ' || rest[0] == '_' || rest[0] == '-'))
    rest.remove_prefix(1);
  return LeadingNumber(rest);
}

// NVIDIA's compute capability that goes with a generation of NVLink.
std::optional<uint32_t> NvLinkGenerationIn(std::string_view text) {
  constexpr std::array<uint32_t, 6> kFirstSm = {0, 60, 70, 80, 90, 100};
  const auto number = NumberAfter(text, "nvlink");
  if (!number || *number < 1 || *number >= kFirstSm.size()) return std::nullopt;
  return kFirstSm[static_cast<size_t>(*number)];
}

// In GT/s.
std::optional<double> PcieGenerationIn(std::string_view text) {
  constexpr std::array<double, 7> kTransfers = {0, 2.5, 5, 8, 16, 32, 64};
  for (const std::string_view word : {"gen", "pcie", "express"}) {
    const auto number = NumberAfter(text, word);
    if (number && *number >= 1 && *number < kTransfers.size())
      return kTransfers[static_cast<size_t>(*number)];
  }
  return std::nullopt;
}

std::optional<uint32_t> LanesIn(std::string_view text) {
  for (const uint32_t lanes : {16u, 8u, 4u, 2u})
    if (HasWord(text, {fmt::format("x{}", lanes)})) return lanes;
  return std::nullopt;
}

// Gbit/s: "100gbe", "400 gbit/s", "ndr".
std::optional<double> PortSpeedIn(std::string_view text) {
  for (size_t i = 0; i < text.size(); ++i) {
    if (!IsInfraDigit(text[i]) || (i > 0 && (IsInfraDigit(text[i - 1]) || text[i - 1] == '.')))
      continue;
    const auto value = LeadingNumber(text.substr(i));
    size_t end = std::min(text.find_first_not_of("0123456789.", i), text.size());
    if (end < text.size() && (text[end] == ' ' || text[end] == '_')) ++end;
    const std::string_view unit = text.substr(end);
    const bool is_gigabit = unit.starts_with("g") && !unit.starts_with("gen") &&
                            !unit.starts_with("gpu") && !unit.starts_with("gt");
    constexpr double kFastest = 1e5;
    if (value && is_gigabit && *value > 0 && *value <= kFastest) return value;
  }
  struct InfiniBand {
    std::string_view name;
    double gigabits;
  };
  for (const InfiniBand& known : {InfiniBand{"xdr", 800}, InfiniBand{"ndr", 400},
                                  InfiniBand{"hdr", 200}, InfiniBand{"edr", 100}})
    if (HasWord(text, {known.name})) return known.gigabits;
  return std::nullopt;
}

bool AreBoth(const InfraVertex& a, const InfraVertex& b, VertexKind kind) {
  return a.kind == kind && b.kind == kind;
}
bool IsEither(const InfraVertex& a, const InfraVertex& b, VertexKind kind) {
  return a.kind == kind || b.kind == kind;
}

// A slot or an endpoint of PCIe, which takes no time.
bool IsSlot(const InfraVertex& vertex) {
  return vertex.component != nullptr && vertex.component->choice == InfraChoice::kCustom &&
         vertex.kind == VertexKind::kPcieSwitch;
}

Seconds InfraLatency(LinkKind kind, const InfraVertex& a, const InfraVertex& b) {
  const bool is_of_device = IsEither(a, b, VertexKind::kDevice);
  const bool is_of_nic = IsEither(a, b, VertexKind::kNic);
  switch (kind) {
    case LinkKind::kNvLink:
    case LinkKind::kXgmi:
      if (AreBoth(a, b, VertexKind::kDevice)) return kNvLinkHop;
      return is_of_device ? kNvLinkHop / 2 : Seconds(0);
    case LinkKind::kPcie:
      if (AreBoth(a, b, VertexKind::kDevice)) return kPcieHop;
      if (is_of_device) return kGpuUplink;
      if (is_of_nic) return kNicUplink;
      return IsSlot(a) || IsSlot(b) ? Seconds(0) : kPcieSwitchUplink;
    case LinkKind::kSocket:
      return kSocketHop;
    case LinkKind::kNetwork:
      if (AreBoth(a, b, VertexKind::kDevice)) return kNetworkHop;
      if (is_of_device) return kNetworkHop / 2;
      if (AreBoth(a, b, VertexKind::kNic)) return kNetworkPort * 2;
      return AreBoth(a, b, VertexKind::kSwitch) ? Seconds(0) : kNetworkPort;
    case LinkKind::kMemory:
      return Seconds(0);
  }
  CHECK(false);
}

InfraRate InfraNvLinkRate(const std::string& text, const GpuKind& gpu, uint32_t nvlinks) {
  constexpr uint32_t kUsualLinks = 12;
  const auto generation = NvLinkGenerationIn(text);
  InfraRate rate;
  rate.link = NvLinksOf(generation.value_or(gpu.sm), 1, Seconds(0));
  const uint32_t links = gpu.nvlinks > 0 ? gpu.nvlinks : kUsualLinks;
  const double share = static_cast<double>(links) / std::max(nvlinks, 1u);
  rate.link.bandwidth = rate.link.bandwidth * share;
  rate.assumed =
      fmt::format("no bandwidth; {} NVLinks ({}) at {}{}", links, gpu.device,
                  Print(rate.link.bandwidth / share),
                  nvlinks > 1 ? fmt::format(", spread over {} edges", nvlinks) : std::string());
  return rate;
}

InfraRate InfraPcieRate(const InfraLink& link, const GpuKind& gpu) {
  const auto generation = PcieGenerationIn(link.text);
  const auto lanes = LanesIn(link.text);
  PcieSlot slot = {generation.value_or(gpu.gigatransfers), lanes.value_or(16)};
  InfraRate rate;
  bool is_said = generation.has_value();
  if (link.gigatransfers) {
    if (ParseGigatransfers(fmt::format("{} GT/s", *link.gigatransfers))) {
      slot.gigatransfers = *link.gigatransfers;
      is_said = true;
    } else {
      rate.assumed = fmt::format("{} GT/s is no generation of PCIe; ", *link.gigatransfers);
      is_said = false;
    }
  }
  rate.link = PcieLinkOf(slot, Seconds(0));
  if (is_said && lanes) return {rate.link, ""};
  rate.assumed +=
      fmt::format("taken as PCIe of {} GT/s on {} lanes", slot.gigatransfers, slot.lanes);
  return rate;
}

InfraRate InfraNetworkRate(const InfraLink& link, const InfraVertex& a, const InfraVertex& b,
                           const GpuKind& gpu) {
  InfraRate rate;
  std::vector<const std::string*> texts = {&link.text};
  for (const InfraVertex* end : {&a, &b})  // a device's gigabytes are its memory
    if (end->kind != VertexKind::kDevice) texts.push_back(&end->text);
  for (const std::string* text : texts) {
    if (const auto gigabits = PortSpeedIn(*text)) {
      rate.link = NetworkPortOf(*gigabits * 1e3, Seconds(0));
      if (text != &link.text)
        rate.assumed = fmt::format("no bandwidth; {:g} Gbit/s, as of what it leads to", *gigabits);
      return rate;
    }
  }
  const double megabits = PortOfSlot({gpu.gigatransfers, 16});
  rate.link = NetworkPortOf(megabits, Seconds(0));
  rate.assumed =
      fmt::format("no bandwidth; taken as {:g} Gbit/s, what a slot of {} GT/s is made for",
                  megabits / 1e3, gpu.gigatransfers);
  return rate;
}

InfraRate UsualRateOf(const InfraLink& link, LinkKind kind, const InfraVertex& a,
                      const InfraVertex& b, const GpuKind& gpu, uint32_t nvlinks) {
  InfraRate rate;
  switch (kind) {
    case LinkKind::kNvLink:
      if (HasWord(link.text, {"c2c", "nvlink_c2c", "nvlink-c2c"})) {
        constexpr double kC2c = 450e9;  // NVIDIA's data sheet of GH200: 900 GB/s both ways together
        rate.link.kind = kind;
        rate.link.bandwidth = BytesPerSecond(kC2c);
        return rate;
      }
      return InfraNvLinkRate(link.text, gpu, nvlinks);
    case LinkKind::kXgmi:
      rate.link = XgmiLinksOf(gpu.gcn, 1, Seconds(0));
      rate.assumed = fmt::format("no bandwidth; one xGMI link at {}", Print(rate.link.bandwidth));
      return rate;
    case LinkKind::kPcie:
      return InfraPcieRate(link, gpu);
    case LinkKind::kSocket:
    case LinkKind::kMemory:
      rate.link = SocketLinkOf(kUnknownBetweenSockets);
      rate.assumed = fmt::format("no bandwidth; {} between sockets, as by NCCL",
                                 Print(kUnknownBetweenSockets));
      return rate;
    case LinkKind::kNetwork:
      return InfraNetworkRate(link, a, b, gpu);
  }
  CHECK(false);
}

}  // namespace

std::optional<LinkKind> LinkKindOfText(const std::string& text) {
  if (HasWord(text, {"nvl", "nvsw", "c2c"})) return LinkKind::kNvLink;
  if (HasWord(text, {"xgmi"})) return LinkKind::kXgmi;
  if (HasWord(text, {"pci"})) return LinkKind::kPcie;
  if (HasWord(text, {"upi", "qpi", "infinity"})) return LinkKind::kSocket;
  if (HasWord(text, {"eth", "infiniband", "roce", "slingshot", "ndr", "hdr"}))
    return LinkKind::kNetwork;
  return std::nullopt;
}

std::optional<VertexKind> SwitchKindOfText(const std::string& text) {
  if (HasWord(text, {"nvl", "nvsw", "nv-sw", "nv_sw"})) return VertexKind::kNvSwitch;
  if (HasWord(text, {"pci"})) return VertexKind::kPcieSwitch;
  return std::nullopt;
}

LinkKind InfraLinkKind(const InfraLink& link, const InfraVertex& a, const InfraVertex& b) {
  const bool is_to_nvswitch =
      IsEither(a, b, VertexKind::kDevice) && IsEither(a, b, VertexKind::kNvSwitch);
  if (is_to_nvswitch) return LinkKind::kNvLink;
  if (auto kind = LinkKindOfText(link.text)) {
    // AMD's Infinity Fabric joins sockets, and devices.
    if (*kind == LinkKind::kSocket && IsEither(a, b, VertexKind::kDevice)) kind = LinkKind::kXgmi;
    return *kind;
  }
  if (a.machine != b.machine || a.machine.empty()) return LinkKind::kNetwork;
  if (AreBoth(a, b, VertexKind::kDevice)) return LinkKind::kNvLink;
  return AreBoth(a, b, VertexKind::kSocket) ? LinkKind::kSocket : LinkKind::kPcie;
}

InfraRate InfraRateOf(const InfraLink& link, LinkKind kind, const InfraVertex& a,
                      const InfraVertex& b, const GpuKind& gpu, uint32_t nvlinks) {
  InfraRate rate = UsualRateOf(link, kind, a, b, gpu, nvlinks);
  rate.link.kind = kind;
  if (link.bandwidth) {
    rate.link.bandwidth = *link.bandwidth;
    rate.assumed = "";
  }
  rate.link.latency = link.latency ? *link.latency : InfraLatency(kind, a, b);
  return rate;
}

}  // namespace rehearse

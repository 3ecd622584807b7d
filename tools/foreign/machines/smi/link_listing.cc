#include "tools/foreign/machines/smi/link_listing.h"

#include <algorithm>
#include <charconv>
#include <cstdint>
#include <optional>

#include <fmt/format.h>

#include "sim/base/error.h"
#include "sim/base/json_document.h"
#include "sim/base/json_reader.h"
#include "tools/foreign/machines/import_devices.h"
#include "tools/foreign/machines/imported_cluster.h"

namespace rehearse {
namespace {

constexpr size_t kMostListed = 256;

struct ListedGpu {
  int line = 0;
  std::string model;
  uint32_t links = 0;  // that are active
};

std::string_view WithoutBlanks(std::string_view text) {
  constexpr std::string_view kBlanks = " \t\r";
  const size_t first = text.find_first_not_of(kBlanks);
  if (first == std::string_view::npos) return {};
  return text.substr(first, text.find_last_not_of(kBlanks) - first + 1);
}

// "GPU 0: NVIDIA A100-SXM4-80GB (UUID: GPU-...)" and "Link 0: ...": what stands behind the colon.
std::optional<std::string_view> BehindNumber(std::string_view line, std::string_view what) {
  if (!line.starts_with(what)) return std::nullopt;
  const size_t colon = line.find(':');
  if (colon == std::string_view::npos) return std::nullopt;
  const std::string_view number = line.substr(what.size(), colon - what.size());
  const bool is_number = !number.empty() && std::all_of(number.begin(), number.end(), [](char c) {
    return c >= '0' && c <= '9';
  });
  return is_number ? std::optional(WithoutBlanks(line.substr(colon + 1))) : std::nullopt;
}

std::vector<ListedGpu> ListedGpus(std::string_view text, const std::string& file) {
  std::vector<ListedGpu> gpus;
  int number = 0;
  while (!text.empty()) {
    const size_t end = std::min(text.find('\n'), text.size());
    const std::string_view line = WithoutBlanks(text.substr(0, end));
    text.remove_prefix(std::min(end + 1, text.size()));
    ++number;
    if (const auto model = BehindNumber(line, "GPU ")) {
      gpus.push_back({number, std::string(WithoutBlanks(model->substr(0, model->find('(')))), 0});
      if (gpus.size() > kMostListed)
        throw Error({file, number, ""}, fmt::format("there are more than {} GPUs", kMostListed));
    } else if (const auto state = BehindNumber(line, "Link ")) {
      if (gpus.empty())
        throw Error({file, number, ""}, "a link stands before the first GPU, \"GPU 0: ...\"");
      // "25.781 GB/s", or "<inactive>".
      if (!state->empty() && state->front() >= '0' && state->front() <= '9') ++gpus.back().links;
    }
  }
  return gpus;
}

// How many links join each pair; all of a GPU where there is a switch.
uint32_t LinksOfPair(const GpuKind& kind, uint32_t links, size_t gpus, const ListedGpu& first,
                     const std::string& file) {
  constexpr uint32_t kAmpere = 80;
  constexpr uint32_t kHopper = 90;
  constexpr size_t kOfDgx2 = 16;
  if (gpus == 2 || links == 0) return links;
  const bool is_board = kind.sm == kAmpere || kind.sm == kHopper;
  if (gpus == 4 && is_board && links % 3 == 0) return links / 3;
  if (kind.sm < kAmpere && gpus != kOfDgx2) {
    throw Error({file, first.line, ""},
                fmt::format("does not say where the links of {} GPUs lead, and {} may be joined in "
                            "several ways; expected the output of nvidia-smi topo -m",
                            gpus, kind.device));
  }
  return links;
}

}  // namespace

bool IsNvLinkStatus(std::string_view text) {
  bool has_gpu = false;
  while (!text.empty()) {
    const size_t end = std::min(text.find('\n'), text.size());
    const std::string_view line = WithoutBlanks(text.substr(0, end));
    text.remove_prefix(std::min(end + 1, text.size()));
    has_gpu = has_gpu || BehindNumber(line, "GPU ").has_value();
    if (has_gpu && BehindNumber(line, "Link ")) return true;
  }
  return false;
}

LinkListing ReadNvLinkStatus(std::string_view text, const std::string& file,
                             const std::string& device) {
  const std::vector<ListedGpu> gpus = ListedGpus(text, file);
  const ListedGpu& first = gpus.front();
  for (const ListedGpu& gpu : gpus) {
    if (gpu.links == first.links) continue;
    throw Error({file, gpu.line, ""},
                fmt::format("{} of its links are active, of the first GPU's {}: where they lead is "
                            "not said; expected the output of nvidia-smi topo -m",
                            gpu.links, first.links));
  }
  LinkListing listing;
  listing.device = device;
  if (device.empty()) {
    const std::optional<GpuKind> kind = FindGpuKindOfModel(first.model);
    if (kind) listing.device = kind->device;
  }
  const GpuKind kind = GpuKindOf(listing.device.empty() ? kAssumedDevice : listing.device);
  const uint32_t of_pair = LinksOfPair(kind, first.links, gpus.size(), first, file);
  std::string header;
  for (size_t i = 0; i < gpus.size(); ++i) header += fmt::format("\tGPU{}", i);
  listing.table = header + "\n";
  for (size_t i = 0; i < gpus.size(); ++i) {
    listing.table += fmt::format("GPU{}", i);
    for (size_t j = 0; j < gpus.size(); ++j)
      listing.table += i == j ? "\tX" : of_pair > 0 ? fmt::format("\tNV{}", of_pair) : "\tSYS";
    listing.table += "\n";
  }
  if (gpus.size() > 1) {
    listing.remarks.push_back(fmt::format(
        "nvidia-smi nvlink says neither where links lead nor what is on PCIe: {}, and no NICs "
        "(nvidia-smi topo -m says both)",
        of_pair == 0            ? std::string("none is active")
        : of_pair < first.links ? fmt::format("taken as {} between each two GPUs", of_pair)
        : gpus.size() == 2      ? std::string("taken as all between the two GPUs")
                                : fmt::format("taken as {} of each GPU to an NVSwitch", of_pair)));
  }
  return listing;
}

bool IsAmdTopologyJson(std::string_view text) {
  const size_t first = text.find_first_not_of(" \t\r\n");
  return first != std::string_view::npos && (text[first] == '[' || text[first] == '{') &&
         text.find("\"link_type\"") != std::string_view::npos;
}

LinkListing ReadAmdTopologyJson(std::string_view text, const std::string& file) {
  const JsonDocument document = JsonDocument::FromText(std::string(text), file);
  JsonReader root = document.Root();
  if (root.IsObject() && root.Has("topology")) root = root.At("topology");
  if (!root.IsArray()) root.Expected("a list of GPUs with their links");
  const std::vector<JsonReader> gpus = root.Elements();
  if (gpus.empty() || gpus.size() > kMostListed)
    root.Expected(fmt::format("1 to {} GPUs", kMostListed));
  std::string header;
  for (size_t i = 0; i < gpus.size(); ++i) header += fmt::format(" GPU{}", i);
  std::string types = "LINK TYPE TABLE:\n" + header + "\n";
  std::string hops = "HOPS TABLE:\n" + header + "\n";
  for (size_t i = 0; i < gpus.size(); ++i) {
    std::vector<std::string> type(gpus.size(), "N/A");
    std::vector<std::string> hop(gpus.size(), "N/A");
    for (const JsonReader& link : gpus[i].At("links").Elements()) {
      const auto to =
          static_cast<size_t>(link.At("gpu").Integer(0, static_cast<int64_t>(gpus.size()) - 1));
      const std::string name = link.At("link_type").String();
      type[to] = name == "XGMI" ? "XGMI" : to == i ? "SELF" : "PCIE";
      constexpr int64_t kMostHops = 1000;
      if (link.Has("num_hops") && link.At("num_hops").value().is_number())
        hop[to] = fmt::format("{}", link.At("num_hops").Integer(0, kMostHops));
    }
    types += fmt::format("GPU{} {}\n", i, fmt::join(type, " "));
    hops += fmt::format("GPU{} {}\n", i, fmt::join(hop, " "));
  }
  return {types + "\n" + hops, "", {}};
}

}  // namespace rehearse

#include "tools/foreign/machines/astra_sim/import_network.h"

#include <algorithm>
#include <charconv>
#include <cstdint>
#include <optional>
#include <set>
#include <sstream>
#include <utility>
#include <vector>

#include <fmt/format.h>

#include "sim/base/error.h"
#include "sim/base/json_document.h"
#include "sim/base/json_reader.h"
#include "sim/base/units.h"
#include "tools/foreign/machines/import_devices.h"
#include "tools/foreign/machines/infragraph/yaml_text.h"

namespace rehearse {
namespace {

constexpr const char* kNpu = "h100";  // where nothing says what NPUs are
constexpr uint64_t kMostNpus = 100'000;
constexpr uint64_t kMostAstraLinks = 400'000;
// Of networks given link by link: only the order in which chunks come depends on it.
constexpr BytesPerSecond kUnknownRate(1e18);
constexpr double kGigabyte = 1024.0 * 1024 * 1024;
constexpr double kMostGigabytes = 1e9;
constexpr double kMostNanoseconds = 1e9;

struct ShapeName {
  const char* name;
  AstraShape shape;
};
constexpr ShapeName kShapeNames[] = {{"Ring", AstraShape::kRing},
                                     {"FullyConnected", AstraShape::kFullyConnected},
                                     {"Switch", AstraShape::kSwitch}};

class AstraDrawing {
 public:
  AstraDrawing(const std::string& file, const std::string& device)
      : file_(file), cluster_(ClusterNameOf(file)) {
    if (!device.empty()) kind_ = GpuKindOf(device);
  }

  void Device(std::string_view words) {
    if (!kind_) kind_ = FindGpuKindInText(words);
  }

  void AddNpus(uint64_t count, uint64_t of_machine) {
    if (count == 0 || count > kMostNpus) {
      throw Error({file_, 0, ""}, fmt::format("found {} NPUs, expected at least 1 and at most {}",
                                              count, kMostNpus));
    }
    if (!kind_) {
      remarks_.Add(
          fmt::format("what NPUs compute with is not said; taken for {} (--device)", kNpu));
      kind_ = GpuKindOf(kNpu);
    }
    const uint32_t spec = cluster_.AddDeviceSpec(SpecOf(*kind_));
    for (uint64_t i = 0; i < count; ++i) {
      // ASTRA-sim knows no boxes, so its rings go from NPU to NPU once; in a box there would be as
      // many as its links allow.
      const std::string node =
          of_machine > 0 ? fmt::format("node{}", i / of_machine) : fmt::format("npu{}", i);
      const std::string name =
          of_machine > 0 ? fmt::format("{}/gpu{}", node, i % of_machine) : node;
      cluster_.AddVertex({name, VertexKind::kDevice, node}, spec);
    }
  }

  VertexId AddSwitch(const std::string& name, VertexKind kind, const std::string& node = "") {
    return cluster_.AddVertex({name, kind, node});
  }

  void Join(VertexId a, VertexId b, const ClusterLink& link) {
    links_ += 2;
    if (links_ > kMostAstraLinks) {
      throw Error({file_, 0, ""},
                  fmt::format("has more than {} links, the most that are drawn", kMostAstraLinks));
    }
    cluster_.AddLinks(a, b, link);
  }

  Remarks& remarks() { return remarks_; }

  ImportedCluster Finish() {
    ImportedCluster imported;
    imported.remarks = remarks_.Lines();
    cluster_.AddNote(fmt::format("Imported from {}, a network of ASTRA-sim.", Printable(file_)));
    for (const std::string& remark : imported.remarks) cluster_.AddNote(remark);
    imported.cluster = FinishImported(cluster_, file_);
    return imported;
  }

 private:
  std::string file_;
  ClusterBuilder cluster_;
  Remarks remarks_;
  std::optional<GpuKind> kind_;
  uint64_t links_ = 0;
};

// ---- A product of dimensions --------------------------------------------------------------------

ClusterLink LinkOf(const AstraDimension& dimension) {
  return {.kind = LinkKind::kNvLink,
          .index = 0,
          .bandwidth = dimension.bandwidth,
          .efficiency = 1,
          .latency = dimension.latency};
}

AstraShape ShapeOf(const JsonReader& name) {
  std::vector<std::string> names;
  for (const ShapeName& known : kShapeNames) names.emplace_back(known.name);
  return kShapeNames[name.Choice(names)].shape;
}

std::vector<AstraDimension> ReadDimensions(const JsonReader& root, Remarks& remarks) {
  constexpr const char* kNames[] = {"topology", "npus_count", "bandwidth", "latency"};
  for (const auto& [name, value] : root.Members()) {
    if (std::find(std::begin(kNames), std::end(kNames), name) == std::end(kNames))
      remarks.Add(fmt::format("not understood: {}", Printable(name)));
  }
  std::vector<JsonReader> of[std::size(kNames)];
  for (size_t i = 0; i < std::size(kNames); ++i) {
    const JsonReader value = root.At(kNames[i]);
    of[i] = value.IsArray() ? value.Elements() : std::vector<JsonReader>{value};
    if (of[i].size() != of[0].size() || of[i].empty()) {
      value.Fail(fmt::format("found {} values, expected {}, one for each dimension", of[i].size(),
                             std::max<size_t>(of[0].size(), 1)));
    }
  }
  std::vector<AstraDimension> dimensions;
  uint64_t npus = 1;
  for (size_t d = 0; d < of[0].size(); ++d) {
    AstraDimension dimension;
    dimension.shape = ShapeOf(of[0][d]);
    dimension.size = static_cast<uint32_t>(of[1][d].Integer(1, kMostNpus));
    const double gigabytes = of[2][d].Number(0, kMostGigabytes);
    if (gigabytes <= 0) of[2][d].Expected("GB/s, above 0");
    const double nanoseconds = of[3][d].Number(0, kMostNanoseconds);
    dimension.bandwidth = BytesPerSecond(gigabytes * kGigabyte);
    dimension.latency = Seconds(nanoseconds / 1e9);
    npus *= dimension.size;
    if (npus > kMostNpus) of[1][d].Fail(fmt::format("more than {} NPUs", kMostNpus));
    dimensions.push_back(dimension);
  }
  return dimensions;
}

// One dimension's links among the NPUs that differ in it only: first, first + stride, ...
void DrawDimension(const AstraDimension& dimension, const std::string& name, uint64_t first,
                   uint64_t stride, AstraDrawing* drawing) {
  const auto npu = [&](uint64_t i) { return static_cast<VertexId>(first + i * stride); };
  const uint64_t size = dimension.size;
  const ClusterLink link = LinkOf(dimension);
  if (dimension.shape == AstraShape::kSwitch) {
    const VertexId middle = drawing->AddSwitch(name, VertexKind::kNvSwitch);
    for (uint64_t i = 0; i < size; ++i) drawing->Join(npu(i), middle, link);
    return;
  }
  for (uint64_t i = 0; i < size; ++i) {
    if (dimension.shape == AstraShape::kFullyConnected) {
      for (uint64_t j = i + 1; j < size; ++j) drawing->Join(npu(i), npu(j), link);
    } else if (i + 1 < size) {
      drawing->Join(npu(i), npu(i + 1), link);
    } else if (size > 2) {
      drawing->Join(npu(i), npu(0), link);
    }
  }
}

ImportedCluster DrawProduct(const JsonReader& root, AstraDrawing drawing) {
  const std::vector<AstraDimension> dimensions = ReadDimensions(root, drawing.remarks());
  uint64_t npus = 1;
  for (const AstraDimension& dimension : dimensions) npus *= dimension.size;
  drawing.AddNpus(npus, 0);
  uint64_t stride = 1;
  for (size_t d = 0; d < dimensions.size(); ++d) {
    const uint64_t size = dimensions[d].size;
    uint64_t groups = 0;
    for (uint64_t first = 0; size > 1 && first < npus; ++first) {
      if (first / stride % size != 0) continue;
      DrawDimension(dimensions[d], fmt::format("dimension{}/switch{}", d + 1, groups++), first,
                    stride, &drawing);
    }
    stride *= size;
  }
  return drawing.Finish();
}

// ---- Link by link -------------------------------------------------------------------------------

constexpr size_t kFieldsOfNs3 = 3;
constexpr size_t kFieldsOfSimAi = 6;

class LinkList {
 public:
  LinkList(std::string_view text, const std::string& file)
      : lines_(std::string(text)), file_(file) {}

  // The words of the next line that has some.
  std::vector<std::string> Next() {
    std::string line;
    std::vector<std::string> words;
    while (words.empty() && std::getline(lines_, line)) {
      ++line_;
      std::istringstream parts(line);
      for (std::string word; parts >> word;) words.push_back(word);
    }
    return words;
  }

  uint64_t Count(const std::string& word, uint64_t most) const {
    uint64_t value = 0;
    const auto [end, fault] = std::from_chars(word.data(), word.data() + word.size(), value);
    if (fault != std::errc() || end != word.data() + word.size() || value > most)
      Fail(fmt::format("found {}, expected a whole number of at most {}", Quoted(word), most));
    return value;
  }

  // "400Gbps" and "0.0005ms".
  ClusterLink LinkOf(const std::string& rate, const std::string& delay) const {
    ClusterLink link;
    try {
      link.bandwidth = ParseBandwidth(rate);
      link.latency = ParseDuration(delay);
    } catch (const Error& error) {
      Fail(error.what());
    }
    return link;
  }

  [[noreturn]] void Fail(const std::string& message) const {
    throw Error({file_, line_, ""}, message);
  }

 private:
  std::istringstream lines_;
  std::string file_;
  int line_ = 0;
};

ImportedCluster DrawLinks(std::string_view text, const std::string& file, AstraDrawing drawing) {
  LinkList list(text, file);
  const std::vector<std::string> head = list.Next();
  const bool is_simai = head.size() == kFieldsOfSimAi;
  if (!is_simai && head.size() != kFieldsOfNs3) {
    list.Fail(
        "expected \"nodes switches links\", or \"nodes GPUs-per-server NVSwitches switches links "
        "GPU\", or YAML with topology, npus_count, bandwidth and latency");
  }
  constexpr uint64_t kMostNodes = 2 * kMostNpus;
  const uint64_t nodes = list.Count(head[0], kMostNodes);
  const uint64_t of_machine = is_simai ? list.Count(head[1], kMostNpus) : 0;
  const uint64_t nvswitches = is_simai ? list.Count(head[2], kMostNodes) : 0;
  const uint64_t fabric = list.Count(head[is_simai ? 3 : 1], kMostNodes);
  const uint64_t count = list.Count(head[is_simai ? 4 : 2], kMostAstraLinks);
  const uint64_t switches = nvswitches + fabric;
  if (switches >= nodes) list.Fail("expected fewer switches than nodes");
  if (is_simai) {
    drawing.Device(head[5]);
    if (of_machine == 0) list.Fail("found 0 GPUs of a server, expected at least 1");
  }
  // Devices are numbered first.
  const uint64_t npus = nodes - switches;
  std::vector<uint64_t> given;
  while (given.size() < switches) {
    const std::vector<std::string> words = list.Next();
    if (words.empty()) list.Fail(fmt::format("expected the numbers of {} switches", switches));
    for (const std::string& word : words) given.push_back(list.Count(word, nodes - 1));
  }
  std::set<uint64_t> numbers(given.begin(), given.end());
  if (given.size() != switches || numbers.size() != switches || *numbers.begin() != npus)
    list.Fail(
        fmt::format("expected the {} numbers from {} on, as switches come last", switches, npus));
  drawing.AddNpus(npus, of_machine);
  const uint64_t machines = of_machine > 0 ? std::max<uint64_t>(npus / of_machine, 1) : 1;
  const uint64_t of_each = std::max<uint64_t>(nvswitches / machines, 1);
  for (uint64_t i = 0; i < switches; ++i) {
    const bool is_inside = i < nvswitches;
    const std::string node = is_inside ? fmt::format("node{}", i / of_each) : "";
    drawing.AddSwitch(is_inside ? fmt::format("{}/nvswitch{}", node, i % of_each)
                                : fmt::format("switch{}", i - nvswitches),
                      is_inside ? VertexKind::kNvSwitch : VertexKind::kSwitch, node);
  }
  const auto is_nvswitch = [&](uint64_t node) { return node >= npus && node < npus + nvswitches; };
  bool has_errors = false;
  constexpr size_t kFieldsOfLink = 4;  // what is lost may stand behind
  for (uint64_t i = 0; i < count; ++i) {
    const std::vector<std::string> words = list.Next();
    if (words.size() < kFieldsOfLink)
      list.Fail(fmt::format("found {} links, expected {}: from to 400Gbps 0.0005ms", i, count));
    const uint64_t a = list.Count(words[0], nodes - 1);
    const uint64_t b = list.Count(words[1], nodes - 1);
    if (a == b) list.Fail("a link joins a node with itself");
    ClusterLink link = list.LinkOf(words[2], words[3]);
    if (is_nvswitch(a) || is_nvswitch(b)) link.kind = LinkKind::kNvLink;
    has_errors = has_errors || (words.size() > kFieldsOfLink && words[4] != "0");
    drawing.Join(static_cast<VertexId>(a), static_cast<VertexId>(b), link);
  }
  if (has_errors) drawing.remarks().Add("rates of lost packets are left out");
  return drawing.Finish();
}

}  // namespace

std::vector<AstraDimension> ReadAstraDimensions(std::string_view text, const std::string& file) {
  RefuseNonText(text, file, "a network of ASTRA-sim", Escapes::kRefused);
  const size_t first = text.find_first_not_of(" \t\r\n");
  if (first != std::string_view::npos && text[first] >= '0' && text[first] <= '9') {
    LinkList list(text, file);
    const std::vector<std::string> head = list.Next();
    constexpr uint64_t kMostNodes = 2 * kMostNpus;
    const bool is_simai = head.size() == kFieldsOfSimAi;
    const uint64_t nodes = list.Count(head[0], kMostNodes);
    uint64_t switches = 0;
    for (size_t i = is_simai ? 2 : 1; i < (is_simai ? 4u : 2u) && i < head.size(); ++i)
      switches += list.Count(head[i], kMostNodes);
    if (switches >= nodes) list.Fail("expected fewer switches than nodes");
    return {{.shape = AstraShape::kRing,
             .size = static_cast<uint32_t>(nodes - switches),
             .bandwidth = kUnknownRate,
             .latency = Seconds(0)}};
  }
  const JsonDocument document = ReadYaml(text, file);
  const JsonReader root = document.Root();
  if (root.IsObject() && root.Has("topology")) {
    Remarks remarks;
    return ReadDimensions(root, remarks);
  }
  if (!root.IsObject() || !root.Has("logical-dims"))
    root.Expected("topology, npus_count, bandwidth and latency, or logical-dims");
  std::vector<AstraDimension> dimensions;
  uint64_t npus = 1;
  for (const JsonReader& size : root.At("logical-dims").Elements()) {
    AstraDimension dimension;
    dimension.bandwidth = kUnknownRate;
    const std::string word = size.IsString() ? size.String() : "";
    const auto [end, fault] =
        std::from_chars(word.data(), word.data() + word.size(), dimension.size);
    if (!size.IsString())
      dimension.size = static_cast<uint32_t>(size.Integer(1, kMostNpus));
    else if (fault != std::errc() || end != word.data() + word.size() || dimension.size == 0)
      size.Expected("how many NPUs the dimension has");
    npus *= dimension.size;
    if (npus > kMostNpus) size.Fail(fmt::format("more than {} NPUs", kMostNpus));
    dimensions.push_back(dimension);
  }
  if (dimensions.empty()) root.At("logical-dims").Expected("the size of each dimension");
  return dimensions;
}

ImportedCluster ImportAstraNetwork(std::string_view text, const std::string& file,
                                   const std::string& device) {
  RefuseNonText(text, file, "a network of ASTRA-sim", Escapes::kRefused);
  AstraDrawing drawing(file, device);
  const size_t first = text.find_first_not_of(" \t\r\n");
  if (first != std::string_view::npos && text[first] >= '0' && text[first] <= '9')
    return DrawLinks(text, file, std::move(drawing));
  const JsonDocument document = ReadYaml(text, file);
  const JsonReader root = document.Root();
  if (root.IsObject() && root.Has("logical-dims")) {
    root.Fail(
        "says the logical dimensions of ns-3's backend only; expected the file of its links, "
        "\"nodes switches links\"");
  }
  if (!root.IsObject() || !root.Has("topology"))
    root.Expected("topology, npus_count, bandwidth and latency of each dimension");
  return DrawProduct(root, std::move(drawing));
}

}  // namespace rehearse

#include "tools/foreign/machines/nccl/nccl_graph.h"

#include <algorithm>

#include <fmt/format.h>

#include "tools/foreign/machines/xml_document.h"

namespace rehearse {
namespace {

constexpr const char* kGraphExpected = "NCCL's graphs (NCCL_GRAPH_DUMP_FILE)";
constexpr int64_t kRingPattern = 4;  // NCCL_TOPO_PATTERN_RING
constexpr uint32_t kMostDevs = 1023;

const char* NameOfPattern(int64_t pattern) {
  switch (pattern) {
    case 1:
    case 2:
    case 3:
      return "trees";
    case 5:
      return "NVLS";
    case 6:
      return "CollNet";
    default:
      return "a pattern that is not known";
  }
}

class GraphReader {
 public:
  GraphReader(std::string_view text, const std::string& file)
      : document_(text, file, kGraphExpected, Doctype::kRefused) {}

  NcclGraphRings Read() {
    const pugi::xml_node root = document_.Root();
    if (std::string_view(root.name()) != "graphs") {
      document_.Fail(
          root, fmt::format("found <{}>, expected {}", XmlDocument::NameOf(root), kGraphExpected));
    }
    for (const pugi::xml_node graph : document_.Elements(root)) {
      if (std::string_view(graph.name()) != "graph") {
        remarks_.Add("not understood, left out", fmt::format("<{}>", XmlDocument::NameOf(graph)));
        continue;
      }
      constexpr int64_t kMostPattern = 1000;
      const int64_t pattern =
          document_.Number(graph, "pattern", 0, kMostPattern).value_or(kMostPattern);
      if (pattern != kRingPattern)
        remarks_.Add(fmt::format("the graph of {} is left out", NameOfPattern(pattern)));
      else
        ReadRings(graph);
    }
    if (read_.rings.empty())
      document_.Fail(root, "found no graph of rings (pattern=\"4\") with channels, expected one");
    read_.remarks = remarks_.Lines();
    return std::move(read_);
  }

 private:
  void ReadRings(pugi::xml_node graph) {
    if (!read_.rings.empty()) document_.Fail(graph, "a second graph of rings, expected one");
    constexpr double kFastest = 1e6;
    read_.gigabytes_per_second = document_.Decimal(graph, "speedintra", 0, kFastest);
    for (const pugi::xml_node channel : document_.Elements(graph)) {
      std::vector<uint32_t> ring;
      for (const pugi::xml_node end : document_.Elements(channel)) {
        const std::string_view name = end.name();
        if (name == "net") {
          has_nets_ = true;
        } else if (name != "gpu") {
          remarks_.Add("not understood, left out", fmt::format("<{}>", XmlDocument::NameOf(end)));
        } else if (const auto dev = document_.Count(end, "dev", kMostDevs)) {
          ring.push_back(*dev);
        } else {
          document_.Fail(end, "a <gpu> without dev, expected the number of a device");
        }
      }
      CheckRing(channel, ring);
      read_.rings.push_back(std::move(ring));
    }
    if (has_nets_)
      remarks_.Add("which NIC a channel takes is left out: here each device has its nearest");
  }

  void CheckRing(pugi::xml_node channel, const std::vector<uint32_t>& ring) const {
    std::vector<uint32_t> devices = ring;
    std::sort(devices.begin(), devices.end());
    for (uint32_t i = 0; i < devices.size(); ++i) {
      if (devices[i] == i) continue;
      document_.Fail(channel, fmt::format("a ring of {} devices {}, expected each of 0 to {} once",
                                          ring.size(),
                                          devices[i] < i ? fmt::format("has {} twice", devices[i])
                                                         : fmt::format("lacks device {}", i),
                                          ring.size() - 1));
    }
    if (ring.empty() || (!read_.rings.empty() && read_.rings.front().size() != ring.size())) {
      document_.Fail(channel, fmt::format("found a ring of {} devices, expected {}", ring.size(),
                                          ring.empty() ? "some" : "as many as in the first"));
    }
  }

  XmlDocument document_;
  Remarks remarks_;
  NcclGraphRings read_;
  bool has_nets_ = false;
};

}  // namespace

NcclGraphRings ReadNcclGraph(std::string_view text, const std::string& file) {
  RefuseNonText(text, file, kGraphExpected, Escapes::kRefused);
  return GraphReader(text, file).Read();
}

}  // namespace rehearse

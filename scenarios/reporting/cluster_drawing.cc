#include "scenarios/reporting/cluster_drawing.h"

#include <map>
#include <set>
#include <string>
#include <utility>

#include <fmt/format.h>

#include "sim/base/units.h"
#include "sim/report/svg.h"
#include "topology/view/cluster_layout.h"

namespace rehearse {
namespace {

using Json = nlohmann::ordered_json;
using Ends = std::pair<std::string, std::string>;

// The box that shows a vertex: its own, or that of its machine or group.
class Boxes {
 public:
  explicit Boxes(const ClusterLayout& layout) : shown_by_(layout.shown_by) {
    for (const PlacedBox& box : layout.boxes) titles_.insert(box.title);
  }

  // "" if none does.
  std::string Of(const std::string& vertex) const {
    const auto known = shown_by_.find(vertex);
    if (known != shown_by_.end()) return known->second;
    for (std::string name = vertex;;) {
      if (titles_.count(name) > 0) return name;
      const size_t slash = name.rfind('/');
      if (slash == std::string::npos) return "";
      name.resize(slash);
    }
  }

 private:
  std::set<std::string> titles_;
  const std::map<std::string, std::string>& shown_by_;
};

Ends Sorted(std::string a, std::string b) {
  if (b < a) std::swap(a, b);
  return {std::move(a), std::move(b)};
}

std::string PathOf(const PlacedLink& link) {
  using svg::Pixels;
  if (link.from_pull.x == 0 && link.from_pull.y == 0)
    return fmt::format("M{} {}L{} {}", Pixels(link.from.x), Pixels(link.from.y), Pixels(link.to.x),
                       Pixels(link.to.y));
  return fmt::format("M{} {}C{} {} {} {} {} {}", Pixels(link.from.x), Pixels(link.from.y),
                     Pixels(link.from.x + link.from_pull.x), Pixels(link.from.y + link.from_pull.y),
                     Pixels(link.to.x + link.to_pull.x), Pixels(link.to.y + link.to_pull.y),
                     Pixels(link.to.x), Pixels(link.to.y));
}

// By the titles of two boxes.
std::map<Ends, std::set<uint32_t>> RecordsByEnds(const Cluster& cluster, const Boxes& boxes,
                                                 const std::vector<uint32_t>& record_of_way) {
  constexpr uint32_t kMostLooks = 400'000;  // names are made on demand
  std::map<Ends, std::set<uint32_t>> records;
  for (uint32_t i = 0; i < cluster.link_count() && i < kMostLooks; ++i) {
    if (record_of_way[i] == kNotDrawn) continue;
    const std::string from = boxes.Of(cluster.VertexAt(cluster.SourceOf(i)).name);
    const std::string to = boxes.Of(cluster.VertexAt(cluster.TargetOf(i)).name);
    if (!from.empty() && !to.empty() && from != to)
      records[Sorted(from, to)].insert(record_of_way[i]);
  }
  for (uint32_t way = cluster.link_count(); way < cluster.way_count(); ++way) {
    if (record_of_way[way] == kNotDrawn) continue;
    for (const uint32_t cable : cluster.CablesOf(way)) {
      const std::string from = boxes.Of(cluster.VertexAt(cluster.SourceOf(cable)).name);
      const std::string to = boxes.Of(cluster.VertexAt(cluster.TargetOf(cable)).name);
      if (!from.empty() && !to.empty() && from != to)
        records[Sorted(from, to)].insert(record_of_way[way]);
    }
  }
  return records;
}

}  // namespace

Json DrawCluster(const Cluster& cluster, const std::vector<uint32_t>& record_of_way) {
  constexpr double kMargin = 24;
  ClusterLayout layout = LayOutCluster(cluster);
  Frame frame = FrameOf(layout);
  for (const Caption& caption : layout.captions) {
    const double half = svg::TextWidth(caption.text, 12) / 2;
    frame.Include(caption.at.x - half, caption.at.y - 12);
    frame.Include(caption.at.x + half, caption.at.y + 4);
  }
  MoveIntoView(frame, kMargin, &layout);
  const auto records = RecordsByEnds(cluster, Boxes(layout), record_of_way);

  Json drawing;
  drawing["name"] = cluster.name();
  drawing["devices"] = cluster.device_count();
  drawing["width"] = layout.width;
  drawing["height"] = layout.height;
  drawing["nodes"] = Json::array();
  for (const PlacedNode& node : layout.nodes)
    drawing["nodes"].push_back({node.corner.x, node.corner.y, node.width, node.height, node.label});
  drawing["boxes"] = Json::array();
  for (const PlacedBox& box : layout.boxes)
    drawing["boxes"].push_back({box.center.x, box.center.y, box.width, box.height, Name(box.kind),
                                box.label, box.title, box.dots});
  drawing["links"] = Json::array();
  for (const PlacedLink& link : layout.links) {
    Json one = {
        {"path", PathOf(link)},
        {"kind", Name(link.kind)},
        {"count", link.count},
        {"count_at", {PlaceOfCount(link).x, PlaceOfCount(link).y}},
        {"together", Print(link.count * link.bandwidth)},
        {"title", fmt::format("{}{}: {} {}", link.count > 1 ? fmt::format("{} x ", link.count) : "",
                              link.title, Name(link.kind), Print(link.bandwidth))},
        {"records", Json::array()}};
    const size_t dash = link.title.find(" - ");
    if (dash != std::string::npos) {
      const auto found =
          records.find(Sorted(link.title.substr(0, dash), link.title.substr(dash + 3)));
      if (found != records.end()) one["records"] = found->second;
    }
    drawing["links"].push_back(std::move(one));
  }
  drawing["captions"] = Json::array();
  for (const Caption& caption : layout.captions)
    drawing["captions"].push_back({caption.at.x, caption.at.y, caption.text});
  return drawing;
}

}  // namespace rehearse

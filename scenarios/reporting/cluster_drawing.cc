#include "scenarios/reporting/cluster_drawing.h"

#include <algorithm>
#include <string>
#include <utility>

#include <fmt/format.h>

#include "sim/base/units.h"
#include "sim/report/svg.h"
#include "topology/view/cluster_layout.h"

namespace rehearse {
namespace {

using Json = nlohmann::ordered_json;

constexpr uint32_t kNone = 0xffffffffu;
constexpr uint32_t kUnknown = 0xfffffffeu;

uint64_t PairOf(uint32_t a, uint32_t b) {
  return static_cast<uint64_t>(std::min(a, b)) << 32 | std::max(a, b);
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

}  // namespace

ClusterDrawing::ClusterDrawing(std::shared_ptr<const Cluster> drawn)
    : cluster_(std::move(drawn)), box_of_vertex_(cluster_->vertex_count(), kUnknown) {
  constexpr double kMargin = 24;
  ClusterLayout layout = LayOutCluster(*cluster_);
  Frame frame = FrameOf(layout);
  for (const Caption& caption : layout.captions) {
    const double half = svg::TextWidth(caption.text, 12) / 2;
    frame.Include(caption.at.x - half, caption.at.y - 12);
    frame.Include(caption.at.x + half, caption.at.y + 4);
  }
  MoveIntoView(frame, kMargin, &layout);
  for (const PlacedBox& box : layout.boxes)
    box_of_title_.try_emplace(box.title, static_cast<uint32_t>(box_of_title_.size()));
  shown_by_ = std::move(layout.shown_by);

  drawing_["name"] = cluster_->name();
  drawing_["devices"] = cluster_->device_count();
  drawing_["width"] = layout.width;
  drawing_["height"] = layout.height;
  drawing_["nodes"] = Json::array();
  for (const PlacedNode& node : layout.nodes)
    drawing_["nodes"].push_back(
        {node.corner.x, node.corner.y, node.width, node.height, node.label});
  drawing_["boxes"] = Json::array();
  for (const PlacedBox& box : layout.boxes)
    drawing_["boxes"].push_back({box.center.x, box.center.y, box.width, box.height, Name(box.kind),
                                 box.label, box.title, box.dots});
  drawing_["links"] = Json::array();
  for (const PlacedLink& link : layout.links) {
    drawing_["links"].push_back(
        {{"path", PathOf(link)},
         {"kind", Name(link.kind)},
         {"count", link.count},
         {"count_at", {PlaceOfCount(link).x, PlaceOfCount(link).y}},
         {"together", Print(link.count * link.bandwidth)},
         {"title",
          fmt::format("{}{}: {} {}", link.count > 1 ? fmt::format("{} x ", link.count) : "",
                      link.title, Name(link.kind), Print(link.bandwidth))},
         {"records", Json::array()}});
    pair_of_drawn_.push_back(PairOfTitle(link.title));
  }
  drawing_["captions"] = Json::array();
  for (const Caption& caption : layout.captions)
    drawing_["captions"].push_back({caption.at.x, caption.at.y, caption.text});
}

// The title is two names, as in "node0/gpu0 - node0/gpu1".
uint64_t ClusterDrawing::PairOfTitle(const std::string& title) {
  const size_t dash = title.find(" - ");
  if (dash == std::string::npos) return PairOf(kNone, kNone);
  const auto from = box_of_title_.find(title.substr(0, dash));
  const auto to = box_of_title_.find(title.substr(dash + 3));
  if (from == box_of_title_.end() || to == box_of_title_.end()) return PairOf(kNone, kNone);
  const uint64_t pair = PairOf(from->second, to->second);
  records_.try_emplace(pair);
  return pair;
}

// The box of the vertex itself, or of its machine or group; kNone if it has none.
uint32_t ClusterDrawing::BoxOf(VertexId vertex) {
  uint32_t& box = box_of_vertex_[vertex];
  if (box != kUnknown) return box;
  box = kNone;
  std::string name = cluster_->VertexAt(vertex).name;
  const auto known = shown_by_.find(name);
  const bool is_shown = known != shown_by_.end();
  if (is_shown) name = known->second;
  for (;;) {
    const auto found = box_of_title_.find(name);
    if (found != box_of_title_.end()) return box = found->second;
    const size_t slash = name.rfind('/');
    if (is_shown || slash == std::string::npos) return box;
    name.resize(slash);
  }
}

void ClusterDrawing::Note(uint32_t link, uint32_t record) {
  const uint32_t from = BoxOf(cluster_->SourceOf(link));
  const uint32_t to = BoxOf(cluster_->TargetOf(link));
  if (from == kNone || to == kNone || from == to) return;
  const auto drawn = records_.find(PairOf(from, to));
  if (drawn != records_.end()) drawn->second.push_back(record);
}

Json ClusterDrawing::With(const std::vector<uint32_t>& record_of_way) {
  constexpr uint32_t kMostLooks = 400'000;  // names are made on demand
  for (auto& [pair, records] : records_) records.clear();
  for (uint32_t i = 0; i < cluster_->link_count() && i < kMostLooks; ++i)
    if (record_of_way[i] != kNotDrawn) Note(i, record_of_way[i]);
  for (uint32_t way = cluster_->link_count(); way < cluster_->way_count(); ++way) {
    if (record_of_way[way] == kNotDrawn) continue;
    for (const uint32_t cable : cluster_->CablesOf(way)) Note(cable, record_of_way[way]);
  }
  for (auto& [pair, records] : records_) {
    std::sort(records.begin(), records.end());
    records.erase(std::unique(records.begin(), records.end()), records.end());
  }
  Json drawing = drawing_;
  Json& links = drawing["links"];
  for (size_t i = 0; i < pair_of_drawn_.size(); ++i) {
    const auto found = records_.find(pair_of_drawn_[i]);
    if (found != records_.end() && !found->second.empty()) links[i]["records"] = found->second;
  }
  return drawing;
}

}  // namespace rehearse

#include "topology/view/cluster_svg.h"

#include <algorithm>
#include <cmath>
#include <set>
#include <tuple>
#include <utility>
#include <vector>

#include <fmt/format.h>

#include "sim/base/units.h"
#include "sim/report/svg.h"
#include "topology/view/cluster_layout.h"

namespace rehearse {
namespace {

using svg::Escape;
using svg::Pixels;

constexpr double kTitleHeight = 56;
constexpr double kLegendRow = 22;
constexpr double kMargin = 24;
constexpr double kLegendSample = 30;
constexpr double kLegendGap = 26;
constexpr double kLegendSize = 12;
constexpr double kLeastWidth = 420;

constexpr const char* kStyle =
    "text{font-family:-apple-system,'Segoe UI',Helvetica,Arial,'DejaVu Sans',sans-serif;"
    "fill:#24313f}.t{font-size:18px;font-weight:600}.s{font-size:12px;fill:#5d6b7a}"
    ".l{font-size:11px;text-anchor:middle}.w{fill:#fff;font-weight:600}"
    ".n{font-size:12px;fill:#5d6b7a;font-weight:600;text-anchor:middle}"
    ".c{font-size:12px;fill:#5d6b7a;text-anchor:middle}.k{font-size:12px}"
    ".m{font-size:11px;font-weight:600;text-anchor:middle;stroke:#fff;stroke-width:3;"
    "paint-order:stroke}"
    "path{fill:none;stroke-linecap:round}";

struct Look {
  const char* fill;
  const char* stroke;
  bool is_dark;
};

Look LookOf(VertexKind kind) {
  switch (kind) {
    case VertexKind::kDevice:
      return {"#2f6db3", "#255a96", true};
    case VertexKind::kNic:
      return {"#fdebd6", "#d98324", false};
    case VertexKind::kPcieSwitch:
      return {"#e7ebf0", "#7b8794", false};
    case VertexKind::kSocket:
      return {"#ece6f5", "#7d5fb2", false};
    case VertexKind::kNvSwitch:
      return {"#e0f2e3", "#3d9a50", false};
    case VertexKind::kSwitch:
      return {"#fff4e4", "#d98324", false};
  }
  CHECK(false);
}

const char* ColorOf(LinkKind kind) {
  switch (kind) {
    case LinkKind::kNvLink:
      return "#4caf61";
    case LinkKind::kXgmi:
      return "#d1495b";
    case LinkKind::kPcie:
      return "#8a96a3";
    case LinkKind::kSocket:
      return "#9577c9";
    case LinkKind::kNetwork:
      return "#e39a47";
    case LinkKind::kMemory:
      return "#3aa6a6";
  }
  CHECK(false);
}

// A line is 1 pixel wide at 10 GB/s and 0.7 more for each doubling, whether links are faster or
// more.
double StrokeOf(BytesPerSecond bandwidth, uint32_t count) {
  constexpr double kThinnest = 1;
  constexpr double kThickest = 5;
  constexpr double kThickestOfSeveral = 9;
  const double doublings = std::log2(count * bandwidth.value() / 1e10);
  return std::clamp(kThinnest + 0.7 * doublings, kThinnest,
                    count > 1 ? kThickestOfSeveral : kThickest);
}

std::string Path(const PlacedLink& link) {
  const bool is_curve = link.from_pull.x != 0 || link.from_pull.y != 0;
  if (!is_curve)
    return fmt::format("M{} {}L{} {}", Pixels(link.from.x), Pixels(link.from.y), Pixels(link.to.x),
                       Pixels(link.to.y));
  return fmt::format("M{} {}C{} {} {} {} {} {}", Pixels(link.from.x), Pixels(link.from.y),
                     Pixels(link.from.x + link.from_pull.x), Pixels(link.from.y + link.from_pull.y),
                     Pixels(link.to.x + link.to_pull.x), Pixels(link.to.y + link.to_pull.y),
                     Pixels(link.to.x), Pixels(link.to.y));
}

std::string DrawLink(const PlacedLink& link, const char* opacity) {
  const std::string count = link.count > 1 ? fmt::format("{} x ", link.count) : "";
  return fmt::format(
      "<path d=\"{}\" stroke=\"{}\" stroke-width=\"{}\"{}{}{}><title>{}: {}{} "
      "{}</title></path>\n",
      Path(link), ColorOf(link.kind), Pixels(StrokeOf(link.bandwidth, link.count)),
      link.around ? " stroke-dasharray=\"5 4\"" : "", opacity,
      link.one_way ? " marker-end=\"url(#a)\"" : "", Escape(link.title), count, Name(link.kind),
      Print(link.bandwidth));
}

// Writes how many links a line stands for.
std::string DrawCount(const PlacedLink& link) {
  if (link.count < 2) return "";
  const Point at = PlaceOfCount(link);
  return fmt::format("<text class=\"m\" x=\"{}\" y=\"{}\">×{}</text>\n", Pixels(at.x),
                     Pixels(at.y + 4), link.count);
}

std::string DrawBox(const PlacedBox& box) {
  const Look look = LookOf(box.kind);
  const double left = box.center.x - box.width / 2;
  const double top = box.center.y - box.height / 2;
  const auto rectangle = [&](const char* fill, const char* stroke) {
    return fmt::format(
        "<rect x=\"{}\" y=\"{}\" width=\"{}\" height=\"{}\" rx=\"{}\" fill=\"{}\" stroke=\"{}\"/>",
        Pixels(left), Pixels(top), Pixels(box.width), Pixels(box.height),
        box.kind == VertexKind::kNic ? Pixels(box.height / 2) : "6", fill, stroke);
  };
  std::string out = fmt::format("<g><title>{}</title>", Escape(box.title));
  if (box.dots == 0) {
    out += rectangle(look.fill, look.stroke);
    out += fmt::format("<text class=\"l{}\" x=\"{}\" y=\"{}\">{}</text>", look.is_dark ? " w" : "",
                       Pixels(box.center.x), Pixels(box.center.y + 4), Escape(box.label));
  } else {
    // A node is drawn as a block: its devices are dots, and its name is below.
    constexpr double kDot = 8;
    constexpr double kDotPitch = 11;
    constexpr uint32_t kMostRows = 4;
    out += rectangle("#f2f6fb", "#a9bccf");
    const uint32_t across = box.dots_across;
    const uint32_t rows = std::min((box.dots + across - 1) / across, kMostRows);
    const double middle = box.center.y - (box.has_nvswitch ? 3 : 0);
    const double pitch = rows < kMostRows ? kDotPitch : 8.6;
    for (uint32_t i = 0; i < std::min(box.dots, across * rows); ++i) {
      const uint32_t column = i % across;
      const uint32_t row = i / across;
      const double x = box.center.x + (column - (across - 1) / 2.0) * kDotPitch;
      const double y = middle + (row - (rows - 1) / 2.0) * pitch;
      const double size = std::min(kDot, pitch - 1.6);
      out +=
          fmt::format("<rect x=\"{}\" y=\"{}\" width=\"{}\" height=\"{}\" rx=\"2\" fill=\"{}\"/>",
                      Pixels(x - kDot / 2), Pixels(y - size / 2), kDot, Pixels(size), look.fill);
    }
    if (box.has_nvswitch)
      out +=
          fmt::format("<rect x=\"{}\" y=\"{}\" width=\"{}\" height=\"3\" rx=\"1.5\" fill=\"{}\"/>",
                      Pixels(left + 5), Pixels(top + box.height - 6), Pixels(box.width - 10),
                      ColorOf(LinkKind::kNvLink));
    out += fmt::format(
        "<text class=\"c\" x=\"{}\" y=\"{}\" "
        "style=\"font-size:10px;stroke:#fff;stroke-width:3;paint-order:stroke\">{}</text>",
        Pixels(box.center.x), Pixels(top + box.height + 12), Escape(box.label));
  }
  return out + "</g>\n";
}

struct LegendEntry {
  LinkKind kind;
  BytesPerSecond bandwidth;
  uint32_t count;
  std::string text;
};

std::vector<LegendEntry> Legend(const ClusterLayout& layout) {
  constexpr size_t kMostEntries = 12;
  // Of each kind fast links come first, and of these the lines that stand for few.
  std::set<std::tuple<LinkKind, double, uint32_t>> known;
  for (const PlacedLink& link : layout.links)
    known.emplace(link.kind, -link.bandwidth.value(), link.count);
  std::vector<LegendEntry> entries;
  for (const auto& [kind, minus_bandwidth, count] : known) {
    if (entries.size() == kMostEntries) break;
    const BytesPerSecond bandwidth(-minus_bandwidth);
    std::string text = fmt::format("{} {}", Name(kind), Print(bandwidth));
    if (count > 1) text += fmt::format(" ×{} = {}", count, Print(count * bandwidth));
    entries.push_back({kind, bandwidth, count, std::move(text)});
  }
  return entries;
}

}  // namespace

std::string ClusterSvg(const Cluster& cluster) {
  const ClusterLayout layout = LayOutCluster(cluster);
  const auto bundles = std::count_if(layout.links.begin(), layout.links.end(),
                                     [](const PlacedLink& link) { return link.count > 1; });
  const std::string subtitle =
      fmt::format("{} device{} on {} node{}; each line is {}, as thick as it is fast",
                  cluster.device_count(), cluster.device_count() == 1 ? "" : "s",
                  cluster.node_count(), cluster.node_count() == 1 ? "" : "s",
                  bundles > 0 ? "a link, or as many as it says" : "a link");
  const double width =
      std::max({layout.width, kLeastWidth, 2 * kMargin + svg::TextWidth(subtitle, kLegendSize)});

  std::string legend;
  double x = kMargin;
  double y = kTitleHeight + layout.height + kLegendSize;
  for (const LegendEntry& entry : Legend(layout)) {
    const double needed = kLegendSample + 8 + svg::TextWidth(entry.text, kLegendSize);
    if (x > kMargin && x + needed > width - kMargin) {
      x = kMargin;
      y += kLegendRow;
    }
    legend += fmt::format(
        "<path d=\"M{} {}h{}\" stroke=\"{}\" stroke-width=\"{}\"/><text class=\"k\" x=\"{}\" "
        "y=\"{}\">{}</text>\n",
        Pixels(x), Pixels(y - 4), Pixels(kLegendSample), ColorOf(entry.kind),
        Pixels(StrokeOf(entry.bandwidth, entry.count)), Pixels(x + kLegendSample + 8), Pixels(y),
        Escape(entry.text));
    x += needed + kLegendGap;
  }
  const double height = y + kMargin;

  std::string out = fmt::format(
      "<svg xmlns=\"http://www.w3.org/2000/svg\" width=\"{0}\" height=\"{1}\" "
      "viewBox=\"0 0 {0} {1}\" role=\"img\">\n<title>{2}</title>\n<style>{3}</style>\n"
      "<defs><marker id=\"a\" viewBox=\"0 0 8 8\" refX=\"7\" refY=\"4\" markerWidth=\"7\" "
      "markerHeight=\"7\" markerUnits=\"userSpaceOnUse\" orient=\"auto\"><path "
      "d=\"M0 0L8 4L0 8z\" style=\"fill:#5d6b7a\"/></marker></defs>\n",
      Pixels(width), Pixels(height), Escape(cluster.name()), kStyle);
  out += fmt::format(
      "<rect x=\".5\" y=\".5\" width=\"{}\" height=\"{}\" rx=\"10\" fill=\"#fff\" "
      "stroke=\"#d5dde5\"/>\n<text class=\"t\" x=\"{}\" y=\"34\">{}</text><text class=\"s\" "
      "x=\"{}\" y=\"52\">{}</text>\n",
      Pixels(width - 1), Pixels(height - 1), Pixels(kMargin), Escape(cluster.name()),
      Pixels(kMargin), Escape(subtitle));
  out += fmt::format("<g transform=\"translate({} {})\">\n", Pixels((width - layout.width) / 2),
                     Pixels(kTitleHeight));
  for (const PlacedNode& node : layout.nodes) {
    out += fmt::format(
        "<rect x=\"{}\" y=\"{}\" width=\"{}\" height=\"{}\" rx=\"10\" fill=\"#f7f9fb\" "
        "stroke=\"#cfd8e1\"/>\n<text class=\"n\" x=\"{}\" y=\"{}\">{}</text>\n",
        Pixels(node.corner.x), Pixels(node.corner.y), Pixels(node.width), Pixels(node.height),
        Pixels(node.corner.x + node.width / 2), Pixels(node.corner.y + node.height - 9),
        Escape(node.label));
  }
  // Many lines are drawn fainter, so that one sees where they are dense.
  constexpr size_t kMany = 60;
  constexpr size_t kVeryMany = 400;
  const char* const opacity = layout.links.size() > kVeryMany ? " stroke-opacity=\".3\""
                              : layout.links.size() > kMany   ? " stroke-opacity=\".55\""
                                                              : "";
  for (const PlacedLink& link : layout.links) out += DrawLink(link, opacity);
  if (static_cast<size_t>(bundles) <= kMany)
    for (const PlacedLink& link : layout.links) out += DrawCount(link);
  for (const PlacedBox& box : layout.boxes) out += DrawBox(box);
  for (const Caption& caption : layout.captions)
    out += fmt::format("<text class=\"c\" x=\"{}\" y=\"{}\">{}</text>\n", Pixels(caption.at.x),
                       Pixels(caption.at.y), Escape(caption.text));
  return out + "</g>\n" + legend + "</svg>\n";
}

}  // namespace rehearse

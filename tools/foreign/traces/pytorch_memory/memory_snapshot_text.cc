#include <algorithm>
#include <cmath>

#include <fmt/format.h>
#include <nlohmann/json.hpp>

#include "sim/base/units.h"
#include "sim/report/text_page.h"
#include "tools/foreign/traces/pytorch_memory/memory_snapshot.h"

namespace rehearse {
namespace {

using Json = nlohmann::ordered_json;

constexpr size_t kLines = 24;
constexpr size_t kBar = 24;  // characters

void WriteOverTime(Page& page, const MemorySnapshot& snapshot) {
  if (snapshot.moments.empty()) return;
  const std::vector<SnapshotMoment>& moments = snapshot.moments;
  const size_t lines = std::min(kLines, moments.size());
  for (size_t line = 0; line < lines; ++line) {
    const auto begin = moments.begin() + static_cast<std::ptrdiff_t>(line * moments.size() / lines);
    const auto end =
        moments.begin() + static_cast<std::ptrdiff_t>((line + 1) * moments.size() / lines);
    const SnapshotMoment& fullest = *std::max_element(
        begin, end, [](const auto& a, const auto& b) { return a.allocated < b.allocated; });
    // A damaged history may allocate more than was ever reserved.
    const double share = fullest.allocated < snapshot.reserved
                             ? std::max(0.0, fullest.allocated / snapshot.reserved)
                             : 1.0;
    const std::string bar(static_cast<size_t>(std::lround(share * kBar)), '#');
    page.Line("  {:>11}{:>12}{}",
              snapshot.has_times ? Print(fullest.after) : Grouped(fullest.event),
              Print(fullest.allocated), bar.empty() ? bar : "  " + bar);
  }
}

void WriteBeside(Page& page, const char* what, Bytes measured, Bytes predicted) {
  page.Line("  {:<22}{:>11}{:>12}{:>11}", what, Print(measured), Print(predicted),
            measured > Bytes(0) ? fmt::format("{:+.1f} %", 100 * (predicted / measured - 1)) : "");
}

}  // namespace

std::string ToText(const MemorySnapshot& snapshot, const std::string& name,
                   const MemoryPicture& picture, bool color) {
  Page page(color);
  page.Gap();
  const std::string length =
      snapshot.events == 0 ? "the state at its end alone: no history was recorded"
      : snapshot.has_times
          ? fmt::format("{} events in {}", Grouped(snapshot.events), Print(snapshot.lasted))
          : fmt::format("{} events", Grouped(snapshot.events));
  page.Line("{}   {}", page.pen(Ink::kBold, "Measured"),
            page.pen(Ink::kFaint, fmt::format("{}, device {}, {}", name, snapshot.device, length)));
  WriteOverTime(page, snapshot);
  page.Gap();
  page.Line("{}", page.pen(Ink::kFaint, fmt::format("  {:<22}{:>11}{:>12}{:>11}", "at most",
                                                    "measured", "predicted", "error")));
  const Bytes arrays = picture.fit.use.Total();
  WriteBeside(page, "allocated", snapshot.peak.allocated, arrays);
  WriteBeside(page, "reserved", snapshot.reserved, arrays + picture.idle);
  page.Line("  {:<22}{:>11}", "still in use by streams",
            Print(snapshot.active - std::min(snapshot.active, snapshot.peak.allocated)));
  if (snapshot.before > Bytes(0) && snapshot.events > 0) {
    page.Line("  {:<22}{:>11}", "before the first event", Print(snapshot.before));
  }
  if (snapshot.refused)
    page.Line("  memory ran out when {} were asked for", Print(*snapshot.refused));
  if (!snapshot.others.empty()) {
    page.Line("  the snapshot also has device {}; --snapshot-device shows another",
              fmt::format("{}", fmt::join(snapshot.others, ", ")));
  }
  page.Gap();
  page.Line("{}   {}", page.pen(Ink::kBold, "Who asked for it"),
            page.pen(Ink::kFaint, fmt::format("at the measured peak; blocks: {}, places: {}",
                                              Grouped(snapshot.living), Grouped(snapshot.places))));
  for (const SnapshotPlace& place : snapshot.largest) {
    page.Line("  {:>11}{:>8} {:<8}{}", Print(place.bytes), Grouped(place.blocks),
              place.blocks == 1 ? "block" : "blocks", Shortened(place.where, 76));
  }
  return page.text;
}

Json ToJson(const MemorySnapshot& snapshot, const std::string& name) {
  Json json = {{"file", name},
               {"device", snapshot.device},
               {"other_devices", snapshot.others},
               {"events", snapshot.events},
               {"seconds", snapshot.lasted.value()},
               {"allocated_bytes", snapshot.peak.allocated.value()},
               {"active_bytes", snapshot.active.value()},
               {"reserved_bytes", snapshot.reserved.value()},
               {"before_bytes", snapshot.before.value()},
               {"peak_event", snapshot.peak.event},
               {"peak_seconds", snapshot.peak.after.value()},
               {"expandable_segments", snapshot.is_expandable}};
  if (snapshot.refused) json["refused_bytes"] = snapshot.refused->value();
  json["moments"] = Json::array();
  for (const SnapshotMoment& moment : snapshot.moments) {
    json["moments"].push_back({{"seconds", moment.after.value()},
                               {"event", moment.event},
                               {"allocated_bytes", moment.allocated.value()},
                               {"reserved_bytes", moment.reserved.value()}});
  }
  json["largest"] = Json::array();
  for (const SnapshotPlace& place : snapshot.largest) {
    json["largest"].push_back(
        {{"where", place.where}, {"blocks", place.blocks}, {"bytes", place.bytes.value()}});
  }
  return json;
}

}  // namespace rehearse

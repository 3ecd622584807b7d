#include "sim/report/timeline_summary.h"

#include <algorithm>
#include <map>
#include <utility>

#include <fmt/format.h>

#include "sim/base/units.h"
#include "sim/report/comparison.h"
#include "sim/report/fixed_ops.h"
#include "sim/report/kernel_name.h"
#include "sim/report/text_page.h"

namespace rehearse {
namespace {

constexpr size_t kKernelWidth = 52;

// Sums over ranks, each as often as it stands for others.
struct PartSums {
  bool communicates = false;
  double calls = 0;
  double seconds = 0;
  double waiting = 0;
  double longest = 0;
};
using PartsByName = std::map<std::pair<std::string, std::string>, PartSums>;  // name, kind

struct Activity {
  int64_t at = 0;
  bool communicates = false;
  int change = 0;
};

struct StepSums {
  double compute = 0;
  double communication = 0;
  double exposed = 0;
  double idle = 0;
};

constexpr double kPicoseconds = 1e12;  // of a second

double InSeconds(int64_t picoseconds) { return static_cast<double>(picoseconds) / kPicoseconds; }

void AddActivities(std::vector<Activity>* activities, int64_t step, double weight, StepSums* sums) {
  std::sort(activities->begin(), activities->end(),
            [](const Activity& a, const Activity& b) { return a.at < b.at; });
  int computing = 0;
  int communicating = 0;
  int64_t before = 0;
  const auto add = [&](int64_t until) {
    const double length = weight * InSeconds(std::min(until, step) - std::min(before, step));
    if (computing > 0) sums->compute += length;
    if (communicating > 0) sums->communication += length;
    if (communicating > 0 && computing == 0) sums->exposed += length;
    if (communicating == 0 && computing == 0) sums->idle += length;
    before = until;
  };
  for (const Activity& activity : *activities) {
    add(activity.at);
    (activity.communicates ? communicating : computing) += activity.change;
  }
  add(step);
  activities->clear();
}

std::vector<SummaryPart> PartsOf(const PartsByName& sums, double ranks) {
  std::vector<SummaryPart> parts;
  for (const auto& [key, sum] : sums) {
    parts.push_back({key.first, key.second, sum.communicates, sum.calls / ranks,
                     Seconds(sum.seconds / ranks), Seconds(sum.waiting / ranks),
                     Seconds(sum.longest)});
  }
  return parts;
}

void LongestFirst(std::vector<SummaryPart>* parts) {
  std::stable_sort(parts->begin(), parts->end(), [](const SummaryPart& a, const SummaryPart& b) {
    return a.seconds > b.seconds;
  });
}

}  // namespace

double TimelineSummary::Overlap() const {
  return communication > Seconds(0) ? 1 - exposed / communication : 0;
}

TimelineSummary SummarizeTimeline(const TimelineRecord& record) {
  const Timeline& timeline = record.Median();
  TimelineSummary summary;
  summary.title = record.title;
  summary.provenance = record.provenance;
  summary.ranks = record.ranks();
  summary.steps = static_cast<uint32_t>(record.steps.size());
  const bool says = record.environment.is_object() && record.environment.contains(kWaitingKey);
  summary.knows_waiting = !says || record.environment[kWaitingKey] != kWaitingUnknown;
  std::map<uint32_t, uint32_t> stands_for;
  for (uint32_t rank = 0; rank < summary.ranks; ++rank)
    ++stands_for[timeline.RepresentativeOf(rank)];

  PartsByName kernels;
  PartsByName communicators;
  PartsByName phases;
  std::map<int32_t, PartSums> layers;
  StepSums sums;
  double ranks = 0;
  std::vector<Activity> activities;
  const std::shared_ptr<const SpansByRank> by_rank = SpansByRankOf(timeline);
  std::vector<Span> room;
  for (size_t i = 0; i < by_rank->count(); ++i) {
    const std::span<const Span> spans = by_rank->At(i, &room);
    if (spans.empty()) continue;
    const double weight = stands_for[by_rank->RankAt(i)];
    ranks += weight;
    for (const Span& span : spans) {
      const RecordedOp& op = record.OpOf(span);
      if (op.kind == kWaitKind) continue;
      const bool communicates = !op.axis.empty();
      const int64_t begin = (communicates ? span.ready : span.begin).picoseconds();
      const int64_t end = span.end.picoseconds();
      activities.push_back({begin, communicates, 1});
      activities.push_back({end, communicates, -1});
      const auto add = [&](PartSums& part) {
        part.communicates = communicates;
        part.calls += weight;
        part.seconds += weight * InSeconds(end - begin);
        if (communicates) part.waiting += weight * InSeconds(span.begin.picoseconds() - begin);
        part.longest = std::max(part.longest, InSeconds(end - begin));
      };
      add(kernels[{op.name, op.kind}]);
      if (communicates) add(communicators[{op.axis, op.kind}]);
      if (!communicates) add(phases[{Name(op.phase), ""}]);
      if (!communicates && op.layer >= 0) add(layers[op.layer]);
    }
    AddActivities(&activities, timeline.step.picoseconds(), weight, &sums);
  }
  ranks = std::max(ranks, 1.0);
  summary.step = Seconds(InSeconds(timeline.step.picoseconds()));
  summary.compute = Seconds(sums.compute / ranks);
  summary.communication = Seconds(sums.communication / ranks);
  summary.exposed = Seconds(sums.exposed / ranks);
  summary.idle = Seconds(sums.idle / ranks);
  summary.kernels = PartsOf(kernels, ranks);
  summary.communicators = PartsOf(communicators, ranks);
  summary.phases = PartsOf(phases, ranks);
  for (const auto& [layer, sum] : layers) {
    const PartsByName one = {{{fmt::format("layer {}", layer), ""}, sum}};
    summary.layers.push_back(PartsOf(one, ranks).front());
  }
  LongestFirst(&summary.kernels);
  LongestFirst(&summary.communicators);
  LongestFirst(&summary.phases);
  return summary;
}

// ---- As text and for programs -------------------------------------------------------------------

namespace {

void WriteParts(Page& page, const char* title, const std::vector<SummaryPart>& parts, size_t rows,
                const TimelineSummary& summary) {
  if (parts.empty()) return;
  page.Gap();
  page.Line("{}", page.pen(Ink::kBold, title));
  for (size_t i = 0; i < parts.size() && i < rows; ++i) {
    const SummaryPart& part = parts[i];
    const std::string name = Shortened(ShortKernelName(part.name), kKernelWidth);
    std::string more;
    if (part.communicates && summary.knows_waiting && part.waiting > Seconds(0))
      more = fmt::format(", {} of it waiting", Print(part.waiting));
    page.Line("  {:<52}  {:<14} {:>9.1f} x  {:>10}  {:>7}{}", name, part.kind, part.calls,
              Print(part.seconds), Percent(Share(part.seconds.value(), summary.step.value())),
              more);
  }
  if (parts.size() > rows) page.Line("  and {} more", parts.size() - rows);
}

}  // namespace

std::string ToText(const TimelineSummary& summary, bool color, size_t rows) {
  Page page(color);
  page.Line("{}   {} rank{}, {}", page.pen(Ink::kBold, Shortened(summary.title, kKernelWidth)),
            Grouped(summary.ranks), summary.ranks == 1 ? "" : "s",
            summary.provenance == Provenance::kMeasured ? "measured" : "simulated");
  page.Gap();
  page.Line("One step takes {}{}", Print(summary.step),
            summary.steps > 1 ? fmt::format(", the median of {}", summary.steps) : "");
  const auto share = [&](const char* name, Seconds seconds, const std::string& more) {
    page.Line("  {:<24} {:>10}  {:>7}{}", name, Print(seconds),
              Percent(Share(seconds.value(), summary.step.value())), more);
  };
  share("compute", summary.compute, "");
  const bool waits = summary.knows_waiting &&
                     std::any_of(summary.communicators.begin(), summary.communicators.end(),
                                 [](const SummaryPart& part) { return part.waiting > Seconds(0); });
  share("exposed communication", summary.exposed, waits ? ", waiting for others included" : "");
  share("nothing of these", summary.idle, "");
  share("communication in all", summary.communication,
        summary.communication > Seconds(0)
            ? fmt::format(", {} of it beside compute", Percent(summary.Overlap()))
            : "");
  if (!summary.knows_waiting)
    page.Line("  {}", page.pen(Ink::kFaint, "how much of it is waiting for others is not known"));
  WriteParts(page, "Kernels", summary.kernels, rows, summary);
  WriteParts(page, "Communicators", summary.communicators, rows, summary);
  WriteParts(page, "Compute by phase", summary.phases, rows, summary);
  WriteParts(page, "Compute by layer", summary.layers, rows, summary);
  return page.text;
}

namespace {

nlohmann::ordered_json PartsJson(const std::vector<SummaryPart>& parts, bool knows_waiting) {
  nlohmann::ordered_json list = nlohmann::ordered_json::array();
  for (const SummaryPart& part : parts) {
    nlohmann::ordered_json row = {{"name", part.name},
                                  {"kind", part.kind},
                                  {"calls", part.calls},
                                  {"seconds", part.seconds.value()},
                                  {"longest_seconds", part.longest.value()}};
    if (part.communicates && knows_waiting) row["waiting_seconds"] = part.waiting.value();
    list.push_back(std::move(row));
  }
  return list;
}

}  // namespace

nlohmann::ordered_json ToJson(const TimelineSummary& summary) {
  return {{"title", summary.title},
          {"provenance", summary.provenance == Provenance::kMeasured ? "measured" : "simulated"},
          {"ranks", summary.ranks},
          {"steps", summary.steps},
          {"step_seconds", summary.step.value()},
          {"compute_seconds", summary.compute.value()},
          {"communication_seconds", summary.communication.value()},
          {"exposed_communication_seconds", summary.exposed.value()},
          {"other_seconds", summary.idle.value()},
          {"overlap", summary.Overlap()},
          {"kernels", PartsJson(summary.kernels, summary.knows_waiting)},
          {"communicators", PartsJson(summary.communicators, summary.knows_waiting)},
          {"phases", PartsJson(summary.phases, summary.knows_waiting)},
          {"layers", PartsJson(summary.layers, summary.knows_waiting)}};
}

DataTable KernelTable(const TimelineSummary& summary) {
  DataTable table({{"kernel", CellKind::kText},
                   {"kind", CellKind::kText},
                   {"calls", CellKind::kNumber},
                   {"seconds", CellKind::kNumber},
                   {"longest_seconds", CellKind::kNumber},
                   {"waiting_seconds", CellKind::kNumber},
                   {"share_of_step", CellKind::kNumber}});
  for (const SummaryPart& part : summary.kernels) {
    const bool waits = part.communicates && summary.knows_waiting;
    table.Add({part.name, part.kind, part.calls, part.seconds.value(), part.longest.value(),
               waits ? DataCell(part.waiting.value()) : DataCell(),
               Share(part.seconds.value(), summary.step.value())});
  }
  return table;
}

}  // namespace rehearse

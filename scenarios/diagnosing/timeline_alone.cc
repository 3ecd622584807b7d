#include "scenarios/diagnosing/timeline_alone.h"

#include <algorithm>
#include <cmath>
#include <map>
#include <tuple>

#include <fmt/format.h>
#include <nlohmann/json.hpp>

#include "scenarios/diagnosing/timeline_parts.h"
#include "sim/base/units.h"
#include "sim/base/visible_text.h"

namespace rehearse {
namespace {

constexpr double kStandsOut = 0.02;    // of the step
constexpr double kIsStall = 0.05;      // of the step, in one piece
constexpr double kStepsDiffer = 1.15;  // the slowest of the steps, to the median
const Seconds kShortGap(1e-3);         // that the host takes to launch what comes next
constexpr double kManyGaps = 10;       // of a rank
constexpr double kInterrupted = 3;     // times as long as the same op usually takes: a guess
constexpr size_t kFewestAlike = 5;     // ops that tell how long is usual

// A rank does nothing, not even wait for others.
struct Gap {
  uint32_t rank = 0;
  Time begin;
  Time end;
  const Span* before = nullptr;  // null: the step begins
  const Span* after = nullptr;   // null: it ends
  Seconds Length() const { return ToSeconds(end - begin); }
};

void AddGapsOf(const Timeline& timeline, uint32_t rank, std::vector<Gap>* gaps) {
  const auto [first, last] = timeline.SpansOf(rank);
  std::vector<const Span*> spans;
  for (size_t i = first; i < last; ++i) spans.push_back(&timeline.spans[i]);
  std::stable_sort(spans.begin(), spans.end(),
                   [](const Span* a, const Span* b) { return a->ready < b->ready; });
  Time busy;
  const Span* before = nullptr;
  for (const Span* span : spans) {
    const Time begin = std::min(span->ready, span->begin);
    if (begin > busy) gaps->push_back({rank, busy, begin, before, span});
    if (span->end >= busy) before = span;
    busy = std::max(busy, span->end);
  }
  if (timeline.step > busy) gaps->push_back({rank, busy, timeline.step, before, nullptr});
}

std::string NameAt(const TimelineRecord& record, const Span* span, const char* otherwise) {
  return span == nullptr ? otherwise : fmt::format("\"{}\"", VisibleText(record.OpOf(*span).name));
}

std::vector<TimelineOps> OpsOf(const TimelineRecord& record, const Timeline& timeline) {
  std::map<std::tuple<std::string, std::string, std::string>, TimelineOps> by_name;
  for (uint32_t rank = 0; rank < timeline.ranks; ++rank) {
    const auto [first, last] = timeline.SpansOf(rank);
    for (size_t i = first; i < last; ++i) {
      const Span& span = timeline.spans[i];
      const RecordedOp& op = record.OpOf(span);
      TimelineOps& ops = by_name[{op.name, op.kind, op.axis}];
      ops.count += 1.0 / timeline.ranks;
      ops.time += ToSeconds(span.end - span.begin) / timeline.ranks;
      if (!op.axis.empty()) ops.waiting += ToSeconds(span.begin - span.ready) / timeline.ranks;
    }
  }
  std::vector<TimelineOps> all;
  for (auto& [key, ops] : by_name) {
    std::tie(ops.name, ops.kind, ops.axis) = key;
    all.push_back(std::move(ops));
  }
  std::stable_sort(all.begin(), all.end(),
                   [](const TimelineOps& a, const TimelineOps& b) { return a.time > b.time; });
  return all;
}

// Ranks wait for one that computes longer, or for one after the other.
void LookAtRanks(const TimelineRecord& record, const Timeline& timeline, TimelineView* view) {
  const double waiting = view->shares.waiting / view->step;
  if (waiting < kStandsOut || timeline.ranks < 2) return;
  if (const std::optional<LateRank> late = LateRankOf(record)) {
    view->signs.push_back(
        {"straggler",
         fmt::format("rank {} computes {:.2f} times as long as the median rank, and others wait "
                     "for it",
                     late->rank, late->factor),
         waiting,
         "clocks, power and temperature of its device (nvidia-smi -q -d PERFORMANCE), other "
         "processes on its host, or more work than the others have"});
    return;
  }
  view->signs.push_back(
      {"jitter",
       "ranks wait for each other though they compute as long as each other: now one is late, now "
       "another, or their work is uneven within the step",
       waiting, "what else runs on the hosts; the same profile of several ranks, side by side"});
}

// What a rank's ops take more than the same ops usually do, where that is several times as long:
// the rank was stopped within them. Per step, over all steps that count.
struct Interruptions {
  uint32_t rank = 0;
  double count = 0;
  Seconds lost;
};

std::optional<Interruptions> MostInterrupted(const TimelineRecord& record) {
  std::map<std::tuple<uint32_t, std::string, std::string>, std::vector<Seconds>> times;
  double steps = 0;
  for (const RecordedStep& step : record.steps) {
    if (step.is_warm_up && record.steps.size() > 1) continue;
    ++steps;
    for (const Span& span : step.timeline.spans) {
      const RecordedOp& op = record.OpOf(span);
      if (op.axis.empty())
        times[{span.rank, op.name, op.kind}].push_back(ToSeconds(span.end - span.begin));
    }
  }
  std::map<uint32_t, Interruptions> of_ranks;
  for (auto& [key, all] : times) {
    if (all.size() < kFewestAlike) continue;
    std::sort(all.begin(), all.end());
    const Seconds usual = all[(all.size() - 1) / 2];
    Interruptions& of_rank = of_ranks[std::get<0>(key)];
    for (const Seconds time : all) {
      if (time <= kInterrupted * usual || time - usual < kShortGap) continue;
      of_rank.count += 1 / steps;
      of_rank.lost += (time - usual) / steps;
    }
  }
  std::optional<Interruptions> most;
  for (auto& [rank, of_rank] : of_ranks) {
    of_rank.rank = rank;
    if (!most || of_rank.lost > most->lost) most = of_rank;
  }
  return most;
}

void LookAtInterruptions(const TimelineRecord& record, TimelineView* view) {
  const std::optional<Interruptions> most = MostInterrupted(record);
  if (!most || most->lost / view->step < kStandsOut) return;
  view->signs.push_back(
      {"interrupted",
       fmt::format("rank {} is stopped now and then: {:.3g} ops a step take over {:.0f} times as "
                   "long as the same ones usually do, {} more in all",
                   most->rank, most->count, kInterrupted, Print(most->lost)),
       most->lost / view->step,
       "what else runs on that rank's cores (pidstat -t 1, perf sched timehist), its cgroup's CPU "
       "limit (cpu.stat: nr_throttled), swapping; on a GPU, clocks that drop for moments"});
}

void LookAtGaps(const TimelineRecord& record, const Timeline& timeline, TimelineView* view) {
  std::vector<Gap> gaps;
  for (uint32_t rank = 0; rank < timeline.ranks; ++rank) AddGapsOf(timeline, rank, &gaps);
  Seconds in_short(0);
  double short_ones = 0;
  const Gap* longest = nullptr;
  for (const Gap& gap : gaps) {
    if (longest == nullptr || gap.Length() > longest->Length()) longest = &gap;
    if (gap.Length() >= kShortGap) continue;
    in_short += gap.Length() / timeline.ranks;
    short_ones += 1.0 / timeline.ranks;
  }
  if (longest != nullptr && longest->Length() / view->step >= kIsStall)
    view->signs.push_back(
        {"stall",
         fmt::format("rank {} does nothing for {} between {} and {}", longest->rank,
                     Print(longest->Length()), NameAt(record, longest->before, "the step's begin"),
                     NameAt(record, longest->after, "its end")),
         longest->Length() / view->step,
         "what the host does then: loading data, a synchronisation (.item(), a print of the loss), "
         "the allocator (cudaMalloc in the profile), garbage collection"});
  if (in_short / view->step >= kStandsOut && short_ones >= kManyGaps)
    view->signs.push_back(
        {"host-launch",
         fmt::format("{:.0f} gaps of {} in the mean, in which a rank does nothing before the next "
                     "kernel",
                     short_ones, Print(in_short / short_ones)),
         in_short / view->step,
         "whether the host launches kernels in time (its thread in the profile): CUDA graphs, "
         "torch.compile, larger micro-batches"});
}

void LookAtCommunication(TimelineView* view) {
  const double exposed = view->shares.communication / view->step;
  if (exposed < kStandsOut) return;
  std::map<std::string, Seconds> by_axis;
  for (const TimelineOps& ops : view->ops)
    if (!ops.axis.empty()) by_axis[ops.axis] += ops.time;
  const auto most =
      std::max_element(by_axis.begin(), by_axis.end(),
                       [](const auto& a, const auto& b) { return a.second < b.second; });
  if (most == by_axis.end()) return;
  view->signs.push_back(
      {"exposed",
       fmt::format("a rank communicates while it does not compute; \"{}\" is longest, {} in all",
                   VisibleText(most->first), Print(most->second)),
       exposed,
       "whether these collectives are as fast as they should be (`rehearse collective` of the same "
       "size and ranks), and what could run beside them"});
}

void LookAtSteps(const TimelineRecord& record, TimelineView* view) {
  std::vector<Seconds> steps;
  for (const RecordedStep& step : record.steps)
    if (!step.is_warm_up) steps.push_back(ToSeconds(step.timeline.step));
  view->steps = steps.empty() ? record.steps.size() : steps.size();
  if (steps.size() < 3) return;
  const Seconds slowest = *std::max_element(steps.begin(), steps.end());
  if (slowest / view->step < kStepsDiffer) return;
  view->signs.push_back(
      {"uneven-steps",
       fmt::format("the slowest of {} steps takes {:.2f} times as long as the median", steps.size(),
                   slowest / view->step),
       slowest / view->step - 1,
       "what comes and goes: other jobs on the fabric, checkpoints, evaluation, throttling"});
}

}  // namespace

TimelineView LookAt(const TimelineRecord& record) {
  const Timeline& timeline = record.Median();
  const Comparison itself = Compare(record, record);
  TimelineView view;
  view.title = record.title;
  view.ranks = timeline.ranks;
  view.step = ToSeconds(timeline.step);
  view.shares = itself.b_shares;
  view.waiting = itself.b_waiting;
  view.ops = OpsOf(record, timeline);
  if (view.step <= Seconds(0)) return view;
  LookAtRanks(record, timeline, &view);
  LookAtInterruptions(record, &view);
  LookAtGaps(record, timeline, &view);
  LookAtCommunication(&view);
  LookAtSteps(record, &view);
  std::stable_sort(view.signs.begin(), view.signs.end(),
                   [](const TimelineSign& a, const TimelineSign& b) { return a.share > b.share; });
  return view;
}

std::string SignsText(const TimelineView& view) {
  std::string text;
  if (!view.signs.empty()) text = "What stands out:\n";
  for (size_t i = 0; i < view.signs.size(); ++i) {
    const TimelineSign& sign = view.signs[i];
    text += fmt::format("{}. {}: {} ({:.1f} % of the step)\n     look at: {}\n", i + 1, sign.name,
                        sign.what, 100 * sign.share, sign.confirm);
  }
  return text;
}

std::string ToText(const TimelineView& view, size_t rows) {
  std::string text = fmt::format("{}: {} rank{}, {} step{}, {} in the median\n\n",
                                 VisibleText(view.title), view.ranks, view.ranks == 1 ? "" : "s",
                                 view.steps, view.steps == 1 ? "" : "s", Print(view.step));
  text += fmt::format("{:<28} {:>12} {:>9}\n", "of a rank", "time", "of step");
  const auto part = [&](const char* name, Seconds time) {
    text += fmt::format("{:<28} {:>12} {:>7.1f} %\n", name, Print(time), 100 * (time / view.step));
  };
  part("compute", view.shares.compute);
  part(view.waiting.empty() ? "exposed communication" : "communication and waiting",
       view.shares.communication);
  if (view.waiting.empty()) part("waiting for other ranks", view.shares.waiting);
  part("nothing of these", view.shares.nothing);
  text += fmt::format("\n{:<34} {:<14} {:<10} {:>8} {:>12} {:>12}\n", "what takes longest", "kind",
                      "axis", "times", "time", "waiting");
  for (size_t i = 0; i < std::min(rows, view.ops.size()); ++i) {
    const TimelineOps& ops = view.ops[i];
    text += fmt::format("{:<34.34} {:<14.14} {:<10.10} {:>8.4g} {:>12} {:>12}\n",
                        VisibleText(ops.name), ops.kind, VisibleText(ops.axis), ops.count,
                        Print(ops.time), ops.axis.empty() ? "" : Print(ops.waiting));
  }
  if (view.ops.size() > rows) text += fmt::format("… and {} more\n", view.ops.size() - rows);
  text += view.signs.empty() ? "\nNothing stands out.\n" : "\n" + SignsText(view);
  return text;
}

nlohmann::ordered_json ToJson(const TimelineView& view) {
  using Json = nlohmann::ordered_json;
  Json json = {{"schema", "rehearse.timeline_view.v1"},
               {"title", view.title},
               {"ranks", view.ranks},
               {"steps", view.steps},
               {"step_seconds", view.step.value()},
               {"compute_seconds", view.shares.compute.value()},
               {"exposed_communication_seconds", view.shares.communication.value()},
               {"waiting_seconds", view.shares.waiting.value()},
               {"other_seconds", view.shares.nothing.value()},
               {"ops", Json::array()},
               {"signs", Json::array()}};
  if (!view.waiting.empty()) json["waiting"] = view.waiting;
  for (const TimelineOps& ops : view.ops)
    json["ops"].push_back({{"name", ops.name},
                           {"kind", ops.kind},
                           {"axis", ops.axis},
                           {"count", ops.count},
                           {"seconds", ops.time.value()},
                           {"waiting_seconds", ops.waiting.value()}});
  for (const TimelineSign& sign : view.signs)
    json["signs"].push_back({{"sign", sign.name},
                             {"what", sign.what},
                             {"share", sign.share},
                             {"confirm", sign.confirm}});
  return json;
}

}  // namespace rehearse

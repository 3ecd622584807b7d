#include "tools/foreign/traces/kineto/kineto_read.h"

#include <algorithm>
#include <filesystem>
#include <iterator>
#include <map>
#include <utility>

#include <fmt/format.h>

#include "sim/base/error.h"
#include "sim/base/input_file.h"
#include "sim/base/read_options.h"
#include "sim/base/threads.h"
#include "sim/base/units.h"
#include "sim/base/visible_text.h"
#include "sim/report/comparison.h"
#include "sim/schedule/schedule_json.h"
#include "tools/foreign/traces/kineto/kineto_extrapolate.h"
#include "tools/foreign/traces/kineto/kineto_schedule.h"
#include "tools/foreign/traces/kineto/kineto_steps.h"
#include "tools/foreign/traces/nsys/nsys_file.h"
#include "tools/foreign/traces/nsys/nsys_nccl.h"
#include "tools/foreign/traces/trace_files.h"

namespace rehearse {
namespace {

namespace fs = std::filesystem;

std::vector<KinetoTrace> ReadTraces(const std::vector<std::string>& files,
                                    const KinetoOptions& options) {
  std::vector<KinetoTrace> traces(files.size());
  InParallel(files.size(), 0, [&](size_t i) { traces[i] = ReadKineto(files[i], options); });
  return traces;
}

// When the last member had arrived, for events that met others.
using Arrivals = std::vector<std::map<uint32_t, int64_t>>;  // by rank, event
Arrivals ArrivalsOf(const KinetoRanksOfStep& ranks, const std::vector<KinetoMeeting>& meetings,
                    const std::vector<int64_t>& later) {
  Arrivals arrivals(ranks.traces.size());
  for (const KinetoMeeting& meeting : meetings) {
    int64_t last = std::numeric_limits<int64_t>::min();
    for (const auto& [rank, event] : meeting.events)
      last = std::max(last, ranks.traces[rank].events[event].begin + later[rank]);
    for (const auto& [rank, event] : meeting.events) arrivals[rank][event] = last;
  }
  return arrivals;
}

class TimelineMaker {
 public:
  TimelineMaker(const KinetoRanksOfStep& ranks, const std::vector<int64_t>& later)
      : ranks_(ranks), later_(later) {}

  Timeline Make(const KinetoStep& step, const std::vector<KinetoMeeting>& meetings) {
    const Arrivals arrivals = ArrivalsOf(ranks_, meetings, later_);
    const int64_t start = StartOf(step);
    Timeline timeline;
    timeline.ranks = static_cast<uint32_t>(ranks_.traces.size());
    for (uint32_t rank = 0; rank < timeline.ranks; ++rank) {
      const KinetoTrace& trace = ranks_.traces[rank];
      const size_t first = timeline.spans.size();
      for (uint32_t op = 0; op < step.events[rank].size(); ++op) {
        const uint32_t place = step.events[rank][op];
        const KinetoEvent& event = trace.events[place];
        Span span;
        span.rank = rank;
        span.op = op;
        span.begin = Time(event.begin + later_[rank] - start);
        span.end = Time(event.end + later_[rank] - start);
        span.ready = span.begin;
        const auto arrival = arrivals[rank].find(place);
        if (event.own != kNotGiven) {
          const KinetoOwn& own = trace.owns[event.own];
          span.op = own.op;
          span.ready = std::min(own.ready, span.begin);
        } else if (arrival != arrivals[rank].end()) {
          span.begin = std::clamp(Time(arrival->second - start), span.begin, span.end);
        }
        timeline.spans.push_back(span);
      }
      KeepApart(trace, step.events[rank], timeline.spans.data() + first);
      if (step.period > 0 && first < timeline.spans.size())
        EndAfter(Time(step.period), timeline.spans.data() + first,
                 timeline.spans.data() + timeline.spans.size());
    }
    for (const Span& span : timeline.spans) timeline.step = std::max(timeline.step, span.end);
    timeline.step = std::max(timeline.step, Time(step.period));
    return timeline;
  }
  uint64_t overlaps() const { return overlaps_; }
  uint64_t cut() const { return cut_; }

 private:
  int64_t StartOf(const KinetoStep& step) const {
    if (ranks_.traces[0].is_own) return 0;
    int64_t start = std::numeric_limits<int64_t>::max();
    for (uint32_t rank = 0; rank < ranks_.traces.size(); ++rank) {
      for (const uint32_t place : step.events[rank])
        start = std::min(start, ranks_.traces[rank].events[place].begin + later_[rank]);
    }
    return start;
  }

  // A rank's step that the next one overlaps ends where that begins.
  void EndAfter(Time period, Span* first, Span* last) {
    Time begin = first->ready;
    for (const Span* span = first; span != last; ++span) begin = std::min(begin, span->ready);
    const Time end = begin + period;
    for (Span* span = first; span != last; ++span) {
      if (span->end <= end) continue;
      ++cut_;
      *span = {span->rank, span->op, std::min(span->ready, end), std::min(span->begin, end), end};
    }
  }

  // A stream does one thing at a time; programmatic launches and rounding may overlap a little.
  void KeepApart(const KinetoTrace& trace, const std::vector<uint32_t>& events, Span* spans) {
    if (trace.is_own) return;
    std::map<uint64_t, Time> ends;
    for (size_t i = 0; i < events.size(); ++i) {
      Time& end = ends[trace.events[events[i]].stream];
      Span& span = spans[i];
      if (span.ready < end) {
        ++overlaps_;
        span.ready = end;
        span.begin = std::max(span.begin, end);
        span.end = std::max(span.end, end);
      }
      end = span.end;
    }
  }

  const KinetoRanksOfStep& ranks_;
  const std::vector<int64_t>& later_;
  uint64_t overlaps_ = 0;
  uint64_t cut_ = 0;
};

// Ranks that do the same share a role.
void AddRoles(const KinetoRanksOfStep& ranks, const KinetoStep& step, TimelineRecord* record) {
  std::map<std::string, uint32_t> known;
  for (uint32_t rank = 0; rank < ranks.traces.size(); ++rank) {
    RecordedRole role;
    std::string key;
    for (const uint32_t place : step.events[rank]) {
      RecordedOp op = OpOfEvent(ranks, rank, ranks.traces[rank].events[place]);
      key += fmt::format("{}\n{}\n{}\n{} {} {}\n", op.name, op.kind, op.axis, Name(op.phase),
                         op.layer, op.micro_batch);
      role.ops.push_back(std::move(op));
    }
    const auto [place, is_new] =
        known.emplace(std::move(key), static_cast<uint32_t>(record->roles.size()));
    if (is_new) {
      role.name = fmt::format("as rank {}", *ranks.traces[rank].rank);
      record->roles.push_back(std::move(role));
    }
    record->role_of_rank.push_back(place->second);
  }
}

void CheckOwn(const KinetoRanksOfStep& ranks, const std::vector<KinetoStep>& steps) {
  for (uint32_t rank = 0; rank < ranks.traces.size(); ++rank) {
    const KinetoTrace& trace = ranks.traces[rank];
    if (trace.is_own != ranks.traces[0].is_own) {
      throw Error(fmt::format("{}: expected a trace of {} like {}", trace.file,
                              ranks.traces[0].is_own ? "Rehearse" : "PyTorch",
                              ranks.traces[0].file));
    }
    if (!trace.is_own) continue;
    const std::vector<uint32_t>& events = steps.back().events[rank];
    for (uint32_t op = 0; op < events.size(); ++op) {
      const KinetoEvent& event = trace.events[events[op]];
      if (event.own == kNotGiven || trace.owns[event.own].op != op)
        throw Error(fmt::format("{}: expected op {}", KinetoPlace(trace, event), op));
    }
  }
}

void RemarkUnused(const KinetoRanksOfStep& ranks, std::vector<std::string>* remarks) {
  std::map<std::string, uint64_t> unused;
  for (const KinetoTrace& trace : ranks.traces) {
    for (const auto& [category, count] : trace.not_used) unused[category] += count;
  }
  std::vector<std::string> parts;
  for (const auto& [category, count] : unused) {
    parts.push_back(
        fmt::format("{} of {}", count, category.empty() ? "no category" : VisibleText(category)));
  }
  if (!parts.empty())
    remarks->push_back(fmt::format("events not used: {}", fmt::join(parts, ", ")));
}

// Says which ranks there are, and of how much it is not known who waited for whom. Returns what
// compare is to know of that.
std::string RemarkPartners(const KinetoRanksOfStep& ranks, bool extrapolates,
                           std::vector<std::string>* remarks) {
  if (extrapolates) return "";
  if (!ranks.is_whole()) {
    remarks->push_back(fmt::format(
        "found {}: these are all that is made, and what they did with others lasts as long as "
        "measured",
        RanksPresent(ranks)));
  }
  uint64_t unknown = 0;
  uint64_t all = 0;
  for (uint32_t rank = 0; rank < ranks.traces.size(); ++rank) {
    const KinetoTrace& trace = ranks.traces[rank];
    for (const KinetoEvent& event : trace.events) {
      if (event.own != kNotGiven || event.transfer == kNotGiven) continue;
      ++all;
      unknown += ranks.works[rank][event.transfer].is_understood() ? 0 : 1;
    }
  }
  if (unknown == 0) return "";
  remarks->push_back(fmt::format(
      "{} of what communicates {} not say its size or its partners: how much of that time is "
      "waiting for others is unknown",
      unknown, unknown == 1 ? "does" : "do"));
  return unknown == all ? kWaitingUnknown : kWaitingPartlyUnknown;
}

// Imports the traces of all ranks; `imported` has earlier remarks.
ImportedKineto Import(std::vector<KinetoTrace> traces, KinetoResult result,
                      const KinetoOptions& options, ImportedKineto imported = {}) {
  KinetoRanksOfStep ranks = GatherRanks(std::move(traces));
  const std::string waiting =
      RemarkPartners(ranks, options.extrapolate.has_value(), &imported.remarks);
  const std::vector<KinetoStep> steps = StepsOf(&ranks, options, &imported.remarks);
  CheckOwn(ranks, steps);
  std::vector<std::vector<KinetoMeeting>> meetings;
  std::vector<KinetoMeeting> all;
  for (const KinetoStep& step : steps) {
    meetings.push_back(MatchEvents(ranks, step.events));
    all.insert(all.end(), meetings.back().begin(), meetings.back().end());
  }
  const KinetoClocks clocks = AlignClocks(ranks, all);
  if (!clocks.remark.empty()) imported.remarks.push_back(clocks.remark);

  TimelineRecord record;
  const std::string& title = ranks.traces[0].title;
  record.title =
      !title.empty() ? title : VisibleText(fs::path(ranks.traces[0].file).filename().string());
  if (!waiting.empty()) record.environment = {{kWaitingKey, waiting}};
  record.provenance = ranks.traces[0].is_simulated ? Provenance::kSimulated : Provenance::kMeasured;
  TimelineMaker maker(ranks, clocks.later);
  for (size_t i = 0; i < steps.size(); ++i)
    record.steps.push_back({false, maker.Make(steps[i], meetings[i])});
  for (RecordedStep& step : record.steps) step.timeline.provenance = record.provenance;
  imported.ranks = static_cast<uint32_t>(ranks.traces.size());
  if (maker.overlaps() > 0) {
    imported.remarks.push_back(
        fmt::format("{} kernels and copies begin before the previous one on their stream ends; "
                    "they are taken to follow it",
                    maker.overlaps()));
  }
  if (maker.cut() > 0) {
    imported.remarks.push_back(fmt::format(
        "{} kernels and copies go on when the next step begins: shown until then", maker.cut()));
  }
  if (result == KinetoResult::kTimeline) {
    imported.steps = steps.size();
    AddRoles(ranks, steps.back(), &record);
    imported.text = ToJsonText(record);
  } else {
    imported.steps = 1;
    const Timeline* const median = &record.Median();
    size_t place = 0;
    while (&record.steps[place].timeline != median) ++place;
    const KinetoJob job =
        options.extrapolate
            ? ExtrapolatedJob(ranks, steps[place].events, *options.extrapolate, &imported.remarks)
            : TracedJob(ranks);
    const Schedule schedule =
        ScheduleOfKineto(ranks, job, steps[place], clocks.later, &imported.remarks);
    imported.ranks = schedule.ranks();
    imported.text = WriteSchedule(schedule, {record.title, ""});
  }
  RemarkUnused(ranks, &imported.remarks);
  // A timeline's spans are read whatever their size (sim/report/timeline_file.h).
  const size_t size = std::min(imported.text.find("\"steps\":[{\"warm_up\""), imported.text.size());
  const size_t largest = result == KinetoResult::kSchedule ? kLargestDocument : kLargestInput;
  if (size > largest) {
    imported.remarks.push_back(
        fmt::format("the result has {}{}, more than the {} that other commands read: trace fewer "
                    "steps or ranks",
                    Print(Bytes(static_cast<double>(size))),
                    size < imported.text.size() ? " beside its spans" : "",
                    Print(Bytes(static_cast<double>(largest)))));
  }
  return imported;
}

}  // namespace

ImportedKineto ImportKineto(const std::vector<std::string>& paths, KinetoResult result,
                            const KinetoOptions& options) {
  const std::vector<std::string> files =
      TraceFiles(paths, {".json", ".json.gz"}, {}, "NAME.json or NAME.json.gz");
  return Import(ReadTraces(files, options), result, options);
}

ImportedKineto ImportNsys(const std::vector<std::string>& paths, KinetoResult result,
                          const KinetoOptions& options) {
  const std::vector<std::string> files = TraceFiles(paths, {".sqlite"}, {}, "NAME.sqlite");
  std::vector<std::vector<KinetoTrace>> read(files.size());
  InParallel(files.size(), 0, [&](size_t i) { read[i] = ReadNsys(files[i], options); });
  std::vector<KinetoTrace> traces;
  for (std::vector<KinetoTrace>& own : read)
    traces.insert(traces.end(), std::make_move_iterator(own.begin()),
                  std::make_move_iterator(own.end()));
  ImportedKineto imported;
  CompleteNcclGroups(&traces, &imported.remarks);
  return Import(std::move(traces), result, options, std::move(imported));
}

}  // namespace rehearse

#include "sim/report/timeline_record.h"

#include <algorithm>
#include <iterator>
#include <utility>
#include <variant>

#include <fmt/format.h>

#include "sim/base/error.h"
#include "sim/base/schema_version.h"
#include "sim/report/fixed_ops.h"
#include "sim/report/timeline_fields.h"
#include "sim/schedule/done_ops.h"

namespace rehearse {
namespace {

using Json = nlohmann::ordered_json;

constexpr int64_t kLatest = Time::kBeyond - 1;

void AppendStep(const RecordedStep& step, std::string* text) {
  fmt::format_to(std::back_inserter(*text), R"({{"warm_up":{},"step_picoseconds":{},)",
                 step.is_warm_up, step.timeline.step.picoseconds());
  if (step.is_disturbed)
    fmt::format_to(std::back_inserter(*text), R"("disturbed":true,"lost":{},)", step.lost);
  *text += R"("spans":[)";
  const char* separator = "";
  for (const Span& span : step.timeline.spans) {
    fmt::format_to(std::back_inserter(*text), "{}[{},{},{},{},{}]", separator, span.rank, span.op,
                   span.ready.picoseconds(), span.begin.picoseconds(), span.end.picoseconds());
    separator = ",";
  }
  *text += "]}";
}

Time ReadTime(const JsonReader& reader, Time earliest) {
  return Time(reader.Integer(earliest.picoseconds(), kLatest));
}

Span ReadSpan(const JsonReader& reader, const TimelineRecord& record) {
  const std::vector<JsonReader> numbers = reader.Elements();
  if (numbers.size() != 5) reader.Expected("[rank, op, ready, begin, end]");
  Span span;
  span.rank = static_cast<uint32_t>(numbers[0].Integer(0, int64_t{record.ranks()} - 1));
  const int64_t ops = record.roles[record.role_of_rank[span.rank]].OpCount();
  span.op = static_cast<uint32_t>(numbers[1].Integer(0, ops - 1));
  span.ready = ReadTime(numbers[2], Time());
  span.begin = ReadTime(numbers[3], span.ready);
  span.end = ReadTime(numbers[4], span.begin);
  return span;
}

// What is wrong with a span that was not read as JSON: its numbers are whole, but nothing more is
// known of them; "" for nothing.
std::string MistakeIn(const Span& span, const TimelineRecord& record) {
  if (span.rank >= record.ranks())
    return fmt::format("found rank {}, expected one of {}", span.rank, record.ranks());
  const uint32_t ops = record.roles[record.role_of_rank[span.rank]].OpCount();
  if (span.op >= ops) return fmt::format("found op {}, expected one of {}", span.op, ops);
  return span.begin < span.ready || span.end < span.begin
             ? "found a span that begins before it is ready, or ends before it begins"
             : "";
}

// What is wrong with a span after those before it; "" for nothing.
const char* MistakeAfter(const Timeline& timeline, const Span& span) {
  if (span.end > timeline.step) return "the span ends after the step";
  if (timeline.spans.empty()) return "";
  const Span& before = timeline.spans.back();
  return std::pair(before.rank, before.op) < std::pair(span.rank, span.op)
             ? ""
             : "spans must be sorted by rank, then op";
}

RecordedStep ReadStep(const JsonReader& object, const TimelineRecord& record,
                      const std::vector<uint32_t>& representative, std::vector<Span>* spans) {
  const JsonReader reader = object.As(RecordedStepShape());
  RecordedStep step;
  step.is_warm_up = reader.At("warm_up").Bool();
  if (reader.Has("disturbed")) step.is_disturbed = reader.At("disturbed").Bool();
  if (reader.Has("lost")) step.lost = reader.At("lost").Number(0, 1);
  Timeline& timeline = step.timeline;
  timeline.provenance = record.provenance;
  timeline.ranks = record.ranks();
  timeline.representative = representative;
  timeline.step = ReadTime(reader.At("step_picoseconds"), Time());
  const JsonReader in_text = reader.At("spans");
  for (const JsonReader& entry : in_text.Elements()) {
    const Span span = ReadSpan(entry, record);
    if (const std::string mistake = MistakeAfter(timeline, span); !mistake.empty())
      entry.Fail(mistake);
    timeline.spans.push_back(span);
  }
  if (spans == nullptr || spans->empty()) return step;
  timeline.spans.reserve(spans->size());
  for (const Span& span : *spans) {
    std::string mistake = MistakeIn(span, record);
    if (mistake.empty()) mistake = MistakeAfter(timeline, span);
    if (!mistake.empty()) {
      const Place list = in_text.place();
      throw Error({list.file, 0, fmt::format("{}/{}", list.pointer, timeline.spans.size())},
                  mistake);
    }
    timeline.spans.push_back(span);
  }
  std::vector<Span>().swap(*spans);  // its memory too
  return step;
}

}  // namespace

uint32_t RecordedRole::OpCount() const { return DoneOps(repeats, ops.size()).size(); }

uint32_t RecordedRole::PlaceAt(uint32_t position) const {
  return DoneOps(repeats, ops.size()).At(position).place;
}

int32_t RecordedRole::MicroBatchAt(uint32_t position) const {
  const DoneOps all(repeats, ops.size());
  const DoneOp done = all.At(position);
  return ops[done.place].micro_batch + all.MicroBatchesLater(done);
}

const RecordedStep& TimelineRecord::MedianStep() const {
  CHECK(!steps.empty());
  std::vector<const RecordedStep*> candidates;
  const auto take = [&](bool warm_ups, bool disturbed) {
    if (!candidates.empty()) return;
    for (const RecordedStep& step : steps) {
      if (step.is_warm_up == warm_ups && (disturbed || !step.is_disturbed))
        candidates.push_back(&step);
    }
  };
  take(/*warm_ups=*/false, /*disturbed=*/false);
  take(/*warm_ups=*/false, /*disturbed=*/true);
  take(/*warm_ups=*/true, /*disturbed=*/true);
  std::stable_sort(candidates.begin(), candidates.end(),
                   [](const RecordedStep* a, const RecordedStep* b) {
                     return a->timeline.step < b->timeline.step;
                   });
  return *candidates[(candidates.size() - 1) / 2];
}

const char* KindOf(const Work& work) {
  if (const auto* collective = std::get_if<Collective>(&work)) return Name(collective->kind);
  if (std::holds_alternative<Send>(work)) return "send";
  if (std::holds_alternative<Receive>(work)) return "receive";
  switch (std::get<Compute>(work).kind) {
    case ComputeKind::kGemm:
      return "gemm";
    case ComputeKind::kAttention:
      return "attention";
    case ComputeKind::kMemory:
      return "memory";
    case ComputeKind::kFixed:
      return "fixed";
    case ComputeKind::kHost:
      return "host";
  }
  CHECK(false);
}

TimelineRecord MakeRecord(std::string title, const Schedule& schedule, Timeline timeline) {
  TimelineRecord record;
  record.title = std::move(title);
  record.provenance = timeline.provenance;
  record.role_of_rank = schedule.role_of_rank;
  for (const Role& role : schedule.roles) {
    RecordedRole recorded{role.name, {}, role.repeats};
    for (const Op& op : role.ops) {
      const CommunicatorId id = CommunicatorOf(op.work);
      RecordedOp& own = recorded.ops.emplace_back();
      own.name = op.name;
      const auto* compute = std::get_if<Compute>(&op.work);
      own.kind = compute != nullptr && IsWait(*compute) ? kWaitKind : KindOf(op.work);
      if (id.IsSet()) own.axis = schedule.communicators[id.index()].name();
      own.phase = op.tag.phase;
      own.layer = op.tag.layer;
      own.micro_batch = op.tag.micro_batch;
    }
    record.roles.push_back(std::move(recorded));
  }
  timeline.links.clear();
  record.steps.push_back({false, std::move(timeline)});
  return record;
}

std::string ToJsonText(const TimelineRecord& record) {
  Json json = {{"schema", kTimelineSchema}};
  TimelineFields().Write(record, &json);
  std::string text = json.dump();
  text.pop_back();  // the brace
  text += ",\"steps\":[";
  for (const RecordedStep& step : record.steps) {
    if (&step != &record.steps.front()) text += ',';
    AppendStep(step, &text);
  }
  text += "]}\n";
  return text;
}

TimelineRecord ReadTimelineRecord(const JsonReader& object, std::optional<StepSpans> spans) {
  CheckVersion(object.At("schema"), kTimelineSchema);
  const JsonReader reader = object.As(TimelineFields().shape());
  TimelineRecord record;
  TimelineFields().ReadInto(reader, &record);
  reader.At("ranks").Integer(record.ranks(), record.ranks());
  std::vector<uint32_t> representative;
  if (reader.Has("representative")) {
    for (const JsonReader& rank : reader.At("representative").Elements()) {
      representative.push_back(static_cast<uint32_t>(rank.Integer(0, int64_t{record.ranks()} - 1)));
    }
    if (representative.size() != record.role_of_rank.size())
      reader.At("representative").Expected("one entry per rank");
  }
  if (reader.Has("left_out")) {
    for (const JsonReader& run : reader.At("left_out").Elements()) {
      const std::vector<JsonReader> pair = run.Elements();
      if (pair.size() != 2) run.Expected("[rank, ranks]");
      const int64_t least = record.left_out.empty() ? 0 : int64_t{record.left_out.back()} + 1;
      const int64_t first = pair[0].Integer(least, int64_t{record.ranks()} - 1);
      const int64_t count = pair[1].Integer(1, record.ranks() - first);
      for (int64_t rank = first; rank < first + count; ++rank)
        record.left_out.push_back(static_cast<uint32_t>(rank));
    }
  }
  for (const JsonReader& step : reader.At("steps").Elements()) {
    const size_t index = record.steps.size();
    record.steps.push_back(ReadStep(step, record, representative,
                                    spans && index < spans->size() ? &(*spans)[index] : nullptr));
  }
  if (record.steps.empty()) reader.At("steps").Expected("at least one step");
  return record;
}

}  // namespace rehearse

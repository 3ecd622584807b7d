#include "scenarios/reporting/report_page.h"

#include <algorithm>
#include <cmath>
#include <unordered_map>
#include <utility>

#include <fmt/format.h>

#include "scenarios/readers/given_differences.h"
#include "scenarios/reporting/page_columns.h"
#include "sim/base/gzip.h"
#include "sim/base/version.h"
#include "sim/report/comparison.h"
#include "sim/report/kernel_name.h"

namespace rehearse {
namespace {

using Json = nlohmann::ordered_json;
using Numbers = std::vector<int64_t>;

class Strings {
 public:
  int64_t Of(const std::string& text) {
    const auto [it, is_new] = position_.emplace(text, static_cast<int64_t>(all_.size()));
    if (is_new) all_.push_back(text);
    return it->second;
  }
  const std::vector<std::string>& all() const { return all_; }

 private:
  std::unordered_map<std::string, int64_t> position_;
  std::vector<std::string> all_;
};

Json RunsOf(const std::vector<uint32_t>& values) {
  Json runs = Json::array();
  for (size_t first = 0; first < values.size();) {
    size_t last = first;
    while (last < values.size() && values[last] == values[first]) ++last;
    runs.push_back({values[first], last - first});
    first = last;
  }
  return runs;
}

// Writes one run, in ticks of a picosecond or, if the step is long, of a nanosecond.
class RunWriter {
 public:
  RunWriter(const ReportedRun& run, PageColumns* columns)
      : run_(run), timeline_(run.record.Median()), columns_(*columns) {
    constexpr int64_t kLong = 1'000'000'000;  // a millisecond
    constexpr int64_t kNanosecond = 1000;
    tick_ = timeline_.step.picoseconds() < kLong ? 1 : kNanosecond;
  }

  Json Write() {
    Json json;
    json["title"] = run_.record.title;
    json["source"] = run_.source;
    json["provenance"] = run_.record.provenance == Provenance::kMeasured ? "measured" : "simulated";
    json["ranks"] = timeline_.ranks;
    json["tick"] = tick_;
    json["step"] = Ticks(timeline_.step);
    json["steps"] = run_.record.steps.size();
    json["classes"] = Json::array();
    for (const SpanClass& one : run_.classes)
      json["classes"].push_back({one.name, one.fill, one.ink, one.communication});
    json["roles"] = Json::array();
    for (size_t role = 0; role < run_.roles.size(); ++role)
      json["roles"].push_back(RoleJson(run_.record.roles[role], run_.roles[role]));
    json["role_runs"] = RunsOf(run_.record.role_of_rank);
    json["representative_runs"] = RunsOf(timeline_.representative);
    json["left_out"] = run_.record.left_out.size();
    json["shown"] = ShownRanks();
    json["knows_waits"] = run_.knows_waits;
    json["spans"] = SpansJson();
    json["path"] = PathJson();
    json["links"] = LinksJson();
    json["links_left_out"] = run_.links_left_out;
    json["memory"] = MemoryJson();
    json["asked"] = run_.asked;
    if (!run_.pipeline.rows.empty()) json["pipeline"] = PipelineJson();
    if (run_.network) json["network"] = ToJson(*run_.network);
    json["result"] = run_.result;
    json["cluster"] = run_.cluster;
    if (!run_.record.environment.is_null()) json["environment"] = run_.record.environment;
    json["strings"] = strings_.all();
    return json;
  }

 private:
  int64_t Ticks(Time time) const { return time.picoseconds() / tick_; }

  Json RoleJson(const RecordedRole& recorded, const ReportedRole& role) {
    Json json = {{"name", recorded.name}, {"streams", Json::array()}, {"repeats", Json::array()}};
    for (const ReportedStream& stream : role.streams)
      json["streams"].push_back({stream.name, stream.communicates});
    for (const Repeat& repeat : recorded.repeats)
      json["repeats"].push_back({repeat.begin, repeat.end, repeat.times, repeat.micro_batches});
    // These columns are in the order of their names.
    Numbers after, after_count, bus_factor, bytes, span_class, detail, kind, layer, micro_batch,
        name, phase, stream, waits;
    for (size_t i = 0; i < role.ops.size(); ++i) {
      const RecordedOp& op = recorded.ops[i];
      const ReportedOp& own = role.ops[i];
      name.push_back(strings_.Of(names_.Of(op.name)));
      kind.push_back(strings_.Of(op.kind));
      detail.push_back(strings_.Of(own.detail));
      span_class.push_back(static_cast<int64_t>(own.span_class));
      stream.push_back(own.stream);
      phase.push_back(static_cast<int64_t>(op.phase));
      layer.push_back(op.layer);
      micro_batch.push_back(op.micro_batch);
      waits.push_back(own.waits ? 1 : 0);
      bytes.push_back(std::llround(own.bytes));
      constexpr double kMillionths = 1e6;
      bus_factor.push_back(std::llround(own.bus_factor * kMillionths));
      after_count.push_back(static_cast<int64_t>(own.after.size()));
      after.insert(after.end(), own.after.begin(), own.after.end());
    }
    json["ops"] = {{"after", columns_.Add(after)},
                   {"after_count", columns_.Add(after_count)},
                   {"bus_factor", columns_.Add(bus_factor)},
                   {"bytes", columns_.Add(bytes)},
                   {"class", columns_.Add(span_class)},
                   {"detail", columns_.Add(detail)},
                   {"kind", columns_.Add(kind)},
                   {"layer", columns_.Add(layer)},
                   {"micro_batch", columns_.Add(micro_batch)},
                   {"name", columns_.Add(name)},
                   {"phase", columns_.Add(phase)},
                   {"stream", columns_.Add(stream)},
                   {"waits", columns_.Add(waits)}};
    return json;
  }

  Json ShownRanks() const {
    Json shown = Json::array();
    for (const ReportedRank& rank : run_.ranks) {
      const auto [first, last] = timeline_.SpansOf(rank.rank);
      shown.push_back({rank.rank, run_.record.role_of_rank[rank.rank], rank.stands_for, rank.name,
                       first, last});
    }
    return shown;
  }

  Json SpansJson() {
    Numbers op;
    Numbers begin;
    Numbers waited;
    Numbers took;
    for (const Span& span : timeline_.spans) {
      op.push_back(span.op);
      begin.push_back(Ticks(span.begin));
      waited.push_back(Ticks(span.begin) - Ticks(span.ready));
      took.push_back(Ticks(span.end) - Ticks(span.begin));
    }
    Numbers released;
    for (const uint32_t span : run_.released_by)
      released.push_back(span == kNoSpan ? -1 : static_cast<int64_t>(span));
    Numbers held;
    Numbers held_by;
    Numbers held_share;
    for (const SpanBottleneck& bottleneck : run_.bottlenecks) {
      constexpr double kPercent = 100;
      held.push_back(bottleneck.span);
      held_by.push_back(bottleneck.link);
      held_share.push_back(std::llround(bottleneck.share * kPercent));
    }
    return {{"op", columns_.AddRising(op)},
            {"begin", columns_.AddRising(begin)},
            {"waited", columns_.Add(waited)},
            {"took", columns_.Add(took)},
            {"released_by", columns_.AddRising(released)},
            {"held", columns_.AddRising(held)},
            {"held_by", columns_.Add(held_by)},
            {"held_share", columns_.Add(held_share)}};
  }

  Json PathJson() {
    Numbers span;
    Numbers begin;
    Numbers took;
    for (const ReportedPathPiece& piece : run_.path) {
      span.push_back(piece.span == kNoSpan ? -1 : static_cast<int64_t>(piece.span));
      begin.push_back(Ticks(piece.begin));
      took.push_back(Ticks(piece.end) - Ticks(piece.begin));
    }
    return {{"span", columns_.AddRising(span)},
            {"begin", columns_.AddRising(begin)},
            {"took", columns_.Add(took)}};
  }

  // Loads are in thousandths of the capacity.
  Json LinksJson() {
    Json links = Json::array();
    const Seconds step = ToSeconds(timeline_.step);
    for (const ReportedLink& link : run_.links) {
      Numbers at;
      Numbers share;
      for (const LinkLoad& load : link.record.loads) {
        constexpr double kThousandths = 1000;
        const int64_t now =
            std::llround(load.bytes_per_second / link.record.capacity.value() * kThousandths);
        if (!share.empty() && share.back() == now) continue;
        at.push_back(Ticks(load.from));
        share.push_back(now);
      }
      links.push_back(
          {{"name", link.record.name},
           {"kind", link.record.kind},
           {"capacity", link.record.capacity.value()},
           {"bytes", link.record.bytes.value()},
           {"count", link.record.count},
           {"use", step > Seconds(0) ? link.record.bytes / (link.record.capacity * step) : 0.0},
           {"at", columns_.AddRising(at)},
           {"share", columns_.AddRising(share)},
           {"spans", columns_.AddRising({link.spans.begin(), link.spans.end()})}});
    }
    return links;
  }

  Json PipelineJson() {
    const PipelineRows& pipeline = run_.pipeline;
    Json json = {{"end", Ticks(pipeline.end)}, {"bubble", pipeline.Bubble()}};
    json["rows"] = Json::array();
    for (const PipelineRow& row : pipeline.rows) {
      Numbers begin, chunk, from_end, micro_batch, took, work;
      for (const PipelinePiece& piece : row.pieces) {
        begin.push_back(Ticks(piece.begin));
        took.push_back(Ticks(piece.end) - Ticks(piece.begin));
        work.push_back(static_cast<int64_t>(piece.work));
        micro_batch.push_back(piece.micro_batch);
        chunk.push_back(piece.chunk);
        from_end.push_back(piece.from_end ? 1 : 0);
      }
      json["rows"].push_back({{"rank", row.rank},
                              {"name", row.name},
                              {"bubble", row.Bubble()},
                              {"from", Ticks(row.from)},
                              {"to", Ticks(row.to)},
                              {"begin", columns_.AddRising(begin)},
                              {"chunk", columns_.Add(chunk)},
                              {"from_end", columns_.Add(from_end)},
                              {"micro_batch", columns_.Add(micro_batch)},
                              {"took", columns_.Add(took)},
                              {"work", columns_.Add(work)}});
    }
    return json;
  }

  // Memory is in KiB.
  Json MemoryJson() {
    constexpr double kKibibyte = 1024;
    Json curves = Json::array();
    for (const MemoryCurve& curve : run_.memory) {
      Numbers at;
      Numbers activations;
      Numbers buffers;
      for (const MemoryAt& point : curve.points) {
        at.push_back(Ticks(point.at));
        activations.push_back(std::llround(point.activations / kKibibyte));
        buffers.push_back(std::llround(point.buffers / kKibibyte));
      }
      curves.push_back({{"rank", curve.rank},
                        {"parameters", curve.parameters},
                        {"gradients", curve.gradients},
                        {"optimizer", curve.optimizer},
                        {"at", columns_.AddRising(at)},
                        {"activations", columns_.AddRising(activations)},
                        {"buffers", columns_.AddRising(buffers)}});
    }
    return curves;
  }

  const ReportedRun& run_;
  const Timeline& timeline_;
  PageColumns& columns_;
  Strings strings_;
  ShortNames names_;  // of ops
  int64_t tick_ = 1;
};

// The ops that differ most are columns, because as objects they would be two thirds of a header.
Json WorstOps(const Comparison& comparison, size_t most, PageColumns* columns) {
  Strings strings;
  ShortNames names;
  Numbers a, axis, b, layer, name, occurrence, phase;
  for (const size_t i : comparison.Worst(most)) {
    const ComparedOp& op = comparison.ops[i];
    name.push_back(strings.Of(names.Of(op.op.name)));
    axis.push_back(strings.Of(op.op.axis));
    phase.push_back(strings.Of(Name(op.op.phase)));
    layer.push_back(op.op.layer);
    occurrence.push_back(op.occurrence);
    constexpr double kPicoseconds = 1e12;
    a.push_back(std::llround(op.time.a.value() * kPicoseconds));
    b.push_back(std::llround(op.time.b.value() * kPicoseconds));
  }
  Json worst = {{"a", columns->Add(a)},        {"axis", columns->Add(axis)},
                {"b", columns->Add(b)},        {"layer", columns->Add(layer)},
                {"name", columns->Add(name)},  {"occurrence", columns->Add(occurrence)},
                {"phase", columns->Add(phase)}};
  worst["strings"] = strings.all();
  return worst;
}

const char* NameOfDots(DotsKind kind) {
  switch (kind) {
    case DotsKind::kStudy:
      return "study";
    case DotsKind::kValidation:
      return "validation";
    case DotsKind::kSearch:
      return "search";
  }
  return "";
}

}  // namespace

std::string PageBytes(const Report& report, const std::string& known) {
  PageColumns columns;
  Json header;
  header["schema"] = kPageSchema;
  header["made_by"] = fmt::format("rehearse {}", Version());
  header["runs"] = Json::array();
  for (const ReportedRun& run : report.runs) {
    const bool is_known = !known.empty() && &run == &report.runs.front() && !run.result.is_null() &&
                          run.result.value("timeline_hash", "") == known;
    header["runs"].push_back(is_known ? Json() : RunWriter(run, &columns).Write());
  }
  if (report.runs.size() == 2) {
    constexpr size_t kMostRows = 400;
    const TimelineRecord& a = report.runs.front().record;
    const TimelineRecord& b = report.runs.back().record;
    Comparison comparison = Compare(a, b);
    if (!a.given.is_null() && !b.given.is_null())
      comparison.given = DifferencesOf(a.given, b.given);
    header["comparison"] = ToJson(comparison, 0);
    header["comparison"]["worst"] = WorstOps(comparison, kMostRows, &columns);
  }
  if (report.as_pipelines) header["as_pipelines"] = true;
  if (!report.machines.is_null()) header["machines"] = report.machines;
  header["tables"] = Json::array();
  for (const ReportedTable& table : report.tables) {
    header["tables"].push_back({{"title", table.title},
                                {"source", table.source},
                                {"description", table.description},
                                {"metric", table.metric},
                                {"across", table.across},
                                {"kind", NameOfDots(table.kind)},
                                {"rows", ToJson(table.rows)}});
  }
  return columns.Finish(std::move(header));
}

std::string PageData(const Report& report) { return Base64(Gzip(PageBytes(report))); }

}  // namespace rehearse

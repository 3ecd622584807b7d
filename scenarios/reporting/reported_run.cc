#include "scenarios/reporting/reported_run.h"

#include <algorithm>
#include <map>
#include <utility>

#include "sim/base/error.h"
#include "sim/report/fixed_ops.h"

namespace rehearse {
namespace {

// The kind of compute that the file's name of an op's kind means; nothing for communication.
std::optional<ComputeKind> ComputeKindOf(const std::string& kind) {
  if (kind == "gemm") return ComputeKind::kGemm;
  if (kind == "attention") return ComputeKind::kAttention;
  if (kind == "memory") return ComputeKind::kMemory;
  if (kind == "host") return ComputeKind::kHost;
  if (kind == "fixed" || kind == kWaitKind) return ComputeKind::kFixed;
  return std::nullopt;
}

std::vector<std::string> AxesOfRecord(const TimelineRecord& record) {
  std::vector<std::string> axes;
  for (const RecordedRole& role : record.roles) {
    for (const RecordedOp& op : role.ops) {
      if (op.axis.empty() || std::find(axes.begin(), axes.end(), op.axis) != axes.end()) continue;
      axes.push_back(op.axis);
    }
  }
  return axes;
}

// Files have no streams: compute is one, and so is each axis.
ReportedRole RoleOfRecord(const RecordedRole& recorded, const std::vector<std::string>& axes) {
  ReportedRole role;
  role.streams.push_back({"compute", false});
  std::map<std::string, uint32_t> stream_of_axis;
  for (const RecordedOp& op : recorded.ops) {
    ReportedOp& own = role.ops.emplace_back();
    const std::optional<ComputeKind> compute = ComputeKindOf(op.kind);
    own.waits = op.kind == kWaitKind;
    if (compute) {
      own.span_class =
          SpanClasses::OfCompute(*compute, op.phase, IsWeightGradient(op.name, op.phase));
    } else {
      const auto axis = std::find(axes.begin(), axes.end(), op.axis);
      own.span_class = axis == axes.end()
                           ? SpanClasses::OfCompute(ComputeKind::kFixed, Phase::kUpdate)
                           : SpanClasses::OfAxis(static_cast<size_t>(axis - axes.begin()));
      const auto [it, is_new] =
          stream_of_axis.emplace(op.axis, static_cast<uint32_t>(role.streams.size()));
      if (is_new) role.streams.push_back({op.axis.empty() ? op.kind : op.axis, true});
      own.stream = it->second;
    }
    if (!op.algorithm.empty())
      own.detail = op.algorithm + (op.protocol.empty() ? "" : ", " + op.protocol);
  }
  return role;
}

}  // namespace

ReportedRun ReportRecord(TimelineRecord record) {
  ReportedRun run;
  const Timeline& timeline = record.Median();
  if (timeline.spans.empty()) throw Error("the timeline has no span: there is nothing to show");
  const std::vector<std::string> axes = AxesOfRecord(record);
  run.classes = SpanClasses(axes).all();
  for (const RecordedRole& role : record.roles) run.roles.push_back(RoleOfRecord(role, axes));
  std::vector<uint32_t> ranks_like(timeline.ranks, 0);
  for (uint32_t rank = 0; rank < timeline.ranks; ++rank)
    ++ranks_like[timeline.RepresentativeOf(rank)];
  for (const Span& span : timeline.spans) {
    if (run.ranks.empty() || run.ranks.back().rank != span.rank)
      run.ranks.push_back({span.rank, "", std::max(ranks_like[span.rank], 1u)});
  }
  run.record = std::move(record);
  run.pipeline = PipelineRowsOf(run, std::nullopt);
  return run;
}

}  // namespace rehearse

#include "scenarios/reporting/pipeline_rows.h"

#include <algorithm>
#include <map>
#include <numeric>
#include <set>

#include "scenarios/reporting/reported_run.h"
#include "sim/report/span_classes.h"
#include "sim/schedule/kernel.h"
#include "workloads/planner/stages.h"

namespace rehearse {
namespace {

bool IsGradient(PipelineWork work) { return work != PipelineWork::kForward; }

bool IsOfOnePass(const PipelinePiece& a, const PipelinePiece& b) {
  return a.micro_batch == b.micro_batch && a.chunk == b.chunk && a.from_end == b.from_end;
}

bool IsOfOneDirection(const PipelinePiece& a, const PipelinePiece& b) {
  return a.micro_batch == b.micro_batch && IsGradient(a.work) == IsGradient(b.work);
}

// Which chunk of a role each layer belongs to.
std::map<int32_t, uint32_t> ChunksOf(const RecordedRole& role,
                                     const std::optional<PipelineStages>& stages) {
  std::map<int32_t, uint32_t> chunks;
  if (!stages || stages->copies > 1) return chunks;
  std::map<uint32_t, std::set<int32_t>> layers_of_stage;
  for (const RecordedOp& op : role.ops)
    if (op.axis.empty() && op.layer >= 0 &&
        static_cast<size_t>(op.layer) < stages->stage_of_layer.size())
      layers_of_stage[stages->stage_of_layer[static_cast<size_t>(op.layer)]].insert(op.layer);
  uint32_t chunk = 0;
  for (const auto& [stage, layers] : layers_of_stage) {
    for (const int32_t layer : layers) chunks[layer] = chunk;
    ++chunk;
  }
  return chunks;
}

class RowMaker {
 public:
  RowMaker(const ReportedRun& run, const std::optional<PipelineStages>& stages)
      : run_(run), stages_(stages) {}

  PipelineRow RowOf(uint32_t rank) const {
    const uint32_t role = run_.record.role_of_rank[rank];
    const RecordedRole& recorded = run_.record.roles[role];
    PipelineRow row{rank, recorded.name, {}, {}, {}};
    const std::map<int32_t, uint32_t> chunks = ChunksOf(recorded, stages_);
    std::vector<PipelinePiece> passes;
    std::vector<std::optional<uint32_t>> known;
    for (const Span& span : ComputeOf(rank)) {
      const RecordedOp& op = run_.record.OpOf(span);
      PipelinePiece& piece = passes.emplace_back();
      piece.begin = span.begin;
      piece.end = span.end;
      piece.work = op.phase == Phase::kForward           ? PipelineWork::kForward
                   : IsWeightGradient(op.name, op.phase) ? PipelineWork::kWeightGradient
                                                         : PipelineWork::kInputGradient;
      piece.micro_batch = run_.record.MicroBatchOf(span);
      piece.from_end = stages_ && stages_->copies > 1 &&
                       piece.micro_batch >= static_cast<int32_t>(stages_->micro_batches / 2);
      const auto chunk = chunks.find(op.layer);
      known.push_back(chunk == chunks.end() ? std::nullopt : std::optional(chunk->second));
    }
    // What has no layer (an embedding, a loss) belongs to the chunk of what follows it in the same
    // pass, or else of what came before.
    for (size_t i = passes.size(); i-- > 0;)
      if (!known[i] && i + 1 < passes.size() && IsOfOneDirection(passes[i], passes[i + 1]))
        known[i] = known[i + 1];
    for (size_t i = 0; i < passes.size(); ++i) {
      if (!known[i] && i > 0 && IsOfOneDirection(passes[i - 1], passes[i])) known[i] = known[i - 1];
      passes[i].chunk = known[i].value_or(0);
      Add(passes[i], &row.pieces);
    }
    return row;
  }

 private:
  std::vector<Span> ComputeOf(uint32_t rank) const {
    const Timeline& timeline = run_.record.Median();
    const auto [first, last] = timeline.SpansOf(rank);
    const uint32_t role = run_.record.role_of_rank[rank];
    std::vector<Span> spans;
    for (size_t i = first; i < last; ++i) {
      const Span& span = timeline.spans[i];
      const RecordedOp& op = run_.record.OpOf(span);
      const ReportedOp& own = run_.roles[role].ops[run_.record.roles[role].PlaceAt(span.op)];
      if (run_.classes[own.span_class].communication || own.waits) continue;
      if (op.phase == Phase::kSynchronize || op.phase == Phase::kUpdate) continue;
      if (span.end > span.begin) spans.push_back(span);
    }
    std::stable_sort(spans.begin(), spans.end(),
                     [](const Span& a, const Span& b) { return a.begin < b.begin; });
    return spans;
  }

  static void Add(const PipelinePiece& piece, std::vector<PipelinePiece>* pieces) {
    if (!pieces->empty() && pieces->back().work == piece.work &&
        IsOfOnePass(pieces->back(), piece)) {
      pieces->back().end = std::max(pieces->back().end, piece.end);
      return;
    }
    pieces->push_back(piece);
    if (pieces->size() < 2) return;
    PipelinePiece& own = pieces->back();
    own.begin = std::max(own.begin, (*pieces)[pieces->size() - 2].end);
    own.end = std::max(own.begin, own.end);
  }

  const ReportedRun& run_;
  const std::optional<PipelineStages>& stages_;
};

// Whether each weight gradient of the rank comes right after the input gradient of its micro-batch.
bool AreTogether(const PipelineRow& row) {
  for (size_t i = 0; i < row.pieces.size(); ++i) {
    if (row.pieces[i].work != PipelineWork::kWeightGradient) continue;
    if (i == 0 || !IsGradient(row.pieces[i - 1].work) ||
        !IsOfOnePass(row.pieces[i - 1], row.pieces[i]))
      return false;
  }
  return true;
}

// Gradients of one pass in a row become one piece: all of them, or only those that take turns layer
// by layer.
void JoinGradients(bool all, PipelineRow* row) {
  std::vector<PipelinePiece> joined;
  for (size_t i = 0; i < row->pieces.size();) {
    size_t end = i + 1;
    if (IsGradient(row->pieces[i].work)) {
      while (end < row->pieces.size() && IsGradient(row->pieces[end].work) &&
             IsOfOnePass(row->pieces[i], row->pieces[end]))
        ++end;
    }
    constexpr size_t kApart = 2;  // an input gradient, and then a weight gradient
    if (end - i > kApart || (all && end - i == kApart)) {
      joined.push_back(row->pieces[i]);
      joined.back().end = row->pieces[end - 1].end;
      joined.back().work = PipelineWork::kBackward;
    } else {
      joined.insert(joined.end(), row->pieces.begin() + static_cast<std::ptrdiff_t>(i),
                    row->pieces.begin() + static_cast<std::ptrdiff_t>(end));
    }
    i = end;
  }
  row->pieces = std::move(joined);
}

}  // namespace

const char* Name(PipelineWork work) {
  switch (work) {
    case PipelineWork::kForward:
      return "forward";
    case PipelineWork::kInputGradient:
      return "input gradient";
    case PipelineWork::kWeightGradient:
      return "weight gradient";
    case PipelineWork::kBackward:
      return "backward";
  }
  return "";
}

double PipelineRow::Bubble() const {
  Time busy;
  for (const PipelinePiece& piece : pieces) busy += piece.end - piece.begin;
  return to > from ? 1 - ToSeconds(busy) / ToSeconds(to - from) : 0;
}

double PipelineRows::Bubble() const {
  double sum = 0;
  for (const PipelineRow& row : rows) sum += row.Bubble();
  return rows.empty() ? 0 : sum / static_cast<double>(rows.size());
}

std::optional<PipelineStages> StagesOf(const Workload& workload) {
  if (!workload.pipeline) return std::nullopt;
  PipelineStages stages;
  stages.copies = workload.pipeline->places.copies;
  stages.micro_batches = workload.network->micro_batches;
  stages.follow_rank_by_rank = workload.pipeline->validation == kAdamIfClipped;
  const std::vector<Unit> units = UnitsOf(*workload.network);
  size_t unit = 0;
  for (uint32_t stage = 0; stage < workload.pipeline->units_of_stage.size(); ++stage) {
    for (uint32_t i = 0; i < workload.pipeline->units_of_stage[stage] && unit < units.size(); ++i) {
      const int32_t layer = units[unit++].layer;
      if (layer < 0) continue;
      const auto place = static_cast<size_t>(layer);
      if (stages.stage_of_layer.size() <= place) stages.stage_of_layer.resize(place + 1, stage);
      stages.stage_of_layer[place] = stage;
    }
  }
  return stages;
}

PipelineRows PipelineRowsOf(const ReportedRun& run, const std::optional<PipelineStages>& stages) {
  PipelineRows all;
  const RowMaker maker(run, stages);
  std::vector<bool> seen(run.roles.size());
  std::set<int32_t> micro_batches;
  for (const ReportedRank& rank : run.ranks) {
    const uint32_t role = run.record.role_of_rank[rank.rank];
    if (seen[role]) continue;
    seen[role] = true;
    PipelineRow row = maker.RowOf(rank.rank);
    if (row.pieces.empty()) continue;
    for (const PipelinePiece& piece : row.pieces) micro_batches.insert(piece.micro_batch);
    all.end = std::max(all.end, row.pieces.back().end);
    all.rows.push_back(std::move(row));
  }
  if (all.rows.size() < 2 || micro_batches.size() < 2) return {};
  const bool together = std::all_of(all.rows.begin(), all.rows.end(), AreTogether);
  for (PipelineRow& row : all.rows) JoinGradients(together, &row);
  Time longest;
  for (const PipelineRow& row : all.rows)
    longest = std::max(longest, row.pieces.back().end - row.pieces.front().begin);
  for (PipelineRow& row : all.rows) {
    row.to = all.end;
    if (!stages || !stages->follow_rank_by_rank) continue;
    row.from = row.pieces.front().begin;
    row.to = row.from + longest;
  }
  return all;
}

}  // namespace rehearse

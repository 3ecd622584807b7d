// What a page shows of a scenario, which is played with everything recorded.
#include <algorithm>
#include <array>
#include <map>
#include <optional>
#include <utility>

#include "collectives/algorithms/ring.h"
#include "scenarios/playing/prepare.h"
#include "scenarios/playing/rehearsal.h"
#include "scenarios/playing/seeded_routes.h"
#include "scenarios/reporting/cluster_drawing.h"
#include "scenarios/reporting/reported_run.h"
#include "sim/base/error.h"
#include "sim/engine/critical_ops.h"
#include "sim/report/kept_ranks.h"
#include "sim/report/release.h"
#include "sim/schedule/done_ops.h"
#include "sim/schedule/memory.h"
#include "sim/schedule/written_out.h"

namespace rehearse {
namespace {

double BusFactor(const Schedule& schedule, const Work& work) {
  const auto* collective = std::get_if<Collective>(&work);
  if (collective == nullptr) return CommunicatorOf(work).IsSet() ? 1 : 0;
  const uint32_t size = schedule.communicators[collective->communicator.index()].size();
  if (size < 2) return 0;
  return BusBandwidth(collective->kind, size, Bytes(1), Seconds(1)).value();
}

// Keeps what Describe() says of each op's work, because a step has few works that differ.
class Details {
 public:
  explicit Details(const Schedule& schedule) : schedule_(schedule) {}

  const std::string& Of(const Work& work) {
    const auto [entry, is_new] = known_.try_emplace(KeyOf(work));
    if (is_new) entry->second = Describe(schedule_, work);
    return entry->second;
  }

 private:
  using Key = std::array<double, 9>;  // what the text depends on

  static Key KeyOf(const Work& work) {
    const auto number = [](auto value) { return static_cast<double>(value); };
    Key key = {number(work.index())};
    if (const auto* compute = std::get_if<Compute>(&work)) {
      const Gemm& gemm = compute->gemm;
      return {-1 - number(compute->kind),
              number(gemm.m),
              number(gemm.n),
              number(gemm.k),
              number(gemm.batch),
              number(compute->tuned.value_or(gemm.mode)),
              compute->flops.value(),
              compute->bytes.value(),
              compute->duration.value()};
    }
    key[1] = number(CommunicatorOf(work).index());
    key[2] = CommunicationBytes(work).value();
    if (const auto* collective = std::get_if<Collective>(&work)) {
      key[3] = number(collective->kind);
    } else if (const auto* send = std::get_if<Send>(&work)) {
      key[3] = number(send->peer);
    } else {
      key[3] = number(std::get<Receive>(work).peer);
    }
    return key;
  }

  const Schedule& schedule_;
  std::map<Key, std::string> known_;
};

// Of repeated ops only the first copy is reported, because the others wait in the same way (Repeat
// in sim/schedule/schedule.h).
ReportedRole RoleOf(const Schedule& schedule, const Role& role, const SpanClasses& classes,
                    Details* details) {
  ReportedRole reported;
  for (const Stream& stream : role.streams)
    reported.streams.push_back({stream.name, stream.kind == StreamKind::kCommunication});
  reported.ops.resize(role.ops.size());
  const DoneOps all(role);
  for (const DoneOp& done : all) {
    if (done.copy > 0) continue;
    const Op& op = role.ops[done.place];
    ReportedOp& own = reported.ops[done.place];
    own.span_class = classes.Of(op);
    own.stream = static_cast<uint32_t>(op.stream.index());
    const auto* compute = std::get_if<Compute>(&op.work);
    own.waits = compute != nullptr && IsWait(*compute);
    own.bytes = CommunicationBytes(op.work).value();
    own.bus_factor = BusFactor(schedule, op.work);
    own.detail = details->Of(op.work);
    for (const OpId before : op.after)
      own.after.push_back(done.position - all.PositionOf(before, done));
  }
  return reported;
}

// What ranks of a role have in common.
struct RoleMemory {
  explicit RoleMemory(const Role& role) : all(role), use(MemoryOf(role)) {}

  WrittenOut all;
  MemoryUse use;
};

// When activations and buffers come and go on a rank, by the times of its spans: from the beginning
// of the first op that touches one to the end of the last. Optimizer state that is on the host for
// a time counts as a buffer.
MemoryCurve CurveOf(const Role& role, const RoleMemory& memory, const Timeline& timeline,
                    uint32_t rank) {
  const auto spans = timeline.SpansOf(rank);
  struct Life {
    Time begin = Time(Time::kBeyond - 1);
    Time end;
    std::optional<Time> left;  // copied to the host, and back from there
    std::optional<Time> returned;
  };
  const WrittenOut& all = memory.all;
  std::vector<Life> lives(all.buffer_count());
  size_t next = spans.first;
  for (const DoneOp& done : all.ops()) {
    if (next == spans.second || timeline.spans[next].op != done.position) continue;
    const Span& span = timeline.spans[next++];
    const Op& op = role.ops[done.place];
    for (const auto* touched : {&op.reads, &op.writes}) {
      for (const BufferId buffer : *touched) {
        Life& life = lives[all.RootOf(all.NumberOf(buffer, done))];
        life.begin = std::min(life.begin, span.begin);
        life.end = std::max(life.end, span.end);
        if (!IsHostCopy(op.work)) continue;
        if (touched == &op.reads)
          life.left = span.end;
        else
          life.returned = span.begin;
      }
    }
  }
  struct Change {
    Time at;
    double activations = 0;
    double buffers = 0;
  };
  std::vector<Change> changes;
  double kept_optimizer = 0;
  double offloaded = 0;
  for (uint32_t i = 0; i < lives.size(); ++i) {
    const Buffer& buffer = all.KeptBuffer(i);
    if (buffer.kind == BufferKind::kOptimizer && !buffer.on_host) {
      const double bytes = buffer.bytes.value();
      const bool is_away = lives[i].left && lives[i].returned;
      (is_away ? offloaded : kept_optimizer) += bytes;
      if (!is_away) continue;
      changes.push_back({*lives[i].left, 0, -bytes});
      changes.push_back({*lives[i].returned, 0, bytes});
    }
    if (lives[i].begin > lives[i].end || buffer.bytes == Bytes(0) || buffer.on_host) continue;
    const double bytes = buffer.bytes.value();
    if (buffer.kind == BufferKind::kActivation) {
      changes.push_back({lives[i].begin, bytes, 0});
      changes.push_back({lives[i].end, -bytes, 0});
    } else if (buffer.kind == BufferKind::kBuffer) {
      changes.push_back({lives[i].begin, 0, bytes});
      changes.push_back({lives[i].end, 0, -bytes});
    }
  }
  std::stable_sort(changes.begin(), changes.end(),
                   [](const Change& a, const Change& b) { return a.at < b.at; });
  const MemoryUse& use = memory.use;
  MemoryCurve curve{rank,
                    use.parameters.value(),
                    use.gradients.value(),
                    kept_optimizer,
                    {{Time(), 0, offloaded}}};
  curve.points.reserve(changes.size() + 1);
  for (const Change& change : changes) {
    MemoryAt next = curve.points.back();
    next.activations += change.activations;
    next.buffers += change.buffers;
    if (curve.points.back().at == change.at) curve.points.pop_back();
    next.at = change.at;
    curve.points.push_back(next);
  }
  return curve;
}

class Reporter {
 public:
  Reporter(const Scenario& scenario, const PlayedScenario& played, const ReportLimits& limits,
           ReportMemory* memory)
      : scenario_(scenario),
        played_(played),
        schedule_(played.schedule()),
        timeline_(played.simulation.timeline),
        program_(played.lowered.program),
        limits_(limits),
        memory_(*memory),
        ops_(program_) {}

  ReportedRun Run(const std::vector<uint32_t>& asked) {
    const SpanClasses classes(schedule_);
    run_.classes = classes.all();
    Details details(schedule_);
    for (const Role& role : schedule_.roles)
      run_.roles.push_back(RoleOf(schedule_, role, classes, &details));
    run_.result = ToJson(Describe(scenario_, played_, OwnPart(scenario_, played_)));
    KeepRanks(asked);
    run_.asked = asked;
    DescribePipeline();
    DescribeWaits();
    DescribePath();
    DescribeLinks();
    DescribeMemory();
    const auto& packets = played_.simulation.packets;
    if (packets && packets->history)
      run_.network = DrawNetwork(*packets->history, schedule_, program_, ops_);
    return std::move(run_);
  }

 private:
  void KeepRanks(const std::vector<uint32_t>& asked) {
    const std::vector<uint32_t> ranks =
        RanksToKeep(schedule_, timeline_, asked, {.ranks = limits_.ranks, .spans = limits_.spans});
    Timeline kept{timeline_.provenance,     timeline_.ranks, timeline_.step, timeline_.spans, {},
                  timeline_.representative, nullptr};
    std::vector<uint32_t> left_out = KeepOnly(ranks, schedule_, &kept);
    // The position of each kept span; both lists are sorted by rank, then op.
    kept_.assign(timeline_.spans.size(), kNoSpan);
    uint32_t next = 0;
    for (size_t i = 0; i < timeline_.spans.size() && next < kept.spans.size(); ++i) {
      const Span& own = timeline_.spans[i];
      const Span& wanted = kept.spans[next];
      if (own.rank == wanted.rank && own.op == wanted.op) kept_[i] = next++;
    }
    CHECK_EQ(next, kept.spans.size());
    std::vector<uint32_t> ranks_like(kept.ranks, 0);
    for (uint32_t rank = 0; rank < kept.ranks; ++rank) ++ranks_like[kept.RepresentativeOf(rank)];
    for (const Span& span : kept.spans) {
      if (!run_.ranks.empty() && run_.ranks.back().rank == span.rank) continue;
      run_.ranks.push_back({span.rank, scenario_.cluster->DeviceName(span.rank),
                            std::max(ranks_like[span.rank], 1u)});
    }
    run_.record = MakeRecord(scenario_.name, schedule_, std::move(kept));
    run_.record.left_out = std::move(left_out);
    if (scenario_.given) run_.record.given = *scenario_.given;
    if (Spans().empty()) throw Error("the step has no op: there is nothing to show");
  }

  const std::vector<Span>& Spans() const { return run_.record.Median().spans; }
  const Op& OpOf(const Span& span) const {
    return schedule_.roles[schedule_.role_of_rank[span.rank]].At(span.op);
  }

  // The position of an op's kept span, on the rank or on the one that represents it.
  uint32_t KeptSpan(uint32_t rank, uint32_t op) const {
    const uint32_t own = timeline_.RepresentativeOf(rank);
    // As a rule the rank has a span for each op.
    const auto [first, last] = timeline_.SpansOf(own);
    if (last - first > op && timeline_.spans[first + op].op == op) return kept_[first + op];
    const auto span =
        std::lower_bound(timeline_.spans.begin(), timeline_.spans.end(), std::pair(own, op),
                         [](const Span& a, const std::pair<uint32_t, uint32_t>& b) {
                           return std::pair(a.rank, a.op) < b;
                         });
    if (span == timeline_.spans.end() || span->rank != own || span->op != op) return kNoSpan;
    return kept_[static_cast<size_t>(span - timeline_.spans.begin())];
  }

  void DescribePipeline() {
    std::optional<PipelineStages> stages;
    if (const auto* workload = std::get_if<Workload>(&scenario_.jobs.front().work))
      stages = StagesOf(*workload);
    run_.pipeline = PipelineRowsOf(run_, stages);
  }

  void DescribeWaits() {
    run_.knows_waits = true;
    Releases releases(schedule_, timeline_);
    for (const Span& span : Spans()) {
      if (!CommunicatorOf(OpOf(span).work).IsSet()) continue;
      const std::optional<OpOfRank> by = releases.Of({span.rank, span.op});
      run_.released_by.push_back(by ? KeptSpan(by->rank, by->op) : kNoSpan);
    }
  }

  void DescribePath() {
    for (const PathSegment& segment : FindPathOfOps(program_, played_.simulation.tasks, ops_))
      run_.path.push_back({KeptSpan(segment.rank, segment.op), segment.begin, segment.end});
  }

  // The kept spans that a flow belongs to; for a collective, those of all its kept ranks.
  void FindKeptSpansOf(uint32_t task, std::vector<uint32_t>* spans) const {
    spans->clear();
    for (const uint32_t span : ops_.Of(TaskId(task)))
      if (kept_[span] != kNoSpan) spans->push_back(kept_[span]);
  }

  void DescribeLinks() {
    const Seconds step = ToSeconds(timeline_.step);
    std::vector<uint32_t> used;
    for (uint32_t i = 0; i < timeline_.links.size(); ++i)
      if (timeline_.links[i].bytes > Bytes(0)) used.push_back(i);
    const auto load = [&](uint32_t link) {
      const LinkRecord& record = timeline_.links[link];
      return record.bytes / (record.capacity * step);
    };
    std::stable_sort(used.begin(), used.end(),
                     [&](uint32_t a, uint32_t b) { return load(a) > load(b); });
    std::vector<uint32_t> position(timeline_.links.size(), kNotDrawn);
    size_t loads = 0;
    for (const uint32_t link : used) {
      loads += timeline_.links[link].loads.size();
      if (run_.links.size() == limits_.links || loads > limits_.loads) break;
      position[link] = static_cast<uint32_t>(run_.links.size());
      run_.links.push_back({timeline_.links[link], {}});
    }
    run_.links_left_out = used.size() - run_.links.size();
    DescribeFlows(position);
    std::vector<uint32_t> record_of_way(scenario_.cluster->way_count(), kNotDrawn);
    for (uint32_t way = 0; way < record_of_way.size() && way < played_.lowered.links.size(); ++way)
      record_of_way[way] = position[played_.lowered.links[way]];
    run_.cluster = memory_.DrawingOf(scenario_.cluster).With(record_of_way);
  }

  // Which spans cross which link, and which link held which span back.
  void DescribeFlows(const std::vector<uint32_t>& position) {
    std::vector<SpanBottleneck> worst(Spans().size());
    std::vector<uint32_t> spans;
    size_t crossings = 0;
    for (uint32_t task = 0; task < program_.tasks.size(); ++task) {
      if (program_.tasks[task].kind != TaskKind::kFlow) continue;
      const uint32_t index = program_.tasks[task].payload;
      FindKeptSpansOf(task, &spans);
      if (spans.empty()) continue;
      const Bottleneck& bottleneck = played_.simulation.bottlenecks[index];
      if (bottleneck.link.IsSet() && position[bottleneck.link.index()] != kNotDrawn) {
        for (const uint32_t span : spans) {
          SpanBottleneck& known = worst[span];
          if (bottleneck.share > known.share)
            known = {span, position[bottleneck.link.index()], bottleneck.share};
        }
      }
      const uint32_t set = program_.flows[index].use_set;
      for (uint32_t use = program_.use_set_begin[set]; use < program_.use_set_begin[set + 1];
           ++use) {
        const uint32_t link = position[program_.uses[use].link.index()];
        if (link == kNotDrawn || crossings == limits_.crossings) continue;
        std::vector<uint32_t>& crossed = run_.links[link].spans;
        if (!crossed.empty() && crossed.back() == spans.front()) continue;  // another channel
        crossed.push_back(spans.front());
        ++crossings;
      }
    }
    for (ReportedLink& link : run_.links) {
      std::sort(link.spans.begin(), link.spans.end());
      link.spans.erase(std::unique(link.spans.begin(), link.spans.end()), link.spans.end());
    }
    for (const SpanBottleneck& one : worst)
      if (one.share > 0) run_.bottlenecks.push_back(one);
  }

  // The first kept rank of each role comes first, then all others.
  void DescribeMemory() {
    std::vector<std::optional<RoleMemory>> memories(schedule_.roles.size());
    std::vector<bool> is_shown(schedule_.roles.size());
    for (const bool first_of_role : {true, false}) {
      for (const ReportedRank& rank : run_.ranks) {
        const uint32_t role = schedule_.role_of_rank[rank.rank];
        if (run_.memory.size() == limits_.memory_curves || is_shown[role] == first_of_role)
          continue;
        if (first_of_role) {
          is_shown[role] = true;
          memories[role].emplace(schedule_.roles[role]);
        } else if (IsCurveThere(rank.rank)) {
          continue;
        }
        run_.memory.push_back(
            CurveOf(schedule_.roles[role], *memories[role], timeline_, rank.rank));
      }
    }
    std::stable_sort(run_.memory.begin(), run_.memory.end(),
                     [](const MemoryCurve& a, const MemoryCurve& b) { return a.rank < b.rank; });
  }
  bool IsCurveThere(uint32_t rank) const {
    return std::any_of(run_.memory.begin(), run_.memory.end(),
                       [&](const MemoryCurve& curve) { return curve.rank == rank; });
  }

  const Scenario& scenario_;
  const PlayedScenario& played_;
  const Schedule& schedule_;
  const Timeline& timeline_;
  const Program& program_;
  const ReportLimits& limits_;
  ReportMemory& memory_;
  const OpsOfTasks ops_;
  std::vector<uint32_t> kept_;  // by span of the timeline
  ReportedRun run_;
};

}  // namespace

ClusterDrawing& ReportMemory::DrawingOf(const std::shared_ptr<const Cluster>& cluster) {
  for (const auto& drawing : drawings_)
    if (&drawing->cluster() == cluster.get()) return *drawing;
  return *drawings_.emplace_back(std::make_unique<ClusterDrawing>(cluster));
}

// All of them fit on a screen, and playing each of them costs nobody time.
constexpr uint32_t kFewRanks = 8;

ReportedRun ReportScenario(const Scenario& asked_for, const std::vector<uint32_t>& asked,
                           ProgressObserver& observer, const ReportLimits& limits,
                           ReportMemory* memory) {
  ReportMemory own;
  if (memory == nullptr) memory = &own;
  std::vector<Job> jobs = Prepare(asked_for, observer);
  Scenario scenario = asked_for;
  if (scenario.cluster->device_count() <= kFewRanks) scenario.lowering.fold = false;
  const std::optional<RouteSpread> routes = SettleRoutes(jobs, &scenario, 0, observer);
  const GroupMemories::Taken groups(memory->groups(), scenario);
  const PlayedScenario played = PlayJobs(scenario, std::move(jobs),
                                         {.record_link_loads = true,
                                          .record_bottlenecks = true,
                                          .record_tasks = true,
                                          .watch_packets = true,
                                          .observer = &observer},
                                         groups.get());
  observer.Begin("collecting what the page shows", "", 0);
  return Reporter(scenario, played, limits, memory).Run(asked);
}

}  // namespace rehearse

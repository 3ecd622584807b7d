#include "sim/engine/program.h"

#include <algorithm>
#include <cmath>
#include <tuple>
#include <utility>

#include "sim/base/error.h"

namespace rehearse {

void ProgramBuilder::Reserve(size_t tasks, size_t edges, size_t spans) {
  program_.tasks.reserve(tasks);
  program_.spans.reserve(spans);
  edges_.reserve(edges);
}

LinkId ProgramBuilder::AddLink(ProgramLink link) {
  const double capacity = link.capacity.value();
  CHECK_GT(capacity, 0.0);
  CHECK(std::isfinite(capacity));
  program_.links.push_back(std::move(link));
  return LinkId(static_cast<uint32_t>(program_.links.size() - 1));
}

uint32_t ProgramBuilder::AddUseSet(const std::vector<LinkUse>& uses) {
  std::vector<LinkId>& links = scratch_links_;
  links.clear();
  for (const LinkUse& use : uses) {
    CHECK_LT(use.link.index(), program_.links.size());
    CHECK_GE(use.multiplicity, 1u);
    links.push_back(use.link);
  }
  std::sort(links.begin(), links.end());
  CHECK(std::adjacent_find(links.begin(), links.end()) == links.end());

  if (program_.use_set_begin.empty()) program_.use_set_begin.push_back(0);
  program_.uses.insert(program_.uses.end(), uses.begin(), uses.end());
  program_.use_set_begin.push_back(static_cast<uint32_t>(program_.uses.size()));
  return static_cast<uint32_t>(program_.use_set_begin.size() - 2);
}

TaskId ProgramBuilder::AddTask(TaskKind kind, size_t payload) {
  program_.tasks.push_back({kind, static_cast<uint32_t>(payload)});
  return TaskId(static_cast<uint32_t>(program_.tasks.size() - 1));
}

TaskId ProgramBuilder::AddJoin() { return AddTask(TaskKind::kJoin, 0); }

TaskId ProgramBuilder::AddDelay(Time duration) {
  CHECK_GE(duration.picoseconds(), 0);
  program_.delays.push_back(duration);
  return AddTask(TaskKind::kDelay, program_.delays.size() - 1);
}

uint32_t ProgramBuilder::AddSeries(const std::vector<Time>& delays,
                                   const std::vector<DelayOwner>& owners) {
  CHECK_GE(delays.size(), 2u);
  CHECK(owners.empty() || owners.size() == delays.size());
  Series series;
  series.first = static_cast<uint32_t>(program_.delays.size());
  series.last = series.first + static_cast<uint32_t>(delays.size() - 1);
  for (const Time delay : delays) {
    CHECK_GE(delay.picoseconds(), 0);
    series.duration += delay;
  }
  program_.delays.insert(program_.delays.end(), delays.begin(), delays.end());
  if (!owners.empty()) program_.delay_owners.resize(series.first);
  for (const DelayOwner& owner : owners) {
    CHECK_EQ(owner.processor, owners.front().processor);
    CheckOwner(owner);
    program_.delay_owners.push_back({Program::kNone, owner.slowdown});
  }
  if (!owners.empty()) series.processor = owners.front().processor;
  program_.series.push_back(series);
  return static_cast<uint32_t>(program_.series.size() - 1);
}

uint32_t ProgramBuilder::AddSeriesLike(uint32_t series, uint32_t processor) {
  CHECK_LT(series, program_.series.size());
  CHECK(processor == Program::kNone || processor < program_.processors.size());
  Series like = program_.series[series];
  like.processor = processor;
  program_.series.push_back(like);
  return static_cast<uint32_t>(program_.series.size() - 1);
}

TaskId ProgramBuilder::AddTaskOfSeries(uint32_t series) {
  CHECK_LT(series, program_.series.size());
  return AddTask(TaskKind::kSeries, series);
}

TaskId ProgramBuilder::AddFlow(const Flow& flow) {
  CHECK_GE(flow.bytes, 0.0);
  CHECK(std::isfinite(flow.bytes));
  CHECK_GE(flow.latency.picoseconds(), 0);
  CHECK_GE(flow.steps, 1u);
  CHECK_LT(flow.use_set + size_t{1}, program_.use_set_begin.size());
  program_.flows.push_back(flow);
  return AddTask(TaskKind::kFlow, program_.flows.size() - 1);
}

Flow& ProgramBuilder::FlowOf(TaskId task) {
  CHECK_LT(task.index(), program_.tasks.size());
  CHECK(program_.tasks[task.index()].kind == TaskKind::kFlow);
  return program_.flows[program_.tasks[task.index()].payload];
}

void ProgramBuilder::Chain(TaskId upstream, TaskId downstream) {
  Flow& sender = FlowOf(upstream);
  Flow& receiver = FlowOf(downstream);
  CHECK_EQ(sender.steps, receiver.steps);
  CHECK(!sender.downstream.IsSet());
  CHECK(!receiver.upstream.IsSet());
  sender.downstream = downstream;
  receiver.upstream = upstream;
}

void ProgramBuilder::AddEdge(TaskId before, TaskId after) {
  CHECK_LT(before.index(), program_.tasks.size());
  CHECK_LT(after.index(), program_.tasks.size());
  edges_.emplace_back(before, after);
}

void ProgramBuilder::AddSpan(const SpanSpec& span) { program_.spans.push_back(span); }

uint32_t ProgramBuilder::AddHost(double cores) {
  CHECK_GT(cores, 0.0);
  program_.host_cores.push_back(cores);
  return static_cast<uint32_t>(program_.host_cores.size() - 1);
}

uint32_t ProgramBuilder::AddProcessor(const Processor& processor) {
  CHECK(processor.host == Program::kNone || processor.host < program_.host_cores.size());
  CHECK_GE(processor.slowdown, 0.0);
  CHECK(std::isfinite(processor.slowdown));
  CHECK_GE(processor.copies, 1u);
  program_.processors.push_back(processor);
  return static_cast<uint32_t>(program_.processors.size() - 1);
}

uint32_t ProgramBuilder::AddPartySet(const std::vector<uint32_t>& processors) {
  for (const uint32_t processor : processors) CHECK_LT(processor, program_.processors.size());
  if (program_.party_set_begin.empty()) program_.party_set_begin.push_back(0);
  program_.parties.insert(program_.parties.end(), processors.begin(), processors.end());
  program_.party_set_begin.push_back(static_cast<uint32_t>(program_.parties.size()));
  return static_cast<uint32_t>(program_.party_set_begin.size() - 2);
}

void ProgramBuilder::SetOwner(TaskId delay, const DelayOwner& owner) {
  CHECK_LT(delay.index(), program_.tasks.size());
  const Task& task = program_.tasks[delay.index()];
  CHECK(task.kind == TaskKind::kDelay);
  CheckOwner(owner);
  program_.delay_owners.resize(program_.delays.size());
  program_.delay_owners[task.payload] = owner;
}

void ProgramBuilder::CheckOwner(const DelayOwner& owner) const {
  CHECK_LT(owner.processor, program_.processors.size());
  CHECK_GE(owner.slowdown, 0.0);
  CHECK(std::isfinite(owner.slowdown));
}

void ProgramBuilder::SetParties(TaskId flow, uint32_t party_set) {
  FlowOf(flow);
  CHECK_LT(party_set + size_t{1}, program_.party_set_begin.size());
  program_.party_sets.resize(program_.flows.size(), Program::kNone);
  program_.party_sets[program_.tasks[flow.index()].payload] = party_set;
}

void ProgramBuilder::AddLinkChange(const LinkChange& change) {
  CHECK_LT(change.link.index(), program_.links.size());
  CHECK_GE(change.time.picoseconds(), 0);
  CHECK_GE(change.factor, 0.0);
  CHECK(std::isfinite(change.factor));
  program_.link_changes.push_back(change);
}

void ProgramBuilder::SetAlternative(TaskId flow, uint32_t use_set) {
  CHECK(!IsEmptyUseSet(FlowOf(flow).use_set));
  CHECK_LT(use_set + size_t{1}, program_.use_set_begin.size());
  CHECK(!IsEmptyUseSet(use_set));
  program_.alternatives.resize(program_.flows.size(), Program::kNone);
  program_.alternatives[program_.tasks[flow.index()].payload] = use_set;
}

void ProgramBuilder::SetCopies(std::vector<CopiedTasks> copies) {
  uint32_t task = 0;
  uint32_t flow = 0;
  for (const CopiedTasks& of_rank : copies) {
    CHECK(of_rank.tasks.begin == task && of_rank.flows.begin == flow);
    CHECK(of_rank.tasks.size > 0 && of_rank.count > 0);
    CHECK(of_rank.tasks.begin <= of_rank.tasks.first && of_rank.TaskEnd() <= of_rank.tasks.end);
    CHECK(of_rank.flows.begin <= of_rank.flows.first && of_rank.FlowEnd() <= of_rank.flows.end);
    task = of_rank.tasks.end;
    flow = of_rank.flows.end;
  }
  CHECK(copies.empty() || (task == task_count() && flow == flow_count()));
  program_.copies = std::move(copies);
}

bool ProgramBuilder::IsEmptyUseSet(uint32_t use_set) const {
  return program_.use_set_begin[use_set] == program_.use_set_begin[use_set + 1];
}

Program ProgramBuilder::Build() {
  CompleteChains();
  GroupEdgesByPredecessor();

  const size_t task_count = program_.tasks.size();
  for (const SpanSpec& span : program_.spans) {
    CHECK(!span.ready.IsSet() || span.ready.index() < task_count);
    CHECK_LT(span.begin.index(), task_count);
    CHECK_LT(span.end.index(), task_count);
  }
  const auto is_before = [](const SpanSpec& a, const SpanSpec& b) {
    return std::tie(a.rank, a.op) < std::tie(b.rank, b.op);
  };
  if (!std::is_sorted(program_.spans.begin(), program_.spans.end(), is_before)) {
    std::stable_sort(program_.spans.begin(), program_.spans.end(), is_before);
  }
  if (program_.use_set_begin.empty()) program_.use_set_begin.push_back(0);

  if (!program_.delay_owners.empty()) program_.delay_owners.resize(program_.delays.size());
  if (!program_.party_sets.empty()) {
    program_.party_sets.resize(program_.flows.size(), Program::kNone);
  }
  if (!program_.alternatives.empty()) {
    program_.alternatives.resize(program_.flows.size(), Program::kNone);
  }
  std::stable_sort(program_.link_changes.begin(), program_.link_changes.end(),
                   [](const LinkChange& a, const LinkChange& b) { return a.time < b.time; });

  return std::exchange(program_, Program());
}

// A flow may come with one of its neighbours named; afterwards both directions are.
void ProgramBuilder::CompleteChains() {
  for (uint32_t i = 0; i < program_.tasks.size(); ++i) {
    if (program_.tasks[i].kind != TaskKind::kFlow) continue;
    const TaskId task(i);
    Flow& flow = FlowOf(task);
    if (flow.upstream.IsSet()) {
      Flow& sender = FlowOf(flow.upstream);
      CHECK_EQ(sender.steps, flow.steps);
      CHECK(!sender.downstream.IsSet() || sender.downstream == task);
      sender.downstream = task;
    }
    if (flow.downstream.IsSet()) {
      Flow& receiver = FlowOf(flow.downstream);
      CHECK_EQ(receiver.steps, flow.steps);
      CHECK(!receiver.upstream.IsSet() || receiver.upstream == task);
      receiver.upstream = task;
    }
  }
}

// Fills successor_begin, successors (in the order of the AddEdge calls) and predecessor_count.
void ProgramBuilder::GroupEdgesByPredecessor() {
  const size_t task_count = program_.tasks.size();
  program_.predecessor_count.assign(task_count, 0);
  program_.successor_begin.assign(task_count + 1, 0);
  for (const auto& [before, after] : edges_) {
    ++program_.successor_begin[before.index() + 1];
    ++program_.predecessor_count[after.index()];
  }
  for (size_t i = 0; i < task_count; ++i) {
    program_.successor_begin[i + 1] += program_.successor_begin[i];
  }
  program_.successors.resize(edges_.size());
  std::vector<uint32_t> next(program_.successor_begin.begin(), program_.successor_begin.end() - 1);
  for (const auto& [before, after] : edges_) {
    program_.successors[next[before.index()]++] = after;
  }
  edges_ = {};
}

}  // namespace rehearse

#include "collectives/lowering/plan_flows.h"

#include <algorithm>
#include <tuple>
#include <utility>

#include "sim/base/clock.h"
#include "sim/base/error.h"

namespace rehearse {
namespace {

// ---- Messages -----------------------------------------------------------------------------------

// What a rank or switch must do in one part: its own transfers at the representative site.
struct Incident {
  uint32_t transfer_class = 0;
  uint32_t step = 0;
  uint32_t steps = 1;
};

class MessageFlows {
 public:
  MessageFlows(const Site& site, const GroupPlan& plan, Bytes bytes, const FlowSink& sink,
               Meeting* meeting)
      : site_(site),
        plan_(plan),
        wire_(bytes / plan.choice.bandwidth_share),
        sink_(sink),
        meeting_(meeting) {
    if (plan.IsPipeline()) pieces_ = plan.pipeline.BestPieces(wire_);
  }

  void Run() {
    AddFlows();
    CollectEnds();
    for (auto& [end, own] : ends_) AddBarriers(&own);
    for (const auto& [transfer_class, flows] : flows_) Chain(transfer_class, flows);
    FinishRanks();
  }

 private:
  // Classes of ranks first, then of switches.
  uint32_t ClassOfEnd(uint32_t end) const {
    const uint32_t ranks = static_cast<uint32_t>(sink_.folding.ranks.of.size());
    return end < ranks ? sink_.folding.ranks.of[end]
                       : sink_.folding.ranks.size() + sink_.folding.switches.of[end - ranks];
  }
  bool IsRank(uint32_t end_class) const { return end_class < sink_.folding.ranks.size(); }

  const Transfer& Representative(uint32_t transfer_class) const {
    return sink_.table.transfers[sink_.folding.transfers.representative[transfer_class]];
  }
  uint32_t StepsOf(const Transfer& transfer) const {
    return plan_.IsPipeline() ? pieces_ : transfer.steps;
  }

  void AddFlows() {
    for (const uint32_t transfer_class : ClassesAt(site_, sink_.folding)) {
      const Transfer& transfer = Representative(transfer_class);
      const uint32_t steps = StepsOf(transfer);
      Flow flow;
      flow.bytes = wire_.value() * transfer.share;
      if (plan_.IsPipeline()) flow.bytes /= steps;
      flow.latency = ToTime(transfer.step_latency);
      std::vector<uint32_t> ranks;
      for (const uint32_t end : {transfer.from, transfer.to}) {
        if (end < sink_.folding.ranks.of.size()) ranks.push_back(end);
      }
      std::vector<TaskId>& flows = flows_[transfer_class];
      for (uint32_t i = 0; i < steps; ++i)
        flows.push_back(sink_.add_between(transfer_class, flow, ranks));
    }
  }

  // The transfers of the first rank of each class that this site has.
  void CollectEnds() {
    std::map<uint32_t, uint32_t> first;  // class -> rank or switch
    for (uint32_t i = site_.transfer_begin; i < site_.transfer_end; ++i) {
      const Transfer& transfer = sink_.table.transfers[i];
      for (const uint32_t end : {transfer.from, transfer.to}) {
        const uint32_t end_class = ClassOfEnd(end);
        if (first.emplace(end_class, end).first->second != end) continue;
        ends_[{end_class, transfer.part}].transfers.push_back(
            {sink_.folding.transfers.of[i], transfer.step, StepsOf(transfer)});
      }
    }
  }

  struct End {
    std::vector<Incident> transfers;
    // By step, in order: when it and all before are done.
    std::vector<std::pair<uint32_t, TaskId>> done;
  };

  // One join for each step in which the rank has messages.
  void AddBarriers(End* own) {
    // Step, class, which of its steps.
    std::vector<std::tuple<uint32_t, uint32_t, uint32_t>> messages;
    for (const Incident& incident : own->transfers) {
      for (uint32_t i = 0; i < incident.steps; ++i) {
        messages.emplace_back(incident.step + i, incident.transfer_class, i);
      }
    }
    std::sort(messages.begin(), messages.end());
    messages.erase(std::unique(messages.begin(), messages.end()), messages.end());
    for (size_t begin = 0; begin < messages.size();) {
      const uint32_t step = std::get<0>(messages[begin]);
      std::vector<TaskId> tasks;
      for (; begin < messages.size() && std::get<0>(messages[begin]) == step; ++begin) {
        tasks.push_back(flows_.at(std::get<1>(messages[begin]))[std::get<2>(messages[begin])]);
      }
      TaskId done = tasks.front();
      if (tasks.size() > 1) {
        done = sink_.builder.AddJoin();
        for (const TaskId task : tasks) sink_.builder.AddEdge(task, done);
      }
      own->done.emplace_back(step, done);
    }
  }

  // When the rank (or switch) is done with all steps before this one.
  TaskId Before(uint32_t end_class, uint32_t part, uint32_t step) const {
    const End& end = ends_.at({end_class, part});
    const auto after = std::lower_bound(end.done.begin(), end.done.end(), step,
                                        [](const std::pair<uint32_t, TaskId>& done,
                                           uint32_t wanted) { return done.first < wanted; });
    return after == end.done.begin() ? meeting_->move : (after - 1)->second;
  }

  // Puts every message after the earlier steps of both its ends.
  void Chain(uint32_t transfer_class, const std::vector<TaskId>& flows) {
    const Transfer& transfer = Representative(transfer_class);
    for (uint32_t i = 0; i < flows.size(); ++i) {
      const TaskId sender = Before(ClassOfEnd(transfer.from), transfer.part, transfer.step + i);
      const TaskId receiver = Before(ClassOfEnd(transfer.to), transfer.part, transfer.step + i);
      sink_.builder.AddEdge(sender, flows[i]);
      if (receiver != sender) sink_.builder.AddEdge(receiver, flows[i]);
    }
  }

  void FinishRanks() {
    for (const auto& [key, own] : ends_) {
      if (!IsRank(key.first)) continue;
      const auto [end, is_new] = meeting_->ends.emplace(key.first, TaskId());
      if (is_new) end->second = sink_.builder.AddJoin();
      sink_.builder.AddEdge(own.done.back().second, end->second);
    }
    // Ranks that neither send nor receive (all of their sizes are zero) are done at once.
    meeting_->end = meeting_->move;
  }

  const Site& site_;
  const GroupPlan& plan_;
  const Bytes wire_;
  const FlowSink& sink_;
  Meeting* meeting_;
  uint32_t pieces_ = 1;                                // for pipelines
  std::map<uint32_t, std::vector<TaskId>> flows_;      // by class of transfers
  std::map<std::pair<uint32_t, uint32_t>, End> ends_;  // by (class of ranks or switches, part)
};

}  // namespace

std::vector<uint32_t> ClassesAt(const Site& site, const Folding& folding) {
  std::vector<uint32_t> classes;
  for (uint32_t i = site.transfer_begin; i < site.transfer_end; ++i) {
    classes.push_back(folding.transfers.of[i]);
  }
  std::sort(classes.begin(), classes.end());
  classes.erase(std::unique(classes.begin(), classes.end()), classes.end());
  return classes;
}

void AddRoundFlows(const Site& site, const std::vector<uint32_t>& classes, const GroupPlan& plan,
                   Bytes bytes, const FlowSink& sink, Meeting* meeting) {
  const Bytes wire = bytes / plan.choice.bandwidth_share;
  meeting->end = sink.builder.AddJoin();
  std::map<uint32_t, TaskId> tasks;  // by class
  for (const uint32_t transfer_class : classes) {
    const Transfer& transfer =
        sink.table.transfers[sink.folding.transfers.representative[transfer_class]];
    Flow flow;
    flow.bytes = transfer.steps * wire.value() * transfer.share;
    flow.latency = ToTime(transfer.steps * transfer.step_latency);
    if (plan.IsPipeline()) {  // how long it waits beyond moving its bytes with all hops at once
      flow.latency =
          ToTime(std::max(Seconds(0), plan.time - Bytes(plan.ways * flow.bytes) /
                                                      plan.paces[transfer.part][0].rate));
    }
    tasks.emplace(transfer_class, sink.add(transfer_class, flow, site));
  }
  if (tasks.empty()) sink.builder.AddEdge(meeting->move, meeting->end);
  std::map<std::vector<uint32_t>, TaskId> rounds;  // classes of a round -> when all of it is done
  for (const auto& [transfer_class, task] : tasks) {
    const Transfer& transfer =
        sink.table.transfers[sink.folding.transfers.representative[transfer_class]];
    sink.builder.AddEdge(task, meeting->end);
    if (transfer.after_begin == transfer.after_end) {
      sink.builder.AddEdge(meeting->move, task);
      continue;
    }
    std::vector<uint32_t> before(sink.folding.transfers.of.begin() + transfer.after_begin,
                                 sink.folding.transfers.of.begin() + transfer.after_end);
    std::sort(before.begin(), before.end());
    before.erase(std::unique(before.begin(), before.end()), before.end());
    const auto [round, is_new] = rounds.emplace(before, TaskId());
    if (is_new) {
      round->second = before.size() == 1 ? tasks.at(before[0]) : sink.builder.AddJoin();
      for (const uint32_t own : before) {
        if (before.size() > 1) sink.builder.AddEdge(tasks.at(own), round->second);
      }
    }
    sink.builder.AddEdge(round->second, task);
  }
}

void AddMessageFlows(const Site& site, const GroupPlan& plan, Bytes bytes, const FlowSink& sink,
                     Meeting* meeting) {
  MessageFlows(site, plan, bytes, sink, meeting).Run();
}

}  // namespace rehearse

#include "collectives/lower.h"

#include <map>
#include <optional>
#include <tuple>

#include "collectives/ring.h"
#include "sim/error.h"

namespace rehearse {
namespace {

// A group's channels, and the use sets that its flows share.
struct GroupPlan {
  std::vector<Channel> channels;
  std::vector<uint32_t> ring_sets;               // fluid: one a channel
  std::vector<std::vector<uint32_t>> edge_sets;  // step: [channel][edge]
};

// One meeting of the ranks of a group, or of a sender and its receiver.
struct Meeting {
  TaskId begin;
  TaskId end;                       // everybody's, unless `ends` has one each
  std::map<uint32_t, TaskId> ends;  // rank -> end (step fidelity)
};

class Lowering {
 public:
  Lowering(const Schedule& schedule, Router& router, const LowerOptions& options)
      : schedule_(schedule),
        router_(router),
        cluster_(router.cluster()),
        finder_(router),
        options_(options),
        plans_(schedule.communicators.size()),
        collectives_(schedule.communicators.size()) {}

  Program Run() {
    if (schedule_.ranks() != cluster_.device_count()) {
      throw Error(fmt::format("the schedule has {} ranks, but cluster \"{}\" has {} devices",
                              schedule_.ranks(), cluster_.name(), cluster_.device_count()));
    }
    for (uint32_t i = 0; i < cluster_.link_count(); ++i) {
      const ClusterLink& link = cluster_.Link(i);
      builder_.AddLink({cluster_.LinkName(i), Name(link.kind), link.Capacity()});
    }
    for (size_t i = 0; i < schedule_.communicators.size(); ++i) {
      plans_[i].resize(schedule_.communicators[i].group_count());
      collectives_[i].resize(schedule_.communicators[i].group_count());
    }
    for (uint32_t rank = 0; rank < schedule_.ranks(); ++rank) LowerRank(rank);
    return builder_.Build();
  }

 private:
  // What an op of the current rank waits at and what its successors wait for.
  struct Ends {
    TaskId first;  // where predecessors lead to
    TaskId begin;
    TaskId last;  // where successors start from
    bool meets = false;
  };

  void LowerRank(uint32_t rank) {
    const Role& role = schedule_.roles[schedule_.role_of_rank[rank]];
    std::vector<Ends> ends(role.ops.size());
    std::vector<std::optional<uint32_t>> last_on_stream(role.streams.size());
    std::vector<uint32_t> posted(schedule_.communicators.size(), 0);
    std::vector<uint32_t> before;
    for (uint32_t op = 0; op < role.ops.size(); ++op) {
      ends[op] = LowerOp(rank, role.ops[op], posted);
      before.clear();
      std::optional<uint32_t>& previous = last_on_stream[role.ops[op].stream.index()];
      if (previous) before.push_back(*previous);
      for (const OpId after : role.ops[op].after) {
        if (!previous || after.index() != *previous) before.push_back(after.index());
      }
      for (const uint32_t earlier : before) builder_.AddEdge(ends[earlier].last, ends[op].first);
      previous = op;
      builder_.AddSpan(
          {rank, op, ends[op].meets ? ends[op].first : TaskId(), ends[op].begin, ends[op].last});
    }
  }

  Ends LowerOp(uint32_t rank, const Op& op, std::vector<uint32_t>& posted) {
    if (const auto* compute = std::get_if<Compute>(&op.work)) {
      const TaskId task = builder_.AddDelay(ComputeDuration(rank, op, *compute));
      return {task, task, task, false};
    }
    const CommunicatorId id = CommunicatorOf(op.work);
    const Communicator& communicator = schedule_.communicators[id.index()];
    if (communicator.size() == 1) {
      const TaskId task = builder_.AddJoin();
      return {task, task, task, false};
    }
    const std::optional<Communicator::Position> position = communicator.PositionOf(rank);
    CHECK(position.has_value());
    const TaskId arrival = builder_.AddJoin();
    Meeting* meeting = nullptr;
    if (const auto* collective = std::get_if<Collective>(&op.work)) {
      std::vector<Meeting>& meetings = collectives_[id.index()][position->group];
      const uint32_t k = posted[id.index()]++;
      if (k == meetings.size()) meetings.push_back(LowerCollective(*collective, position->group));
      meeting = &meetings[k];
    } else {
      meeting = &PointToPoint(op.work, id, *position);
    }
    builder_.AddEdge(arrival, meeting->begin);
    const auto own_end = meeting->ends.find(rank);
    return {arrival, meeting->begin,
            own_end == meeting->ends.end() ? meeting->end : own_end->second, true};
  }

  // Replicas share roles and devices, so each (role's op, device kind) is worked out once.
  Time ComputeDuration(uint32_t rank, const Op& op, const Compute& compute) {
    const auto key = std::make_pair(static_cast<const void*>(&op), &cluster_.DeviceOf(rank));
    const auto it = durations_.find(key);
    if (it != durations_.end()) return it->second;
    const Time duration =
        ToTime(ComputeTime(cluster_.DeviceOf(rank), compute, op.tag.phase == Phase::kBackward));
    durations_.emplace(key, duration);
    return duration;
  }

  GroupPlan& PlanOf(CommunicatorId id, uint32_t group) {
    GroupPlan& plan = plans_[id.index()][group];
    if (!plan.channels.empty()) return plan;
    const Communicator& communicator = schedule_.communicators[id.index()];
    std::vector<uint32_t> ranks(communicator.size());
    for (uint32_t i = 0; i < ranks.size(); ++i) ranks[i] = communicator.Rank(group, i);
    plan.channels = finder_.Find(ranks, options_.channels);
    for (const Channel& channel : plan.channels) {
      if (options_.fidelity == Fidelity::kFluid) {
        plan.ring_sets.push_back(builder_.AddUseSet(channel.uses));
      } else if (options_.fidelity == Fidelity::kStep) {
        plan.edge_sets.emplace_back();
        for (const Route* route : channel.edges) plan.edge_sets.back().push_back(UseSetOf(*route));
      }
    }
    return plan;
  }

  uint32_t UseSetOf(const Route& route) {
    const auto [it, is_new] = route_sets_.emplace(&route, 0);
    if (is_new) {
      std::vector<LinkUse> uses;
      for (const uint32_t link : route.links) uses.push_back({LinkId(link), 1});
      it->second = builder_.AddUseSet(uses);
    }
    return it->second;
  }

  Meeting LowerCollective(const Collective& collective, uint32_t group) {
    if (collective.algorithm != "ring") {
      throw Error(fmt::format("unknown algorithm \"{}\" for {}, expected \"ring\"",
                              collective.algorithm, Name(collective.kind)));
    }
    const GroupPlan& plan = PlanOf(collective.communicator, group);
    const uint32_t ranks = schedule_.communicators[collective.communicator.index()].size();
    const uint32_t steps = RingSteps(collective.kind, ranks);
    const double step_bytes = collective.bytes.value() / ranks;  // of all channels together
    Meeting meeting;
    meeting.begin = builder_.AddJoin();
    switch (options_.fidelity) {
      case Fidelity::kFormula: {
        Seconds longest;
        for (const Channel& channel : plan.channels) {
          longest =
              std::max(longest, RingTime(collective.kind, ranks, collective.bytes * channel.share,
                                         channel.rate, channel.step_latency));
        }
        meeting.end = builder_.AddDelay(ToTime(longest));
        builder_.AddEdge(meeting.begin, meeting.end);
        break;
      }
      case Fidelity::kFluid:
        meeting.end = builder_.AddJoin();
        for (size_t i = 0; i < plan.channels.size(); ++i) {
          const Channel& channel = plan.channels[i];
          Flow flow;
          flow.bytes = steps * step_bytes * channel.share;
          flow.latency = ToTime(steps * channel.step_latency);
          flow.use_set = plan.ring_sets[i];
          const TaskId task = builder_.AddFlow(flow);
          builder_.AddEdge(meeting.begin, task);
          builder_.AddEdge(task, meeting.end);
        }
        break;
      case Fidelity::kStep:
        LowerSteps(plan, steps, step_bytes, meeting);
        break;
    }
    return meeting;
  }

  void LowerSteps(const GroupPlan& plan, uint32_t steps, double step_bytes, Meeting& meeting) {
    for (const uint32_t rank : plan.channels.front().ranks) {
      meeting.ends.emplace(rank, builder_.AddJoin());
    }
    for (size_t i = 0; i < plan.channels.size(); ++i) {
      const Channel& channel = plan.channels[i];
      const size_t size = channel.ranks.size();
      std::vector<TaskId> edges;
      for (size_t edge = 0; edge < size; ++edge) {
        Flow flow;
        flow.bytes = step_bytes * channel.share;
        flow.latency = ToTime(channel.edges[edge]->latency + cluster_.step_overhead());
        flow.steps = steps;
        flow.use_set = plan.edge_sets[i][edge];
        edges.push_back(builder_.AddFlow(flow));
        builder_.AddEdge(meeting.begin, edges.back());
      }
      for (size_t edge = 0; edge < size; ++edge) {
        const size_t next = (edge + 1) % size;
        builder_.Chain(edges[edge], edges[next]);
        builder_.AddEdge(edges[edge], meeting.ends.at(channel.ranks[edge]));
        builder_.AddEdge(edges[edge], meeting.ends.at(channel.ranks[next]));
      }
    }
  }

  // The k-th send from a to b meets the k-th receive at b from a; whichever rank comes first makes it.
  Meeting& PointToPoint(const Work& work, CommunicatorId id, Communicator::Position position) {
    const auto* send = std::get_if<Send>(&work);
    const uint32_t peer = send ? send->peer : std::get<Receive>(work).peer;
    const uint32_t source = send ? position.member : peer;
    const uint32_t target = send ? peer : position.member;
    PairQueue& queue = pairs_[{id.index(), position.group, source, target}];
    const uint32_t k = send ? queue.sent++ : queue.received++;
    if (k < queue.meetings.size()) return queue.meetings[k];

    const Communicator& communicator = schedule_.communicators[id.index()];
    const Route& route = router_.Between(communicator.Rank(position.group, source),
                                         communicator.Rank(position.group, target));
    const Bytes bytes = CommunicationBytes(work);
    const Seconds latency = route.latency + cluster_.step_overhead();
    Meeting meeting;
    meeting.begin = builder_.AddJoin();
    if (options_.fidelity == Fidelity::kFormula) {
      meeting.end = builder_.AddDelay(ToTime(latency + bytes / route.bandwidth));
    } else {
      Flow flow;
      flow.bytes = bytes.value();
      flow.latency = ToTime(latency);
      flow.use_set = UseSetOf(route);
      meeting.end = builder_.AddFlow(flow);
    }
    builder_.AddEdge(meeting.begin, meeting.end);
    queue.meetings.push_back(std::move(meeting));
    return queue.meetings.back();
  }

  struct PairQueue {
    uint32_t sent = 0;
    uint32_t received = 0;
    std::vector<Meeting> meetings;
  };

  const Schedule& schedule_;
  Router& router_;
  const Cluster& cluster_;
  ChannelFinder finder_;
  const LowerOptions options_;
  ProgramBuilder builder_;
  std::map<std::pair<const void*, const DeviceSpec*>, Time> durations_;
  std::map<const Route*, uint32_t> route_sets_;
  std::vector<std::vector<GroupPlan>> plans_;                   // [communicator][group]
  std::vector<std::vector<std::vector<Meeting>>> collectives_;  // [communicator][group][k]
  std::map<std::tuple<uint32_t, uint32_t, uint32_t, uint32_t>, PairQueue> pairs_;
};

}  // namespace

const char* Name(Fidelity fidelity) {
  switch (fidelity) {
    case Fidelity::kFormula:
      return "formula";
    case Fidelity::kFluid:
      return "fluid";
    case Fidelity::kStep:
      return "step";
  }
  return "?";
}

Program Lower(const Schedule& schedule, Router& router, const LowerOptions& options) {
  return Lowering(schedule, router, options).Run();
}

}  // namespace rehearse

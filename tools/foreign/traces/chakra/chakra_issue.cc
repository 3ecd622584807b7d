#include "tools/foreign/traces/chakra/chakra_issue.h"

#include <algorithm>
#include <functional>
#include <queue>
#include <tuple>
#include <utility>

namespace rehearse {
namespace {

// The nodes that wait for each node, one list after the other.
struct NodeFollowers {
  std::vector<uint32_t> begins;
  std::vector<uint32_t> followers;

  explicit NodeFollowers(const NodeOrder& order) : begins(order.begins.size(), 0) {
    for (const uint32_t one : order.before) ++begins[size_t{one} + 1];
    for (size_t i = 1; i < begins.size(); ++i) begins[i] += begins[i - 1];
    followers.resize(order.before.size());
    std::vector<uint32_t> next(begins.begin(), begins.end() - 1);
    for (uint32_t node = 0; node + 1 < begins.size(); ++node) {
      for (const uint32_t one : order.Before(node)) followers[next[one]++] = node;
    }
  }
  std::span<const uint32_t> Of(uint32_t node) const {
    return {followers.data() + begins[node], begins[size_t{node} + 1] - begins[node]};
  }
};

using Numbered = std::pair<uint64_t, uint32_t>;  // a number, and the node that has it
using NodeQueue = std::priority_queue<Numbered, std::vector<Numbered>, std::greater<>>;

struct IssueEngine {
  bool is_busy = false;
  NodeQueue ready;
  // Of one that keeps its order: its nodes, and the next of them.
  std::vector<uint32_t> in_order;
  size_t next = 0;
};

struct IssuingRank {
  NodeFollowers followers;
  std::vector<uint32_t> waits_for;
  std::vector<bool> is_ready;
  std::vector<IssueEngine> engines;
  std::vector<std::vector<uint32_t>> issued;  // by engine
};

struct IssuePlace {
  uint32_t trace = 0;
  uint32_t node = 0;
};

class Issuer {
 public:
  Issuer(const ChakraTraces& traces, const std::vector<IssueTrace>& issues,
         const std::vector<uint32_t>& meetings, uint32_t messages,
         const std::vector<NodeOrder>& orders)
      : traces_(traces),
        issues_(issues),
        expected_(meetings),
        arrived_(meetings.size()),
        is_there_(messages, false),
        receivers_(messages) {
    for (uint32_t trace = 0; trace < issues.size(); ++trace) {
      const NodeOrder& order = orders[trace];
      IssuingRank& rank = ranks_.emplace_back(IssuingRank{NodeFollowers(order), {}, {}, {}, {}});
      rank.engines.resize(issues[trace].keeps_order.size());
      rank.issued.resize(rank.engines.size());
      rank.is_ready.resize(order.order.size());
      for (uint32_t node = 0; node < order.order.size(); ++node)
        rank.waits_for.push_back(static_cast<uint32_t>(order.Before(node).size()));
      for (const uint32_t node : order.order) {
        const uint32_t engine = issues[trace].nodes[node].engine;
        if (issues[trace].keeps_order[engine]) rank.engines[engine].in_order.push_back(node);
      }
    }
  }

  // By trace and engine, the nodes as they were issued. Some never are where ranks do not agree:
  // they come last, on engines that keep their order.
  std::vector<std::vector<std::vector<uint32_t>>> Run() {
    for (uint32_t trace = 0; trace < ranks_.size(); ++trace) {
      for (uint32_t node = 0; node < ranks_[trace].waits_for.size(); ++node)
        if (ranks_[trace].waits_for[node] == 0) BecomeReady({trace, node});
    }
    // All that ends at one time has ended before anything is issued.
    while (!ends_.empty()) {
      now_ = std::get<0>(ends_.top());
      std::vector<IssuePlace> ended;
      while (!ends_.empty() && std::get<0>(ends_.top()) == now_) {
        ended.push_back({std::get<2>(ends_.top()), std::get<3>(ends_.top())});
        ends_.pop();
      }
      for (const IssuePlace& place : ended) End(place);
      Issue();
    }
    std::vector<std::vector<std::vector<uint32_t>>> issued;
    for (IssuingRank& rank : ranks_) {
      for (size_t i = 0; i < rank.engines.size(); ++i) {
        const std::vector<uint32_t>& all = rank.engines[i].in_order;
        const auto left = all.begin() + static_cast<std::ptrdiff_t>(rank.engines[i].next);
        rank.issued[i].insert(rank.issued[i].end(), left, all.end());
      }
      issued.push_back(std::move(rank.issued));
    }
    return issued;
  }

 private:
  const IssueNode& At(IssuePlace place) const { return issues_[place.trace].nodes[place.node]; }

  void BecomeReady(IssuePlace place) {
    IssuingRank& rank = ranks_[place.trace];
    const uint32_t engine = At(place).engine;
    rank.is_ready[place.node] = true;
    rank.engines[engine].ready.emplace(traces_.traces[place.trace].nodes[place.node].id,
                                       place.node);
    touched_.emplace_back(place.trace, engine);
    if (ends_.empty()) ends_.emplace(now_, 0, kNoMessage, 0);  // so that it is looked at
  }

  void Issue() {
    while (!touched_.empty()) {
      const std::vector<std::pair<uint32_t, uint32_t>> touched = std::move(touched_);
      touched_.clear();
      for (const auto& [trace, engine] : touched) IssueOn(trace, engine);
    }
  }

  void IssueOn(uint32_t trace, uint32_t number) {
    IssuingRank& rank = ranks_[trace];
    IssueEngine& engine = rank.engines[number];
    if (engine.is_busy) return;
    uint32_t node = 0;
    if (issues_[trace].keeps_order[number]) {
      if (engine.next == engine.in_order.size()) return;
      node = engine.in_order[engine.next];
      if (!rank.is_ready[node]) return;
      ++engine.next;
    } else {
      if (engine.ready.empty()) return;
      node = engine.ready.top().second;
      engine.ready.pop();
    }
    engine.is_busy = true;
    rank.issued[number].push_back(node);
    const IssuePlace place = {trace, node};
    const IssueNode& own = At(place);
    switch (own.kind) {
      case IssueKind::kWork:
      case IssueKind::kSend:
        EndAfter(own.microseconds, place);
        return;
      case IssueKind::kReceive:
        if (own.with == kNoMessage || is_there_[own.with])
          EndAfter(0, place);
        else
          receivers_[own.with].push_back(place);
        return;
      case IssueKind::kMeeting:
        arrived_[own.with].push_back(place);
        if (arrived_[own.with].size() < expected_[own.with]) return;
        for (const IssuePlace& member : arrived_[own.with]) EndAfter(own.microseconds, member);
        return;
    }
  }

  void EndAfter(double microseconds, IssuePlace place) {
    ends_.emplace(now_ + microseconds, ++sequence_, place.trace, place.node);
  }

  void End(IssuePlace place) {
    if (place.trace == kNoMessage) return;
    IssuingRank& rank = ranks_[place.trace];
    const IssueNode& own = At(place);
    rank.engines[own.engine].is_busy = false;
    touched_.emplace_back(place.trace, own.engine);
    if (own.kind == IssueKind::kSend && own.with != kNoMessage) {
      is_there_[own.with] = true;
      for (const IssuePlace& receiver : receivers_[own.with]) EndAfter(0, receiver);
    }
    for (const uint32_t next : rank.followers.Of(place.node)) {
      if (--rank.waits_for[next] == 0) BecomeReady({place.trace, next});
    }
  }

  const ChakraTraces& traces_;
  const std::vector<IssueTrace>& issues_;
  const std::vector<uint32_t>& expected_;
  std::vector<IssuingRank> ranks_;
  std::vector<std::vector<IssuePlace>> arrived_;  // by meeting
  std::vector<bool> is_there_;                    // by message
  std::vector<std::vector<IssuePlace>> receivers_;
  double now_ = 0;
  uint64_t sequence_ = 0;
  using Ending = std::tuple<double, uint64_t, uint32_t, uint32_t>;  // time, turn, trace, node
  std::priority_queue<Ending, std::vector<Ending>, std::greater<>> ends_;
  std::vector<std::pair<uint32_t, uint32_t>> touched_;  // trace, engine
};

// The lowest number first, with each engine's nodes in the order given.
std::vector<uint32_t> OrderWithin(const ChakraTrace& trace, const NodeOrder& nodes,
                                  const std::vector<std::vector<uint32_t>>& issued) {
  const auto count = static_cast<uint32_t>(nodes.order.size());
  constexpr uint32_t kNone = 0xffffffffu;
  std::vector<uint32_t> next_on_engine(count, kNone);
  std::vector<uint32_t> waits_for(count);
  for (uint32_t node = 0; node < count; ++node)
    waits_for[node] = static_cast<uint32_t>(nodes.Before(node).size());
  for (const std::vector<uint32_t>& one : issued) {
    for (size_t i = 1; i < one.size(); ++i) {
      next_on_engine[one[i - 1]] = one[i];
      ++waits_for[one[i]];
    }
  }
  const NodeFollowers followers(nodes);
  NodeQueue ready;
  for (uint32_t node = 0; node < count; ++node)
    if (waits_for[node] == 0) ready.emplace(trace.nodes[node].id, node);
  std::vector<uint32_t> order;
  order.reserve(count);
  const auto release = [&](uint32_t node) {
    if (--waits_for[node] == 0) ready.emplace(trace.nodes[node].id, node);
  };
  while (!ready.empty()) {
    const uint32_t node = ready.top().second;
    ready.pop();
    order.push_back(node);
    for (const uint32_t follower : followers.Of(node)) release(follower);
    if (next_on_engine[node] != kNone) release(next_on_engine[node]);
  }
  return order;
}

}  // namespace

void OrderAsIssued(const ChakraTraces& traces, const std::vector<IssueTrace>& issues,
                   const std::vector<uint32_t>& meetings, uint32_t messages,
                   std::vector<NodeOrder>* orders) {
  const std::vector<std::vector<std::vector<uint32_t>>> issued =
      Issuer(traces, issues, meetings, messages, *orders).Run();
  for (size_t i = 0; i < orders->size(); ++i)
    (*orders)[i].order = OrderWithin(traces.traces[i], (*orders)[i], issued[i]);
}

}  // namespace rehearse

// Steps to summarise, write and draw: one written by hand, and random ones of any size.
#pragma once

#include <algorithm>
#include <random>
#include <string>
#include <utility>
#include <vector>

#include "sim/engine/timeline.h"
#include "sim/schedule/schedule.h"

namespace rehearse {

inline Op ComputeOp(std::string name, ComputeKind kind, Phase phase, double flops,
                    std::vector<OpId> after = {}) {
  Op op;
  op.name = std::move(name);
  op.stream = StreamId(0);
  op.tag.phase = phase;
  op.tag.layer = phase == Phase::kUpdate ? -1 : 0;
  Compute compute;
  compute.kind = kind;
  compute.flops = Flops(flops);
  if (kind == ComputeKind::kGemm) compute.gemm = {64, 32, 16, GemmMode::kNN, 1};
  op.work = compute;
  op.after = std::move(after);
  return op;
}

// On the stream after the compute stream that has the communicator's position.
inline Op CollectiveOp(std::string name, CollectiveKind kind, uint32_t communicator, double bytes,
                       std::vector<OpId> after = {}) {
  Op op;
  op.name = std::move(name);
  op.stream = StreamId(communicator + 1);
  Collective collective;
  collective.kind = kind;
  collective.communicator = CommunicatorId(communicator);
  collective.bytes = Bytes(bytes);
  op.work = collective;
  op.after = std::move(after);
  return op;
}

inline Span SpanAt(uint32_t rank, uint32_t op, int64_t ready, int64_t begin, int64_t end) {
  return {rank, op, Time(ready), Time(begin), Time(end)};
}

constexpr int64_t kMicrosecond = 1'000'000;  // in picoseconds

// Two ranks on the axes "row" and "column" (each is the pair) and "solo" (each rank alone).
//
//   rank 0   compute  ██gemm██                norm██            0..10, 20..24
//            row               ··all-reduce███                  ready 10, 12..20
//            column   ····all-gather██████                      ready 0, 5..16
//   rank 1   compute  ██gemm████              norm████          0..12, 20..26
//            row                all-reduce███                   12..20
//            column      all-gather██████                       5..16
//            solo     an all-reduce that moves nothing, on both ranks, 1..9
struct TwoRankStep {
  TwoRankStep() {
    schedule.communicators = {Communicator::Explicit("row", {{0, 1}}),
                              Communicator::Explicit("column", {{0, 1}}),
                              Communicator::Explicit("solo", {{0}, {1}})};
    Role role;
    role.name = "all";
    role.streams = {{"compute", StreamKind::kCompute},
                    {"row", StreamKind::kCommunication},
                    {"column", StreamKind::kCommunication},
                    {"solo", StreamKind::kCommunication}};
    role.ops = {ComputeOp("gemm", ComputeKind::kGemm, Phase::kForward, 4e6),
                CollectiveOp("all-reduce y", CollectiveKind::kAllReduce, 0, 1000, {OpId(0)}),
                CollectiveOp("all-gather w", CollectiveKind::kAllGather, 1, 600),
                ComputeOp("norm", ComputeKind::kMemory, Phase::kBackward, 0, {OpId(1)}),
                CollectiveOp("all-reduce alone", CollectiveKind::kAllReduce, 2, 50)};
    schedule.roles = {role};
    schedule.role_of_rank = {0, 0};
    schedule.model_flops = Flops(6e6);
    schedule.hardware_flops = Flops(8e6);
    schedule.tokens = 13;

    const auto add = [&](uint32_t rank, uint32_t op, int64_t ready, int64_t begin, int64_t end) {
      timeline.spans.push_back(
          SpanAt(rank, op, ready * kMicrosecond, begin * kMicrosecond, end * kMicrosecond));
    };
    add(0, 0, 0, 0, 10);
    add(0, 1, 10, 12, 20);
    add(0, 2, 0, 5, 16);
    add(0, 3, 20, 20, 24);
    add(0, 4, 1, 1, 9);
    add(1, 0, 0, 0, 12);
    add(1, 1, 12, 12, 20);
    add(1, 2, 5, 5, 16);
    add(1, 3, 20, 20, 26);
    add(1, 4, 1, 1, 9);
    timeline.ranks = 2;
    timeline.step = Time(26 * kMicrosecond);
  }

  Schedule schedule;
  Timeline timeline;
};

// Two ranks; on each a product on the stream "compute" and an all-reduce on "all", in no order.
inline Schedule JobOfTwoRanks() {
  Schedule schedule;
  schedule.communicators = {Communicator::Strided("all", {{2, 1}}, {})};
  Role role;
  role.name = "rank";
  role.streams = {{"compute", StreamKind::kCompute}, {"all", StreamKind::kCommunication}};
  role.ops = {ComputeOp("gemm", ComputeKind::kGemm, Phase::kForward, 1e6),
              CollectiveOp("sum", CollectiveKind::kAllReduce, 0, 1000)};
  schedule.roles = {role};
  schedule.role_of_rank = {0, 0};
  schedule.model_flops = Flops(2e6);
  schedule.tokens = 5;
  return schedule;
}

// `ranks` (a multiple of 4) on a mesh of 2 x 2 x the rest, `ops` a rank, durations from nothing
// over less than a nanosecond to some microseconds; every collective meets.
struct RandomStep {
  RandomStep(uint32_t ranks, uint32_t ops, uint32_t seed) {
    std::mt19937 random(seed);  // its numbers are the same everywhere; distributions' are not
    const auto below = [&](uint32_t n) { return static_cast<int64_t>(random() % n); };

    schedule.communicators = {Communicator::Strided("x", {{2, 1}}, {{2, 2}, {ranks / 4, 4}}),
                              Communicator::Strided("y", {{2, 2}}, {{2, 1}, {ranks / 4, 4}}),
                              Communicator::Strided("z", {{ranks / 4, 4}}, {{4, 1}})};
    Role role;
    role.name = "all";
    role.streams = {{"compute", StreamKind::kCompute},
                    {"x", StreamKind::kCommunication},
                    {"y", StreamKind::kCommunication},
                    {"z", StreamKind::kCommunication}};
    for (uint32_t i = 0; i < ops; ++i) {
      std::vector<OpId> after;
      if (i > 0 && below(2) == 0) after.push_back(OpId(static_cast<uint32_t>(below(i))));
      const auto phase = static_cast<Phase>(5 * uint64_t{i} / ops);
      if (below(3) > 0) {
        role.ops.push_back(ComputeOp(i % 2 == 0 ? "gemm" : "norm",
                                     i % 2 == 0 ? ComputeKind::kGemm : ComputeKind::kMemory, phase,
                                     1e6 * static_cast<double>(below(100)), after));
      } else {
        role.ops.push_back(CollectiveOp("all-reduce", CollectiveKind::kAllReduce,
                                        static_cast<uint32_t>(below(3)), 1e3, after));
        role.ops.back().tag.phase = phase;
      }
    }
    schedule.roles = {role};
    schedule.role_of_rank.assign(ranks, 0);

    const auto duration = [&] {
      const int64_t kind = below(4);
      return kind == 0 ? 0 : kind == 1 ? below(1000) : below(5'000'000);
    };
    timeline.ranks = ranks;
    timeline.spans.resize(size_t{ranks} * ops);
    std::vector<std::vector<int64_t>> free(ranks, std::vector<int64_t>(4, 0));
    for (uint32_t i = 0; i < ops; ++i) {
      const Op& op = role.ops[i];
      const auto span = [&](uint32_t rank) -> Span& {
        return timeline.spans[size_t{rank} * ops + i];
      };
      for (uint32_t rank = 0; rank < ranks; ++rank) {
        int64_t ready = free[rank][op.stream.index()];
        for (const OpId before : op.after) {
          ready = std::max(ready,
                           timeline.spans[size_t{rank} * ops + before.index()].end.picoseconds());
        }
        span(rank) = SpanAt(rank, i, ready, ready, ready + duration());
      }
      if (const CommunicatorId id = CommunicatorOf(op.work); id.IsSet()) {
        const Communicator& communicator = schedule.communicators[id.index()];
        for (uint32_t group = 0; group < communicator.group_count(); ++group) {
          Time begin;
          for (uint32_t member = 0; member < communicator.size(); ++member) {
            begin = std::max(begin, span(communicator.Rank(group, member)).ready);
          }
          const Time end = begin + Time(duration());
          for (uint32_t member = 0; member < communicator.size(); ++member) {
            span(communicator.Rank(group, member)).begin = begin;
            span(communicator.Rank(group, member)).end = end;
          }
        }
      }
      for (uint32_t rank = 0; rank < ranks; ++rank) {
        free[rank][op.stream.index()] = span(rank).end.picoseconds();
        timeline.step = std::max(timeline.step, span(rank).end);
      }
    }
  }

  Schedule schedule;
  Timeline timeline;
};

}  // namespace rehearse

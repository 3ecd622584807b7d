// Programs of many copies, played with few of them: the same spans, bytes and transfers.
#include "sim/engine/recurrence.h"

#include <optional>
#include <vector>

#include <fmt/format.h>
#include <gtest/gtest.h>

#include "sim/base/fnv.h"
#include "tests/support/random_program.h"
#include "tests/support/sanitizers.h"

namespace rehearse {
namespace recurrence_test {

// What a random pipeline consists of. Rank r does `before` ops, then `count` copies of a body, then
// `after` ops, each on one of two streams.
struct Pipeline {
  struct Op {
    bool moves = false;
    Time duration;             // of a kernel, or before the bytes move
    double bytes = 0;          // over the rank's link
    bool from_before = false;  // waits for this op of the rank before, in the same copy
    bool from_behind = false;  // waits for this op of the rank behind, in the copy before
    uint32_t other = 0;        // that op
    uint32_t stream = 0;
    uint32_t steps = 1;    // in which the bytes move
    bool detours = false;  // over another link, as wide
    double slowdown = 0.5;
    bool is_alone = false;  // nobody is slowed down by these bytes
  };
  struct Rank {
    uint32_t before = 0;
    uint32_t after = 0;
    std::vector<Op> body;
  };
  std::vector<Rank> ranks;
  bool interferes = false;
  bool shares_link = false;
  // An op of one of the first two copies that differs from those of all others.
  struct Exception {
    uint32_t rank = 0;
    uint32_t copy = 0;
    uint32_t op = 0;
    Op does;
  };
  std::optional<Exception> exception;
};

// One thing about it is changed.
void Change(uint32_t what, Pipeline::Op* op) {
  if (what == 0) op->duration += Time(100);
  if (what == 1) op->duration += Time(1);
  if (what == 2) op->bytes += 1;
  if (what == 3) op->steps = 3 - op->steps;
  if (what == 4) op->detours = !op->detours;
  if (what == 5) op->slowdown = 0.75;
  if (what == 6) op->is_alone = !op->is_alone;
}
constexpr uint32_t kChanges = 7;

Pipeline DrawPipeline(uint64_t seed) {
  Random random(seed);
  Pipeline pipeline;
  pipeline.interferes = random.Chance(50);
  pipeline.shares_link = random.Chance(50);
  const uint32_t ranks = random.Between(1, 4);
  for (uint32_t r = 0; r < ranks; ++r) {
    Pipeline::Rank rank;
    rank.before = random.Below(6);
    rank.after = random.Below(6);
    const uint32_t size = random.Between(1, 6);
    for (uint32_t i = 0; i < size; ++i) {
      Pipeline::Op op;
      op.moves = random.Chance(40);
      op.duration = Time(random.Chance(20) ? 0 : random.Between(1, 400));
      op.bytes = random.Chance(10) ? 0 : random.Between(1, 700);
      op.from_before = r > 0 && random.Chance(i == 0 ? 90 : 50);
      op.from_behind = r + 1 < ranks && random.Chance(i == 0 ? 90 : 50);
      op.other = random.Below(6);
      op.stream = random.Below(2);
      if (random.Chance(20)) op.steps = 2;
      op.detours = random.Chance(20);
      if (random.Chance(20)) op.slowdown = 0.25;
      op.is_alone = random.Chance(20);
      rank.body.push_back(op);
    }
    pipeline.ranks.push_back(rank);
  }
  if (random.Chance(60)) {
    Pipeline::Exception one;
    one.rank = random.Below(ranks);
    const std::vector<Pipeline::Op>& body = pipeline.ranks[one.rank].body;
    one.op = random.Below(static_cast<uint32_t>(body.size()));
    one.copy = random.Below(2);
    one.does = body[one.op];
    Change(random.Below(kChanges), &one.does);
    pipeline.exception = one;
  }
  return pipeline;
}

class Builder {
 public:
  Builder(const Pipeline& pipeline, uint32_t count) : pipeline_(pipeline), count_(count) {}

  Program Build() {
    for (uint32_t r = 0; r < pipeline_.ranks.size(); ++r) {
      const uint32_t link = pipeline_.shares_link ? 0 : r;
      if (link == links_.size())
        links_.push_back(
            builder_.AddLink({fmt::format("link {}", link), "", BytesPerSecond(1e12)}));
      use_sets_.push_back(builder_.AddUseSet({{links_[link], 1}}));
      if (!detour_) detour_ = builder_.AddLink({"detour", "", BytesPerSecond(1e12)});
      detours_.push_back(builder_.AddUseSet({{*detour_, 1}}));
      if (!pipeline_.interferes) continue;
      processors_.push_back(builder_.AddProcessor({.slowdown = 0.25}));
      party_sets_.push_back(builder_.AddPartySet({processors_.back()}));
    }
    std::vector<CopiedTasks> copies;
    for (uint32_t r = 0; r < pipeline_.ranks.size(); ++r) copies.push_back(AddRank(r));
    // The last rank may be ahead of those before it, and is first where they wait for it.
    for (uint32_t r = 0; r < pipeline_.ranks.size(); ++r) Connect(r);
    builder_.SetCopies(copies);
    return builder_.Build();
  }

 private:
  CopiedTasks AddRank(uint32_t r) {
    const Pipeline::Rank& rank = pipeline_.ranks[r];
    CopiedTasks copies;
    copies.count = count_;
    copies.tasks.begin = builder_.task_count();
    copies.flows.begin = builder_.flow_count();
    std::optional<TaskId> last[2];
    uint32_t position = 0;
    const auto add = [&](const Pipeline::Op& op) {
      const TaskId task = Add(r, op);
      std::optional<TaskId>& previous = last[op.stream];
      if (previous) builder_.AddEdge(*previous, task);
      previous = task;
      builder_.AddSpan({r, position++, TaskId(), task, task});
      return task;
    };
    for (uint32_t i = 0; i < rank.before; ++i) add({.duration = Time(100 + i)});
    copies.tasks.first = builder_.task_count();
    copies.flows.first = builder_.flow_count();
    std::vector<std::vector<TaskId>>& tasks = tasks_.emplace_back();
    for (uint32_t copy = 0; copy < count_; ++copy) {
      tasks.emplace_back();
      for (uint32_t i = 0; i < rank.body.size(); ++i) {
        const auto& one = pipeline_.exception;
        const bool differs = one && one->rank == r && one->copy == copy && one->op == i;
        tasks.back().push_back(add(differs ? one->does : rank.body[i]));
      }
      if (copy == 0) {
        copies.tasks.size = builder_.task_count() - copies.tasks.first;
        copies.flows.size = builder_.flow_count() - copies.flows.first;
      }
    }
    for (uint32_t i = 0; i < rank.after; ++i) {
      const TaskId task = add({.duration = Time(50 + i)});
      // On the last rank of four, nothing may come before them.
      if (r != 3) builder_.AddEdge(tasks.back().back(), task);
    }
    copies.tasks.end = builder_.task_count();
    copies.flows.end = builder_.flow_count();
    return copies;
  }

  TaskId Add(uint32_t r, const Pipeline::Op& op) {
    if (op.moves) {
      Flow flow;
      flow.bytes = op.bytes;
      flow.latency = op.duration;
      flow.steps = op.steps;
      flow.use_set = op.detours ? detours_[r] : use_sets_[r];
      const TaskId task = builder_.AddFlow(flow);
      if (pipeline_.interferes && !op.is_alone) builder_.SetParties(task, party_sets_[r]);
      return task;
    }
    const TaskId task = builder_.AddDelay(op.duration);
    if (pipeline_.interferes) builder_.SetOwner(task, {processors_[r], op.slowdown});
    return task;
  }

  void Connect(uint32_t r) {
    const std::vector<Pipeline::Op>& body = pipeline_.ranks[r].body;
    for (uint32_t copy = 0; copy < count_; ++copy) {
      for (uint32_t i = 0; i < body.size(); ++i) {
        const auto wait_for = [&](uint32_t other, uint32_t their_copy) {
          const auto& theirs = tasks_[other][their_copy];
          builder_.AddEdge(theirs[body[i].other % theirs.size()], tasks_[r][copy][i]);
        };
        if (body[i].from_before) wait_for(r - 1, copy);
        if (body[i].from_behind && copy > 0) wait_for(r + 1, copy - 1);
      }
    }
  }

  const Pipeline& pipeline_;
  const uint32_t count_;
  ProgramBuilder builder_;
  std::vector<LinkId> links_;
  std::optional<LinkId> detour_;
  std::vector<uint32_t> use_sets_;
  std::vector<uint32_t> detours_;
  std::vector<uint32_t> processors_;
  std::vector<uint32_t> party_sets_;
  std::vector<std::vector<std::vector<TaskId>>> tasks_;  // [rank][copy][op of the body]
};

std::vector<CopiedOps> CopiedOpsOf(const Pipeline& pipeline, uint32_t count) {
  std::vector<CopiedOps> of_rank;
  for (const Pipeline::Rank& rank : pipeline.ranks)
    of_rank.push_back({rank.before, static_cast<uint32_t>(rank.body.size()), count, rank.after});
  return of_rank;
}

void ExpectTheSame(const Timeline& few, const Timeline& whole) {
  ASSERT_EQ(few.spans.size(), whole.spans.size());
  for (size_t i = 0; i < few.spans.size(); ++i) {
    const Span& a = few.spans[i];
    const Span& b = whole.spans[i];
    ASSERT_TRUE(a.rank == b.rank && a.op == b.op && a.ready == b.ready && a.begin == b.begin &&
                a.end == b.end)
        << "rank " << b.rank << ", op " << b.op << ": " << a.begin.picoseconds() << " to "
        << a.end.picoseconds() << " instead of " << b.begin.picoseconds() << " to "
        << b.end.picoseconds();
  }
  EXPECT_EQ(few.step, whole.step);
  EXPECT_EQ(HashOf(few), HashOf(whole));
  for (size_t link = 0; link < few.links.size(); ++link) {
    EXPECT_EQ(few.links[link].bytes, whole.links[link].bytes);
  }
}

TEST(RecurrenceTest, FewCopiesTellHowAllGo) {
  uint32_t found = 0;
  Fnv1a hash;
  constexpr uint32_t kSeeds = kIsSanitized ? 200 : 1000;
  for (uint64_t seed = 0; seed < kSeeds; ++seed) {
    SCOPED_TRACE(seed);
    const Pipeline pipeline = DrawPipeline(seed);
    constexpr uint32_t kCount = 120;
    constexpr uint32_t kLeftOut = 72;
    const Program program = Builder(pipeline, kCount - kLeftOut).Build();
    const auto ranks = static_cast<uint32_t>(pipeline.ranks.size());
    const Simulation few = Simulate(program, ranks, {.copies_left_out = kLeftOut});
    if (seed < 200) {
      hash.Add(few.stats.events);
      hash.Add(few.recurrence ? few.recurrence->at : Time());
      hash.Add(few.recurrence ? few.recurrence->period : Time());
      hash.Add(few.recurrence ? few.recurrence->copies : 0);
    }
    if (!few.recurrence) continue;
    ++found;
    const Simulation whole = Simulate(Builder(pipeline, kCount).Build(), ranks);
    EXPECT_EQ(few.stats.transfers, whole.stats.transfers);
    EXPECT_LT(few.stats.events, whole.stats.events);
    const std::vector<CopiedOps> ops = CopiedOpsOf(pipeline, kCount);
    ExpectTheSame(WithCopies(few.timeline, ops, *few.recurrence, kLeftOut), whole.timeline);
    if (HasFatalFailure()) return;
    const KeptSpans kept(few.timeline);
    const SpansWithCopies spans(kept, ops, *few.recurrence, kLeftOut);
    EXPECT_EQ(HashOf(whole.timeline, spans), HashOf(whole.timeline));
  }
  EXPECT_GT(found, kSeeds / 4);
  // It does not come later than it did: that would cost time, and show nowhere else.
  EXPECT_EQ(hash.hash(), 14669241649899473070u);
}

// 70 ps, and 30 bytes at 1 B/ps, one after the other.
TEST(RecurrenceTest, OfOneRankTakesAsLongAsACopy) {
  Pipeline pipeline;
  pipeline.ranks.push_back(
      {1, 1, {{.duration = Time(70)}, {.moves = true, .duration = Time(), .bytes = 30}}});
  const Simulation few = Simulate(Builder(pipeline, 24).Build(), 1, {.copies_left_out = 12});
  ASSERT_TRUE(few.recurrence.has_value());
  EXPECT_EQ(few.recurrence->copies, 1u);
  EXPECT_EQ(few.recurrence->period, Time(100));
}

TEST(RecurrenceTest, WhatDoesNotComeBackIsNotPlayedToItsEnd) {
  // The rank behind falls back by 10 ps with every copy.
  Pipeline pipeline;
  pipeline.ranks.push_back({0, 0, {{.duration = Time(100)}}});
  pipeline.ranks.push_back({0, 0, {{.duration = Time(110), .from_before = true}}});
  const Simulation few = Simulate(Builder(pipeline, 24).Build(), 2, {.copies_left_out = 12});
  EXPECT_FALSE(few.recurrence.has_value());
  EXPECT_TRUE(few.timeline.spans.empty());
}

}  // namespace recurrence_test
}  // namespace rehearse

// A series means the same as a task for each of its delays: both ways of saying it, and the naive
// reference engine, which does not know series, give the same times.
#include <algorithm>
#include <vector>

#include <gtest/gtest.h>

#include "sim/engine/simulate.h"
#include "tests/support/random_program.h"
#include "tests/support/reference_engine.h"

namespace rehearse {
namespace series_test {

bool SameSpans(const std::vector<Span>& a, const std::vector<Span>& b) {
  return std::equal(a.begin(), a.end(), b.begin(), b.end(), [](const Span& x, const Span& y) {
    return x.rank == y.rank && x.op == y.op && x.ready == y.ready && x.begin == y.begin &&
           x.end == y.end;
  });
}

// Kernels of a few processors, run after run of them, beside transfers that slow them down. Runs
// wait for transfers and transfers for runs. Half of the programs have coarse numbers, so that much
// happens at the same instant, and some kernels take no time.
class RandomRuns {
 public:
  RandomRuns(uint64_t seed, bool in_series)
      : random_(seed), in_series_(in_series), is_coarse_(random_.Chance(50)) {}

  Program Build() {
    AddMachine();
    const uint32_t items = random_.Between(8, 30);
    for (uint32_t i = 0; i < items; ++i) {
      const bool is_run = random_.Chance(60);
      const TaskId first = is_run ? AddRun() : AddTransfer();
      const uint32_t waits = i == 0 ? 0 : random_.Below(3);
      // The last item was noted when it was added.
      for (uint32_t wait = 0; wait < waits; ++wait)
        builder_.AddEdge(last_[i - 1 - random_.Below(std::min(i, 6u))], first);
    }
    return builder_.Build();
  }

 private:
  void AddMachine() {
    const uint32_t hosts = random_.Below(2);
    for (uint32_t i = 0; i < hosts; ++i) builder_.AddHost(random_.Between(1, 3));
    const uint32_t processors = random_.Between(1, 3);
    for (uint32_t i = 0; i < processors; ++i) {
      Processor processor;
      if (hosts > 0 && random_.Chance(70)) processor.host = 0;
      processor.slowdown = Slowdown();
      processors_.push_back(builder_.AddProcessor(processor));
    }
    for (uint32_t i = 0; i < 2; ++i) {
      const LinkId link = builder_.AddLink({"link", "test", BytesPerSecond(1e12)});
      use_sets_.push_back(builder_.AddUseSet({{link, 1}}));
    }
  }

  double Slowdown() {
    return random_.Chance(30) ? 0 : random_.Chance(50) ? 0.5 : random_.Fraction();
  }
  int64_t Duration() {
    return is_coarse_ ? 100 * int64_t{random_.Below(4)} : int64_t{random_.Below(400)};
  }

  TaskId AddRun() {
    const uint32_t count = random_.Between(1, 6);
    // Some runs have no processor, and nothing slows them.
    const bool has_owner = random_.Chance(85);
    const uint32_t processor = processors_[random_.Below(Size(processors_))];
    std::vector<Time> delays;
    std::vector<DelayOwner> owners;
    for (uint32_t i = 0; i < count; ++i) {
      delays.emplace_back(Duration());
      if (has_owner) owners.push_back({processor, Slowdown()});
    }
    if (in_series_ && count > 1) {
      const TaskId task = builder_.AddTaskOfSeries(builder_.AddSeries(delays, owners));
      AddSpan(task);
      op_ += count - 1;
      last_.push_back(task);
      return task;
    }
    TaskId first;
    TaskId before;
    for (uint32_t i = 0; i < count; ++i) {
      const TaskId task = builder_.AddDelay(delays[i]);
      if (has_owner) builder_.SetOwner(task, owners[i]);
      if (i == 0) first = task;
      if (i > 0) builder_.AddEdge(before, task);
      AddSpan(task);
      before = task;
    }
    last_.push_back(before);
    return first;
  }

  TaskId AddTransfer() {
    Flow flow;
    flow.bytes = static_cast<double>(Duration());
    flow.latency = Time(random_.Chance(50) ? 0 : Duration());
    flow.use_set = use_sets_[random_.Below(2)];
    const TaskId task = builder_.AddFlow(flow);
    std::vector<uint32_t> parties;
    for (const uint32_t processor : processors_) {
      if (random_.Chance(50)) parties.push_back(processor);
    }
    if (!parties.empty()) builder_.SetParties(task, builder_.AddPartySet(parties));
    AddSpan(task);
    last_.push_back(task);
    return task;
  }

  void AddSpan(TaskId task) {
    builder_.AddSpan({.rank = 0, .op = op_++, .ready = TaskId(), .begin = task, .end = task});
  }
  static uint32_t Size(const std::vector<uint32_t>& list) {
    return static_cast<uint32_t>(list.size());
  }

  Random random_;
  const bool in_series_;
  const bool is_coarse_;
  ProgramBuilder builder_;
  std::vector<uint32_t> processors_;
  std::vector<uint32_t> use_sets_;
  std::vector<TaskId> last_;  // of each item
  uint32_t op_ = 0;
};

TEST(SeriesTest, MeansTheSameAsATaskForEachDelay) {
  uint64_t events = 0;
  uint64_t events_in_series = 0;
  for (uint64_t seed = 0; seed < 3000; ++seed) {
    const Program delays = RandomRuns(seed, /*in_series=*/false).Build();
    const Program series = RandomRuns(seed, /*in_series=*/true).Build();
    const Simulation plain = Simulate(delays, 1);
    const Simulation simulation = Simulate(series, 1);
    ASSERT_TRUE(SameSpans(plain.timeline.spans, SimulateNaively(delays).spans)) << "seed " << seed;
    ASSERT_TRUE(SameSpans(simulation.timeline.spans, plain.timeline.spans)) << "seed " << seed;
    ASSERT_EQ(HashOf(simulation.timeline), HashOf(plain.timeline)) << "seed " << seed;
    // Made when they are gone over, instead of kept.
    const Timeline later = Simulate(series, 1, {.keep_spans = false}).timeline;
    ASSERT_TRUE(later.spans.empty());
    ASSERT_EQ(later.step, plain.timeline.step) << "seed " << seed;
    ASSERT_EQ(HashOf(later, *later.played), HashOf(plain.timeline)) << "seed " << seed;
    events += plain.stats.events;
    events_in_series += simulation.stats.events;
  }
  EXPECT_LT(events_in_series, events);
}

}  // namespace series_test
}  // namespace rehearse

// A program built task by task, for tests that derive its times. Links have 1 B/ps (1e12 B/s)
// unless said otherwise, so that bytes are picoseconds. Each task gets a span of rank 0 with the op
// number of its call.
#pragma once

#include <vector>

#include <gtest/gtest.h>

#include "sim/engine/simulate.h"

namespace rehearse {

class PlayTest : public testing::Test {
 protected:
  uint32_t Over(const std::vector<LinkUse>& uses) { return builder_.AddUseSet(uses); }
  LinkId Link(double bytes_per_picosecond = 1) {
    return builder_.AddLink({"link", "test", BytesPerSecond(1e12 * bytes_per_picosecond)});
  }
  TaskId Add(TaskId task) {
    builder_.AddSpan({.rank = 0, .op = ops_++, .ready = TaskId(), .begin = task, .end = task});
    return task;
  }
  TaskId Delay(int64_t picoseconds) { return Add(builder_.AddDelay(Time(picoseconds))); }
  TaskId Join() { return Add(builder_.AddJoin()); }
  TaskId Move(double bytes, uint32_t use_set, int64_t latency = 0, uint32_t steps = 1) {
    Flow flow;
    flow.bytes = bytes;
    flow.use_set = use_set;
    flow.latency = Time(latency);
    flow.steps = steps;
    return Add(builder_.AddFlow(flow));
  }
  void Play(const SimulationOptions& options = {}) {
    program_ = builder_.Build();
    simulation_ = Simulate(program_, 1, options);
  }
  int64_t Begin(size_t op) const { return simulation_.timeline.spans[op].begin.picoseconds(); }
  int64_t End(size_t op) const { return simulation_.timeline.spans[op].end.picoseconds(); }
  int64_t Step() const { return simulation_.timeline.step.picoseconds(); }
  double Carried(LinkId link) const {
    return simulation_.timeline.links[link.index()].bytes.value();
  }

  ProgramBuilder builder_;
  Program program_;
  Simulation simulation_;
  uint32_t ops_ = 0;
};

}  // namespace rehearse

#include "tests/support/reference_engine.h"

#include <cmath>
#include <limits>

#include "sim/error.h"

namespace rehearse {
namespace {

constexpr int64_t kNever = std::numeric_limits<int64_t>::max();

enum class State { kWaiting, kTimer, kMoving, kBetweenSteps, kEnded };

struct TaskRun {
  State state = State::kWaiting;
  int64_t start = 0;
  int64_t end = 0;
  int64_t due = kNever;     // kTimer, kMoving: when
  uint32_t steps_done = 0;  // flows
  long double left = 0;     // kMoving: bytes
  long double rate = 0;     // kMoving: bytes per picosecond
};

class NaivePlayer {
 public:
  explicit NaivePlayer(const Program& program)
      : program_(program), tasks_(program.tasks.size()), predecessors_(program.tasks.size()) {
    for (uint32_t task = 0; task < program.tasks.size(); ++task) {
      for (uint32_t i = program.successor_begin[task]; i < program.successor_begin[task + 1]; ++i) {
        predecessors_[program.successors[i].index()].push_back(task);
      }
    }
    result_.link_bytes.assign(program.links.size(), 0);
    result_.link_integral.assign(program.links.size(), 0);
    result_.link_step_ends.assign(program.links.size(), 0);
  }

  ReferenceResult Play() {
    for (;;) {
      ++result_.instants;
      for (TaskRun& run : tasks_) {
        if (run.state == State::kMoving && run.due == now_) run.left = 0;
      }
      while (DoWhatIsDueNow()) {
      }
      SolveAllRates();
      const int64_t next = NextDue();
      if (next == kNever) break;
      MoveForwardTo(next);
    }
    for (const TaskRun& run : tasks_) {
      if (run.state != State::kEnded) throw InternalError("tasks remain");
    }
    for (const SpanSpec& spec : program_.spans) {
      const int64_t begin = tasks_[spec.begin.index()].start;
      const bool own = !spec.ready.IsSet() || spec.ready == spec.begin;
      result_.spans.push_back({.rank = spec.rank,
                               .op = spec.op,
                               .ready = Time(own ? begin : tasks_[spec.ready.index()].end),
                               .begin = Time(begin),
                               .end = Time(tasks_[spec.end.index()].end)});
    }
    return result_;
  }

 private:
  const Flow& FlowOf(uint32_t task) const { return program_.flows[program_.tasks[task].payload]; }

  std::span<const LinkUse> UsesOf(uint32_t task) const {
    const uint32_t set = FlowOf(task).use_set;
    return std::span(program_.uses)
        .subspan(program_.use_set_begin[set],
                 program_.use_set_begin[set + 1] - program_.use_set_begin[set]);
  }

  // One pass over all tasks; true when something happened, so that another pass is needed.
  bool DoWhatIsDueNow() {
    bool happened = false;
    for (uint32_t task = 0; task < tasks_.size(); ++task) happened |= Advance(task);
    return happened;
  }

  bool Advance(uint32_t task) {
    TaskRun& run = tasks_[task];
    const TaskKind kind = program_.tasks[task].kind;
    switch (run.state) {
      case State::kWaiting:
        for (const uint32_t predecessor : predecessors_[task]) {
          if (tasks_[predecessor].state != State::kEnded) return false;
        }
        run.start = now_;
        if (kind == TaskKind::kJoin) {
          EndTask(task);
        } else if (kind == TaskKind::kDelay) {
          run.state = State::kTimer;
          run.due = now_ + program_.delays[program_.tasks[task].payload].picoseconds();
        } else {
          run.state = State::kBetweenSteps;
        }
        return true;
      case State::kBetweenSteps: {
        const TaskId upstream = FlowOf(task).upstream;
        if (run.steps_done > 0 && upstream.IsSet() &&
            tasks_[upstream.index()].steps_done < run.steps_done) {
          return false;
        }
        run.state = State::kTimer;
        run.due = now_ + FlowOf(task).latency.picoseconds();
        return true;
      }
      case State::kTimer:
        if (run.due != now_) return false;
        if (kind == TaskKind::kDelay) {
          EndTask(task);
        } else {
          run.state = State::kMoving;
          run.left = UsesOf(task).empty() ? 0 : FlowOf(task).bytes;
          run.due = run.left == 0 ? now_ : kNever;  // else known when the rates are
        }
        return true;
      case State::kMoving:
        if (run.due != now_ || run.left != 0) return false;
        EndStep(task);
        return true;
      case State::kEnded:
        return false;
    }
    return false;
  }

  void EndStep(uint32_t task) {
    TaskRun& run = tasks_[task];
    for (const LinkUse& use : UsesOf(task)) {
      const long double bytes = FlowOf(task).bytes;
      result_.link_bytes[use.link.index()] += bytes * use.multiplicity;
      result_.link_step_ends[use.link.index()] += use.multiplicity;
    }
    ++run.steps_done;
    if (run.steps_done == FlowOf(task).steps) {
      EndTask(task);
    } else {
      run.state = State::kBetweenSteps;
    }
  }

  void EndTask(uint32_t task) {
    tasks_[task].state = State::kEnded;
    tasks_[task].end = now_;
    tasks_[task].due = kNever;
  }

  void SolveAllRates() {
    std::vector<long double> capacities;
    for (const ProgramLink& link : program_.links) {
      capacities.push_back(static_cast<long double>(link.capacity.value()) / 1e12L);
    }
    std::vector<uint32_t> moving;
    std::vector<std::span<const LinkUse>> uses;
    for (uint32_t task = 0; task < tasks_.size(); ++task) {
      if (tasks_[task].state != State::kMoving) continue;
      moving.push_back(task);
      uses.push_back(UsesOf(task));
    }
    const std::vector<long double> rates = FillProgressively(capacities, uses);
    for (size_t i = 0; i < moving.size(); ++i) {
      TaskRun& run = tasks_[moving[i]];
      run.rate = rates[i];
      // The same slack as in sim/transfer_network.h, so that halves are rounded alike.
      const long double slack = FlowOf(moving[i]).bytes * 0x1p-48L;
      run.due = now_ + std::llround((run.left + slack) / run.rate);
    }
  }

  int64_t NextDue() const {
    int64_t next = kNever;
    for (const TaskRun& run : tasks_) {
      if (run.state == State::kTimer || run.state == State::kMoving) next = std::min(next, run.due);
    }
    return next;
  }

  void MoveForwardTo(int64_t next) {
    const long double elapsed = static_cast<long double>(next - now_);
    for (uint32_t task = 0; task < tasks_.size(); ++task) {
      TaskRun& run = tasks_[task];
      if (run.state != State::kMoving) continue;
      run.left = std::max(0.0L, run.left - run.rate * elapsed);
      for (const LinkUse& use : UsesOf(task)) {
        result_.link_integral[use.link.index()] += run.rate * elapsed * use.multiplicity;
      }
    }
    now_ = next;
  }

  const Program& program_;
  std::vector<TaskRun> tasks_;
  std::vector<std::vector<uint32_t>> predecessors_;
  int64_t now_ = 0;
  ReferenceResult result_;
};

}  // namespace

ReferenceResult SimulateNaively(const Program& program) { return NaivePlayer(program).Play(); }

std::vector<long double> FillProgressively(std::span<const long double> capacities,
                                           const std::vector<std::span<const LinkUse>>& flows) {
  const long double infinity = std::numeric_limits<long double>::infinity();
  std::vector<long double> rates(flows.size(), infinity);
  std::vector<bool> stopped(flows.size(), false);
  for (;;) {
    // At which common rate is each link full, and which comes first?
    long double first = infinity;
    size_t full = 0;
    for (size_t link = 0; link < capacities.size(); ++link) {
      long double left = capacities[link];
      uint64_t growing = 0;
      for (size_t flow = 0; flow < flows.size(); ++flow) {
        for (const LinkUse& use : flows[flow]) {
          if (use.link.index() != link) continue;
          if (stopped[flow]) {
            left -= rates[flow] * use.multiplicity;
          } else {
            growing += use.multiplicity;
          }
        }
      }
      if (growing > 0 && left / growing < first) {
        first = left / growing;
        full = link;
      }
    }
    if (first == infinity) return rates;
    for (size_t flow = 0; flow < flows.size(); ++flow) {
      for (const LinkUse& use : flows[flow]) {
        if (use.link.index() != full || stopped[flow]) continue;
        stopped[flow] = true;
        rates[flow] = first;
      }
    }
  }
}

}  // namespace rehearse

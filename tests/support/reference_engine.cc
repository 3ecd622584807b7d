#include "tests/support/reference_engine.h"

#include <algorithm>
#include <cmath>
#include <limits>

#include "sim/base/error.h"

namespace rehearse {
namespace {

constexpr int64_t kNever = std::numeric_limits<int64_t>::max();

enum class State { kWaiting, kTimer, kComputing, kMoving, kBetweenSteps, kEnded };

struct TaskRun {
  State state = State::kWaiting;
  int64_t start = 0;
  int64_t end = 0;
  int64_t due = kNever;     // kTimer, kComputing, kMoving: when
  uint32_t steps_done = 0;  // flows
  // kComputing: picoseconds at full speed, and the speed. kMoving: bytes, and bytes per picosecond.
  long double left = 0;
  long double rate = 0;
  uint32_t set = 0;                 // kMoving: the use set
  long double left_before_set = 0;  // kMoving: when it took that set
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
    for (const ProgramLink& link : program.links) capacities_.push_back(link.capacity.value());
    result_.link_bytes.assign(program.links.size(), 0);
    result_.link_integral.assign(program.links.size(), 0);
    result_.link_step_ends.assign(program.links.size(), 0);
  }

  ReferenceResult Play() {
    for (;;) {
      ++result_.instants;
      for (const LinkChange& change : program_.link_changes) {
        if (change.time.picoseconds() != now_) continue;
        const long double nominal = program_.links[change.link.index()].capacity.value();
        capacities_[change.link.index()] = nominal * change.factor;
      }
      for (TaskRun& run : tasks_) {
        if (run.state == State::kMoving && run.due == now_) run.left = 0;
      }
      while (DoWhatIsDueNow()) {
      }
      ChooseSets();
      SolveAllRates();
      SetAllSpeeds();
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

  std::span<const LinkUse> Uses(uint32_t set) const {
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
          const int64_t duration = program_.delays[program_.tasks[task].payload].picoseconds();
          if (duration > 0 && OwnerOf(task) != Program::kNone) {
            run.state = State::kComputing;
            run.left = duration;
            run.due = kNever;  // known when the speeds are
          } else {
            run.state = State::kTimer;
            run.due = now_ + duration;
          }
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
      case State::kComputing:
        if (run.due != now_) return false;
        EndTask(task);
        return true;
      case State::kTimer:
        if (run.due != now_) return false;
        if (kind == TaskKind::kDelay) {
          EndTask(task);
        } else {
          run.state = State::kMoving;
          run.set = FlowOf(task).use_set;
          run.left = Uses(run.set).empty() ? 0 : FlowOf(task).bytes;
          run.left_before_set = run.left;
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

  // What a flow has moved over the set that it leaves, or ends on.
  void Credit(uint32_t task, long double bytes) {
    for (const LinkUse& use : Uses(tasks_[task].set)) {
      result_.link_bytes[use.link.index()] += bytes * use.multiplicity;
    }
  }

  void EndStep(uint32_t task) {
    TaskRun& run = tasks_[task];
    Credit(task, run.left_before_set);
    for (const LinkUse& use : Uses(run.set)) {
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

  bool HasFailed(uint32_t set) const {
    for (const LinkUse& use : Uses(set)) {
      if (capacities_[use.link.index()] == 0) return true;
    }
    return false;
  }

  // A flow takes its own set if it can, else the alternative if it can; else it stays where it is.
  void ChooseSets() {
    for (uint32_t task = 0; task < tasks_.size(); ++task) {
      TaskRun& run = tasks_[task];
      if (run.state != State::kMoving) continue;
      uint32_t choice = FlowOf(task).use_set;
      if (HasFailed(choice)) {
        const uint32_t alternative = program_.alternatives.empty()
                                         ? Program::kNone
                                         : program_.alternatives[program_.tasks[task].payload];
        choice = alternative == Program::kNone || HasFailed(alternative) ? run.set : alternative;
      }
      if (choice == run.set) continue;
      Credit(task, run.left_before_set - run.left);
      run.left_before_set = run.left;
      run.set = choice;
    }
  }

  void SolveAllRates() {
    std::vector<long double> capacities;
    for (const long double capacity : capacities_) capacities.push_back(capacity / 1e12L);
    std::vector<uint32_t> moving;
    std::vector<std::span<const LinkUse>> uses;
    for (uint32_t task = 0; task < tasks_.size(); ++task) {
      if (tasks_[task].state != State::kMoving) continue;
      tasks_[task].rate = 0;
      tasks_[task].due = kNever;
      if (HasFailed(tasks_[task].set)) continue;
      moving.push_back(task);
      uses.push_back(Uses(tasks_[task].set));
    }
    const std::vector<long double> rates = FillProgressively(capacities, uses);
    for (size_t i = 0; i < moving.size(); ++i) {
      TaskRun& run = tasks_[moving[i]];
      run.rate = rates[i] * FactorOf(moving[i]);
      // The same slack as in sim/engine/transfer_network.h, so that halves are rounded alike.
      const long double slack = FlowOf(moving[i]).bytes * 0x1p-48L;
      run.due = now_ + std::llround((run.left + slack) / run.rate);
    }
  }

  uint32_t OwnerOf(uint32_t task) const {
    const Task& what = program_.tasks[task];
    if (what.kind != TaskKind::kDelay || program_.delay_owners.empty()) return Program::kNone;
    return program_.delay_owners[what.payload].processor;
  }

  std::span<const uint32_t> PartiesOf(uint32_t task) const {
    const Task& what = program_.tasks[task];
    if (what.kind != TaskKind::kFlow || program_.party_sets.empty()) return {};
    const uint32_t set = program_.party_sets[what.payload];
    if (set == Program::kNone) return {};
    return std::span(program_.parties)
        .subspan(program_.party_set_begin[set],
                 program_.party_set_begin[set + 1] - program_.party_set_begin[set]);
  }

  uint32_t DelaysOn(uint32_t processor) const {
    uint32_t count = 0;
    for (uint32_t task = 0; task < tasks_.size(); ++task) {
      count += tasks_[task].state == State::kComputing && OwnerOf(task) == processor;
    }
    return count;
  }

  bool Communicates(uint32_t processor) const {
    for (uint32_t task = 0; task < tasks_.size(); ++task) {
      if (tasks_[task].state == State::kWaiting || tasks_[task].state == State::kEnded) continue;
      const std::span<const uint32_t> parties = PartiesOf(task);
      if (std::find(parties.begin(), parties.end(), processor) != parties.end()) return true;
    }
    return false;
  }

  // The share of a core that a task on the processor gets.
  long double CoreShare(uint32_t processor) const {
    const uint32_t host = program_.processors[processor].host;
    if (host == Program::kNone) return 1;
    long double active = 0;
    for (uint32_t i = 0; i < program_.processors.size(); ++i) {
      if (program_.processors[i].host != host) continue;
      active += program_.processors[i].copies * (DelaysOn(i) + Communicates(i));
    }
    return active == 0 ? 1 : std::min(1.0L, program_.host_cores[host] / active);
  }

  long double FactorOf(uint32_t flow_task) const {
    long double factor = 1;
    for (const uint32_t processor : PartiesOf(flow_task)) {
      long double own = CoreShare(processor);
      if (DelaysOn(processor) > 0) own /= 1.0L + program_.processors[processor].slowdown;
      factor = std::min(factor, own);
    }
    return factor;
  }

  void SetAllSpeeds() {
    for (uint32_t task = 0; task < tasks_.size(); ++task) {
      TaskRun& run = tasks_[task];
      if (run.state != State::kComputing) continue;
      const uint32_t delay = program_.tasks[task].payload;
      const DelayOwner& owner = program_.delay_owners[delay];
      run.rate = CoreShare(owner.processor);
      if (Communicates(owner.processor)) run.rate /= 1.0L + owner.slowdown;
      const long double slack = std::min(0.25L, program_.delays[delay].picoseconds() * 0x1p-48L);
      run.due = now_ + std::llround((run.left + slack) / run.rate);
    }
  }

  int64_t NextDue() const {
    int64_t next = kNever;
    bool all_ended = true;
    for (const TaskRun& run : tasks_) {
      all_ended = all_ended && run.state == State::kEnded;
      if (run.state == State::kTimer || run.state == State::kComputing ||
          run.state == State::kMoving) {
        next = std::min(next, run.due);
      }
    }
    for (const LinkChange& change : program_.link_changes) {
      if (change.time.picoseconds() > now_) next = std::min(next, change.time.picoseconds());
    }
    return all_ended ? kNever : next;
  }

  void MoveForwardTo(int64_t next) {
    const long double elapsed = static_cast<long double>(next - now_);
    for (uint32_t task = 0; task < tasks_.size(); ++task) {
      TaskRun& run = tasks_[task];
      if (run.state != State::kMoving && run.state != State::kComputing) continue;
      run.left = std::max(0.0L, run.left - run.rate * elapsed);
      if (run.state == State::kComputing) continue;
      for (const LinkUse& use : Uses(run.set)) {
        result_.link_integral[use.link.index()] += run.rate * elapsed * use.multiplicity;
      }
    }
    now_ = next;
  }

  const Program& program_;
  std::vector<TaskRun> tasks_;
  std::vector<std::vector<uint32_t>> predecessors_;
  std::vector<long double> capacities_;  // now, bytes per second
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

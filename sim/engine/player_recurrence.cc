// How a Player finds out that its state has been there before, some copies ago
// (sim/engine/recurrence.h).
#include <algorithm>
#include <bit>

#include "sim/engine/player.h"

namespace rehearse {

void Player::LookForRecurrence() {
  const uint32_t copies = recurrence_.Compare(State(), now_);
  if (copies > 0) {
    const Time since = recurrence_.TimeBefore(copies);
    if (AreCopies(copies, since)) recurrence_.Accept({now_, now_ - since, copies});
  }
  recurrence_.GoOn();
}

// Of all ranks, in numbers that count from the marker's copy and from now. Nothing if a rank has
// not come to its copies yet, or to their end already.
std::optional<std::vector<uint64_t>> Player::State() {
  if (periods_.HasGroups()) return std::nullopt;
  std::vector<uint64_t> state;
  for (size_t rank = 0; rank < program_.copies.size(); ++rank) {
    if (!AddState(rank, &state)) return std::nullopt;
  }
  return state;
}

// An op of a stream comes again in the next copy, so where as many tasks as a copy has are
// untouched, all that follow are.
bool Player::AddState(size_t rank, std::vector<uint64_t>* state) {
  const CopiedTasks& copies = program_.copies[rank];
  uint32_t& first = first_unended_[rank];
  while (first < copies.TaskEnd() && HasEnded(first)) ++first;
  if (first < copies.tasks.first) return false;
  state->push_back(first - copies.tasks.first - recurrence_.copy() * copies.tasks.size);
  uint32_t untouched = 0;
  for (uint32_t task = first; untouched < copies.tasks.size; ++task) {
    if (task == copies.TaskEnd()) return false;
    if (tasks_[task].waiting_for > 0) {
      ++untouched;
      continue;
    }
    untouched = 0;
    state->push_back(task - first);
    if (HasEnded(task)) continue;
    AddStateOf(task, state);
  }
  state->push_back(Program::kNone);
  return true;
}

// Of a task that is under way, or whose beginning and end are known ahead.
void Player::AddStateOf(uint32_t task, std::vector<uint64_t>* state) const {
  const auto add_time = [&](Time time) {
    state->push_back(static_cast<uint64_t>((time - now_).picoseconds()));
  };
  const TaskState& own = tasks_[task];
  const bool ends = own.end != kNotDone;
  const bool is_due = queue_.Has(task);
  state->push_back(1 + (ends ? 2u : 0u) + (is_due ? 4u : 0u));
  add_time(std::max(own.start, now_));
  if (ends) add_time(own.end);
  if (is_due) add_time(queue_.TimeOf(task));
  const Task& what = program_.tasks[task];
  if (what.kind == TaskKind::kFlow) {
    const FlowRun& run = flows_[what.payload];
    state->push_back(static_cast<uint64_t>(run.phase));
    state->push_back(run.steps_done);
    if (run.phase != FlowPhase::kMoving) return;
    const TransferNetwork::Motion motion = network_.MotionOf(what.payload);
    state->push_back(std::bit_cast<uint64_t>(motion.speed));
    state->push_back(std::bit_cast<uint64_t>(motion.left));
    state->push_back(motion.use_set);
    add_time(motion.since);
  } else if (what.kind != TaskKind::kJoin && !ends) {
    const uint32_t processor = interference_ ? SeriesOf(task).processor : kNone;
    if (processor == kNone) return;
    const Interference::Progress progress = interference_->ProgressOf(task, processor);
    state->push_back(progress.delay * 2 + (progress.undisturbed ? 1u : 0u));
    state->push_back(std::bit_cast<uint64_t>(progress.left));
    state->push_back(std::bit_cast<uint64_t>(progress.speed));
    add_time(progress.since);
    add_time(progress.end);
  }
}

// ---- what has happened since belongs to copies --------------------------------------------------

// Whether what has ended since then are copies of what ended before, so that none of it leads to
// what comes after all copies, and none of that has begun.
bool Player::AreCopies(uint32_t copies, Time since) const {
  for (size_t rank = 0; rank < program_.copies.size(); ++rank) {
    const CopiedTasks& own = program_.copies[rank];
    const uint32_t shift = copies * own.tasks.size;
    // No task from here on had ended before the state was there; those before are older.
    const uint32_t first = first_unended_[rank];
    if (first < own.tasks.first + 2 * shift) return false;
    uint32_t untouched = 0;
    for (uint32_t task = first - shift; untouched < own.tasks.size; ++task) {
      const bool has_ended = HasEnded(task);
      untouched = has_ended ? 0 : untouched + 1;
      if (has_ended && tasks_[task].end > since && !IsCopy(task, task - shift, copies))
        return false;
    }
    for (uint32_t task = own.TaskEnd(); task < own.tasks.end; ++task) {
      if (tasks_[task].waiting_for == 0) return false;
    }
  }
  return true;
}

bool Player::IsCopy(uint32_t task, uint32_t before, uint32_t copies) const {
  const Task& what = program_.tasks[task];
  if (what.kind != program_.tasks[before].kind ||
      program_.predecessor_count[task] != program_.predecessor_count[before])
    return false;
  if (what.kind == TaskKind::kFlow) {
    const uint32_t flow_before = program_.tasks[before].payload;
    if (!IsCopyOfFlow(program_.flows[what.payload], program_.flows[flow_before], copies))
      return false;
    const auto parties = [&](uint32_t flow) {
      return program_.party_sets.empty() ? kNone : program_.party_sets[flow];
    };
    if (parties(what.payload) != parties(flow_before)) return false;
  } else if (what.kind != TaskKind::kJoin && !HaveSameDelays(SeriesOf(task), SeriesOf(before))) {
    return false;
  }
  const auto successors = [&](uint32_t of) {
    return std::pair(program_.successors.begin() + program_.successor_begin[of],
                     program_.successors.begin() + program_.successor_begin[of + 1]);
  };
  const auto [first, last] = successors(task);
  const auto [first_before, last_before] = successors(before);
  return std::equal(first, last, first_before, last_before,
                    [&](TaskId a, TaskId b) { return IsCopyOfTask(a, b, copies); });
}

bool Player::IsCopyOfFlow(const Flow& flow, const Flow& before, uint32_t copies) const {
  return flow.bytes == before.bytes && flow.latency == before.latency &&
         flow.steps == before.steps && flow.use_set == before.use_set &&
         IsCopyOfTask(flow.upstream, before.upstream, copies) &&
         IsCopyOfTask(flow.downstream, before.downstream, copies);
}

// Both among the copies of a rank.
bool Player::IsCopyOfTask(TaskId task, TaskId before, uint32_t copies) const {
  if (!task.IsSet() || !before.IsSet()) return task.IsSet() == before.IsSet();
  const auto own = std::partition_point(
      program_.copies.begin(), program_.copies.end(),
      [&](const CopiedTasks& of_rank) { return of_rank.tasks.end <= task.index(); });
  return own != program_.copies.end() && before.index() >= own->tasks.first &&
         task.index() < own->TaskEnd() && task.index() == before.index() + copies * own->tasks.size;
}

bool Player::HaveSameDelays(const Series& a, const Series& b) const {
  if (a.processor != b.processor) return false;
  if (a.first == b.first) return a.last == b.last;
  if (a.size() != b.size()) return false;
  for (uint32_t i = 0; i < a.size(); ++i) {
    if (program_.delays[a.first + i] != program_.delays[b.first + i]) return false;
    if (program_.delay_owners.empty()) continue;
    if (program_.delay_owners[a.first + i].slowdown != program_.delay_owners[b.first + i].slowdown)
      return false;
  }
  return true;
}

uint64_t Player::TransfersLeftOut() const {
  uint64_t transfers = 0;
  for (const CopiedTasks& of_rank : program_.copies) {
    for (uint32_t flow = of_rank.FlowEnd() - of_rank.flows.size; flow < of_rank.FlowEnd(); ++flow) {
      if (program_.flows[flow].bytes > 0) transfers += program_.flows[flow].steps;
    }
  }
  return options_.copies_left_out * transfers;
}

}  // namespace rehearse

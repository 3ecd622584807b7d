// The Program: tasks, the edges between them, and the links that flows share. This is what the
// engine plays; it knows neither GPUs nor layers, only ids.
//
// A task is a join (no duration), a delay (a fixed duration: a kernel, or a closed-form
// collective), a series of delays that run one after the other (kernels of which only the last is
// waited for), or a flow (bytes through links at the max-min fair rate). A task starts when all its
// predecessors have ended. A series means the same as a task for each of its delays; it only costs
// less, and tasks that repeat may share it.
//
// A flow runs `steps` times: each step first waits `latency`, then moves `bytes` at its rate. With
// an upstream, step s+1 starts only when its own step s and the upstream's step s have ended (step
// 0 needs no upstream): a rank of a ring sends on what it has received. The upstream must have the
// same number of steps. `downstream` is the inverse: a flow is the upstream of at most one other,
// and Build() fills in the direction that was not given.
// A flow whose use set is empty moves its bytes at once. A flow may be its own upstream: a ring
// folded to one edge.
//
// Four things may be added; what is not used is an empty vector and costs nothing:
// - Interference. A processor (a rank's device) computes while a delay that it owns runs, and
//   communicates while a flow that it is a party of is under way, from the task's start to its end,
//   latency and waiting included (a collective's kernel holds its share of the device all the
//   while). A delay runs at speed
//     s / (1 + slowdown of the delay)         while its processor communicates, else s,
//   and a flow moves at its max-min rate (on latency there is no effect) times the smallest, over
//   its parties, of
//     s / (1 + slowdown of the processor)     while it computes, else s.
//   The share that a slowed flow does not use stays booked: nobody else gets it. s is 1, or, on a
//   host, min(1, cores / k) with k the delays that its processors run plus the processors that
//   communicate (MPI polls), each counted `copies` times.
// - Link changes: from `time` on the link has `factor` times its capacity; 0 is a failed link.
// - Alternatives: when the flow begins to move the bytes of a step, and whenever a link changes, it
//   takes its use set if none of its links has failed, else the alternative if none of its links
//   has; else it stands still. What it has moved stays moved, and is booked to the links that it
//   crossed.
//
// A program may also say which of its tasks are copies of each other (CopiedTasks). This changes
// nothing in what it means, but lets a program with fewer copies tell how one with more goes
// (sim/engine/recurrence.h).
//
// Plain data; built by ProgramBuilder, immutable while it is simulated.
#pragma once

#include <cstddef>
#include <cstdint>
#include <string>
#include <utility>
#include <vector>

#include "sim/base/clock.h"
#include "sim/base/id.h"
#include "sim/base/quantity.h"

namespace rehearse {

struct TaskTag {};
using TaskId = Id<TaskTag>;
struct LinkTag {};
using LinkId = Id<LinkTag>;  // position in Program::links

enum class TaskKind : uint8_t { kJoin, kDelay, kSeries, kFlow };

struct Task {
  TaskKind kind = TaskKind::kJoin;
  uint32_t payload = 0;  // position in delays, series or flows
};

// delays[first .. last], of one processor or none. Several series may have the same delays.
struct Series {
  uint32_t first = 0;
  uint32_t last = 0;
  Time duration;                            // of all, at full speed
  uint32_t processor = Id<TaskTag>::kNone;  // position in Program::processors, or none

  uint32_t size() const { return last - first + 1; }
};

// How often a flow crosses a link: its rate r takes multiplicity·r of the link's capacity.
struct LinkUse {
  LinkId link;
  uint32_t multiplicity = 1;
};

struct Flow {
  double bytes = 0;  // each step, on each edge; may be zero
  Time latency;      // each step, before the bytes move
  uint32_t steps = 1;
  uint32_t use_set = 0;  // position in use_sets
  TaskId upstream;       // a flow task, or unset
  TaskId downstream;     // a flow task, or unset
};

struct ProgramLink {
  std::string name;
  std::string kind;  // "nvlink", "network", ...
  BytesPerSecond capacity;
};

// What to record: op `op` of `rank` was ready when `ready` ended (its own predecessors were done),
// began when `begin` started and ended when `end` ended. For a compute op all three are one task;
// `ready` unset, or the same task as `begin`, means that the op was ready when it began. If that
// task is a series, the spec stands for the spans of as many ops from `op` on, one for each delay.
struct SpanSpec {
  uint32_t rank = 0;
  uint32_t op = 0;
  TaskId ready;
  TaskId begin;
  TaskId end;
};

struct Processor {
  uint32_t host = Id<TaskTag>::kNone;  // position in Program::host_cores, or none
  double slowdown = 0;                 // of its flows while it computes
  uint32_t copies = 1;                 // processors like it, on the same host, that it stands for
};

struct DelayOwner {
  uint32_t processor = Id<TaskTag>::kNone;  // position in Program::processors, or none
  double slowdown = 0;                      // of the delay while its processor communicates
};

struct LinkChange {
  Time time;
  LinkId link;
  double factor = 1;  // of the capacity in Program::links; 0: failed
};

// Of the tasks [begin, end), those from `first` on are `count` equal pieces, one after the other:
// micro-batches of a rank, which do the same with the same neighbours. Likewise for flows, which
// are numbered along with their tasks.
struct CopiedTasks {
  struct Range {
    uint32_t begin = 0;
    uint32_t first = 0;
    uint32_t size = 0;  // of a piece
    uint32_t end = 0;
  };
  Range tasks;
  Range flows;
  uint32_t count = 0;

  // Where the pieces end.
  uint32_t TaskEnd() const { return tasks.first + count * tasks.size; }
  uint32_t FlowEnd() const { return flows.first + count * flows.size; }
};

struct Program {
  static constexpr uint32_t kNone = 0xffffffffu;

  std::vector<ProgramLink> links;
  std::vector<Task> tasks;
  std::vector<Time> delays;
  std::vector<Series> series;
  std::vector<Flow> flows;
  std::vector<uint32_t> use_set_begin;  // use set i is uses[use_set_begin[i] .. use_set_begin[i+1])
  std::vector<LinkUse> uses;
  std::vector<uint32_t> successor_begin;  // of task i: successors[successor_begin[i] .. [i+1])
  std::vector<TaskId> successors;
  std::vector<uint32_t> predecessor_count;
  std::vector<SpanSpec> spans;  // sorted by rank, then op

  std::vector<double> host_cores;
  std::vector<Processor> processors;
  // Empty, or one per delay; who owns those of a series is said there alone.
  std::vector<DelayOwner> delay_owners;
  std::vector<uint32_t> party_set_begin;  // party set i is parties[party_set_begin[i] .. [i+1])
  std::vector<uint32_t> parties;          // processors
  std::vector<uint32_t> party_sets;       // empty, or one per flow: a party set, or kNone

  std::vector<LinkChange> link_changes;  // sorted by time; for one link at one time the last counts
  std::vector<uint32_t> alternatives;    // empty, or one per flow: a use set, or kNone

  std::vector<CopiedTasks> copies;  // in the order of tasks; of all of them, or empty
};

// Builds a Program. Ids are given in call order. Not thread-safe.
class ProgramBuilder {
 public:
  // Makes room for this many, if the caller knows.
  void Reserve(size_t tasks, size_t edges, size_t spans);

  // CHECKs a positive, finite capacity.
  LinkId AddLink(ProgramLink link);
  // Returns the position of the set. CHECKs that the links exist, that none is named twice and that
  // multiplicities are positive.
  uint32_t AddUseSet(const std::vector<LinkUse>& uses);
  TaskId AddJoin();
  TaskId AddDelay(Time duration);
  // Returns its position. `owners`: one for each delay, all of one processor, or none at all.
  // CHECKs that, and that there are at least two delays.
  uint32_t AddSeries(const std::vector<Time>& delays, const std::vector<DelayOwner>& owners = {});
  // Of the same delays, but of this processor, or none. Returns its position.
  uint32_t AddSeriesLike(uint32_t series, uint32_t processor);
  TaskId AddTaskOfSeries(uint32_t series);
  // CHECKs that the use set exists, bytes and latency are not negative and there is at
  // least one step.
  TaskId AddFlow(const Flow& flow);
  // Makes `upstream` and `downstream` neighbours in a chain of steps. CHECKs equal step counts and
  // that neither has such a neighbour already. A flow may be chained to itself.
  void Chain(TaskId upstream, TaskId downstream);
  uint32_t task_count() const { return static_cast<uint32_t>(program_.tasks.size()); }
  uint32_t flow_count() const { return static_cast<uint32_t>(program_.flows.size()); }
  void AddEdge(TaskId before, TaskId after);
  void AddSpan(const SpanSpec& span);

  // Positions in host_cores, processors and the party sets. CHECK that cores are positive,
  // slowdowns finite and not negative, copies positive, and that what they name exists.
  uint32_t AddHost(double cores);
  uint32_t AddProcessor(const Processor& processor);
  uint32_t AddPartySet(const std::vector<uint32_t>& processors);
  // CHECK that the task is a delay (or a flow), and that what they name exists.
  void SetOwner(TaskId delay, const DelayOwner& owner);
  void SetParties(TaskId flow, uint32_t party_set);

  // CHECKs that the link exists, the time is not negative and the factor finite and not negative.
  void AddLinkChange(const LinkChange& change);
  // CHECKs that the task is a flow, and that neither its use set nor the alternative is empty.
  void SetAlternative(TaskId flow, uint32_t use_set);

  // CHECKs that they follow one another and have pieces that are not empty.
  void SetCopies(std::vector<CopiedTasks> copies);

  // CHECKs that ids exist; sorts the spans. The builder is empty afterwards.
  Program Build();

 private:
  TaskId AddTask(TaskKind kind, size_t payload);
  void CheckOwner(const DelayOwner& owner) const;
  Flow& FlowOf(TaskId task);
  bool IsEmptyUseSet(uint32_t use_set) const;
  void CompleteChains();
  void GroupEdgesByPredecessor();

  Program program_;
  std::vector<std::pair<TaskId, TaskId>> edges_;
  std::vector<LinkId> scratch_links_;
};

}  // namespace rehearse

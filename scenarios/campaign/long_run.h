// One training of weeks, by events: what fails and when is drawn with a seed, and everything
// between two events is arithmetic, so that a year takes less than a millisecond.
//
// Training goes on in stretches of `interval`; behind each it stands still for `stall` seconds
// while a checkpoint is taken, and `write` seconds later a restart may return to it. The next is
// not taken before the last is written. Behind the end of training there is a checkpoint, too.
//
// Parts fail whatever their age (exponentially), also while the run is down, but not while it waits
// for a machine. A failure takes `detection` and `restart` seconds, and training since the
// checkpoint is lost; if another one comes in the meantime, both begin again. A machine that has
// failed is repaired for `repair` seconds while a spare replaces it; without one the run waits for
// the first repair, or goes on with as many replicas as are whole, each step of the same batch
// taking that much longer, until enough machines are there. What is planned comes after a
// checkpoint, and loses nothing; so does a restart that replaces a straggler, or brings back
// replicas.
//
// Left out: failures of several machines at once, restarts that fail for no new reason, and that a
// switch takes all machines under it.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <optional>
#include <vector>

namespace rehearse {

enum class PartKind : uint8_t {
  kGpu,
  kHbm,
  kNic,
  kCable,
  kSwitch,
  kHost,
  kSoftware,
  kPlanned,
};
inline constexpr size_t kPartKinds = 8;
const char* Name(PartKind kind);  // "GPU", as people say it
// Whether its failure takes the machine out until it is repaired.
bool TakesMachine(PartKind kind);

// Times in seconds, rates per second.
struct RunModel {
  double training = 0;  // of all steps, on all replicas
  double interval = 0;  // training between two checkpoints
  double stall = 0;
  double write = 0;
  double save = 0;  // before what is planned
  double detection = 0;
  double restart = 0;
  double repair = 0;
  std::array<double, kPartKinds> rates = {};  // of all parts of a kind together
  double straggler_rate = 0;                  // likewise
  double straggler_slowdown = 0;
  double straggler_found_after = 0;
  uint32_t machines = 1;
  std::optional<uint32_t> spares = {};  // nothing: always one left
  bool elastic = false;
  uint32_t replicas = 1;

  // Of what loses training.
  double FailuresPerSecond() const;
};

// What the time went into; it adds up to all of it.
struct RunTimes {
  double useful = 0;       // training that was kept, as quick as the step is
  double checkpoints = 0;  // training stood still for them
  double lost = 0;         // training that had to be done again
  double slow = 0;         // longer steps: stragglers, fewer replicas
  double detection = 0;
  double restart = 0;
  double waiting = 0;  // for a machine

  double Elapsed() const {
    return useful + checkpoints + lost + slow + detection + restart + waiting;
  }
};

// Where the run was when something happened to it.
struct RunMark {
  double at = 0;        // seconds since its begin
  double training = 0;  // done by then
  double kept = 0;      // of it, after the restart
  PartKind kind = PartKind::kGpu;
};

struct RunRecord {
  bool is_done = false;  // false: it does not get ahead, and was given up
  RunTimes times;
  std::array<uint64_t, kPartKinds> interruptions = {};
  uint64_t stragglers = 0;
  uint32_t most_in_repair = 0;  // machines at once
  std::vector<RunMark> marks;   // if asked for

  uint64_t Interruptions() const;
};

RunRecord PlayRun(const RunModel& model, uint64_t seed, bool keeps_marks = false);

}  // namespace rehearse

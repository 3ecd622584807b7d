#include "scenarios/campaign/long_run.h"

#include <algorithm>
#include <cmath>
#include <limits>
#include <numeric>

#include "scenarios/campaign/random_times.h"
#include "sim/base/error.h"

namespace rehearse {
namespace {

constexpr double kNever = std::numeric_limits<double>::infinity();

// A run that takes so many times its training does not get ahead.
constexpr double kHopeless = 200;
constexpr uint64_t kMostEvents = 5'000'000;

// Training that is not kept yet: as quick as the step is, and what it took beyond that.
struct Stretch {
  double training = 0;
  double slow = 0;

  double Time() const { return training + slow; }
};

// Behind a stretch of training, which is left out where the end is so near.
constexpr double kRounding = 1e-9;

class RunPlayer {
 public:
  RunPlayer(const RunModel& model, uint64_t seed, bool keeps_marks)
      : model_(model),
        random_(seed),
        keeps_marks_(keeps_marks),
        replicas_(model.replicas),
        to_failure_(random_.Exponential()) {}

  RunRecord Play() {
    while (!IsDone()) {
      if (IsHopeless()) return record_;
      const double until = std::min(NextFound(), NextReplica());
      double left = std::min(until - now_, TimeToFailure());
      const bool is_failure = left == TimeToFailure();
      Train(&left);
      if (IsDone()) break;
      if (is_failure) {
        Strike(DrawKind());
      } else {
        Pause();
      }
    }
    record_.is_done = true;
    return record_;
  }

 private:
  bool IsDone() const { return is_taken_ && write_left_ == 0; }
  bool IsHopeless() const { return now_ > kHopeless * model_.training || events_ > kMostEvents; }

  // ---- What fails -------------------------------------------------------------------------------

  double Rate() const {
    double sum = model_.straggler_rate;
    for (const double rate : model_.rates) sum += rate;
    return sum * replicas_ / model_.replicas;
  }
  double TimeToFailure() const {
    const double rate = Rate();
    return rate > 0 ? to_failure_ / rate : kNever;
  }
  // Nothing: a GPU became slow.
  std::optional<PartKind> DrawKind() {
    ++events_;
    to_failure_ = random_.Exponential();
    double sum = model_.straggler_rate;
    for (const double rate : model_.rates) sum += rate;
    double drawn = random_.Share() * sum - model_.straggler_rate;
    if (drawn < 0) return std::nullopt;
    size_t kind = 0;
    for (size_t i = 0; i < kPartKinds && drawn >= 0; ++i) {
      if (model_.rates[i] > 0) kind = i;
      drawn -= model_.rates[i];
    }
    return static_cast<PartKind>(kind);
  }

  void Strike(std::optional<PartKind> kind) {
    if (!kind) {
      AddStraggler();
      return;
    }
    const double before = kept_ + snapshot_.training + since_.training;
    Count(*kind);
    if (*kind == PartKind::kPlanned) {
      Keep();
      Mark(*kind, before);
      if (!IsDone()) GoDown(false);
      return;
    }
    record_.times.lost += snapshot_.Time() + since_.Time();
    snapshot_ = since_ = {};
    write_left_ = stall_left_ = 0;
    is_taken_ = false;
    Mark(*kind, before);
    GoDown(true);
  }

  void Count(PartKind kind) {
    ++record_.interruptions[static_cast<size_t>(kind)];
    if (TakesMachine(kind)) SendToRepair();
  }
  void Mark(PartKind kind, double before) {
    if (keeps_marks_) record_.marks.push_back({now_, before, kept_, kind});
  }

  // ---- Machines ---------------------------------------------------------------------------------

  void SendToRepair() {
    Repaired();
    in_repair_.push_back(now_ + model_.repair);  // in order, as all take as long
    record_.most_in_repair =
        std::max(record_.most_in_repair, static_cast<uint32_t>(in_repair_.size() - repaired_));
    if (repaired_ > kMostRepaired) {
      in_repair_.erase(in_repair_.begin(), in_repair_.begin() + static_cast<ptrdiff_t>(repaired_));
      repaired_ = 0;
    }
  }
  void Repaired() {
    while (repaired_ < in_repair_.size() && in_repair_[repaired_] <= now_) ++repaired_;
  }
  uint64_t Machines() {
    Repaired();
    if (!model_.spares) return model_.machines;
    const uint64_t all = uint64_t{model_.machines} + *model_.spares;
    return std::min<uint64_t>(model_.machines, all - std::min(all, in_repair_.size() - repaired_));
  }
  // That are whole, of machines that can be put together anew.
  uint32_t WholeReplicas() {
    const uint64_t machines = Machines();
    if (machines == model_.machines) return model_.replicas;
    if (!model_.elastic) return 0;
    return static_cast<uint32_t>(machines * model_.replicas / model_.machines);
  }
  // When a repair brings more of them.
  double NextReplica() {
    if (replicas_ == model_.replicas) return kNever;
    if (WholeReplicas() > replicas_) return now_;
    for (size_t i = repaired_; i < in_repair_.size(); ++i) {
      const uint64_t all = uint64_t{model_.machines} + *model_.spares;
      const uint64_t there = std::min<uint64_t>(model_.machines, all - (in_repair_.size() - 1 - i));
      if (there * model_.replicas / model_.machines > replicas_) return in_repair_[i];
    }
    return now_;
  }

  // ---- Stragglers -------------------------------------------------------------------------------

  void AddStraggler() {
    ++record_.stragglers;
    stragglers_.push_back(now_ + model_.straggler_found_after);
  }
  double NextFound() const { return stragglers_.empty() ? kNever : stragglers_.front(); }
  double Slowness() const {
    const double slow = stragglers_.empty() ? 1 : 1 + model_.straggler_slowdown;
    return slow * model_.replicas / replicas_;
  }

  // ---- Down -------------------------------------------------------------------------------------

  // Lets time pass in which training stands still. Returns whether something failed meanwhile.
  bool Pass(double time, double* into) {
    while (TimeToFailure() < time) {
      const double before = TimeToFailure();
      time -= before;
      now_ += before;
      *into += before;
      const std::optional<PartKind> kind = DrawKind();
      if (!kind) {
        AddStraggler();
      } else if (*kind != PartKind::kPlanned) {
        Count(*kind);
        Mark(*kind, kept_);
        return true;
      }
    }
    to_failure_ -= time * Rate();
    now_ += time;
    *into += time;
    return false;
  }

  void GoDown(bool has_failed) {
    while (!IsHopeless()) {
      if (has_failed && Pass(model_.detection, &record_.times.detection)) continue;
      has_failed = true;
      while (WholeReplicas() == 0) {
        record_.times.waiting += in_repair_[repaired_] - now_;
        now_ = in_repair_[repaired_];
      }
      replicas_ = WholeReplicas();
      if (!Pass(model_.restart, &record_.times.restart)) return;
    }
  }

  // Stops after a checkpoint, to replace stragglers that were found or to have more replicas.
  void Pause() {
    Keep();
    while (NextFound() <= now_) {
      stragglers_.erase(stragglers_.begin());
      SendToRepair();
    }
    if (!IsDone()) GoDown(false);
  }

  // ---- Training ---------------------------------------------------------------------------------

  double Left() const { return model_.training - kept_ - snapshot_.training; }
  double Segment() const {
    const double left = Left();
    return left <= model_.interval * (1 + kRounding) ? left : model_.interval;
  }

  // A checkpoint of where training is.
  void Keep() {
    now_ += model_.save;
    record_.times.checkpoints += model_.save;
    Durable(&snapshot_);
    Durable(&since_);
    write_left_ = stall_left_ = 0;
    is_taken_ = Left() <= kRounding * model_.interval;
  }
  void Durable(Stretch* stretch) {
    kept_ += stretch->training;
    record_.times.useful += stretch->training;
    record_.times.slow += stretch->slow;
    *stretch = {};
  }

  // Goes on for so many seconds, or to the end.
  void Train(double* left) {
    const double all = *left;
    const double rate = Rate();
    const double begin = now_;
    const double slowness = Slowness();
    while (*left > 0 && !IsDone()) {
      if (is_taken_) {  // the last checkpoint is being written
        Write(Spend(left, write_left_, &record_.times.checkpoints));
      } else if (stall_left_ > 0) {
        stall_left_ -= Spend(left, stall_left_, &record_.times.checkpoints);
        if (stall_left_ == 0) TakeSnapshot();
      } else if (since_.training >= Segment()) {
        if (write_left_ > 0) {
          Write(Spend(left, write_left_, &record_.times.checkpoints));
        } else if (model_.stall > 0) {
          stall_left_ = model_.stall;
        } else {
          TakeSnapshot();
        }
      } else if (!SkipCycles(left, slowness)) {
        Advance(left, slowness);
      }
    }
    to_failure_ = std::max(0.0, to_failure_ - (std::min(all, now_ - begin)) * rate);
  }

  // Up to `wanted` seconds of what is left; exactly those if there are as many.
  double Spend(double* left, double wanted, double* into) {
    const double time = std::min(*left, wanted);
    *left -= time;
    now_ += time;
    if (into != nullptr) *into += time;
    return time;
  }
  void Write(double time) {
    write_left_ -= time;
    if (write_left_ == 0) Durable(&snapshot_);
  }
  void TakeSnapshot() {
    is_taken_ = Left() - since_.training <= kRounding * model_.interval;
    snapshot_ = since_;
    since_ = {};
    write_left_ = model_.write;
    if (write_left_ == 0) Durable(&snapshot_);
  }
  void Advance(double* left, double slowness) {
    const double segment = Segment();
    const double wanted = (segment - since_.training) * slowness;
    const bool writes_end_first = write_left_ > 0 && write_left_ < wanted;
    const double limit = writes_end_first ? write_left_ : wanted;
    const double time = Spend(left, limit, nullptr);
    const double done = time / slowness;
    since_.training = time == wanted ? segment : since_.training + done;
    since_.slow += time - done;
    if (write_left_ > 0) Write(time);
  }

  // Whole cycles of training and checkpoint at once, except the last ones. Only right behind a
  // checkpoint, so that all are alike.
  bool SkipCycles(double* left, double slowness) {
    if (since_.training > 0 || write_left_ != model_.write) return false;
    const double segment = model_.interval * slowness;
    const double wait = std::max(0.0, model_.write - segment);
    const double cycle = segment + wait + model_.stall;
    constexpr double kWhole = 0x1p52;
    const double cycles =
        std::min(std::floor(*left / cycle), std::floor(Left() / model_.interval)) - 2;
    if (!(cycles >= 1) || cycles > kWhole) return false;
    const Stretch each = {model_.interval, segment - model_.interval};
    Durable(&snapshot_);
    const double kept = model_.write > 0 ? cycles - 1 : cycles;
    Stretch all = {kept * each.training, kept * each.slow};
    Durable(&all);
    if (model_.write > 0) snapshot_ = each;
    record_.times.checkpoints += cycles * (wait + model_.stall);
    *left -= cycles * cycle;
    now_ += cycles * cycle;
    return true;
  }

  static constexpr size_t kMostRepaired = 1024;

  const RunModel& model_;
  RandomTimes random_;
  const bool keeps_marks_;
  RunRecord record_;
  uint64_t events_ = 0;
  double now_ = 0;
  double kept_ = 0;                      // training that a restart returns to
  Stretch snapshot_ = {};                // that the checkpoint being written has
  Stretch since_ = {};                   // behind it
  double stall_left_ = 0;                // of the checkpoint being taken
  double write_left_ = 0;                // of the one being written
  bool is_taken_ = false;                // a checkpoint of the end
  uint32_t replicas_;                    // in use
  double to_failure_;                    // exponential, used up at the rate of failures
  std::vector<double> in_repair_ = {};   // when each is done
  size_t repaired_ = 0;                  // of those
  std::vector<double> stragglers_ = {};  // when each is found
};

}  // namespace

const char* Name(PartKind kind) {
  static constexpr const char* kNames[] = {"GPU",    "HBM",  "NIC",      "cable",
                                           "switch", "host", "software", "planned"};
  return kNames[static_cast<size_t>(kind)];
}

bool TakesMachine(PartKind kind) {
  switch (kind) {
    case PartKind::kGpu:
    case PartKind::kHbm:
    case PartKind::kNic:
    case PartKind::kCable:
    case PartKind::kHost:
      return true;
    case PartKind::kSwitch:
    case PartKind::kSoftware:
    case PartKind::kPlanned:
      return false;
  }
  CHECK(false);
}

double RunModel::FailuresPerSecond() const {
  double sum = 0;
  for (size_t i = 0; i < kPartKinds; ++i)
    if (static_cast<PartKind>(i) != PartKind::kPlanned) sum += rates[i];
  return sum;
}

uint64_t RunRecord::Interruptions() const {
  return std::accumulate(interruptions.begin(), interruptions.end(), uint64_t{0});
}

RunRecord PlayRun(const RunModel& model, uint64_t seed, bool keeps_marks) {
  CHECK(model.training > 0 && model.interval > 0);
  return RunPlayer(model, seed, keeps_marks).Play();
}

}  // namespace rehearse

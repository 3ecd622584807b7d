#include "scenarios/queueing/queue.h"

#include <algorithm>
#include <deque>
#include <limits>
#include <set>
#include <utility>

#include <fmt/format.h>

#include "scenarios/queueing/job_steps.h"
#include "scenarios/readers/device_floor.h"
#include "sim/base/error.h"
#include "topology/fabrics/router.h"

namespace rehearse {
namespace {

constexpr double kNever = std::numeric_limits<double>::infinity();
constexpr size_t kMostTogether = 4;  // jobs in one simulation

struct Running {
  size_t job = 0;  // position in Queue::jobs
  PlacedJob placed;
  double left = 0;        // seconds without sharing
  double by_sharing = 1;  // now

  double TimeLeft() const { return left * by_sharing; }
};

bool Meet(const Uplinks& a, const Uplinks& b) {
  return std::any_of(a.begin(), a.end(), [&](const auto& uplink) { return b.count(uplink) > 0; });
}

size_t CommonOf(const Uplinks& a, const Uplinks& b) {
  return static_cast<size_t>(
      std::count_if(a.begin(), a.end(), [&](const auto& uplink) { return b.count(uplink) > 0; }));
}

class Player {
 public:
  Player(const Scenario& scenario, ProgressObserver& observer)
      : cluster_(*scenario.cluster),
        arrivals_(*scenario.arrivals),
        observer_(observer),
        steps_(scenario),
        floor_(cluster_, arrivals_.unit > 0 ? arrivals_.unit : UsualUnit(cluster_)) {
    queue_.devices = cluster_.device_count();
    queue_.unit = floor_.unit();
    queue_.load = arrivals_.load;
  }

  Queue Play(const Scenario& scenario) {
    TakeJobs();
    observer_.Begin("playing the queue", "jobs", static_cast<double>(queue_.jobs.size()));
    size_t next = 0;
    size_t ended = 0;
    while (next < queue_.jobs.size() || !running_.empty()) {
      double until = next < queue_.jobs.size() ? queue_.jobs[next].submitted : kNever;
      for (const Running& one : running_) until = std::min(until, now_ + one.TimeLeft());
      Advance(until);
      Uplinks changed;
      ended += EndJobs(&changed);
      while (next < queue_.jobs.size() && queue_.jobs[next].submitted <= now_)
        waiting_.push_back(next++);
      BeginJobs(&changed);
      SetPaces(changed);
      Note();
      observer_.Done(static_cast<double>(ended));
    }
    CHECK(waiting_.empty());
    queue_.end = now_;
    queue_.simulations = steps_.simulations();
    NoteAll(scenario);
    return std::move(queue_);
  }

 private:
  void TakeJobs() {
    if (floor_.unit() > LargestMachine(cluster_)) {
      throw Error(arrivals_.place,
                  fmt::format("{} devices are given out together, but cluster \"{}\" has at most "
                              "{} in a machine",
                              floor_.unit(), cluster_.name(), LargestMachine(cluster_)));
    }
    const std::vector<ArrivedJob>& all = arrivals_.trace->jobs;
    const size_t count =
        arrivals_.first > 0 ? std::min<size_t>(arrivals_.first, all.size()) : all.size();
    size_t too_large = 0;
    for (size_t i = 0; i < count; ++i) {
      if (all[i].devices > queue_.devices) {
        ++too_large;
        continue;
      }
      QueuedJob& job = queue_.jobs.emplace_back();
      job.name = all[i].name;
      job.user = all[i].user;
      job.devices = all[i].devices;
      job.submitted = all[i].submitted / arrivals_.load;
      job.alone = all[i].seconds;
      arrivals_.WorkOf(job.devices);  // so that it is known before any is played
    }
    if (too_large > 0)
      queue_.notes.push_back(fmt::format(
          "{} job{} of more than the cluster's {} devices {} left "
          "out",
          too_large, too_large == 1 ? "" : "s", queue_.devices, too_large == 1 ? "is" : "are"));
    if (queue_.jobs.empty())
      throw Error(arrivals_.place,
                  fmt::format("no job of the trace has at most the {} devices of cluster \"{}\"",
                              queue_.devices, cluster_.name()));
    queue_.last = queue_.jobs.back().submitted;
  }

  // What the figures rest on.
  void NoteAll(const Scenario& scenario) {
    std::vector<std::string>& notes = queue_.notes;
    if (arrivals_.is_assumed) {
      notes.push_back(
          fmt::format("the trace does not say what its jobs compute: {}; \"work\" under "
                      "\"arrivals\" says otherwise",
                      kAssumedWorkWords));
    }
    if (queue_.cut > 0) {
      notes.push_back(
          fmt::format("{} times more than {} jobs met; those that share most of a job's "
                      "ways were simulated beside it",
                      queue_.cut, kMostTogether));
    }
    if (!arrivals_.shares) notes.push_back("jobs do not slow each other down, as \"sharing\" says");
    if (!scenario.routing.seed && Router(cluster_, scenario.routing).IsHashed())
      notes.push_back("a hash decides the routes, and only that of seed 0 was played");
    notes.insert(notes.end(), arrivals_.trace->notes.begin(), arrivals_.trace->notes.end());
  }

  void Advance(double until) {
    const double past = until - now_;
    const uint32_t held = queue_.devices - floor_.free_devices();
    queue_.held += past * held;
    if (until <= queue_.last) queue_.held_by_last += past * held;
    if (is_fragmented_) queue_.fragmented += past * floor_.free_devices();
    for (Running& one : running_) one.left -= past / one.by_sharing;
    now_ = until;
  }

  size_t EndJobs(Uplinks* changed) {
    constexpr double kRounding = 1e-9;
    const auto is_done = [&](const Running& one) {
      return one.left <= kRounding * queue_.jobs[one.job].alone || now_ + one.TimeLeft() <= now_;
    };
    size_t count = 0;
    for (const Running& one : running_) {
      if (!is_done(one)) continue;
      QueuedJob& job = queue_.jobs[one.job];
      job.ended = now_;
      job.by_sharing = std::max(1.0, job.Ran() / (job.alone * job.by_placement));
      const double without = job.alone * job.by_placement;
      queue_.by_placement += job.devices * (without - job.alone);
      queue_.by_sharing += job.devices * std::max(0.0, job.Ran() - without);
      floor_.Leave(one.placed.placement);
      changed->insert(one.placed.uplinks.begin(), one.placed.uplinks.end());
      ++count;
    }
    std::erase_if(running_, is_done);
    return count;
  }

  // Which devices it would be given now; nothing if it does not fit.
  std::vector<uint32_t> PlaceFor(uint32_t devices) const { return PlaceOn(floor_, devices); }
  std::vector<uint32_t> PlaceOn(const DeviceFloor& floor, uint32_t devices) const {
    const std::vector<uint32_t> free = floor.FreeFor(devices);
    if (free.empty()) return {};
    std::vector<uint32_t> placed = InOrder(arrivals_.placement, free, cluster_, devices);
    return placed.empty() ? InOrder(PlacementOrder::kBlock, free, cluster_, devices) : placed;
  }

  // A job with these devices, before it has begun.
  Running Placed(size_t index, std::vector<uint32_t> placement) {
    Running one;
    one.job = index;
    one.placed.placement = std::move(placement);
    const QueuedJob& job = queue_.jobs[index];
    one.placed.work = arrivals_.WorkOf(job.devices);
    one.placed.uplinks = steps_.UplinksOf(one.placed.placement);
    const Seconds best = steps_.Best(one.placed.work, job.devices);
    one.left = job.alone * std::max(1.0, steps_.Alone(one.placed) / best);
    return one;
  }

  void Begin(Running one, Uplinks* changed) {
    QueuedJob& job = queue_.jobs[one.job];
    floor_.Take(one.placed.placement);
    job.by_placement = one.left / job.alone;
    job.began = now_;
    std::set<uint32_t> machines;
    for (const uint32_t device : one.placed.placement)
      machines.insert(cluster_.NodeIndexOf(device));
    job.machines = static_cast<uint32_t>(machines.size());
    changed->insert(one.placed.uplinks.begin(), one.placed.uplinks.end());
    running_.push_back(std::move(one));
  }

  bool BeginWhereFree(size_t index, Uplinks* changed) {
    const uint32_t devices = queue_.jobs[index].devices;
    if (devices > floor_.free_devices()) return false;
    std::vector<uint32_t> placement = PlaceFor(devices);
    if (placement.empty()) return false;
    Begin(Placed(index, std::move(placement)), changed);
    return true;
  }

  // What the first that waits will have once enough of those that run have ended.
  struct Reserved {
    double time = 0;
    std::vector<bool> devices;
  };

  Reserved Reservation() const {
    std::vector<std::pair<double, const Running*>> ends;
    for (const Running& one : running_) ends.emplace_back(now_ + one.TimeLeft(), &one);
    std::stable_sort(ends.begin(), ends.end(),
                     [](const auto& a, const auto& b) { return a.first < b.first; });
    DeviceFloor later = floor_;
    const uint32_t wanted = queue_.jobs[waiting_.front()].devices;
    for (const auto& [end, one] : ends) {
      later.Leave(one->placed.placement);
      if (later.free_devices() < wanted) continue;
      const std::vector<uint32_t> placement = PlaceOn(later, wanted);
      if (placement.empty()) continue;
      Reserved reserved = {end, std::vector<bool>(queue_.devices)};
      const bool has_units = wanted >= later.unit();  // which must be free wholly
      for (const uint32_t device : has_units ? later.UnitsOf(placement) : placement)
        reserved.devices[device] = true;
      return reserved;
    }
    return {now_, std::vector<bool>(queue_.devices, true)};
  }

  void BeginJobs(Uplinks* changed) {
    is_fragmented_ = false;
    while (!waiting_.empty() && BeginWhereFree(waiting_.front(), changed)) waiting_.pop_front();
    if (waiting_.empty()) return;
    if (arrivals_.order != QueueOrder::kFifo) BeginLaterOnes(changed);
    for (const size_t index : waiting_) {
      is_fragmented_ |= queue_.jobs[index].devices <= floor_.free_devices() &&
                        PlaceFor(queue_.jobs[index].devices).empty();
      if (is_fragmented_ || arrivals_.order == QueueOrder::kFifo) break;
    }
  }

  void BeginLaterOnes(Uplinks* changed) {
    const bool keeps_back = arrivals_.order == QueueOrder::kBackfill;
    Reserved reserved;
    DeviceFloor beside = floor_;  // without what is reserved
    if (keeps_back) {
      reserved = Reservation();
      std::vector<uint32_t> kept;
      for (uint32_t device = 0; device < queue_.devices; ++device)
        if (reserved.devices[device] && floor_.IsFree(device)) kept.push_back(device);
      beside.Take(kept);
    }
    // Sizes from which on nothing is free: of parts of a unit, and of whole ones.
    uint32_t least_part = std::numeric_limits<uint32_t>::max();
    uint32_t least_whole = least_part;
    std::deque<size_t> still = {waiting_.front()};
    for (auto one = waiting_.begin() + 1; one != waiting_.end(); ++one) {
      const uint32_t devices = queue_.jobs[*one].devices;
      uint32_t& least = devices < floor_.unit() ? least_part : least_whole;
      if (devices >= least || devices > floor_.free_devices()) {
        still.push_back(*one);
        continue;
      }
      std::vector<uint32_t> placement = PlaceFor(devices);
      if (placement.empty()) {
        least = devices;
        still.push_back(*one);
        continue;
      }
      Running begun = Placed(*one, std::move(placement));
      if (keeps_back && now_ + begun.left > reserved.time) {
        // It may have what nobody waits for.
        placement = PlaceOn(beside, devices);
        if (placement.empty()) {
          still.push_back(*one);
          continue;
        }
        begun = Placed(*one, std::move(placement));
      }
      if (keeps_back) beside.TakeFree(begun.placed.placement);
      Begin(std::move(begun), changed);
    }
    waiting_ = std::move(still);
  }

  // Of those that meet what has changed.
  void SetPaces(const Uplinks& changed) {
    if (!arrivals_.shares || changed.empty()) return;
    for (Running& one : running_) {
      if (!Meet(one.placed.uplinks, changed)) continue;
      std::vector<std::pair<size_t, const Running*>> others;
      for (const Running& other : running_) {
        const size_t common = CommonOf(one.placed.uplinks, other.placed.uplinks);
        if (&other != &one && common > 0) others.emplace_back(common, &other);
      }
      std::stable_sort(others.begin(), others.end(),
                       [](const auto& a, const auto& b) { return a.first > b.first; });
      if (others.size() >= kMostTogether) {
        others.resize(kMostTogether - 1);
        ++queue_.cut;
      }
      std::vector<const PlacedJob*> together = {&one.placed};
      for (const auto& [common, other] : others) together.push_back(&other->placed);
      one.by_sharing = steps_.BesideOthers(together);
    }
  }

  void Note() {
    const auto waiting = static_cast<uint32_t>(waiting_.size());
    queue_.most_waiting = std::max(queue_.most_waiting, waiting);
    queue_.moments.push_back({now_, queue_.devices - floor_.free_devices(), waiting});
  }

  const Cluster& cluster_;
  const ArrivalOptions& arrivals_;
  ProgressObserver& observer_;
  JobSteps steps_;
  DeviceFloor floor_;
  Queue queue_;
  double now_ = 0;
  bool is_fragmented_ = false;
  std::deque<size_t> waiting_;
  std::vector<Running> running_;
};

}  // namespace

Queue PlayQueue(const Scenario& scenario, ProgressObserver& observer) {
  return Player(scenario, observer).Play(scenario);
}

}  // namespace rehearse

#include "scenarios/playing/rehearsal.h"

#include <algorithm>
#include <chrono>
#include <functional>
#include <map>
#include <memory>
#include <numeric>
#include <string>
#include <utility>

#include <fmt/format.h>
#include <sys/resource.h>

#include "collectives/lowering/collective_error.h"
#include "scenarios/playing/alike_parts.h"
#include "scenarios/playing/calibrated.h"
#include "scenarios/playing/expert_draws.h"
#include "scenarios/playing/few_copies.h"
#include "scenarios/playing/memory_fit.h"
#include "scenarios/playing/placement_cost.h"
#include "scenarios/playing/prepare.h"
#include "scenarios/playing/seeded_routes.h"
#include "scenarios/playing/step_products.h"
#include "scenarios/playing/typical_step.h"
#include "scenarios/playing/validated_steps.h"
#include "sim/base/error.h"
#include "sim/base/spare_memory.h"
#include "sim/report/packet_lines.h"
#include "sim/schedule/expert_routing.h"

namespace rehearse {
namespace {

// Notes that another NCCL chose than usual.
void NoteRelease(const Scenario& scenario, Result* result) {
  const NcclVersion version = scenario.lowering.nccl.version;
  if (version == kStandardNccl || result->chosen.empty()) return;
  result->notes.push_back(fmt::format("collectives are chosen as NCCL {} does", Name(version)));
}

// Notes that an order whose ranks end one after the other gains nothing while all of them wait for
// the norm of all gradients.
void NotePipeline(const Scenario& scenario, Result* result) {
  const auto* workload = std::get_if<Workload>(&scenario.jobs.front().work);
  if (workload == nullptr || !workload->pipeline || !scenario.given ||
      workload->pipeline->validation != kAdamOnce)
    return;
  const nlohmann::json& pipeline = scenario.given->at("pipeline");
  if (!pipeline.contains("schedule") || !pipeline["schedule"].is_string()) return;
  const auto schedule = pipeline["schedule"].get<std::string>();
  if (schedule != "zb-h2" && schedule != "zb-2p") return;
  result->notes.push_back(
      fmt::format("ranks wait for the norm of all gradients, so that {} gains little over {}; with "
                  "pipeline.validation=after-update they do not",
                  schedule, schedule == "zb-h2" ? "zb-h1" : "zb-1p"));
}

// Notes which of the user's own times count.
void NotePoints(const Schedule& schedule, const Cluster& cluster, Result* result) {
  for (std::string& note : DevicePointNotes(schedule, cluster))
    result->notes.push_back(std::move(note));
}

// Notes what experts have no room for.
void NoteExperts(const Schedule& schedule, Result* result) {
  for (const Role& role : schedule.roles) {
    for (const Op& op : role.ops) {
      const auto* compute = std::get_if<Compute>(&op.work);
      if (compute == nullptr || compute->kernel != Kernel::kRoute) continue;
      const ExpertRouting routing = MakeRouting(compute->attributes);
      const double asked = static_cast<double>(routing.asked.size());
      const double dropped = asked - static_cast<double>(routing.Kept());
      if (dropped > 0) {
        result->notes.push_back(
            fmt::format("experts drop {:.1f} % of the choices", 100 * dropped / asked));
      }
      return;
    }
  }
}

// Names of the ranks, which are on these devices.
TraceNames NamesOf(const Scenario& scenario, const std::vector<uint32_t>& placement) {
  const Cluster& cluster = *scenario.cluster;
  TraceNames names;
  names.title = scenario.name;
  for (const uint32_t device : placement) {
    names.node_of_rank.push_back(cluster.NodeOf(device));
    names.device_of_rank.push_back(cluster.DeviceName(device));
  }
  return names;
}

std::vector<uint32_t> AllDevices(const Cluster& cluster) {
  std::vector<uint32_t> devices(cluster.device_count());
  std::iota(devices.begin(), devices.end(), 0u);
  return devices;
}

// Where a job's schedule file asks for such a collective; nowhere for planned ones.
Place PlaceOfOp(const JobRequest& request, const Collective& wanted, const std::string& axis) {
  const auto* schedule = std::get_if<Schedule>(&request.work);
  if (schedule == nullptr) return {};
  for (size_t role = 0; role < schedule->roles.size(); ++role) {
    const std::vector<Op>& ops = schedule->roles[role].ops;
    for (size_t op = 0; op < ops.size(); ++op) {
      const auto* collective = std::get_if<Collective>(&ops[op].work);
      if (collective == nullptr || collective->kind != wanted.kind ||
          collective->algorithm != wanted.algorithm || collective->protocol != wanted.protocol ||
          schedule->communicators[collective->communicator.index()].name() != axis) {
        continue;
      }
      const Place& place = request.role_places[role];
      return {place.file, 0, fmt::format("{}/ops/{}", place.pointer, op)};
    }
  }
  return {};
}

// Where the algorithm of a collective was asked for: the last pin that fits, or the schedule.
Place PlaceOf(const CollectiveError& error, const Scenario& scenario,
              const std::vector<Job>& jobs) {
  for (const Job& job : jobs) {
    const auto request = std::find_if(scenario.jobs.begin(), scenario.jobs.end(),
                                      [&](const JobRequest& one) { return one.name == job.name; });
    if (request == scenario.jobs.end()) continue;
    for (const Communicator& communicator : job.schedule.communicators) {
      const std::string& axis = communicator.name();
      if (JointName(jobs, job, axis) != error.axis()) continue;
      const Collective& collective = error.collective();
      for (auto pin = request->collective_pins.rbegin(); pin != request->collective_pins.rend();
           ++pin) {
        if (Fits(*pin, collective.kind, axis)) return pin->place;
      }
      return PlaceOfOp(*request, collective, axis);
    }
  }
  return {};
}

// For mistakes that have no single place.
Place FileOf(const Scenario& scenario) { return {scenario.jobs.front().place.file, 0, ""}; }

// Says that the step is too long, and names the op that it waits for when the clock ends.
[[noreturn]] void FailTooLong(const Scenario& scenario, const Schedule& schedule,
                              const StepTooLong& error) {
  std::string text = error.what();
  if (error.rank() < schedule.ranks()) {
    const Op& op = schedule.roles[schedule.role_of_rank[error.rank()]].At(error.op());
    text += fmt::format("; \"{}\" of rank {} ({}) is not done by then", op.name, error.rank(),
                        Describe(schedule, op.work));
  }
  if (!error.why().empty()) text += ": " + error.why();
  throw Error(FileOf(scenario), text);
}

// Of a device with a rank.
FlopsPerSecond MeanPeak(const Scenario& scenario) {
  if (!scenario.lists_jobs) return scenario.jobs.front().nominal_peak;
  FlopsPerSecond sum;
  size_t ranks = 0;
  for (const JobRequest& request : scenario.jobs) {
    sum += static_cast<double>(request.placement.size()) * request.nominal_peak;
    ranks += request.placement.size();
  }
  return sum / static_cast<double>(ranks);
}

// The type that all jobs' peaks are of; empty if they differ.
std::string PeakType(const Scenario& scenario) {
  const std::optional<DType> first = PeakTypeOf(scenario.jobs.front());
  const bool agree = std::all_of(scenario.jobs.begin(), scenario.jobs.end(),
                                 [&](const JobRequest& job) { return PeakTypeOf(job) == first; });
  return first && agree ? Name(*first) : "";
}

// Those of the job, under the names that its own schedule has for them.
std::vector<ChosenCollective> ChosenBy(const PlayedScenario& played, const Job& job) {
  std::map<std::string, std::string> own_names;
  for (const Communicator& communicator : job.schedule.communicators) {
    own_names.emplace(JointName(played.jobs, job, communicator.name()), communicator.name());
  }
  std::vector<ChosenCollective> chosen;
  for (const ChosenCollective& collective : played.lowered.chosen) {
    const auto own = own_names.find(collective.axis);
    if (own == own_names.end()) continue;
    chosen.push_back(collective);
    chosen.back().axis = own->second;
  }
  return chosen;
}

JobResult DescribeJob(const Scenario& scenario, const PlayedScenario& played, size_t index,
                      ProgressObserver& observer) {
  const Job& job = played.jobs[index];
  const JobRequest& request = scenario.jobs[index];
  const JobPart part = CutOut(job, played.simulation.timeline);
  JobResult described;
  described.placement = job.placement;
  described.start = job.start;
  described.steps = part.steps;
  described.result = SummarizeSteps(job, part, request.nominal_peak);
  if (const auto type = PeakTypeOf(request)) described.result.peak_dtype = Name(*type);
  described.result.scenario = job.name;
  described.result.fidelity = Name(scenario.lowering.fidelity);
  described.result.left_out = LeftOutBy(scenario.lowering.fidelity);
  described.result.notes = CalibrationNotes(job.schedule, *scenario.cluster);
  NotePoints(job.schedule, *scenario.cluster, &described.result);
  DescribeMemory(
      TightestFit(job.schedule, job.placement, *scenario.cluster, scenario.memory.headroom_share),
      *scenario.cluster, &described.result);
  described.result.chosen = ChosenBy(played, job);
  described.result.typical = TypicalOf(described.result, scenario, job);
  described.result.software = request.software;
  NoteRelease(scenario, &described.result);
  described.alone = described.result.step;
  if (played.jobs.size() > 1) {
    PartObserver observed(observer, static_cast<double>(index), kSimulating);
    const PlayedScenario alone = PlayJobs(scenario, {job}, {.observer = &observed});
    Seconds time;
    for (const Seconds step : CutOut(job, alone.simulation.timeline).steps) time += step;
    described.alone = time / static_cast<double>(job.repeat);
  }
  const BestPlacement best = FindBestPlacement(scenario, index, described.alone);
  described.best = best.step;
  described.best_order = best.order;
  return described;
}

// Whether what the scenario's step did is only a part of the joint timeline.
bool HasOwnPart(const Scenario& scenario, const PlayedScenario& played) {
  return !scenario.lists_jobs && !IsWhole(played.jobs, scenario.cluster->device_count());
}

// Whether a step of its own has other devices than all of them, rank by rank.
bool HasPlacement(const Scenario& scenario) {
  return !scenario.lists_jobs && scenario.jobs.front().placement != AllDevices(*scenario.cluster);
}

// Nothing where the devices are the best ones and nobody drew them.
std::optional<PlacementSpread> ComparedPlacement(const Scenario& scenario,
                                                 std::optional<PlacementSpread> drawn, Seconds step,
                                                 ProgressObserver& observer) {
  const BestPlacement best = FindBestPlacement(scenario, 0, step, observer);
  if (!drawn && best.step == step) return std::nullopt;
  PlacementSpread spread = drawn ? std::move(*drawn) : PlacementSpread();
  if (drawn && spread.steps.empty()) spread.steps.push_back({spread.seed, step});
  spread.best = best.step;
  spread.best_order = best.order;
  return spread;
}

// OwnPart() of a timeline that nobody else needs.
std::optional<JobPart> TakeOwnPart(const Scenario& scenario, PlayedScenario* played) {
  if (!IsOneStep(played->jobs) || !HasOwnPart(scenario, *played)) return OwnPart(scenario, *played);
  return TakeOut(played->jobs.front(), std::move(played->simulation.timeline));
}

// All spans of the scenario's step, or of its own part.
class SpansOfStep {
 public:
  SpansOfStep(const PlayedScenario& played, const std::optional<JobPart>& own)
      : played_(SpansByRankOf(own ? own->timeline : played.simulation.timeline)) {
    if (played.copies_left_out > 0)
      with_copies_.emplace(*played_, CopiedOpsOf(own ? own->schedule : played.schedule()),
                           *played.simulation.recurrence, played.copies_left_out);
  }

  const SpansByRank& all() const {
    return with_copies_ ? static_cast<const SpansByRank&>(*with_copies_) : *played_;
  }

 private:
  std::shared_ptr<const SpansByRank> played_;
  std::optional<SpansWithCopies> with_copies_;
};

// From so many on, spans are not all made at once if nobody needs them.
constexpr size_t kManySpans = size_t{1} << 16;

// Plays the schedule with so many copies fewer. Returns whether that tells how all go.
bool PlayFewCopies(uint32_t left_out, SimulationOptions options, CopiedSpans copied,
                   const std::function<void()>& lower, PlayedScenario* played) {
  Schedule& schedule = played->joint ? *played->joint : played->jobs.front().schedule;
  options.copies_left_out = left_out;
  try {
    const FewCopies few(&schedule, left_out);
    lower();
    if (played->lowered.program.copies.empty()) return false;
    options.keep_spans |= played->lowered.program.spans.size() < kManySpans;
    played->simulation = Simulate(played->lowered.program, schedule.ranks(), options);
  } catch (const StepTooLong&) {
    return false;  // which op it is, the whole step will tell
  }
  if (!played->simulation.recurrence) return false;
  Timeline& timeline = played->simulation.timeline;
  const Recurrence& recurrence = *played->simulation.recurrence;
  const Time step = StepWithCopies(timeline, recurrence, left_out);
  if (step >= kBeyondTime) return false;
  // Updates that are validated later are looked for among all spans.
  if (copied == CopiedSpans::kWrittenOut || ValidatesUpdatesLater(schedule)) {
    timeline = WithCopies(timeline, CopiedOpsOf(schedule), recurrence, left_out);
  } else {
    timeline.step = step;
    played->copies_left_out = left_out;
  }
  return true;
}

}  // namespace

PlayedScenario PlayJobs(const Scenario& scenario, std::vector<Job> jobs,
                        const SimulationOptions& options, GroupMemory* memory, CopiedSpans copied) {
  const Cluster& cluster = *scenario.cluster;
  ProgressObserver& observer = options.observer == nullptr ? NoObserver() : *options.observer;
  PlayedScenario played;
  played.jobs = std::move(jobs);
  for (Job& job : played.jobs) job.schedule = AsExecuted(std::move(job.schedule), cluster);
  if (!IsWhole(played.jobs, cluster.device_count()))
    played.joint = Join(played.jobs, cluster.device_count());
  const bool has_packets = scenario.lowering.fidelity == Fidelity::kPacket;
  std::optional<Router> own_router;
  if (has_packets) {
    memory = nullptr;  // which may be of other routes
    own_router.emplace(cluster, RoutingOfPackets(scenario.routing, cluster));
  } else if (memory == nullptr) {
    own_router.emplace(cluster, scenario.routing,
                       FailingLinks(scenario.lowering.perturbation, cluster.link_count()));
  }
  SimulationOptions own = options;
  if (has_packets) own.record_link_loads = false;  // those of packets are not recorded
  own.keep_spans = copied != CopiedSpans::kLeftOut || !IsOneStep(played.jobs) ||
                   ValidatesUpdatesLater(played.schedule());
  const auto lower = [&] {
    try {
      LowerOptions lowering = scenario.lowering;
      lowering.series = !own.record_tasks;
      if (has_packets) lowering.packets = PacketSettingsOf(scenario);
      played.lowered = Lower(played.schedule(), own_router ? *own_router : memory->router(),
                             lowering, observer, memory);
    } catch (const CollectiveError& error) {
      throw Error(PlaceOf(error, scenario, played.jobs), error.what());
    } catch (const Error& error) {
      throw Error(FileOf(scenario), error.what());
    }
  };
  const auto simulate = [&] {
    try {
      if (has_packets) own.packets = &*played.lowered.packets;
      own.keep_spans |= played.lowered.program.spans.size() < kManySpans;
      played.simulation = Simulate(played.lowered.program, played.schedule().ranks(), own);
    } catch (const StepTooLong& error) {
      FailTooLong(scenario, played.schedule(), error);
    } catch (const Error& error) {
      if (has_packets) throw Error(FileOf(scenario), error.what());
      // A transfer can only be stuck where the scenario lets links fail.
      throw Error(scenario.perturbation_place, error.what());
    }
  };
  const bool are_alike = copied != CopiedSpans::kAllArePlayed &&
                         (AlikeUnder(scenario) & AlikeUnder(own)).micro_batches;
  const uint32_t left_out =
      are_alike && IsOneStep(played.jobs) ? CopiesToLeaveOut(played.schedule()) : 0;
  if (left_out == 0 || !PlayFewCopies(left_out, own, copied, lower, &played)) {
    lower();
    simulate();
  }
  Timeline& timeline = played.simulation.timeline;
  timeline.representative = played.lowered.representative;
  for (LinkRecord& link : timeline.links) link.count = 0;
  for (const uint32_t link : played.lowered.links) ++timeline.links[link].count;
  return played;
}

PlayedScenario PlayScenario(const Scenario& scenario, const SimulationOptions& options) {
  ProgressObserver& observer = options.observer == nullptr ? NoObserver() : *options.observer;
  return PlayJobs(scenario, Prepare(scenario, observer), options);
}

std::optional<JobPart> OwnPart(const Scenario& scenario, const PlayedScenario& played) {
  const Timeline& joint = played.simulation.timeline;
  if (!HasOwnPart(scenario, played)) return std::nullopt;
  CHECK_EQ(played.copies_left_out, 0u);  // Rehearse() takes the part then
  JobPart part = CutOut(played.jobs.front(), joint);
  part.timeline.links = joint.links;
  return part;
}

Result Describe(const Scenario& scenario, const PlayedScenario& played,
                const std::optional<JobPart>& own, const SummaryOptions& options) {
  // Steps of a job use the same memory, one after the other.
  std::optional<MemoryFit> tightest;
  for (const Job& job : played.jobs) {
    const MemoryFit fit =
        TightestFit(job.schedule, job.placement, *scenario.cluster, scenario.memory.headroom_share);
    if (!tightest || fit.Room() < tightest->Room()) tightest = fit;
  }
  return Describe(scenario, played, own, *tightest, options);
}

Result Describe(const Scenario& scenario, const PlayedScenario& played,
                const std::optional<JobPart>& own, const MemoryFit& fit,
                const SummaryOptions& options) {
  const Simulation& simulation = played.simulation;
  SummaryOptions summary = options;
  const SpansOfStep spans(played, own);
  if (played.copies_left_out > 0) summary.spans = &spans.all();
  Result result =
      Summarize(own ? own->schedule : played.schedule(), own ? own->timeline : simulation.timeline,
                MeanPeak(scenario), fit.use, summary);
  result.peak_dtype = PeakType(scenario);
  result.scenario = scenario.name;
  result.fidelity = Name(scenario.lowering.fidelity);
  result.left_out = LeftOutBy(scenario.lowering.fidelity);
  DescribeMemory(fit, *scenario.cluster, &result);
  result.simulator.events = simulation.stats.events;
  result.simulator.transfers = simulation.stats.transfers;
  result.chosen = played.lowered.chosen;
  result.changes = scenario.changes;
  if (!scenario.lists_jobs) result.software = scenario.jobs.front().software;
  result.simulator.classes = played.lowered.rank_classes;
  if (!scenario.lists_jobs) {
    result.typical = TypicalOf(result, scenario, played.jobs.front());
    result.trust = TrustOf(scenario, played.jobs.front());
    result.notes = CalibrationNotes(played.jobs.front().schedule, *scenario.cluster);
    NotePoints(played.jobs.front().schedule, *scenario.cluster, &result);
    NotePipeline(scenario, &result);
  }
  for (const Job& job : played.jobs) NoteExperts(job.schedule, &result);
  NoteRelease(scenario, &result);
  if (scenario.lowering.fidelity != Fidelity::kPacket &&
      scenario.lowering.network != NetworkOptions())
    result.notes.push_back(fmt::format(
        "\"network\" says how packets travel; {} has none, and so it changes nothing here",
        result.fidelity));
  if (simulation.packets) {
    const PacketReport& packets = *simulation.packets;
    result.simulator.packet_hops = packets.stats.hops - packets.skipped_hops;
    for (std::string& line : PacketLines(PacketSettingsOf(scenario).options, packets))
      result.notes.push_back(std::move(line));
  }
  return result;
}

PacketSettings PacketSettingsOf(const Scenario& scenario) {
  const Router router(*scenario.cluster, scenario.routing);
  return SettingsOf(*scenario.cluster, router.rule(), scenario.routing.seed.value_or(0),
                    scenario.lowering.network);
}

Seconds RehearsalClock::Past() const {
  const std::chrono::duration<double> past = std::chrono::steady_clock::now() - begin_;
  return Seconds(past.count());
}

Bytes PeakResidentMemory() {
  rusage usage{};
  getrusage(RUSAGE_SELF, &usage);
  return Bytes(static_cast<double>(usage.ru_maxrss) * 1024);  // Linux counts in KiB
}

Rehearsal Rehearse(const Scenario& asked, const RehearsalOptions& options) {
  const RehearsalClock clock;
  OfferSpareMemory();
  ProgressObserver& observer = options.observer == nullptr ? NoObserver() : *options.observer;
  Scenario scenario = asked;
  std::optional<PlacementSpread> placement = SettlePlacement(&scenario, options.threads, observer);
  std::vector<Job> jobs = Prepare(scenario, observer);
  std::optional<RouteSpread> routes;
  if (options.memory == nullptr) routes = SettleRoutes(jobs, &scenario, options.threads, observer);
  PlayedScenario played = PlayJobs(
      scenario, std::move(jobs),
      {.record_link_loads = options.record_link_loads, .observer = &observer}, options.memory,
      options.spans || scenario.lists_jobs ? CopiedSpans::kWrittenOut : CopiedSpans::kLeftOut);
  if (!played.simulation.timeline.played) played.lowered.program = {};
  if (routes) DescribeRoutes(*scenario.cluster, played, &*routes);
  std::optional<JobPart> own = TakeOwnPart(scenario, &played);

  Rehearsal rehearsal;
  rehearsal.result = Describe(scenario, played, own, {.hash = options.hash});
  rehearsal.result.routes = std::move(routes);
  if (placement || (options.best_placement && HasPlacement(scenario)))
    rehearsal.result.placement =
        ComparedPlacement(scenario, std::move(placement), rehearsal.result.step, observer);
  if (options.look) {
    CHECK(!scenario.lists_jobs);
    options.look(own ? own->schedule : played.schedule(),
                 own ? own->timeline : played.simulation.timeline, SpansOfStep(played, own).all());
  }
  if (options.allocations && !scenario.lists_jobs) {
    const Job& job = played.jobs.front();
    const MemoryFit fit =
        TightestFit(job.schedule, job.placement, *scenario.cluster, scenario.memory.headroom_share);
    rehearsal.result.memory_idle =
        IdleMemory(job.schedule, fit, *scenario.cluster, scenario.memory.allocator);
  }
  const Seconds step = own ? StepOf(own->schedule, own->timeline)
                           : StepOf(played.schedule(), played.simulation.timeline);
  rehearsal.result.experts = DrawExperts(scenario, step, options.threads, observer);
  rehearsal.names =
      NamesOf(scenario, own ? played.jobs.front().placement : AllDevices(*scenario.cluster));
  if (scenario.lists_jobs) {
    rehearsal.jobs.emplace();
    observer.Begin("simulating each alone", "jobs", played.jobs.size());
    for (size_t i = 0; i < played.jobs.size(); ++i) {
      const Job& job = played.jobs[i];
      rehearsal.jobs->jobs.push_back(DescribeJob(scenario, played, i, observer));
      for (const uint32_t device : job.placement)
        rehearsal.names.device_of_rank[device] += ", " + job.name;
    }
  }
  Schedule& whole = played.joint ? *played.joint : played.jobs.front().schedule;
  rehearsal.schedule = std::move(own ? own->schedule : whole);
  rehearsal.timeline = std::move(own ? own->timeline : played.simulation.timeline);
  if (!options.spans) {
    rehearsal.timeline.spans.clear();
    rehearsal.timeline.played.reset();  // of the program, which ends here
  }
  rehearsal.result.simulator.wall = clock.Past();
  rehearsal.result.simulator.peak_rss = PeakResidentMemory();
  if (rehearsal.jobs) rehearsal.jobs->all = rehearsal.result;
  return rehearsal;
}

}  // namespace rehearse

#include "scenarios/campaign/campaign.h"

#include <algorithm>
#include <cmath>
#include <numeric>
#include <utility>

#include <fmt/format.h>

#include "scenarios/campaign/checkpoint_cost.h"
#include "scenarios/campaign/intervals.h"
#include "scenarios/campaign/parts.h"
#include "scenarios/readers/run_options.h"
#include "sim/base/error.h"

namespace rehearse {
namespace {

// So many seeds tell one interval from another, as all intervals have the same ones.
constexpr uint32_t kMostSeedsOfIntervals = 100;

[[noreturn]] void FailAt(const RunOptions& run, const char* key, const std::string& text) {
  throw Error(Place{run.place.file, 0, run.place.pointer + key}, text);
}

std::array<FailureRate, kPartKinds> RatesOf(const FailureOptions& given) {
  const FailureOptions published = FailureOptions::Published(given.like);
  const auto of = [](const std::optional<FailureRate>& own,
                     const std::optional<FailureRate>& other) {
    return own ? *own : other.value_or(FailureRate());
  };
  std::array<FailureRate, kPartKinds> rates;
  const auto at = [&](PartKind kind) -> FailureRate& { return rates[static_cast<size_t>(kind)]; };
  at(PartKind::kGpu) = of(given.gpu, published.gpu);
  at(PartKind::kHbm) = of(given.hbm, published.hbm);
  at(PartKind::kNic) = of(given.nic, published.nic);
  at(PartKind::kCable) = of(given.cable, published.cable);
  at(PartKind::kSwitch) = of(given.switches, published.switches);
  at(PartKind::kHost) = of(given.host, published.host);
  at(PartKind::kSoftware) = of(given.software, published.software);
  at(PartKind::kPlanned) = of(given.planned, published.planned);
  return rates;
}

// Ranks along these axes have parts of the batch: a restart may have fewer of them, each with more
// of what they share.
uint32_t ReplicasOf(const Workload& workload) {
  uint32_t replicas = 1;
  for (const MeshAxis& axis : workload.strategy.mesh.axes()) {
    const std::string& name = axis.part_of.empty() ? axis.name : axis.part_of;
    if (name == "data" || name == "replica" || name == "shard") replicas *= axis.size;
  }
  return replicas;
}

Seconds StepOfRunOf(const RunOptions& run, const Result& result) {
  if (run.step == StepOfRun::kSimulated) return result.step;
  if (!result.typical)
    FailAt(run, "/step",
           "found \"typical\", expected \"simulated\", as it is not known how far "
           "these devices differ");
  return result.typical->median;
}

RunModel ModelOf(const RunOptions& run, const RunParts& parts, const CheckpointCost& cost,
                 const Workload& workload) {
  RunModel model;
  const std::array<FailureRate, kPartKinds> rates = RatesOf(run.failures);
  for (size_t i = 0; i < kPartKinds; ++i) model.rates[i] = parts.counts[i] * rates[i].per_second;
  model.stall = cost.stall.value();
  model.write = run.checkpoint.asynchronous ? cost.write.value() : 0;
  model.save = (cost.copy + cost.write).value();
  model.detection = run.detection.value();
  model.restart = (run.restart + cost.reload).value();
  model.repair = run.repair.value();
  if (run.stragglers) {
    const double gpus = parts.counts[static_cast<size_t>(PartKind::kGpu)];
    model.straggler_rate = gpus * run.stragglers->rate.per_second;
    model.straggler_slowdown = run.stragglers->slowdown;
    model.straggler_found_after = run.stragglers->found_after.value();
  }
  model.machines = parts.machines;
  model.spares = run.spares;
  model.elastic = run.elastic;
  model.replicas = ReplicasOf(workload);
  if (run.elastic && model.replicas == 1)
    FailAt(run, "/elastic", "found true, expected a strategy with replicas that share the batch");
  return model;
}

double Quantile(std::vector<double> sorted, double share) {
  return sorted[static_cast<size_t>(std::lround(share * static_cast<double>(sorted.size() - 1)))];
}

RunSpread SpreadOf(std::vector<double> values) {
  std::sort(values.begin(), values.end());
  return {Quantile(values, 0.5), Quantile(values, 0.1), Quantile(values, 0.9)};
}

RunShares SharesOf(const std::vector<RunRecord>& records) {
  RunTimes all;
  for (const RunRecord& record : records) {
    all.useful += record.times.useful;
    all.checkpoints += record.times.checkpoints;
    all.lost += record.times.lost;
    all.slow += record.times.slow;
    all.detection += record.times.detection;
    all.restart += record.times.restart;
    all.waiting += record.times.waiting;
  }
  const double elapsed = all.Elapsed();
  return {all.useful / elapsed, all.checkpoints / elapsed, all.lost / elapsed,
          all.slow / elapsed,   all.detection / elapsed,   all.restart / elapsed,
          all.waiting / elapsed};
}

template <typename Number>
RunSpread SpreadOf(const std::vector<RunRecord>& records, Number number) {
  std::vector<double> values;
  for (const RunRecord& record : records) values.push_back(static_cast<double>(number(record)));
  return SpreadOf(std::move(values));
}

void DescribeRuns(const std::vector<RunRecord>& records, RunOutcome* outcome) {
  outcome->seconds = SpreadOf(records, [](const RunRecord& r) { return r.times.Elapsed(); });
  outcome->effective =
      SpreadOf(records, [](const RunRecord& r) { return r.times.useful / r.times.Elapsed(); });
  outcome->interruptions = SpreadOf(records, [](const RunRecord& r) { return r.Interruptions(); });
  outcome->in_repair = SpreadOf(records, [](const RunRecord& r) { return r.most_in_repair; });
  outcome->shares = SharesOf(records);
  for (const RunRecord& record : records) {
    outcome->stragglers += static_cast<double>(record.stragglers) / double(records.size());
    for (size_t i = 0; i < kPartKinds; ++i)
      outcome->parts[i].interruptions +=
          static_cast<double>(record.interruptions[i]) / double(records.size());
  }
}

void DescribeParts(const RunModel& model, const RunParts& parts, RunOutcome* outcome) {
  for (size_t i = 0; i < kPartKinds; ++i) {
    RunPart part;
    part.name = Name(static_cast<PartKind>(i));
    part.count = parts.counts[i];
    if (model.rates[i] > 0) part.between = Seconds(1 / model.rates[i]);
    outcome->parts.push_back(std::move(part));
  }
}

// The interval that is used, and those that it could be.
void DescribeIntervals(const RunOptions& run, RunModel* model, RunOutcome* outcome,
                       ProgressObserver& observer) {
  const double step = outcome->step.value();
  const uint32_t seeds = std::min(run.seeds, kMostSeedsOfIntervals);
  const auto tried = [&](double seconds) {
    return RunInterval{Seconds(seconds), EffectiveShare(*model, seconds, run.seed, seeds)};
  };
  const IntervalChoice choice = ChooseInterval(*model, step, run.seed, seeds, observer);
  outcome->best = tried(choice.best);
  for (const TriedInterval& one : choice.tried)
    outcome->by_interval.push_back({Seconds(one.seconds), one.effective});
  model->interval = choice.best;
  if (run.checkpoint.interval)
    model->interval = std::min(WholeSteps(run.checkpoint.interval->value(), step), model->training);
  outcome->used = tried(model->interval);
  outcome->young = outcome->daly = outcome->best;
  const double failures = model->FailuresPerSecond();
  if (!(failures > 0)) return;
  const auto by_formula = [&](double (*formula)(double, double)) {
    return tried(std::min(WholeSteps(formula(model->stall, 1 / failures), step), model->training));
  };
  outcome->between = Seconds(1 / failures);
  outcome->young = by_formula(YoungInterval);
  outcome->daly = by_formula(DalyInterval);
}

}  // namespace

Campaign PlayCampaign(const Scenario& scenario, const Rehearsal& rehearsal,
                      ProgressObserver& observer) {
  return PlayCampaign(scenario, rehearsal.schedule, rehearsal.result, observer);
}

Campaign PlayCampaign(const Scenario& scenario, const Schedule& schedule, const Result& result,
                      ProgressObserver& observer) {
  CHECK(scenario.run != nullptr && !scenario.lists_jobs);
  const RunOptions& run = *scenario.run;
  const JobRequest& job = scenario.jobs.front();
  const auto* workload = std::get_if<Workload>(&job.work);
  CHECK(workload != nullptr);  // what has a "run" has a model
  if (!(schedule.tokens > 0))
    FailAt(run, "/tokens", "expected a model that counts tokens or images; this one counts none");
  const RunParts parts = CountParts(*scenario.cluster, job.placement);
  const CheckpointCost cost = CostOfCheckpoint(run, parts, *workload, schedule);

  Campaign campaign;
  RunOutcome& outcome = campaign.outcome;
  RunModel& model = campaign.model;
  model = ModelOf(run, parts, cost, *workload);
  outcome.tokens = run.tokens;
  outcome.token_name = schedule.token_name;
  const double steps = std::ceil(run.tokens / schedule.tokens);
  outcome.steps = static_cast<uint64_t>(steps);
  outcome.step = StepOfRunOf(run, result);
  outcome.machines = parts.machines;
  outcome.seeds = run.seeds;
  outcome.checkpoint = {cost.bytes, cost.copy, cost.write, cost.stall, cost.reload};
  model.training = steps * outcome.step.value();
  DescribeParts(model, parts, &outcome);
  DescribeIntervals(run, &model, &outcome, observer);

  std::vector<RunRecord> records;
  observer.Begin("simulating weeks", "runs", run.seeds);
  for (uint32_t i = 0; i < run.seeds; ++i) {
    observer.Done(i);
    records.push_back(PlayRun(model, run.seed + i));
    if (!records.back().is_done)
      FailAt(run, "",
             fmt::format("does not get ahead: with a failure every {} and {} to detect it "
                         "and to restart, less than a half percent of the time is kept",
                         PrintLongTime(outcome.between),
                         PrintLongTime(Seconds(model.detection + model.restart))));
  }
  DescribeRuns(records, &outcome);
  std::vector<uint32_t> order(records.size());
  std::iota(order.begin(), order.end(), 0u);
  std::stable_sort(order.begin(), order.end(), [&](uint32_t a, uint32_t b) {
    return records[a].times.Elapsed() < records[b].times.Elapsed();
  });
  campaign.typical = PlayRun(model, run.seed + order[(order.size() - 1) / 2], true);
  return campaign;
}

}  // namespace rehearse

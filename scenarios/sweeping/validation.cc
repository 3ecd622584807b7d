#include "scenarios/sweeping/validation.h"

#include <algorithm>
#include <array>
#include <cmath>
#include <exception>
#include <map>
#include <mutex>
#include <numeric>
#include <utility>

#include <fmt/format.h>

#include "scenarios/playing/rehearsal.h"
#include "scenarios/readers/reader_cache.h"
#include "sim/base/error.h"
#include "sim/base/interruption.h"
#include "sim/base/threads.h"
#include "sim/schedule/done_ops.h"
#include "topology/devices/device.h"

namespace rehearse {
namespace {

using Parts = std::array<double, kStepParts>;  // seconds

StepPart PartOf(const Compute& compute) {
  switch (compute.kind) {
    case ComputeKind::kGemm:
      return StepPart::kGemm;
    case ComputeKind::kAttention:
      return StepPart::kAttention;
    case ComputeKind::kMemory:
    case ComputeKind::kFixed:
    case ComputeKind::kHost:
      return StepPart::kMemory;
  }
  CHECK(false);
}

// The share of the op's time that its launches take.
double ShareOfLaunches(const DeviceSpec& device, const Compute& compute, bool backward) {
  const Seconds whole = ComputeTime(device, compute, backward);
  if (!(whole > Seconds(0))) return 0;
  Compute unlaunched = compute;
  unlaunched.kernels = 0;
  return 1 - ComputeTime(device, unlaunched, backward) / whole;
}

// Seconds of kernels by their kind and of their launches, mean over ranks.
class KernelSums {
 public:
  explicit KernelSums(const Scenario& scenario) : scenario_(scenario) {}

  Parts Of(const Schedule& schedule, const Timeline& timeline, const SpansByRank& all) {
    std::vector<uint32_t> ranks_like(timeline.ranks, 0);
    for (uint32_t rank = 0; rank < timeline.ranks; ++rank)
      ++ranks_like[timeline.RepresentativeOf(rank)];
    Parts sums{};
    std::vector<Span> room;
    for (size_t i = 0; i < all.count(); ++i) {
      const uint32_t rank = all.RankAt(i);
      const Role& role = schedule.roles[schedule.role_of_rank[rank]];
      const DoneOps ops(role);
      std::vector<std::optional<Share>>& shares = SharesOf(rank, schedule.role_of_rank[rank], role);
      const double weight = static_cast<double>(ranks_like[rank]) / timeline.ranks;
      for (const Span& span : all.At(i, &room)) {
        const uint32_t place = ops.At(span.op).place;
        std::optional<Share>& share = shares[place];
        if (!share) share = ShareOf(rank, role.ops[place]);
        if (!share->counts) continue;
        const double time = ToSeconds(span.end - span.begin).value() * weight;
        sums[static_cast<size_t>(StepPart::kLaunches)] += time * share->launches;
        sums[static_cast<size_t>(share->part)] += time * (1 - share->launches);
      }
    }
    return sums;
  }

 private:
  // Of an op, whichever rank runs it on a kind of device.
  struct Share {
    bool counts = false;  // as a kernel
    StepPart part = StepPart::kMemory;
    double launches = 0;
  };

  uint32_t DeviceOf(uint32_t rank) const { return scenario_.jobs.front().placement[rank]; }

  std::vector<std::optional<Share>>& SharesOf(uint32_t rank, uint32_t number, const Role& role) {
    std::vector<std::optional<Share>>& shares =
        shares_[{scenario_.cluster->SpecOf(DeviceOf(rank)), number}];
    shares.resize(role.ops.size());
    return shares;
  }

  Share ShareOf(uint32_t rank, const Op& op) const {
    const auto* compute = std::get_if<Compute>(&op.work);
    if (compute == nullptr || IsWait(*compute)) return {};
    return {true, PartOf(*compute),
            ShareOfLaunches(scenario_.cluster->DeviceOf(DeviceOf(rank)), *compute,
                            op.tag.phase == Phase::kBackward)};
  }

  const Scenario& scenario_;
  // By device spec and role: of each op.
  std::map<std::pair<uint32_t, uint32_t>, std::vector<std::optional<Share>>> shares_;
};

// The typical step if devices differ.
Seconds StepOf(const Result& result) {
  return result.typical ? result.typical->median : result.step;
}

// Kernels that run at the same time count once, each kind for its share; for the slowest device.
std::vector<Seconds> PartsOf(const Rehearsal& played, Parts parts) {
  const double sum = std::accumulate(parts.begin(), parts.end(), 0.0);
  const Breakdown& breakdown = played.result.breakdown;
  const Seconds kernels = breakdown.compute + (StepOf(played.result) - played.result.step);
  const double scale = sum > 0 ? kernels.value() / sum : 0;
  for (double& part : parts) part *= scale;
  parts[static_cast<size_t>(StepPart::kCommunication)] = breakdown.exposed_communication.value();
  parts[static_cast<size_t>(StepPart::kIdle)] = breakdown.idle.value();
  std::vector<Seconds> seconds;
  for (const double part : parts) seconds.emplace_back(part);
  return seconds;
}

// Below this share of the step, a part is too small to explain anything.
constexpr double kLeastPart = 0.002;

std::vector<std::optional<double>> FactorsOf(const ValidatedRow& row) {
  std::vector<std::optional<double>> factors;
  for (const Seconds part : row.parts) {
    std::optional<double> factor;
    if (part > kLeastPart * row.predicted) {
      const double needed = (row.measured - row.predicted + part) / part;
      if (needed > 0) factor = needed;
    }
    factors.push_back(factor);
  }
  return factors;
}

Seconds MeasuredStep(const MeasuredRow& row, const Result& result) {
  if (row.step) return *row.step;
  if (row.tokens_per_second)
    return Seconds(result.tokens_per_second * result.step.value() / *row.tokens_per_second);
  return result.step * (result.model_flops_utilization / *row.mfu);
}

std::string GroupOf(const MeasuredRow& row, const Scenario& scenario) {
  if (!row.group.empty()) return row.group;
  const nlohmann::json& given = row.document.value();
  const uint32_t device = scenario.jobs.front().placement.front();
  const bool has_software = given.contains("software") && given["software"].is_string();
  return fmt::format("{}, {}", scenario.cluster->DeviceOf(device).name,
                     has_software ? given["software"].get<std::string>()
                                  : given["strategy"]["kind"].get<std::string>());
}

ValidatedRow PlayRow(const MeasuredRow& row, const Scenario& scenario) {
  RehearsalOptions options;
  options.threads = 1;
  options.hash = false;
  options.allocations = row.memory_reserved.has_value();
  options.spans = false;
  Parts parts{};
  options.look = [&](const Schedule& schedule, const Timeline& timeline, const SpansByRank& spans) {
    parts = KernelSums(scenario).Of(schedule, timeline, spans);
  };
  const Rehearsal played = Rehearse(scenario, options);
  const Result& result = played.result;
  ValidatedRow validated;
  validated.predicted = StepOf(result);
  validated.measured = MeasuredStep(row, result);
  validated.error = validated.predicted / validated.measured - 1;
  validated.predicted_mfu = result.model_flops_utilization * (result.step / validated.predicted);
  validated.measured_mfu = result.model_flops_utilization * (result.step / validated.measured);
  validated.parts = PartsOf(played, parts);
  validated.factors = FactorsOf(validated);
  validated.memory = result.memory.Total() + result.memory_idle;
  if (row.Memory()) validated.memory_error = validated.memory / *row.Memory() - 1;
  validated.memory_needed = result.MemoryNeeded();
  validated.memory_capacity = result.memory_capacity;
  validated.fits = !(result.memory_capacity > Bytes(0)) ||
                   result.MemoryNeeded() <= (1 - result.memory_headroom) * result.memory_capacity;
  return validated;
}

double MedianOf(std::vector<double> values) {
  std::sort(values.begin(), values.end());
  return (values[(values.size() - 1) / 2] + values[values.size() / 2]) / 2;
}

// How much there is to plan and to play, roughly and in no unit.
double SizeOf(const Scenario& scenario) {
  const auto* workload = std::get_if<Workload>(&scenario.jobs.front().work);
  if (workload == nullptr) return 0;
  const Network& network = *workload->network;
  return static_cast<double>(network.nodes.size()) * network.micro_batches;
}

// The largest come first, so that no thread is left alone with one at the end.
std::vector<size_t> LargestFirst(const std::vector<Scenario>& scenarios) {
  std::vector<double> sizes;
  for (const Scenario& scenario : scenarios) sizes.push_back(SizeOf(scenario));
  std::vector<size_t> order(scenarios.size());
  std::iota(order.begin(), order.end(), size_t{0});
  std::stable_sort(order.begin(), order.end(),
                   [&](size_t a, size_t b) { return sizes[a] > sizes[b]; });
  return order;
}

// How many rows are done.
class RowsObserver {
 public:
  explicit RowsObserver(ProgressObserver& observer) : observer_(observer) {}
  void End() {
    const std::lock_guard lock(mutex_);
    observer_.Done(++done_);
  }

 private:
  ProgressObserver& observer_;
  std::mutex mutex_;
  double done_ = 0;
};

template <typename Row>
void KeepPlayed(const std::vector<uint8_t>& is_played, std::vector<Row>* rows) {
  std::vector<Row> kept;
  for (size_t i = 0; i < rows->size(); ++i)
    if (is_played[i] != 0) kept.push_back(std::move((*rows)[i]));
  *rows = std::move(kept);
}

}  // namespace

const char* Name(StepPart part) {
  switch (part) {
    case StepPart::kGemm:
      return "gemm";
    case StepPart::kAttention:
      return "attention";
    case StepPart::kMemory:
      return "memory";
    case StepPart::kLaunches:
      return "launches";
    case StepPart::kCommunication:
      return "communication";
    case StepPart::kIdle:
      return "idle";
  }
  CHECK(false);
}

ValidatedGroup Judge(std::string name, std::vector<size_t> members,
                     const std::vector<ValidatedRow>& rows) {
  CHECK(!members.empty());
  ValidatedGroup group;
  group.name = std::move(name);
  group.rows = std::move(members);
  std::vector<double> sizes;
  for (const size_t i : group.rows) {
    const ValidatedRow& row = rows[i];
    sizes.push_back(std::abs(row.error));
    group.bias += row.error;
    group.within += sizes.back() <= kNearEnough ? 1 : 0;
    group.memory_fits += row.fits ? 1 : 0;
    if (row.memory_error) {
      ++group.memory_rows;
      group.memory_mean += std::abs(*row.memory_error);
      group.memory_worst = std::max(group.memory_worst, std::abs(*row.memory_error));
    }
    for (const size_t j : group.rows) {
      if (!(rows[j].measured_mfu > row.measured_mfu + kApart)) continue;
      ++group.pairs;
      group.ordered += rows[j].predicted_mfu > row.predicted_mfu ? 1 : 0;
    }
  }
  const auto count = static_cast<double>(sizes.size());
  group.mean = std::accumulate(sizes.begin(), sizes.end(), 0.0) / count;
  group.median = MedianOf(sizes);
  group.bias /= count;
  if (group.memory_rows > 0) group.memory_mean /= static_cast<double>(group.memory_rows);
  return group;
}

Validation Validate(ValidationTable* table, unsigned threads, ProgressObserver& observer,
                    const std::function<bool()>& is_stopped) {
  std::vector<MeasuredRow>& measured = table->rows;
  const size_t count = measured.size();
  observer.Begin("reading", "rows", count);
  std::vector<Scenario> scenarios(count);
  std::vector<std::string> groups(count);
  ReaderCache cache;  // rows are of few machines and models
  for (size_t i = 0; i < count; ++i) {
    const MeasuredRow& row = measured[i];
    scenarios[i] = ReadScenario(row.document, &cache);
    scenarios[i].allow_out_of_memory = true;
    groups[i] = GroupOf(row, scenarios[i]);
    observer.Done(static_cast<double>(i + 1));
  }
  Validation validation;
  validation.rows.resize(count);
  observer.Begin("validating", "rows", count);
  RowsObserver rows(observer);
  std::vector<uint8_t> is_played(count, 0);  // each written by one thread, so no bits
  const std::vector<size_t> order = LargestFirst(scenarios);
  std::vector<std::exception_ptr> faults(count);
  InParallel(count, threads, [&](size_t turn) {
    if (is_stopped && is_stopped()) return;
    const size_t i = order[turn];
    try {
      validation.rows[i] = PlayRow(measured[i], scenarios[i]);
      is_played[i] = 1;
    } catch (...) {
      faults[i] = std::current_exception();
    }
    rows.End();
  });
  for (const std::exception_ptr& fault : faults)
    if (fault) std::rethrow_exception(fault);
  KeepPlayed(is_played, &validation.rows);
  KeepPlayed(is_played, &measured);
  KeepPlayed(is_played, &groups);
  if (measured.empty() && count > 0) throw Stopped("no row was played");
  std::vector<std::string> names;
  for (const std::string& name : groups) {
    if (std::find(names.begin(), names.end(), name) == names.end()) names.push_back(name);
  }
  std::vector<size_t> all(measured.size());
  std::iota(all.begin(), all.end(), size_t{0});
  for (const std::string& name : names) {
    std::vector<size_t> members;
    std::copy_if(all.begin(), all.end(), std::back_inserter(members),
                 [&](size_t i) { return groups[i] == name; });
    validation.groups.push_back(Judge(name, std::move(members), validation.rows));
  }
  if (names.size() > 1) validation.groups.push_back(Judge("all", std::move(all), validation.rows));
  return validation;
}

Validation Validate(const ValidationTable& table, unsigned threads, ProgressObserver& observer) {
  ValidationTable all = table;
  return Validate(&all, threads, observer, nullptr);
}

}  // namespace rehearse

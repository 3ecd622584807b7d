#include "sim/report/comparison.h"

#include <algorithm>
#include <cmath>
#include <limits>
#include <map>
#include <span>
#include <tuple>

#include <fmt/format.h>

#include "sim/base/error.h"
#include "sim/report/fixed_ops.h"
#include "sim/report/kernel_name.h"
#include "sim/report/numbered_spans.h"

namespace rehearse {
namespace {

// ---- Ops of one timeline, by what they are ------------------------------------------------------

struct OpMean {
  double ranks = 0;
  Seconds time;  // sums over ranks
  Seconds waiting;
};

// By number; of no rank where the timeline lacks the op.
std::vector<OpMean> MeansOf(const std::vector<NumberedRank>& ranks, size_t numbers) {
  std::vector<OpMean> means(numbers);
  for (const NumberedRank& rank : ranks) {
    for (const auto& [number, span] : rank.spans) {
      OpMean& mean = means[number];
      mean.ranks += rank.like_it;
      mean.time += rank.like_it * ToSeconds(span->end - span->begin);
      mean.waiting += rank.like_it * ToSeconds(span->begin - span->ready);
    }
  }
  return means;
}

// ---- What the ranks did at each moment ----------------------------------------------------------

enum class Doing : uint8_t { kComputing, kCommunicating, kWaiting };

struct Change {
  Time time;
  Doing what;
  int by;  // +1 begins, -1 ends
};

void AddInterval(Time from, Time to, Doing what, std::vector<Change>* changes) {
  if (from >= to) return;
  changes->push_back({from, what, 1});
  changes->push_back({to, what, -1});
}

StepShares SharesOfRank(const TimelineRecord& record, const Timeline& timeline, uint32_t rank) {
  std::vector<Change> changes;
  const auto [first, last] = timeline.SpansOf(rank);
  for (size_t i = first; i < last; ++i) {
    const Span& span = timeline.spans[i];
    if (record.OpOf(span).kind == kWaitKind) continue;
    const bool is_compute = record.OpOf(span).axis.empty();
    AddInterval(span.begin, span.end, is_compute ? Doing::kComputing : Doing::kCommunicating,
                &changes);
    if (!is_compute) AddInterval(span.ready, span.begin, Doing::kWaiting, &changes);
  }
  std::sort(changes.begin(), changes.end(),
            [](const Change& x, const Change& y) { return x.time < y.time; });
  StepShares shares;
  Time now;
  int active[3] = {0, 0, 0};
  const auto advance = [&](Time to) {
    const Seconds passed = ToSeconds(to - now);
    (active[0] > 0   ? shares.compute
     : active[1] > 0 ? shares.communication
     : active[2] > 0 ? shares.waiting
                     : shares.nothing) += passed;
    now = to;
  };
  for (const Change& change : changes) {
    advance(change.time);
    active[static_cast<size_t>(change.what)] += change.by;
  }
  advance(timeline.step);
  return shares;
}

StepShares MeanShares(const TimelineRecord& record, const Timeline& timeline,
                      const std::vector<NumberedRank>& ranks) {
  StepShares mean;
  for (const NumberedRank& rank : ranks) {
    const StepShares own = SharesOfRank(record, timeline, rank.rank);
    const double share = rank.like_it / timeline.ranks;
    mean.compute += share * own.compute;
    mean.communication += share * own.communication;
    mean.waiting += share * own.waiting;
    mean.nothing += share * own.nothing;
  }
  return mean;
}

// ---- Order --------------------------------------------------------------------------------------

// Inversions of a sequence of distinct numbers, by merging. `merged` is room for as many.
uint64_t CountInversions(std::span<uint32_t> values, std::span<uint32_t> merged) {
  if (std::is_sorted(values.begin(), values.end())) return 0;
  const size_t middle = values.size() / 2;
  uint64_t count = CountInversions(values.first(middle), merged.first(middle)) +
                   CountInversions(values.subspan(middle), merged.subspan(middle));
  size_t i = 0;
  size_t j = middle;
  for (uint32_t& next : merged) {
    if (j == values.size() || (i < middle && values[i] < values[j])) {
      next = values[i++];
    } else {
      count += middle - i;
      next = values[j++];
    }
  }
  std::copy(merged.begin(), merged.end(), values.begin());
  return count;
}

// Numbers of a rank's spans, by when they begin.
std::vector<uint32_t> InOrder(std::vector<NumberedSpan> spans) {
  std::stable_sort(spans.begin(), spans.end(), [](const NumberedSpan& x, const NumberedSpan& y) {
    return x.span->begin < y.span->begin;
  });
  std::vector<uint32_t> numbers;
  numbers.reserve(spans.size());
  for (const NumberedSpan& one : spans) numbers.push_back(one.number);
  return numbers;
}

std::map<uint32_t, std::vector<uint32_t>> OrdersOf(const std::vector<NumberedRank>& ranks) {
  std::map<uint32_t, std::vector<uint32_t>> orders;
  for (const NumberedRank& rank : ranks) orders.emplace(rank.rank, InOrder(rank.spans));
  return orders;
}

void CompareOrder(const Timeline& a_timeline, const std::vector<NumberedRank>& a_ranks,
                  const Timeline& b_timeline, const std::vector<NumberedRank>& b_ranks,
                  const std::vector<SpanMeaning>& meanings, Comparison* comparison) {
  if (a_timeline.ranks != b_timeline.ranks) return;
  std::map<std::pair<uint32_t, uint32_t>, double> pairs;  // of representatives -> ranks
  for (uint32_t rank = 0; rank < a_timeline.ranks; ++rank)
    ++pairs[{a_timeline.RepresentativeOf(rank), b_timeline.RepresentativeOf(rank)}];
  const auto a_orders = OrdersOf(a_ranks);
  const auto b_orders = OrdersOf(b_ranks);
  double inversions = 0;
  double possible = 0;
  constexpr uint32_t kNowhere = std::numeric_limits<uint32_t>::max();
  std::vector<uint32_t> place_in_b(meanings.size(), kNowhere);
  for (const auto& [ranks, weight] : pairs) {
    const std::vector<uint32_t>& b_order = b_orders.at(ranks.second);
    for (uint32_t place = 0; place < b_order.size(); ++place) place_in_b[b_order[place]] = place;
    std::vector<uint32_t> places;
    for (const uint32_t number : a_orders.at(ranks.first)) {
      const uint32_t place = place_in_b[number];
      if (place == kNowhere) continue;
      const bool is_first = !places.empty() && place < places.back();
      if (is_first && comparison->first_out_of_order.empty()) {
        const RecordedOp& op = *meanings[number].op;
        comparison->first_out_of_order = fmt::format(
            "\"{}\" of layer {} on rank {}", ShortKernelName(op.name), op.layer, ranks.first);
      }
      places.push_back(place);
    }
    for (const uint32_t number : b_order) place_in_b[number] = kNowhere;
    const auto n = static_cast<double>(places.size());
    std::vector<uint32_t> merged(places.size());
    possible += weight * n * (n - 1) / 2;
    inversions += weight * static_cast<double>(CountInversions(places, merged));
  }
  comparison->pairs_out_of_order = possible > 0 ? inversions / possible : 0;
}

// ---- Groups -------------------------------------------------------------------------------------

double MedianOf(std::vector<double> values) {
  if (values.empty()) return 0;
  const size_t middle = values.size() / 2;
  std::sort(values.begin(), values.end());
  return values.size() % 2 == 1 ? values[middle] : (values[middle - 1] + values[middle]) / 2;
}

template <typename NameOf>
std::vector<ComparedGroup> GroupBy(const std::vector<ComparedOp>& ops, NameOf name_of) {
  std::vector<ComparedGroup> groups;
  std::map<std::string, std::vector<const ComparedOp*>> members;
  std::vector<std::string> order;
  for (const ComparedOp& op : ops) {
    const std::string name = name_of(op.op);
    if (name.empty()) continue;
    auto& own = members[name];
    if (own.empty()) order.push_back(name);
    own.push_back(&op);
  }
  for (const std::string& name : order) {
    ComparedGroup group;
    group.name = name;
    std::vector<double> a;
    std::vector<double> b;
    std::vector<double> differences;
    std::vector<double> absolute;
    for (const ComparedOp* op : members[name]) {
      ++group.ops;
      group.total.a += op->time.a;
      group.total.b += op->time.b;
      a.push_back(op->time.a.value());
      b.push_back(op->time.b.value());
      differences.push_back(op->time.Difference());
      absolute.push_back(std::abs(op->time.Difference()));
    }
    group.median = {Seconds(MedianOf(a)), Seconds(MedianOf(b))};
    group.median_difference = MedianOf(differences);
    group.median_absolute_difference = MedianOf(absolute);
    groups.push_back(std::move(group));
  }
  return groups;
}

std::string WaitingOf(const TimelineRecord& record) {
  if (!record.environment.is_object()) return "";
  const auto found = record.environment.find(kWaitingKey);
  if (found == record.environment.end() || !found->is_string()) return "";
  return *found == kWaitingUnknown || *found == kWaitingPartlyUnknown ? found->get<std::string>()
                                                                      : "";
}

}  // namespace

std::vector<size_t> Comparison::Worst(size_t count) const {
  std::vector<size_t> order(ops.size());
  for (size_t i = 0; i < order.size(); ++i) order[i] = i;
  const auto gap = [&](size_t i) { return std::abs((ops[i].time.a - ops[i].time.b).value()); };
  std::stable_sort(order.begin(), order.end(), [&](size_t x, size_t y) { return gap(x) > gap(y); });
  order.resize(std::min(count, order.size()));
  return order;
}

Comparison Compare(const TimelineRecord& a, const TimelineRecord& b) {
  const Timeline& a_timeline = a.Median();
  const Timeline& b_timeline = b.Median();
  Comparison comparison;
  comparison.a_title = a.title;
  comparison.b_title = b.title;
  comparison.a_provenance = a.provenance;
  comparison.b_provenance = b.provenance;
  comparison.a_left_out = a.left_out.size();
  comparison.b_left_out = b.left_out.size();
  comparison.step = {ToSeconds(a_timeline.step), ToSeconds(b_timeline.step)};

  SpanNumbers numbers;
  const std::vector<NumberedRank> a_ranks = numbers.Number(a, a_timeline);
  const std::vector<NumberedRank> b_ranks = numbers.Number(b, b_timeline);
  const std::vector<SpanMeaning>& meanings = numbers.meanings();
  comparison.a_shares = MeanShares(a, a_timeline, a_ranks);
  comparison.b_shares = MeanShares(b, b_timeline, b_ranks);
  comparison.a_waiting = WaitingOf(a);
  comparison.b_waiting = WaitingOf(b);
  const std::vector<OpMean> a_means = MeansOf(a_ranks, meanings.size());
  const std::vector<OpMean> b_means = MeansOf(b_ranks, meanings.size());
  for (size_t number = 0; number < meanings.size(); ++number) {
    const OpMean& ours = a_means[number];
    const OpMean& theirs = b_means[number];
    // Waits are gaps, and no work that the other could lack.
    if (meanings[number].op->kind == kWaitKind) continue;
    comparison.only_in_a += ours.ranks > 0 && theirs.ranks == 0 ? 1 : 0;
    comparison.only_in_b += ours.ranks == 0 && theirs.ranks > 0 ? 1 : 0;
    if (ours.ranks == 0 || theirs.ranks == 0) continue;
    ComparedOp op{*meanings[number].op, meanings[number].occurrence, {}, {}};
    op.op.micro_batch = meanings[number].micro_batch;
    op.time = {ours.time / ours.ranks, theirs.time / theirs.ranks};
    op.waiting = {ours.waiting / ours.ranks, theirs.waiting / theirs.ranks};
    comparison.ops.push_back(std::move(op));
  }

  comparison.kinds = GroupBy(comparison.ops, [](const RecordedOp& op) { return op.kind; });
  comparison.axes = GroupBy(comparison.ops, [](const RecordedOp& op) { return op.axis; });
  comparison.layers = GroupBy(comparison.ops, [](const RecordedOp& op) {
    return op.layer < 0 ? "outside layers" : fmt::format("layer {}", op.layer);
  });
  CompareOrder(a_timeline, a_ranks, b_timeline, b_ranks, meanings, &comparison);
  return comparison;
}

namespace {

constexpr double kLongest = 1e18;
constexpr int64_t kMostChannels = 1 << 16;

// Less than the clock's tick is no time of a step, and what is divided by it no difference.
Seconds ReadSeconds(const JsonReader& reader) {
  constexpr double kTick = 1e-12;
  const double seconds = reader.Number(0, kLongest);
  if (seconds > 0 && seconds < kTick)
    reader.Fail(fmt::format("found {} s, expected 0 or at least {} s", seconds, kTick));
  return Seconds(seconds);
}

// An executed step says "measured" where a simulated one names its fidelity.
Provenance ProvenanceOf(const JsonReader& result) {
  const bool is_measured = result.Has("fidelity") && result.At("fidelity").String() == "measured";
  return is_measured ? Provenance::kMeasured : Provenance::kSimulated;
}

StepShares ReadShares(const JsonReader& breakdown) {
  StepShares shares;
  shares.compute = ReadSeconds(breakdown.At("compute_seconds"));
  shares.communication = ReadSeconds(breakdown.At("exposed_communication_seconds"));
  shares.nothing = ReadSeconds(breakdown.At("idle_seconds"));
  return shares;
}

// Ways by (axis, kind, bytes).
using Ways = std::map<std::tuple<std::string, std::string, Bytes>, std::vector<std::string>>;

Ways ReadWays(const JsonReader& result) {
  Ways ways;
  if (!result.Has("collectives")) return ways;
  for (const JsonReader& chosen : result.At("collectives").Elements()) {
    std::string way = chosen.At("algorithm").String();
    way += ", " + chosen.At("protocol").String();
    const int64_t channels = chosen.At("channels").Integer(0, kMostChannels);
    if (channels > 0) way += fmt::format(", {} channel{}", channels, channels == 1 ? "" : "s");
    ways[{chosen.At("axis").String(), chosen.At("kind").String(),
          Bytes(chosen.At("bytes").Number(0, kLongest))}]
        .push_back(std::move(way));
  }
  return ways;
}

}  // namespace

Comparison CompareResults(const JsonReader& a, const JsonReader& b) {
  Comparison comparison;
  comparison.a_title = a.At("scenario").String();
  comparison.b_title = b.At("scenario").String();
  comparison.a_provenance = ProvenanceOf(a);
  comparison.b_provenance = ProvenanceOf(b);
  comparison.step = {ReadSeconds(a.At("step_seconds")), ReadSeconds(b.At("step_seconds"))};
  comparison.a_shares = ReadShares(a.At("breakdown"));
  comparison.b_shares = ReadShares(b.At("breakdown"));
  for (const auto& [name, axis] : a.At("by_axis").Members()) {
    if (!b.At("by_axis").Has(name)) continue;
    const JsonReader theirs = b.At("by_axis").At(name);
    ComparedGroup group;
    group.name = name;
    group.ops = static_cast<size_t>(axis.At("operations").Number(0, kLongest));
    group.total = {ReadSeconds(axis.At("seconds")), ReadSeconds(theirs.At("seconds"))};
    const double operations = std::max(1.0, axis.At("operations").Number(0, kLongest));
    const double their_operations = std::max(1.0, theirs.At("operations").Number(0, kLongest));
    group.median = {group.total.a / operations, group.total.b / their_operations};
    group.median_difference = group.median.Difference();
    group.median_absolute_difference = std::abs(group.median.Difference());
    comparison.axes.push_back(std::move(group));
  }
  const Ways theirs = ReadWays(b);
  for (const auto& [what, way] : ReadWays(a)) {
    const auto found = theirs.find(what);
    if (found == theirs.end()) continue;
    const auto& [axis, kind, bytes] = what;
    comparison.choices.push_back({axis, kind, bytes, way, found->second});
  }
  return comparison;
}

}  // namespace rehearse

#include "scenarios/diagnosing/timeline_parts.h"

#include <algorithm>
#include <map>
#include <variant>

#include <fmt/format.h>

#include "sim/base/error.h"
#include "sim/base/units.h"
#include "sim/base/visible_text.h"

namespace rehearse {
namespace {

constexpr double kIsLate = 1.1;

MeasuredStep PartOf(const char* name, StepMeasure measure, Seconds value) {
  return {fmt::format("{} {}", name, Print(value)), measure, value.value()};
}

// How long each rank computes, in the median step.
std::vector<Seconds> ComputeOfRanks(const TimelineRecord& record) {
  const Timeline& timeline = record.Median();
  std::vector<Seconds> computing(record.ranks());
  for (uint32_t rank = 0; rank < record.ranks(); ++rank) {
    const auto [first, last] = timeline.SpansOf(rank);
    for (size_t i = first; i < last; ++i) {
      const Span& span = timeline.spans[i];
      if (record.OpOf(span).axis.empty()) computing[rank] += ToSeconds(span.end - span.begin);
    }
  }
  return computing;
}

// Of what each rank takes, in seconds or times something.
std::optional<LateRank> LateOf(const std::vector<double>& ranks) {
  std::vector<double> sorted = ranks;
  std::sort(sorted.begin(), sorted.end());
  if (sorted.empty()) return std::nullopt;
  const double median = sorted[(sorted.size() - 1) / 2];
  if (median <= 0 || sorted.back() / median < kIsLate) return std::nullopt;
  const auto late = std::max_element(ranks.begin(), ranks.end()) - ranks.begin();
  const auto all = std::count_if(ranks.begin(), ranks.end(),
                                 [&](double time) { return time / median >= kIsLate; });
  return LateRank{static_cast<uint32_t>(late), sorted.back() / median,
                  static_cast<size_t>(all) - 1};
}

struct TransferName {
  std::string name;
  std::string kind;
  std::string axis;
  auto operator<=>(const TransferName&) const = default;
};

// Of collectives; messages have no size here.
std::map<TransferName, Bytes> SizesIn(const Schedule& schedule) {
  std::map<TransferName, Bytes> sizes;
  for (const Role& role : schedule.roles) {
    for (const Op& op : role.ops) {
      const auto* const collective = std::get_if<Collective>(&op.work);
      if (collective == nullptr) continue;
      const std::string& axis = schedule.communicators[collective->communicator.index()].name();
      sizes.emplace(TransferName{op.name, Name(collective->kind), axis}, collective->bytes);
    }
  }
  return sizes;
}

// Collectives of one kind, axis and size, or messages of one axis, which have no size here.
struct TransferGroup {
  std::string kind;
  std::string axis;
  Bytes bytes;
  auto operator<=>(const TransferGroup&) const = default;

  std::string Words() const {
    return fmt::format("{} on \"{}\"{}", kind, VisibleText(axis),
                       bytes > Bytes(0) ? fmt::format(", {}", Print(bytes)) : "");
  }
};

// What they take a rank.
std::map<TransferGroup, TimePair> TransfersBySize(const Comparison& comparison,
                                                  const Schedule& schedule) {
  const std::map<TransferName, Bytes> sizes = SizesIn(schedule);
  std::map<TransferGroup, TimePair> transfers;
  for (const ComparedOp& one : comparison.ops) {
    if (one.op.axis.empty()) continue;
    const auto size = sizes.find({one.op.name, one.op.kind, one.op.axis});
    TimePair& time =
        transfers[{one.op.kind, one.op.axis, size == sizes.end() ? Bytes(0) : size->second}];
    time.a += one.time.a;
    time.b += one.time.b;
  }
  return transfers;
}

std::string LateRanks(const std::optional<LateRank>& late) {
  if (!late) return "";
  return fmt::format(
      "rank {} computes {:.2f} times as long as the median rank{}: others wait for it\n",
      late->rank, late->factor,
      late->others > 0 ? fmt::format(", and {} more are late", late->others) : "");
}

}  // namespace

std::optional<LateRank> LateRankOf(const TimelineRecord& record) {
  std::vector<double> ranks;
  for (const Seconds time : ComputeOfRanks(record)) ranks.push_back(time.value());
  return LateOf(ranks);
}

std::optional<LateRank> LateRankOf(const TimelineRecord& measured, const TimelineRecord& expected) {
  const std::vector<Seconds> there = ComputeOfRanks(measured);
  const std::vector<Seconds> here = ComputeOfRanks(expected);
  CHECK(there.size() == here.size());
  std::vector<double> ratios;
  for (size_t rank = 0; rank < there.size(); ++rank)
    ratios.push_back(here[rank] > Seconds(0) ? there[rank] / here[rank] : 0);
  return LateOf(ratios);
}

std::vector<MeasuredStep> PartsMeasured(const Comparison& comparison) {
  const StepShares& shares = comparison.b_shares;
  const Seconds idle = shares.waiting + shares.nothing;
  std::vector<MeasuredStep> parts = {PartOf("step", StepMeasure::kStep, comparison.step.b),
                                     PartOf("compute", StepMeasure::kCompute, shares.compute)};
  if (!comparison.b_waiting.empty()) {
    parts.push_back(
        PartOf("communication and idle", StepMeasure::kNotComputing, shares.communication + idle));
    return parts;
  }
  parts.push_back(PartOf("exposed communication", StepMeasure::kExposed, shares.communication));
  parts.push_back(PartOf("idle", StepMeasure::kIdle, idle));
  return parts;
}

std::string PartsText(const Comparison& comparison, const Schedule& expected,
                      const std::optional<LateRank>& late) {
  std::string text =
      fmt::format("{:<46} {:>12} {:>12} {:>10}\n", "of a rank", "expected", "measured", "measured");
  text += fmt::format("{:<46} {:>12} {:>12} {:>10}\n", "", "", "", "/expected");
  const auto write = [&](const std::string& name, const TimePair& time) {
    if (time.a <= Seconds(0)) return;
    text += fmt::format("{:<46} {:>12} {:>12} {:>10.2f}\n", name, Print(time.a), Print(time.b),
                        time.b / time.a);
  };
  const auto is_transfer = [&](const std::string& kind) {
    return std::any_of(comparison.ops.begin(), comparison.ops.end(), [&](const ComparedOp& one) {
      return one.op.kind == kind && !one.op.axis.empty();
    });
  };
  for (const ComparedGroup& kind : comparison.kinds)
    if (!is_transfer(kind.name)) write(VisibleText(kind.name), kind.total);
  for (const auto& [group, time] : TransfersBySize(comparison, expected))
    write(group.Words(), time);
  return text + LateRanks(late) + "\n";
}

}  // namespace rehearse

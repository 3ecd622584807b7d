#include "tools/foreign/traces/kineto/kineto_steps.h"

#include <algorithm>
#include <charconv>
#include <limits>
#include <map>
#include <optional>
#include <tuple>
#include <utility>

#include <fmt/format.h>

#include "sim/base/error.h"
#include "sim/base/visible_text.h"
#include "tools/foreign/traces/kernel_names.h"

namespace rehearse {
namespace {

// When the host launched it; if that is not known, when it began.
int64_t LaunchOf(const KinetoTrace& trace, const KinetoEvent& event) {
  const auto launch = trace.launches.find(event.correlation);
  return launch == trace.launches.end() ? event.begin : launch->second.at;
}

// By begin; in traces that Rehearse wrote, by op.
void SortEvents(const KinetoTrace& trace, std::vector<uint32_t>* events) {
  const auto key = [&](uint32_t place) {
    const KinetoEvent& event = trace.events[place];
    const uint32_t op = event.own == kNotGiven ? 0 : trace.owns[event.own].op;
    const int64_t begin = event.own == kNotGiven ? event.begin : 0;
    return std::make_tuple(op, begin, event.stream, place);
  };
  std::sort(events->begin(), events->end(),
            [&](uint32_t a, uint32_t b) { return key(a) < key(b); });
}

// Of annotations inside others, the outer ones.
std::vector<KinetoRange> SortedSteps(const KinetoTrace& trace) {
  std::vector<KinetoRange> all = trace.steps;
  std::stable_sort(all.begin(), all.end(), [](const KinetoRange& a, const KinetoRange& b) {
    return a.begin != b.begin ? a.begin < b.begin : a.end > b.end;
  });
  std::vector<KinetoRange> steps;
  for (KinetoRange& step : all) {
    if (steps.empty() || step.begin >= steps.back().end) {
      steps.push_back(std::move(step));
      continue;
    }
    if (step.end <= steps.back().end) continue;
    throw Error(fmt::format("{}: rank {}: {} begins before {} ends: its clock runs backwards",
                            trace.file, *trace.rank, VisibleText(step.name),
                            VisibleText(steps.back().name)));
  }
  return steps;
}

// The number that ends a step's name; nothing if none does.
std::optional<int64_t> NumberOfStep(const std::string& name) {
  const size_t digits = name.find_last_not_of("0123456789") + 1;
  int64_t number = 0;
  const char* const end = name.data() + name.size();
  const auto [next, problem] = std::from_chars(name.data() + digits, end, number);
  if (digits == name.size() || problem != std::errc() || next != end) return std::nullopt;
  return number;
}

// What is the same in steps that do the same, stream by stream.
using Signature = std::map<uint64_t, std::vector<uint32_t>>;
Signature SignatureOf(const KinetoTrace& trace, const std::vector<uint32_t>& events) {
  Signature signature;
  for (const uint32_t place : events)
    signature[trace.events[place].stream].push_back(trace.events[place].name);
  return signature;
}

// The events in the order of the model's ops: the k-th of a stream is the k-th there.
std::vector<uint32_t> OrderedAs(const KinetoTrace& trace, const std::vector<uint32_t>& model,
                                const std::vector<uint32_t>& events) {
  std::map<uint64_t, std::pair<std::vector<uint32_t>, size_t>> of_stream;
  for (const uint32_t place : events) of_stream[trace.events[place].stream].first.push_back(place);
  std::vector<uint32_t> ordered;
  ordered.reserve(events.size());
  for (const uint32_t place : model) {
    auto& [own, next] = of_stream.at(trace.events[place].stream);
    ordered.push_back(own[next++]);
  }
  return ordered;
}

Phase PhaseOf(const KinetoTrace& trace, const KinetoEvent& event) {
  const auto launch = trace.launches.find(event.correlation);
  if (launch == trace.launches.end()) return Phase::kForward;
  for (const KinetoRange& update : trace.updates) {
    if (update.begin <= launch->second.at && launch->second.at < update.end) return Phase::kUpdate;
  }
  const std::vector<int64_t>& threads = trace.backward_threads;
  const bool is_backward =
      std::find(threads.begin(), threads.end(), launch->second.thread) != threads.end();
  return is_backward ? Phase::kBackward : Phase::kForward;
}

// Steps as they are annotated, with what was launched in each, and how much lies outside of them.
struct AnnotatedSteps {
  std::vector<KinetoStep> steps;
  uint64_t outside = 0;
  bool is_annotated = false;
};

AnnotatedSteps DividedSteps(const KinetoRanksOfStep& ranks) {
  AnnotatedSteps divided;
  std::vector<KinetoStep>& steps = divided.steps;
  std::vector<KinetoRange> ranges;
  for (const KinetoTrace& trace : ranks.traces) {
    const std::vector<KinetoRange> own = SortedSteps(trace);
    if (&trace == ranks.traces.data()) {
      ranges = own;
      divided.is_annotated = !ranges.empty();
      for (const KinetoRange& range : ranges) steps.push_back({VisibleText(range.name), {}});
      if (steps.empty()) steps.push_back({"all that was traced", {}});
    }
    const bool is_equal =
        std::equal(own.begin(), own.end(), ranges.begin(), ranges.end(),
                   [](const KinetoRange& a, const KinetoRange& b) { return a.name == b.name; });
    if (!is_equal) {
      throw Error(fmt::format(
          "{}: rank {} has {} steps from {} on, but rank {} ({}) has {} from {}", trace.file,
          *trace.rank, own.size(), own.empty() ? "none" : VisibleText(own[0].name),
          *ranks.traces[0].rank, ranks.traces[0].file, ranges.size(),
          ranges.empty() ? "none" : VisibleText(ranges[0].name)));
    }
    for (KinetoStep& step : steps) step.events.emplace_back();
    for (uint32_t place = 0; place < trace.events.size(); ++place) {
      const int64_t at = LaunchOf(trace, trace.events[place]);
      const auto next =
          std::upper_bound(own.begin(), own.end(), at,
                           [](int64_t time, const KinetoRange& range) { return time < range.end; });
      const auto step = static_cast<size_t>(next - own.begin());
      if (!own.empty() && (step == own.size() || at < own[step].begin))
        ++divided.outside;
      else
        steps[step].events.back().push_back(place);
    }
    for (KinetoStep& step : steps) SortEvents(trace, &step.events.back());
  }
  return divided;
}

size_t CountEvents(const KinetoStep& step) {
  size_t count = 0;
  for (const std::vector<uint32_t>& events : step.events) count += events.size();
  return count;
}

// Which step is the model: one that does what most do; of several such, not one that does less than
// half of what another does (the profiler began or stopped in it), and the last of them.
size_t ModelOf(const KinetoRanksOfStep& ranks, const std::vector<KinetoStep>& steps) {
  std::map<std::vector<Signature>, size_t> times;
  std::vector<std::vector<Signature>> signatures;
  size_t largest = 0;
  for (const KinetoStep& step : steps) {
    std::vector<Signature>& own = signatures.emplace_back();
    for (uint32_t rank = 0; rank < ranks.traces.size(); ++rank)
      own.push_back(SignatureOf(ranks.traces[rank], step.events[rank]));
    ++times[own];
    largest = std::max(largest, CountEvents(step));
  }
  size_t model = 0;
  std::tuple<bool, size_t, bool> best;
  for (size_t i = 0; i < steps.size(); ++i) {
    const size_t count = CountEvents(steps[i]);
    const std::tuple<bool, size_t, bool> own = {count > 0, times.at(signatures[i]),
                                                2 * count >= largest};
    if (i > 0 && own < best) continue;
    best = own;
    model = i;
  }
  return model;
}

// The step that the user wants, among those of its name.
size_t WantedStep(const KinetoRanksOfStep& ranks, const std::vector<KinetoStep>& steps,
                  int64_t number) {
  std::vector<std::string> names;
  for (size_t i = 0; i < steps.size(); ++i) {
    if (NumberOfStep(steps[i].name) != number) {
      names.push_back(steps[i].name);
      continue;
    }
    if (CountEvents(steps[i]) > 0) return i;
    throw Error(fmt::format("{}: found no kernels in {}, expected what a GPU did",
                            ranks.traces[0].file, steps[i].name));
  }
  constexpr size_t kMost = 8;
  const bool is_cut = names.size() > kMost;
  names.resize(std::min(names.size(), kMost));
  throw Error(fmt::format("--step: found no step {} in {}; there are {}{}", number,
                          ranks.traces[0].file, fmt::join(names, ", "), is_cut ? ", ..." : ""));
}

int64_t BeginOnDevice(const KinetoTrace& trace, const std::vector<uint32_t>& events) {
  int64_t begin = std::numeric_limits<int64_t>::max();
  for (const uint32_t place : events) begin = std::min(begin, trace.events[place].begin);
  return begin;
}
int64_t EndOnDevice(const KinetoTrace& trace, const std::vector<uint32_t>& events) {
  int64_t end = std::numeric_limits<int64_t>::min();
  for (const uint32_t place : events) end = std::max(end, trace.events[place].end);
  return end;
}

int64_t MiddleOf(std::vector<int64_t> values) {
  const auto middle = values.begin() + static_cast<std::ptrdiff_t>(values.size() / 2);
  std::nth_element(values.begin(), middle, values.end());
  return *middle;
}

// How much later than each step the one that is annotated next began, where it did anything; on
// the median rank.
std::vector<std::optional<int64_t>> PeriodsOf(const KinetoRanksOfStep& ranks,
                                              const std::vector<KinetoStep>& steps,
                                              std::vector<bool>* overlaps) {
  std::vector<std::optional<int64_t>> periods(steps.size());
  overlaps->assign(steps.size(), false);
  for (size_t i = 0; i + 1 < steps.size(); ++i) {
    std::vector<int64_t> later;
    for (uint32_t rank = 0; rank < ranks.traces.size(); ++rank) {
      const std::vector<uint32_t>& own = steps[i].events[rank];
      const std::vector<uint32_t>& next = steps[i + 1].events[rank];
      if (own.empty() || next.empty()) continue;
      const KinetoTrace& trace = ranks.traces[rank];
      const int64_t begin = BeginOnDevice(trace, next);
      later.push_back(begin - BeginOnDevice(trace, own));
      if (EndOnDevice(trace, own) > begin) (*overlaps)[i] = true;
    }
    if (later.empty()) continue;
    const int64_t period = MiddleOf(later);
    if (period > 0) periods[i] = period;
  }
  return periods;
}

// Moves what ran after the step's period by whole periods to where it ran in the step before. Each
// op by as many periods as in the first of the steps, which all do the same; their order becomes
// that of the moved times. Returns how many ops of a step were moved, over all ranks.
uint64_t FoldSteps(KinetoRanksOfStep* ranks, std::vector<KinetoStep>* steps) {
  uint64_t moved = 0;
  for (uint32_t rank = 0; rank < ranks->traces.size(); ++rank) {
    KinetoTrace& trace = ranks->traces[rank];
    std::vector<int64_t> periods_later;
    for (KinetoStep& step : *steps) {
      std::vector<uint32_t>& events = step.events[rank];
      if (events.empty()) continue;
      const int64_t begin = BeginOnDevice(trace, events);
      const bool is_first = &step == steps->data();
      for (size_t i = 0; i < events.size(); ++i) {
        KinetoEvent& event = trace.events[events[i]];
        if (is_first) periods_later.push_back((event.begin - begin) / step.period);
        if (periods_later[i] == 0) continue;
        moved += is_first ? 1 : 0;
        const int64_t length = event.end - event.begin;
        event.begin = std::max(begin, event.begin - periods_later[i] * step.period);
        event.end = event.begin + length;
      }
    }
    std::vector<uint32_t> order(steps->front().events[rank].size());
    for (uint32_t i = 0; i < order.size(); ++i) order[i] = i;
    const std::vector<uint32_t> first = steps->front().events[rank];
    std::stable_sort(order.begin(), order.end(), [&](uint32_t a, uint32_t b) {
      return trace.events[first[a]].begin < trace.events[first[b]].begin;
    });
    for (KinetoStep& step : *steps) {
      const std::vector<uint32_t> old = step.events[rank];
      for (size_t i = 0; i < order.size(); ++i) step.events[rank][i] = old[order[i]];
    }
  }
  return moved;
}

}  // namespace

std::vector<KinetoStep> StepsOf(KinetoRanksOfStep* traced, const KinetoOptions& options,
                                std::vector<std::string>* remarks) {
  const KinetoRanksOfStep& ranks = *traced;
  AnnotatedSteps divided = DividedSteps(ranks);
  std::vector<KinetoStep>& steps = divided.steps;
  if (divided.outside > 0)
    remarks->push_back(
        fmt::format("{} kernels and copies left out: outside of all steps", divided.outside));
  const size_t model =
      options.step ? WantedStep(ranks, steps, *options.step) : ModelOf(ranks, steps);
  if (CountEvents(steps[model]) == 0) {
    throw Error(fmt::format("{}: found no kernels{}, expected what a GPU did", ranks.traces[0].file,
                            divided.is_annotated ? " in any step" : ""));
  }
  std::vector<bool> is_left_out(steps.size());
  for (size_t i = 0; i < steps.size(); ++i) {
    if (i == model) continue;
    if (options.step) {
      is_left_out[i] = true;
    } else if (CountEvents(steps[i]) == 0) {
      is_left_out[i] = true;
      remarks->push_back(fmt::format("{} left out: nothing was launched in it", steps[i].name));
    }
  }
  for (uint32_t rank = 0; rank < ranks.traces.size(); ++rank) {
    const KinetoTrace& trace = ranks.traces[rank];
    const std::vector<uint32_t> own = steps[model].events[rank];
    const Signature signature = SignatureOf(trace, own);
    for (size_t i = 0; i < steps.size(); ++i) {
      if (is_left_out[i] || i == model) continue;
      if (SignatureOf(trace, steps[i].events[rank]) == signature) {
        steps[i].events[rank] = OrderedAs(trace, own, steps[i].events[rank]);
        continue;
      }
      is_left_out[i] = true;
      remarks->push_back(fmt::format("{} left out: rank {} does not do the same there as in {}",
                                     steps[i].name, *trace.rank, steps[model].name));
    }
  }
  std::vector<bool> overlaps;
  const std::vector<std::optional<int64_t>> periods = PeriodsOf(ranks, steps, &overlaps);
  std::vector<int64_t> known;
  bool is_overlapping = false;
  for (size_t i = 0; i < steps.size(); ++i) {
    if (is_left_out[i]) continue;
    if (periods[i]) known.push_back(*periods[i]);
    is_overlapping = is_overlapping || overlaps[i] || (i > 0 && overlaps[i - 1]);
  }
  // A step that nothing follows has the period of those before it.
  for (size_t i = 0; known.empty() && i < steps.size(); ++i)
    if (periods[i]) known.push_back(*periods[i]);
  std::vector<KinetoStep> kept;
  for (size_t i = 0; i < steps.size(); ++i) {
    if (is_left_out[i]) continue;
    if (is_overlapping && !known.empty() && !ranks.traces[0].is_own)
      steps[i].period = periods[i] ? *periods[i] : MiddleOf(known);
    kept.push_back(std::move(steps[i]));
  }
  if (kept.front().period > 0) {
    const uint64_t moved = FoldSteps(traced, &kept);
    remarks->push_back(fmt::format(
        "steps overlap on the devices: a step is from one's first kernel to the next one's, {:.3f} "
        "ms; {} kernels and copies that run later are shown where they ran in the step before",
        static_cast<double>(MiddleOf(known)) / 1e9, moved));
  }
  return kept;
}

RecordedOp OpOfEvent(const KinetoRanksOfStep& ranks, uint32_t rank, const KinetoEvent& event) {
  const KinetoTrace& trace = ranks.traces[rank];
  RecordedOp op;
  op.name = trace.names[event.name];
  if (event.own != kNotGiven) {
    const KinetoOwn& own = trace.owns[event.own];
    if (!own.name.empty()) op.name = own.name;
    op.kind = own.kind;
    op.axis = own.axis;
    op.phase = own.phase;
    op.layer = own.layer;
    op.micro_batch = own.micro_batch;
    return op;
  }
  op.phase = PhaseOf(trace, event);
  if (event.transfer == kNotGiven) {
    op.kind = ComputeOfKernel(op.name);
    return op;
  }
  const KinetoWork& work = ranks.works[rank][event.transfer];
  const KinetoTransfer& transfer = trace.transfers[event.transfer];
  op.axis = work.group != kNotGiven  ? ranks.groups[work.group].axis
            : transfer.group.empty() ? "group not told"
                                     : "group " + VisibleText(transfer.group);
  op.kind = work.collective   ? Name(*work.collective)
            : work.is_send    ? "send"
            : work.is_receive ? "receive"
                              : CommunicationOfKernel(op.name).value_or(kSomeCommunication);
  return op;
}

}  // namespace rehearse

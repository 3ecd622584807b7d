#include "tools/foreign/traces/kineto/kineto_steps.h"

#include <algorithm>
#include <initializer_list>
#include <map>
#include <string_view>
#include <tuple>
#include <utility>

#include <fmt/format.h>

#include "sim/base/error.h"
#include "sim/base/visible_text.h"

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

std::vector<KinetoRange> SortedSteps(const KinetoTrace& trace) {
  std::vector<KinetoRange> steps = trace.steps;
  std::sort(steps.begin(), steps.end(),
            [](const KinetoRange& a, const KinetoRange& b) { return a.begin < b.begin; });
  for (size_t i = 1; i < steps.size(); ++i) {
    if (steps[i].begin >= steps[i - 1].end) continue;
    throw Error(fmt::format("{}: rank {}: {} begins before {} ends: its clock runs backwards",
                            trace.file, *trace.rank, VisibleText(steps[i].name),
                            VisibleText(steps[i - 1].name)));
  }
  return steps;
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

bool HasAny(std::string_view text, std::initializer_list<const char*> parts) {
  return std::any_of(parts.begin(), parts.end(),
                     [&](const char* part) { return text.find(part) != std::string_view::npos; });
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

// What a kernel of NCCL does, by its name: "ncclDevKernel_AllGather_RING_LL",
// "ncclKernel_Reduce_…".
const char* KindOfKernel(std::string_view name) {
  constexpr std::pair<std::string_view, CollectiveKind> kKinds[] = {
      {"_AllReduce", CollectiveKind::kAllReduce},
      {"_AllGather", CollectiveKind::kAllGather},
      {"_ReduceScatter", CollectiveKind::kReduceScatter},
      {"_Broadcast", CollectiveKind::kBroadcast},
      {"_Reduce", CollectiveKind::kReduce}};
  for (const auto& [word, kind] : kKinds)
    if (name.find(word) != std::string_view::npos) return Name(kind);
  return "send-receive";
}

}  // namespace

std::vector<KinetoStep> StepsOf(const KinetoRanksOfStep& ranks, std::vector<std::string>* remarks) {
  std::vector<KinetoStep> steps;
  uint64_t outside = 0;
  std::vector<KinetoRange> ranges;
  for (const KinetoTrace& trace : ranks.traces) {
    const std::vector<KinetoRange> own = SortedSteps(trace);
    if (&trace == ranks.traces.data()) {
      ranges = own;
      for (const KinetoRange& range : ranges) steps.push_back({VisibleText(range.name), {}});
      if (steps.empty()) steps.push_back({"all that was traced", {}});
    }
    const bool is_equal =
        std::equal(own.begin(), own.end(), ranges.begin(), ranges.end(),
                   [](const KinetoRange& a, const KinetoRange& b) { return a.name == b.name; });
    if (!is_equal) {
      throw Error(fmt::format("{}: rank {} has {} steps from {} on, but rank 0 ({}) has {} from {}",
                              trace.file, *trace.rank, own.size(),
                              own.empty() ? "none" : VisibleText(own[0].name), ranks.traces[0].file,
                              ranges.size(),
                              ranges.empty() ? "none" : VisibleText(ranges[0].name)));
    }
    for (KinetoStep& step : steps) step.events.emplace_back();
    for (uint32_t place = 0; place < trace.events.size(); ++place) {
      const int64_t at = LaunchOf(trace, trace.events[place]);
      size_t step = 0;
      while (step < own.size() && at >= own[step].end) ++step;
      if (!own.empty() && (step == own.size() || at < own[step].begin))
        ++outside;
      else
        steps[step].events.back().push_back(place);
    }
    for (KinetoStep& step : steps) SortEvents(trace, &step.events.back());
  }
  if (outside > 0)
    remarks->push_back(
        fmt::format("{} kernels and copies left out: outside of all steps", outside));
  const size_t last = steps.size() - 1;
  std::vector<bool> is_left_out(steps.size());
  for (uint32_t rank = 0; rank < ranks.traces.size(); ++rank) {
    const KinetoTrace& trace = ranks.traces[rank];
    const std::vector<uint32_t> model = steps[last].events[rank];
    const Signature signature = SignatureOf(trace, model);
    for (size_t i = 0; i < last; ++i) {
      if (is_left_out[i]) continue;
      if (SignatureOf(trace, steps[i].events[rank]) == signature) {
        steps[i].events[rank] = OrderedAs(trace, model, steps[i].events[rank]);
        continue;
      }
      is_left_out[i] = true;
      remarks->push_back(fmt::format("{} left out: rank {} does not do the same there as in {}",
                                     steps[i].name, rank, steps[last].name));
    }
  }
  std::vector<KinetoStep> kept;
  bool is_empty = true;
  for (size_t i = 0; i <= last; ++i) {
    if (is_left_out[i]) continue;
    for (const std::vector<uint32_t>& events : steps[i].events)
      is_empty = is_empty && events.empty();
    kept.push_back(std::move(steps[i]));
  }
  if (is_empty) {
    throw Error(fmt::format("{}: found no kernels{}, expected what a GPU did", ranks.traces[0].file,
                            ranges.empty() ? "" : " in " + kept.back().name));
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
    const std::string_view name = op.name;
    op.kind = HasAny(name, {"flash", "fmha", "attention"})                  ? "attention"
              : HasAny(name, {"gemm", "nvjet", "cutlass", "xmma", "Cijk_"}) ? "gemm"
                                                                            : "memory";
    return op;
  }
  const KinetoWork& work = ranks.works[rank][event.transfer];
  const KinetoTransfer& transfer = trace.transfers[event.transfer];
  op.axis = "group " + VisibleText(transfer.group.empty() ? "not told" : transfer.group);
  op.kind = work.collective   ? Name(*work.collective)
            : work.is_send    ? "send"
            : work.is_receive ? "receive"
                              : KindOfKernel(op.name);
  return op;
}

}  // namespace rehearse

#include "tests/golden/step_entry.h"

#include <map>
#include <variant>

#include <fmt/format.h>
#include <nlohmann/json.hpp>

#include "scenarios/playing/rehearsal.h"
#include "sim/base/error.h"
#include "sim/report/kept_ranks.h"
#include "sim/report/timeline_gantt.h"
#include "sim/report/timeline_record.h"
#include "sim/report/trace.h"
#include "tests/golden/record.h"
#include "tests/support/fingerprint.h"
#include "tools/picture_options.h"

namespace rehearse {
namespace {

std::string Figure(double value) { return fmt::format("{:.6g}", value); }
std::string Milliseconds(Seconds time) { return Figure(1e3 * time.value()); }

// Short, since there are hundreds: the rest is in the digests.
std::string FiguresOf(const Result& result, bool brief) {
  const Breakdown& parts = result.breakdown;
  std::string text = fmt::format("{} ms: compute {}, exposed {}, idle {}; HFU {:.4g}, {} {}/s\n",
                                 Milliseconds(result.step), Milliseconds(parts.compute),
                                 Milliseconds(parts.exposed_communication),
                                 Milliseconds(parts.idle), result.hardware_flops_utilization,
                                 Figure(result.tokens_per_second), result.token_name);
  std::string_view before;
  for (const AxisUse& axis : result.axes) {
    if (axis.operations == 0) continue;
    text += fmt::format("{}{} {}x {} B, {} ms exposed", before, axis.name, Figure(axis.operations),
                        Figure(axis.bytes.value()), Milliseconds(axis.exposed));
    before = "; ";
  }
  if (!before.empty()) text += "\n";
  const MemoryUse& memory = result.memory;
  if (!brief) {
    text += fmt::format(
        "memory {} + {} + {} + {} + {} MB; ", Figure(1e-6 * memory.parameters.value()),
        Figure(1e-6 * memory.gradients.value()), Figure(1e-6 * memory.optimizer.value()),
        Figure(1e-6 * memory.activations.value()), Figure(1e-6 * memory.buffers.value()));
  }
  text += fmt::format("{} events, {} transfers, {} classes\n", result.simulator.events,
                      result.simulator.transfers, result.simulator.classes);
  return text;
}

std::string OpsOf(const Schedule& schedule) {
  std::map<std::string, uint64_t> counts;
  for (const uint32_t role : schedule.role_of_rank)
    for (const Op& op : schedule.roles[role].ops) ++counts[KindOf(op.work)];
  std::string text;
  for (const auto& [kind, count] : counts) text += fmt::format(" {} {},", count, kind);
  if (!text.empty()) text.back() = '\n';
  return text;
}

std::string LinksOf(const Timeline& timeline) {
  std::string text;
  for (const LinkRecord& link : timeline.links) {
    text += fmt::format("{} {} {} {} {}\n", link.name, link.kind, link.capacity.value(),
                        link.bytes.value(), link.count);
    for (const LinkLoad& load : link.loads)
      text += fmt::format("{} {}\n", load.from.picoseconds(), load.bytes_per_second);
  }
  return text;
}

std::string Played(const Scenario& scenario, const StepEntryOptions& options) {
  const Rehearsal played = Rehearse(scenario, {.record_link_loads = options.loads, .threads = 1});
  std::string text = options.brief ? "" : "ops:" + OpsOf(played.schedule);
  text += FiguresOf(played.result, options.brief);
  if (played.jobs) {
    for (const JobResult& job : played.jobs->jobs)
      text += "job " + job.result.scenario + "\n" + FiguresOf(job.result, options.brief);
  }
  const std::string json =
      played.jobs ? ToJson(*played.jobs).dump(1) : ToJson(played.result).dump(1);
  const std::string words = played.jobs ? ToText(*played.jobs, true) : ToText(played.result, true);
  text += "timeline " + played.result.timeline_hash.substr(0, 8);
  text += DigestOfBytes("schedule", FingerprintOf(played.schedule));
  text += DigestOfText("result", WithoutCosts(json));
  text += DigestOfText("text", WithoutCosts(words));
  text += DigestOfText("links", LinksOf(played.timeline));
  constexpr size_t kMostSpans = 20'000;  // what is drawn of large steps takes longer than they do
  if (played.timeline.spans.size() <= kMostSpans) {
    TraceOptions traced;
    traced.ranks = RanksToKeep(played.schedule, played.timeline, {});
    PictureOptions picture;
    picture.ranks = FirstRanksOfRoles(played.schedule);
    std::string trace = PerfettoTrace(played.schedule, played.timeline, played.names, traced);
    // And one that leaves out micro-batches, ranks and links.
    traced = {.ranks = {0}, .most_ops = 50, .most_links = 3};
    trace += PerfettoTrace(played.schedule, played.timeline, played.names, traced);
    // A window that cuts spans at both ends.
    const Time step = played.timeline.step;
    const Time from(step.picoseconds() / 5);
    const Time to(step.picoseconds() / 3);
    const std::string svg = TimelineSvg(played.schedule, played.timeline, played.names, picture);
    const std::string gantt =
        TimelineGantt(played.schedule, played.timeline, played.names,
                      {.ranks = picture.ranks, .from = from, .to = to, .color = true});
    text += DigestOfBytes("trace", trace);
    text += DigestOfText("svg", svg);
    text += DigestOfText("gantt", gantt);
  }
  return text + "\n";
}

}  // namespace

std::string StepEntry(const Scenario& scenario, const StepEntryOptions& options) {
  try {
    return Played(scenario, options);
  } catch (const Error& error) {
    return fmt::format("refused: {}\n", error.what());
  }
}

}  // namespace rehearse

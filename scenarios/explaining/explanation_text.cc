#include <algorithm>

#include <fmt/format.h>

#include "scenarios/explaining/explanation.h"
#include "sim/base/units.h"
#include "sim/report/kernel_name.h"
#include "sim/report/text_page.h"

namespace rehearse {
namespace {

void Heading(Page& page, const char* what, const std::string& remark) {
  page.Gap();
  page.Line("{}   {}", page.pen(Ink::kBold, what), page.pen(Ink::kFaint, remark));
}

// Of a kernel from a profile without what C++ adds to it; tables have all of it.
std::string ShortOp(const OpName& name) { return Shortened(ShortKernelName(name.op), 33); }

// Says how many rows are not shown.
void More(Page& page, size_t all, size_t shown) {
  if (all > shown) page.Line("  … and {} more", all - shown);
}

void WriteShares(Page& page, const std::vector<PathShare>& shares, Seconds step, size_t rows) {
  for (size_t i = 0; i < std::min(rows, shares.size()); ++i) {
    const PathShare& share = shares[i];
    page.Line("  {:<34}{:>8}{:>12}{:>10}", Shortened(ShortKernelName(share.name), 33),
              Grouped(share.steps), Print(share.seconds),
              Percent(Share(share.seconds.value(), step.value())));
  }
  More(page, shares.size(), rows);
}

void WritePath(Page& page, const Explanation& explanation, size_t rows) {
  const Seconds step = explanation.result.step;
  Heading(page, "Critical path", "what the step waited for, from its beginning to its end");
  page.Line("{}", page.pen(Ink::kFaint, fmt::format("  {:<34}{:>8}{:>12}{:>10}", "kind", "steps",
                                                    "time", "of step")));
  WriteShares(page, explanation.path_by_kind, step, rows);
  page.Line("{}", page.pen(Ink::kFaint, "  op"));
  WriteShares(page, explanation.path_by_op, step, rows);
  page.Line("{}", page.pen(Ink::kFaint, "  layer, longest first"));
  std::vector<PathShare> layers = explanation.path_by_layer;
  std::stable_sort(layers.begin(), layers.end(),
                   [](const PathShare& a, const PathShare& b) { return a.seconds > b.seconds; });
  WriteShares(page, layers, step, rows);

  std::vector<PathStep> longest = explanation.path;
  std::stable_sort(longest.begin(), longest.end(), [](const PathStep& a, const PathStep& b) {
    return a.end - a.begin > b.end - b.begin;
  });
  page.Line("{}",
            page.pen(Ink::kFaint, fmt::format("  {:<34}{:>8}{:>12}{:>12}{:>7}  {}", "longest steps",
                                              "rank", "time", "from", "layer", "phase")));
  for (size_t i = 0; i < std::min(rows, longest.size()); ++i) {
    const PathStep& step_of = longest[i];
    page.Line("  {:<34}{:>8}{:>12}{:>12}{:>7}  {}", ShortOp(step_of.name), Grouped(step_of.rank),
              Print(step_of.end - step_of.begin), Print(step_of.begin),
              step_of.layer < 0 ? "" : fmt::format("{}", step_of.layer), Name(step_of.phase));
  }
  More(page, longest.size(), rows);
}

void WriteSlack(Page& page, const Explanation& explanation, size_t rows) {
  Heading(page, "Slack", "how much longer an op could take without the step ending later");
  page.Line("{}", page.pen(Ink::kFaint, fmt::format("  {:<34}{:<16}{:>8}{:>12}{:>12}", "op", "kind",
                                                    "runs", "least", "median")));
  std::vector<NamedSlack> spare;  // those on the path have been listed
  for (const NamedSlack& slack : explanation.slack) {
    if (slack.median > Seconds(0)) spare.push_back(slack);
  }
  for (size_t i = 0; i < std::min(rows, spare.size()); ++i) {
    page.Line("  {:<34}{:<16}{:>8}{:>12}{:>12}", ShortOp(spare[i].name),
              Shortened(spare[i].name.kind, 15), Grouped(spare[i].runs), Print(spare[i].least),
              Print(spare[i].median));
  }
  More(page, spare.size(), rows);
}

void WriteExposure(Page& page, const Explanation& explanation, size_t rows) {
  const Seconds step = explanation.result.step;
  Heading(page, "Exposed communication",
          fmt::format("{}, {} of the step, mean over ranks",
                      Print(explanation.result.breakdown.exposed_communication),
                      Percent(Share(explanation.result.breakdown.exposed_communication.value(),
                                    step.value()))));
  page.Line("{}", page.pen(Ink::kFaint, fmt::format("  {:<34}{:<16}{:>8}{:>12}{:>12}{:>10}", "op",
                                                    "axis", "runs", "time", "exposed", "of step")));
  for (size_t i = 0; i < std::min(rows, explanation.exposed.size()); ++i) {
    const NamedExposure& row = explanation.exposed[i];
    page.Line("  {:<34}{:<16}{:>8.4g}{:>12}{:>12}{:>10}", ShortOp(row.name),
              Shortened(row.name.kind, 15), row.operations, Print(row.seconds), Print(row.exposed),
              Percent(Share(row.exposed.value(), step.value())));
  }
  More(page, explanation.exposed.size(), rows);
}

void WriteLinks(Page& page, const Explanation& explanation, size_t rows) {
  Heading(page, "Links that held transfers back",
          "at once: transfers that share the link; 1 is a bottleneck without contention");
  if (explanation.links.empty()) page.Line("  none");
  for (size_t i = 0; i < std::min(rows, explanation.links.size()); ++i) {
    const ContendedLink& link = explanation.links[i];
    page.Line("  {:<40}{:<10}{:>13}  for {}, {} in use, {} at once", Shortened(link.name, 39),
              link.kind, Print(link.capacity), Print(link.held_back), Percent(link.utilization),
              Grouped(link.most_at_once));
    for (size_t j = 0; j < std::min(rows, link.shared_by.size()); ++j) {
      const SharingOp& sharer = link.shared_by[j];
      page.Line("    {:<34}{:<16}{:>8} at once{:>14}", ShortOp(sharer.name),
                Shortened(sharer.name.kind, 15), Grouped(sharer.most_at_once), Print(sharer.bytes));
    }
    More(page, link.shared_by.size(), rows);
  }
  More(page, explanation.links.size(), rows);
  if (explanation.bottlenecks.empty()) return;
  page.Line("{}", page.pen(Ink::kFaint, fmt::format("  {:<34}{:<16}{:>10}  {:<38}{:>8}", "op",
                                                    "axis", "transfers", "held back by", "share")));
  for (size_t i = 0; i < std::min(rows, explanation.bottlenecks.size()); ++i) {
    const NamedBottleneck& row = explanation.bottlenecks[i];
    page.Line("  {:<34}{:<16}{:>10}  {:<38}{:>8}", ShortOp(row.name), Shortened(row.name.kind, 15),
              Grouped(row.transfers), Shortened(row.link, 37), Percent(row.share));
  }
  More(page, explanation.bottlenecks.size(), rows);
}

void WriteNetwork(Page& page, const Explanation& explanation, size_t rows) {
  if (!explanation.network) return;
  Heading(page, "Ports of the network",
          "longest queues, bars over time as shares of the longest; x: it had to stand still");
  for (const std::string& line : NetworkLines(*explanation.network, rows)) page.Line("  {}", line);
}

// A library chooses by its own estimates. What they cost or gain is seen beside the step of a
// library that chooses as it does now.
void WriteNewChoices(Page& page, const Sensitivity& row, Seconds step, size_t rows) {
  if (row.anew.empty()) return;
  const std::string kept =
      row.kept ? fmt::format("; if it chose as now, {} ({:+.2f} %)", Print(*row.kept),
                             100 * Share((*row.kept - step).value(), step.value()))
               : "";
  page.Line("  with {} the library would choose otherwise, by its own estimates{}", row.what, kept);
  for (size_t i = 0; i < std::min(rows, row.anew.size()); ++i) {
    const auto& [before, after] = row.anew[i];
    page.Line("    {:<34}{:>12}   {}, {} -> {}, {}",
              Shortened(fmt::format("{} on {}", before.kind, before.axis), 33), Print(before.bytes),
              before.algorithm, before.protocol, after.algorithm, after.protocol);
  }
  More(page, row.anew.size(), rows);
}

void WriteSensitivities(Page& page, const Explanation& explanation, size_t rows) {
  Heading(page, "What would help", "the step if this alone were 10 % better");
  const Seconds step = explanation.result.step;
  for (const Sensitivity& row : explanation.sensitivities) {
    const double change = Share((row.step - step).value(), step.value());
    page.Line("  {:<34}{:>12}{:>10}", Shortened(row.what, 33), Print(row.step),
              fmt::format("{:+.2f} %", 100 * change));
  }
  for (const Sensitivity& row : explanation.sensitivities) WriteNewChoices(page, row, step, rows);
  if (!explanation.left_out.empty())
    page.Line("  not simulated: {}", fmt::format("{}", fmt::join(explanation.left_out, ", ")));
}

void WriteStages(Page& page, const Explanation& explanation) {
  if (explanation.stages.empty()) return;
  Heading(page, "Other stages", "the step on the same devices, with the same batch");
  const Result& result = explanation.result;
  const auto line = [&](const std::string& what, Seconds step, double idle, Bytes memory) {
    const double change = Share((step - result.step).value(), result.step.value());
    page.Line("  {:<52}{:>10}{:>10}{:>10}{:>12}", Shortened(what, 51), Print(step),
              fmt::format("{:+.1f} %", 100 * change), Percent(idle), Print(memory));
  };
  page.Line("{}", page.pen(Ink::kFaint, fmt::format("  {:<52}{:>10}{:>10}{:>10}{:>12}", "", "step",
                                                    "change", "idle", "memory")));
  line("as it is", result.step, Share(result.breakdown.idle.value(), result.step.value()),
       result.memory.Total());
  for (const StageChange& row : explanation.stages) {
    if (row.refused.empty()) {
      line(row.what, row.step, row.idle, row.memory);
    } else {
      page.Line("  {:<52}cannot be: {}", Shortened(row.what, 51), row.refused);
    }
  }
}

}  // namespace

std::string ToLine(const std::vector<PathShare>& kinds) {
  constexpr size_t kMost = 3;
  constexpr double kVisible = 0.5;
  Seconds all;
  for (const PathShare& kind : kinds) all += kind.seconds;
  std::string line;
  for (size_t i = 0; i < std::min(kinds.size(), kMost); ++i) {
    const double percent = 100 * Share(kinds[i].seconds.value(), all.value());
    if (percent >= kVisible)
      line += fmt::format("{}{} {:.0f} %", line.empty() ? "" : ", ", kinds[i].name, percent);
  }
  return line;
}

std::string ToText(const Explanation& explanation, size_t rows, bool color) {
  Page page(color);
  page.Line("{}   {} ranks, fidelity {}",
            page.pen(Ink::kBold, Shortened(explanation.result.scenario, 60)),
            Grouped(explanation.result.ranks), explanation.result.fidelity);
  for (const JsonChange& change : explanation.result.changes) page.Line("{}", ToText(change));
  page.Gap();
  page.Line("{} {}", explanation.of_jobs ? "All jobs have ended after" : "One step takes",
            page.pen(Ink::kBold, Print(explanation.result.step)));
  for (const std::string& line : RouteLines(explanation.result)) page.Line("  {}", line);
  for (const std::string& line : PlacementLines(explanation.result)) page.Line("  {}", line);
  if (explanation.result.experts) page.Line("  {}", ExpertLine(explanation.result));
  WritePath(page, explanation, rows);
  WriteSlack(page, explanation, rows);
  WriteExposure(page, explanation, rows);
  WriteNetwork(page, explanation, rows);
  WriteLinks(page, explanation, rows);
  WriteStages(page, explanation);
  WriteSensitivities(page, explanation, rows);
  page.Gap();
  page.Line("{}", page.pen(Ink::kFaint,
                           fmt::format("Left out by fidelity {}: {}", explanation.result.fidelity,
                                       explanation.result.left_out)));
  return std::move(page.text);
}

}  // namespace rehearse

#include <algorithm>
#include <cmath>

#include <fmt/format.h>

#include "sim/base/units.h"
#include "sim/report/result.h"
#include "sim/report/text_page.h"

namespace rehearse {
namespace {

constexpr int kBarCells = 34;
constexpr size_t kMostAxes = 8;
constexpr size_t kMostChosen = 12;
constexpr size_t kMostRoles = 16;
constexpr size_t kMostLinks = 5;

// A bar of `share` times kBarCells cells, to an eighth of a cell; anything above zero shows.
std::string Bar(double share) {
  static constexpr const char* kEighths[] = {"", "▏", "▎", "▍", "▌", "▋", "▊", "▉"};
  const double clamped = std::clamp(share, 0.0, 1.0);
  int eighths = static_cast<int>(std::lround(clamped * kBarCells * 8));
  if (eighths == 0 && clamped > 0) eighths = 1;
  std::string bar;
  for (int cell = 0; cell < eighths / 8; ++cell) bar += "█";
  return bar + kEighths[eighths % 8];
}

// Means over ranks are seldom whole when roles differ.
std::string Count(double value) {
  return value == std::floor(value) ? Grouped(static_cast<uint64_t>(value))
                                    : fmt::format("{:.1f}", value);
}

void WriteRoutes(Page& page, const Result& result) {
  if (result.typical) {
    const TypicalStep& typical = *result.typical;
    const std::string slowest =
        result.ranks == 1
            ? "as devices differ"
            : fmt::format("waiting for the slowest of {} devices, {} behind the median",
                          Grouped(result.ranks), Percent(typical.slowest - 1));
    page.Line("  {}", page.pen(Ink::kFaint,
                               fmt::format("typically {} ({} to {}), {}", Print(typical.median),
                                           Print(typical.low), Print(typical.high), slowest)));
  }
  const std::vector<std::string> lines = RouteLines(result);
  for (size_t i = 0; i < lines.size(); ++i)
    page.Line("  {}", page.pen(i == 0 ? Ink::kFaint : Ink::kYellow, lines[i]));
  for (const std::string& line : PlacementLines(result))
    page.Line("  {}", page.pen(Ink::kYellow, line));
}

// "training.kernels": eager; where a scenario says otherwise, the stack's value is shown as well.
void WriteSoftware(Page& page, const SoftwareUse& software) {
  if (software.name.empty()) return;
  constexpr size_t kColumns = 100;
  const auto plain = [](std::string value) {
    std::erase(value, '"');
    return value;
  };
  std::string line = fmt::format("Software {}:", software.name);
  for (size_t i = 0; i < software.switches.size(); ++i) {
    const SwitchUse& one = software.switches[i];
    std::string text =
        fmt::format(" {} {}", one.path.substr(one.path.find('.') + 1), plain(one.value));
    if (!one.stack.empty()) text += fmt::format(" (given; the stack's: {})", plain(one.stack));
    if (i + 1 < software.switches.size()) text += ",";
    if (line.size() + text.size() > kColumns) {
      page.Line("{}", line);
      line = " ";
    }
    line += text;
  }
  page.Line("{}", line);
}

void WriteHeadline(Page& page, const Result& result) {
  page.Line(
      "{}   {} ranks, fidelity {}",
      page.pen(Ink::kBold, Shortened(result.scenario.empty() ? "unnamed" : result.scenario, 60)),
      Grouped(result.ranks), result.fidelity.empty() ? "unknown" : result.fidelity);
  for (const JsonChange& change : result.changes) page.Line("{}", ToText(change));
  WriteSoftware(page, result.software);
  page.Gap();
  const Inked step = page.pen(Ink::kBold, Print(result.step));
  if (!(result.tokens_per_second > 0)) {
    page.Line("One step takes {}", step);
    return WriteRoutes(page, result);
  }
  const std::string rate =
      result.tokens_per_second < 100
          ? fmt::format("{:.2f}", result.tokens_per_second)
          : Grouped(static_cast<uint64_t>(std::llround(result.tokens_per_second)));
  page.Line("One step takes {}, {} {}/s", step, page.pen(Ink::kBold, rate), result.token_name);
  WriteRoutes(page, result);
}

void WriteBreakdown(Page& page, const Result& result) {
  page.Gap();
  page.Line("{}{}", page.pen(Ink::kBold, "Where the time goes"),
            page.pen(Ink::kFaint, "   mean over ranks"));
  const auto row = [&](const char* name, Seconds time, Ink ink) {
    const double share = Share(time.value(), result.step.value());
    page.Line("  {:<22}{:>11}{:>10}  {}", name, Print(time), Percent(share),
              page.pen(ink, Bar(share)));
  };
  row("compute", result.breakdown.compute, Ink::kGreen);
  row("exposed communication", result.breakdown.exposed_communication, Ink::kRed);
  row("idle", result.breakdown.idle, Ink::kYellow);
}

// If there are many, only the first and last ones.
void WriteRoles(Page& page, const Result& result) {
  if (result.roles.empty()) return;
  page.Gap();
  page.Line("{}{}", page.pen(Ink::kBold, "Stages and other roles"),
            page.pen(Ink::kFaint, "   mean over the ranks of each; a pipeline's bubble is idle"));
  page.Line("{}",
            page.pen(Ink::kFaint, fmt::format("  {:<22}{:>8}{:>12}{:>12}{:>12}{:>9}", "role",
                                              "ranks", "compute", "exposed", "idle", "of step")));
  const size_t count = result.roles.size();
  for (size_t i = 0; i < count; ++i) {
    if (count > kMostRoles && i == kMostRoles / 2) {
      page.Line("  … and {} more", count - kMostRoles);
      i = count - kMostRoles / 2;
    }
    const RoleUse& role = result.roles[i];
    const double idle = Share(role.breakdown.idle.value(), result.step.value());
    page.Line("  {:<22}{:>8}{:>12}{:>12}{:>12}{:>9}  {}", Shortened(role.name, 21),
              Grouped(role.ranks), Print(role.breakdown.compute),
              Print(role.breakdown.exposed_communication), Print(role.breakdown.idle),
              Percent(idle), page.pen(Ink::kYellow, Bar(idle)));
  }
}

void WriteAxes(Page& page, const Result& result) {
  page.Gap();
  std::vector<const AxisUse*> axes;
  for (const AxisUse& axis : result.axes) {
    if (axis.operations > 0) axes.push_back(&axis);
  }
  if (axes.empty()) {
    page.Line("{}   none", page.pen(Ink::kBold, "Communication"));
    return;
  }
  page.Line("{}{}", page.pen(Ink::kBold, "Communication"),
            page.pen(Ink::kFaint,
                     fmt::format("   active for {}, {} of it hidden behind compute",
                                 Print(result.communication), Percent(result.overlap_fraction))));
  page.Line("{}", page.pen(Ink::kFaint, fmt::format("  {:<22}{:>11}{:>14}{:>12}{:>12}{:>20}",
                                                    "axis", "operations", "bytes", "time",
                                                    "exposed", "exposed of step")));
  // If there are too many to show, the largest first; else in the order of the schedule.
  const size_t shown = std::min(axes.size(), axes.size() > kMostAxes ? kMostAxes - 1 : kMostAxes);
  if (shown < axes.size()) {
    std::stable_sort(axes.begin(), axes.end(),
                     [](const AxisUse* a, const AxisUse* b) { return a->exposed > b->exposed; });
  }
  for (size_t i = 0; i < shown; ++i) {
    const AxisUse& axis = *axes[i];
    page.Line("  {:<22}{:>11}{:>14}{:>12}{:>12}{:>20}", Shortened(axis.name, 21),
              Count(axis.operations), Print(axis.bytes), Print(axis.seconds), Print(axis.exposed),
              Percent(Share(axis.exposed.value(), result.step.value())));
  }
  if (shown < axes.size()) page.Line("  … and {} more axes", axes.size() - shown);
}

void WriteChosen(Page& page, const Result& result) {
  if (result.chosen.empty()) return;
  page.Gap();
  page.Line("{}", page.pen(Ink::kBold, "How collectives run"));
  const size_t shown = std::min(result.chosen.size(), kMostChosen);
  for (size_t i = 0; i < shown; ++i) {
    const ChosenCollective& chosen = result.chosen[i];
    page.Line("  {:<22}{:>11} {:<16}{}, protocol {}{}", Shortened(chosen.axis, 21),
              Print(chosen.bytes), chosen.kind, chosen.algorithm, chosen.protocol,
              chosen.channels > 0
                  ? fmt::format(", {} channel{}", chosen.channels, chosen.channels == 1 ? "" : "s")
                  : "");
  }
  if (shown < result.chosen.size()) page.Line("  … and {} more", result.chosen.size() - shown);
}

void WriteUtilization(Page& page, const Result& result) {
  // No peak that could be used, or a schedule that does not say how much arithmetic it does.
  if (!(result.peak > FlopsPerSecond(0)) || !(result.hardware_flops_utilization > 0)) return;
  page.Gap();
  page.Line("{}   HFU {} / MFU {} of {} ({}peak of one device)",
            page.pen(Ink::kBold, "Utilisation"),
            page.pen(Ink::kBold, Percent(result.hardware_flops_utilization)),
            page.pen(Ink::kBold, Percent(result.model_flops_utilization)), Print(result.peak),
            result.peak_dtype.empty() ? "" : result.peak_dtype + " ");
}

void WriteTrust(Page& page, const Result& result) {
  if (!result.trust) return;
  const Trust& trust = *result.trust;
  page.Gap();
  if (trust.rows == 0) {
    page.Line("{}   against no published step {}", page.pen(Ink::kBold, "Validated"),
              trust.like.empty() ? "of such devices" : trust.like);
    return;
  }
  page.Line("{}   {}: {} published step{}, on {} to {} devices, {} off in the mean ({}{} bias)",
            page.pen(Ink::kBold, "Validated"), trust.like, trust.rows, trust.rows == 1 ? "" : "s",
            Grouped(trust.fewest), Grouped(trust.most), Percent(trust.mean_error),
            trust.bias < 0 ? "-" : "+", Percent(std::abs(trust.bias)));
}

// From this share of the capacity on, PyTorch's allocator may have to give memory back to the
// driver in each step: LLaMA 13B on 8 H100 took 868 instead of 729 ms
// (Lightning-AI/lightning-thunder issue 420, with and without expandable segments), a 7B one on 16
// A100 7.3 instead of 5.3 s (pytorch/pytorch issue 104509: 46 retries, and none).
constexpr double kNearlyFull = 0.9;

void WriteMemory(Page& page, const Result& result) {
  const double total = result.memory.Total().value();
  const double capacity = result.memory_capacity.value();
  // A schedule without buffers, as one from others' traces, says nothing of memory.
  if (total <= 0 && result.memory.host <= Bytes(0)) return;
  const double room = (1 - result.memory_headroom) * capacity;
  const bool fits = capacity <= 0 || result.MemoryNeeded().value() <= room;
  page.Gap();
  std::string beside;
  if (capacity > 0) {
    beside = fmt::format(" of {} ({})", Print(result.memory_capacity), Percent(total / capacity));
  }
  const std::string rank = result.tightest_rank.empty()
                               ? "the fullest rank"
                               : result.tightest_rank + ", which has the least room";
  page.Line("{}   {}{} on {}{}", page.pen(Ink::kBold, "Memory"),
            page.pen(fits ? Ink::kBold : Ink::kRed, Print(result.memory.Total())), beside, rank,
            page.pen(Ink::kRed, fits ? "" : ": does not fit"));
  // Bars are drawn against the capacity, so the empty part of a bar is free memory.
  const double scale = std::max(total, capacity);
  const auto row = [&](const char* name, Bytes bytes) {
    const double share = Share(bytes.value(), scale);
    page.Line("  {:<22}{:>11}{:>10}  {}", name, Print(bytes), Percent(share),
              page.pen(Ink::kBlue, Bar(share)));
  };
  row("parameters", result.memory.parameters);
  row("gradients", result.memory.gradients);
  row("optimizer", result.memory.optimizer);
  row("activations", result.memory.activations);
  row("buffers", result.memory.buffers);
  if (result.memory.host > Bytes(0))
    page.Line("  {:<22}{:>11}{:>10}  {}", "on the host", Print(result.memory.host), "",
              page.pen(Ink::kFaint, "offloaded, at its largest"));
  if (result.memory_idle > Bytes(0))
    page.Line("  {:<22}{:>11}{:>10}  {}", "idle in the allocator", Print(result.memory_idle),
              Percent(Share(result.memory_idle.value(), scale)),
              page.pen(Ink::kFaint, "given back before anything fails"));
  if (result.memory_headroom > 0)
    page.Line("  {:<22}{:>11}{:>10}  {}", "to stay free",
              Print(result.memory_headroom * result.memory_capacity),
              Percent(result.memory_headroom), page.pen(Ink::kFaint, "the scenario's headroom"));
  if (!(result.memory_reserve > Bytes(0))) return;
  page.Line("  {:<22}{:>11}{:>10}  {}", "in addition, about", Print(result.memory_reserve),
            Percent(Share(result.memory_reserve.value(), scale)),
            page.pen(Ink::kFaint, "driver, NCCL and cuBLAS"));
  if (fits && total + result.memory_reserve.value() >= kNearlyFull * capacity)
    page.Line("  {}", page.pen(Ink::kYellow,
                               "nearly full: an allocator that must free before it "
                               "allocates has made steps 19 and 38 % longer"));
}

void WriteLinks(Page& page, const Result& result) {
  page.Gap();
  if (result.links.empty()) {
    page.Line("{}   none carried anything", page.pen(Ink::kBold, "Links"));
    return;
  }
  page.Line("{}{}", page.pen(Ink::kBold, fmt::format("{:<40}", "Busiest links")),
            page.pen(Ink::kFaint, fmt::format("{:<12}{:>13}{:>14}{:>9}{:>11}", "kind", "carried",
                                              "capacity", "in use", "like it")));
  for (size_t i = 0; i < std::min(kMostLinks, result.links.size()); ++i) {
    const LinkSummary& link = result.links[i];
    page.Line("  {:<38}{:<12}{:>13}{:>14}{:>9}{:>11}", Shortened(link.name, 37),
              Shortened(link.kind, 11), Print(link.bytes), Print(link.capacity),
              Percent(link.utilization), Grouped(link.count - 1));
  }
}

// A real run knows no links, and took as long as its step.
bool IsMeasured(const Result& result) { return result.fidelity == "measured"; }

void WriteCost(Page& page, const Result& result) {
  page.Gap();
  if (!result.left_out.empty()) {
    page.Line("{}", page.pen(Ink::kFaint, fmt::format("Left out by fidelity {}: {}",
                                                      result.fidelity, result.left_out)));
  }
  page.Line("{}",
            page.pen(Ink::kFaint,
                     fmt::format("Simulated in {}: {} events, {} transfers; timeline {}",
                                 Print(result.simulator.wall), Grouped(result.simulator.events),
                                 Grouped(result.simulator.transfers), result.timeline_hash)));
}

void WriteNotes(Page& page, const Result& result) {
  const std::string experts = ExpertLine(result);
  if (result.notes.empty() && experts.empty()) return;
  page.Gap();
  if (!experts.empty()) page.Line("{}", page.pen(Ink::kYellow, experts));
  for (const std::string& note : result.notes) page.Line("{}", page.pen(Ink::kYellow, note));
}

}  // namespace

std::vector<std::string> RouteLines(const Result& result) {
  if (!result.routes) return {};
  const RouteSpread& spread = *result.routes;
  std::string first = spread.routing + ", seed " + std::to_string(spread.seed);
  if (spread.steps.size() > 1) {
    first = fmt::format("{}: {} to {} over {} seeds, this is the median, seed {}", spread.routing,
                        Print(spread.steps.front().step), Print(spread.steps.back().step),
                        spread.steps.size(), spread.seed);
  }
  std::vector<std::string> lines = {
      fmt::format("{}; sprayed it would take {}", first, Print(spread.sprayed))};
  constexpr double kBinds = 1.001;
  if (result.step > kBinds * spread.sprayed && !spread.worst_link.empty()) {
    lines.push_back(fmt::format("collisions cost {}: {} carries {:.2g} times its share",
                                Print(result.step - spread.sprayed), spread.worst_link,
                                spread.worst_share));
  }
  return lines;
}

std::vector<std::string> PlacementLines(const Result& result) {
  if (!result.placement) return {};
  const PlacementSpread& spread = *result.placement;
  std::vector<std::string> lines;
  if (!spread.steps.empty()) {
    const std::string what =
        fmt::format("on what others leave of a cluster that is {:.0f} % busy", 100 * spread.busy);
    const Seconds least = spread.steps.front().step;
    const Seconds most = spread.steps.back().step;
    if (spread.steps.size() == 1) {
      lines.push_back(fmt::format("{}, seed {}", what, spread.seed));
    } else if (most == least) {
      lines.push_back(fmt::format("{}: alike over {} draws", what, spread.steps.size()));
    } else {
      lines.push_back(fmt::format("{}: {} to {} over {} draws, this is the median, seed {}", what,
                                  Print(least), Print(most), spread.steps.size(), spread.seed));
    }
  }
  if (spread.best > Seconds(0) && spread.best < result.step) {
    lines.push_back(
        fmt::format("on the best devices of an empty cluster (\"{}\") it would take "
                    "{}; these cost {:.1f} % more",
                    spread.best_order, Print(spread.best), 100 * (result.step / spread.best - 1)));
  } else if (spread.best > Seconds(0)) {
    lines.push_back("the best devices of an empty cluster would not be quicker");
  }
  return lines;
}

std::string ExpertLine(const Result& result) {
  if (!result.experts) return "";
  const ExpertSpread& spread = *result.experts;
  return fmt::format(
      "which experts are busy ({:g} times an equal share) is one draw: {} to {} over {} of them, "
      "this is the first; with evenly busy ones {}",
      spread.imbalance, Print(spread.steps.front().step), Print(spread.steps.back().step),
      spread.steps.size(), Print(spread.even));
}

std::string StepToText(const Result& result, bool color) {
  Page page(color);
  WriteHeadline(page, result);
  WriteBreakdown(page, result);
  WriteRoles(page, result);
  WriteAxes(page, result);
  WriteChosen(page, result);
  WriteUtilization(page, result);
  WriteTrust(page, result);
  WriteMemory(page, result);
  return std::move(page.text);
}

std::string MachineToText(const Result& result, bool color) {
  Page page(color);
  if (!IsMeasured(result)) WriteLinks(page, result);
  WriteNotes(page, result);
  if (!IsMeasured(result)) WriteCost(page, result);
  return std::move(page.text);
}

std::string ToText(const Result& result, bool color) {
  return StepToText(result, color) + MachineToText(result, color);
}

}  // namespace rehearse

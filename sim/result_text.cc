#include <algorithm>
#include <cmath>
#include <iterator>

#include <fmt/format.h>

#include "sim/result.h"
#include "sim/units.h"

namespace rehearse {
namespace {

constexpr int kBarCells = 34;
constexpr size_t kMostAxes = 8;
constexpr size_t kMostLinks = 5;

enum class Ink { kBold, kFaint, kGreen, kYellow, kRed, kBlue };

// Paints finished (padded) text, or leaves it as it is.
class Pen {
 public:
  explicit Pen(bool color) : color_(color) {}

  std::string operator()(Ink ink, const std::string& text) const {
    static constexpr const char* kCodes[] = {"1", "2", "32", "33", "31", "34"};
    if (!color_ || text.empty()) return text;
    return fmt::format("\x1b[{}m{}\x1b[0m", kCodes[static_cast<size_t>(ink)], text);
  }

 private:
  bool color_;
};

// A bar of `share` times kBarCells cells, to an eighth of a cell; what is more than nothing shows.
std::string Bar(double share) {
  static constexpr const char* kEighths[] = {"", "▏", "▎", "▍", "▌", "▋", "▊", "▉"};
  const double clamped = std::clamp(share, 0.0, 1.0);
  int eighths = static_cast<int>(std::lround(clamped * kBarCells * 8));
  if (eighths == 0 && clamped > 0) eighths = 1;
  std::string bar;
  for (int cell = 0; cell < eighths / 8; ++cell) bar += "█";
  return bar + kEighths[eighths % 8];
}

// "1,234,567"
std::string Grouped(uint64_t value) {
  const std::string digits = fmt::format("{}", value);
  std::string grouped;
  for (size_t i = 0; i < digits.size(); ++i) {
    if (i > 0 && (digits.size() - i) % 3 == 0) grouped += ',';
    grouped += digits[i];
  }
  return grouped;
}

// Means over ranks are seldom whole when roles differ.
std::string Count(double value) {
  return value == std::floor(value) ? Grouped(static_cast<uint64_t>(value))
                                    : fmt::format("{:.1f}", value);
}

double Share(double part, double whole) { return whole > 0 ? part / whole : 0; }

std::string Percent(double share) { return fmt::format("{:.1f} %", 100 * share); }

// The middle of a long name is the least telling part of it. Cuts bytes, so names that are not
// ASCII and too long may lose a character more.
std::string Shortened(const std::string& name, size_t width) {
  if (name.size() <= width) return name;
  const auto continues = [&](size_t at) {
    return at < name.size() && (static_cast<unsigned char>(name[at]) & 0xc0) == 0x80;
  };
  size_t head = (width - 1) / 2;
  size_t tail = name.size() - (width - 1 - head);
  while (head > 0 && continues(head)) --head;
  while (continues(tail)) ++tail;
  return name.substr(0, head) + "…" + name.substr(tail);
}

class Page {
 public:
  explicit Page(bool color) : pen(color) {}

  template <typename... Args>
  void Line(fmt::format_string<Args...> format, Args&&... args) {
    std::string line = fmt::format(format, std::forward<Args>(args)...);
    line.erase(line.find_last_not_of(' ') + 1);
    text += line;
    text += '\n';
  }
  void Gap() { text += '\n'; }

  const Pen pen;
  std::string text;
};

void WriteHeadline(Page& page, const Result& result) {
  page.Line(
      "{}   {} ranks, fidelity {}",
      page.pen(Ink::kBold, Shortened(result.scenario.empty() ? "unnamed" : result.scenario, 60)),
      Grouped(result.ranks), result.fidelity.empty() ? "unknown" : result.fidelity);
  page.Gap();
  std::string rate;
  if (result.tokens_per_second > 0) {
    rate = fmt::format(
        ", {} tokens/s",
        page.pen(Ink::kBold,
                 result.tokens_per_second < 100
                     ? fmt::format("{:.2f}", result.tokens_per_second)
                     : Grouped(static_cast<uint64_t>(std::llround(result.tokens_per_second)))));
  }
  page.Line("One step takes {}{}", page.pen(Ink::kBold, Print(result.step)), rate);
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
  // The largest first when there are too many to show; else the order of the schedule.
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

void WriteUtilization(Page& page, const Result& result) {
  page.Gap();
  page.Line("{}   HFU {} / MFU {} of {} ({}peak of one device)",
            page.pen(Ink::kBold, "Utilisation"),
            page.pen(Ink::kBold, Percent(result.hardware_flops_utilization)),
            page.pen(Ink::kBold, Percent(result.model_flops_utilization)), Print(result.peak),
            result.peak_dtype.empty() ? "" : result.peak_dtype + " ");
}

void WriteMemory(Page& page, const Result& result) {
  const double total = result.memory.Total().value();
  const double capacity = result.memory_capacity.value();
  const bool fits = capacity <= 0 || total <= capacity;
  page.Gap();
  std::string beside;
  if (capacity > 0) {
    beside = fmt::format(" of {} ({})", Print(result.memory_capacity), Percent(total / capacity));
  }
  page.Line("{}   {}{} on the fullest rank{}", page.pen(Ink::kBold, "Memory"),
            page.pen(fits ? Ink::kBold : Ink::kRed, Print(result.memory.Total())), beside,
            fits ? "" : page.pen(Ink::kRed, ": does not fit"));
  // Bars against the capacity, so that what is missing of a full bar is free.
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
}

void WriteLinks(Page& page, const Result& result) {
  page.Gap();
  if (result.links.empty()) {
    page.Line("{}   none carried anything", page.pen(Ink::kBold, "Links"));
    return;
  }
  page.Line("{}{}", page.pen(Ink::kBold, fmt::format("{:<40}", "Busiest links")),
            page.pen(Ink::kFaint, fmt::format("{:<12}{:>13}{:>14}{:>9}", "kind", "carried",
                                              "capacity", "in use")));
  for (size_t i = 0; i < std::min(kMostLinks, result.links.size()); ++i) {
    const LinkSummary& link = result.links[i];
    page.Line("  {:<38}{:<12}{:>13}{:>14}{:>9}", Shortened(link.name, 37), Shortened(link.kind, 11),
              Print(link.bytes), Print(link.capacity), Percent(link.utilization));
  }
}

void WriteCost(Page& page, const Result& result) {
  page.Gap();
  page.Line("{}",
            page.pen(Ink::kFaint,
                     fmt::format("Simulated in {}: {} events, {} transfers; timeline {}",
                                 Print(result.simulator.wall), Grouped(result.simulator.events),
                                 Grouped(result.simulator.transfers), result.timeline_hash)));
}

}  // namespace

std::string ToText(const Result& result, bool color) {
  Page page(color);
  WriteHeadline(page, result);
  WriteBreakdown(page, result);
  WriteAxes(page, result);
  WriteUtilization(page, result);
  WriteMemory(page, result);
  WriteLinks(page, result);
  WriteCost(page, result);
  return std::move(page.text);
}

}  // namespace rehearse

#include "sim/report/timeline_gantt.h"

#include <algorithm>
#include <cmath>
#include <cstdlib>
#include <set>
#include <string_view>
#include <utility>

#include <fmt/format.h>

#include "sim/base/error.h"
#include "sim/base/units.h"
#include "sim/report/lanes.h"
#include "sim/report/span_classes.h"
#include "sim/report/text_page.h"

namespace rehearse {
namespace {

constexpr unsigned kFewestColumns = 48;
constexpr unsigned kMostColumns = 1000;
constexpr size_t kWidestName = 16;
constexpr const char* kFiguresHeading = "  active  exposed";
constexpr size_t kFiguresWidth = 17;
constexpr size_t kIndent = 2;
constexpr double kTickRoom = 13;  // characters from tick to tick

// What one character of a lane stands for: shares of its time.
struct Cell {
  double computed = 0;
  double exposed = 0;
  double hidden = 0;
  double waited = 0;
  std::vector<double> of_class;  // computed or communicated

  const char* Glyph() const {
    static constexpr const char* kHeights[] = {"", "▁", "▂", "▃", "▄", "▅", "▆", "▇", "█"};
    const double solid = std::min(1.0, computed + exposed);
    const auto eighths = static_cast<size_t>(std::lround(8 * solid));
    if (eighths > 0) return kHeights[eighths];
    if (solid + hidden > 0) return solid > hidden ? kHeights[1] : hidden < 0.5 ? "░" : "▒";
    return waited >= 0.5 ? "·" : " ";
  }
  size_t Class() const {
    return static_cast<size_t>(std::max_element(of_class.begin(), of_class.end()) -
                               of_class.begin());
  }
};

// The nearest of a terminal's 216 colours.
int ColorCode(const std::string& hex) {
  const auto step = [&](size_t at) {
    const long value = std::strtol(hex.substr(at, 2).c_str(), nullptr, 16);
    return static_cast<int>(value < 48 ? 0 : value < 115 ? 1 : (value - 35) / 40);
  };
  return 16 + 36 * step(1) + 6 * step(3) + step(5);
}

size_t CharactersOf(std::string_view text) {
  return static_cast<size_t>(std::count_if(text.begin(), text.end(), [](char c) {
    return (static_cast<unsigned char>(c) & 0xc0) != 0x80;
  }));
}

// Characters by position, some of them coloured.
class Row {
 public:
  explicit Row(size_t width) : glyphs_(width, " "), colors_(width, kPlain) {}

  void Put(size_t at, const char* glyph, int color = kPlain) {
    glyphs_.at(at) = glyph;
    colors_.at(at) = color;
  }
  void Write(size_t at, std::string_view ascii) {
    for (size_t i = 0; i < ascii.size() && at + i < glyphs_.size(); ++i)
      glyphs_[at + i] = std::string(1, ascii[i]);
  }

  Inked Text() const {
    std::string text;
    int color = kPlain;
    for (size_t i = 0; i < glyphs_.size(); ++i) {
      if (colors_[i] != color && color != kPlain) text += "\x1b[0m";
      if (colors_[i] != color && colors_[i] != kPlain)
        text += fmt::format("\x1b[38;5;{}m", colors_[i]);
      color = colors_[i];
      text += glyphs_[i];
    }
    return {color == kPlain ? text : text + "\x1b[0m"};
  }

  static constexpr int kPlain = -1;

 private:
  std::vector<std::string> glyphs_;
  std::vector<int> colors_;
};

class Gantt {
 public:
  Gantt(const Schedule& schedule, const Timeline& timeline, const TraceNames& names,
        const GanttOptions& options)
      : schedule_(schedule),
        timeline_(timeline),
        names_(names),
        color_(options.color),
        from_(options.from),
        to_(options.to == Time() ? timeline.step : options.to),
        columns_(std::clamp(options.columns, kFewestColumns, kMostColumns)),
        classes_(schedule),
        page_(options.color) {
    CHECK(!options.ranks.empty());
    CHECK_LE(from_.picoseconds(), to_.picoseconds());
    name_width_ = std::string_view("compute").size();
    for (const uint32_t rank : options.ranks) {
      ranks_.push_back(LanesOf(schedule, timeline, rank));
      std::erase_if(ranks_.back().lanes, [this](const Lane& lane) {
        return std::all_of(lane.spans.begin(), lane.spans.end(), [this](const Span* span) {
          return MovesNothing(schedule_, OpOf(*span).work);
        });
      });
      for (const Lane& lane : ranks_.back().lanes)
        name_width_ = std::max(name_width_, CharactersOf(NameOf(lane)));
    }
    width_ = columns_ - kIndent - name_width_ - 1 - kFiguresWidth;
  }

  std::string Draw() {
    WriteTitle();
    WritePhases();
    for (const RankLanes& rank : ranks_) WriteRank(rank);
    WriteAxis();
    WriteLegend();
    return std::move(page_.text);
  }

 private:
  static std::string NameOf(const Lane& lane) {
    return Shortened(VisibleText(lane.name), kWidestName);
  }

  const Op& OpOf(const Span& span) const {
    return schedule_.roles[schedule_.role_of_rank[span.rank]].At(span.op);
  }

  double Window() const { return static_cast<double>((to_ - from_).picoseconds()); }
  // In characters from the left.
  double X(Time time) const {
    const auto since = static_cast<double>((std::clamp(time, from_, to_) - from_).picoseconds());
    return Window() > 0 ? since / Window() * static_cast<double>(width_) : 0;
  }

  void WriteTitle() {
    std::string title =
        ranks_.size() == 1 ? FullName(ranks_.front().rank) : fmt::format("{} ranks", ranks_.size());
    if (from_ != Time() || to_ != timeline_.step)
      title += fmt::format(", from {} to {}", Print(ToSeconds(from_)), Print(ToSeconds(to_)));
    const Seconds piece = ToSeconds(to_ - from_) / static_cast<double>(width_);
    page_.Line(
        "{}{}", page_.pen(Ink::kBold, "Timeline"),
        page_.pen(Ink::kFaint, fmt::format("   {}; a character is {}", title, Print(piece))));
  }

  std::string FullName(uint32_t rank) const {
    const std::string name = DeviceName(names_, rank);
    const bool has_node = rank < names_.node_of_rank.size();
    const std::string node = has_node ? names_.node_of_rank[rank] : "";
    return node.empty() || name.starts_with(node) ? name : node + " " + name;
  }

  void WritePhases() {
    Row row(width_);
    for (const PhaseExtent& phase : PhasesOf(schedule_, ranks_.front())) {
      if (phase.end <= from_ || phase.begin >= to_) continue;
      const auto begin = static_cast<size_t>(X(phase.begin));
      const size_t end = std::min(width_, static_cast<size_t>(std::ceil(X(phase.end))));
      if (end - begin < 2) continue;
      for (size_t i = begin; i < end; ++i) row.Put(i, "─");
      row.Put(begin, "├");
      row.Put(end - 1, "┤");
      const std::string name = fmt::format(" {} ", phase.name);
      if (end - begin >= name.size() + 4) row.Write(begin + 2, name);
    }
    page_.Line("{:{}}{}{}", "", kIndent + name_width_ + 1, row.Text(),
               page_.pen(Ink::kFaint, kFiguresHeading));
  }

  void WriteRank(const RankLanes& rank) {
    if (ranks_.size() > 1) page_.Line("  {}", page_.pen(Ink::kBold, FullName(rank.rank)));
    const std::vector<TimeInterval> computing = ComputingOf(schedule_, rank, from_, to_);
    for (const Lane& lane : rank.lanes) WriteLane(lane, computing);
  }

  // Adds the part of [begin, end) that is shown to `share` of the cells, and to those of the class.
  void Add(Time begin, Time end, double Cell::*share, const size_t* span_class,
           std::vector<Cell>* cells) const {
    const double first = X(begin);
    const double last = X(end);
    for (auto i = static_cast<size_t>(first); i < width_ && static_cast<double>(i) < last; ++i) {
      const auto left = static_cast<double>(i);
      const double part = std::min(last, left + 1) - std::max(first, left);
      (*cells)[i].*share += part;
      if (span_class != nullptr) (*cells)[i].of_class[*span_class] += part;
    }
  }

  void WriteLane(const Lane& lane, const std::vector<TimeInterval>& computing) {
    std::vector<Cell> cells(width_);
    for (Cell& cell : cells) cell.of_class.resize(classes_.all().size());
    Time active;
    Time exposed;
    Time free;
    bool communicates = false;
    for (const Span* span : lane.spans) {
      const Op& op = OpOf(*span);
      const Time ready = std::max(span->ready, free);
      free = span->end;
      if (span->end <= from_ || ready >= to_) continue;
      if (MovesNothing(schedule_, op.work)) continue;
      const size_t span_class = classes_.Of(op);
      const Time begin = std::clamp(span->begin, from_, to_);
      const Time end = std::clamp(span->end, from_, to_);
      if (end > begin) used_.insert(span_class);
      const auto* compute = std::get_if<Compute>(&op.work);
      if (compute != nullptr) {
        if (IsWait(*compute)) continue;
        active += end - begin;
        Add(begin, end, &Cell::computed, &span_class, &cells);
        continue;
      }
      communicates = true;
      active += end - begin;
      if (ready < begin) {
        waits_ = true;
        Add(ready, begin, &Cell::waited, nullptr, &cells);
      }
      exposed += AddCommunication({begin, end}, computing, span_class, &cells);
    }
    WriteCells(lane, cells, active, communicates ? &exposed : nullptr);
  }

  // Returns how much of it no kernel hides.
  Time AddCommunication(const TimeInterval& moved, const std::vector<TimeInterval>& computing,
                        size_t span_class, std::vector<Cell>* cells) {
    Time exposed;
    Time at = moved.begin;
    const auto expose = [&](Time until) {
      if (until <= at) return;
      exposed += until - at;
      Add(at, until, &Cell::exposed, &span_class, cells);
    };
    auto hiding = std::upper_bound(
        computing.begin(), computing.end(), moved.begin,
        [](Time time, const TimeInterval& interval) { return time < interval.end; });
    for (; hiding != computing.end() && hiding->begin < moved.end; ++hiding) {
      expose(hiding->begin);
      const Time begin = std::max(at, hiding->begin);
      const Time end = std::min(moved.end, hiding->end);
      Add(begin, end, &Cell::hidden, &span_class, cells);
      hides_ = hides_ || end > begin;
      at = end;
    }
    expose(moved.end);
    return exposed;
  }

  // `exposed` is null for a lane that only computes.
  void WriteCells(const Lane& lane, const std::vector<Cell>& cells, Time active,
                  const Time* exposed) {
    Row row(width_);
    for (size_t i = 0; i < width_; ++i) {
      const char* glyph = cells[i].Glyph();
      const bool is_plain = !color_ || *glyph == ' ' || glyph == std::string_view("·");
      row.Put(i, glyph, is_plain ? Row::kPlain : ColorOf(cells[i].Class()));
    }
    const auto share = [&](Time time) {
      return fmt::format("{:.0f} %",
                         100 * Share(static_cast<double>(time.picoseconds()), Window()));
    };
    const std::string name = NameOf(lane);
    page_.Line("  {}{:{}} {}{:>8}{:>9}", name, "", name_width_ - CharactersOf(name), row.Text(),
               share(active), exposed == nullptr ? "" : share(*exposed));
  }

  int ColorOf(size_t span_class) const { return ColorCode(classes_.all()[span_class].fill); }

  void WriteAxis() {
    if (to_ <= from_) return;
    struct Unit {
      const char* name;
      double picoseconds;
    };
    constexpr Unit kUnits[] = {{"s", 1e12}, {"ms", 1e9}, {"us", 1e6}, {"ns", 1e3}, {"ps", 1}};
    const Unit* unit = kUnits;
    while (Window() < 2 * unit->picoseconds && unit->picoseconds > 1) ++unit;
    const double begin = static_cast<double>(from_.picoseconds()) / unit->picoseconds;
    const double end = static_cast<double>(to_.picoseconds()) / unit->picoseconds;
    const auto width = static_cast<double>(width_);
    const Ticks ticks = TicksBetween(begin, end, (end - begin) * kTickRoom / width);
    Row line(width_);
    Row labels(width_);
    for (size_t i = 0; i < width_; ++i) line.Put(i, "─");
    for (const double at : ticks.at) {
      const auto x =
          std::min(width_ - 1, static_cast<size_t>((at - begin) / (end - begin) * width));
      line.Put(x, "┴");
      const std::string label = ticks.Label(at);
      labels.Write(std::min(x, width_ - std::min(width_, label.size())), label);
    }
    page_.Line("{:{}}{}", "", kIndent + name_width_ + 1, line.Text());
    page_.Line("{:{}}{} {}", "", kIndent + name_width_ + 1, labels.Text(), unit->name);
  }

  void WriteLegend() {
    std::vector<std::pair<std::string, int>> classes;  // and colours
    bool computes = false;
    bool communicates = false;
    for (const size_t used : used_) {
      const SpanClass& span_class = classes_.all()[used];
      (span_class.communication ? communicates : computes) = true;
      if (color_) classes.emplace_back(VisibleText(span_class.name), ColorOf(used));
    }
    std::vector<std::pair<std::string, std::string>> entries;  // sign and meaning
    if (computes || communicates) {
      entries.emplace_back("█", !communicates ? "computes"
                                : computes    ? "computes, or communicates exposed"
                                              : "communicates exposed");
      entries.emplace_back("▁", "the same in a part of the time");
    }
    if (hides_) entries.emplace_back("░▒", "communicates behind compute");
    if (waits_) entries.emplace_back("·", "waits for the group");

    std::string line;
    size_t used = kIndent;
    const auto add = [&](const std::string& text, size_t characters) {
      if (used > kIndent && used + 2 + characters > columns_) {
        page_.Line("  {}", Inked{line});
        line.clear();
        used = kIndent;
      }
      line += (line.empty() ? "" : "  ") + text;
      used += characters + (used > kIndent ? 2 : 0);
    };
    const auto end_line = [&] {
      if (!line.empty()) page_.Line("  {}", Inked{line});
      line.clear();
      used = kIndent;
    };
    for (const auto& [name, color] : classes) {
      add(fmt::format("\x1b[38;5;{}m█\x1b[0m {}", color, name), 2 + CharactersOf(name));
    }
    end_line();
    for (const auto& [sign, meaning] : entries)
      add(fmt::format("{} {}", sign, meaning), CharactersOf(sign) + 1 + meaning.size());
    end_line();
  }

  const Schedule& schedule_;
  const Timeline& timeline_;
  const TraceNames& names_;
  const bool color_;
  const Time from_;
  const Time to_;
  const size_t columns_;
  const SpanClasses classes_;
  Page page_;
  std::vector<RankLanes> ranks_;
  size_t name_width_ = 0;
  size_t width_ = 0;       // of the time axis, in characters
  std::set<size_t> used_;  // classes
  bool hides_ = false;
  bool waits_ = false;
};

}  // namespace

std::string TimelineGantt(const Schedule& schedule, const Timeline& timeline,
                          const TraceNames& names, const GanttOptions& options) {
  CHECK_EQ(schedule.ranks(), timeline.ranks);
  return Gantt(schedule, timeline, names, options).Draw();
}

}  // namespace rehearse

// What a run comes to, for people.
#include <cmath>
#include <string>
#include <vector>

#include <fmt/format.h>

#include "scenarios/campaign/campaign.h"
#include "scenarios/readers/long_times.h"
#include "sim/base/units.h"
#include "sim/report/text_page.h"

namespace rehearse {
namespace {

std::string WholeNumber(double number) {
  return Grouped(static_cast<uint64_t>(std::llround(number)));
}

std::string Counted(double number, const char* what) {
  const std::string text = WholeNumber(number);
  return fmt::format("{} {}{}", text, what, text == "1" ? "" : "s");
}

struct ShareRow {
  const char* name;
  double share;
};

// What costs most besides training.
ShareRow LargestLoss(const std::vector<ShareRow>& rows) {
  ShareRow largest = {"", 0};
  for (size_t i = 1; i < rows.size(); ++i)
    if (rows[i].share > largest.share) largest = rows[i];
  return largest;
}

std::vector<ShareRow> RowsOf(const RunShares& shares) {
  return {{"training that is kept", shares.useful},
          {"training done again", shares.lost},
          {"checkpoints", shares.checkpoints},
          {"detection", shares.detection},
          {"restarts", shares.restart},
          {"waiting for machines", shares.waiting},
          {"slower steps", shares.slow}};
}

void WriteSentence(Page& page, const RunOutcome& run) {
  const Seconds median(run.seconds.median);
  const ShareRow loss = LargestLoss(RowsOf(run.shares));
  std::string why = run.between > Seconds(0)
                        ? fmt::format("something fails every {}", PrintLongTime(run.between))
                        : "nothing fails";
  if (loss.share > 0) why += fmt::format(", and what costs most is {}", loss.name);
  page.Line("{}   {} {} take {}, {} of it effective training:", page.pen(Ink::kBold, "Weeks of it"),
            PrintCount(run.tokens), run.token_name, page.pen(Ink::kBold, PrintLongTime(median)),
            page.pen(Ink::kBold, Percent(run.effective.median)));
  page.Line("  {}", why);
  page.Line("{}",
            page.pen(Ink::kFaint,
                     fmt::format("  {} steps of {}; 10 % to 90 % of {} runs: {} to {}, {} to {}",
                                 Grouped(run.steps), Print(run.step), Grouped(run.seeds),
                                 PrintLongTime(Seconds(run.seconds.low)),
                                 PrintLongTime(Seconds(run.seconds.high)),
                                 Percent(run.effective.low), Percent(run.effective.high))));
}

void WriteShares(Page& page, const RunOutcome& run) {
  const double mean = static_cast<double>(run.steps) * run.step.value() / run.shares.useful;
  for (const ShareRow& row : RowsOf(run.shares))
    if (row.share > 0)
      page.Line("  {:<24}{:>12}{:>10}", row.name, PrintLongTime(Seconds(row.share * mean)),
                Percent(row.share));
}

void WriteParts(Page& page, const RunOutcome& run) {
  if (!(run.interruptions.high > 0)) return;
  page.Gap();
  page.Line(
      "{}{}", page.pen(Ink::kBold, "What interrupts it"),
      page.pen(
          Ink::kFaint,
          fmt::format("   {} ({} to {}) of a run; at most {} in repair at once ({} to {})",
                      Counted(run.interruptions.median, "time"), WholeNumber(run.interruptions.low),
                      WholeNumber(run.interruptions.high), Counted(run.in_repair.median, "machine"),
                      WholeNumber(run.in_repair.low), WholeNumber(run.in_repair.high))));
  page.Line("{}", page.pen(Ink::kFaint, fmt::format("  {:<22}{:>10}{:>20}{:>18}", "part", "parts",
                                                    "one of them every", "interruptions")));
  for (const RunPart& part : run.parts)
    if (part.between > Seconds(0))
      page.Line("  {:<22}{:>10}{:>20}{:>18.1f}", part.name, WholeNumber(part.count),
                PrintLongTime(part.between), part.interruptions);
  if (run.stragglers > 0)
    page.Line("  {:<22}{:>10}{:>20}{:>18.1f}", "slow GPU", "", "", run.stragglers);
}

void WriteInterval(Page& page, const char* name, const RunInterval& interval) {
  page.Line("  {:<24}{:>12}{:>10}", name, PrintLongTime(interval.length),
            interval.effective > 0 ? Percent(interval.effective) : "none");
}

void WriteCheckpoint(Page& page, const RunOutcome& run) {
  const RunCheckpoint& checkpoint = run.checkpoint;
  page.Gap();
  page.Line("{}   {}: training stands still for {}, it is written in {}, read in {}",
            page.pen(Ink::kBold, "Checkpoints"), Print(checkpoint.bytes),
            PrintLongTime(checkpoint.stall), PrintLongTime(checkpoint.write),
            PrintLongTime(checkpoint.reload));
  page.Line("{}", page.pen(Ink::kFaint, fmt::format("  {:<24}{:>12}{:>10}", "training between two",
                                                    "interval", "effective")));
  if (run.used.length != run.best.length) WriteInterval(page, "as given", run.used);
  WriteInterval(page, "best, by simulation", run.best);
  if (!(run.between > Seconds(0))) return;
  WriteInterval(page, "Young's formula", run.young);
  WriteInterval(page, "Daly's formula", run.daly);
  if (run.checkpoint.write > run.young.length)
    page.Line("{}",
              page.pen(Ink::kFaint,
                       "  the formulas do not know that the next checkpoint waits for the one "
                       "being written"));
}

}  // namespace

std::string ToText(const RunOutcome& outcome, bool color) {
  Page page(color);
  page.Gap();
  WriteSentence(page, outcome);
  WriteShares(page, outcome);
  WriteParts(page, outcome);
  WriteCheckpoint(page, outcome);
  return std::move(page.text);
}

}  // namespace rehearse

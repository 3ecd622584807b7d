// What a step and a run cost, for people.
#include <cmath>
#include <string>

#include <fmt/format.h>

#include "scenarios/campaign/costs.h"
#include "scenarios/readers/long_times.h"
#include "sim/report/text_page.h"

namespace rehearse {
namespace {

std::string PowerText(double kilowatts) {
  return kilowatts >= 1000 ? fmt::format("{:.4g} MW", kilowatts / 1000)
                           : fmt::format("{:.4g} kW", kilowatts);
}

// Four digits, or all of them before the point.
std::string FourOrMore(double number) {
  constexpr double kMany = 1e4;
  return number >= kMany ? Grouped(static_cast<uint64_t>(std::llround(number)))
                         : fmt::format("{:.4g}", number);
}

std::string MoneyText(double money) {
  constexpr double kMillion = 1e6;
  return money >= kMillion ? fmt::format("{:.4g} million", money / kMillion) : FourOrMore(money);
}

}  // namespace

std::string ToText(const CostOutcome& outcome, bool color) {
  Page page(color);
  page.Gap();
  page.Line("{}   a million {} cost {} and {:.3g} kWh{}:", page.pen(Ink::kBold, "What it costs"),
            outcome.token_name,
            page.pen(Ink::kBold, fmt::format("{:.4g} {}", outcome.per_million, outcome.currency)),
            outcome.kwh_per_million,
            outcome.carbon_per_million > 0
                ? fmt::format(" ({:.3g} kg of carbon dioxide)", outcome.carbon_per_million)
                : "");
  page.Line("  {} {} an hour and {} while it trains, for {} GPUs of which {} have a rank",
            MoneyText(outcome.per_hour), outcome.currency, PowerText(outcome.kilowatts),
            Grouped(outcome.gpus_bought), Grouped(outcome.gpus_used));
  page.Line("{}",
            page.pen(Ink::kFaint, fmt::format("  {:<16}{:>12}{:>16}{:>10}{:>14}", "part", "parts",
                                              outcome.currency + " an hour", "", "power")));
  for (const CostPart& part : outcome.parts)
    page.Line("  {:<16}{:>12}{:>16}{:>10}{:>14}", part.name,
              Grouped(static_cast<uint64_t>(std::llround(part.count))),
              part.per_hour > 0 ? FourOrMore(part.per_hour) : "",
              part.per_hour > 0 ? Percent(part.per_hour / outcome.per_hour) : "",
              part.kilowatts > 0 ? PowerText(part.kilowatts) : "");
  if (!outcome.run) return std::move(page.text);
  const CostOfRun& run = *outcome.run;
  page.Line(
      "  {}: {} {}, {} MWh{}; {:.4g} {} a million {}", page.pen(Ink::kBold, "the run of weeks"),
      MoneyText(run.money), outcome.currency, FourOrMore(run.megawatt_hours),
      run.carbon_tonnes > 0 ? fmt::format(", {} t of carbon dioxide", FourOrMore(run.carbon_tonnes))
                            : "",
      run.per_million, outcome.currency, outcome.token_name);
  return std::move(page.text);
}

}  // namespace rehearse

// A Comparison as text, as JSON and as rows.
#include <algorithm>
#include <cmath>

#include <fmt/format.h>

#include "sim/base/units.h"
#include "sim/report/comparison.h"
#include "sim/report/kernel_name.h"
#include "sim/report/text_page.h"

namespace rehearse {
namespace {

using Json = nlohmann::ordered_json;

constexpr size_t kWorstOps = 10;
constexpr size_t kNameWidth = 26;
constexpr size_t kGivenShown = 20;
constexpr size_t kValueWidth = 40;

const char* NameOf(Provenance provenance) {
  return provenance == Provenance::kMeasured ? "measured" : "simulated";
}

std::string LeftOut(size_t ranks) {
  if (ranks == 0) return "";
  return fmt::format("; {} ranks left out, others of their roles count for them", Grouped(ranks));
}

struct Part {
  const char* name;
  const char* key;
  Seconds StepShares::*seconds;
};
constexpr Part kParts[] = {
    {"compute", "compute_seconds", &StepShares::compute},
    {"exposed communication", "exposed_communication_seconds", &StepShares::communication},
    {"waiting for other ranks", "waiting_seconds", &StepShares::waiting},
    {"nothing of these", "other_seconds", &StepShares::nothing},
};

bool IsWaiting(const Part& part) { return part.seconds == &StepShares::waiting; }

// What is not known is null, and no number.
Json KnownWaiting(const std::string& waiting, Seconds time) {
  return waiting == kWaitingUnknown ? Json() : Json(time.value());
}

struct Section {
  const char* title;
  const char* key;
  std::vector<ComparedGroup> Comparison::*groups;
};
constexpr Section kSections[] = {
    {"By kind", "by_kind", &Comparison::kinds},
    {"By axis", "by_axis", &Comparison::axes},
    {"By layer", "by_layer", &Comparison::layers},
};

std::string SignedPercent(double share) { return fmt::format("{:+.1f} %", 100 * share); }

std::string Signed(Seconds time) {
  return (time < Seconds(0) ? "-" : "+") + Print(Seconds(std::abs(time.value())));
}

// Whether some part goes against the gap: then shares of the gap say nothing, and may exceed the
// whole.
bool PartsCancel(const Comparison& comparison) {
  constexpr double kRounded = 0.0005;  // prints as 0.0 %
  const Seconds gap = comparison.step.a - comparison.step.b;
  return std::any_of(std::begin(kParts), std::end(kParts), [&](const Part& part) {
    const Seconds own = comparison.a_shares.*part.seconds - comparison.b_shares.*part.seconds;
    return gap != Seconds(0) && own / gap < -kRounded;
  });
}

std::string Describe(const ComparedOp& op) {
  std::string text = ShortKernelName(op.op.name);
  if (op.op.layer >= 0) text += fmt::format(" layer {}", op.op.layer);
  text += fmt::format(" {}", Name(op.op.phase));
  if (op.occurrence > 0) text += fmt::format(" #{}", op.occurrence + 1);
  return text;
}

// "A takes 3.2 % less than B."
std::string WhatIfInWords(const TimePair& step) {
  const double difference = step.Difference();
  if (step.a == step.b) return fmt::format("A and B take the same: {}.", Print(step.a));
  if (step.b == Seconds(0)) return "Differences are (A - B) / B.";
  constexpr double kSmall = 0.001;  // below it one decimal of a percent says little
  const double size = std::abs(difference);
  return fmt::format("A takes {} {} than B. Differences are (A - B) / B.",
                     size < kSmall ? fmt::format("{:.2g} %", 100 * size) : Percent(size),
                     difference < 0 ? "less" : "more");
}

// What was given differently, one line each.
void WriteGiven(const Comparison& comparison, Page& page) {
  if (!comparison.given) {
    if (comparison.a_title != comparison.b_title) return;
    page.Line("How their scenarios differ is not recorded in {}.",
              comparison.a_file == comparison.b_file ? "either" : "one of these files");
    page.Gap();
    return;
  }
  if (comparison.given->empty()) {
    page.Line("Their scenarios are the same.");
    page.Gap();
    return;
  }
  page.Line("{}", page.pen(Ink::kBold, "How their scenarios differ"));
  const auto value = [](const std::string& json) {
    return json.empty() ? std::string("not given") : Shortened(VisibleText(json), kValueWidth);
  };
  size_t shown = 0;
  for (const GivenDifference& difference : *comparison.given) {
    if (shown++ == kGivenShown) break;
    page.Line("{:<38} A {}; B {}", difference.path, value(difference.a), value(difference.b));
  }
  if (comparison.given->size() > kGivenShown)
    page.Line("... and {} more", comparison.given->size() - kGivenShown);
  page.Gap();
}

// Parses a value that was given.
Json ParsedOrNull(const std::string& json) { return json.empty() ? Json() : Json::parse(json); }

Json ToJson(const TimePair& pair) {
  return {{"a_seconds", pair.a.value()},
          {"b_seconds", pair.b.value()},
          {"relative_error", pair.Difference()}};
}

Json ToJson(const ComparedOp& op) {
  Json json = {{"name", op.op.name},         {"kind", op.op.kind},
               {"axis", op.op.axis},         {"phase", Name(op.op.phase)},
               {"layer", op.op.layer},       {"micro_batch", op.op.micro_batch},
               {"occurrence", op.occurrence}};
  json.update(ToJson(op.time));
  json["a_waiting_seconds"] = op.waiting.a.value();
  json["b_waiting_seconds"] = op.waiting.b.value();
  return json;
}

}  // namespace

std::string ToText(const Comparison& comparison, bool color, std::optional<size_t> rows) {
  Page page(color);
  const bool is_judged = comparison.IsJudged();
  const char* const difference = is_judged ? "error" : "difference";
  const auto side = [&](const char* name, const std::string& title, Provenance provenance,
                        size_t left_out, const std::string& file) {
    page.Line("{}  {} ({}{}){}", name, title, NameOf(provenance), LeftOut(left_out),
              file.empty() ? "" : "   " + file);
  };
  side("A", comparison.a_title, comparison.a_provenance, comparison.a_left_out, comparison.a_file);
  side("B", comparison.b_title, comparison.b_provenance, comparison.b_left_out, comparison.b_file);
  page.Line("{}", is_judged ? "Errors are (A - B) / B." : WhatIfInWords(comparison.step));
  page.Gap();
  WriteGiven(comparison, page);
  const auto row = [&](const std::string& name, const TimePair& time, const std::string& rest) {
    page.Line("{:<26} {:>12} {:>12} {:>10}  {}", Shortened(name, kNameWidth), Print(time.a),
              Print(time.b), SignedPercent(time.Difference()), rest);
  };
  page.Line("{:<26} {:>12} {:>12} {:>10}", "", "A", "B", difference);
  row("step", comparison.step, "");
  page.Gap();

  const Seconds gap = comparison.step.a - comparison.step.b;
  page.Line("{}", page.pen(Ink::kBold, "What explains the gap"));
  const bool cancels = PartsCancel(comparison);
  for (const Part& part : kParts) {
    const TimePair pair{comparison.a_shares.*part.seconds, comparison.b_shares.*part.seconds};
    const Seconds part_of_gap = pair.a - pair.b;
    if (IsWaiting(part) && !(comparison.a_waiting + comparison.b_waiting).empty()) {
      const auto known = [](const std::string& waiting, Seconds time) {
        return waiting == kWaitingUnknown ? waiting : Print(time);
      };
      page.Line("{:<26} {:>12} {:>12} {:>10}  {}", part.name, known(comparison.a_waiting, pair.a),
                known(comparison.b_waiting, pair.b), "",
                comparison.a_waiting == kWaitingUnknown || comparison.b_waiting == kWaitingUnknown
                    ? "what is not known counts as communication"
                    : "partly unknown: that counts as communication");
      continue;
    }
    row(part.name, pair,
        gap == Seconds(0) ? ""
        : cancels         ? Signed(part_of_gap)
                          : Percent(part_of_gap / gap) + " of the gap");
  }
  if (cancels) page.Line("{:<26} {:>12} {:>12} {:>10}  {}", "together", "", "", "", Signed(gap));
  if (comparison.pairs_out_of_order > 0) {
    page.Line("order: {} of the pairs of ops begin the other way round, first {}",
              Percent(comparison.pairs_out_of_order), comparison.first_out_of_order);
  } else {
    page.Line("order: the same");
  }
  if (comparison.only_in_a + comparison.only_in_b > 0) {
    page.Line("{} ops only in A, {} only in B: not compared below", comparison.only_in_a,
              comparison.only_in_b);
  }

  const auto more = [&](size_t shown, size_t all) {
    if (shown < all) page.Line("... and {} more (--rows all)", Grouped(all - shown));
  };
  for (const Section& section : kSections) {
    const std::vector<ComparedGroup>& groups = comparison.*section.groups;
    if (groups.empty()) continue;
    page.Gap();
    page.Line("{} {:>12} {:>12} {:>10}  {:>10} {:>10} {:>9} {:>9} {:>6}",
              page.pen(Ink::kBold, fmt::format("{:<26}", section.title)), "A", "B", difference,
              "median A", "median B", is_judged ? "error" : "differ by",
              is_judged ? "|error|" : "|by|", "ops");
    const size_t shown = std::min(groups.size(), rows.value_or(groups.size()));
    for (size_t i = 0; i < shown; ++i) {
      const ComparedGroup& group = groups[i];
      row(group.name, group.total,
          fmt::format("{:>10} {:>10} {:>9} {:>9} {:>6}", Print(group.median.a),
                      Print(group.median.b), SignedPercent(group.median_difference),
                      Percent(group.median_absolute_difference), group.ops));
    }
    more(shown, groups.size());
  }

  if (!comparison.choices.empty()) {
    page.Gap();
    page.Line("{}", page.pen(Ink::kBold, "How collectives run"));
    for (const ComparedChoice& choice : comparison.choices) {
      const bool same = choice.a == choice.b;
      page.Line("  {:<22}{:>11} {:<16}{}", Shortened(choice.axis, 21), Print(choice.bytes),
                choice.kind,
                same ? fmt::format("both {}", fmt::join(choice.a, " or "))
                     : fmt::format("A {}; B {}", fmt::join(choice.a, " or "),
                                   fmt::join(choice.b, " or ")));
    }
  }

  if (!comparison.ops.empty()) {
    page.Gap();
    page.Line("{}", page.pen(Ink::kBold, "The ops that differ most"));
    const std::vector<size_t> worst = comparison.Worst(rows.value_or(kWorstOps));
    for (const size_t i : worst) {
      const ComparedOp& op = comparison.ops[i];
      row(Describe(op), op.time, op.op.axis.empty() ? op.op.kind : op.op.kind + " " + op.op.axis);
    }
    more(worst.size(), comparison.ops.size());
  }
  return page.text;
}

Json ToJson(const Comparison& comparison, std::optional<size_t> rows) {
  Json json;
  json["schema"] = "rehearse.comparison.v1";
  json["what"] = "timelines";
  json["a"] = {{"title", comparison.a_title}, {"provenance", NameOf(comparison.a_provenance)}};
  json["b"] = {{"title", comparison.b_title}, {"provenance", NameOf(comparison.b_provenance)}};
  if (!comparison.a_file.empty()) json["a"]["file"] = comparison.a_file;
  if (!comparison.b_file.empty()) json["b"]["file"] = comparison.b_file;
  json["b_is_truth"] = comparison.IsJudged();
  if (comparison.given) {
    json["given"] = Json::array();
    for (const GivenDifference& difference : *comparison.given) {
      json["given"].push_back({{"path", difference.path},
                               {"a", ParsedOrNull(difference.a)},
                               {"b", ParsedOrNull(difference.b)}});
    }
  }
  if (!comparison.warnings.empty()) json["warnings"] = comparison.warnings;
  if (comparison.a_left_out > 0) json["a"]["ranks_left_out"] = comparison.a_left_out;
  if (comparison.b_left_out > 0) json["b"]["ranks_left_out"] = comparison.b_left_out;
  json["step"] = ToJson(comparison.step);
  for (const Part& part : kParts) {
    json["gap"][part.key] = {
        {"a", (comparison.a_shares.*part.seconds).value()},
        {"b", (comparison.b_shares.*part.seconds).value()},
        {"difference",
         (comparison.a_shares.*part.seconds - comparison.b_shares.*part.seconds).value()}};
    if (!IsWaiting(part) || (comparison.a_waiting + comparison.b_waiting).empty()) continue;
    json["gap"][part.key] = {{"a", KnownWaiting(comparison.a_waiting, comparison.a_shares.waiting)},
                             {"b", KnownWaiting(comparison.b_waiting, comparison.b_shares.waiting)},
                             {"difference", nullptr}};
  }
  json["gap"]["pairs_out_of_order"] = comparison.pairs_out_of_order;
  if (!comparison.first_out_of_order.empty())
    json["gap"]["first_out_of_order"] = comparison.first_out_of_order;
  json["only_in_a"] = comparison.only_in_a;
  json["only_in_b"] = comparison.only_in_b;
  for (const Section& section : kSections) {
    json[section.key] = Json::array();
    for (const ComparedGroup& group : comparison.*section.groups) {
      json[section.key].push_back({{"name", group.name},
                                   {"ops", group.ops},
                                   {"total", ToJson(group.total)},
                                   {"median", ToJson(group.median)},
                                   {"median_error", group.median_difference},
                                   {"median_absolute_error", group.median_absolute_difference}});
    }
  }
  if (!comparison.choices.empty()) json["collectives"] = Json::array();
  for (const ComparedChoice& choice : comparison.choices) {
    json["collectives"].push_back({{"axis", choice.axis},
                                   {"kind", choice.kind},
                                   {"bytes", choice.bytes.value()},
                                   {"a", choice.a},
                                   {"b", choice.b},
                                   {"same", choice.a == choice.b}});
  }
  json["worst"] = Json::array();
  for (const size_t i : comparison.Worst(rows.value_or(kWorstOps)))
    json["worst"].push_back(ToJson(comparison.ops[i]));
  return json;
}

DataTable TableOf(const Comparison& comparison, std::optional<size_t> rows) {
  DataTable table({{"list", CellKind::kText},
                   {"name", CellKind::kText},
                   {"kind", CellKind::kText},
                   {"axis", CellKind::kText},
                   {"phase", CellKind::kText},
                   {"layer", CellKind::kInteger},
                   {"micro_batch", CellKind::kInteger},
                   {"occurrence", CellKind::kInteger},
                   {"ops", CellKind::kInteger},
                   {"a_seconds", CellKind::kNumber},
                   {"b_seconds", CellKind::kNumber},
                   {"relative_difference", CellKind::kNumber},
                   {"a_waiting_seconds", CellKind::kNumber},
                   {"b_waiting_seconds", CellKind::kNumber}});
  const auto difference = [](const TimePair& time) {
    return time.b > Seconds(0) ? DataCell(time.Difference()) : DataCell();
  };
  const auto add = [&](const char* list, const std::string& name, const DataCell& ops,
                       const TimePair& time) {
    table.Add({list,
               name,
               {},
               {},
               {},
               {},
               {},
               {},
               ops,
               time.a.value(),
               time.b.value(),
               difference(time),
               {},
               {}});
  };
  add("step", "step", comparison.ops.empty() ? DataCell() : DataCell(comparison.ops.size()),
      comparison.step);
  for (const Part& part : kParts) {
    add("gap", part.name, {},
        {comparison.a_shares.*part.seconds, comparison.b_shares.*part.seconds});
  }
  for (const Section& section : kSections) {
    const std::vector<ComparedGroup>& groups = comparison.*section.groups;
    for (size_t i = 0; i < std::min(groups.size(), rows.value_or(groups.size())); ++i)
      add(section.key, groups[i].name, groups[i].ops, groups[i].total);
  }
  std::vector<size_t> ops = comparison.Worst(rows.value_or(comparison.ops.size()));
  if (!rows) std::sort(ops.begin(), ops.end());
  for (const size_t i : ops) {
    const auto& [op, occurrence, time, waiting] = comparison.ops[i];
    table.Add({"op", op.name, op.kind, op.axis.empty() ? DataCell() : DataCell(op.axis),
               Name(op.phase), op.layer, op.micro_batch, occurrence, 1, time.a.value(),
               time.b.value(), difference(time), waiting.a.value(), waiting.b.value()});
  }
  return table;
}

}  // namespace rehearse

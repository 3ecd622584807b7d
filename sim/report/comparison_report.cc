// A Comparison as text, JSON and CSV.
#include <algorithm>
#include <cmath>

#include <fmt/format.h>

#include "sim/base/units.h"
#include "sim/report/comparison.h"
#include "sim/report/text_page.h"

namespace rehearse {
namespace {

using Json = nlohmann::ordered_json;

constexpr size_t kWorstOps = 10;
constexpr size_t kNameWidth = 26;

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

// Whether some part pulls against the gap: then shares of it say nothing, and exceed the whole.
bool PartsCancel(const Comparison& comparison) {
  constexpr double kRounded = 0.0005;  // what is said as 0.0 %
  const Seconds gap = comparison.step.a - comparison.step.b;
  return std::any_of(std::begin(kParts), std::end(kParts), [&](const Part& part) {
    const Seconds own = comparison.a_shares.*part.seconds - comparison.b_shares.*part.seconds;
    return gap != Seconds(0) && own / gap < -kRounded;
  });
}

std::string Describe(const ComparedOp& op) {
  std::string text = op.op.name;
  if (op.op.layer >= 0) text += fmt::format(" layer {}", op.op.layer);
  text += fmt::format(" {}", Name(op.op.phase));
  if (op.occurrence > 0) text += fmt::format(" #{}", op.occurrence + 1);
  return text;
}

Json ToJson(const TimePair& pair) {
  return {{"a_seconds", pair.a.value()},
          {"b_seconds", pair.b.value()},
          {"relative_error", pair.Error()}};
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

std::string ToText(const Comparison& comparison, bool color) {
  Page page(color);
  page.Line("A  {} ({}{})", comparison.a_title, NameOf(comparison.a_provenance),
            LeftOut(comparison.a_left_out));
  page.Line("B  {} ({}{})", comparison.b_title, NameOf(comparison.b_provenance),
            LeftOut(comparison.b_left_out));
  page.Line("Errors are (A - B) / B.");
  page.Gap();
  const auto row = [&](const std::string& name, const TimePair& time, const std::string& rest) {
    page.Line("{:<26} {:>12} {:>12} {:>10}  {}", Shortened(name, kNameWidth), Print(time.a),
              Print(time.b), SignedPercent(time.Error()), rest);
  };
  page.Line("{:<26} {:>12} {:>12} {:>10}", "", "A", "B", "error");
  row("step", comparison.step, "");
  page.Gap();

  const Seconds gap = comparison.step.a - comparison.step.b;
  page.Line("{}", page.pen(Ink::kBold, "What explains the gap"));
  const bool cancels = PartsCancel(comparison);
  for (const Part& part : kParts) {
    const TimePair pair{comparison.a_shares.*part.seconds, comparison.b_shares.*part.seconds};
    const Seconds part_of_gap = pair.a - pair.b;
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

  for (const Section& section : kSections) {
    const std::vector<ComparedGroup>& groups = comparison.*section.groups;
    if (groups.empty()) continue;
    page.Gap();
    page.Line("{} {:>12} {:>12} {:>10}  {:>10} {:>10} {:>9} {:>9} {:>6}",
              page.pen(Ink::kBold, fmt::format("{:<26}", section.title)), "A", "B", "error",
              "median A", "median B", "error", "|error|", "ops");
    for (const ComparedGroup& group : groups) {
      row(group.name, group.total,
          fmt::format("{:>10} {:>10} {:>9} {:>9} {:>6}", Print(group.median.a),
                      Print(group.median.b), SignedPercent(group.median_error),
                      Percent(group.median_absolute_error), group.ops));
    }
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
    for (const size_t i : comparison.Worst(kWorstOps)) {
      const ComparedOp& op = comparison.ops[i];
      row(Describe(op), op.time, op.op.axis.empty() ? op.op.kind : op.op.kind + " " + op.op.axis);
    }
  }
  return page.text;
}

Json ToJson(const Comparison& comparison) {
  Json json;
  json["schema"] = "rehearse.comparison.v1";
  json["what"] = "timelines";
  json["a"] = {{"title", comparison.a_title}, {"provenance", NameOf(comparison.a_provenance)}};
  json["b"] = {{"title", comparison.b_title}, {"provenance", NameOf(comparison.b_provenance)}};
  if (comparison.a_left_out > 0) json["a"]["ranks_left_out"] = comparison.a_left_out;
  if (comparison.b_left_out > 0) json["b"]["ranks_left_out"] = comparison.b_left_out;
  json["step"] = ToJson(comparison.step);
  for (const Part& part : kParts) {
    json["gap"][part.key] = {
        {"a", (comparison.a_shares.*part.seconds).value()},
        {"b", (comparison.b_shares.*part.seconds).value()},
        {"difference",
         (comparison.a_shares.*part.seconds - comparison.b_shares.*part.seconds).value()}};
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
                                   {"median_error", group.median_error},
                                   {"median_absolute_error", group.median_absolute_error}});
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
  for (const size_t i : comparison.Worst(kWorstOps))
    json["worst"].push_back(ToJson(comparison.ops[i]));
  return json;
}

std::string ToCsv(const Comparison& comparison) {
  std::string text = "group,name,ops,a_seconds,b_seconds,relative_error\n";
  const auto add = [&](const char* group, const std::string& name, size_t ops,
                       const TimePair& time) {
    text += fmt::format("{},{},{},{},{},{}\n", group, CsvCell(VisibleText(name)), ops,
                        time.a.value(), time.b.value(), time.Error());
  };
  add("step", "step", comparison.ops.size(), comparison.step);
  for (const Part& part : kParts) {
    add("gap", part.name, 0,
        {comparison.a_shares.*part.seconds, comparison.b_shares.*part.seconds});
  }
  for (const Section& section : kSections) {
    for (const ComparedGroup& group : comparison.*section.groups)
      add(section.key, group.name, group.ops, group.total);
  }
  for (const ComparedOp& op : comparison.ops) {
    add("op", Describe(op) + (op.op.axis.empty() ? "" : " " + op.op.axis), 1, op.time);
  }
  return text;
}

}  // namespace rehearse

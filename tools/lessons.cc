// rehearse lessons [NAME]: thirteen ideas about overlap, each with question, change and answer.
#include <algorithm>
#include <cstdio>

#include <fmt/format.h>
#include <nlohmann/json.hpp>
#include <unistd.h>

#include "scenarios/playing/rehearsal.h"
#include "scenarios/reporting/collective_film.h"
#include "scenarios/reporting/lesson.h"
#include "scenarios/reporting/live.h"
#include "scenarios/reporting/live_controls.h"
#include "scenarios/reporting/report_page.h"
#include "sim/base/error.h"
#include "sim/base/known_names.h"
#include "sim/base/output_file.h"
#include "sim/base/units.h"
#include "sim/report/text_page.h"
#include "sim/report/timeline_gantt.h"
#include "tools/command.h"
#include "tools/page_file.h"
#include "tools/terminal.h"
#include "tools/viewer_bundle.h"

namespace rehearse {
namespace po = boost::program_options;

namespace {

std::vector<Lesson> AllLessons() {
  return ReadLessons(
      JsonDocument::FromText(LessonFile("lessons"), "scenarios/lessons/lessons.json"));
}

std::vector<std::string> NamesOfLessons() {
  std::vector<std::string> names;
  for (const Lesson& lesson : AllLessons()) names.push_back(lesson.name);
  return names;
}

}  // namespace

CommandSyntax LessonsSyntax() {
  CommandSyntax syntax;
  syntax.usage = "rehearse lessons [NAME] [options]";
  syntax.explanation =
      "Thirteen ideas about overlap on 2 to 16 GPUs, each with a question, a change to make and\n"
      "an answer that anybody can work out by hand. Without NAME they are listed. Examples:\n"
      "  rehearse lessons prefetch\n"
      "  rehearse lessons ring --set cluster.devices=8 --set jobs.0.schedule.ranks=8\n"
      "  rehearse lessons prefetch --answer\n"
      "  rehearse lessons -o lessons.html\n";
  syntax.positional = {"lesson"};
  syntax.takes["lesson"] = TakenName(NamesOfLessons());
  auto add = syntax.options.add_options();
  add("answer", "make the lesson's change, and show the answer below");
  add("set", po::value<std::vector<std::string>>()->composing()->value_name("PATH=VALUE"),
      "make your own change, and draw its step below; may be repeated");
  add("output,o", po::value<std::string>()->value_name("FILE"),
      "write all lessons as one page for a browser, which simulates them itself; - is standard "
      "output");
  syntax.takes["output"] = TakenOutput({".html"});
  add("beside", po::value<std::string>()->value_name("DIR"),
      "the page loads its program and the simulator from this folder, a copy of "
      "tools/viewer/bundle "
      "as seen from the page, and holds only the lessons");
  return syntax;
}

namespace {

// Breaks the text into lines of at most this many characters.
std::string Wrapped(const std::string& text, size_t columns) {
  std::string wrapped;
  size_t line = 0;
  for (size_t begin = 0; begin < text.size();) {
    const size_t end = std::min(text.find(' ', begin), text.size());
    if (line > 0 && line + 1 + end - begin > columns) {
      wrapped += '\n';
      line = 0;
    } else if (line > 0) {
      wrapped += ' ';
      ++line;
    }
    wrapped.append(text, begin, end - begin);
    line += end - begin;
    begin = end + 1;
  }
  return wrapped + "\n";
}

std::string PathOf(const Lesson& lesson) { return "scenarios/lessons/" + lesson.name + ".json"; }

// Quotes the text for a shell.
std::string Quoted(const std::string& text) {
  constexpr std::string_view kSpecial = " \"[]{}*?'";
  return text.find_first_of(kSpecial) == std::string::npos ? text : "'" + text + "'";
}

std::string CommandOf(const Lesson& lesson) {
  std::string command = "rehearse run " + PathOf(lesson);
  for (const std::string& change : lesson.set) command += " --set " + Quoted(change);
  return command + " --gantt";
}

// One rank of each group of ranks that behave alike.
std::vector<uint32_t> RanksToDraw(const Timeline& timeline) {
  constexpr size_t kMost = 4;
  std::vector<uint32_t> ranks;
  for (uint32_t rank = 0; rank < timeline.ranks && ranks.size() < kMost; ++rank)
    if (timeline.RepresentativeOf(rank) == rank) ranks.push_back(rank);
  return ranks;
}

std::string Drawn(const Rehearsal& rehearsal, Time to, size_t columns) {
  return TimelineGantt(rehearsal.schedule, rehearsal.timeline, rehearsal.names,
                       {.ranks = RanksToDraw(rehearsal.timeline),
                        .from = {},
                        .to = to,
                        .columns = static_cast<unsigned>(columns),
                        .color = ColorsWanted()});
}

std::string StepOf(const Rehearsal& rehearsal) { return Print(ToSeconds(rehearsal.timeline.step)); }

Scenario ChangedScenario(const Lesson& lesson, const std::vector<std::string>& changes) {
  Lesson own = lesson;
  own.set = changes;
  return ReadLessonScenario(own, LessonFile(lesson.name), true);
}

void ShowLesson(const Lesson& lesson, const std::vector<std::string>& own, bool answers) {
  constexpr unsigned kPiped = 100;
  const size_t columns = TerminalColumns(STDOUT_FILENO, kPiped);
  // Both are read before anything is shown, so that a mistake is all that is printed.
  const Rehearsal before = Rehearse(ReadLessonScenario(lesson, LessonFile(lesson.name), false));
  std::optional<Rehearsal> after;
  if (answers || !own.empty())
    after = Rehearse(ChangedScenario(lesson, answers ? lesson.set : own));
  const Time longest = std::max(before.timeline.step, after ? after->timeline.step : Time());
  Page page(ColorsWanted());
  page.Line("{}", page.pen(Ink::kBold, lesson.title));
  page.Gap();
  std::string text = std::move(page.text);
  text += Wrapped(lesson.question, columns) + "\n";
  text += fmt::format("As it is: {}\n{}\n", StepOf(before), Drawn(before, longest, columns));
  if (after) {
    text += answers ? Wrapped("Changed: " + StepOf(*after) + ". " + lesson.change, columns)
                    : "With your change: " + StepOf(*after) + "\n";
    text += Drawn(*after, longest, columns) + "\n";
  }
  if (answers) {
    for (const std::string& paragraph : lesson.answer) text += Wrapped(paragraph, columns) + "\n";
    text += "To play with it:\n  " + CommandOf(lesson) + "\n";
  } else {
    text += Wrapped("To change: " + lesson.change, columns) + "  " + CommandOf(lesson) +
            "\nThe answer:\n  rehearse lessons " + lesson.name + " --answer\n";
  }
  std::fputs(text.c_str(), stdout);
}

void ListLessons(const std::vector<Lesson>& lessons) {
  Page page(ColorsWanted());
  for (const Lesson& lesson : lessons) page.Line("  {:<12}{}", lesson.name, lesson.title);
  page.Gap();
  page.Line("rehearse lessons NAME shows one, --answer its answer; -o lessons.html writes a page");
  std::fputs(page.text.c_str(), stdout);
}

// The data show the step before above the step after, as the page first shows them.
std::string DataOf(const Lesson& lesson) {
  Report report;
  for (const bool changed : {false, true}) {
    Scenario scenario = ReadLessonScenario(lesson, LessonFile(lesson.name), changed);
    scenario.lowering.fold = false;
    ReportedRun run = ReportScenario(scenario, {});
    run.source = PathOf(lesson) + (changed ? ", changed" : "");
    run.record.title = lesson.name + (changed ? ", changed" : "");
    report.runs.push_back(std::move(run));
  }
  return PageData(report);
}

// Of a schedule written by hand, its first collective step by step; empty if there is none.
std::string FilmOf(const Lesson& lesson, bool changed) {
  const Scenario scenario = ReadLessonScenario(lesson, LessonFile(lesson.name), changed);
  const auto* schedule = std::get_if<Schedule>(&scenario.jobs.front().work);
  if (schedule == nullptr) return "";
  for (const Op& op : schedule->roles.front().ops)
    if (std::holds_alternative<Collective>(op.work))
      return FilmDataOfOp(scenario, op.name, NoObserver());
  return "";
}

std::string PageOfLessons(const std::vector<Lesson>& lessons, const std::string& beside) {
  PageFile page;
  page.beside = beside;
  page.title = "Lessons about overlap - Rehearse";
  page.is_live = true;
  nlohmann::ordered_json json;
  json["lessons"] = nlohmann::ordered_json::array();
  for (const Lesson& lesson : lessons) {
    const LiveStep step{.name = lesson.name + ".json",
                        .text = LessonFile(lesson.name),
                        .cluster = "",
                        .set = {},
                        .fidelity = "",
                        .no_fold = true};
    json["lessons"].push_back({{"name", lesson.name},
                               {"title", lesson.title},
                               {"question", lesson.question},
                               {"change", lesson.change},
                               {"set", lesson.set},
                               {"answer", lesson.answer},
                               {"command", CommandOf(lesson)},
                               {"live",
                                {{"step", ToJson(step)},
                                 {"controls", LiveControls(ReadLessonScenario(
                                                  lesson, LessonFile(lesson.name), false))}}}});
    page.texts.emplace_back("rehearse-data-" + lesson.name, DataOf(lesson));
    for (const bool changed : {false, true})
      page.texts.emplace_back(
          fmt::format("rehearse-data-{}-film-{}", lesson.name, changed ? "after" : "before"),
          FilmOf(lesson, changed));
  }
  page.texts.emplace_back("rehearse-lessons", PackedForPage(json.dump()));
  return ToHtml(page);
}

}  // namespace

int LessonsCommand(const std::vector<std::string>& arguments) {
  CommandSyntax syntax = LessonsSyntax();
  po::variables_map values;
  if (!ParseCommandLine(syntax, arguments, &values)) return 0;
  const std::vector<Lesson> lessons = AllLessons();
  const bool answers = values.count("answer") > 0;
  std::vector<std::string> own;
  if (values.count("set") > 0) own = values["set"].as<std::vector<std::string>>();
  if (answers && !own.empty())
    throw Error("--answer makes the lesson's change, --set makes your own: give one of them");
  if (values.count("lesson") == 0 && (answers || !own.empty()))
    throw Error("which lesson? usage: " + syntax.usage + "\ntry: rehearse lessons ring --answer");
  if (values.count("output") > 0) {
    if (values.count("lesson") > 0)
      throw Error("-o writes all lessons as one page; leave out the lesson's name");
    const auto output = values["output"].as<std::string>();
    CheckWritable(output);
    const std::string page = PageOfLessons(lessons, FolderOption(values, "beside"));
    WriteFileAtomically(output, page);
    TellOfPage(output, page.size());
    return 0;
  }
  if (values.count("beside") > 0) throw Error("--beside is for -o, which writes a page");
  if (values.count("lesson") == 0) {
    ListLessons(lessons);
    return 0;
  }
  const auto name = values["lesson"].as<std::string>();
  const auto found = std::find_if(lessons.begin(), lessons.end(),
                                  [&](const Lesson& lesson) { return lesson.name == name; });
  if (found == lessons.end())
    throw Error(fmt::format("lesson: found \"{}\"{}", name, KnownNames(name, NamesOfLessons())));
  ShowLesson(*found, own, answers);
  return 0;
}

}  // namespace rehearse

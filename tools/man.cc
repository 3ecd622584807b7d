// rehearse man: the help of all commands as a manual page, rehearse(1).
#include <cstdio>
#include <sstream>

#include <boost/algorithm/string/replace.hpp>
#include <fmt/format.h>

#include "sim/base/error.h"
#include "sim/base/version.h"
#include "tools/command.h"

namespace rehearse {
namespace {

namespace po = boost::program_options;

// Escapes what roff would take for its own syntax.
std::string Roff(std::string text) {
  boost::replace_all(text, "\\", "\\e");
  boost::replace_all(text, "-", "\\-");
  boost::replace_all(text, "'", "\\(aq");
  boost::replace_all(text, "\"", "\\(dq");
  boost::replace_all(text, "`", "\\(ga");
  boost::replace_all(text, "^", "\\(ha");
  boost::replace_all(text, "~", "\\(ti");
  return text;
}

// Examples are indented; the text before and after them is filled.
std::string Paragraphs(const std::string& text) {
  std::string page;
  bool in_example = false;
  std::istringstream lines(text);
  for (std::string line; std::getline(lines, line);) {
    const bool is_example = line.starts_with("  ");
    if (is_example != in_example) page += is_example ? ".PP\n.nf\n" : ".fi\n.PP\n";
    in_example = is_example;
    page += (line.starts_with('.') ? "\\&" : "") + Roff(line) + "\n";
  }
  if (in_example) page += ".fi\n";
  return page;
}

std::string OptionEntry(const po::option_description& option) {
  const std::string letter =
      option.canonical_display_name(po::command_line_style::allow_dash_for_short);
  const bool has_letter = letter.size() == 2 && letter[0] == '-' && letter[1] != '-';
  const std::string value = NameOfValue(option);
  const std::string parameter = option.format_parameter();
  const size_t standard = parameter.find(" (=");
  std::string entry = ".TP\n";
  if (has_letter) entry += fmt::format("\\fB{}\\fR, ", Roff(letter));
  entry += fmt::format("\\fB{}\\fR", Roff("--" + option.long_name()));
  if (!value.empty()) entry += fmt::format(" \\fI{}\\fR", Roff(value));
  if (standard != std::string::npos) entry += Roff(parameter.substr(standard));
  std::string help = Roff(option.description());
  boost::replace_all(help, "\n", "\n.br\n");
  return entry + "\n" + help + "\n";
}

std::string ManPage() {
  std::string page =
      fmt::format(".TH REHEARSE 1 \"\" \"rehearse {}\" \"User Commands\"\n", Version());
  page +=
      ".SH NAME\nrehearse \\- rehearse a training run on a cluster that you do not have yet\n"
      ".SH SYNOPSIS\n.B rehearse\n.I COMMAND\n[\\fIarguments\\fR]\n"
      ".SH DESCRIPTION\n"
      "A discrete\\-event simulator of GPU clusters that train neural networks. Each command\n"
      "explains itself: \\fBrehearse help\\fR \\fICOMMAND\\fR.\n.PP\n"
      "Where a file is read, \\fB\\-\\fR is standard input, at most once per command; paths in\n"
      "that file are relative to the current folder. Where a file is written, \\fB\\-\\fR is\n"
      "standard output, and messages then go to standard error.\n";
  for (const Command& command : Commands())
    page += fmt::format(".TP\n.B {}\n{}\n", command.name, Roff(command.summary));
  for (const Command& command : Commands()) {
    const CommandSyntax syntax = command.syntax();
    page += fmt::format(
        ".SH \"REHEARSE {}\"\n.PP\n\\fB{}\\fR\n.PP\n",
        [&] {
          std::string name = command.name;
          for (char& letter : name) letter = static_cast<char>(letter - 'a' + 'A');
          return name;
        }(),
        Roff(syntax.usage));
    page += Paragraphs(syntax.explanation);
    for (const auto& option : syntax.options.options()) page += OptionEntry(*option);
  }
  page +=
      ".SH \"EXIT STATUS\"\n"
      ".TP\n"
      ".B 0\n"
      "Done.\n"
      ".TP\n"
      ".B 1\n"
      "The user's mistake, reported in one line on standard error.\n"
      ".TP\n"
      ".B 2\n"
      "A fault of rehearse itself, or numbers that are wrong (\\fB\\-\\-check\\fR).\n"
      ".TP\n"
      ".B 130, 143\n"
      "Ended by SIGINT or SIGTERM.\n"
      ".SH ENVIRONMENT\n"
      ".TP\n"
      ".B NO_COLOR\n"
      "No colours, as with TERM=dumb.\n"
      ".TP\n"
      ".B COLUMNS\n"
      "How wide \\fB\\-\\-gantt\\fR prints where standard output is not a terminal.\n";
  return page;
}

}  // namespace

CommandSyntax ManSyntax() {
  CommandSyntax syntax;
  syntax.usage = "rehearse man";
  syntax.explanation =
      "Prints the help of all commands as a page for man.\n"
      "  rehearse man | man -l -\n"
      "  rehearse man > ~/.local/share/man/man1/rehearse.1\n";
  return syntax;
}

int ManCommand(const std::vector<std::string>& arguments) {
  CommandSyntax syntax = ManSyntax();
  po::variables_map values;
  if (!ParseCommandLine(syntax, arguments, &values)) return 0;
  std::fputs(ManPage().c_str(), stdout);
  return 0;
}

}  // namespace rehearse

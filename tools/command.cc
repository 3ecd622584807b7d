#include "tools/command.h"

#include <cstdio>
#include <cstdlib>
#include <sstream>
#include <string_view>

#include <fmt/format.h>
#include <unistd.h>

#include "sim/base/error.h"

namespace rehearse {

namespace po = boost::program_options;

bool ParseCommandLine(CommandSyntax& syntax, const std::vector<std::string>& arguments,
                      po::variables_map* values) {
  syntax.options.add_options()("help,h", "print this and stop");
  po::options_description all;
  all.add(syntax.options);
  po::positional_options_description positional;
  for (const std::string& name : syntax.positional) {
    all.add_options()(name.c_str(), po::value<std::string>());
    positional.add(name.c_str(), 1);
  }
  std::vector<std::string> names;
  for (const auto& option : syntax.options.options()) {
    names.push_back("--" + option->long_name());
  }
  try {
    const auto style = po::command_line_style::unix_style & ~po::command_line_style::allow_guessing;
    po::store(
        po::command_line_parser(arguments).options(all).positional(positional).style(style).run(),
        *values);
    po::notify(*values);
  } catch (const po::unknown_option& error) {
    const std::string found = error.get_option_name();
    const std::string suggestion = DidYouMean(found, names);
    throw Error(
        fmt::format("unknown option {}{}", found,
                    suggestion.empty()
                        ? "; see " + syntax.usage.substr(0, syntax.usage.find(' ', 9)) + " --help"
                        : suggestion));
  } catch (const po::too_many_positional_options_error&) {
    throw Error("too many arguments; usage: " + syntax.usage);
  } catch (const po::error& error) {
    throw Error(error.what());
  }
  if (values->count("help") == 0) return true;
  std::ostringstream options;
  options << syntax.options;
  const std::string text =
      fmt::format("usage: {}\n\n{}\n{}", syntax.usage, syntax.explanation, options.str());
  std::fputs(text.c_str(), stdout);
  return false;
}

std::string FidelityHelp(const std::string& what) {
  std::string help = what;
  for (const Fidelity fidelity : {Fidelity::kFormula, Fidelity::kFluid, Fidelity::kStep}) {
    help += fmt::format("\n{} leaves out {}", Name(fidelity), LeftOutBy(fidelity));
  }
  return help;
}

Fidelity ParseFidelity(const std::string& option, const std::string& text) {
  std::vector<std::string> names;
  for (const Fidelity fidelity : {Fidelity::kFormula, Fidelity::kFluid, Fidelity::kStep}) {
    if (text == Name(fidelity)) return fidelity;
    names.emplace_back(Name(fidelity));
  }
  throw Error(fmt::format("{}: found \"{}\", expected one of {}{}", option, text,
                          fmt::join(names, ", "), DidYouMean(text, names)));
}

std::string FolderOption(const po::variables_map& values, const char* option) {
  if (values.count(option) == 0) return "";
  std::string folder = values[option].as<std::string>();
  if (folder.empty()) throw Error(fmt::format("--{}: found \"\", expected a folder", option));
  return folder;
}

bool ColorsWanted() {
  if (isatty(STDOUT_FILENO) != 1) return false;
  const auto is_set = [](const char* name) {
    const char* value = std::getenv(name);
    return value != nullptr && *value != '\0';
  };
  const char* terminal = std::getenv("TERM");
  const bool is_plain = terminal == nullptr || std::string_view(terminal) == "dumb";
  // What mpirun and srun give their ranks looks like a terminal, and is read by a program.
  return !is_plain && !is_set("NO_COLOR") && !is_set("OMPI_COMM_WORLD_RANK") &&
         !is_set("SLURM_PROCID");
}

}  // namespace rehearse

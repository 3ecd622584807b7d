// Subcommands of the rehearse program and what they share.
#pragma once

#include <cstdint>
#include <map>
#include <string>
#include <vector>

#include <boost/program_options.hpp>

#include "collectives/lowering/transfers.h"

namespace rehearse {

// What an option, or an argument without a dash, takes. The check of names, completion and the man
// page follow from it.
struct Taken {
  enum class Kind : uint8_t {
    kNothing,  // a switch
    kFree,
    kName,  // one of `names`
    kFile,
    kFolder,
    kCluster,       // a preset, a preset with changes, or a cluster file
    kScenarioPath,  // of --set: PATH=VALUE
  };
  Kind kind = Kind::kFree;
  std::vector<std::string> names = {};
  bool only_names = true;                 // false: other spellings and words are accepted too
  std::vector<std::string> endings = {};  // of files, such as ".json"; empty: any
  bool is_output = false;                 // a file that is written
};

Taken TakenName(std::vector<std::string> names);
Taken TakenFile(std::vector<std::string> endings);
Taken TakenOutput(std::vector<std::string> endings);

// What a command accepts.
struct CommandSyntax {
  std::string usage;        // "rehearse run SCENARIO [options]"
  std::string explanation;  // a paragraph, with examples; ends with a newline
  boost::program_options::options_description options;
  std::vector<std::string>
      positional;             // names of arguments without a dash, each given at most once
  bool last_repeats = false;  // except the last: as<std::vector<std::string>>()
  // What an option takes, by its long name, where the name of its value does not tell (TakenBy());
  // all positional arguments have an entry.
  std::map<std::string, Taken> takes;
};

// "FILE", "text|json"; "" for a switch.
std::string NameOfValue(const boost::program_options::option_description& option);

// Looks in `takes`, and otherwise at the name of the option's value: FILE, DIR, CLUSTER, PATH=VALUE
// or names separated by |.
Taken TakenBy(const CommandSyntax& syntax,
              const boost::program_options::option_description& option);
// The same for a positional argument.
Taken TakenBy(const CommandSyntax& syntax, const std::string& positional);

struct Command {
  const char* name = "";
  const char* summary = "";
  CommandSyntax (*syntax)() = nullptr;
  // `arguments` without the program's and the command's name. Returns the exit code; throws Error
  // for the user's mistakes.
  int (*run)(const std::vector<std::string>& arguments) = nullptr;
  bool runs_for_real = false;  // on this machine's CPUs or GPUs
};

// Thrown where the program of a first build (tools/first_program.cc) would have to know more; it
// then ends with this code, and tools/rehearse builds and starts the whole one.
struct NeedsWholeProgram {};
inline constexpr int kNeedsWholeProgram = 86;

// All commands, in the order of help.
const std::vector<Command>& Commands();

CommandSyntax InitSyntax();
int InitCommand(const std::vector<std::string>& arguments);
CommandSyntax RunSyntax();
int RunCommand(const std::vector<std::string>& arguments);
CommandSyntax PlanSyntax();
int PlanCommand(const std::vector<std::string>& arguments);
CommandSyntax ExecuteSyntax();
int ExecuteCommand(const std::vector<std::string>& arguments);
CommandSyntax SummarySyntax();
int SummaryCommand(const std::vector<std::string>& arguments);
CommandSyntax ExplainSyntax();
int ExplainCommand(const std::vector<std::string>& arguments);
CommandSyntax CollectiveSyntax();
int CollectiveCommand(const std::vector<std::string>& arguments);
CommandSyntax CalibrateSyntax();
int CalibrateCommand(const std::vector<std::string>& arguments);
CommandSyntax CompareSyntax();
int CompareCommand(const std::vector<std::string>& arguments);
CommandSyntax DiagnoseSyntax();
int DiagnoseCommand(const std::vector<std::string>& arguments);
CommandSyntax TrustSyntax();
int TrustCommand(const std::vector<std::string>& arguments);
CommandSyntax TopologySyntax();
int TopologyCommand(const std::vector<std::string>& arguments);
CommandSyntax ImportSyntax();
int ImportCommand(const std::vector<std::string>& arguments);
CommandSyntax SweepSyntax();
int SweepCommand(const std::vector<std::string>& arguments);
CommandSyntax SearchSyntax();
int SearchCommand(const std::vector<std::string>& arguments);
CommandSyntax ResultsSyntax();
int ResultsCommand(const std::vector<std::string>& arguments);
CommandSyntax ValidateSyntax();
int ValidateCommand(const std::vector<std::string>& arguments);
CommandSyntax ReportSyntax();
int ReportCommand(const std::vector<std::string>& arguments);
CommandSyntax LessonsSyntax();
int LessonsCommand(const std::vector<std::string>& arguments);
CommandSyntax CompletionSyntax();
int CompletionCommand(const std::vector<std::string>& arguments);
CommandSyntax ManSyntax();
int ManCommand(const std::vector<std::string>& arguments);
CommandSyntax ListSyntax();
int ListCommand(const std::vector<std::string>& arguments);
CommandSyntax SchemaSyntax();
int SchemaCommand(const std::vector<std::string>& arguments);

// Parses strictly: no abbreviations; unknown options, and names that an option does not take, are
// Errors with "did you mean". Adds --help, and returns false after printing it.
bool ParseCommandLine(CommandSyntax& syntax, const std::vector<std::string>& arguments,
                      boost::program_options::variables_map* values);

// Reads the value of --fidelity (or another option); Error with "did you mean" for others.
Fidelity ParseFidelity(const std::string& option, const std::string& text);
// The help of such an option: `what` it is, and what each fidelity leaves out.
std::string FidelityHelp(const std::string& what);

// Prints messages that go with an output file: to standard error if that file is standard output.
void PrintBeside(const std::string& output, const std::string& text);

// Reads the value of --out or a similar option: "" where it is not given, Error where it is empty.
std::string FolderOption(const boost::program_options::variables_map& values, const char* option);

}  // namespace rehearse

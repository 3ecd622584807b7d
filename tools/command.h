// Subcommands of the rehearse program and what they share.
#pragma once

#include <string>
#include <vector>

#include <boost/program_options.hpp>

#include "collectives/lowering/transfers.h"

namespace rehearse {

struct Command {
  const char* name;
  const char* summary;
  // `arguments` without the program's and the command's name. Returns the exit code; throws Error
  // for the user's mistakes.
  int (*run)(const std::vector<std::string>& arguments);
};

int ExplainCommand(const std::vector<std::string>& arguments);
int CollectiveCommand(const std::vector<std::string>& arguments);
int RunCommand(const std::vector<std::string>& arguments);
int PlanCommand(const std::vector<std::string>& arguments);
int ExecuteCommand(const std::vector<std::string>& arguments);
int CalibrateCommand(const std::vector<std::string>& arguments);
int TrustCommand(const std::vector<std::string>& arguments);
int CompareCommand(const std::vector<std::string>& arguments);
int SweepCommand(const std::vector<std::string>& arguments);
int TopologyCommand(const std::vector<std::string>& arguments);
int ListCommand(const std::vector<std::string>& arguments);

// What a command accepts.
struct CommandSyntax {
  std::string usage;        // "rehearse run SCENARIO [options]"
  std::string explanation;  // a paragraph, with examples; ends with a newline
  boost::program_options::options_description options;
  std::vector<std::string> positional;  // names of arguments without a dash, each at most once
};

// Parses strictly: no abbreviations, unknown options are Errors with "did you mean". Adds --help;
// returns false after printing it.
bool ParseCommandLine(CommandSyntax& syntax, const std::vector<std::string>& arguments,
                      boost::program_options::variables_map* values);

// The value of --fidelity (or another option); Error with "did you mean" for anything else.
Fidelity ParseFidelity(const std::string& option, const std::string& text);
// The help of such an option: what it is, and what each leaves out.
std::string FidelityHelp(const std::string& what);

// The value of --out or its like; "" where it is not given, Error where it is empty.
std::string FolderOption(const boost::program_options::variables_map& values, const char* option);

// Whether text on standard output may be coloured: a terminal that is no rank's under mpirun or
// srun, TERM is not "dumb", and NO_COLOR is not set.
bool ColorsWanted();

}  // namespace rehearse

// The subcommands, in the order of help.
#include "tools/command.h"

namespace rehearse {

const std::vector<Command>& Commands() {
  static const std::vector<Command> commands = {
      {"init", "write a first scenario, with comments", InitSyntax, InitCommand},
      {"run", "simulate one scenario and show where the time goes", RunSyntax, RunCommand},
      {"plan", "write the schedule of a scenario as a file", PlanSyntax, PlanCommand},
      {"execute", "run the same schedule for real, on CPUs or GPUs", ExecuteSyntax, ExecuteCommand,
       true},
      {"explain", "why the step takes so long: critical path, contention, what would help",
       ExplainSyntax, ExplainCommand},
      {"report", "one page for a browser: timeline, links, memory, one run above another",
       ReportSyntax, ReportCommand},
      {"collective", "time one collective alone, in nccl-tests' words", CollectiveSyntax,
       CollectiveCommand},
      {"calibrate", "measure this machine, for scenarios on local-cpu", CalibrateSyntax,
       CalibrateCommand, true},
      {"compare", "two timelines, op by op; or nccl-tests beside what is predicted", CompareSyntax,
       CompareCommand},
      {"trust", "predict steps that a calibration has not seen, run them, show the errors",
       TrustSyntax, TrustCommand, true},
      {"topology", "what is connected in a cluster, and how fast; pictures and matrices",
       TopologySyntax, TopologyCommand},
      {"import", "what others have written: machines from their dumps, models", ImportSyntax,
       ImportCommand},
      {"sweep", "simulate many scenarios, beside what is published about them", SweepSyntax,
       SweepCommand},
      {"search", "which configuration of a scenario is the best, by formulas and simulation",
       SearchSyntax, SearchCommand},
      {"results", "what sweeps and searches have kept: shown, or files of several merged",
       ResultsSyntax, ResultsCommand},
      {"validate", "published steps beside predicted ones, and where errors come from",
       ValidateSyntax, ValidateCommand},
      {"lessons", "eight ideas about overlap, each with a question, a change and an answer",
       LessonsSyntax, LessonsCommand},
      {"list", "what is known by name: clusters, devices, models, strategies", ListSyntax,
       ListCommand},
      {"schema", "every key of the files that are read and written", SchemaSyntax, SchemaCommand},
      {"completion", "a script that completes commands in bash, zsh or fish", CompletionSyntax,
       CompletionCommand},
      {"man", "this help as a page for man", ManSyntax, ManCommand},
  };
  return commands;
}

}  // namespace rehearse

// The subcommands, in the order in which help lists them.
#include "tools/command.h"

namespace rehearse {

const std::vector<Command>& Commands() {
  static const std::vector<Command> commands = {
      {"init", "write a first scenario, with comments", InitSyntax, InitCommand},
      {"run", "simulate one scenario and show where the time goes", RunSyntax, RunCommand},
      {"plan", "write the schedule of a scenario as a file", PlanSyntax, PlanCommand},
      {"execute", "run the same schedule for real, on CPUs or GPUs", ExecuteSyntax, ExecuteCommand,
       true},
      {"explain",
       "why the step takes as long as it does: critical path, contention, what would help",
       ExplainSyntax, ExplainCommand},
      {"summary", "what the time of a step went into, measured or simulated: kernels, overlap",
       SummarySyntax, SummaryCommand},
      {"report", "a page for a browser: timeline, links, memory, two runs one above the other",
       ReportSyntax, ReportCommand},
      {"collective", "time one collective on its own, in the format of nccl-tests",
       CollectiveSyntax, CollectiveCommand},
      {"calibrate", "measure this machine, for scenarios on local-cpu", CalibrateSyntax,
       CalibrateCommand, true},
      {"compare", "compare two timelines op by op, or nccl-tests with the prediction",
       CompareSyntax, CompareCommand},
      {"diagnose", "what is wrong where something is slower than predicted, by likelihood",
       DiagnoseSyntax, DiagnoseCommand},
      {"trust", "predict steps that a calibration has not seen, run them and show the errors",
       TrustSyntax, TrustCommand, true},
      {"topology", "show what is connected in a cluster, and how fast; pictures and matrices",
       TopologySyntax, TopologyCommand},
      {"import", "read what other tools write: dumps of machines, models, training runs, traces",
       ImportSyntax, ImportCommand},
      {"sweep", "simulate many scenarios and compare them with published results", SweepSyntax,
       SweepCommand},
      {"search", "find the best configuration of a scenario, by formulas and simulation",
       SearchSyntax, SearchCommand},
      {"results", "show or merge the results that sweeps and searches have kept", ResultsSyntax,
       ResultsCommand},
      {"validate", "compare predicted steps with published ones, and say where errors come from",
       ValidateSyntax, ValidateCommand},
      {"lessons", "thirteen ideas about overlap, each with a question, a change and an answer",
       LessonsSyntax, LessonsCommand},
      {"list", "list what is known by name: clusters, devices, models, strategies", ListSyntax,
       ListCommand},
      {"schema", "list every key of the files that Rehearse reads and writes", SchemaSyntax,
       SchemaCommand},
      {"completion", "print a script that completes commands in bash, zsh or fish",
       CompletionSyntax, CompletionCommand},
      {"man", "print this help as a page for man", ManSyntax, ManCommand},
  };
  return commands;
}

}  // namespace rehearse

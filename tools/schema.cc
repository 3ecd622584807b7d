// rehearse schema [KIND]: the keys of the files that Rehearse reads and writes.
#include <cstdio>

#include <fmt/format.h>
#include <nlohmann/json.hpp>

#include "scenarios/playing/jobs_fields.h"
#include "scenarios/readers/job_trace.h"
#include "scenarios/readers/perturbation.h"
#include "scenarios/readers/scenario_shape.h"
#include "scenarios/sweeping/study_shapes.h"
#include "sim/base/error.h"
#include "sim/base/known_names.h"
#include "sim/base/shape_print.h"
#include "sim/report/result_fields.h"
#include "sim/report/timeline_fields.h"
#include "sim/report/timeline_record.h"
#include "sim/schedule/schedule_fields.h"
#include "sim/schedule/schedule_format.h"
#include "tools/command.h"
#include "tools/documents.h"
#include "topology/files/calibration.h"
#include "topology/files/cluster_file.h"
#include "topology/files/device_points_file.h"
#include "topology/files/edits.h"

namespace rehearse {

const std::vector<DocumentShape>& Documents() {
  static const std::vector<DocumentShape> documents = {
      {"scenario", "one step, or jobs, on one cluster; run, plan, execute and explain read it.", "",
       ObjectOf(ScenarioShape)},
      {"cluster", "devices and links; a scenario's \"cluster\", and --cluster.", "",
       ClusterObjectShape()},
      {"study", "many scenarios, compared with what is published; sweep reads it.", "",
       ObjectOf(ShapeIn<StudyFields>)},
      {"schedule", "what every rank does in a step; plan writes it, run and others read it.",
       kScheduleSchema, ObjectOf(ShapeIn<ScheduleFields>)},
      {"calibration", "measured figures of a machine; calibrate and compare write it.",
       kCalibrationSchema, ObjectOf(CalibrationShape)},
      {"edits", "changes to links and devices; \"edits\" of a scenario or cluster.", "",
       EditsShape()},
      {"perturbation",
       "jitter, slow devices, failing links; \"perturbation\" of a scenario's \"simulator\".", "",
       ObjectOf(PerturbationShape)},
      {"job-trace", "jobs that came to a cluster, one after the other; import writes it.",
       kJobTraceSchema, ObjectOf(ShapeIn<JobTraceFields>)},
      {"timeline", "when each op ran; run and execute --out write it, compare reads it.",
       kTimelineSchema, ObjectOf(ShapeIn<TimelineFields>)},
      {"result", "how long a step takes and why; run --format json and --out write it.",
       kResultSchema,
       Either({ObjectOf(ShapeIn<ResultFields>), ObjectOf(ShapeIn<JobsResultFields>)})},
  };
  return documents;
}

namespace {

namespace po = boost::program_options;

constexpr const char* kDevicePoints = "device-points";  // the one that is not JSON

std::vector<std::string> KindNames() {
  std::vector<std::string> names;
  for (const DocumentShape& document : Documents()) names.push_back(document.name);
  names.emplace_back(kDevicePoints);
  return names;
}

}  // namespace

CommandSyntax SchemaSyntax() {
  CommandSyntax syntax;
  syntax.usage = "rehearse schema [KIND] [options]";
  syntax.explanation =
      "Lists every key of the JSON files that Rehearse reads and writes, with type, unit,\n"
      "default, allowed values and an example, from the tables that the readers use. KIND is one\n"
      "of scenario, cluster, study, schedule, calibration, edits, perturbation, job-trace,\n"
      "timeline and result; or device-points, which are CSV. Examples:\n"
      "  rehearse schema scenario\n"
      "  rehearse schema scenario --json > scenario.schema.json   # for editors: name it in\n"
      "                                                           # the file's \"$schema\"\n";
  syntax.positional = {"kind"};
  syntax.takes["kind"] = TakenName(KindNames());
  syntax.options.add_options()("json", "print JSON Schema (draft 7), for editors");
  return syntax;
}

namespace {

std::string ListText() {
  std::string text;
  for (const DocumentShape& document : Documents())
    text += fmt::format("{:<14} {}\n", document.name, document.about);
  text +=
      fmt::format("{:<14} {}\n", kDevicePoints,
                  "measured times of products and attention, as CSV; --device-points reads it.");
  return text +
         "\n"
         "'rehearse schema KIND' prints the keys of one kind.\n";
}

}  // namespace

int SchemaCommand(const std::vector<std::string>& arguments) {
  CommandSyntax syntax = SchemaSyntax();
  po::variables_map values;
  if (!ParseCommandLine(syntax, arguments, &values)) return 0;
  if (values.count("kind") == 0) {
    if (values.count("json") > 0) throw Error("--json: of which KIND? usage: " + syntax.usage);
    std::fputs(ListText().c_str(), stdout);
    return 0;
  }
  const std::string kind = values["kind"].as<std::string>();
  if (kind == kDevicePoints) {
    if (values.count("json") > 0) throw Error("--json: device-points are CSV, which has no schema");
    std::fputs(DescribePointColumns().c_str(), stdout);
    return 0;
  }
  for (const DocumentShape& document : Documents()) {
    if (document.name != kind) continue;
    const std::string text = values.count("json") > 0 ? JsonSchema(document).dump(2) + "\n"
                                                      : ShapeText(document, Documents());
    std::fputs(text.c_str(), stdout);
    return 0;
  }
  throw Error(fmt::format("no file is of kind \"{}\"{}", kind, KnownNames(kind, KindNames())));
}

}  // namespace rehearse

// rehearse summary TIMELINE: what the time of a step went into.
#include <cstdio>
#include <filesystem>

#include "sim/base/error.h"
#include "sim/base/input_file.h"
#include "sim/base/json_document.h"
#include "sim/report/timeline_file.h"
#include "sim/report/timeline_record.h"
#include "sim/report/timeline_summary.h"
#include "tools/command.h"
#include "tools/number_options.h"
#include "tools/output_format.h"
#include "tools/terminal.h"

namespace rehearse {
namespace po = boost::program_options;

CommandSyntax SummarySyntax() {
  CommandSyntax syntax;
  syntax.usage = "rehearse summary TIMELINE [options]";
  syntax.explanation =
      "Shows what the time of a step went into, measured or simulated: compute, communication\n"
      "that compute hides or does not, and nothing; and by kernel, communicator, phase and layer.\n"
      "TIMELINE is what import kineto, execute or run --out wrote: the file, or its folder.\n"
      "Examples:\n"
      "  rehearse import kineto traces -o timeline.json\n"
      "  rehearse summary timeline.json\n"
      "  rehearse summary timeline.json --format csv > kernels.csv\n";
  syntax.positional = {"timeline"};
  syntax.takes["timeline"] = TakenFile({".json", ".json.gz"});
  auto add = syntax.options.add_options();
  add("rows", Whole("N", "12", 0u, 1'000'000'000u), "at most N rows of each list (text only)");
  AddFormatOption(syntax.options, kTableFormats, "a row for each kernel");
  return syntax;
}

int SummaryCommand(const std::vector<std::string>& arguments) {
  CommandSyntax syntax = SummarySyntax();
  po::variables_map values;
  if (!ParseCommandLine(syntax, arguments, &values)) return 0;
  const OutputFormat format = ReadFormat(values, kTableFormats);
  if (values.count("timeline") == 0) throw Error("no timeline given: rehearse summary FILE");
  const std::string path = values["timeline"].as<std::string>();
  std::error_code ignored;  // what cannot be examined cannot be read either
  const bool is_folder = path != kStandardInput && std::filesystem::is_directory(path, ignored);
  const TimelineFile file = ReadTimelineFile(is_folder ? path + "/timeline.json" : path);
  const JsonDocument document = JsonDocument::FromText(file.text, file.name);
  const TimelineSummary summary =
      SummarizeTimeline(ReadTimelineRecord(document.Root(), file.spans));
  const std::string text = IsTable(format) ? Print(KernelTable(summary), format)
                           : format == OutputFormat::kJson
                               ? ToJson(summary).dump(2) + "\n"
                               : ToText(summary, ColorsWanted(), values["rows"].as<uint32_t>());
  std::fputs(text.c_str(), stdout);
  return 0;
}

}  // namespace rehearse

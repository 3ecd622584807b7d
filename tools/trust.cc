// rehearse trust: how far predictions can be trusted on this machine.
#include "scenarios/trials/trust.h"

#include <cstdio>

#include <fmt/format.h>

#include "real/kernels/kernels.h"
#include "sim/base/error.h"
#include "sim/base/interruption.h"
#include "sim/base/output_file.h"
#include "sim/base/say.h"
#include "tools/command.h"
#include "tools/number_options.h"
#include "tools/output_format.h"
#include "tools/terminal.h"

namespace rehearse {
namespace po = boost::program_options;

CommandSyntax TrustSyntax() {
  constexpr uint32_t kMostSteps = 1'000'000;
  CommandSyntax syntax;
  syntax.usage = "rehearse trust CALIBRATION [options]";
  syntax.explanation =
      "Draws random training steps that the calibration has not seen, predicts each, runs it,\n"
      "and shows all errors, bad ones too; after Ctrl-C, those of the steps that were run.\n"
      "Examples:\n"
      "  rehearse calibrate && rehearse trust calibration.json\n"
      "  rehearse trust calibration.json --ranks 4 --steps 60 --out trust.json\n";
  syntax.positional = {"calibration"};
  syntax.takes["calibration"] = TakenFile({".json"});
  syntax.takes["out"] = TakenOutput({".json"});
  auto add = syntax.options.add_options();
  add("ranks", Whole("N", "2", 2u, kMostThreadRanks),
      "ranks of each step, threads of this process");
  add("steps", Whole("N", "42", 1u, kMostSteps), "how many steps");
  add("seed", Whole("N", "1", uint64_t{0}, UINT64_MAX),
      "which steps; the same seed draws the same ones everywhere");
  add("kept", Whole("N", "15", 1u, kMostSteps),
      "how many undisturbed repeats to measure of each step");
  add("patience", Wait("SECONDS", "10"), "how long to wait for them");
  add("out", po::value<std::string>()->value_name("FILE"),
      "also write the JSON there; with - it goes to standard output, and the text to standard "
      "error");
  AddFormatOption(syntax.options, kTableFormats, "a row for each step");
  return syntax;
}

int TrustCommand(const std::vector<std::string>& arguments) {
  CommandSyntax syntax = TrustSyntax();
  po::variables_map values;
  if (!ParseCommandLine(syntax, arguments, &values)) return 0;
  if (values.count("calibration") == 0) throw Error("no calibration given; usage: " + syntax.usage);
  const OutputFormat format = ReadFormat(values, kTableFormats);
  const Calibration calibration = ReadCalibrationFile(values["calibration"].as<std::string>());
  TrustOptions options;
  options.ranks = values["ranks"].as<uint32_t>();
  options.steps = values["steps"].as<uint32_t>();
  options.seed = values["seed"].as<uint64_t>();
  options.kept = values["kept"].as<uint32_t>();
  options.patience = values["patience"].as<Seconds>();
  options.is_stopped = IsStopAsked;
  if (values.count("out") > 0) CheckWritable(values["out"].as<std::string>());
  SetBlasThreads(1);
  const Stoppable stoppable;
  ProgressLine progress(ProgressWanted());
  options.observer = &progress;
  const TrustReport report = MeasureTrust(calibration, options);
  progress.Clear();
  const std::string json = ToJson(report).dump(2) + "\n";
  if (values.count("out") > 0) WriteFileAtomically(values["out"].as<std::string>(), json);
  const std::string text = IsTable(format)                 ? Print(TableOf(report), format)
                           : format == OutputFormat::kJson ? json
                                                           : ToText(report);
  const std::string output = values.count("out") > 0 ? values["out"].as<std::string>() : "";
  // Otherwise the JSON is already on standard output.
  if (format != OutputFormat::kJson || !IsStandardOutput(output)) PrintBeside(output, text);
  if (report.rows.size() < report.wanted) {
    std::fflush(stdout);
    Say(fmt::format("{}: {} of {} steps were run; --steps {} asks for as many", StopWords(),
                    report.rows.size(), report.wanted, report.rows.size()));
  }
  return StopCode();
}

}  // namespace rehearse

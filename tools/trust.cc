// rehearse trust: how far predictions can be trusted on this machine.
#include "scenarios/trials/trust.h"

#include <cstdio>

#include <fmt/format.h>
#include <unistd.h>

#include "real/kernels/kernels.h"
#include "sim/base/error.h"
#include "sim/base/output_file.h"
#include "sim/base/say.h"
#include "tools/command.h"
#include "tools/output_format.h"
#include "tools/trial_options.h"

namespace rehearse {
namespace po = boost::program_options;

CommandSyntax TrustSyntax() {
  CommandSyntax syntax;
  syntax.usage = "rehearse trust CALIBRATION [options]";
  syntax.explanation =
      "Draws random training steps that the calibration has not seen, predicts each, runs it, and\n"
      "shows the errors, the bad ones too. Examples:\n"
      "  rehearse calibrate && rehearse trust calibration.json\n"
      "  rehearse trust calibration.json --ranks 4 --steps 60 --out trust.json\n";
  syntax.positional = {"calibration"};
  syntax.takes["calibration"] = TakenFile({".json"});
  syntax.takes["out"] = TakenOutput({".json"});
  auto add = syntax.options.add_options();
  add("ranks", po::value<std::string>()->default_value("2")->value_name("N"),
      "ranks of each step, threads of this process");
  add("steps", po::value<std::string>()->default_value("42")->value_name("N"), "how many");
  add("seed", po::value<std::string>()->default_value("1")->value_name("N"),
      "which; the same seed draws the same steps everywhere");
  add("kept", po::value<std::string>()->default_value("15")->value_name("N"),
      "undisturbed repeats wanted of each step");
  add("patience", po::value<std::string>()->default_value("10")->value_name("SECONDS"),
      "how long to wait for them");
  add("out", po::value<std::string>()->value_name("FILE"),
      "also write the JSON there; with - it is printed, and the text goes to standard error");
  AddFormatOption(syntax.options, kTableFormats, "a row a step");
  return syntax;
}

int TrustCommand(const std::vector<std::string>& arguments) {
  CommandSyntax syntax = TrustSyntax();
  po::variables_map values;
  if (!ParseCommandLine(syntax, arguments, &values)) return 0;
  if (values.count("calibration") == 0) throw Error("no calibration given; usage: " + syntax.usage);
  const OutputFormat format = ReadFormat(values, kTableFormats);
  const auto count = [&](const char* option, uint32_t least) {
    return ParseCount(std::string("--") + option, values[option].as<std::string>(), least);
  };
  const Calibration calibration = ReadCalibrationFile(values["calibration"].as<std::string>());
  TrustOptions options;
  options.ranks = count("ranks", 2);
  options.steps = count("steps", 1);
  options.seed = count("seed", 0);
  options.kept = count("kept", 1);
  options.patience = Seconds(count("patience", 1));
  options.progress = [](const std::string& line) {
    if (isatty(STDERR_FILENO) == 1) SayAsItIs(line + "\n");
  };
  if (values.count("out") > 0) CheckWritable(values["out"].as<std::string>());
  SetBlasThreads(1);
  const TrustReport report = MeasureTrust(calibration, options);
  const std::string json = ToJson(report).dump(2) + "\n";
  if (values.count("out") > 0) WriteFileAtomically(values["out"].as<std::string>(), json);
  const std::string text = IsTable(format)                 ? Print(TableOf(report), format)
                           : format == OutputFormat::kJson ? json
                                                           : ToText(report);
  const std::string output = values.count("out") > 0 ? values["out"].as<std::string>() : "";
  // There the JSON is already.
  if (format != OutputFormat::kJson || !IsStandardOutput(output)) PrintBeside(output, text);
  return 0;
}

}  // namespace rehearse

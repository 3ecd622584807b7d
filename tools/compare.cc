// rehearse compare: two records of the same thing, side by side.
//
// The content of the arguments tells what they are; a row of kComparers says which of them
// can be compared.
#include <cstdio>
#include <limits>

#include <fmt/format.h>

#include "sim/base/error.h"
#include "tools/command.h"
#include "tools/comparers.h"
#include "tools/number_options.h"
#include "tools/trial_options.h"

namespace rehearse {
namespace {

namespace po = boost::program_options;

}  // namespace

namespace {

// Reads --rows, which is a whole number from 1, or "all".
boost::any ReadRows(const std::string& text) {
  if (text == "all") return std::numeric_limits<size_t>::max();
  if (!WholeNumberIn(text))
    throw Error(fmt::format("found \"{}\", expected a whole number from 1, or all", text));
  return static_cast<size_t>(ParseWhole(text, 1, 1'000'000'000));
}

}  // namespace

CommandSyntax CompareSyntax() {
  CommandSyntax syntax;
  syntax.usage = "rehearse compare A [B] [options]";
  syntax.explanation =
      "Compares two timelines op by op: simulated and measured, or any two. A and B are each a\n"
      "folder of \"rehearse run --out\", a timeline or result file, or a scenario, which is\n"
      "simulated on the spot. Where A is simulated and B was measured, differences are errors of\n"
      "A; otherwise they say how much longer A takes. Or compares what nccl-tests measured with\n"
      "what is predicted for --cluster, size by size: then A is the output of all_reduce_perf or\n"
      "its siblings (one or several in a row), or a CSV table that names its columns (size,\n"
      "time, algbw, busbw). Examples:\n"
      "  rehearse compare scenarios/axonn-fig3-a.json scenarios/axonn-fig3-ab.json\n"
      "  rehearse compare simulated measured/timeline.json --format csv\n"
      "  rehearse compare nccl.log --cluster dgx-a100\n"
      "  rehearse compare table.csv --cluster dgx-a100:nodes=4 --kind all-reduce\n"
      "  rehearse compare nccl.log --cluster dgx-a100 --calibration mine.json\n";
  syntax.positional = {"a", "b"};
  syntax.takes["a"] = syntax.takes["b"] = TakenFile({});
  AddTrialOptions(&syntax);
  syntax.takes["kind"] = TakenCollective();
  syntax.takes["calibration"] = TakenOutput({".json"});
  syntax.takes["using"] = TakenFile({".json"});
  syntax.takes["rows"] = {};  // a number, or "all"
  const auto text = [](const char* name) { return po::value<std::string>()->value_name(name); };
  syntax.options.add_options()("kind", text("KIND"),
                               "which collective it was, where the log does not say; which table "
                               "to compare, where there are several")(
      "calibration", text("FILE"),
      "fit the efficiency of the limiting links and the overhead of a collective to every other "
      "size, as far as these determine them, write both there and compare with them; with - they "
      "go to standard output, and the comparison to standard error")(
      "using", text("FILE"), "predict with this calibration")(
      "rows", ReadBy(ReadRows, "N|all", nullptr),
      "at most N rows of each list; of ops and sizes, those that differ most; by default 10 ops "
      "and everything else");
  AddFormatOption(syntax.options, kTableFormats,
                  "a row for the step and for each part, group and op, or a row for each size");
  return syntax;
}

namespace {

// ---- What can be compared -----------------------------------------------------------------------

struct Comparer {
  SubjectKind a;
  SubjectKind b;
  std::string (*compare)(const Subject& a, const Subject& b, const po::variables_map& values,
                         const std::string& usage, const CompareFormat& format);
};
constexpr Comparer kComparers[] = {
    {SubjectKind::kNcclTable, SubjectKind::kNothing,
     [](const Subject& log, const Subject&, const po::variables_map& values,
        const std::string& usage,
        const CompareFormat& format) { return CompareNcclLog(log, values, usage, format); }},
    {SubjectKind::kTimeline, SubjectKind::kTimeline,
     [](const Subject& a, const Subject& b, const po::variables_map&, const std::string&,
        const CompareFormat& format) { return CompareTimelines(a, b, format); }},
    {SubjectKind::kResult, SubjectKind::kResult,
     [](const Subject& a, const Subject& b, const po::variables_map&, const std::string&,
        const CompareFormat& format) { return CompareResults(a, b, format); }},
};

const char* Name(SubjectKind kind) {
  switch (kind) {
    case SubjectKind::kNothing:
      return "nothing";
    case SubjectKind::kNcclTable:
      return "a table of nccl-tests";
    case SubjectKind::kTimeline:
      return "a timeline";
    case SubjectKind::kResult:
      return "a result";
  }
  CHECK(false);
}

}  // namespace

int CompareCommand(const std::vector<std::string>& arguments) {
  CommandSyntax syntax = CompareSyntax();
  po::variables_map values;
  if (!ParseCommandLine(syntax, arguments, &values)) return 0;
  if (values.count("a") == 0) throw Error("nothing to compare; usage: " + syntax.usage);
  const CompareFormat format{
      ReadFormat(values, kTableFormats),
      values.count("rows") > 0 ? std::optional(values["rows"].as<size_t>()) : std::nullopt};
  const Subject a = RecogniseSubject(values["a"].as<std::string>());
  const Subject b =
      values.count("b") == 0 ? Subject{} : RecogniseSubject(values["b"].as<std::string>());
  for (const Comparer& comparer : kComparers) {
    if (comparer.a != a.kind || comparer.b != b.kind) continue;
    const std::string output =
        values.count("calibration") > 0 ? values["calibration"].as<std::string>() : "";
    PrintBeside(output, comparer.compare(a, b, values, syntax.usage, format));
    return 0;
  }
  if (b.kind == SubjectKind::kNothing)
    throw Error(fmt::format("found only {}, expected what to compare it with; usage: {}",
                            Name(a.kind), syntax.usage));
  throw Error(
      fmt::format("cannot compare {} with {}; expected two timelines, two results, or a table of "
                  "nccl-tests and --cluster",
                  Name(a.kind), Name(b.kind)));
}

}  // namespace rehearse

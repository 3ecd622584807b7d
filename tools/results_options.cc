#include "tools/results_options.h"

#include <algorithm>
#include <filesystem>

#include <fmt/format.h>

#include "sim/base/error.h"
#include "sim/base/known_names.h"
#include "sim/base/output_file.h"
#include "sim/base/say.h"
#include "sim/report/result.h"
#include "tools/number_options.h"

namespace rehearse {
namespace {

namespace po = boost::program_options;

constexpr uint64_t kMostShards = 1'000'000;

Shard ParseShard(const std::string& text) {
  const size_t slash = std::min(text.find('/'), text.size());
  const uint64_t number = WholeNumberIn(text.substr(0, slash)).value_or(0);
  const uint64_t of = slash < text.size() ? WholeNumberIn(text.substr(slash + 1)).value_or(0) : 0;
  if (number < 1 || number > of || of > kMostShards)
    throw Error(fmt::format(
        "found \"{}\", expected a part and the number of parts, such as 1/4 to 4/4", text));
  return {.number = number, .of = of};
}

}  // namespace

std::vector<PointStore*> ResultsOptions::Open() {
  if (path.empty()) return {};
  file = std::make_unique<ResultsFile>(
      path, resumes ? ResultsFile::Opening::kThere : ResultsFile::Opening::kMakeIfMissing,
      [](const std::string& message) { Say(message); });
  return {file.get()};
}

void AddResultsOptions(CommandSyntax* syntax) {
  syntax->options.add_options()(
      "results", po::value<std::string>()->value_name("FILE"),
      "keep every simulated point in this SQLite file, and do not simulate what is already there; "
      "rehearse results shows and merges such files")(
      "resume", "expect results to be there already, so that a mistyped name is an error")(
      "shard",
      ReadBy([](const std::string& text) { return boost::any(ParseShard(text)); }, "I/N", nullptr),
      "simulate only the I-th of N parts of the points, for job arrays; merged results have all");
  syntax->takes["results"] = TakenOutput({".sqlite"});
}

ResultsOptions ReadResultsOptions(const po::variables_map& values, const std::string& folder) {
  ResultsOptions options;
  options.resumes = values.count("resume") > 0;
  if (values.count("results") > 0) {
    options.path = values["results"].as<std::string>();
    if (options.path.empty() || IsStandardOutput(options.path))
      throw Error(fmt::format("--results: found \"{}\", expected a file", options.path));
  }
  if (values.count("shard") > 0) options.shard = values["shard"].as<Shard>();
  const bool is_kept = !options.path.empty() || !folder.empty();
  if (options.resumes && !is_kept)
    throw Error("--resume goes on with kept results; expected --results FILE too");
  if (values.count("shard") > 0 && !is_kept)
    throw Error(
        "--shard does a part, which is useful only if it is kept; expected --results FILE too");
  std::error_code missing;
  if (options.resumes && !folder.empty() && !std::filesystem::is_directory(folder, missing))
    throw Error({folder, 0, ""}, "there is no such folder to resume");
  return options;
}

void AddSortOption(CommandSyntax* syntax) {
  syntax->options.add_options()(
      "sort", po::value<std::string>()->value_name("NUMBER"),
      "sort points by this number of result.json, such as step_seconds, the best first");
  syntax->takes["sort"] = TakenName(NumbersOfEveryResult());
  syntax->takes["sort"].only_names = false;
}

std::string SortOption(const po::variables_map& values) {
  if (values.count("sort") == 0) return "";
  auto number = values["sort"].as<std::string>();
  // Names of axes cannot be checked here, because it is known only later which there are.
  std::vector<std::string> known = NumbersOfResults();
  const size_t first = number.find('.');
  const size_t last = number.rfind('.');
  const std::string axis = first == last ? "" : number.substr(first + 1, last - first - 1);
  for (std::string& name : known)
    if (const size_t star = name.find('*'); star != std::string::npos && !axis.empty())
      name.replace(star, 1, axis);
  if (std::find(known.begin(), known.end(), number) == known.end())
    throw Error(fmt::format("--sort: found \"{}\", which is not a number in results{}", number,
                            KnownNames(number, known)));
  return number;
}

}  // namespace rehearse

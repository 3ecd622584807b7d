#include "tools/separate_files.h"

#include <filesystem>
#include <string>
#include <system_error>
#include <vector>

#include <fmt/format.h>

#include "sim/base/error.h"
#include "sim/base/input_file.h"
#include "sim/base/output_file.h"

namespace rehearse {
namespace {

namespace fs = std::filesystem;
namespace po = boost::program_options;

struct GivenPath {
  std::string option;  // "--output"
  std::string path;
};

std::vector<std::string> TextsOf(const po::variable_value& value) {
  if (const auto* text = boost::any_cast<std::string>(&value.value())) return {*text};
  if (const auto* texts = boost::any_cast<std::vector<std::string>>(&value.value())) return *texts;
  return {};
}

// For "my.json:nodes=4" the file is my.json.
std::string FileOfCluster(const std::string& text) {
  return InputExists(text) ? text : text.substr(0, text.find(':'));
}

bool IsOther(const fs::path& path) {
  std::error_code unknown;
  return fs::is_other(path, unknown);
}

// A folder may have the name of a preset, so only a file counts.
bool IsFile(const fs::path& path) {
  std::error_code unknown;
  return fs::is_regular_file(path, unknown);
}

bool AreOne(const std::string& a, const std::string& b) {
  if (IsOther(a) || IsOther(b)) return false;
  std::error_code unknown;
  if (fs::equivalent(a, b, unknown) && !unknown) return true;
  return fs::weakly_canonical(a, unknown) == fs::weakly_canonical(b, unknown);
}

}  // namespace

void CheckThatFilesDiffer(const CommandSyntax& syntax, const po::variables_map& values) {
  std::vector<GivenPath> inputs;
  std::vector<GivenPath> outputs;
  const auto add = [&](const std::string& name, const Taken& taken) {
    for (const std::string& text : TextsOf(values[name])) {
      // Commands print by default only what goes nowhere else.
      if (values[name].defaulted() && IsStandardOutput(text)) continue;
      const bool is_written = taken.is_output || taken.kind == Taken::Kind::kFolder;
      if (is_written) {
        outputs.push_back({"--" + name, text});
      } else if (text != kStandardInput && taken.kind == Taken::Kind::kFile) {
        inputs.push_back({"--" + name, text});
      } else if (text != kStandardInput && taken.kind == Taken::Kind::kCluster) {
        inputs.push_back({"--" + name, FileOfCluster(text)});
      }
    }
  };
  for (const auto& option : syntax.options.options()) {
    const std::string& name = option->long_name();
    if (values.count(name) > 0) add(name, TakenBy(syntax, *option));
  }
  for (const std::string& name : syntax.positional)
    if (values.count(name) > 0) add(name, TakenBy(syntax, name));

  for (size_t i = 0; i < outputs.size(); ++i) {
    const GivenPath& output = outputs[i];
    const bool is_printed = IsStandardOutput(output.path);
    for (size_t j = 0; j < i; ++j) {
      const GivenPath& other = outputs[j];
      const bool are_one =
          is_printed ? IsStandardOutput(other.path) : AreOne(other.path, output.path);
      if (!are_one) continue;
      throw Error(fmt::format("{} and {}: both are {}; expected two places", other.option,
                              output.option, OutputName(output.path)));
    }
    for (const GivenPath& input : inputs) {
      if (is_printed || !IsFile(input.path) || !AreOne(input.path, output.path)) continue;
      throw Error(fmt::format("{}: found \"{}\", which is read; expected another file",
                              output.option, output.path));
    }
  }
}

}  // namespace rehearse

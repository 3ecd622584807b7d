#include "tools/dry_run.h"

#include <algorithm>
#include <cerrno>
#include <cstdlib>
#include <cstring>
#include <filesystem>
#include <fstream>
#include <map>
#include <sstream>
#include <vector>

#include <fmt/format.h>
#include <spawn.h>
#include <sys/wait.h>
#include <unistd.h>

#include "sim/base/error.h"
#include "sim/base/input_file.h"

extern char** environ;  // NOLINT(readability-redundant-declaration): not every libc declares it

namespace rehearse {
namespace {

namespace fs = std::filesystem;

constexpr const char* kLaunchers[] = {"torchrun", "srun",    "deepspeed",  "python", "python3",
                                      "mpirun",   "mpiexec", "accelerate", "sbatch"};
// Of the environment of what is started, what decides something.
constexpr const char* kVariables[] = {"NCCL_",  "NVTE_",  "CUDA_",  "WORLD_SIZE",
                                      "NNODES", "SLURM_", "TORCH_", "GPUS_PER_NODE"};

// Each call writes a file of its arguments and one of its environment, and its number behind those
// of the others. Scripts ask Python for numbers, too: that is answered.
constexpr const char* kStub = R"(#!/bin/sh
name=${0##*/}
if [ "$1" = -c ]; then
  PATH=$REHEARSE_DRY_RUN_PATH exec "$name" "$@"
fi
{ printf '%s\0' "$name" "$@"; } > "$REHEARSE_DRY_RUN/$$.arguments"
{ env -0 2>/dev/null || env | tr '\n' '\0'; } > "$REHEARSE_DRY_RUN/$$.environment"
echo "$$" >> "$REHEARSE_DRY_RUN/calls"
)";

// A folder that is gone when this is.
class StubFolder {
 public:
  StubFolder() {
    std::string name = (fs::temp_directory_path() / "rehearse-dry-run-XXXXXX").string();
    if (mkdtemp(name.data()) == nullptr)
      throw Error(fmt::format("{}: cannot be made: {}", name, std::strerror(errno)));
    path_ = name;
    const fs::path stub = path_ / kLaunchers[0];
    std::ofstream(stub) << kStub;
    fs::permissions(stub, fs::perms::owner_all);
    for (const char* launcher : kLaunchers)
      if (path_ / launcher != stub) fs::create_symlink(stub, path_ / launcher);
  }
  ~StubFolder() {
    std::error_code ignored;
    fs::remove_all(path_, ignored);
  }
  StubFolder(const StubFolder&) = delete;
  StubFolder& operator=(const StubFolder&) = delete;

  const fs::path& path() const { return path_; }

 private:
  fs::path path_;
};

std::vector<std::string> TextsIn(const fs::path& file) {
  std::ifstream stream(file, std::ios::binary);
  std::vector<std::string> texts;
  for (std::string text; std::getline(stream, text, '\0');) texts.push_back(text);
  return texts;
}

std::string InQuotes(const std::string& word) {
  std::string text = "'";
  for (const char c : word) text += c == '\'' ? "'\\''" : std::string(1, c);
  return text + "'";
}

bool IsNumber(const std::string& name) {
  return !name.empty() && name.find_first_not_of("0123456789") == std::string::npos;
}

void RunScript(const std::string& path, const RunSettings& settings, const fs::path& stubs) {
  std::map<std::string, std::string> variables;
  for (char** entry = environ; *entry != nullptr; ++entry) {
    const std::string text = *entry;
    variables[text.substr(0, text.find('='))] = text.substr(text.find('=') + 1);
  }
  std::map<int, std::string> given;
  for (const RunSetting& setting : settings) {
    constexpr size_t kMostDigits = 2;
    if (!IsNumber(setting.name)) {
      variables[setting.name] = setting.value;
    } else if (setting.name.size() <= kMostDigits) {
      given[std::stoi(setting.name)] = setting.value;
    }
  }
  variables["REHEARSE_DRY_RUN"] = stubs.string();
  variables["REHEARSE_DRY_RUN_PATH"] = variables["PATH"];
  variables["PATH"] = stubs.string() + ":" + variables["PATH"];
  std::vector<std::string> environment;
  for (const auto& [name, value] : variables)
    environment.push_back(fmt::format("{}={}", name, value));
  std::vector<std::string> words = {"bash", path};
  const int last = given.empty() ? 0 : given.rbegin()->first;
  for (int i = 1; i <= last; ++i) words.push_back(given[i]);
  const auto pointers = [](std::vector<std::string>& texts) {
    std::vector<char*> all;
    for (std::string& text : texts) all.push_back(text.data());
    all.push_back(nullptr);
    return all;
  };
  posix_spawn_file_actions_t actions;
  posix_spawn_file_actions_init(&actions);
  // What it prints is not the scenario.
  posix_spawn_file_actions_adddup2(&actions, STDERR_FILENO, STDOUT_FILENO);
  pid_t child = 0;
  const int fault = posix_spawnp(&child, "bash", &actions, nullptr, pointers(words).data(),
                                 pointers(environment).data());
  posix_spawn_file_actions_destroy(&actions);
  if (fault != 0) throw Error(fmt::format("bash: cannot be started: {}", std::strerror(fault)));
  int status = 0;
  while (waitpid(child, &status, 0) < 0 && errno == EINTR) continue;
}

// Its own lines for Slurm, which say how many ranks there are.
std::string LinesOfSlurm(const std::string& script) {
  std::istringstream lines(script);
  std::string result;
  for (std::string line; std::getline(lines, line);)
    if (line.starts_with("#SBATCH")) result += line + "\n";
  return result;
}

}  // namespace

std::string DryRunScript(const std::string& path, const RunSettings& settings) {
  if (path == kStandardInput) throw Error("--dry-run: expected the file of a script");
  const std::string script = ReadInputFile(path);
  const StubFolder stubs;
  RunScript(path, settings, stubs.path());
  std::string chosen;
  std::ifstream calls(stubs.path() / "calls");
  std::vector<std::string> command;
  for (std::string call; std::getline(calls, call);) {
    const std::vector<std::string> words = TextsIn(stubs.path() / (call + ".arguments"));
    const bool trains = std::any_of(words.begin(), words.end(), [](const std::string& word) {
      return word.find("--num-layers") != std::string::npos;
    });
    if (chosen.empty() || trains) {
      chosen = call;
      command = words;
    }
    if (trains) break;
  }
  if (command.empty()) {
    throw Error({path, 0, ""},
                fmt::format("when it was run, it started none of {}", fmt::join(kLaunchers, ", ")));
  }
  std::string text = "#!/bin/bash\n" + LinesOfSlurm(script);
  for (const std::string& entry : TextsIn(stubs.path() / (chosen + ".environment"))) {
    const size_t equals = entry.find('=');
    const bool counts = std::any_of(std::begin(kVariables), std::end(kVariables),
                                    [&](const char* name) { return entry.starts_with(name); });
    if (counts && equals != std::string::npos)
      text += fmt::format("export {}={}\n", entry.substr(0, equals),
                          InQuotes(entry.substr(equals + 1)));
  }
  for (size_t i = 0; i < command.size(); ++i)
    text += (i == 0 ? command[i] : " " + InQuotes(command[i]));
  return text + "\n";
}

}  // namespace rehearse

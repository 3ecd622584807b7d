#include "real/backends/host_activity.h"

#include <algorithm>
#include <charconv>
#include <chrono>
#include <cstring>
#include <filesystem>
#include <fstream>
#include <sstream>
#include <utility>

#include <fmt/format.h>
#include <nlohmann/json.hpp>
#include <unistd.h>

#include "sim/base/visible_text.h"

namespace rehearse {
namespace {

namespace fs = std::filesystem;

constexpr double kLeastCores = 0.05;  // of a program that is named
constexpr size_t kMostNamed = 3;

double TicksPerSecond() { return static_cast<double>(std::max(1L, sysconf(_SC_CLK_TCK))); }

int64_t SteadyNanoseconds() {
  return std::chrono::duration_cast<std::chrono::nanoseconds>(
             std::chrono::steady_clock::now().time_since_epoch())
      .count();
}

// "cpu  user nice system idle iowait irq softirq steal ...", then a line for each core.
void ReadTicks(const std::string& path, HostSnapshot* snapshot) {
  std::ifstream file(path);
  int32_t cores = 0;
  for (std::string line; std::getline(file, line) && line.starts_with("cpu");) {
    if (!line.starts_with("cpu ")) {
      ++cores;
      continue;
    }
    std::istringstream words(line.substr(4));
    int64_t ticks[8] = {};
    for (int64_t& one : ticks) words >> one;
    snapshot->busy = ticks[0] + ticks[1] + ticks[2] + ticks[5] + ticks[6];
    snapshot->stolen = ticks[7];
  }
  snapshot->cores = std::max(1, cores);
}

// "17 (a name) S ...": names may hold blanks and brackets, so that the last bracket counts. User
// and system time are the 14th and 15th word of the line, the beginning is the 22nd.
std::optional<HostSnapshot::Process> ReadProcess(const std::string& path) {
  std::ifstream file(path);
  std::string line;
  if (!std::getline(file, line)) return std::nullopt;
  const size_t open = line.find('(');
  const size_t close = line.rfind(')');
  if (open == std::string::npos || close == std::string::npos || close < open) return std::nullopt;
  HostSnapshot::Process process;
  process.name = line.substr(open + 1, close - open - 1);
  std::istringstream words(line.substr(close + 1));
  std::string word;
  for (int at = 3; words >> word; ++at) {
    int64_t number = 0;
    std::from_chars(word.data(), word.data() + word.size(), number);
    if (at == 14 || at == 15) process.ticks += number;
    if (at == 22) process.begun = number;
  }
  return process;
}

double ReadFrequency(const std::string& root) {
  double kilohertz = 0;
  std::ifstream(root + "/sys/devices/system/cpu/cpu0/cpufreq/scaling_cur_freq") >> kilohertz;
  if (kilohertz > 0) return kilohertz * 1e3;
  std::ifstream file(root + "/proc/cpuinfo");
  for (std::string line; std::getline(file, line);) {
    if (!line.starts_with("cpu MHz")) continue;
    double megahertz = 0;
    std::istringstream(line.substr(line.find(':') + 1)) >> megahertz;
    return megahertz * 1e6;
  }
  return 0;
}

}  // namespace

HostSnapshot SnapshotOfHost(const std::string& root) {
  HostSnapshot snapshot;
  snapshot.at = SteadyNanoseconds();
  ReadTicks(root + "/proc/stat", &snapshot);
  std::ifstream(root + "/proc/loadavg") >> snapshot.load;
  snapshot.frequency = ReadFrequency(root);
  std::error_code fault;
  for (fs::directory_iterator entry(root + "/proc", fault), end; !fault && entry != end;
       entry.increment(fault)) {
    const std::string name = entry->path().filename().string();
    int number = 0;
    const auto [stop, error] = std::from_chars(name.data(), name.data() + name.size(), number);
    if (error != std::errc() || stop != name.data() + name.size()) continue;
    if (auto process = ReadProcess(entry->path().string() + "/stat"))
      snapshot.processes.emplace(number, std::move(*process));
  }
  return snapshot;
}

HostActivity ActivityBetween(const HostSnapshot& from, const HostSnapshot& to, int self) {
  HostActivity activity;
  activity.wall = Seconds(static_cast<double>(to.at - from.at) * 1e-9);
  activity.load_before = from.load;
  activity.load_after = to.load;
  activity.frequency_before = from.frequency;
  activity.frequency_after = to.frequency;
  if (activity.wall <= Seconds(0)) return activity;
  const double ticks = TicksPerSecond() * activity.wall.value();  // of one core
  activity.stolen =
      std::clamp(static_cast<double>(to.stolen - from.stolen) / ticks / to.cores, 0.0, 1.0);
  const auto own = to.processes.find(self);
  double taken_by_us = 0;
  for (const auto& [number, process] : to.processes) {
    const auto before = from.processes.find(number);
    const bool is_same = before != from.processes.end() && before->second.begun == process.begun;
    const double cores =
        static_cast<double>(process.ticks - (is_same ? before->second.ticks : 0)) / ticks;
    if (own != to.processes.end() && process.name == own->second.name)
      taken_by_us += cores;
    else if (cores >= kLeastCores)
      activity.programs.push_back({process.name, number, cores});
  }
  activity.others = std::max(0.0, static_cast<double>(to.busy - from.busy) / ticks - taken_by_us);
  std::stable_sort(activity.programs.begin(), activity.programs.end(),
                   [](const OtherProgram& a, const OtherProgram& b) { return a.cores > b.cores; });
  if (activity.programs.size() > kMostNamed) activity.programs.resize(kMostNamed);
  return activity;
}

nlohmann::ordered_json ToJson(const HostActivity& activity) {
  nlohmann::ordered_json json = {{"seconds", activity.wall.value()},
                                 {"stolen_share", activity.stolen},
                                 {"cores_of_others", activity.others},
                                 {"load_average", {activity.load_before, activity.load_after}}};
  if (activity.frequency_before > 0)
    json["frequency_hertz"] = {activity.frequency_before, activity.frequency_after};
  json["programs"] = nlohmann::ordered_json::array();
  for (const OtherProgram& program : activity.programs) {
    json["programs"].push_back({{"name", VisibleText(program.name)},
                                {"process", program.process},
                                {"cores", program.cores}});
  }
  return json;
}

std::string WhoWasInTheWay(const HostActivity& activity) {
  std::string text;
  for (const OtherProgram& program : activity.programs) {
    text += fmt::format("{}{} (process {}) {}{:.1f}{}", text.empty() ? "" : ", ",
                        VisibleText(program.name), program.process, text.empty() ? "took " : "",
                        program.cores, text.empty() ? " cores" : "");
  }
  if (activity.stolen >= 0.005) {
    text += fmt::format("{}other machines took {:.0f} % of the cores", text.empty() ? "" : "; ",
                        100 * activity.stolen);
  }
  return text;
}

BytesPerSecond MeasureCopies() {
  constexpr size_t kBytes = size_t{64} << 20;
  constexpr int kTries = 4;
  std::vector<char> from(kBytes, 1);
  std::vector<char> to(kBytes, 2);
  int64_t best = 0;
  for (int i = 0; i < kTries; ++i) {
    const int64_t begin = SteadyNanoseconds();
    std::memcpy(to.data(), from.data(), kBytes);
    from[static_cast<size_t>(i)] = to[kBytes - 1];  // so that each copy is another
    const int64_t took = SteadyNanoseconds() - begin;
    if (i == 0 || took < best) best = took;
  }
  return Bytes(static_cast<double>(kBytes)) /
         Seconds(static_cast<double>(std::max<int64_t>(best, 1)) * 1e-9);
}

}  // namespace rehearse

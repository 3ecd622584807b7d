#include "sim/base/machine_memory.h"

#include <algorithm>
#include <charconv>
#include <fstream>
#include <limits>
#include <sstream>

#include <sys/resource.h>
#include <unistd.h>

namespace rehearse {
namespace {

constexpr uint64_t kNoLimit = std::numeric_limits<uint64_t>::max();

std::optional<std::string> Content(const std::string& path) {
  std::ifstream file(path);
  if (!file) return std::nullopt;
  std::ostringstream text;
  text << file.rdbuf();
  return text.str();
}

// The number that a file begins with; nothing for "max".
std::optional<uint64_t> NumberAt(std::string_view text) {
  while (!text.empty() && (text.front() == ' ' || text.front() == '\t')) text.remove_prefix(1);
  uint64_t number = 0;
  const auto [stop, fault] = std::from_chars(text.data(), text.data() + text.size(), number);
  if (fault != std::errc()) return std::nullopt;
  return number;
}
std::optional<uint64_t> NumberIn(const std::string& path) {
  const std::optional<std::string> text = Content(path);
  return text ? NumberAt(*text) : std::nullopt;
}
// What follows a word at the beginning of a line.
std::optional<uint64_t> NumberAfter(const std::string& path, const std::string& word) {
  const std::optional<std::string> text = Content(path);
  if (!text) return std::nullopt;
  std::istringstream lines(*text);
  for (std::string line; std::getline(lines, line);)
    if (line.rfind(word, 0) == 0) return NumberAt(std::string_view(line).substr(word.size()));
  return std::nullopt;
}

uint64_t Left(uint64_t limit, uint64_t used) { return limit > used ? limit - used : 0; }

// What a group leaves. Pages of files that nobody uses are given back when memory is short.
uint64_t LeftByGroup(const std::string& folder, const char* limit, const char* used,
                     const char* idle_files) {
  const std::optional<uint64_t> most = NumberIn(folder + "/" + limit);
  const std::optional<uint64_t> taken = NumberIn(folder + "/" + used);
  if (!most || !taken) return kNoLimit;
  const uint64_t idle = NumberAfter(folder + "/memory.stat", idle_files).value_or(0);
  return Left(*most, Left(*taken, idle));
}

// A group and those that it is in: each may have a limit.
uint64_t LeftByGroups(const std::string& mount, std::string group, const char* limit,
                      const char* used, const char* idle_files) {
  uint64_t least = kNoLimit;
  for (;;) {
    least = std::min(least, LeftByGroup(mount + group, limit, used, idle_files));
    const size_t slash = group.rfind('/');
    if (group.empty() || slash == std::string::npos) return least;
    group.erase(slash);
  }
}

uint64_t LeftByControlGroups(const std::string& root) {
  const std::optional<std::string> groups = Content(root + "/proc/self/cgroup");
  if (!groups) return kNoLimit;
  uint64_t least = kNoLimit;
  std::istringstream lines(*groups);
  for (std::string line; std::getline(lines, line);) {  // "0::/user.slice" or "5:memory:/job"
    const size_t first = line.find(':');
    const size_t second = first == std::string::npos ? first : line.find(':', first + 1);
    if (second == std::string::npos) continue;
    const std::string kinds = line.substr(first + 1, second - first - 1);
    const std::string group = line.substr(second + 1);
    if (kinds.empty())
      least = std::min(least, LeftByGroups(root + "/sys/fs/cgroup", group, "memory.max",
                                           "memory.current", "inactive_file "));
    if (kinds == "memory")
      least = std::min(least,
                       LeftByGroups(root + "/sys/fs/cgroup/memory", group, "memory.limit_in_bytes",
                                    "memory.usage_in_bytes", "total_inactive_file "));
  }
  return least;
}

uint64_t LeftByLimits(const std::string& root) {
  const std::optional<std::string> pages = Content(root + "/proc/self/statm");
  const uint64_t size = pages ? NumberAt(*pages).value_or(0) : 0;
  const auto page = static_cast<uint64_t>(std::max(sysconf(_SC_PAGESIZE), 1L));
  uint64_t least = kNoLimit;
  for (const auto kind : {RLIMIT_AS, RLIMIT_DATA}) {
    struct rlimit limit {};
    if (getrlimit(kind, &limit) == 0 && limit.rlim_cur != RLIM_INFINITY)
      least = std::min(least, Left(limit.rlim_cur, size * page));
  }
  return least;
}

}  // namespace

std::optional<uint64_t> FreeMemoryBelow(const std::string& root) {
  constexpr uint64_t kKilo = 1024;
  const std::optional<uint64_t> available = NumberAfter(root + "/proc/meminfo", "MemAvailable:");
  const uint64_t least = std::min(
      {available ? *available * kKilo : kNoLimit, LeftByControlGroups(root), LeftByLimits(root)});
  if (least == kNoLimit) return std::nullopt;
  return least;
}

std::optional<uint64_t> FreeMemory() { return FreeMemoryBelow(""); }

}  // namespace rehearse

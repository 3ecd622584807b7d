#include "real/backends/host.h"

#include <algorithm>
#include <array>
#include <cstdlib>
#include <ctime>
#include <fstream>
#include <sstream>
#include <thread>

#include <fmt/format.h>
#include <nlohmann/json.hpp>
#include <sched.h>
#include <sys/resource.h>
#include <sys/utsname.h>
#include <unistd.h>

#include "real/transports/launcher.h"

namespace rehearse {
namespace {

using Json = nlohmann::ordered_json;

std::string FirstLine(const std::string& path) {
  std::ifstream file(path);
  std::string line;
  std::getline(file, line);
  return line;
}

// The value of "key : value" or "key: value kB".
std::string ValueOf(const std::string& path, const std::string& key) {
  std::ifstream file(path);
  for (std::string line; std::getline(file, line);) {
    if (line.compare(0, key.size(), key) != 0) continue;
    const size_t colon = line.find(':');
    if (colon == std::string::npos) continue;
    const size_t value = line.find_first_not_of(" \t", colon + 1);
    return value == std::string::npos ? "" : line.substr(value);
  }
  return {};
}

std::string Caches() {
  std::string text;
  for (int i = 0;; ++i) {
    const std::string folder = fmt::format("/sys/devices/system/cpu/cpu0/cache/index{}/", i);
    const std::string level = FirstLine(folder + "level");
    if (level.empty()) return text;
    const std::string type = FirstLine(folder + "type");
    if (type == "Instruction") continue;
    text += fmt::format("{}L{}{} {}", text.empty() ? "" : ", ", level, type == "Data" ? "d" : "",
                        FirstLine(folder + "size"));
  }
}

uint32_t CoresOfProcess(pid_t process = 0) {
  cpu_set_t set;
  CPU_ZERO(&set);
  if (sched_getaffinity(process, sizeof(set), &set) == 0)
    return static_cast<uint32_t>(std::max(1, CPU_COUNT(&set)));
  return std::max(1u, std::thread::hardware_concurrency());
}

// mpirun binds each rank to its own core: the job has those that its launcher may use.
uint32_t CoresOfJob() {
  const uint32_t own = CoresOfProcess();
  return DetectLaunch() ? std::max(own, CoresOfProcess(getppid())) : own;
}

int64_t Nanoseconds(clockid_t clock) {
  timespec time{};
  clock_gettime(clock, &time);
  return int64_t{time.tv_sec} * 1'000'000'000 + time.tv_nsec;
}

// The ticks are the eighth number of the first line of /proc/stat.
int64_t StolenTicks() {
  std::istringstream line(FirstLine("/proc/stat"));
  std::string word;
  line >> word;
  int64_t ticks = 0;
  for (int column = 1; column <= 8; ++column) line >> ticks;
  return ticks;
}

const char* PolicyName(int policy) {
  switch (policy) {
    case SCHED_OTHER:
      return "other";
    case SCHED_FIFO:
      return "fifo";
    case SCHED_RR:
      return "rr";
    case SCHED_BATCH:
      return "batch";
    default:
      return "another";
  }
}

}  // namespace

HostMachine ThisHost() {
  HostMachine host;
  std::array<char, 256> name{};
  if (gethostname(name.data(), name.size() - 1) == 0) host.name = name.data();
  host.processor = ValueOf("/proc/cpuinfo", "model name");
  if (host.processor.empty()) host.processor = "unknown processor";
  host.cores = CoresOfJob();
  host.memory = Bytes(static_cast<double>(sysconf(_SC_PHYS_PAGES)) *
                      static_cast<double>(sysconf(_SC_PAGE_SIZE)));
  host.caches = Caches();
  utsname system{};
  if (uname(&system) == 0) host.kernel = system.release;
  return host;
}

std::optional<Bytes> AvailableMemory() {
  std::ifstream file("/proc/meminfo");
  std::string key;
  double kibibytes = 0;
  for (std::string line; std::getline(file, line);) {
    std::istringstream words(line);
    if (words >> key >> kibibytes && key == "MemAvailable:") return Bytes(kibibytes * 1024);
  }
  return std::nullopt;
}

Json ToJson(const HostMachine& host) {
  return {{"name", host.name},     {"processor", host.processor},
          {"cores", host.cores},   {"memory_bytes", host.memory.value()},
          {"caches", host.caches}, {"kernel", host.kernel}};
}

Json ThisEnvironment() {
  Json json;
  for (const char* prefix : {"OPENBLAS_", "OMP_", "OMPI_", "NCCL_", "SLURM_", "CUDA_"}) {
    for (char** entry = environ; *entry != nullptr; ++entry) {
      const std::string text = *entry;
      const size_t equals = text.find('=');
      if (text.rfind(prefix, 0) == 0 && equals != std::string::npos)
        json["variables"][text.substr(0, equals)] = text.substr(equals + 1);
    }
  }
  json["scheduling"] = PolicyName(sched_getscheduler(0));
  json["niceness"] = getpriority(PRIO_PROCESS, 0);
  json["cores_allowed"] = CoresOfProcess();
  json["load_average"] = FirstLine("/proc/loadavg");
  return json;
}

HostUsage UsageNow() {
  HostUsage usage;
  usage.wall = Nanoseconds(CLOCK_MONOTONIC);
  usage.processor = Nanoseconds(CLOCK_THREAD_CPUTIME_ID);
  int64_t ran = 0;
  std::ifstream("/proc/thread-self/schedstat") >> ran >> usage.queued;
  usage.stolen = StolenTicks();
  rusage resources{};
  if (getrusage(RUSAGE_THREAD, &resources) == 0) usage.interruptions = resources.ru_nivcsw;
  return usage;
}

HostShares SharesBetween(const HostUsage& from, const HostUsage& to) {
  HostShares shares;
  const auto wall = static_cast<double>(to.wall - from.wall);
  if (wall <= 0) return shares;
  shares.wall = Seconds(wall * 1e-9);
  shares.processor = static_cast<double>(to.processor - from.processor) / wall;
  shares.queued = static_cast<double>(to.queued - from.queued) / wall;
  shares.was_stolen = to.stolen > from.stolen;
  const double ticks = static_cast<double>(sysconf(_SC_CLK_TCK)) *
                       static_cast<double>(std::max(1L, sysconf(_SC_NPROCESSORS_ONLN)));
  if (shares.was_stolen)
    shares.stolen =
        std::min(1.0, static_cast<double>(to.stolen - from.stolen) / ticks / shares.wall.value());
  shares.interruptions = to.interruptions - from.interruptions;
  return shares;
}

namespace {

// What ranks used of the cores' time.
struct CoreUse {
  double used = 0;
  double queued = 0;
};
CoreUse UseOfCores(std::span<const HostShares> ranks, uint32_t cores) {
  Seconds used;
  Seconds queued;
  Seconds longest;
  for (const HostShares& own : ranks) {
    used += own.processor * own.wall;
    queued += own.queued * own.wall;
    longest = std::max(longest, own.wall);
  }
  if (longest == Seconds(0)) return {};
  return {used / (cores * longest), queued / (cores * longest)};
}

}  // namespace

bool WereLeftAlone(std::span<const HostShares> ranks, uint32_t cores) {
  if (ranks.size() <= cores) {
    return std::all_of(ranks.begin(), ranks.end(),
                       [](const HostShares& own) { return own.Kept() >= kLeastKept; });
  }
  const bool was_stolen =
      std::any_of(ranks.begin(), ranks.end(), [](const HostShares& own) { return own.was_stolen; });
  return !was_stolen && UseOfCores(ranks, cores).used >= kLeastUsed;
}

double LostShare(std::span<const HostShares> ranks, uint32_t cores) {
  double queued = 0;
  double stolen = 0;
  for (const HostShares& own : ranks) {
    queued = std::max(queued, own.queued);
    stolen = std::max(stolen, own.stolen);
  }
  if (ranks.size() > cores) {
    const CoreUse use = UseOfCores(ranks, cores);
    queued = std::clamp(1 - use.used, 0.0, use.queued);
  }
  return std::min(1.0, queued + stolen);
}

}  // namespace rehearse

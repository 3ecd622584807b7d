// Fuzzing where there is no libFuzzer: every seed, then seeded changes of them
// (tests/fuzz/mutator.h).
//
//   test_fuzz NAME [--runs N] [--seconds S] [--seed N] [--findings FOLDER] [--corpus FOLDER]
//   test_fuzz NAME FILE...            reads these, each once, in this process: for a debugger
//   test_fuzz NAME --write FOLDER     seeds as FOLDER/corpus/*, the dictionary as FOLDER/words
//   test_fuzz --list
//
// A child process reads; this one watches it and keeps the input that ended it. Exits with 0 if
// nothing was found, 1 with a finding, 2 if it was asked wrongly.
#include <algorithm>
#include <atomic>
#include <chrono>
#include <csignal>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <ctime>
#include <filesystem>
#include <fstream>
#include <iterator>
#include <new>
#include <stdexcept>

#include <fcntl.h>
#include <fmt/format.h>
#include <sys/mman.h>
#include <sys/resource.h>
#include <sys/wait.h>
#include <unistd.h>

#include "sim/base/fnv.h"
#include "tests/fuzz/corpus.h"
#include "tests/fuzz/fuzz_target.h"
#include "tests/fuzz/mutator.h"

namespace rehearse {
namespace {

namespace fs = std::filesystem;
using Clock = std::chrono::steady_clock;

struct Options {
  uint64_t runs = UINT64_MAX;
  double seconds = 1e18;
  uint64_t seed = 1;
  std::string findings = "build/fuzz/findings";
  std::string corpus;  // in addition to the seeds
  std::string write;
  std::vector<std::string> files;
};

// What the child reports, and its parent can read even when the child is gone.
struct Shared {
  std::atomic<uint64_t> runs{0};
  std::atomic<bool> is_reading{false};
  double slowest = 0;  // seconds
  size_t slowest_size = 0;
  size_t memory = 0;  // bytes, at most
  char fault[500] = {};
  size_t size = 0;
  char input[2 * kLongestInput] = {};
};

double ProcessorSeconds() {
  timespec now{};
  clock_gettime(CLOCK_PROCESS_CPUTIME_ID, &now);
  return static_cast<double>(now.tv_sec) + 1e-9 * static_cast<double>(now.tv_nsec);
}

size_t PeakMemory() {
  rusage usage{};
  getrusage(RUSAGE_SELF, &usage);
  return static_cast<size_t>(usage.ru_maxrss) << 10;
}

[[noreturn]] void EndWith(Shared* shared, const std::string& fault) {
  const size_t length = fault.copy(shared->fault, sizeof shared->fault - 1);
  shared->fault[length] = '\0';
  _exit(1);
}

// Reads one input and measures what it took.
double Try(const FuzzTarget& target, const std::string& input, size_t memory_before,
           Shared* shared) {
  shared->size = std::min(input.size(), sizeof shared->input);
  std::memcpy(shared->input, input.data(), shared->size);
  shared->is_reading = true;
  const double before = ProcessorSeconds();
  try {
    RunFuzzTarget(target, input);
  } catch (const std::exception& error) {
    EndWith(shared, error.what());
  } catch (...) {
    EndWith(shared, "something was thrown that is no exception");
  }
  const double took = ProcessorSeconds() - before;
  shared->is_reading = false;
  ++shared->runs;
  if (took > shared->slowest) {
    shared->slowest = took;
    shared->slowest_size = input.size();
  }
  shared->memory = PeakMemory();
  if (took > kLongestSeconds)
    EndWith(shared,
            fmt::format("took {:.1f} s, at most {:.0f} s is allowed", took, kLongestSeconds));
  if (shared->memory > memory_before + kMostMemory) {
    EndWith(shared, fmt::format("memory rose to {} MiB, at most {} MiB more than before is allowed",
                                shared->memory >> 20, kMostMemory >> 20));
  }
  return took;
}

std::string Contents(const fs::path& path) {
  std::ifstream file(path, std::ios::binary);
  return {std::istreambuf_iterator<char>(file), {}};
}

// ---- The child ----------------------------------------------------------------------------------

[[noreturn]] void Fuzz(const FuzzTarget& target, const Options& options,
                       const std::vector<std::string>& seeds, const std::vector<std::string>& words,
                       Shared* shared) {
  // Nobody waits at a terminal, and a runaway must end before it brings the machine down.
  dup2(open("/dev/null", O_RDONLY), STDIN_FILENO);
  constexpr rlim_t kMostData = rlim_t{4} << 30;
  const rlimit limit{kMostData, kMostData};
  if (!kIsSanitized) setrlimit(RLIMIT_DATA, &limit);
  const auto end =
      Clock::now() + std::chrono::duration_cast<Clock::duration>(
                         std::chrono::duration<double>(std::min(options.seconds, 1e8)));
  const auto is_over = [&] { return shared->runs >= options.runs || Clock::now() >= end; };
  const size_t before = PeakMemory();
  std::vector<double> times;
  for (const std::string& seed : seeds) times.push_back(Try(target, seed, before, shared));

  Mutator mutator(options.seed, seeds, words);
  while (!is_over()) {
    // The quicker of two, so that a large input does not take all the time.
    const size_t a = mutator.Below(seeds.size());
    const size_t b = mutator.Below(seeds.size());
    const std::string& seed = seeds[times[a] <= times[b] ? a : b];
    Try(target, mutator.Mutate(seed, target.language), before, shared);
  }
  _exit(0);
}

// ---- The parent ---------------------------------------------------------------------------------

// Its wait status. A child that reads one input for much longer than it may is killed.
int Watch(pid_t child, const Shared& shared) {
  constexpr double kPatience = 20 * kLongestSeconds;  // of the wall: the machine may be busy
  uint64_t runs = 0;
  Clock::time_point since = Clock::now();
  int status = 0;
  while (waitpid(child, &status, WNOHANG) == 0) {
    usleep(20'000);
    const uint64_t now = shared.runs;
    if (now != runs || !shared.is_reading) {
      runs = now;
      since = Clock::now();
    } else if (std::chrono::duration<double>(Clock::now() - since).count() > kPatience) {
      kill(child, SIGKILL);
      waitpid(child, &status, 0);
      break;
    }
  }
  return status;
}

std::string Keep(const FuzzTarget& target, const Options& options, const Shared& shared) {
  const std::string_view input(shared.input, shared.size);
  Fnv1a hash;
  hash.Add(input);
  fs::create_directories(options.findings);
  const std::string path = fmt::format("{}/{}-{:016x}", options.findings, target.name, hash.hash());
  std::ofstream(path, std::ios::binary).write(input.data(), static_cast<long>(input.size()));
  return path;
}

int FuzzInAChild(const FuzzTarget& target, const Options& options) {
  std::vector<std::string> seeds = target.seeds();
  if (!options.corpus.empty()) {
    for (const auto& entry : fs::directory_iterator(options.corpus))
      seeds.push_back(Contents(entry.path()));
  }
  if (seeds.empty()) throw std::runtime_error(target.name + " has no seeds");
  const std::vector<std::string> words = target.words();
  void* const memory =
      mmap(nullptr, sizeof(Shared), PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
  if (memory == MAP_FAILED) throw std::runtime_error("no memory for the child's input");
  Shared* const shared = new (memory) Shared;
  FuzzFolder();  // this process removes it
  const auto begin = Clock::now();
  const pid_t child = fork();
  if (child < 0) throw std::runtime_error("cannot fork");
  if (child == 0) Fuzz(target, options, seeds, words, shared);
  const int status = Watch(child, *shared);
  const double seconds = std::chrono::duration<double>(Clock::now() - begin).count();

  std::fputs(fmt::format("{:<16} {:>9} runs of {} seeds in {:.1f} s, slowest {:.3f} s ({} bytes), "
                         "memory at most {} MiB\n",
                         target.name, shared->runs.load(), seeds.size(), seconds, shared->slowest,
                         shared->slowest_size, shared->memory >> 20)
                 .c_str(),
             stdout);
  if (WIFEXITED(status) && WEXITSTATUS(status) == 0) return 0;
  std::string what = shared->fault;
  if (what.empty()) {
    what = WIFSIGNALED(status) && WTERMSIG(status) == SIGKILL && shared->is_reading
               ? "it did not come to an end"
           : WIFSIGNALED(status) ? fmt::format("it was ended by signal {}", WTERMSIG(status))
                                 : "it ended, see above";
  }
  std::fputs(
      fmt::format("{}: {}\n  the input: {}\n", target.name, what, Keep(target, options, *shared))
          .c_str(),
      stdout);
  return 1;
}

// ---- What else is asked -------------------------------------------------------------------------

int ReadFiles(const FuzzTarget& target, const std::vector<std::string>& files) {
  for (const std::string& file : files) {
    const double before = ProcessorSeconds();
    RunFuzzTarget(target, Contents(file));
    std::fputs(fmt::format("{}: {:.3f} s, memory at most {} MiB\n", file,
                           ProcessorSeconds() - before, PeakMemory() >> 20)
                   .c_str(),
               stdout);
  }
  return 0;
}

// As libFuzzer's dictionaries have it: "word" with \\, \" and \xAB.
std::string Quoted(std::string_view word) {
  std::string text = "\"";
  for (const char c : word) {
    const auto byte = static_cast<unsigned char>(c);
    if (c == '"' || c == '\\')
      text += std::string("\\") + c;
    else
      text += byte < 0x20 || byte > 0x7e ? fmt::format("\\x{:02X}", byte) : std::string(1, c);
  }
  return text + "\"\n";
}

int WriteCorpus(const FuzzTarget& target, const std::string& folder) {
  const fs::path corpus = fs::path(folder) / "corpus";
  fs::create_directories(corpus);
  size_t count = 0;
  for (const std::string& seed : target.seeds()) {
    std::ofstream(corpus / fmt::format("seed-{}", count++), std::ios::binary)
        .write(seed.data(), static_cast<long>(seed.size()));
  }
  constexpr size_t kLongestWord = 100;  // libFuzzer takes short ones only
  std::ofstream words(fs::path(folder) / "words");
  for (const std::string& word : target.words()) {
    if (!word.empty() && word.size() <= kLongestWord) words << Quoted(word);
  }
  return 0;
}

int Main(const std::vector<std::string>& arguments) {
  if (arguments.size() == 1 && arguments[0] == "--list") {
    for (const FuzzTarget& target : FuzzTargets()) std::puts(target.name.c_str());
    return 0;
  }
  const FuzzTarget* const target = arguments.empty() ? nullptr : FindFuzzTarget(arguments[0]);
  if (target == nullptr) throw std::runtime_error("expected the name of a target; see --list");
  Options options;
  for (size_t i = 1; i < arguments.size(); ++i) {
    const std::string& name = arguments[i];
    if (!name.starts_with("--")) {
      options.files.push_back(name);
      continue;
    }
    if (i + 1 == arguments.size()) throw std::runtime_error(name + ": expected a value");
    const std::string& value = arguments[++i];
    if (name == "--runs") {
      options.runs = std::stoull(value);
    } else if (name == "--seconds") {
      options.seconds = std::stod(value);
    } else if (name == "--seed") {
      options.seed = std::stoull(value);
    } else if (name == "--findings") {
      options.findings = value;
    } else if (name == "--corpus") {
      options.corpus = value;
    } else if (name == "--write") {
      options.write = value;
    } else {
      throw std::runtime_error("unknown option " + name);
    }
  }
  if (!options.write.empty()) return WriteCorpus(*target, options.write);
  return options.files.empty() ? FuzzInAChild(*target, options) : ReadFiles(*target, options.files);
}

}  // namespace
}  // namespace rehearse

int main(int count, char** values) {
  try {
    return rehearse::Main({values + 1, values + count});
  } catch (const std::exception& error) {
    std::fputs(fmt::format("test_fuzz: {}\n", error.what()).c_str(), stderr);
    return 2;
  }
}

// Rehearse as a library: another program reads, changes, simulates, plans and searches scenarios.
//
//   #include <rehearse/rehearse.h>
//
//   const auto scenario = rehearse::Scenario::FromFile("scenarios/axonn-gpt20b-perlmutter.json");
//   const rehearse::Simulation run = rehearse::Simulate(scenario.With({"cluster.nodes=8"}));
//   std::cout << run.step_seconds() << "\n";
//
// Files and keys are those of the commands (`rehearse schema scenario`), and so are results:
// Simulate() returns what `rehearse run` prints for a scenario, with the same timeline hash.
//
// Self-contained: C++17 and the standard library. Everything is in rehearse::v1. A change that
// breaks old programs goes into rehearse::v2 beside it, and the shared library gets another major
// version (CHANGELOG.md). Objects are values: copies are cheap, they may be used from several
// threads, and functions may be called at the same time. Times are integer picoseconds in spans and
// seconds elsewhere; bytes are bytes.
//
// Functions throw Error for the user's mistakes and Stopped when asked to stop; std::logic_error is
// a fault of Rehearse itself.
#pragma once

#include <cstddef>
#include <cstdint>
#include <functional>
#include <memory>
#include <stdexcept>
#include <string>
#include <string_view>
#include <vector>

#define REHEARSE_API __attribute__((visibility("default")))

namespace rehearse::v1 {

// "0.1.0", and the commit that was built.
REHEARSE_API std::string LibraryVersion();
REHEARSE_API std::string LibraryCommit();

// The user's mistake. what() is one line: the place, what was found and what was expected.
class REHEARSE_API Error : public std::runtime_error {
 public:
  Error(const std::string& what, std::string file, int line, std::string pointer);
  Error(const Error&) noexcept;
  Error& operator=(const Error&) = delete;
  ~Error() override;

  const std::string& file() const { return file_; }  // "": no file
  int line() const { return line_; }                 // from 1; 0: not known
  // RFC 6901's JSON pointer, such as "/strategy/row"; "" is the whole document.
  const std::string& pointer() const { return pointer_; }

 private:
  std::string file_;
  int line_;
  std::string pointer_;
};

// Thrown when Progress has stopped the work.
class REHEARSE_API Stopped : public std::runtime_error {
 public:
  explicit Stopped(const std::string& what);
  Stopped(const Stopped&) noexcept;
  Stopped& operator=(const Stopped&) = delete;
  ~Stopped() override;
};

// Called now and then during work, by any thread, one at a time: what is being done ("simulating"),
// and the fraction that is done, or a negative number if it is not known. Returning false stops the
// work.
using Progress = std::function<bool(std::string_view what, double fraction)>;

struct RunOptions {
  unsigned threads = 0;  // 0: as many as the machine has cores
  bool fold = true;      // false: ranks that behave the same are still simulated one by one
  Progress progress;     // empty: no calls
};

// A scenario, as a file or text says it; or a schedule on a cluster.
class REHEARSE_API Scenario {
 public:
  // Mistakes in it are reported when it is first used; a file that is not JSON, at once.
  static Scenario FromFile(const std::string& path);
  // `name` stands for the file in messages; paths in the text are relative to it.
  static Scenario FromText(std::string_view json, const std::string& name = "scenario");
  // A schedule (`rehearse plan`, Plan()) on a cluster: "perlmutter:nodes=4", or a file.
  static Scenario FromSchedule(std::string_view json, const std::string& cluster,
                               const std::string& name = "schedule");

  // The same with changes, each as --set takes them: "strategy.row=4".
  Scenario With(const std::vector<std::string>& changes) const;

  std::string source() const;   // the file, or the text's name
  std::string cluster() const;  // of a schedule; "" for a scenario
  std::string name() const;
  uint32_t ranks() const;    // of all jobs
  std::string Json() const;  // as read, with all changes

  struct State;
  const State& state() const { return *state_; }

 private:
  explicit Scenario(std::shared_ptr<const State> state) : state_(std::move(state)) {}
  std::shared_ptr<const State> state_;
};

// What one op of a rank did. For a collective, ready..begin is waiting for other ranks, begin..end
// the transfer.
struct Span {
  uint32_t rank = 0;
  uint32_t op = 0;  // in Simulation::ops()
  int32_t micro_batch = 0;
  int32_t stream = 0;  // of the rank: a stream runs its ops in order
  int64_t ready = 0;   // picoseconds since the step began
  int64_t begin = 0;
  int64_t end = 0;
};

struct Op {
  std::string name;    // "qkv"
  std::string kind;    // "gemm", "attention", "memory", "all-reduce", ..., "send", "receive"
  std::string axis;    // the communicator's name; "" for compute
  std::string phase;   // "forward", "backward", ...
  int32_t layer = -1;  // -1: of none
};

struct Link {
  std::string name;
  std::string kind;
  double bytes = 0;        // that it carried
  double capacity = 0;     // bytes per second
  double utilization = 0;  // bytes / (capacity · step)
  uint32_t count = 1;      // links that did the same, including this one
};

// One simulated step.
class REHEARSE_API Simulation {
 public:
  double step_seconds() const;
  const std::string& hash() const;  // of the timeline: the same on any machine
  // "rehearse.result.v1", as `rehearse run --format json` writes it; for jobs "rehearse.jobs.v1".
  const std::string& Json() const;
  std::string Text() const;  // what `rehearse run` prints

  // Sorted by rank, then op. Of ranks that behave the same, one is simulated: representative_of()
  // says whose spans stand for a rank's. If RunOptions::fold is false, all ranks have their own.
  const std::vector<Span>& spans() const;
  const std::vector<Op>& ops() const;
  const std::vector<Link>& links() const;
  uint32_t ranks() const;
  uint32_t representative_of(uint32_t rank) const;

  struct State;

 private:
  friend REHEARSE_API Simulation Simulate(const Scenario& scenario, const RunOptions& options);
  explicit Simulation(std::shared_ptr<const State> state) : state_(std::move(state)) {}
  std::shared_ptr<const State> state_;
};

REHEARSE_API Simulation Simulate(const Scenario& scenario, const RunOptions& options = {});

// The schedule that every rank follows, as in a schedule file ("rehearse.schedule.v1").
REHEARSE_API std::string Plan(const Scenario& scenario);

// Columns of equal length, each of one kind.
struct Column {
  enum class Kind : uint8_t { kNumber, kText, kTruth };
  std::string name;
  Kind kind = Kind::kNumber;
  std::vector<double> numbers;     // NaN: nothing
  std::vector<std::string> texts;  // "": nothing
  std::vector<uint8_t> truths;     // 0 or 1; 0: nothing
};

struct Table {
  std::vector<Column> columns;
  size_t rows = 0;

  // Null if there is none with that name.
  const Column* Find(std::string_view name) const {
    for (const Column& column : columns)
      if (column.name == name) return &column;
    return nullptr;
  }
};

// The results of a study or a search, point by point.
class REHEARSE_API Points {
 public:
  // "rehearse.study.v1" or "rehearse.search.v1".
  const std::string& Json() const;
  std::string Text() const;
  // As --format csv writes them; for a search, the best first.
  const Table& table() const;

  struct State;

 private:
  friend REHEARSE_API Points Sweep(const Scenario& study, const RunOptions& options);
  friend REHEARSE_API Points Search(const Scenario& scenario, const RunOptions& options);
  explicit Points(std::shared_ptr<const State> state) : state_(std::move(state)) {}
  std::shared_ptr<const State> state_;
};

// All points of a study: `study` is a study's file or text; its With() changes the study itself.
REHEARSE_API Points Sweep(const Scenario& study, const RunOptions& options = {});

// The best configurations of a scenario, among those that its "search" section describes.
REHEARSE_API Points Search(const Scenario& scenario, const RunOptions& options = {});

}  // namespace rehearse::v1

#ifndef REHEARSE_INSIDE  // in Rehearse itself these names mean something else
namespace rehearse {
using namespace v1;  // NOLINT(google-build-using-namespace): rehearse::Scenario is today's version
}
#endif

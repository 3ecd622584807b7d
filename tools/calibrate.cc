// rehearse calibrate: what this machine's kernels and collectives take.
#include "real/calibrate.h"

#include <algorithm>
#include <chrono>
#include <cstdio>
#include <ctime>

#include <fmt/chrono.h>
#include <fmt/format.h>
#include <unistd.h>

#include "real/control.h"
#include "real/kernels.h"
#include "real/launcher.h"
#include "real/probe_schedule.h"
#include "real/transport_mpi.h"
#include "real/transport_threads.h"
#include "scenarios/random_step.h"
#include "sim/error.h"
#include "sim/output_file.h"
#include "sim/schedule_check.h"
#include "tools/command.h"
#include "tools/trial_options.h"
#include "workloads/planner.h"

namespace rehearse {
namespace {

namespace po = boost::program_options;

constexpr uint64_t kSeed = 1;
constexpr Bytes kLargestStep(4 << 20);
constexpr size_t kProductShapes = 40;
constexpr Flops kLargestProduct(2e8);
constexpr uint32_t kNetworks = 12;
constexpr Flops kLeastWork(2e7);
constexpr Flops kMostWork(2e9);

CommandSyntax Syntax() {
  CommandSyntax syntax;
  syntax.usage = "rehearse calibrate [options]";
  syntax.explanation =
      "Measures what kernels and collectives take on this machine, in the middle of training "
      "steps,\n"
      "and writes it to a file that scenarios use:\n"
      "  \"cluster\": {\"preset\": \"local-cpu\", \"ranks\": 2, \"calibration\": "
      "\"calibration.json\"}\n"
      "Steps that other programs disturbed are rejected and counted. Ranks are threads of this\n"
      "process, or processes when started by mpirun. Examples:\n"
      "  rehearse calibrate\n"
      "  rehearse calibrate --for scenarios/mine.json --ranks 2,4 -o mine.json\n"
      "  mpirun -n 2 rehearse calibrate -o mpi.json\n";
  auto add = syntax.options.add_options();
  add("backend", po::value<std::string>()->default_value("cpu")->value_name("cpu"),
      "what is measured");
  add("for", po::value<std::vector<std::string>>()->multitoken()->value_name("SCENARIO..."),
      "also measure exactly what these need");
  add("ranks", po::value<std::string>()->value_name("N,..."),
      "numbers of ranks to measure collectives among; by default a rank a core and twice as many");
  add("kept", po::value<std::string>()->default_value("15")->value_name("N"),
      "undisturbed steps wanted of each schedule");
  add("patience", po::value<std::string>()->default_value("1")->value_name("SECONDS"),
      "how long to wait for them, each schedule");
  add("output,o", po::value<std::string>()->default_value("calibration.json")->value_name("FILE"),
      "where to write it");
  return syntax;
}

std::string Now() { return fmt::format("{:%Y-%m-%dT%H:%M:%SZ}", fmt::gmtime(std::time(nullptr))); }

void ShowProgress(const std::string& line) {
  if (isatty(STDERR_FILENO) == 1) fmt::print(stderr, "{}\n", line);
}

std::vector<uint32_t> ParseWorlds(const std::string& text) {
  std::vector<uint32_t> worlds;
  for (size_t begin = 0; begin <= text.size();) {
    const size_t comma = std::min(text.find(',', begin), text.size());
    worlds.push_back(ParseCount("--ranks", text.substr(begin, comma - begin), 2));
    begin = comma + 1;
  }
  return worlds;
}

// Groups of a rank's collectives: all sizes that divide the world.
std::vector<NamedSchedule> Ladder(uint32_t ranks) {
  std::vector<NamedSchedule> schedules;
  for (uint32_t group = 2; group <= ranks; ++group) {
    if (ranks % group != 0) continue;
    schedules.push_back({fmt::format("collectives of {}", group),
                         MakeCollectiveProbe(ranks, group, ProbeStepSizes(kLargestStep), kSeed)});
  }
  return schedules;
}

// Distinct products of a schedule, as each rank does them.
void AddProducts(const Schedule& schedule, std::vector<Gemm>* products) {
  for (const Role& role : schedule.roles) {
    for (const Op& op : role.ops) {
      const auto* compute = std::get_if<Compute>(&op.work);
      if (compute == nullptr || compute->kind != ComputeKind::kGemm) continue;
      Gemm gemm = compute->gemm;
      gemm.m *= gemm.batch;
      gemm.batch = 1;
      const auto is_same = [&](const Gemm& other) {
        return other.m == gemm.m && other.n == gemm.n && other.k == gemm.k &&
               other.mode == gemm.mode;
      };
      if (std::none_of(products->begin(), products->end(), is_same)) products->push_back(gemm);
    }
  }
}

std::vector<NamedSchedule> Steps(uint32_t ranks, const std::vector<NamedSchedule>& wanted) {
  std::vector<Gemm> products = ProbeProducts(kProductShapes, kLargestProduct);
  for (const NamedSchedule& own : wanted) AddProducts(own.schedule, &products);
  std::vector<NamedSchedule> schedules = {{"products", MakeProductProbe(ranks, products, kSeed)}};
  for (const NamedSchedule& own : wanted) {
    if (own.schedule.ranks() == ranks) schedules.push_back(own);
  }
  for (uint32_t network = 0; network < kNetworks; ++network) {
    for (RandomStep& step :
         DrawSteps(kSeed, network, ranks, StepUse::kLearning, kLeastWork, kMostWork))
      schedules.push_back({step.name, std::move(step.schedule)});
  }
  return schedules;
}

LearnedWorld LearnWorld(Transport& transport, const std::vector<NamedSchedule>& wanted,
                        const LearningOptions& options) {
  LearnedWorld world;
  world.ladder = Learn(Ladder(transport.size()), transport, options);
  world.steps = Learn(Steps(transport.size(), wanted), transport, options);
  return world;
}

std::vector<NamedSchedule> WantedSchedules(const po::variables_map& values) {
  std::vector<NamedSchedule> wanted;
  if (values.count("for") == 0) return wanted;
  for (const std::string& path : values["for"].as<std::vector<std::string>>()) {
    const Scenario scenario = ReadScenario(JsonDocument::FromFile(path));
    Schedule schedule =
        PlanStep(scenario.network, scenario.training, scenario.strategy, scenario.strategy_place);
    CheckSchedule(schedule);
    wanted.push_back({scenario.name, std::move(schedule)});
  }
  return wanted;
}

void Report(const std::vector<LearnedWorld>& worlds, const std::string& path,
            std::chrono::steady_clock::time_point start) {
  CalibrationFacts facts{"rehearse " REHEARSE_VERSION, REHEARSE_COMMIT, Now(), 0};
  const std::chrono::duration<double> took = std::chrono::steady_clock::now() - start;
  facts.seconds = took.count();
  const Calibration calibration = MakeCalibration(worlds, facts);
  WriteFileAtomically(path, ToJson(calibration).dump(1) + "\n");
  fmt::print("{}\nwritten to {} after {:.0f} s\n", DescribeCalibration(calibration), path,
             took.count());
}

}  // namespace

int CalibrateCommand(const std::vector<std::string>& arguments) {
  CommandSyntax syntax = Syntax();
  po::variables_map values;
  if (!ParseCommandLine(syntax, arguments, &values)) return 0;
  const std::string backend = values["backend"].as<std::string>();
  if (backend != "cpu")
    throw Error(fmt::format("--backend: found \"{}\", expected \"cpu\"", backend));
  const auto start = std::chrono::steady_clock::now();
  const std::string path = values["output"].as<std::string>();
  LearningOptions options;
  options.kept = ParseCount("--kept", values["kept"].as<std::string>(), 1);
  options.patience = Seconds(ParseCount("--patience", values["patience"].as<std::string>(), 1));
  options.progress = ShowProgress;
  const std::vector<NamedSchedule> wanted = WantedSchedules(values);
  SetBlasThreads(1);

  if (const std::optional<Launch> launch = DetectLaunch()) {
    const std::unique_ptr<Transport> transport = JoinMpi(*launch);
    const LearnedWorld world = LearnWorld(*transport, wanted, options);
    if (transport->rank() == 0) Report({world}, path, start);
    return 0;
  }
  const uint32_t cores = std::max(2u, ThisHost().cores);
  std::vector<uint32_t> worlds = {cores, 2 * cores};
  if (values.count("ranks") > 0) worlds = ParseWorlds(values["ranks"].as<std::string>());
  std::vector<LearnedWorld> learned;
  for (const uint32_t ranks : worlds) {
    RunAsThreads(ranks, [&](Transport& transport) {
      LearnedWorld world = LearnWorld(transport, wanted, options);
      if (transport.rank() == 0) learned.push_back(std::move(world));
    });
  }
  Report(learned, path, start);
  return 0;
}

}  // namespace rehearse

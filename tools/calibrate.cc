// rehearse calibrate: what this machine's kernels and collectives take.
#include "real/calibration/calibrate.h"

#include <algorithm>
#include <chrono>
#include <cstdio>
#include <ctime>

#include <fmt/chrono.h>
#include <fmt/format.h>
#include <unistd.h>

#include "real/cuda/machine.h"
#include "real/cuda/overheads.h"
#include "real/kernels/kernels.h"
#include "real/transports/control.h"
#include "real/transports/launcher.h"
#include "real/transports/transport_threads.h"
#include "scenarios/playing/prepare.h"
#include "scenarios/trials/learning_plan.h"
#include "sim/base/error.h"
#include "sim/base/json_document.h"
#include "sim/base/output_file.h"
#include "sim/base/say.h"
#include "sim/base/units.h"
#include "sim/base/version.h"
#include "tools/command.h"
#include "tools/gpu_ranks.h"
#include "tools/trial_options.h"

namespace rehearse {
namespace po = boost::program_options;

CommandSyntax CalibrateSyntax() {
  CommandSyntax syntax;
  syntax.usage = "rehearse calibrate [options]";
  syntax.explanation =
      "Measures what kernels and collectives take on this machine, in the middle of training "
      "steps,\n"
      "and writes it to a file that scenarios use:\n"
      "  \"cluster\": {\"preset\": \"local-cpu\", \"ranks\": 2, \"calibration\": "
      "\"calibration.json\"}\n"
      "Steps that other programs disturbed are rejected and counted. Ranks are threads of this\n"
      "process, or processes when started by mpirun; for GPUs also by srun or torchrun. Examples:\n"
      "  rehearse calibrate\n"
      "  rehearse calibrate --for scenarios/mine.json --ranks 2,4 -o mine.json\n"
      "  mpirun -n 2 rehearse calibrate -o mpi.json\n"
      "  rehearse calibrate --backend cuda -o h200.json       also launches, copies, and what\n"
      "                                                       communication and compute cost each "
      "other\n";
  auto add = syntax.options.add_options();
  add("backend", po::value<std::string>()->default_value("cpu")->value_name("cpu|cuda"),
      "what is measured");
  add("for", po::value<std::vector<std::string>>()->multitoken()->value_name("SCENARIO..."),
      "also measure exactly what these need");
  syntax.takes["for"] = TakenFile({".json"});
  add("ranks", po::value<std::string>()->value_name("N,..."),
      "numbers of ranks to measure collectives among; by default a rank a core and twice as many, "
      "on GPUs a rank a GPU");
  add("kept", po::value<std::string>()->default_value("15")->value_name("N"),
      "undisturbed steps wanted of each schedule");
  add("patience", po::value<std::string>()->default_value("1")->value_name("SECONDS"),
      "how long to wait for them, each schedule");
  add("largest", po::value<std::string>()->value_name("GFLOP"),
      "operations of the largest training step to learn from, a rank; products have up to a tenth. "
      "By default 2, on GPUs 20000");
  add("largest-message", po::value<std::string>()->value_name("SIZE"),
      "largest step of a ring; by default 4 MiB, on GPUs 64 MiB");
  add("networks", po::value<std::string>()->value_name("N"),
      "random networks to learn from; by default 12, on GPUs 8");
  add("share-gpus",
      "GPUs: let ranks share them (processes with an NCCL_HOSTID each); times mean nothing then");
  add("output,o", po::value<std::string>()->default_value("calibration.json")->value_name("FILE"),
      "where to write it; with - it is printed, and what there is to say goes to standard error");
  syntax.takes["output"] = TakenOutput({".json"});
  return syntax;
}

namespace {

std::string Now() { return fmt::format("{:%Y-%m-%dT%H:%M:%SZ}", fmt::gmtime(std::time(nullptr))); }

void ShowProgress(const std::string& line) {
  if (isatty(STDERR_FILENO) == 1) SayAsItIs(line + "\n");
}

std::vector<uint32_t> ParseWorlds(const std::string& text, uint32_t least) {
  std::vector<uint32_t> worlds;
  for (size_t begin = 0; begin <= text.size();) {
    const size_t comma = std::min(text.find(',', begin), text.size());
    worlds.push_back(ParseCount("--ranks", text.substr(begin, comma - begin), least));
    begin = comma + 1;
  }
  return worlds;
}

Bytes ParseMessageSize(const std::string& text) {
  try {
    return ParseSize(text);
  } catch (const Error& error) {
    throw Error(fmt::format("--largest-message: {}", error.what()));
  }
}

struct Request {
  bool on_gpus = false;
  bool share_gpus = false;
  LearningPlan plan;
  LearningOptions options;
  std::vector<NamedSchedule> wanted;
  std::vector<uint32_t> worlds;  // of threads
  std::string path;
};

std::vector<NamedSchedule> WantedSchedules(const po::variables_map& values) {
  std::vector<NamedSchedule> wanted;
  if (values.count("for") == 0) return wanted;
  for (const std::string& path : values["for"].as<std::vector<std::string>>()) {
    Scenario scenario = ReadScenario(JsonDocument::FromFile(path));
    // What this machine has no room for is left out below, where there is a limit.
    scenario.allow_out_of_memory = true;
    for (Job& job : Prepare(scenario)) wanted.push_back({job.name, std::move(job.schedule)});
  }
  return wanted;
}

// What is said of the rank's GPU, and measured without other ranks.
GpuFacts FactsOfGpu(const Request& request, uint32_t local_rank, uint32_t ranks) {
  const GpuLibraries& gpu = LoadGpuLibraries();
  const int device = DeviceOfRank(local_rank);
  const GpuRecord record = ReadGpu(gpu, device);
  GpuFacts facts;
  facts.record = ToJson(ReadGpuMachine(gpu));
  facts.record["device"] = ToJson(record);
  facts.multiprocessors = static_cast<uint32_t>(record.multiprocessors);
  if (ranks == 1) facts.not_representative = "one rank: there was nobody to communicate with";
  if (request.share_gpus) facts.not_representative = "ranks shared GPUs";
  const GpuOverheads overheads = MeasureOverheads(gpu, device, request.plan.largest_message);
  facts.launch = overheads.launch;
  facts.overheads = ToJson(overheads);
  return facts;
}

// All ranks do it at the same time; the result is rank 0's.
struct WorldOfRank {
  LearnedWorld learned;
  GpuFacts gpu;
};
WorldOfRank LearnWorld(Transport& transport, const Request& request, uint32_t local_rank) {
  WorldOfRank world;
  LearningPlan plan = request.plan;
  LearningOptions options = request.options;
  if (request.on_gpus) {
    options.backend = GpuBackends(local_rank, {});
    options.computes_in = std::nullopt;
    // All ranks must plan the same: for rank 0's device, which is measured while the others wait.
    std::string bytes;
    if (transport.rank() == 0) {
      world.gpu = FactsOfGpu(request, local_rank, transport.size());
      bytes = world.gpu.record.at("device").at("memory_bytes").dump();
    }
    plan.room = Bytes(std::stod(BroadcastBytes(transport, bytes)));
  }
  const WorldPlan schedules =
      PlanLearning(plan, transport.size(), request.wanted, &world.gpu.left_out);
  world.learned.ladder = Learn(schedules.ladder, transport, options);
  world.learned.steps = Learn(schedules.steps, transport, options);
  if (request.on_gpus && transport.size() > 1) {
    world.gpu.encounters = MeasureEncounters(PlanEncounters(plan), DType::kBf16, transport,
                                             {.kept = options.kept, .backend = options.backend});
  }
  return world;
}

// Ranks whose compute and communication have a core each: half as many as there are cores, if these
// are two at least.
std::vector<EncounterSamples> MeetOnCores(const Request& request) {
  std::vector<EncounterSamples> encounters;
  const uint32_t ranks = ThisHost().cores / 2;
  if (ranks < 2) return encounters;
  RunAsThreads(ranks, [&](Transport& transport) {
    auto samples =
        MeasureEncounters(PlanEncounters(request.plan), DType::kFp32, transport,
                          {.kept = request.options.kept, .patience = request.options.patience});
    if (transport.rank() == 0) encounters = std::move(samples);
  });
  return encounters;
}

void Report(const std::vector<WorldOfRank>& worlds, const std::vector<EncounterSamples>& encounters,
            const Request& request, std::chrono::steady_clock::time_point start) {
  CalibrationFacts facts{fmt::format("rehearse {}", Version()), std::string(BuildCommit()), Now(),
                         0};
  const std::chrono::duration<double> took = std::chrono::steady_clock::now() - start;
  facts.seconds = took.count();
  std::vector<LearnedWorld> learned;
  learned.reserve(worlds.size());
  for (const WorldOfRank& world : worlds) learned.push_back(world.learned);
  const Calibration calibration = request.on_gpus
                                      ? MakeGpuCalibration(learned, facts, worlds.back().gpu)
                                      : MakeCalibration(learned, facts, encounters);
  WriteFileAtomically(request.path, ToJson(calibration).dump(1) + "\n");
  const std::string text =
      fmt::format("{}\nwritten to {} after {:.0f} s\n", DescribeCalibration(calibration),
                  OutputName(request.path), took.count());
  PrintBeside(request.path, text);
}

Request ParseRequest(const po::variables_map& values) {
  Request request;
  const std::string backend = values["backend"].as<std::string>();
  if (backend != "cpu" && backend != "cuda")
    throw Error(fmt::format("--backend: found \"{}\", expected \"cpu\" or \"cuda\"", backend));
  request.on_gpus = backend == "cuda";
  request.share_gpus = values.count("share-gpus") > 0;
  if (request.share_gpus && !request.on_gpus) throw Error("--share-gpus is for --backend cuda");
  request.path = values["output"].as<std::string>();
  const auto count = [&](const char* option) {
    return ParseCount(std::string("--") + option, values[option].as<std::string>(), 1);
  };
  request.options.kept = count("kept");
  request.options.patience = Seconds(count("patience"));
  request.options.progress = ShowProgress;
  request.plan = request.on_gpus ? GpuLearningPlan() : CpuLearningPlan();
  if (values.count("largest") > 0) request.plan.largest = Flops(1e9 * count("largest"));
  if (values.count("largest-message") > 0) {
    request.plan.largest_message = ParseMessageSize(values["largest-message"].as<std::string>());
  }
  if (values.count("networks") > 0) request.plan.networks = count("networks");
  request.wanted = WantedSchedules(values);
  if (values.count("ranks") > 0) {
    request.worlds = ParseWorlds(values["ranks"].as<std::string>(), request.on_gpus ? 1 : 2);
  }
  return request;
}

// Ranks as threads: a rank a core and twice as many, or a rank a GPU.
std::vector<uint32_t> DefaultWorlds(bool on_gpus) {
  if (on_gpus) {
    int devices = 1;
    LoadGpuLibraries().cuda.GetDeviceCount(&devices);
    return {static_cast<uint32_t>(std::max(1, devices))};
  }
  const uint32_t cores = std::max(2u, ThisHost().cores);
  return {cores, 2 * cores};
}

}  // namespace

int CalibrateCommand(const std::vector<std::string>& arguments) {
  CommandSyntax syntax = CalibrateSyntax();
  po::variables_map values;
  if (!ParseCommandLine(syntax, arguments, &values)) return 0;
  const auto start = std::chrono::steady_clock::now();
  Request request = ParseRequest(values);
  SetBlasThreads(1);

  if (const std::optional<Launch> launch = DetectLaunch()) {
    if (launch->rank == 0) CheckWritable(request.path);  // who writes it
    if (request.on_gpus) RequireGpusForRanks(launch->local_ranks, request.share_gpus);
    const std::unique_ptr<Transport> transport = JoinProcesses(*launch, request.on_gpus);
    const WorldOfRank world = LearnWorld(*transport, request, launch->local_rank);
    if (transport->rank() == 0) Report({world}, {}, request, start);
    return 0;
  }
  CheckWritable(request.path);
  if (request.on_gpus) RequireGpusForRanks(1, true);
  if (request.worlds.empty()) request.worlds = DefaultWorlds(request.on_gpus);
  if (request.on_gpus) {
    RequireGpusForRanks(*std::max_element(request.worlds.begin(), request.worlds.end()),
                        request.share_gpus);
  }
  std::vector<WorldOfRank> learned;
  for (const uint32_t ranks : request.worlds) {
    RunAsThreads(ranks, [&](Transport& transport) {
      WorldOfRank world = LearnWorld(transport, request, transport.rank());
      if (transport.rank() == 0) learned.push_back(std::move(world));
    });
  }
  Report(learned, request.on_gpus ? std::vector<EncounterSamples>() : MeetOnCores(request), request,
         start);
  return 0;
}

}  // namespace rehearse

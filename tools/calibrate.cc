// rehearse calibrate: how long this machine's kernels and collectives take.
#include "real/calibration/calibrate.h"

#include <algorithm>
#include <chrono>
#include <cstdio>
#include <ctime>
#include <filesystem>

#include <fmt/chrono.h>
#include <fmt/format.h>
#include <unistd.h>

#include "real/calibration/drift.h"
#include "real/cuda/machine.h"
#include "real/cuda/overheads.h"
#include "real/kernels/kernels.h"
#include "real/transports/control.h"
#include "real/transports/launcher.h"
#include "real/transports/transport_threads.h"
#include "scenarios/playing/prepare.h"
#include "scenarios/trials/learning_plan.h"
#include "sim/base/error.h"
#include "sim/base/interruption.h"
#include "sim/base/json_document.h"
#include "sim/base/output_file.h"
#include "sim/base/say.h"
#include "sim/base/version.h"
#include "tools/command.h"
#include "tools/gpu_ranks.h"
#include "tools/number_options.h"
#include "tools/terminal.h"
#include "topology/files/device_points_file.h"

namespace rehearse {
namespace po = boost::program_options;

CommandSyntax CalibrateSyntax() {
  CommandSyntax syntax;
  syntax.usage = "rehearse calibrate [options]";
  syntax.explanation =
      "Measures how long kernels and collectives take on this machine, in the middle of training\n"
      "steps, and writes it to a file that scenarios use:\n"
      "  \"cluster\": {\"preset\": \"local-cpu\", \"ranks\": 2, \"calibration\": "
      "\"calibration.json\"}\n"
      "Steps that other programs disturbed are rejected and counted; when none was left alone for\n"
      "30 s, it gives up and says who was in the way; when fewer than one in ten was, it waits no\n"
      "longer for more, and says where it has too few. What the machine did meanwhile is in the\n"
      "file, with a range of each constant; one whose own products, held out, are more than 10 %\n"
      "off, or that has too few steps, says that it is not representative. Ranks are threads of "
      "this\n"
      "process, or processes when started by mpirun; for GPUs also by srun or torchrun. After\n"
      "Ctrl-C, FILE.partial.json holds the numbers of ranks that were measured completely.\n"
      "Examples:\n"
      "  rehearse calibrate\n"
      "  rehearse calibrate --for scenarios/mine.json --ranks 2,4 -o mine.json\n"
      "  mpirun -n 2 rehearse calibrate -o mpi.json\n"
      "  rehearse calibrate --again mine.json                  what has drifted since\n"
      "  rehearse calibrate --backend cuda -o h200.json       also launches, copies, and how much\n"
      "                                                       communication and compute slow each\n"
      "                                                       other down\n";
  auto add = syntax.options.add_options();
  add("backend", po::value<std::string>()->default_value("cpu")->value_name("cpu|cuda"),
      "what to measure");
  add("for", po::value<std::vector<std::string>>()->multitoken()->value_name("SCENARIO..."),
      "also measure exactly what these scenarios need");
  syntax.takes["for"] = TakenFile({".json"});
  add("ranks", Wholes("N,...", nullptr, 1, kMostThreadRanks),
      "numbers of ranks to measure collectives with; by default one rank per core and twice as "
      "many, on GPUs one rank per GPU");
  add("kept", Whole("N", "15", 1u, 1'000'000u),
      "how many undisturbed steps to measure of each schedule");
  add("patience", Wait("SECONDS", "1"), "how long to wait for them, for each schedule");
  add("largest", Gigaflops("GFLOP", nullptr),
      "operations per rank of the largest training step to learn from; a product has up to a tenth "
      "of them. By default 2, on GPUs 20000");
  add("largest-message", SizeWithUnit("SIZE", nullptr),
      "largest step of a ring; by default 4 MiB, on GPUs 64 MiB");
  add("networks", Whole("N", nullptr, 1u, 100'000u),
      "how many random networks to learn from; by default 12, on GPUs 8");
  add("share-gpus",
      "GPUs: let ranks share them (as processes, each with its own NCCL_HOSTID); times then mean "
      "nothing");
  add("output,o", po::value<std::string>()->default_value("calibration.json")->value_name("FILE"),
      "where to write it; with - it goes to standard output, and messages to standard error");
  syntax.takes["output"] = TakenOutput({".json"});
  add("again", po::value<std::string>()->value_name("FILE"),
      "measure a part of what this calibration has measured and say what drifted by more than 10 "
      "%; "
      "nothing is written without -o. By default with as many ranks, and 3 networks");
  syntax.takes["again"] = TakenFile({".json"});
  add("device-points", po::value<std::string>()->value_name("FILE.csv"),
      "also write the measured products there, in the form that run's --device-points reads");
  syntax.takes["device-points"] = TakenOutput({".csv"});
  return syntax;
}

namespace {

std::string Now() { return fmt::format("{:%Y-%m-%dT%H:%M:%SZ}", fmt::gmtime(std::time(nullptr))); }

struct Request {
  bool on_gpus = false;
  bool share_gpus = false;
  LearningPlan plan;
  LearningOptions options;
  std::vector<NamedSchedule> wanted;
  std::vector<uint32_t> worlds;  // of threads
  std::string path;              // empty: none is written
  std::string points_path;       // empty: none
  std::optional<Calibration> again;
  HostSnapshot before;
  BytesPerSecond copies_before;
  ProgressObserver* observer = &NoObserver();
};

std::vector<NamedSchedule> WantedSchedules(const po::variables_map& values) {
  std::vector<NamedSchedule> wanted;
  if (values.count("for") == 0) return wanted;
  for (const std::string& path : values["for"].as<std::vector<std::string>>()) {
    Scenario scenario = ReadScenario(JsonDocument::FromFile(path));
    // Where memory is limited, what does not fit this machine is left out below.
    scenario.allow_out_of_memory = true;
    for (Job& job : Prepare(scenario)) wanted.push_back({job.name, std::move(job.schedule)});
  }
  return wanted;
}

// Facts about the rank's GPU, and what is measured without other ranks.
GpuFacts FactsOfGpu(const Request& request, uint32_t local_rank, uint32_t ranks) {
  const GpuLibraries& gpu = LoadGpuLibraries();
  const int device = DeviceOfRank(local_rank);
  const GpuRecord record = ReadGpu(gpu, device);
  GpuFacts facts;
  facts.record = ToJson(ReadGpuMachine(gpu));
  facts.record["device"] = ToJson(record);
  facts.multiprocessors = static_cast<uint32_t>(record.multiprocessors);
  if (ranks == 1) facts.not_representative = "one rank: nothing to communicate with";
  if (request.share_gpus) facts.not_representative = "ranks shared GPUs";
  const GpuOverheads overheads = MeasureOverheads(gpu, device, request.plan.largest_message);
  facts.launch = overheads.launch;
  facts.overheads = ToJson(overheads);
  return facts;
}

// All ranks do this at the same time; only rank 0's result counts.
struct WorldOfRank {
  LearnedWorld learned;
  GpuFacts gpu;
};
WorldOfRank LearnWorld(Transport& transport, const Request& request, uint32_t local_rank) {
  WorldOfRank world;
  LearningPlan plan = request.plan;
  LearningOptions options = request.options;
  uint32_t measured = 0;
  options.progress = [&](const std::string& result) {
    request.observer->Note(result);
    request.observer->Done(++measured);
  };
  if (request.on_gpus) {
    options.backend = GpuBackends(local_rank, {});
    options.computes_in = std::nullopt;
    // All ranks must plan the same steps: those for rank 0's device, which is measured while the
    // others wait.
    std::string bytes;
    if (transport.rank() == 0) {
      world.gpu = FactsOfGpu(request, local_rank, transport.size());
      bytes = world.gpu.record.at("device").at("memory_bytes").dump();
    }
    plan.room = Bytes(std::stod(BroadcastBytes(transport, bytes)));
  }
  const WorldPlan schedules =
      PlanLearning(plan, transport.size(), request.wanted, &world.gpu.left_out);
  if (transport.rank() == 0) {
    request.observer->Begin(fmt::format("measuring {} ranks", transport.size()), "schedules",
                            schedules.ladder.size() + schedules.steps.size());
  }
  world.learned.ladder = Learn(schedules.ladder, transport, options);
  world.learned.steps = Learn(schedules.steps, transport, options);
  if (request.on_gpus && transport.size() > 1) {
    world.gpu.encounters = MeasureEncounters(
        PlanEncounters(plan), DType::kBf16, transport,
        {.kept = options.kept, .backend = options.backend, .is_stopped = options.is_stopped});
  }
  return world;
}

// Lets as many ranks meet as can have one core for compute and one for communication: half as many
// as there are cores, if these are at least two.
std::vector<EncounterSamples> MeetOnCores(const Request& request) {
  std::vector<EncounterSamples> encounters;
  const uint32_t ranks = ThisHost().cores / 2;
  if (ranks < 2) return encounters;
  request.observer->Begin("measuring how compute and communication slow each other down", "", 0);
  RunAsThreads(ranks, [&](Transport& transport) {
    auto samples = MeasureEncounters(
        PlanEncounters(request.plan), DType::kFp32, transport,
        {.kept = request.options.kept,
         .patience = request.options.haste->IsOn() ? Seconds(0) : request.options.patience,
         .is_stopped = request.options.is_stopped});
    if (transport.rank() == 0) encounters = std::move(samples);
  });
  return encounters;
}

void CheckOutputs(const Request& request) {
  if (!request.path.empty()) CheckWritable(request.path);
  if (!request.points_path.empty()) CheckWritable(request.points_path);
}

// The products that were measured on their own, each mode separately.
DevicePoints ProductsOf(const Calibration& calibration) {
  DevicePoints points;
  if (!calibration.kernels) return points;
  for (const KernelCosts& costs : calibration.kernels->kernels) {
    if (costs.kernel != Kernel::kGemm) continue;
    for (const KernelPoint& point : costs.points) {
      PointKey key;
      key.dtype = costs.dtype;
      key.mode = costs.mode;
      key.m = point.work.gemm.m;
      key.n = point.work.gemm.n;
      key.k = point.work.gemm.k;
      points.times.emplace(key, point.time);
    }
  }
  return points;
}

void SayWhatWasLearned(const std::vector<WorldOfRank>& worlds,
                       const std::vector<EncounterSamples>& encounters, const Request& request,
                       std::chrono::steady_clock::time_point start) {
  CalibrationFacts facts{fmt::format("rehearse {}", Version()), std::string(BuildCommit()), Now(),
                         0};
  const std::chrono::duration<double> took = std::chrono::steady_clock::now() - start;
  facts.seconds = took.count();
  facts.noise = CalibrationNoise{ActivityBetween(request.before, SnapshotOfHost(), getpid()),
                                 request.copies_before, MeasureCopies()};
  std::vector<LearnedWorld> learned;
  learned.reserve(worlds.size());
  for (const WorldOfRank& world : worlds) learned.push_back(world.learned);
  const Calibration calibration = request.on_gpus
                                      ? MakeGpuCalibration(learned, facts, worlds.back().gpu)
                                      : MakeCalibration(learned, facts, encounters);
  if (!request.path.empty()) WriteFileAtomically(request.path, ToJson(calibration).dump(1) + "\n");
  if (!request.points_path.empty())
    WriteFileAtomically(request.points_path, ToCsv(ProductsOf(calibration)));
  std::string text = DescribeCalibration(calibration);
  if (request.again) text += "\n" + ToText(DriftBetween(*request.again, calibration));
  text += request.path.empty() ? fmt::format("\nmeasured in {:.0f} s\n", took.count())
                               : fmt::format("\nwritten to {} after {:.0f} s\n",
                                             OutputName(request.path), took.count());
  PrintBeside(request.path, text);
}

// As many ranks as it was measured with.
void ReadAgain(const std::string& path, Request* request) {
  request->again = ReadCalibrationFile(path);
  const HostMachine host = ThisHost();
  const std::string here = MachineName(host.processor, host.cores);
  const std::string& there = request->again->origin.machine;
  if (there != here) {
    throw Error({path, 0, ""},
                fmt::format("was measured on {}, but this machine is {}",
                            there.empty() ? "a machine that it does not name" : there, here));
  }
  if (!request->on_gpus) {
    for (const MeasuredCollectives& measured : request->again->collectives)
      request->worlds.push_back(measured.ranks);
  }
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
  if (values.count("again") > 0) ReadAgain(values["again"].as<std::string>(), &request);
  if (request.again && values["output"].defaulted()) request.path.clear();
  if (values.count("device-points") > 0)
    request.points_path = values["device-points"].as<std::string>();
  request.options.kept = values["kept"].as<uint32_t>();
  request.options.patience = values["patience"].as<Seconds>();
  request.plan = request.on_gpus ? GpuLearningPlan() : CpuLearningPlan();
  if (values.count("largest") > 0) request.plan.largest = values["largest"].as<Flops>();
  if (values.count("largest-message") > 0) {
    request.plan.largest_message = values["largest-message"].as<Bytes>();
  }
  constexpr uint32_t kNetworksAgain = 3;  // the first of those that are drawn
  if (request.again) request.plan.networks = kNetworksAgain;
  if (values.count("networks") > 0) request.plan.networks = values["networks"].as<uint32_t>();
  request.wanted = WantedSchedules(values);
  if (values.count("ranks") > 0) {
    request.worlds = values["ranks"].as<std::vector<uint32_t>>();
    const uint32_t fewest = *std::min_element(request.worlds.begin(), request.worlds.end());
    if (!request.on_gpus && fewest < 2)
      throw Error(fmt::format("--ranks: found {}, expected at least 2 ranks on CPUs", fewest));
  }
  return request;
}

// Ranks are threads, one per core and then twice as many, or one per GPU.
std::vector<uint32_t> DefaultWorlds(bool on_gpus) {
  if (on_gpus) {
    int devices = 1;
    LoadGpuLibraries().cuda.GetDeviceCount(&devices);
    return {static_cast<uint32_t>(std::max(1, devices))};
  }
  const uint32_t cores = std::max(2u, ThisHost().cores);
  return {cores, 2 * cores};
}

void LearnAsThreads(const Request& request, std::vector<WorldOfRank>* learned) {
  for (const uint32_t ranks : request.worlds) {
    RunAsThreads(ranks, [&](Transport& transport) {
      WorldOfRank world = LearnWorld(transport, request, transport.rank());
      if (transport.rank() == 0) learned->push_back(std::move(world));
    });
  }
}

// Turns "calibration.json" into "calibration.partial.json", so that a complete file is not replaced
// by a partial one.
std::string PartialPath(const std::string& path) {
  if (IsStandardOutput(path)) return path;
  const std::filesystem::path whole(path);
  std::filesystem::path partial = whole;
  partial.replace_extension();
  partial += ".partial";
  partial += whole.extension();
  return partial.string();
}

// Says what a run that was stopped leaves: numbers of ranks that were measured completely are worth
// a file of their own.
void ReportStop(const std::vector<WorldOfRank>& learned, Request* request,
                std::chrono::steady_clock::time_point start) {
  if (learned.empty()) {
    const std::string fewer =
        request->worlds.size() > 1 ? fmt::format("--ranks {}, ", request->worlds.front()) : "";
    throw Stopped(fmt::format(
        "nothing is written to {}; it is quicker with {}fewer --networks or a smaller --kept",
        request->path, fewer));
  }
  std::vector<uint32_t> done(request->worlds.begin(),
                             request->worlds.begin() + static_cast<ptrdiff_t>(learned.size()));
  const std::vector<uint32_t> missing(
      request->worlds.begin() + static_cast<ptrdiff_t>(learned.size()), request->worlds.end());
  const std::string whole = request->path;
  request->path = PartialPath(whole);
  SayWhatWasLearned(learned, {}, *request, start);
  std::fflush(stdout);
  Say(fmt::format("{}: nothing is written to {}; {} holds {} ranks, {}", StopWords(), whole,
                  request->path, fmt::join(done, ", "),
                  missing.empty() ? "without how compute and communication slow each other down"
                                  : fmt::format("not {}", fmt::join(missing, ", "))));
}

}  // namespace

int CalibrateCommand(const std::vector<std::string>& arguments) {
  CommandSyntax syntax = CalibrateSyntax();
  po::variables_map values;
  if (!ParseCommandLine(syntax, arguments, &values)) return 0;
  const auto start = std::chrono::steady_clock::now();
  Request request = ParseRequest(values);
  ProgressLine progress(ProgressWanted());
  request.observer = &progress;
  SetBlasThreads(1);
  request.before = SnapshotOfHost();
  request.copies_before = MeasureCopies();
  Haste haste(request.options.hope);
  request.options.haste = &haste;

  if (const std::optional<Launch> launch = DetectLaunch()) {
    if (launch->rank == 0) CheckOutputs(request);  // it is the rank that writes
    if (request.on_gpus) RequireGpusForRanks(launch->local_ranks, request.share_gpus);
    const std::unique_ptr<Transport> transport = JoinProcesses(*launch, request.on_gpus);
    const WorldOfRank world = LearnWorld(*transport, request, launch->local_rank);
    progress.Clear();
    if (transport->rank() == 0) SayWhatWasLearned({world}, {}, request, start);
    return 0;
  }
  CheckOutputs(request);
  if (request.on_gpus) RequireGpusForRanks(1, true);
  if (request.worlds.empty()) request.worlds = DefaultWorlds(request.on_gpus);
  if (request.on_gpus) {
    RequireGpusForRanks(*std::max_element(request.worlds.begin(), request.worlds.end()),
                        request.share_gpus);
  }
  const Stoppable stoppable;
  request.options.is_stopped = IsStopAsked;
  std::vector<WorldOfRank> learned;
  try {
    LearnAsThreads(request, &learned);
    const auto encounters =
        request.on_gpus ? std::vector<EncounterSamples>() : MeetOnCores(request);
    progress.Clear();
    SayWhatWasLearned(learned, encounters, request, start);
  } catch (const Stopped&) {
    progress.Clear();
    ReportStop(learned, &request, start);
  }
  return StopCode();
}

}  // namespace rehearse

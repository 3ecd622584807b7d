// rehearse execute SCENARIO: run the scenario's schedule for real.
#include <cstdio>
#include <optional>
#include <string_view>

#include <fmt/format.h>

#include "real/backends/schedule_hash.h"
#include "real/cpu/cpu_backend.h"
#include "real/cuda/cuda_backend.h"
#include "real/cuda/machine.h"
#include "real/cuda/nccl_profiler.h"
#include "real/execution/step_log.h"
#include "real/execution/training.h"
#include "real/kernels/kernels.h"
#include "real/transports/control.h"
#include "real/transports/launcher.h"
#include "real/transports/transport_mpi.h"
#include "real/transports/transport_threads.h"
#include "scenarios/playing/execution.h"
#include "scenarios/playing/prepare.h"
#include "sim/base/error.h"
#include "sim/base/interruption.h"
#include "sim/base/known_names.h"
#include "sim/base/output_file.h"
#include "sim/base/say.h"
#include "sim/report/trace.h"
#include "tools/command.h"
#include "tools/gpu_ranks.h"
#include "tools/number_options.h"
#include "tools/output_format.h"
#include "tools/scenario_options.h"
#include "tools/terminal.h"
#include "tools/trace_options.h"

namespace rehearse {
namespace po = boost::program_options;

CommandSyntax ExecuteSyntax() {
  CommandSyntax syntax;
  syntax.usage = "rehearse execute SCENARIO|SCHEDULE [options]";
  syntax.explanation =
      "Runs the scenario's schedule for real: real numbers, real kernels, real messages. Ranks\n"
      "are threads of this process, or processes when started by mpirun, srun or torchrun. After\n"
      "Ctrl-C, ranks that are threads report the steps trained or measured so far. Examples:\n"
      "  rehearse execute scenarios/cpu-4d.json --check\n"
      "  mpirun -n 4 rehearse execute scenarios/cpu-4d.json --out out\n"
      "  mpirun --oversubscribe --allow-run-as-root -n 4 rehearse ...   with fewer cores; as root "
      "in\n"
      "                                                            a container\n"
      "  rehearse execute scenarios/cpu-4d.json --steps 50         its losses, and one rank's\n"
      "  rehearse execute scenarios/gpu-one.json --backend cuda    each rank on its own GPU\n";
  syntax.positional = {"scenario"};
  AddClusterOption(&syntax);
  auto add = syntax.options.add_options();
  add("set", po::value<std::vector<std::string>>()->composing()->value_name("PATH=VALUE"),
      "change the scenario before it is read; may be repeated");
  add("allow-oom", "run the plan even if it does not fit the scenario's devices");
  add("backend", po::value<std::string>()->default_value("cpu")->value_name("cpu|cuda"),
      "what to run it on");
  add("warmup", Whole("N", "2", 0u, 100'000u), "warm-up steps, which do not count");
  add("repeat", Whole("N", "5", 1u, 100'000u), "steps that count; the result is the median one");
  add("check",
      "also compare loss, gradients and updated parameters with those of a serial step: in fp64, "
      "on GPUs in fp32");
  add("steps", Whole("N", "0", 0u, 100'000u),
      "first train N steps on one batch, each starting from the parameters that the last one left, "
      "and show the losses beside those of a single rank: in fp64 unless --arithmetic says "
      "otherwise, on GPUs in fp32");
  add("collectives", po::value<std::string>()->default_value("own")->value_name("own|mpi"),
      "own: the steps of Rehearse's algorithms as messages; mpi: the MPI library's collectives");
  add("streams",
      po::value<std::string>()->default_value("auto")->value_name("auto|blocking|threads"),
      "blocking: one op after the other; threads: a thread for each stream");
  add("arithmetic", po::value<std::string>()->default_value("auto")->value_name("auto|fp32|fp64"),
      "precision of the timed steps: fp32 or fp64; auto is fp32, on GPUs what the schedule says");
  add("tune-products",
      "GPUs: before the first step, try out which mode of each matrix product is fastest");
  add("untimed-ops", "GPUs: time only whole steps, to see how much timing each op costs");
  add("cuda-graph",
      "GPUs: also launch the step as a CUDA graph, to see how much its launches cost; --check then "
      "checks the graph");
  add("share-gpus",
      "GPUs: let ranks share them (as processes, each with its own NCCL_HOSTID); times then mean "
      "nothing");
  add("seed", Whole("N", "1", uint64_t{0}, UINT64_MAX), "seed of parameters, tokens and dropout");
  add("blas-threads", Whole("N", "1", 1u, 1024u), "threads of each matrix product");
  AddFormatOption(syntax.options, kTableFormats,
                  "one row, with a column for each number of the JSON");
  add("out", po::value<std::string>()->value_name("DIR"),
      "write execution.json, timeline.json (for rehearse compare), trace.pftrace, timeline.svg "
      "and, with --steps, losses.csv there, and rank-N.jsonl during the run");
  AddTraceOption(&syntax);
  return syntax;
}

namespace {

size_t ParseChoice(const po::variables_map& values, const char* option,
                   const std::vector<std::string>& names) {
  const std::string text = values[option].as<std::string>();
  for (size_t i = 0; i < names.size(); ++i) {
    if (names[i] == text) return i;
  }
  throw Error(fmt::format("--{}: found \"{}\"{}", option, text, KnownNames(text, names)));
}

struct ExecuteRequest {
  ExecutionOptions options;
  bool check = false;
  uint32_t steps = 0;  // to train
  DType trains_in = DType::kFp64;
  bool mpi_collectives = false;
  bool on_gpus = false;
  bool share_gpus = false;
  CudaOptions gpu;
  std::string folder;  // empty: none
  bool kineto = false;
  ProgressObserver* observer = &NoObserver();
  std::function<void()> begin_stoppable = nullptr;  // on rank 0, before the steps
  OutputFormat format = OutputFormat::kText;
};

ExecuteRequest ParseExecuteRequest(const po::variables_map& values) {
  ExecuteRequest request;
  request.on_gpus = ParseChoice(values, "backend", {"cpu", "cuda"}) == 1;
  request.options.warm_ups = values["warmup"].as<uint32_t>();
  request.options.repeats = values["repeat"].as<uint32_t>();
  request.options.seed = values["seed"].as<uint64_t>();
  constexpr StreamUse kUses[] = {StreamUse::kAuto, StreamUse::kBlocking, StreamUse::kThreads};
  request.options.streams = kUses[ParseChoice(values, "streams", {"auto", "blocking", "threads"})];
  const size_t arithmetic = ParseChoice(values, "arithmetic", {"auto", "fp32", "fp64"});
  request.options.arithmetic = arithmetic == 2 ? DType::kFp64 : DType::kFp32;
  request.steps = values["steps"].as<uint32_t>();
  request.trains_in = arithmetic == 1 || request.on_gpus ? DType::kFp32 : DType::kFp64;
  if (request.on_gpus) {
    if (arithmetic == 2) throw Error("--arithmetic fp64: GPU kernels compute in fp32");
    request.options.streams = StreamUse::kThreads;  // CUDA's streams need no cores
    request.gpu.all_fp32 = arithmetic == 1;
    request.gpu.tune_gemms = values.count("tune-products") > 0;
    const bool untimed = values.count("untimed-ops") > 0;
    request.gpu.mode = untimed ? StepMode::kWhole : StepMode::kTimedOps;
    request.options.repeats_untimed = !untimed;
    request.options.watches_host = false;
    request.options.repeats_by_graph = values.count("cuda-graph") > 0;
    request.share_gpus = values.count("share-gpus") > 0;
  } else {
    for (const char* option : {"tune-products", "untimed-ops", "cuda-graph", "share-gpus"}) {
      if (values.count(option) > 0) throw Error(fmt::format("--{} is for --backend cuda", option));
    }
  }
  request.check = values.count("check") > 0;
  request.mpi_collectives = ParseChoice(values, "collectives", {"own", "mpi"}) == 1;
  request.folder = FolderOption(values, "out");
  request.kineto = WantsKineto(values);
  request.format = ReadFormat(values, kTableFormats);
  SetBlasThreads(static_cast<int>(values["blas-threads"].as<uint32_t>()));
  return request;
}

void WriteOutputs(const ExecutedScenario& executed, const std::string& folder, bool kineto) {
  const Execution& execution = executed.execution;
  const TraceNames names{.title = executed.scenario, .node_of_rank = {}, .device_of_rank = {}};
  PictureOptions picture;
  picture.ranks.clear();
  constexpr uint32_t kMostPictured = 8;
  for (uint32_t rank = 0; rank < std::min(execution.schedule.ranks(), kMostPictured); ++rank) {
    picture.ranks.push_back(rank);
  }
  const Timeline& median = execution.Median();
  OutputSet files;
  files.Add(folder + "/execution.json", ToJson(executed).dump(2) + "\n");
  files.Add(folder + "/timeline.json", ToJsonText(RecordOf(executed)));
  if (executed.training) files.Add(folder + "/losses.csv", ToCsv(*executed.training));
  if (kineto)
    AddKinetoTraces(execution.schedule, median, names, {}, folder, &files);
  else
    files.Add(folder + "/trace.pftrace", PerfettoTrace(execution.schedule, median, names));
  files.Add(folder + "/timeline.svg", TimelineSvg(execution.schedule, median, names, picture));
  files.Commit();
}

// The type of the schedule's matrix products, in which a GPU run computes unless told otherwise.
DType ArithmeticOf(const Schedule& schedule) {
  for (const Role& role : schedule.roles) {
    for (const Op& op : role.ops) {
      const auto* compute = std::get_if<Compute>(&op.work);
      if (compute != nullptr && compute->kind == ComputeKind::kGemm) return compute->dtype;
    }
  }
  return DType::kFp32;
}

BackendFactory CheckedGpuBackend(const ExecuteRequest& request, uint32_t local_rank) {
  CudaOptions options = request.gpu;
  options.all_fp32 = true;
  if (request.options.repeats_by_graph) options.mode = StepMode::kGraph;
  return GpuBackends(local_rank, options);
}

// The work of one rank; all ranks do this at the same time. The result is rank 0's.
std::optional<ExecutedScenario> RunRank(const Scenario& scenario, const Schedule& schedule,
                                        const ExecuteRequest& request, Transport& transport,
                                        uint32_t local_rank) {
  const ExecutionOptions& wanted = request.options;
  RequireSame(
      transport, "scenario",
      fmt::format("\"{}\" (schedule {}, seed {}, {} + {} + {} steps, {}{})", scenario.name,
                  HashOf(schedule), wanted.seed, request.steps, wanted.warm_ups, wanted.repeats,
                  Name(wanted.arithmetic), request.check ? ", checked" : ""));
  std::optional<StepLog> log;
  if (!request.folder.empty()) {
    MakeFolder(request.folder);
    log.emplace(fmt::format("{}/rank-{}.jsonl", request.folder, transport.rank()), scenario.name,
                transport.rank(), transport.size());
  }
  const auto backend_for = [&](DType arithmetic) -> BackendFactory {
    return [&, arithmetic](const RankPlan& plan, Transport& own) {
      return MakeCpuBackend(plan, own, arithmetic,
                            request.mpi_collectives ? MakeMpiCollectives(own, schedule) : nullptr);
    };
  };

  ExecutedScenario executed;
  if (request.check) {
    if (transport.rank() == 0) request.observer->Begin("checking against the serial step", "", 0);
    StepNumbers serial;
    if (transport.rank() == 0) serial = ComputeSerially(PlanSerially(scenario), wanted.seed);
    executed.check_tolerance = request.on_gpus ? kGpuCheckTolerance : kCheckTolerance;
    executed.check = CheckAgainst(
        serial, schedule, transport, wanted.seed,
        request.on_gpus ? CheckedGpuBackend(request, local_rank) : backend_for(DType::kFp64));
  }
  if (request.begin_stoppable && transport.rank() == 0) request.begin_stoppable();
  bool is_cut = false;  // the training was, as rank 0 knows
  if (request.steps > 0) {
    TrainingOptions training;
    training.steps = request.steps;
    training.seed = wanted.seed;
    training.arithmetic = request.trains_in;
    training.observer = request.observer;
    if (request.begin_stoppable) training.is_stopped = IsStopAsked;
    TrainedSteps trained;
    trained.arithmetic = request.trains_in;
    if (transport.rank() == 0 && HasNetwork(scenario))
      trained.serial_losses = TrainSerially(PlanSerially(scenario), training);
    training.backend =
        request.on_gpus ? CheckedGpuBackend(request, local_rank) : backend_for(request.trains_in);
    trained.losses = Train(schedule, transport, training);
    is_cut = transport.rank() == 0 && trained.losses.size() < request.steps;
    if (trained.serial_losses.size() > trained.losses.size())
      trained.serial_losses.resize(trained.losses.size());
    executed.training = std::move(trained);
  }
  ExecutionOptions options = wanted;
  options.observer = request.observer;
  if (request.begin_stoppable) {
    // Asked after each step. The losses of a training that was cut are shown with one step timed.
    options.is_stopped = [is_cut, warm_ups = options.warm_ups, asked = 0u]() mutable {
      return IsStopAsked() && (!is_cut || ++asked > warm_ups);
    };
  }
  options.backend =
      request.on_gpus ? GpuBackends(local_rank, request.gpu) : backend_for(wanted.arithmetic);
  executed.execution = Execute(schedule, transport, options, [&](const StepOfRank& step) {
    if (log) log->Write(step);
  });
  if (transport.rank() != 0) return std::nullopt;
  executed.backend = request.on_gpus ? "cuda" : "cpu";
  executed.transport = transport.name();
  executed.collectives = request.on_gpus ? "nccl" : request.mpi_collectives ? "mpi" : "own";
  executed.arithmetic = wanted.arithmetic;
  if (request.on_gpus) {
    if (!request.gpu.all_fp32) executed.arithmetic = ArithmeticOf(schedule);
    executed.gpu = ToJson(ReadGpuMachine(LoadGpuLibraries()));
    executed.gpu["device"] = ToJson(ReadGpu(LoadGpuLibraries(), 0));
    const NcclProfilerState profiler = ReadNcclProfilerState(LoadGpuLibraries());
    executed.gpu["nccl_profiler"] = ToJson(profiler);
    if (transport.size() > 1) executed.choices_missing = profiler.why_not;
    executed.representative = !request.share_gpus;
  }
  executed.seed = wanted.seed;
  Describe(scenario, schedule, transport, &executed);
  return executed;
}

// The columns of "rehearse run", whose rows may stand in one table with these, and the others.
DataTable TableOf(const ExecutedScenario& executed) {
  const nlohmann::ordered_json json = ToJson(executed);
  nlohmann::ordered_json row = json["result"];
  for (const auto& [key, value] : json.items())
    if (key != "result" && !row.contains(key)) row[key] = value;
  if (row.contains("given")) row["given"].erase("description");  // not one of its values
  return FlatTable({row});
}

int SayHowItWent(const ExecutedScenario& executed, const ExecuteRequest& request) {
  if (!request.folder.empty()) WriteOutputs(executed, request.folder, request.kineto);
  const std::string text = request.format == OutputFormat::kText ? ToText(executed, ColorsWanted())
                           : IsTable(request.format) ? Print(TableOf(executed), request.format)
                                                     : ToJson(executed).dump(2) + "\n";
  std::fputs(text.c_str(), stdout);
  const bool wrong = executed.check && !executed.check->Passes(executed.check_tolerance);
  return wrong ? 2 : 0;
}

int RunAsProcess(const Launch& launch, const Scenario& scenario, const Schedule& schedule,
                 ExecuteRequest request) {
  if (launch.ranks != schedule.ranks()) {
    throw Error(fmt::format(
        "{} started {} ranks, but the scenario has {}{}", launch.launcher, launch.ranks,
        schedule.ranks(),
        launch.launcher == "mpirun"
            ? fmt::format("; expected mpirun -n {} (with --oversubscribe where that is more than "
                          "there are cores, and --allow-run-as-root as root in a container)",
                          schedule.ranks())
            : ""));
  }
  const std::unique_ptr<Transport> transport = JoinProcesses(launch, request.on_gpus);
  // The message must be out before the transport closes: launchers then kill the processes.
  try {
    ProgressLine progress(ProgressWanted());
    request.observer = &progress;
    const auto executed = RunRank(scenario, schedule, request, *transport, launch.local_rank);
    progress.Clear();
    return executed ? SayHowItWent(*executed, request) : 0;
  } catch (const std::exception& error) {
    transport->Abort(fmt::format("rank {} gave up: {}", launch.rank, error.what()));
    // Steps name rank and op themselves.
    const std::string_view said = error.what();
    const bool is_named = said.starts_with(fmt::format("rank {},", launch.rank)) ||
                          said.starts_with(fmt::format("rank {}:", launch.rank));
    Say(fmt::format("{}{}", is_named ? "" : fmt::format("rank {}: ", launch.rank), error.what()));
    const bool is_fault = dynamic_cast<const InternalError*>(&error) != nullptr;
    return is_fault ? 2 : 1;
  }
}

int RunAsThreads(const Scenario& scenario, const Schedule& schedule, ExecuteRequest request) {
  if (request.mpi_collectives) {
    throw Error("--collectives mpi: these ranks are threads; start processes with mpirun");
  }
  std::optional<Stoppable> stoppable;
  request.begin_stoppable = [&] { stoppable.emplace(); };
  ProgressLine progress(ProgressWanted());
  request.observer = &progress;
  std::optional<ExecutedScenario> executed;
  ::rehearse::RunAsThreads(schedule.ranks(), [&](Transport& transport) {
    auto own = RunRank(scenario, schedule, request, transport, transport.rank());
    if (own) executed = std::move(own);
  });
  progress.Clear();
  const int code = SayHowItWent(*executed, request);
  if (StopCode() == 0) return code;
  std::fflush(stdout);
  const size_t trained = executed->training ? executed->training->losses.size() : request.steps;
  if (trained < request.steps) {
    Say(fmt::format("{}: trained {} of {} steps; --steps {} asks for as many", StopWords(), trained,
                    request.steps, trained));
    return StopCode();
  }
  const size_t measured = executed->execution.repeats.size();
  Say(fmt::format("{}: measured {} of {} steps; --repeat {} asks for as many", StopWords(),
                  measured, request.options.repeats, measured));
  return StopCode();
}

}  // namespace

int ExecuteCommand(const std::vector<std::string>& arguments) {
  CommandSyntax syntax = ExecuteSyntax();
  po::variables_map values;
  if (!ParseCommandLine(syntax, arguments, &values)) return 0;
  const ExecuteRequest request = ParseExecuteRequest(values);
  const Scenario scenario = ReadScenarioArgument(syntax, values);
  const Schedule schedule = PrepareOne(scenario, "rehearse execute").schedule;
  const std::optional<Launch> launch = DetectLaunch();
  if (request.on_gpus)
    RequireGpusForRanks(launch ? launch->local_ranks : schedule.ranks(), request.share_gpus);
  return launch ? RunAsProcess(*launch, scenario, schedule, request)
                : RunAsThreads(scenario, schedule, request);
}

}  // namespace rehearse

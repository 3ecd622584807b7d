#include "tools/import_kinds.h"

#include <algorithm>
#include <filesystem>
#include <optional>
#include <string_view>
#include <utility>

#include <fmt/format.h>

#include "sim/base/error.h"
#include "sim/base/input_file.h"
#include "sim/base/json_document.h"
#include "sim/base/json_reader.h"
#include "sim/base/moved_paths.h"
#include "sim/base/output_file.h"
#include "sim/base/visible_text.h"
#include "sim/schedule/schedule_json.h"
#include "tools/dry_run.h"
#include "tools/foreign/jobs/alibaba/openb_pods.h"
#include "tools/foreign/jobs/alibaba/pai_tasks.h"
#include "tools/foreign/jobs/helios/cluster_log.h"
#include "tools/foreign/jobs/philly/philly_log.h"
#include "tools/foreign/logs/nccl_tests/nccl_log.h"
#include "tools/foreign/machines/astra_sim/import_network.h"
#include "tools/foreign/machines/nccl/nccl_graph.h"
#include "tools/foreign/runs/accelerate/accelerate_import.h"
#include "tools/foreign/runs/axolotl/axolotl_import.h"
#include "tools/foreign/runs/deepspeed/deepspeed_import.h"
#include "tools/foreign/runs/maxtext/maxtext_import.h"
#include "tools/foreign/runs/megatron/megatron_import.h"
#include "tools/foreign/runs/nanotron/nanotron_import.h"
#include "tools/foreign/runs/nemo/nemo_import.h"
#include "tools/foreign/runs/torchtitan/torchtitan_import.h"
#include "tools/foreign/runs/torchtune/torchtune_import.h"
#include "tools/foreign/traces/astra_sim/dimension_collectives.h"
#include "tools/foreign/traces/astra_sim/system_file.h"
#include "tools/foreign/traces/astra_sim/workload_text.h"
#include "tools/foreign/traces/chakra/chakra_read.h"
#include "tools/foreign/traces/goal/goal.h"
#include "tools/foreign/traces/kineto/kineto_read.h"
#include "tools/import_machine.h"
#include "topology/files/cluster_file.h"
#include "topology/view/cluster_view.h"
#include "workloads/networks/hf_model.h"
#include "workloads/networks/parameter_text.h"

namespace rehearse {
namespace {

Imported ImportMachineFile(const std::string& kind, const ImportRequest& request) {
  const ImportedCluster machine = ImportMachine(kind, request.file(), request.device);
  const uint32_t devices = machine.cluster->device_count();
  return {ClusterFileText(*machine.cluster),
          fmt::format("a machine of {} device{}", devices, devices == 1 ? "" : "s"),
          machine.remarks};
}

std::string ClusterSizeText(const Cluster& cluster) {
  const uint32_t nodes = cluster.node_count();
  const uint32_t devices = cluster.device_count();
  return fmt::format("a cluster of {} node{} with {} device{}", nodes, nodes == 1 ? "" : "s",
                     devices, devices == 1 ? "" : "s");
}

Imported ImportFabricFile(const std::string& kind, const ImportRequest& request) {
  const ImportedCluster fabric = ImportFabric(kind, request.file(), request.node, request.hosts);
  return {ClusterFileText(*fabric.cluster), ClusterSizeText(*fabric.cluster), fabric.remarks};
}

Imported ImportNccl(const ImportRequest& request) { return ImportMachineFile("nccl", request); }
Imported ImportSmi(const ImportRequest& request) { return ImportMachineFile("smi", request); }
Imported ImportHwloc(const ImportRequest& request) { return ImportMachineFile("lstopo", request); }
Imported ImportInfrastructure(const ImportRequest& request) {
  const ImportedCluster all = ImportMachine("infragraph", request.file(), request.device);
  return {ClusterFileText(*all.cluster), ClusterSizeText(*all.cluster), all.remarks};
}
Imported ImportTopologyConf(const ImportRequest& request) {
  return ImportFabricFile("slurm", request);
}
Imported ImportSubnet(const ImportRequest& request) {
  return ImportFabricFile("ibnetdiscover", request);
}

Imported ImportHf(const ImportRequest& request) {
  const JsonDocument document =
      JsonDocument::FromFile(request.file(), {.numbers = JsonNumbers::kOfPython});
  const HfModel model = ReadHfConfig(document.Root());
  // Cards count what predicts further ahead apart.
  GptModel without = model.model;
  without.predict_ahead = 0;
  std::string what = fmt::format("a model of {} parameters", ParameterText(without.Parameters()));
  const double ahead = model.model.Parameters() - without.Parameters();
  if (ahead > 0)
    what += fmt::format(" and {} in a layer that predicts further ahead", ParameterText(ahead));
  return {model.keys.dump(2) + "\n", what, model.remarks};
}

std::string RanksText(uint32_t ranks);
RunSettings SettingsOf(const ImportRequest& request);

Imported ImportTraces(const ImportRequest& request);

Imported ImportAstraWorkloadFile(const ImportRequest& request, uint32_t ranks) {
  if (!request.cluster.empty()) ranks = ReadClusterArgument(request.cluster, {})->device_count();
  WorkloadSettings settings;
  for (const RunSetting& setting : SettingsOf(request))
    settings.emplace_back(setting.name, setting.value);
  ImportedWorkload workload = ImportAstraWorkload(ReadInputFile(request.file()),
                                                  InputName(request.file()), ranks, settings);
  return {std::move(workload.text), "a schedule of " + RanksText(workload.ranks),
          std::move(workload.remarks)};
}

Imported ImportAstraWorkloadAlone(const ImportRequest& request) {
  return ImportAstraWorkloadFile(request, 0);
}

// What the files given to `import astra-sim` are, in any order.
struct AstraFiles {
  std::string network;
  std::string system;
  std::vector<std::string> workload;  // a text, or Chakra's traces
};

bool IsAstraNetwork(const std::string& path, const std::string& text) {
  if (path.ends_with(".yml") || path.ends_with(".yaml")) return true;
  const size_t first = text.find_first_not_of(" \t\r\n");
  if (first == std::string::npos) return false;
  return (text[first] >= '0' && text[first] <= '9') ||
         (text[first] == '{' && text.find("\"logical-dims\"") != std::string::npos);
}

AstraFiles SortAstraFiles(const std::vector<std::string>& paths) {
  AstraFiles files;
  for (const std::string& path : paths) {
    std::error_code ignored;  // what cannot be examined cannot be read either
    if (path.ends_with(".et") || std::filesystem::is_directory(path, ignored)) {
      files.workload.push_back(path);
      continue;
    }
    const std::string text = ReadInputFile(path);
    const bool is_json =
        path.ends_with(".json") && IsAstraSystem(JsonDocument::FromText(text, path).Root());
    std::string* const of_kind = is_json                      ? &files.system
                                 : IsAstraNetwork(path, text) ? &files.network
                                                              : nullptr;
    if (of_kind == nullptr) {
      files.workload.push_back(path);
      continue;
    }
    if (!of_kind->empty())
      throw Error(
          fmt::format("found two {}: {} and {}", is_json ? "systems" : "networks", *of_kind, path));
    *of_kind = path;
  }
  return files;
}

// Collectives of all ranks, one after the other, as --set names them: all-reduce=1MiB. Nothing
// where it names none.
std::optional<Imported> CollectivesOfSettings(const RunSettings& settings, uint32_t ranks) {
  nlohmann::ordered_json ops = nlohmann::ordered_json::array();
  for (const auto& [name, value] : settings) {
    constexpr const char* kKinds[] = {"all-reduce", "all-gather", "reduce-scatter", "all-to-all"};
    if (std::find(std::begin(kKinds), std::end(kKinds), name) == std::end(kKinds)) continue;
    ops.push_back(
        {{"name", name}, {"collective", name}, {"communicator", "all"}, {"bytes", value}});
    if (ops.size() > 1) ops.back()["after"] = ops.size() - 2;
  }
  if (ops.empty()) return std::nullopt;
  const nlohmann::ordered_json schedule = {{"schema", "rehearse.schedule.v1"},
                                           {"name", "collectives"},
                                           {"ranks", ranks},
                                           {"communicators", {{{"name", "all"}, {"ranks", "all"}}}},
                                           {"ops", ops}};
  return Imported{schedule.dump(), "a schedule of " + RanksText(ranks), {}};
}

// A workload whose collectives go by the network's dimensions.
Imported ImportAstraStep(const ImportRequest& request, const AstraFiles& files) {
  Imported imported;
  ImportRequest workload = request;
  workload.files = files.workload;
  const bool is_one = files.workload.size() == 1 && !files.workload.front().ends_with(".et") &&
                      !std::filesystem::is_directory(files.workload.front());
  const bool is_text = is_one && IsAstraWorkload(ReadInputFile(files.workload.front()));
  const std::vector<AstraDimension> dimensions =
      ReadAstraDimensions(ReadInputFile(files.network), InputName(files.network));
  uint32_t npus = 1;
  for (const AstraDimension& dimension : dimensions) npus *= dimension.size;
  imported = files.workload.empty() ? CollectivesOfSettings(SettingsOf(request), npus).value()
             : is_text              ? ImportAstraWorkloadFile(workload, npus)
                                    : ImportTraces(workload);
  const JsonDocument document = JsonDocument::FromText(
      imported.text,
      files.workload.empty() ? "--set" : "the schedule of " + files.workload.front());
  Schedule schedule = ReadSchedule(document.Root());
  AstraSystem system;
  if (!files.system.empty()) {
    const JsonDocument json = JsonDocument::FromFile(files.system);
    system = ReadAstraSystem(json.Root());
  }
  imported.remarks.insert(imported.remarks.end(), system.remarks.begin(), system.remarks.end());
  GoByDimension(dimensions, system, &schedule, &imported.remarks);
  imported.text = WriteSchedule(std::move(schedule), ReadScheduleTitle(document.Root()));
  imported.what += " whose collectives go by dimension";
  return imported;
}

Imported ImportAstra(const ImportRequest& request) {
  const AstraFiles files = SortAstraFiles(request.files);
  const bool has_step = !files.workload.empty() || CollectivesOfSettings(SettingsOf(request), 1);
  if (has_step && !files.network.empty()) return ImportAstraStep(request, files);
  if (!files.workload.empty()) {
    ImportRequest workload = request;
    workload.files = files.workload;
    if (!files.system.empty())
      throw Error("a system says how collectives go on a network; expected the network, too");
    return ImportAstraWorkloadFile(workload, 0);
  }
  if (files.network.empty())
    throw Error(
        "expected the network of ASTRA-sim (network.yml), alone or with its system.json and "
        "a workload");
  ImportRequest network = request;
  network.files = {files.network};
  Imported imported = ImportMachineFile("astra-sim", network);
  if (!files.system.empty()) {
    const JsonDocument json = JsonDocument::FromFile(files.system);
    ReadAstraSystem(json.Root());
    imported.remarks.emplace_back(
        "how collectives go by dimension is part of a schedule, not of a cluster: it is in what "
        "import astra-sim makes of the network, the system and a workload (NAME.*.et, a text, or "
        "--set all-reduce=1MiB)");
  }
  return imported;
}

std::string RanksText(uint32_t ranks) {
  return fmt::format("{} rank{}", ranks, ranks == 1 ? "" : "s");
}

Imported ImportTraces(const ImportRequest& request) {
  ImportedChakra traces = ImportChakra(request.files);
  return {std::move(traces.text), "a schedule of " + RanksText(traces.ranks), traces.remarks};
}

Imported ImportGoal(const ImportRequest& request) {
  const std::string file = InputName(request.file());
  Imported imported;
  ReadOptions options;
  options.size = InputSize::kLarge;
  Schedule schedule =
      ReadGoal(ReadInputFile(request.file(), "file", options), file, &imported.remarks);
  imported.what = "a schedule of " + RanksText(schedule.ranks());
  const std::string title = VisibleText(std::filesystem::path(request.file()).stem().string());
  imported.text = WriteSchedule(std::move(schedule), {title, ""});
  return imported;
}

Imported ProfileOf(const ImportRequest& request,
                   ImportedKineto (*import)(const std::vector<std::string>&, KinetoResult,
                                            const KinetoOptions&)) {
  ImportedKineto traces =
      import(request.files, request.as_schedule ? KinetoResult::kSchedule : KinetoResult::kTimeline,
             {request.communication, request.step_name, request.step, request.extrapolate});
  const std::string what =
      request.as_schedule
          ? "a schedule"
          : fmt::format("a timeline of {} step{}", traces.steps, traces.steps == 1 ? "" : "s");
  return {std::move(traces.text), what + " of " + RanksText(traces.ranks), traces.remarks};
}

Imported ImportProfile(const ImportRequest& request) { return ProfileOf(request, ImportKineto); }
Imported ImportNsysExport(const ImportRequest& request) { return ProfileOf(request, ImportNsys); }

// The tables, without what launchers print around them, in-place figures, and noise in their rows.
Imported ImportNcclTests(const ImportRequest& request) {
  const std::string file = InputName(request.file());
  const NcclLog log = ReadNcclLog(ReadInputFile(request.file()), file, std::nullopt, std::nullopt);
  Imported imported;
  imported.remarks = log.remarks;
  size_t tables = 0;
  size_t sizes = 0;
  for (const NcclTable& table : log.tables) {
    if (!table.kind || !table.ranks) {
      imported.remarks.push_back(
          fmt::format("line {}: a table that does not say {} is left out{}", table.line,
                      table.kind ? "how many ranks there are" : "which collective it is about",
                      table.why_no_kind.empty() ? "" : ": " + table.why_no_kind));
      continue;
    }
    if (tables > 0) imported.text += "\n";
    imported.text += WriteNcclTable(
        table, 0,
        {fmt::format("{} ranks", *table.ranks), fmt::format("from {}:{}", file, table.line)});
    ++tables;
    sizes += table.rows.size();
  }
  if (tables == 0) {
    throw Error({file, 0, ""},
                "no table says which collective and how many ranks it is about; rehearse compare "
                "takes them with --kind and --ranks");
  }
  imported.what = fmt::format("{} table{} of {} size{}", tables, tables == 1 ? "" : "s", sizes,
                              sizes == 1 ? "" : "s");
  return imported;
}

Imported TextOfJobs(const ImportedJobs& jobs) {
  return {JobTraceText(jobs.trace), jobs.what, jobs.trace.notes};
}
Imported JobsOf(const ImportRequest& request,
                ImportedJobs (*read)(const std::string& path, const JobWindow& window)) {
  return TextOfJobs(read(request.file(), request.jobs));
}
Imported ImportPhilly(const ImportRequest& request) { return JobsOf(request, ReadPhilly); }
Imported ImportPai(const ImportRequest& request) {
  return TextOfJobs(ReadPai(request.files, request.jobs));
}
Imported ImportOpenb(const ImportRequest& request) { return JobsOf(request, ReadOpenbPods); }
Imported ImportHelios(const ImportRequest& request) { return JobsOf(request, ReadHelios); }
Imported ImportAcme(const ImportRequest& request) { return JobsOf(request, ReadAcme); }

RunSettings SettingsOf(const ImportRequest& request) {
  RunSettings settings;
  for (const std::string& setting : request.settings) {
    const size_t name = std::min(setting.find_first_not_of('-'), setting.size());
    const size_t equals = setting.find('=');
    if (equals == std::string::npos || equals <= name) {
      throw Error(fmt::format("--set: found \"{}\", expected NAME=VALUE, such as vocab-size=50257",
                              setting));
    }
    settings.push_back({setting.substr(name, equals - name), setting.substr(equals + 1)});
  }
  return settings;
}

Imported OfScenario(const ImportedScenario& scenario) {
  return {scenario.text,
          fmt::format("a scenario of {}, {} parameters", RanksText(scenario.ranks),
                      ParameterText(scenario.parameters)),
          scenario.remarks};
}

// What `read` makes of a file's text.
Imported ImportRun(const ImportRequest& request,
                   ImportedScenario (*read)(std::string_view text, const std::string& file,
                                            const std::string& cluster,
                                            const RunSettings& settings)) {
  const ImportedScenario scenario =
      read(ReadInputFile(request.file()), request.file(), request.cluster, SettingsOf(request));
  return OfScenario(scenario);
}
// The model of --model-config: a config.json, or a name.
std::optional<NamedModel> GivenModel(const std::string& given) {
  if (given.empty()) return std::nullopt;
  if (InputExists(given)) {
    const JsonDocument document =
        JsonDocument::FromFile(given, {.numbers = JsonNumbers::kOfPython});
    HfModel read = ReadHfConfig(document.Root());
    return NamedModel{std::move(read.keys), std::move(read.remarks),
                      std::filesystem::path(given).stem().string()};
  }
  if (std::optional<NamedModel> known = FindModelByName(given)) return known;
  throw Error(
      fmt::format("--model-config: there is no file {}, nor a model of this name", Quoted(given)));
}

// A file that a run's file names: beside it, or in a folder above, where such runs are started.
// Nothing that is no JSON, Python or script by its name.
std::optional<std::string> TextBeside(const std::string& file, const std::string& name) {
  namespace fs = std::filesystem;
  const fs::path path = name;
  constexpr const char* kExtensions[] = {".json", ".py", ".sh", ".slurm", ".sbatch", ".env"};
  const bool is_known = std::find(std::begin(kExtensions), std::end(kExtensions),
                                  path.extension()) != std::end(kExtensions);
  if (file == kStandardInput || path.is_absolute() || !is_known) return std::nullopt;
  std::error_code error;
  fs::path folder = fs::absolute(file, error).parent_path();
  constexpr int kMostFolders = 16;
  for (int i = 0; !error && i < kMostFolders; ++i) {
    const fs::path found = folder / path;
    if (fs::is_regular_file(found, error)) return ReadInputFile(found.string());
    if (folder == folder.parent_path()) break;
    folder = folder.parent_path();
    error.clear();
  }
  return std::nullopt;
}

// What `read` makes of a file whose model, or part, stands elsewhere.
Imported ImportWithModel(const ImportRequest& request,
                         ImportedScenario (*read)(const RunSource& source)) {
  const std::string text = ReadInputFile(request.file());
  RunSource source;
  source.text = text;
  source.file = request.file();
  source.cluster = request.cluster;
  source.settings = SettingsOf(request);
  source.model = GivenModel(request.model_config);
  source.beside = [&](const std::string& name) { return TextBeside(request.file(), name); };
  return OfScenario(read(source));
}
Imported ImportAxolotlRun(const ImportRequest& request) {
  return ImportWithModel(request, ImportAxolotl);
}
Imported ImportTorchtuneRun(const ImportRequest& request) {
  return ImportWithModel(request, ImportTorchtune);
}
Imported ImportAccelerateRun(const ImportRequest& request) {
  return ImportWithModel(request, ImportAccelerate);
}
Imported ImportNemoRun(const ImportRequest& request) {
  return ImportWithModel(request, ImportNemo);
}
Imported ImportDeepSpeedRun(const ImportRequest& request) {
  return ImportWithModel(request, ImportDeepSpeed);
}

Imported ImportMegatronRun(const ImportRequest& request) {
  const RunSettings settings = SettingsOf(request);
  if (!request.dry_run) {
    const auto beside = [&](const std::string& name) { return TextBeside(request.file(), name); };
    return OfScenario(ImportMegatron(ReadInputFile(request.file()), request.file(), request.cluster,
                                     settings, beside));
  }
  const ImportedScenario scenario =
      ImportMegatron(DryRunScript(request.file(), settings), request.file() + " (dry run)",
                     request.cluster, settings);
  return OfScenario(scenario);
}
Imported ImportMaxTextRun(const ImportRequest& request) {
  return ImportRun(request, ImportMaxText);
}
Imported ImportNanotronRun(const ImportRequest& request) {
  return ImportRun(request, ImportNanotron);
}
Imported ImportTorchtitanRun(const ImportRequest& request) {
  return ImportRun(request, ImportTorchtitan);
}

// The cluster that is named, with the rings that are in the file.
Imported ImportGraph(const ImportRequest& request) {
  const std::string file = InputName(request.file());
  if (request.cluster.empty()) {
    throw Error({file, 0, ""},
                "says which rings there are, but not on which machine; expected --cluster with the "
                "machine, such as dgx-a100 or what import nccl made");
  }
  const NcclGraphRings graph = ReadNcclGraph(ReadInputFile(request.file()), file);
  nlohmann::json cluster = ClusterObjectOf(request.cluster);
  cluster["rings"] = graph.rings;
  nlohmann::json movable = cluster;
  if (IsClusterFile(request.cluster)) {
    constexpr const char* kPaths[] = {"calibration", "device_points"};
    MakeAbsolute(&movable, kPaths, request.cluster);
  }
  // A path in the cluster's own file still holds if the result is written beside that file.
  const bool stays = IsClusterFile(request.cluster) && !IsStandardOutput(request.output) &&
                     InOneFolder(request.cluster, request.output);
  Imported imported = {(stays ? cluster : movable).dump(2) + "\n", "", graph.remarks};
  const JsonDocument document = JsonDocument::FromValue(std::move(movable), {file, 0, ""});
  ReadCluster(document.Root());  // refuses rings of other machines
  imported.what =
      fmt::format("{} rings of {} devices", graph.rings.size(), graph.rings.front().size());
  if (graph.gigabytes_per_second > 0) {
    imported.remarks.insert(
        imported.remarks.begin(),
        fmt::format("NCCL assumes {:g} GB/s in each; here the bandwidth follows from the links",
                    graph.gigabytes_per_second));
  }
  return imported;
}

constexpr ImportKind kKinds[] = {
    {"nccl", "NCCL's topology file (NCCL_TOPO_DUMP_FILE), or RCCL's", "a cluster file",
     ImportKind::kDevice, ImportNccl},
    {"nccl-graph", "NCCL's rings (NCCL_GRAPH_DUMP_FILE), on a --cluster", "a cluster file",
     ImportKind::kCluster, ImportGraph},
    {"smi", "the output of nvidia-smi topo -m", "a cluster file", ImportKind::kDevice, ImportSmi},
    {"lstopo", "hwloc's XML (lstopo --of xml)", "a cluster file", ImportKind::kDevice, ImportHwloc},
    {"slurm", "Slurm's topology.conf (topology/tree, topology/block) or topology.yaml",
     "a cluster file", ImportKind::kNode | ImportKind::kHosts, ImportTopologyConf},
    {"ibnetdiscover", "the output of ibnetdiscover, or a net of ibsim", "a cluster file",
     ImportKind::kNode | ImportKind::kHosts, ImportSubnet},
    {"infragraph", "an infrastructure of Keysight's InfraGraph (YAML or JSON)", "a cluster file",
     ImportKind::kDevice, ImportInfrastructure},
    {"astra-sim",
     "a network of ASTRA-sim (network.yml, with or without system.json) or SimAI, link by link; "
     "or a workload, which with a network and a system.json goes by dimension",
     "a cluster file, or a schedule",
     ImportKind::kFiles | ImportKind::kDevice | ImportKind::kCluster | ImportKind::kSettings,
     ImportAstra},
    {"astra-workload", "a workload of ASTRA-sim 1.0, SimAI or aicb (text)", "a schedule",
     ImportKind::kCluster | ImportKind::kSettings, ImportAstraWorkloadAlone},
    {"hf", "the config.json of a decoder on Hugging Face", "a model file", ImportKind::kNone,
     ImportHf},
    {"megatron",
     "Megatron-LM's command: a script, a list of arguments, its log, a test's model_config.yaml, "
     "or a "
     "recipe of NeMo or gpt-neox (YAML)",
     "a scenario",
     ImportKind::kRun | ImportKind::kCluster | ImportKind::kSettings | ImportKind::kDryRun,
     ImportMegatronRun},
    {"torchtitan", "a torchtitan job's TOML, or its registry of jobs in Python", "a scenario",
     ImportKind::kRun | ImportKind::kCluster | ImportKind::kSettings, ImportTorchtitanRun},
    {"maxtext", "MaxText's base.yml, or the file of one of its models", "a scenario",
     ImportKind::kRun | ImportKind::kCluster | ImportKind::kSettings, ImportMaxTextRun},
    {"nanotron", "a configuration of nanotron (YAML)", "a scenario",
     ImportKind::kRun | ImportKind::kCluster | ImportKind::kSettings, ImportNanotronRun},
    {"nemo", "a recipe of Megatron-Bridge or NeMo 2.0 (Python)", "a scenario",
     ImportKind::kRun | ImportKind::kCluster | ImportKind::kSettings | ImportKind::kModel,
     ImportNemoRun},
    {"axolotl", "a run of axolotl (YAML)", "a scenario",
     ImportKind::kRun | ImportKind::kCluster | ImportKind::kSettings | ImportKind::kModel,
     ImportAxolotlRun},
    {"torchtune", "a recipe of torchtune (YAML)", "a scenario",
     ImportKind::kRun | ImportKind::kCluster | ImportKind::kSettings | ImportKind::kModel,
     ImportTorchtuneRun},
    {"accelerate", "a configuration of accelerate (YAML), with the model beside", "a scenario",
     ImportKind::kRun | ImportKind::kCluster | ImportKind::kSettings | ImportKind::kModel,
     ImportAccelerateRun},
    {"deepspeed", "DeepSpeed's JSON, with the model beside", "a scenario",
     ImportKind::kRun | ImportKind::kCluster | ImportKind::kSettings | ImportKind::kModel,
     ImportDeepSpeedRun},
    {"chakra", "MLCommons' execution traces NAME.RANK.et (or .json), or a folder of them",
     "a schedule", ImportKind::kFiles, ImportTraces},
    {"goal", "what LogGOPSim and htsim play (GOAL, as text)", "a schedule", ImportKind::kNone,
     ImportGoal},
    {"kineto", "PyTorch's profiles (.json, .json.gz), one per rank, or a folder of them",
     "a timeline, or a schedule", ImportKind::kFiles | ImportKind::kProfile, ImportProfile},
    {"nsys", "Nsight Systems' reports (nsys export --type sqlite), or a folder of them",
     "a timeline, or a schedule", ImportKind::kFiles | ImportKind::kProfile, ImportNsysExport},
    {"nccl-tests", "what all_reduce_perf or another of nccl-tests printed",
     "their tables, for compare", ImportKind::kNone, ImportNcclTests},
    {"philly", "the jobs of Microsoft's Philly (cluster_job_log)", "a trace of jobs",
     ImportKind::kJobs, ImportPhilly},
    {"pai",
     "the jobs of Alibaba's PAI of 2020: pai_task_table.csv, then pai_job_table.csv if it is there",
     "a trace of jobs", ImportKind::kFiles | ImportKind::kJobs, ImportPai},
    {"openb", "the pods of Alibaba's trace of 2023 (openb_pod_list_default.csv)", "a trace of jobs",
     ImportKind::kJobs, ImportOpenb},
    {"helios", "the jobs of SenseTime's Helios (cluster_log.csv)", "a trace of jobs",
     ImportKind::kJobs, ImportHelios},
    {"acme", "the jobs of Shanghai AI Laboratory's Acme (trace_seren.csv, trace_kalos.csv)",
     "a trace of jobs", ImportKind::kJobs, ImportAcme},
};

}  // namespace

std::span<const ImportKind> ImportKinds() { return kKinds; }

const ImportKind* FindImportKind(const std::string& name) {
  for (const ImportKind& kind : kKinds)
    if (name == kind.name) return &kind;
  return nullptr;
}

}  // namespace rehearse

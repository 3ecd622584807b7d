#include "tools/foreign_kind.h"

#include <algorithm>
#include <array>
#include <filesystem>
#include <vector>

#include "sim/base/error.h"
#include "sim/base/input_file.h"
#include "sim/base/text_stream.h"
#include "tools/foreign/logs/nccl_tests/nccl_log.h"
#include "tools/foreign/machines/smi/link_listing.h"
#include "tools/foreign/traces/astra_sim/workload_text.h"
#include "tools/foreign/traces/goal/goal.h"

namespace rehearse {
namespace {

// Enough for the comments, licences and shell variables that files begin with.
constexpr size_t kHead = size_t{64} << 10;

bool Has(std::string_view text, std::string_view part) {
  return text.find(part) != std::string_view::npos;
}

bool HasAny(std::string_view text, std::initializer_list<std::string_view> parts) {
  return std::any_of(parts.begin(), parts.end(),
                     [&](std::string_view part) { return Has(text, part); });
}

bool EndsWithAny(std::string_view name, std::initializer_list<std::string_view> endings) {
  return std::any_of(endings.begin(), endings.end(),
                     [&](std::string_view ending) { return name.ends_with(ending); });
}

bool HasAll(std::string_view text, std::initializer_list<std::string_view> parts) {
  return std::all_of(parts.begin(), parts.end(),
                     [&](std::string_view part) { return Has(text, part); });
}

// Arguments that every training with Megatron-LM has, and the calls that begin one.
bool IsMegatron(std::string_view head) {
  return HasAny(head, {"--num-layers", "--hidden-size", "--num-attention-heads",
                       "--micro-batch-size", "--tensor-model-parallel-size", "pretrain_gpt.py",
                       "--train-iters", "MODEL_ARGS:", "- arguments -"});
}

std::optional<std::string> KindOfXml(std::string_view head) {
  if (HasAny(head, {"<topology", "<!DOCTYPE topology"})) return "lstopo";
  if (Has(head, "<graphs")) return "nccl-graph";
  if (Has(head, "<system")) return "nccl";
  return std::nullopt;
}

std::optional<std::string> KindOfJson(std::string_view name, std::string_view head) {
  if (HasAny(head, {"\"traceEvents\"", "\"deviceProperties\""})) return "kineto";
  if (Has(head, "\"instances\"") && Has(head, "\"devices\"")) return "infragraph";
  if (HasAll(head, {"\"link_type\"", "\"links\"", "\"bdf\""})) return "smi";
  if (HasAny(head, {"\"model_type\"", "\"architectures\""})) return "hf";
  // Large traces of profilers begin with what the run was called.
  if (EndsWithAny(name, {".pt.trace.json", ".pt.trace.json.gz"})) return "kineto";
  if (HasAny(head, {"\"zero_optimization\"", "\"train_micro_batch_size_per_gpu\""}) &&
      !HasAny(head, {"num_layers", "num-layers"}))
    return "deepspeed";
  return std::nullopt;
}

std::optional<std::string> KindOfYaml(std::string_view head) {
  if (HasAny(head, {"base_emb_dim", "base_num_decoder_layers", "ici_fsdp_parallelism"}))
    return "maxtext";
  if (HasAll(head, {"model_config:", "\nparallelism:", "\ntokens:"})) return "nanotron";
  if (HasAll(head, {"base_model:", "micro_batch_size:"})) return "axolotl";
  if (Has(head, "_component_: torchtune.")) return "torchtune";
  if (HasAny(head, {"distributed_type:", "compute_environment:"})) return "accelerate";
  if (HasAll(head, {"npus_count:", "topology:"})) return "astra-sim";
  if (Has(head, "instances:") && Has(head, "devices:")) return "infragraph";
  if (HasAny(head, {"topology: ", "- topology:"}) && HasAny(head, {"switches:", "block"}))
    return "slurm";
  return "megatron";
}

// Tables of jobs, by the names of their columns; one of them comes without.
std::optional<std::string> KindOfJobs(std::string_view head) {
  const std::string_view line = head.substr(0, head.find('\n'));
  if (HasAll(line, {"gpu_num", "submit_time"})) return Has(line, ",vc,") ? "helios" : "acme";
  if (HasAll(line, {"num_gpu", "creation_time"})) return "openb";
  constexpr ptrdiff_t kCommasOfTasks = 9;
  if (HasAll(line, {"job_name", "plan_gpu"}) ||
      (std::count(line.begin(), line.end(), ',') == kCommasOfTasks &&
       HasAny(line, {",Terminated,", ",Failed,", ",Running,", ",Waiting,"})))
    return "pai";
  return std::nullopt;
}

std::optional<std::string> KindOfText(std::string_view name, std::string_view head) {
  if (LooksLikeNcclLog(head)) return "nccl-tests";
  if (IsAstraWorkload(head)) return "astra-workload";
  if (IsGoal(head)) return "goal";
  if (HasAny(head, {"SwitchName=", "BlockName="})) return "slurm";
  if (HasAny(head, {"switchguid", "\nSwitch\t", "\nSwitch ", "\nCa\t"})) return "ibnetdiscover";
  if (EndsWithAny(name, {".toml"})) return "torchtitan";
  if (EndsWithAny(name, {".py"}) &&
      HasAny(head, {"torchtitan", "JobConfig", "TransformerModelArgs", "ModelArgs"}))
    return "torchtitan";
  if (EndsWithAny(name, {".py"}) &&
      HasAny(head, {"megatron.bridge", "nemo.collections.llm", "nemo_run"}))
    return "nemo";
  if (EndsWithAny(name, {".yaml", ".yml"})) return KindOfYaml(head);
  if (IsMegatron(head)) return "megatron";
  if (Has(head, "GPU0") && HasAny(head, {"GPU1", "CPU Affinity"})) return "smi";
  if (HasAny(head, {"LINK TYPE TABLE", "Link Type between"}) || IsNvLinkStatus(head)) return "smi";
  return std::nullopt;
}

std::string HeadOf(const std::string& path) {
  TextStream stream(path);
  std::string head;
  for (; head.size() < kHead && !stream.AtEnd(); stream.Next()) head += stream.Current();
  return head;
}

// What the first file of the folder is that is anything.
std::optional<std::string> KindOfFolder(const std::string& path) {
  std::vector<std::string> files;
  std::error_code error;
  if (std::filesystem::exists(path + "/timeline.json", error)) return std::nullopt;  // our own
  for (std::filesystem::directory_iterator at(path, error), end; !error && at != end;
       at.increment(error))
    if (at->is_regular_file(error)) files.push_back(at->path().string());
  std::sort(files.begin(), files.end());
  for (const std::string& file : files)
    if (std::optional<std::string> kind = ForeignKind(file)) return kind;
  return std::nullopt;
}

constexpr std::array<const char*, 7> kMachines = {
    "nccl", "smi", "lstopo", "slurm", "ibnetdiscover", "infragraph", "astra-sim"};
constexpr std::array<const char*, 9> kRuns = {"nemo",      "megatron",   "torchtitan",
                                              "maxtext",   "nanotron",   "axolotl",
                                              "torchtune", "accelerate", "deepspeed"};
constexpr std::array<const char*, 2> kProfiles = {"kineto", "nsys"};

}  // namespace

std::optional<std::string> ForeignKind(const std::string& path) {
  std::error_code error;
  if (path == kStandardInput) return std::nullopt;
  if (std::filesystem::is_directory(path, error)) return KindOfFolder(path);
  // What cannot be read again, such as a pipe, is not looked into.
  if (!std::filesystem::is_regular_file(path, error)) return std::nullopt;
  try {
    return ForeignKindOf(path, HeadOf(path));
  } catch (const Error&) {
    return std::nullopt;  // whoever reads it says why
  }
}

std::optional<std::string> ForeignKindOf(std::string_view name, std::string_view head) {
  if (head.starts_with("SQLite format 3")) return "nsys";
  if (EndsWithAny(name, {".et"})) return "chakra";
  const size_t first = head.find_first_not_of(" \t\r\n");
  if (first == std::string_view::npos) return std::nullopt;
  if (head[first] == '<') return KindOfXml(head);
  if (head[first] == '{') return KindOfJson(name, head);
  if (head[first] == '[' && HasAll(head, {"\"link_type\"", "\"links\"", "\"bdf\""})) return "smi";
  if (head[first] == '[' && HasAll(head, {"\"jobid\"", "\"submitted_time\"", "\"attempts\""}))
    return "philly";
  if (std::optional<std::string> jobs = KindOfJobs(head)) return jobs;
  return KindOfText(name, head);
}

bool IsForeignMachine(const std::string& kind) {
  return std::find(kMachines.begin(), kMachines.end(), kind) != kMachines.end();
}

bool IsForeignRun(const std::string& kind) {
  return std::find(kRuns.begin(), kRuns.end(), kind) != kRuns.end();
}

bool IsForeignProfile(const std::string& kind) {
  return std::find(kProfiles.begin(), kProfiles.end(), kind) != kProfiles.end();
}

}  // namespace rehearse

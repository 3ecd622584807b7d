// rehearse import KIND FILE: what other tools write, as a file that the other commands read.
#include <fmt/format.h>

#include "sim/base/error.h"
#include "sim/base/input_file.h"
#include "sim/base/known_names.h"
#include "sim/base/output_file.h"
#include "sim/base/visible_text.h"
#include "tools/command.h"
#include "tools/foreign_kind.h"
#include "tools/import_kinds.h"
#include "tools/import_machine.h"
#include "tools/measured_step.h"
#include "tools/number_options.h"
#include "topology/presets/presets.h"

namespace rehearse {
namespace {

namespace po = boost::program_options;

// Lists the kinds that have an option: "nccl, smi, lstopo".
std::string KindsWith(ImportKind::Options option) {
  std::string names;
  for (const ImportKind& kind : ImportKinds())
    if (kind.Has(option)) names += (names.empty() ? "" : ", ") + std::string(kind.name);
  return names;
}

// What the first argument names; a file there, in front of the others, is of the kind that it
// shows.
const ImportKind& TakeKind(const std::string& first, std::vector<std::string>* files) {
  std::string name = first;
  if (FindImportKind(name) == nullptr) {
    if (const std::optional<std::string> found = ForeignKind(first)) {
      name = *found;
      files->insert(files->begin(), first);
    } else if (InputExists(first)) {
      throw Error(
          {first, 0, ""},
          "what this file is cannot be told; say it: rehearse import KIND " + VisibleText(first));
    } else if (first.find_first_of("/.") != std::string::npos) {  // no kind has them in its name
      throw Error({first, 0, ""}, "no such file, and no kind of import");
    }
  }
  if (const ImportKind* const kind = FindImportKind(name)) return *kind;
  std::vector<std::string> names;
  for (const ImportKind& kind : ImportKinds()) names.emplace_back(kind.name);
  throw Error(fmt::format("unknown kind of import \"{}\"{}", name, KnownNames(name, names)));
}

// The value of an option that only some kinds have; "" where it is not given.
std::string ValueFor(const ImportKind& kind, ImportKind::Options option, const char* name,
                     const char* of_what, const po::variables_map& values) {
  if (values.count(name) == 0) return "";
  if (!kind.Has(option))
    throw Error(fmt::format("--{} goes with {} ({})", name, of_what, KindsWith(option)));
  std::string value = values[name].as<std::string>();
  if (value.empty()) throw Error(fmt::format("--{}: found \"\", expected a {}", name, name));
  return value;
}

// Which jobs of a trace of jobs are wanted.
JobWindow ReadJobWindow(const ImportKind& kind, const po::variables_map& values) {
  for (const char* option : {"first", "from", "to"}) {
    if (values.count(option) > 0 && !kind.Has(ImportKind::kJobs)) {
      throw Error(
          fmt::format("--{} goes with a trace of jobs ({})", option, KindsWith(ImportKind::kJobs)));
    }
  }
  JobWindow window;
  if (values.count("first") > 0) window.first = values["first"].as<uint32_t>();
  if (values.count("from") > 0) window.from_day = values["from"].as<double>();
  if (values.count("to") > 0) window.to_day = values["to"].as<double>();
  if (window.to_day && *window.to_day <= window.from_day) {
    throw Error(fmt::format("--to: found {}, expected more than --from, {}", *window.to_day,
                            window.from_day));
  }
  return window;
}

std::string ResultText(const std::string& output, const ImportRequest& request,
                       const Imported& imported) {
  const std::string from = request.files.size() > 1 ? fmt::format("{} files", request.files.size())
                                                    : InputName(request.file());
  std::string text =
      fmt::format("{}   {}, from {}\n",
                  IsStandardOutput(output) ? std::string("standard output") : VisibleText(output),
                  imported.what, VisibleText(from));
  if (imported.remarks.empty()) return text;
  text +=
      "\n"
      "What the file leaves open, or what was left out\n";
  for (const std::string& remark : imported.remarks)
    text += fmt::format("  {}\n", VisibleText(remark));
  return text;
}

}  // namespace

CommandSyntax ImportSyntax() {
  CommandSyntax syntax;
  syntax.usage = "rehearse import [KIND] FILE... [options]";
  syntax.explanation =
      "Reads what other tools write, and writes it as a file that the other commands read. What "
      "was\n"
      "not understood is listed, not guessed. KIND says what FILE is, where that cannot be told "
      "from\n"
      "what it holds:\n";
  for (const ImportKind& kind : ImportKinds())
    syntax.explanation +=
        fmt::format("  {:13} {}; becomes {}\n", kind.name, kind.what, kind.result);
  syntax.explanation +=
      "Examples:\n"
      "  rehearse import topo.xml -o cluster.json\n"
      "  rehearse collective all-reduce --cluster cluster.json\n"
      "  nvidia-smi topo -m | rehearse import smi - --device h100 -o cluster.json\n"
      "  lstopo --of xml | rehearse import lstopo - -o cluster.json\n"
      "  rehearse import slurm topology.conf --node dgx-a100 -o cluster.json\n"
      "  ibnetdiscover | rehearse import ibnetdiscover - -o cluster.json\n"
      "  rehearse import infragraph infra.yaml --device h100 -o cluster.json\n"
      "  rehearse import nccl-graph graph.xml --cluster cluster.json -o with-rings.json\n"
      "  rehearse import megatron train.sh --cluster dgx-h100:nodes=128 -o step.json\n"
      "  rehearse import megatron train.sh --set NNODES=16 --set vocab-size=128256 -o step.json\n"
      "  rehearse import megatron train.sh --dry-run --set NNODES=16 -o step.json\n"
      "  rehearse import megatron train.log --compare train.log -o step.json\n"
      "  rehearse import torchtitan llama3_70b.toml --cluster dgx-h100:nodes=32 -o step.json\n"
      "  rehearse import nemo recipes/llama/h100/llama3.py \\\n"
      "    --set config=llama3_8b_pretrain_2gpu_h100_bf16_config -o step.json\n"
      "  rehearse import axolotl fft-8b.yaml --cluster dgx-h100 -o step.json\n"
      "  rehearse import deepspeed ds_config.json --model-config llama-3.1-8b --set sequence=4096 "
      "\\\n"
      "    --set train_micro_batch_size_per_gpu=2 --cluster dgx-h100 -o step.json\n"
      "  rehearse import hf config.json -o model.json\n"
      "  rehearse import chakra traces -o step.schedule.json\n"
      "  rehearse import goal step.goal -o step.schedule.json\n"
      "  rehearse import astra-sim network.yml system.json traces -o step.schedule.json\n"
      "  rehearse import astra-sim network.yml system.json --set all-reduce=1MiB -o step.json\n"
      "  rehearse import kineto traces -o timeline.json\n"
      "  rehearse import kineto traces --as schedule -o step.schedule.json\n"
      "  rehearse import kineto rank-0.json.gz --as schedule --extrapolate 64 -o job.json\n"
      "  rehearse import nccl-tests slurm-4711.out -o nccl-tests.log\n"
      "  rehearse import cluster_job_log --first 1000 -o jobs.json\n"
      "A measured timeline is for report and compare. In a schedule, kernels take as long as\n"
      "they took, and collectives are simulated again: what if the NICs were twice as fast? A\n"
      "scenario can name either file of a model: \"model\": {\"file\": \"config.json\"}.\n";
  syntax.positional = {"kind", "file"};
  syntax.last_repeats = true;
  syntax.takes["kind"] = TakenName({});
  for (const ImportKind& kind : ImportKinds()) syntax.takes["kind"].names.emplace_back(kind.name);
  syntax.takes["kind"].only_names = false;  // a file that shows what it is needs no kind
  syntax.takes["file"] = TakenFile({});
  syntax.takes["device"] = TakenDevice();
  syntax.takes["node"] = TakenName({});
  for (const ClusterPreset& preset : ClusterPresets())
    syntax.takes["node"].names.push_back(preset.name);
  // Patterns are free text.
  for (const char* pattern : {"hosts", "communication", "step-name"}) syntax.takes[pattern] = {};
  syntax.takes["compare"] = TakenFile({});
  syntax.takes["model-config"] = TakenFile({".json"});
  syntax.takes["output"] = TakenOutput({".json", ".log"});
  auto add = syntax.options.add_options();
  add("device", po::value<std::string>()->value_name("NAME"),
      "what a machine's devices are, e.g. a100-80g");
  add("node", po::value<std::string>()->value_name("PRESET"),
      "what a fabric's nodes are: those of this cluster preset, e.g. dgx-a100; dgx-h100 if not "
      "given");
  add("hosts", po::value<std::string>()->value_name("PATTERNS"),
      "which hosts of a fabric have GPUs, e.g. 'gpu*,node[0-9]*'; if not given, all but those that "
      "clearly serve others");
  add("cluster", po::value<std::string>()->value_name("CLUSTER"),
      "what a run or rings are on: preset, preset with changes, or a cluster file; if not given, a "
      "run is on as many dgx-h100 boxes as it needs");
  add("set", po::value<std::vector<std::string>>()->composing()->value_name("NAME=VALUE"),
      "an argument or a variable that the file of a run leaves open, as often as needed: "
      "vocab-size=50257, NNODES=16, 1=llama3-8b");
  add("model-config", po::value<std::string>()->value_name("FILE|NAME"),
      "the model of a run whose file does not say it: a config.json of Hugging Face, or a name "
      "such as llama-3.1-8b");
  add("compare", po::value<std::string>()->value_name("LOG"),
      "what the run itself logged: how long its steps took, beside what is predicted");
  add("dry-run", po::bool_switch(),
      "run a script with your own shell, with stubs of torchrun, srun, deepspeed, python and "
      "others "
      "that start nothing and write down what they are given; all else that it does, it does");
  add("as", po::value<std::string>()->default_value("timeline")->value_name("timeline|schedule"),
      "what a profile becomes");
  add("communication", po::value<std::string>()->value_name("REGEX"),
      "kernels and copies of a profile that communicate, beside those that are known to");
  add("step-name", po::value<std::string>()->value_name("REGEX"),
      "which annotations of a profile are its steps; ProfilerStep#N if not given");
  constexpr uint32_t kMostSteps = 1u << 31;
  constexpr uint32_t kMostExtrapolated = 1u << 20;
  add("step", Whole<uint32_t>("N", nullptr, 0, kMostSteps),
      "the number of the step of a profile to take; those that do what most do if not given");
  add("extrapolate", Whole<uint32_t>("N", nullptr, 1, kMostExtrapolated),
      "with --as schedule: all N ranks of the job, where profiles are of some of them, by the "
      "groups in which these met the others");
  add("first", Whole<uint32_t>("N", nullptr, 1, kMostSteps),
      "only so many jobs of a trace of jobs, the first ones");
  add("from", Days("X", nullptr),
      "only jobs that came X days after the first one or later; 0.5 are twelve hours");
  add("to", Days("X", nullptr), "only jobs that came less than X days after the first one");
  add("output,o", po::value<std::string>()->default_value("-")->value_name("FILE"),
      "where to write it; - is standard output");
  return syntax;
}

int ImportCommand(const std::vector<std::string>& arguments) {
  CommandSyntax syntax = ImportSyntax();
  po::variables_map values;
  if (!ParseCommandLine(syntax, arguments, &values)) return 0;
  if (values.count("kind") == 0) throw Error("no kind given; usage: " + syntax.usage);
  ImportRequest request;
  if (values.count("file") > 0) request.files = values["file"].as<std::vector<std::string>>();
  const ImportKind& kind = TakeKind(values["kind"].as<std::string>(), &request.files);
  if (request.files.empty())
    throw Error(fmt::format("no file given, expected {}; usage: {}", kind.what, syntax.usage));
  if (request.files.size() > 1 && !kind.Has(ImportKind::kFiles)) {
    throw Error(fmt::format("found {} files, expected {} in one; usage: {}", request.files.size(),
                            kind.what, syntax.usage));
  }
  request.device = ValueFor(kind, ImportKind::kDevice, "device", "a machine", values);
  request.node = ValueFor(kind, ImportKind::kNode, "node", "a fabric", values);
  request.hosts = ValueFor(kind, ImportKind::kHosts, "hosts", "a fabric", values);
  request.cluster = ValueFor(kind, ImportKind::kCluster, "cluster", "a run or rings", values);
  if (values.count("set") > 0) {
    if (!kind.Has(ImportKind::kSettings))
      throw Error(fmt::format("--set goes with a run ({})", KindsWith(ImportKind::kSettings)));
    request.settings = values["set"].as<std::vector<std::string>>();
  }
  request.model_config =
      ValueFor(kind, ImportKind::kModel, "model-config", "a run without its model", values);
  const std::string log = ValueFor(kind, ImportKind::kRun, "compare", "a run", values);
  request.dry_run = values["dry-run"].as<bool>();
  if (request.dry_run && !kind.Has(ImportKind::kDryRun))
    throw Error(fmt::format("--dry-run goes with a script ({})", KindsWith(ImportKind::kDryRun)));
  const std::string as = values["as"].as<std::string>();
  if (as != "timeline" && as != "schedule")
    throw Error(fmt::format("--as: found \"{}\"{}", as, KnownNames(as, {"timeline", "schedule"})));
  request.as_schedule = as == "schedule";
  if (!values["as"].defaulted() && !kind.Has(ImportKind::kProfile))
    throw Error(fmt::format("--as goes with a profile ({})", KindsWith(ImportKind::kProfile)));
  request.communication =
      ValueFor(kind, ImportKind::kProfile, "communication", "a profile", values);
  request.step_name = ValueFor(kind, ImportKind::kProfile, "step-name", "a profile", values);
  if (values.count("step") > 0) {
    if (!kind.Has(ImportKind::kProfile))
      throw Error(fmt::format("--step goes with a profile ({})", KindsWith(ImportKind::kProfile)));
    request.step = int64_t{values["step"].as<uint32_t>()};
  }
  if (values.count("extrapolate") > 0) {
    if (!kind.Has(ImportKind::kProfile)) {
      throw Error(
          fmt::format("--extrapolate goes with a profile ({})", KindsWith(ImportKind::kProfile)));
    }
    if (!request.as_schedule) {
      throw Error("--extrapolate goes with --as schedule: only what was measured is in a timeline");
    }
    request.extrapolate = values["extrapolate"].as<uint32_t>();
  }
  request.jobs = ReadJobWindow(kind, values);
  const std::string output = values["output"].as<std::string>();
  CheckWritable(output);
  request.output = output;
  const Imported imported = kind.read(request);
  const std::string beside = log.empty() ? "" : "\n" + MeasuredAndPredicted(imported.text, log);
  WriteFileAtomically(output, imported.text);
  PrintBeside(output, ResultText(output, request, imported) + beside);
  return 0;
}

}  // namespace rehearse

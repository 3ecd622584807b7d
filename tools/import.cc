// rehearse import KIND FILE: what others have written, as a file that the other commands take.
#include <cstdio>

#include <fmt/format.h>

#include "real/calibration/nccl_log.h"
#include "sim/base/error.h"
#include "sim/base/input_file.h"
#include "sim/base/json_document.h"
#include "sim/base/json_reader.h"
#include "sim/base/known_names.h"
#include "sim/base/output_file.h"
#include "sim/base/visible_text.h"
#include "sim/interchange/chakra_read.h"
#include "sim/interchange/kineto_read.h"
#include "tools/command.h"
#include "tools/import_machine.h"
#include "topology/presets/presets.h"
#include "topology/view/cluster_view.h"
#include "workloads/networks/hf_model.h"

namespace rehearse {
namespace {

namespace po = boost::program_options;

struct Request {
  std::vector<std::string> files;
  std::string device;  // "": not given
  std::string node;    // likewise
  bool as_schedule = false;

  const std::string& file() const { return files.front(); }
};

struct Imported {
  std::string text;                  // of the file that is written
  std::string what;                  // "a machine of 8 devices"
  std::vector<std::string> remarks;  // what the file left open, or what was not understood
};

Imported ImportMachineFile(const std::string& kind, const Request& request) {
  const ImportedCluster machine = ImportMachine(kind, request.file(), request.device);
  const uint32_t devices = machine.cluster->device_count();
  return {ClusterFileText(*machine.cluster),
          fmt::format("a machine of {} device{}", devices, devices == 1 ? "" : "s"),
          machine.remarks};
}

Imported ImportFabricFile(const std::string& kind, const Request& request) {
  const ImportedCluster fabric = ImportFabric(kind, request.file(), request.node);
  const uint32_t nodes = fabric.cluster->node_count();
  const uint32_t devices = fabric.cluster->device_count();
  return {ClusterFileText(*fabric.cluster),
          fmt::format("a cluster of {} node{} with {} device{}", nodes, nodes == 1 ? "" : "s",
                      devices, devices == 1 ? "" : "s"),
          fabric.remarks};
}

Imported ImportNccl(const Request& request) { return ImportMachineFile("nccl", request); }
Imported ImportSmi(const Request& request) { return ImportMachineFile("smi", request); }
Imported ImportHwloc(const Request& request) { return ImportMachineFile("lstopo", request); }
Imported ImportTopologyConf(const Request& request) { return ImportFabricFile("slurm", request); }
Imported ImportSubnet(const Request& request) { return ImportFabricFile("ibnetdiscover", request); }

Imported ImportHf(const Request& request) {
  const JsonDocument document = JsonDocument::FromFile(request.file());
  const HfModel model = ReadHfConfig(document.Root());
  return {model.keys.dump(2) + "\n",
          fmt::format("a model of {:.3g} billion parameters", model.model.Parameters() / 1e9),
          model.remarks};
}

std::string RanksText(uint32_t ranks) {
  return fmt::format("{} rank{}", ranks, ranks == 1 ? "" : "s");
}

Imported ImportTraces(const Request& request) {
  const ImportedChakra traces = ImportChakra(request.files);
  return {traces.text, "a schedule of " + RanksText(traces.ranks), traces.remarks};
}

Imported ProfileOf(const Request& request,
                   ImportedKineto (*import)(const std::vector<std::string>&, KinetoResult)) {
  const ImportedKineto traces = import(
      request.files, request.as_schedule ? KinetoResult::kSchedule : KinetoResult::kTimeline);
  const std::string what =
      request.as_schedule
          ? "a schedule"
          : fmt::format("a timeline of {} step{}", traces.steps, traces.steps == 1 ? "" : "s");
  return {traces.text, what + " of " + RanksText(traces.ranks), traces.remarks};
}

Imported ImportProfile(const Request& request) { return ProfileOf(request, ImportKineto); }
Imported ImportNsysExport(const Request& request) { return ProfileOf(request, ImportNsys); }

// Tables without what launchers print around them, in-place figures and noise in their rows.
Imported ImportNcclTests(const Request& request) {
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
                      table.kind ? "how many ranks there are" : "which collective it is of",
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
                "no table says which collective it is of and of how many ranks; "
                "rehearse compare takes them with --kind and --ranks");
  }
  imported.what = fmt::format("{} table{} of {} size{}", tables, tables == 1 ? "" : "s", sizes,
                              sizes == 1 ? "" : "s");
  return imported;
}

struct Kind {
  const char* name;
  const char* what;
  const char* result;
  bool has_devices;  // that --device names
  bool has_nodes;    // that --node names
  bool takes_several;
  Imported (*read)(const Request& request);
};
constexpr Kind kKinds[] = {
    {"nccl", "NCCL's topology file (NCCL_TOPO_DUMP_FILE), or RCCL's", "a cluster file", true, false,
     false, ImportNccl},
    {"smi", "the output of nvidia-smi topo -m", "a cluster file", true, false, false, ImportSmi},
    {"lstopo", "hwloc's XML (lstopo --of xml)", "a cluster file", true, false, false, ImportHwloc},
    {"slurm", "Slurm's topology.conf (topology/tree)", "a cluster file", false, true, false,
     ImportTopologyConf},
    {"ibnetdiscover", "the output of ibnetdiscover", "a cluster file", false, true, false,
     ImportSubnet},
    {"hf", "the config.json of a decoder on Hugging Face", "a model file", false, false, false,
     ImportHf},
    {"chakra", "MLCommons' execution traces NAME.RANK.et, or a folder of them", "a schedule", false,
     false, true, ImportTraces},
    {"kineto", "PyTorch's profiles (.json, .json.gz), one a rank, or a folder of them",
     "a timeline, or a schedule", false, false, true, ImportProfile},
    {"nsys", "Nsight Systems' reports (nsys export --type sqlite), or a folder of them",
     "a timeline, or a schedule", false, false, true, ImportNsysExport},
    {"nccl-tests", "what all_reduce_perf and its like printed", "their tables, for compare", false,
     false, false, ImportNcclTests},
};

// "nccl, smi, lstopo": the kinds that have what an option names.
std::string KindsWith(bool Kind::*has) {
  std::string names;
  for (const Kind& kind : kKinds)
    if (kind.*has) names += (names.empty() ? "" : ", ") + std::string(kind.name);
  return names;
}

const Kind& KindOf(const std::string& name) {
  std::vector<std::string> names;
  for (const Kind& kind : kKinds) {
    if (name == kind.name) return kind;
    names.emplace_back(kind.name);
  }
  throw Error(fmt::format("unknown kind of import \"{}\"{}", name, KnownNames(name, names)));
}

std::string ResultText(const std::string& output, const Request& request,
                       const Imported& imported) {
  const std::string from = request.files.size() > 1 ? fmt::format("{} files", request.files.size())
                                                    : InputName(request.file());
  std::string text =
      fmt::format("{}   {}, from {}\n",
                  IsStandardOutput(output) ? std::string("standard output") : VisibleText(output),
                  imported.what, VisibleText(from));
  if (imported.remarks.empty()) return text;
  text += "\nWhat the file leaves open, or what is left out of it\n";
  for (const std::string& remark : imported.remarks)
    text += fmt::format("  {}\n", VisibleText(remark));
  return text;
}

}  // namespace

CommandSyntax ImportSyntax() {
  CommandSyntax syntax;
  syntax.usage = "rehearse import KIND FILE... [options]";
  syntax.explanation =
      "Reads what others have written, and writes it as a file that the other commands take. What\n"
      "was not understood is listed, not guessed. KIND says what FILE is:\n";
  for (const Kind& kind : kKinds)
    syntax.explanation +=
        fmt::format("  {:13} {}; becomes {}\n", kind.name, kind.what, kind.result);
  syntax.explanation +=
      "Examples:\n"
      "  rehearse import nccl topo.xml -o cluster.json\n"
      "  rehearse collective all-reduce --cluster cluster.json\n"
      "  nvidia-smi topo -m | rehearse import smi - --device h100 -o cluster.json\n"
      "  lstopo --of xml | rehearse import lstopo - -o cluster.json\n"
      "  rehearse import slurm topology.conf --node dgx-a100 -o cluster.json\n"
      "  ibnetdiscover | rehearse import ibnetdiscover - -o cluster.json\n"
      "  rehearse import hf config.json -o model.json\n"
      "  rehearse import chakra traces -o step.schedule.json\n"
      "  rehearse import kineto traces -o timeline.json\n"
      "  rehearse import kineto traces --as schedule -o step.schedule.json\n"
      "  rehearse import nccl-tests slurm-4711.out -o nccl-tests.log\n"
      "A measured timeline is for report and compare. As a schedule, kernels take as long as they\n"
      "took, and collectives are played again: what if the NICs were twice as fast?\n"
      "A scenario takes either file of a model: \"model\": {\"file\": \"config.json\"}.\n";
  syntax.positional = {"kind", "file"};
  syntax.last_repeats = true;
  syntax.takes["kind"] = TakenName({});
  for (const Kind& kind : kKinds) syntax.takes["kind"].names.emplace_back(kind.name);
  syntax.takes["file"] = TakenFile({});
  syntax.takes["device"] = TakenDevice();
  syntax.takes["node"] = TakenName({});
  for (const ClusterPreset& preset : ClusterPresets())
    syntax.takes["node"].names.push_back(preset.name);
  syntax.takes["output"] = TakenOutput({".json", ".log"});
  syntax.options.add_options()("device", po::value<std::string>()->value_name("NAME"),
                               "what the devices of a machine are, e.g. a100-80g")(
      "node", po::value<std::string>()->value_name("PRESET"),
      "of a fabric, what every node is: that of a cluster preset, e.g. dgx-a100; dgx-h100 unless "
      "given")("as",
               po::value<std::string>()->default_value("timeline")->value_name("timeline|schedule"),
               "what a profile becomes")(
      "output,o", po::value<std::string>()->default_value("-")->value_name("FILE"),
      "write there; - is standard output");
  return syntax;
}

int ImportCommand(const std::vector<std::string>& arguments) {
  CommandSyntax syntax = ImportSyntax();
  po::variables_map values;
  if (!ParseCommandLine(syntax, arguments, &values)) return 0;
  if (values.count("kind") == 0) throw Error("no kind given; usage: " + syntax.usage);
  const Kind& kind = KindOf(values["kind"].as<std::string>());
  if (values.count("file") == 0)
    throw Error(fmt::format("no file given, expected {}; usage: {}", kind.what, syntax.usage));
  Request request{values["file"].as<std::vector<std::string>>(), "", "", false};
  if (request.files.size() > 1 && !kind.takes_several) {
    throw Error(fmt::format("found {} files, expected {} in one; usage: {}", request.files.size(),
                            kind.what, syntax.usage));
  }
  if (values.count("device") > 0) {
    if (!kind.has_devices)
      throw Error(fmt::format("--device goes with a machine ({})", KindsWith(&Kind::has_devices)));
    request.device = values["device"].as<std::string>();
  }
  if (values.count("node") > 0) {
    if (!kind.has_nodes)
      throw Error(fmt::format("--node goes with a fabric ({})", KindsWith(&Kind::has_nodes)));
    request.node = values["node"].as<std::string>();
  }
  const std::string as = values["as"].as<std::string>();
  if (as != "timeline" && as != "schedule")
    throw Error(fmt::format("--as: found \"{}\"{}", as, KnownNames(as, {"timeline", "schedule"})));
  request.as_schedule = as == "schedule";
  if (!values["as"].defaulted() && kind.read != ImportProfile && kind.read != ImportNsysExport)
    throw Error("--as goes with a profile (kineto, nsys)");
  const std::string output = values["output"].as<std::string>();
  CheckWritable(output);
  const Imported imported = kind.read(request);
  WriteFileAtomically(output, imported.text);
  PrintBeside(output, ResultText(output, request, imported));
  return 0;
}

}  // namespace rehearse

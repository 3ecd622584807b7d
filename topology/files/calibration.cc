#include "topology/files/calibration.h"

#include <algorithm>
#include <cmath>
#include <filesystem>

#include <fmt/format.h>

#include "sim/base/file_kind.h"
#include "sim/base/json_document.h"
#include "sim/base/schema_version.h"
#include "sim/base/units.h"
#include "topology/devices/logarithm.h"
#include "topology/devices/measured_costs_json.h"
#include "topology/files/cluster_shapes.h"
#include "topology/files/device_file.h"
#include "topology/files/exact_text.h"

namespace rehearse {
namespace {

constexpr double kMostCores = 1 << 20;

const Fields<LinkCalibration>& LinkCalibrationFields() {
  static const Fields<LinkCalibration> fields(
      "calibrated links", "Links of one kind and nominal bandwidth.",
      {{"kind", &LinkCalibration::kind, OneNamedOf(kLinkKindChoices), Required(),
        "their technology"},
       {"bandwidth", &LinkCalibration::bandwidth, AnExactBandwidth(), Required(),
        "their nominal bandwidth", "\"300GBps\""},
       {"efficiency", &LinkCalibration::efficiency, ANumberAbove(0, 1), Required(),
        "share of the bandwidth that they reach", "0.742"}},
      [](const JsonReader& reader, LinkCalibration* link) { link->place = reader.place(); });
  return fields;
}

CalibrationOrigin ReadOrigin(const JsonReader& about) {
  CalibrationOrigin origin;
  if (about.Has("machine")) {
    const JsonReader machine = about.At("machine");
    const std::string processor = machine.At("processor").String();  // the first to be missed
    origin.machine =
        MachineName(processor, static_cast<uint32_t>(machine.At("cores").Integer(1, 1 << 20)));
  }
  if (about.Has("date")) origin.date = about.At("date").String();
  if (about.Has("representative")) origin.is_representative = about.At("representative").Bool();
  return origin;
}

// Measured with that many ranks, or nearly that many.
const MeasuredCollectives& WorldFor(uint32_t ranks,
                                    const std::vector<MeasuredCollectives>& worlds) {
  const auto distance = [&](const MeasuredCollectives& world) {
    return std::abs(Log(world.ranks) - Log(ranks));
  };
  return *std::min_element(worlds.begin(), worlds.end(),
                           [&](const MeasuredCollectives& a, const MeasuredCollectives& b) {
                             return distance(a) < distance(b);
                           });
}

// What its fit says about what it left out, each after a colon.
std::string RemarksOf(const JsonReader& reader) {
  std::string remarks;
  if (!reader.Has("fit") || !reader.At("fit").Has("remarks")) return remarks;
  for (const JsonReader& remark : reader.At("fit").At("remarks").Elements())
    remarks += ": " + remark.String();
  return remarks;
}

using SomeOverhead = std::optional<Seconds> Calibration::*;
Field<Calibration> Overhead(const char* name, SomeOverhead member, const char* about) {
  return {name,  member,   AnExactDurationUpTo(kLongestLatency), Optional("the cluster's"),
          about, "\"5us\""};
}

void CheckChanges(const JsonReader& reader, Calibration* calibration) {
  if (reader.Has("about")) calibration->origin = ReadOrigin(reader.At("about"));
  const bool changes_nothing = calibration->links.empty() && !calibration->collective_overhead &&
                               !calibration->channel_overhead && !calibration->kernels &&
                               calibration->collectives.empty() && !calibration->slowdown &&
                               !calibration->launch_overhead && calibration->host_cores == 0;
  if (!changes_nothing) return;
  reader.Fail(fmt::format(
      "the calibration changes nothing{}; expected \"links\", \"collective_overhead\", "
      "\"channel_overhead\", \"host_cores\", \"launch_overhead\", \"slowdown\", \"kernels\" or "
      "\"collectives\"",
      RemarksOf(reader)));
}

const Fields<Calibration>& CalibrationFields() {
  static const Fields<Calibration> fields(
      "calibration", "The figures of a machine, from measurements; at least one of them.",
      {SchemaForEditors(),
       SchemaVersion(kCalibrationSchema),
       {"cluster", &Calibration::cluster, AText(), Optional("not given"),
        "the cluster it was fitted for, for people", "\"dgx-a100\""},
       {"about", &Calibration::about, Anything("object"), Optional("not given"),
        "machine (processor, cores), date, representative, and more, for people",
        R"({"machine": {"processor": "AMD EPYC", "cores": 2}, "date": "2026-11-22"})"},
       {"links", &Calibration::links, ListOf(ObjectIn<LinkCalibrationFields>()),
        Optional("as specified"), "efficiencies of links",
        R"([{"kind": "nvlink", "bandwidth": "300GBps", "efficiency": 0.742}])"},
       Overhead("collective_overhead", &Calibration::collective_overhead,
                "overhead of launching a collective"),
       Overhead("channel_overhead", &Calibration::channel_overhead,
                "overhead of launching each of its channels"),
       {"host_cores", &Calibration::host_cores, ANumber(1, kMostCores), Optional("not given"),
        "cores that the ranks of a machine share", "2"},
       Overhead("launch_overhead", &Calibration::launch_overhead,
                "time to launch kernels that were not measured"),
       {"slowdown", &Calibration::slowdown, ObjectIn<SlowdownFields>(),
        Optional("the devices' own"), "slowdown while a device computes and communicates",
        R"({"gemm": 0.1})"},
       {"kernels", &Calibration::kernels, ObjectIn<MeasuredKernelsFields>(),
        Optional("the devices' own"), "how long compute takes, on every device",
        R"({"costs": []})"},
       {"collectives", &Calibration::collectives, ListOf(ObjectIn<MeasuredCollectivesFields>()),
        Optional("links and steps"), "how long communication takes, by number of ranks",
        R"([{"ranks": 2, "transport": "threads", "costs": []}])"},
       {"samples", &Calibration::samples, Anything("list"), Optional("not given"),
        "what was measured, for people", "[]"},
       {"fit", &Calibration::fit, Anything("object"), Optional("not given"),
        "how well it fits, for people", "{}"}},
      CheckChanges);
  return fields;
}

Calibration ReadObject(const JsonReader& object) {
  RefuseOtherKinds(object, FileKind::kCalibration);
  const JsonReader reader = object.As(CalibrationShape());
  CheckVersion(reader.At("schema"), kCalibrationSchema);
  Calibration calibration;
  CalibrationFields().ReadInto(reader, &calibration);
  return calibration;
}

}  // namespace

std::string MachineName(const std::string& processor, uint32_t cores) {
  return fmt::format("{}, {} core{}", processor, cores, cores == 1 ? "" : "s");
}

const ObjectShape& CalibrationShape() { return CalibrationFields().shape(); }

JsonShape CalibrationInputShape() {
  return Either({AText("path of a file, relative to this one"), ObjectOf(CalibrationShape)});
}

Calibration ReadCalibration(const JsonReader& reader) {
  if (!reader.IsString()) return ReadObject(reader);
  JsonDocument document = reader.Open(reader.Text());
  reader.Change(&document);
  return ReadObject(document.Root());
}

Calibration ReadCalibrationFile(const std::string& path) {
  return ReadObject(JsonDocument::FromFile(path).Root());
}

nlohmann::ordered_json ToJson(const Calibration& calibration) {
  nlohmann::ordered_json json = {{"schema", kCalibrationSchema}};
  CalibrationFields().Write(calibration, &json);
  return json;
}

std::unique_ptr<Cluster> ApplyCalibration(const Cluster& cluster, const Calibration& calibration) {
  Figures figures = cluster.figures();
  for (const LinkCalibration& wanted : calibration.links) {
    bool found = false;
    figures.ChangeLinks([&](uint32_t i, LinkFigures& link) {
      if (cluster.KindOf(i) != wanted.kind || link.bandwidth != wanted.bandwidth) return;
      link.efficiency = wanted.efficiency;
      found = true;
    });
    if (!found)
      throw Error(wanted.place, fmt::format("cluster \"{}\" has no {} link of {}", cluster.name(),
                                            Name(wanted.kind), Print(wanted.bandwidth)));
  }
  if (calibration.collective_overhead)
    figures.collective_overhead = *calibration.collective_overhead;
  if (calibration.channel_overhead) figures.channel_overhead = *calibration.channel_overhead;
  const auto kernels =
      calibration.kernels ? std::make_shared<const MeasuredKernels>(*calibration.kernels) : nullptr;
  for (DeviceSpec& spec : figures.device_specs) {
    if (kernels) spec.measured = kernels;
    if (calibration.launch_overhead) spec.launch_overhead = *calibration.launch_overhead;
    if (calibration.slowdown) spec.slowdown = *calibration.slowdown;
    if (calibration.host_cores > 0) spec.host_cores = calibration.host_cores;
  }
  if (!calibration.collectives.empty()) {
    figures.measured_collectives = std::make_shared<const MeasuredCollectives>(
        WorldFor(cluster.device_count(), calibration.collectives));
  }
  figures.calibration_origin = calibration.origin;
  return std::make_unique<Cluster>(cluster.With(std::move(figures)));
}

}  // namespace rehearse

#include "topology/files/calibration.h"

#include <algorithm>
#include <array>
#include <cmath>
#include <filesystem>

#include <fmt/format.h>

#include "sim/base/json_document.h"
#include "sim/base/units.h"
#include "topology/devices/logarithm.h"
#include "topology/devices/measured_costs_json.h"
#include "topology/files/cluster_export.h"
#include "topology/files/graph_file.h"

namespace rehearse {
namespace {

constexpr double kMostCores = 1 << 20;

constexpr std::array kLinkKinds = {LinkKind::kNvLink, LinkKind::kXgmi,    LinkKind::kPcie,
                                   LinkKind::kSocket, LinkKind::kNetwork, LinkKind::kMemory};

LinkCalibration ReadLinkCalibration(const JsonReader& reader) {
  reader.AllowKeys({"kind", "bandwidth", "efficiency"});
  std::vector<std::string> kinds;
  for (const LinkKind kind : kLinkKinds) kinds.emplace_back(Name(kind));
  LinkCalibration link;
  link.place = reader.place();
  link.kind = kLinkKinds[reader.At("kind").Choice(kinds)];
  link.bandwidth = reader.At("bandwidth").Bandwidth();
  link.efficiency = reader.At("efficiency").Number(0, 1);
  if (link.efficiency == 0) reader.At("efficiency").Expected("a number above 0, at most 1");
  return link;
}

CalibrationOrigin ReadOrigin(const JsonReader& about) {
  CalibrationOrigin origin;
  if (about.Has("machine")) {
    const JsonReader machine = about.At("machine");
    origin.machine = MachineName(machine.At("processor").String(),
                                 static_cast<uint32_t>(machine.At("cores").Integer(1, 1 << 20)));
  }
  if (about.Has("date")) origin.date = about.At("date").String();
  if (about.Has("representative")) origin.is_representative = about.At("representative").Bool();
  return origin;
}

// Measured with so many ranks, or nearly so many.
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

// What its fit says of what it left out, behind a colon each.
std::string RemarksOf(const JsonReader& reader) {
  std::string remarks;
  if (!reader.Has("fit") || !reader.At("fit").Has("remarks")) return remarks;
  for (const JsonReader& remark : reader.At("fit").At("remarks").Elements())
    remarks += ": " + remark.String();
  return remarks;
}

Calibration ReadObject(const JsonReader& reader) {
  reader.AllowKeys({"schema", "cluster", "about", "links", "collective_overhead",
                    "channel_overhead", "host_cores", "launch_overhead", "slowdown", "kernels",
                    "collectives", "samples", "fit"});
  reader.At("schema").Choice({kCalibrationSchema});
  Calibration calibration;
  if (reader.Has("cluster")) calibration.cluster = reader.At("cluster").String();
  if (reader.Has("links")) {
    for (const JsonReader& link : reader.At("links").Elements())
      calibration.links.push_back(ReadLinkCalibration(link));
  }
  if (reader.Has("collective_overhead"))
    calibration.collective_overhead = ReadOverhead(reader.At("collective_overhead"));
  if (reader.Has("channel_overhead"))
    calibration.channel_overhead = ReadOverhead(reader.At("channel_overhead"));
  if (reader.Has("host_cores"))
    calibration.host_cores = reader.At("host_cores").Number(1, kMostCores);
  if (reader.Has("launch_overhead"))
    calibration.launch_overhead = ReadOverhead(reader.At("launch_overhead"));
  if (reader.Has("slowdown")) calibration.slowdown = ReadSlowdown(reader.At("slowdown"));
  if (reader.Has("kernels")) calibration.kernels = ReadMeasuredKernels(reader.At("kernels"));
  if (reader.Has("collectives")) {
    for (const JsonReader& world : reader.At("collectives").Elements())
      calibration.collectives.push_back(ReadMeasuredCollectives(world));
  }
  if (reader.Has("about")) {
    calibration.origin = ReadOrigin(reader.At("about"));
    calibration.about = reader.At("about").value();
  }
  if (reader.Has("samples")) calibration.samples = reader.At("samples").value();
  if (reader.Has("fit")) calibration.fit = reader.At("fit").value();
  if (calibration.links.empty() && !calibration.collective_overhead &&
      !calibration.channel_overhead && !calibration.kernels && calibration.collectives.empty() &&
      !calibration.slowdown && !calibration.launch_overhead && calibration.host_cores == 0) {
    reader.Fail(fmt::format(
        "the calibration changes nothing{}; expected \"links\", \"collective_overhead\", "
        "\"channel_overhead\", \"host_cores\", \"launch_overhead\", \"slowdown\", \"kernels\" or "
        "\"collectives\"",
        RemarksOf(reader)));
  }
  return calibration;
}

}  // namespace

std::string MachineName(const std::string& processor, uint32_t cores) {
  return fmt::format("{}, {} core{}", processor, cores, cores == 1 ? "" : "s");
}

Calibration ReadCalibration(const JsonReader& reader) {
  if (!reader.IsString()) return ReadObject(reader);
  const std::filesystem::path folder = std::filesystem::path(reader.place().file).parent_path();
  const std::string path = (folder / reader.String()).string();
  if (!std::filesystem::exists(path)) reader.Fail(fmt::format("there is no file \"{}\"", path));
  return ReadCalibrationFile(path);
}

Calibration ReadCalibrationFile(const std::string& path) {
  return ReadObject(JsonDocument::FromFile(path).Root());
}

nlohmann::ordered_json ToJson(const Calibration& calibration) {
  nlohmann::ordered_json json;
  json["schema"] = kCalibrationSchema;
  if (!calibration.cluster.empty()) json["cluster"] = calibration.cluster;
  if (!calibration.about.is_null()) json["about"] = calibration.about;
  if (!calibration.links.empty()) json["links"] = nlohmann::ordered_json::array();
  for (const LinkCalibration& link : calibration.links) {
    json["links"].push_back({{"kind", Name(link.kind)},
                             {"bandwidth", ExactText(link.bandwidth)},
                             {"efficiency", link.efficiency}});
  }
  if (calibration.collective_overhead)
    json["collective_overhead"] = ExactText(*calibration.collective_overhead);
  if (calibration.channel_overhead)
    json["channel_overhead"] = ExactText(*calibration.channel_overhead);
  if (calibration.host_cores > 0) json["host_cores"] = calibration.host_cores;
  if (calibration.launch_overhead)
    json["launch_overhead"] = ExactText(*calibration.launch_overhead);
  if (calibration.slowdown) json["slowdown"] = ToJson(*calibration.slowdown);
  if (calibration.kernels) json["kernels"] = ToJson(*calibration.kernels);
  for (const MeasuredCollectives& world : calibration.collectives)
    json["collectives"].push_back(ToJson(world));
  if (!calibration.samples.is_null()) json["samples"] = calibration.samples;
  if (!calibration.fit.is_null()) json["fit"] = calibration.fit;
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

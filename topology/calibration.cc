#include "topology/calibration.h"

#include <array>
#include <filesystem>

#include <fmt/format.h>

#include "sim/units.h"
#include "topology/cluster_export.h"
#include "topology/graph_file.h"

namespace rehearse {
namespace {

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

Calibration ReadObject(const JsonReader& reader) {
  reader.AllowKeys({"schema", "cluster", "links", "collective_overhead", "fit"});
  reader.At("schema").Choice({kCalibrationSchema});
  Calibration calibration;
  if (reader.Has("cluster")) calibration.cluster = reader.At("cluster").String();
  if (reader.Has("links")) {
    for (const JsonReader& link : reader.At("links").Elements())
      calibration.links.push_back(ReadLinkCalibration(link));
  }
  if (reader.Has("collective_overhead"))
    calibration.collective_overhead = ReadOverhead(reader.At("collective_overhead"));
  if (reader.Has("fit")) calibration.fit = reader.At("fit").value();
  if (calibration.links.empty() && !calibration.collective_overhead)
    reader.Fail("the calibration changes nothing; expected \"links\" or \"collective_overhead\"");
  return calibration;
}

}  // namespace

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
  json["links"] = nlohmann::ordered_json::array();
  for (const LinkCalibration& link : calibration.links) {
    json["links"].push_back({{"kind", Name(link.kind)},
                             {"bandwidth", ExactText(link.bandwidth)},
                             {"efficiency", link.efficiency}});
  }
  if (calibration.collective_overhead)
    json["collective_overhead"] = ExactText(*calibration.collective_overhead);
  if (!calibration.fit.is_null()) json["fit"] = calibration.fit;
  return json;
}

void ApplyCalibration(Cluster& cluster, const Calibration& calibration) {
  for (const LinkCalibration& wanted : calibration.links) {
    bool found = false;
    for (uint32_t i = 0; i < cluster.link_count(); ++i) {
      const ClusterLink& link = cluster.Link(i);
      if (link.kind != wanted.kind || link.bandwidth != wanted.bandwidth) continue;
      cluster.ChangeEfficiency(i, wanted.efficiency);
      found = true;
    }
    if (!found)
      throw Error(wanted.place, fmt::format("cluster \"{}\" has no {} link of {}", cluster.name(),
                                            Name(wanted.kind), Print(wanted.bandwidth)));
  }
  if (calibration.collective_overhead)
    cluster.set_collective_overhead(*calibration.collective_overhead);
}

}  // namespace rehearse

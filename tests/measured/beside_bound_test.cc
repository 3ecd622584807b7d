// How far collectives are from what the wires allow (collectives/lowering/wire_bound.h), as the
// libraries choose them: all presets, kinds, a machine, two, eight and all, from 64 MiB to 16 GiB.
// Each is within 1.5 of its bound at all of these sizes, or has its place in the table of
// collectives/BOUNDS.md, with the most that it takes and the reason. What the table has is compared
// with what this finds, so a row that is no longer needed fails as well.
//
//   REHEARSE_BOUNDS=table     prints all rows as the document has them
//   REHEARSE_BOUNDS=choices   and what was chosen at each size
#include <algorithm>
#include <cstdlib>
#include <fstream>
#include <map>
#include <optional>
#include <string>
#include <vector>

#include <fmt/format.h>
#include <gtest/gtest.h>

#include "collectives/lowering/trial.h"
#include "collectives/lowering/wire_bound.h"
#include "tests/support/places.h"
#include "topology/presets/presets.h"

namespace rehearse {
namespace beside_bound_test {

constexpr double kFar = 1.5;
constexpr double kLeastBytes = 64.0 * (1 << 20);
constexpr double kMostBytes = 16.0 * (1 << 30);
constexpr CollectiveKind kKinds[] = {CollectiveKind::kAllReduce,     CollectiveKind::kAllGather,
                                     CollectiveKind::kReduceScatter, CollectiveKind::kAllToAll,
                                     CollectiveKind::kBroadcast,     CollectiveKind::kReduce};

// "mi300x | all-reduce" and, for a machine, two, eight and all: "2.1", the most of all sizes;
// "2.1 (1.6)" where the largest is far as well; or "-".
using Rows = std::map<std::string, std::vector<std::string>>;
constexpr size_t kPlaces = 4;

std::string Wish() {
  const char* const wish = std::getenv("REHEARSE_BOUNDS");
  return wish == nullptr ? "" : wish;
}

struct Distance {
  double most = 0;  // of all sizes, as a multiple of the bound
  double last = 0;  // of the largest

  std::string Text() const {
    if (most <= kFar) return "-";
    return last <= kFar ? fmt::format("{:.1f}", most) : fmt::format("{:.1f} ({:.1f})", most, last);
  }
};

Distance DistanceFrom(const WireBounds& bounds, const Cluster& cluster,
                      const std::vector<uint32_t>& ranks, CollectiveKind kind) {
  Trial trial;
  trial.kind = kind;
  trial.groups = {ranks};
  trial.algorithm = AlgorithmId::kAuto;
  trial.protocol = Protocol::kAuto;
  trial.root = ranks.front();
  Router router(cluster);
  std::vector<Bytes> sizes;
  for (double size = kLeastBytes; size <= kMostBytes; size *= 4) sizes.emplace_back(size);
  const std::vector<Seconds> times = TimesOf(trial, sizes, router);
  Tuner tuner(router, trial.nccl);
  Distance distance;
  for (size_t i = 0; i < sizes.size(); ++i) {
    const Choice choice = ChoiceOf(trial, sizes[i], tuner);
    const WireBound bound = bounds.Of(kind, sizes[i], trial.root, SwitchesOf(choice.algorithm->id));
    distance.last = times[i] / bound.time;
    distance.most = std::max(distance.most, distance.last);
    EXPECT_GE(distance.last, 1 - 1e-6) << cluster.name() << ", " << Name(kind);
    if (Wish() == "choices")
      fmt::print("{} {} {} {:.0f}: {:.2f} {} {} {}\n", cluster.name(), ranks.size(), Name(kind),
                 sizes[i].value() / (1 << 20), distance.last, choice.algorithm->name(),
                 Name(choice.protocol), bound.cut);
  }
  return distance;
}

void AddRows(const ClusterPreset& preset, Rows* rows) {
  std::string counted;
  for (const PresetParameter& parameter : preset.parameters)
    if ((parameter.name == "nodes" || parameter.name == "racks") && parameter.maximum >= 8)
      counted = parameter.name;
  const auto whole = BuildPreset(preset.name, {}, Place());
  std::unique_ptr<Cluster> eight;
  if (!counted.empty() && whole->node_count() < 8)
    eight = BuildPreset(preset.name, {{counted, 8}}, Place());
  const uint32_t counts[kPlaces] = {1, 2, 8, whole->node_count()};
  for (size_t place = 0; place < kPlaces; ++place) {
    const uint32_t nodes = counts[place];
    if (place == kPlaces - 1 && nodes <= 2) break;  // it has been looked at
    const Cluster& cluster = nodes > whole->node_count() && eight ? *eight : *whole;
    if (nodes > cluster.node_count()) continue;
    std::vector<uint32_t> ranks;
    for (uint32_t rank = 0; rank < cluster.device_count(); ++rank)
      if (cluster.NodeIndexOf(rank) < nodes) ranks.push_back(rank);
    if (ranks.size() < 2) continue;
    const WireBounds bounds(cluster, ranks);
    for (const CollectiveKind kind : kKinds) {
      const std::string text = DistanceFrom(bounds, cluster, ranks, kind).Text();
      if (text == "-") continue;
      auto& cells = (*rows)[fmt::format("{} | {}", preset.name, Name(kind))];
      cells.resize(kPlaces, "-");
      cells[place] = text;
    }
  }
}

// The table of the document, whose rows end with a reason.
struct Documented {
  Rows rows;
  std::vector<std::string> without_reason;
};
Documented ReadDocument() {
  Documented documented;
  std::ifstream stream(SourceDir() + "/collectives/BOUNDS.md");
  std::string line;
  bool in_table = false;
  while (std::getline(stream, line)) {
    if (line.starts_with("| preset |")) in_table = true;
    if (!in_table || !line.starts_with("| ") || line.starts_with("| preset |") ||
        line.starts_with("| ---"))
      continue;
    std::vector<std::string> cells;
    size_t begin = 2;
    for (size_t end = line.find(" |"); end != std::string::npos; end = line.find(" |", begin)) {
      cells.push_back(line.substr(begin, end - begin));
      begin = std::min(end + 3, line.size());
    }
    if (cells.size() != 2 + kPlaces + 1 || cells.back().empty()) {
      documented.without_reason.push_back(line);
      continue;
    }
    documented.rows[cells[0] + " | " + cells[1]] = {cells.begin() + 2, cells.end() - 1};
  }
  return documented;
}

std::string TextOf(const std::string& head, const std::vector<std::string>& cells) {
  std::string text = "| " + head + " |";
  for (const std::string& cell : cells) text += fmt::format(" {} |", cell);
  return text;
}

TEST(BesideBoundTest, CollectivesAreNearTheirBoundOrTheDocumentSaysWhyNot) {
  Rows found;
  for (const ClusterPreset& preset : ClusterPresets()) AddRows(preset, &found);
  if (!Wish().empty()) {
    for (const auto& [head, cells] : found) fmt::print("{}\n", TextOf(head, cells));
    return;
  }
  const Documented documented = ReadDocument();
  EXPECT_TRUE(documented.without_reason.empty()) << documented.without_reason.front();
  for (const auto& [head, cells] : found) {
    const auto row = documented.rows.find(head);
    if (row == documented.rows.end())
      ADD_FAILURE() << "not in the table: " << TextOf(head, cells);
    else
      EXPECT_EQ(TextOf(head, row->second), TextOf(head, cells));
  }
  for (const auto& [head, cells] : documented.rows)
    EXPECT_TRUE(found.count(head) > 0) << "no longer needed: " << TextOf(head, cells);
}

}  // namespace beside_bound_test
}  // namespace rehearse

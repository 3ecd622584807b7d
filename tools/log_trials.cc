#include "tools/log_trials.h"

#include <fmt/format.h>

#include "sim/base/error.h"
#include "sim/base/say.h"
#include "sim/base/visible_text.h"
#include "tools/foreign/logs/nccl_tests/nccl_log.h"
#include "tools/trial_options.h"

namespace rehearse {
namespace {

namespace po = boost::program_options;

Trial TrialOf(const NcclTable& table, const po::variables_map& values, const Cluster& cluster,
              bool ranks_are_given, const std::string& path) {
  const Place place{path, table.line, ""};
  if (!table.kind) {
    throw Error(place, fmt::format("the log does not say which collective it was{}; give --kind",
                                   table.why_no_kind.empty() ? "" : ": " + table.why_no_kind));
  }
  Trial trial =
      ReadTrial(values, *table.kind, cluster, ranks_are_given ? std::nullopt : table.ranks, place);
  if (ranks_are_given || table.groups.empty()) return trial;
  for (const std::vector<uint32_t>& group : table.groups) {
    if (group.back() < cluster.device_count()) continue;
    throw Error(place, fmt::format("found rank {}, expected ranks below {}, as many as cluster "
                                   "\"{}\" has devices",
                                   group.back(), cluster.device_count(), cluster.name()));
  }
  trial.groups = table.groups;
  return trial;
}

}  // namespace

std::vector<LogTrial> ReadLogTrials(std::string_view text, const std::string& path,
                                    const po::variables_map& values, const Cluster& cluster) {
  std::optional<CollectiveKind> kind;
  if (values.count("kind") > 0)
    kind = ParseCollectiveKind("--kind: ", values["kind"].as<std::string>());
  // --ranks says how many there are, whatever the log says.
  const bool ranks_are_given = values.count("ranks") > 0 || values["groups"].as<uint32_t>() != 1;
  std::optional<uint32_t> ranks;
  if (ranks_are_given) {
    const Trial any = ReadTrial(values, CollectiveKind::kAllReduce, cluster, std::nullopt);
    ranks = static_cast<uint32_t>(any.groups.front().size());
  }
  NcclLog read = ReadNcclLog(text, path, kind, ranks);
  for (const std::string& remark : read.remarks) Say(VisibleText(remark));
  std::vector<LogTrial> trials;
  trials.reserve(read.tables.size());
  for (NcclTable& table : read.tables) {
    Trial trial = TrialOf(table, values, cluster, ranks_are_given, path);
    trials.push_back({std::move(table), std::move(trial)});
  }
  return trials;
}

}  // namespace rehearse

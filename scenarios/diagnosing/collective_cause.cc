#include "scenarios/diagnosing/collective_cause.h"

#include <algorithm>
#include <cmath>

#include <fmt/format.h>

#include "scenarios/diagnosing/cause_rows.h"
#include "sim/base/units.h"
#include "topology/fabrics/fabric.h"
#include "topology/fabrics/router.h"
#include "topology/fabrics/structure.h"
#include "topology/files/edits.h"

namespace rehearse {

const std::vector<CollectiveCause>& CollectiveCauses() {
  static const std::vector<CollectiveCause> causes = {
      SlowCableRow(),     SlowNetworkRow(), FewerNicsRow(),       NicDownRow(),
      SlowPcieRow(),      SlowNvLinkRow(),  NoPeerToPeerRow(),    NoGpuDirectRow(),
      WrongNicRow(),      SocketsRow(),     HashCollisionsRow(),  SpineRow(),
      BoxOrderRow(),      PxnOffRow(),      AlgorithmPinnedRow(), ProtocolPinnedRow(),
      NvlsOffRow(),       FewChannelsRow(), OldLibraryRow(),      SlowLaunchRow(),
      NetworkLatencyRow()};
  return causes;
}

std::optional<FirstCrossing> FindCrossing(const CollectiveRun& run) {
  const Cluster& cluster = *run.cluster;
  const std::vector<uint32_t>& ranks = run.trials.front().groups.front();
  const auto other = std::find_if(ranks.begin(), ranks.end(), [&](uint32_t rank) {
    return cluster.NodeIndexOf(rank) != cluster.NodeIndexOf(ranks.front());
  });
  if (other == ranks.end()) return std::nullopt;
  Router router(cluster, run.trials.front().routing);
  for (const uint32_t link : router.Between(ranks.front(), *other).links) {
    if (cluster.KindOf(link) == LinkKind::kNetwork)
      return FirstCrossing{cluster.devices()[ranks.front()], cluster.SourceOf(link)};
  }
  return std::nullopt;
}

bool HasSeveralMachines(const CollectiveRun& run) {
  const std::vector<uint32_t>& ranks = run.trials.front().groups.front();
  return std::any_of(ranks.begin(), ranks.end(), [&](uint32_t rank) {
    return run.cluster->NodeIndexOf(rank) != run.cluster->NodeIndexOf(ranks.front());
  });
}

bool IsBetweenSwitches(const Cluster& cluster, uint32_t link) {
  return cluster.KindOfVertex(cluster.SourceOf(link)) == VertexKind::kSwitch &&
         cluster.KindOfVertex(cluster.TargetOf(link)) == VertexKind::kSwitch;
}

bool HasEqualWays(const CollectiveRun& run) {
  const Fabric* const fabric = FabricOf(*run.cluster);
  return fabric != nullptr && HasEqualWays(*fabric) && HasSeveralMachines(run);
}

std::optional<CollectiveRun> WithSlowLinks(const CollectiveRun& run, double share, Seconds latency,
                                           const std::function<bool(uint32_t link)>& is_meant) {
  Figures figures = run.cluster->figures();
  bool is_any = false;
  figures.ChangeLinks([&](uint32_t link, LinkFigures& of_link) {
    if (!is_meant(link)) return;
    is_any = true;
    of_link.bandwidth *= share;
    of_link.latency += latency;
  });
  if (!is_any) return std::nullopt;
  CollectiveRun changed = run;
  changed.cluster = std::make_shared<const Cluster>(run.cluster->With(std::move(figures)));
  return changed;
}

std::optional<CollectiveRun> ThroughTheHost(const CollectiveRun& run, double share,
                                            Seconds latency) {
  const Cluster& cluster = *run.cluster;
  std::optional<CollectiveRun> changed = WithSlowLinks(run, share, latency, [&](uint32_t link) {
    return cluster.KindOf(link) == LinkKind::kNetwork && !IsBetweenSwitches(cluster, link);
  });
  if (!changed) return std::nullopt;
  Figures figures = changed->cluster->figures();
  figures.network_plugin.has_ll128 = false;
  changed->cluster = std::make_shared<const Cluster>(changed->cluster->With(std::move(figures)));
  return changed;
}

CollectiveRun WithoutLinksOf(const CollectiveRun& run, const std::vector<std::string>& patterns,
                             LinkKind kind) {
  std::vector<Edit> edits;
  for (const std::string& pattern : patterns) {
    Edit edit;
    edit.selector = pattern;
    edit.kind = kind;
    edit.down = true;
    edits.push_back(edit);
  }
  CollectiveRun changed = run;
  changed.cluster = ApplyEdits(*run.cluster, edits);
  return changed;
}

std::vector<double> Geometric(double first, double last, size_t count) {
  std::vector<double> numbers;
  for (size_t i = 0; i < count; ++i)
    numbers.push_back(
        first * std::pow(last / first, static_cast<double>(i) / static_cast<double>(count - 1)));
  return numbers;
}

std::string ShareWords(double share) {
  return share < 0.1 ? fmt::format("{:.2g} %", 100 * share) : fmt::format("{:.0f} %", 100 * share);
}

std::string AdditionWords(double seconds) { return Print(Seconds(seconds)); }

}  // namespace rehearse

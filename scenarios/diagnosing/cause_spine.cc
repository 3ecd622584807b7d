// The cables between switches carry less than they should.
#include "scenarios/diagnosing/cause_rows.h"

namespace rehearse {

CollectiveCause SpineRow() {
  return {"spine",
          "the cables between switches are oversubscribed, or some are dead",
          "the same test within one leaf's boxes, and across leaves; iblinkinfo, or the switches' "
          "counters: uplinks that are down",
          Geometric(0.8, 0.05, 6),
          true,
          ShareWords,
          [](const CollectiveRun& run, double share) -> std::optional<CollectiveRun> {
            if (!HasSeveralMachines(run)) return std::nullopt;
            const Cluster& cluster = *run.cluster;
            return WithSlowLinks(run, share, Seconds(0),
                                 [&](uint32_t link) { return IsBetweenSwitches(cluster, link); });
          },
          "of the bandwidth"};
}

}  // namespace rehearse

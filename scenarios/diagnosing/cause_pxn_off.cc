// Messages between rails leave by the sender's own NIC.
#include "scenarios/diagnosing/cause_rows.h"
#include "topology/fabrics/fabric.h"
#include "topology/fabrics/structure.h"

namespace rehearse {

CollectiveCause PxnOffRow() {
  return {"pxn-off",
          "messages between rails do not go over NVLink to the receiver's rail (PXN is off)",
          "NCCL_PXN_DISABLE and NCCL_P2P_PXN_LEVEL; NCCL_DEBUG=INFO: channels of an all-to-all "
          "\"via NET/IB/0(8)/GDRDMA\" name the rank whose NIC they take in brackets",
          {1},
          false,
          [](double) { return std::string(); },
          [](const CollectiveRun& run, double) -> std::optional<CollectiveRun> {
            const Fabric* const fabric = FabricOf(*run.cluster);
            if (fabric == nullptr || !HasRails(*fabric) || !HasSeveralMachines(run))
              return std::nullopt;
            CollectiveRun changed = run;
            for (Trial& trial : changed.trials) {
              if (!trial.routing.pxn) return std::nullopt;
              trial.routing.pxn = false;
            }
            return changed;
          }};
}

}  // namespace rehearse

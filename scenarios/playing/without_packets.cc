#include "scenarios/playing/without_packets.h"

#include "sim/base/error.h"

namespace rehearse {

void RefusePackets(const Scenario& scenario) {
  if (scenario.lowering.fidelity != Fidelity::kPacket) return;
  throw Error({scenario.jobs.front().place.file, 0, ""},
              "fidelity packet does not say what holds transfers back, which explain and report "
              "need; run and collective take it, and here fidelity step does");
}

}  // namespace rehearse

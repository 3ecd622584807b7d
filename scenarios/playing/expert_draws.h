// Steps in which a seed decides which experts are busy (model.experts.imbalance). One seed is one
// draw; so such a step is simulated with several, and their range is shown beside it, with the time
// that the step would take if all experts had equally much to do.
//
// The step itself is the scenario's, with seed 1 if it names none: `run`, `plan` and `execute`
// share one schedule.
#pragma once

#include <optional>

#include "scenarios/playing/rehearsal.h"
#include "sim/schedule/alike.h"

namespace rehearse {

inline constexpr uint32_t kExpertDraws = 8;  // seeds from 1 on

// `step` is the scenario's own, and so that of seed 1; the others are simulated on `threads`
// threads (0: as many as the machine has cores). Nothing if experts are evenly busy, if there are
// none, or if the scenario fixes the seed. Throws as PlayScenario() does.
std::optional<ExpertSpread> DrawExperts(const Scenario& scenario, Seconds step, unsigned threads,
                                        ProgressObserver& observer);

// Layers of experts differ in which of them are busy, and so may micro-batches.
Alike AlikeUnder(const Network& network);

}  // namespace rehearse

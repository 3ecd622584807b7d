// Steps in which a seed decides which experts are busy (model.experts.imbalance). One seed is one
// draw; so such a step is played with several, and their range stands beside it, with what the step
// would take if all experts had as much to do.
//
// The step itself is the scenario's, of seed 1 where it names none: `run`, `plan` and `execute`
// have one schedule.
#pragma once

#include <optional>

#include "scenarios/playing/rehearsal.h"

namespace rehearse {

inline constexpr uint32_t kExpertDraws = 8;  // seeds from 1 on

// `step` is the scenario's own, and so that of seed 1: the others are played, on so many threads,
// 0: as many as the machine has cores. Nothing where experts are evenly busy, there are none, or
// the scenario fixes the seed. Throws as PlayScenario() does.
std::optional<ExpertSpread> DrawExperts(const Scenario& scenario, Seconds step, unsigned threads,
                                        ProgressObserver& observer);

}  // namespace rehearse

// Random schedules, as nobody's planner would write them: every kind of op, collective, algorithm
// and protocol, in any order, on several machines. A seed gives the same one on every machine.
#pragma once

#include <cstdint>
#include <string>

namespace rehearse {

// A scenario of one job whose schedule is in it. Its collectives match and messages meet; some
// still cannot be played, since an algorithm does not suit its group.
std::string RandomScheduleScenario(uint64_t seed);

}  // namespace rehearse

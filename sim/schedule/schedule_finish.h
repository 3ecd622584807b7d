// Whether a schedule finishes, or ranks wait for each other in a circle.
#pragma once

#include <vector>

#include "sim/schedule/schedule_posts.h"

namespace rehearse {

// Throws Error, naming the cycle of waits, when some op can never take place. Time grows with the
// number of ops; only an apparent cycle is confirmed by walking all ranks.
void CheckThatItFinishes(const Schedule& schedule, const std::vector<RolePosts>& posts,
                         const Meetings& meetings);

}  // namespace rehearse

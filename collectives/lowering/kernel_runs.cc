#include "collectives/lowering/kernel_runs.h"

#include "sim/schedule/done_ops.h"
#include "sim/schedule/stream_waits.h"

namespace rehearse {

KernelRuns FindRuns(const Role& role, bool series) {
  const auto size = static_cast<uint32_t>(role.ops.size());
  const StreamWaits streams = StreamWaitsOf(role);
  const auto is_kernel = [&](uint32_t place) {
    const auto* compute = std::get_if<Compute>(&role.ops[place].work);
    return compute != nullptr && !IsWait(*compute);
  };
  std::vector<bool> continues(size, series);  // the run of the op before it
  for (const Repeat& repeat : role.repeats) {
    continues[repeat.begin] = false;
    if (repeat.end < size) continues[repeat.end] = false;
  }
  for (uint32_t place = 0; place < size; ++place) {
    continues[place] = continues[place] && place > 0 && !streams.awaited[place - 1] &&
                       !streams.waits[place] && is_kernel(place - 1) && is_kernel(place) &&
                       role.ops[place - 1].stream == role.ops[place].stream;
  }
  KernelRuns runs;
  runs.length.assign(size, 1);
  runs.waits = streams.waits;
  for (uint32_t place = size; place-- > 1;) {
    if (continues[place]) runs.length[place - 1] = runs.length[place] + 1;
  }
  const DoneOps all(role);
  for (uint32_t place = 0; place < size; ++place)
    if (!continues[place]) runs.count += all.TimesOf(place);
  return runs;
}

}  // namespace rehearse

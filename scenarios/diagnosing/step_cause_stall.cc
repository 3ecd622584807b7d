// Time between steps in which devices do nothing: data that is not there, an allocator that gives
// memory back and asks again, a checkpoint, garbage collection. It is simply added.
#include "scenarios/diagnosing/step_cause_rows.h"

namespace rehearse {

StepCause StallRow() {
  StepCause cause;
  cause.name = "stall";
  cause.summary =
      "devices wait for the host between or within steps (data, allocator, checkpoints)";
  cause.confirm =
      "the same run on made-up data; num_alloc_retries of torch.cuda.memory_stats(); in a profile: "
      "gaps on all streams at once";
  cause.strengths = Geometric(0.03, 4, 8);
  cause.is_graded = true;
  cause.words = ShareWords;
  cause.of = "of a step more";
  cause.only_adds = true;
  return cause;
}

}  // namespace rehearse

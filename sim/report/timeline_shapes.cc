#include "sim/report/timeline_shapes.h"

#include <limits>
#include <string>
#include <vector>

#include "sim/report/timeline_record.h"

namespace rehearse {
namespace {

JsonShape AnyCount() { return AWhole(0, std::numeric_limits<int64_t>::max()); }

}  // namespace

const ObjectShape& TimelineShape() {
  static const ObjectShape shape = {
      "timeline",
      "When each op of a step was ready, began and ended, on every rank that was recorded.",
      {SchemaForEditors(),
       SchemaVersion(kTimelineSchema),
       {"title", AText(), Required(), "what the timeline shows", "\"cpu-4d\""},
       {"provenance", OneOf({"simulated", "measured"}), Required(), "where it is from"},
       {"ranks", AnyCount(), Required(), "how many ranks the step has", "2"},
       {"environment", Anything("object"), Optional("simulated"), "what it was measured in", "{}"},
       {"given", Anything("object"), Optional("not told"), "what the step was planned from", "{}"},
       {"roles", ListOf(ObjectOf(RecordedRoleShape)), Required(),
        "what ranks with the same work do", R"([{"name": "all", "ops": []}])"},
       {"role_of_rank", ListOf(Tuple({AnyCount(), AnyCount()})), Required(),
        "runs of [role, number of ranks]", "[[0, 2]]"},
       {"representative", ListOf(AnyCount()), Optional("every rank stands for itself"),
        "for each rank: the rank whose spans stand for its own", "[0, 0]"},
       {"left_out", ListOf(Tuple({AnyCount(), AnyCount()})), Default("[]"),
        "runs of [first rank, number of ranks] whose spans are not recorded", "[[1, 1]]"},
       {"steps", ListOf(ObjectOf(RecordedStepShape)), Required(),
        "one simulated step, or all measured ones",
        R"([{"warm_up": false, "step_picoseconds": 5, "spans": [[0, 0, 0, 0, 5]]}])"}}};
  return shape;
}

const ObjectShape& RecordedRoleShape() {
  static const ObjectShape shape = {
      "recorded role",
      "What ranks with the same work do.",
      {{"name", AText(), Required(), "name of the role", "\"all\""},
       {"ops", ListOf(ObjectOf(RecordedOpShape)), Required(),
        "the ops, in the order of the schedule", "[]"},
       {"repeats", ListOf(Tuple({AnyCount(), AnyCount(), AnyCount(), AnyCount()})), Default("[]"),
        "[begin, end, times, micro_batches] of ops that are stored once", "[[0, 4, 7, 1]]"}}};
  return shape;
}

const ObjectShape& RecordedOpShape() {
  const auto chosen = [](const char* name) {
    return JsonKey{name, AText(), Optional("no collective"), "what was chosen", "\"ring\""};
  };
  std::vector<std::string> phases;
  for (const Phase phase : kRecordedPhases) phases.emplace_back(Name(phase));
  static const ObjectShape shape = {
      "recorded op",
      "An op of the schedule.",
      {{"name", AText(), Required(), "name of the op", "\"forward\""},
       {"kind", AText(), Required(), "kind of the op", "\"gemm\""},
       {"axis", AText(), Required(), "the communicator; \"\" for compute", "\"data\""},
       {"phase", OneOf(phases), Required(), "phase of the step"},
       {"layer", AWhole(-1, kMostRecordedOps), Required(), "layer of the network; -1: none", "3"},
       {"micro_batch", AWhole(0, kMostRecordedOps), Required(), "which micro-batch it belongs to",
        "0"},
       chosen("algorithm"),
       chosen("protocol"),
       {"channels", AWhole(0, kMostRecordedChannels), Optional("no collective"),
        "how many channels were chosen", "24"}}};
  return shape;
}

const ObjectShape& RecordedStepShape() {
  static const ObjectShape shape = {
      "recorded step",
      "One step's spans.",
      {{"warm_up", TrueFalse(), Required(), "whether it is a warm-up step, which does not count",
        "false"},
       {"step_picoseconds", AnyCount(), Required(), "how long it took", "5"},
       {"spans", ListOf(Tuple({AnyCount(), AnyCount(), AnyCount(), AnyCount(), AnyCount()})),
        Required(), "[rank, op, ready, begin, end], times in ps, sorted by rank and op",
        "[[0, 0, 0, 0, 5]]"}}};
  return shape;
}

}  // namespace rehearse

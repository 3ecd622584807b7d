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
      "When each op of a step was ready, began and ended, on every rank that is kept.",
      {SchemaForEditors(),
       SchemaVersion(kTimelineSchema),
       {"title", AText(), Required(), "what was run", "\"cpu-4d\""},
       {"provenance", OneOf({"simulated", "measured"}), Required(), "where it comes from"},
       {"ranks", AnyCount(), Required(), "of the step", "2"},
       {"environment", Anything("object"), Optional("simulated"), "what it was measured in", "{}"},
       {"given", Anything("object"), Optional("not recorded"), "what the step was planned from",
        "{}"},
       {"roles", ListOf(ObjectOf(RecordedRoleShape)), Required(), "what ranks that do the same do",
        R"([{"name": "all", "ops": []}])"},
       {"role_of_rank", ListOf(Tuple({AnyCount(), AnyCount()})), Required(), "runs [role, ranks]",
        "[[0, 2]]"},
       {"representative", ListOf(AnyCount()), Optional("every rank stands for itself"),
        "for each rank, whose spans it has", "[0, 0]"},
       {"left_out", ListOf(Tuple({AnyCount(), AnyCount()})), Default("[]"),
        "runs [rank, ranks] whose spans are not kept", "[[1, 1]]"},
       {"steps", ListOf(ObjectOf(RecordedStepShape)), Required(),
        "one, or those that were measured",
        R"([{"warm_up": false, "step_picoseconds": 5, "spans": [[0, 0, 0, 0, 5]]}])"}}};
  return shape;
}

const ObjectShape& RecordedRoleShape() {
  static const ObjectShape shape = {
      "recorded role",
      "What ranks that do the same do.",
      {{"name", AText(), Required(), "of the role", "\"all\""},
       {"ops", ListOf(ObjectOf(RecordedOpShape)), Required(), "in the order of the schedule", "[]"},
       {"repeats", ListOf(Tuple({AnyCount(), AnyCount(), AnyCount(), AnyCount()})), Default("[]"),
        "[begin, end, times, micro_batches] of ops that are kept once", "[[0, 4, 7, 1]]"}}};
  return shape;
}

const ObjectShape& RecordedOpShape() {
  const auto chosen = [](const char* name) {
    return JsonKey{name, AText(), Optional("no collective"), "that was chosen", "\"ring\""};
  };
  std::vector<std::string> phases;
  for (const Phase phase : kRecordedPhases) phases.emplace_back(Name(phase));
  static const ObjectShape shape = {
      "recorded op",
      "What an op is.",
      {{"name", AText(), Required(), "of the op", "\"forward\""},
       {"kind", AText(), Required(), "of the op", "\"gemm\""},
       {"axis", AText(), Required(), "communicator; \"\" of compute", "\"data\""},
       {"phase", OneOf(phases), Required(), "of the step"},
       {"layer", AWhole(-1, kMostRecordedOps), Required(), "of the network; -1: none", "3"},
       {"micro_batch", AWhole(0, kMostRecordedOps), Required(), "which", "0"},
       chosen("algorithm"),
       chosen("protocol"),
       {"channels", AWhole(0, kMostRecordedChannels), Optional("no collective"), "that were chosen",
        "24"}}};
  return shape;
}

const ObjectShape& RecordedStepShape() {
  static const ObjectShape shape = {
      "recorded step",
      "One step's spans.",
      {{"warm_up", TrueFalse(), Required(), "it does not count", "false"},
       {"step_picoseconds", AnyCount(), Required(), "how long it took", "5"},
       {"spans", ListOf(Tuple({AnyCount(), AnyCount(), AnyCount(), AnyCount(), AnyCount()})),
        Required(), "[rank, op, ready, begin, end], times in ps, sorted by rank and op",
        "[[0, 0, 0, 0, 5]]"}}};
  return shape;
}

}  // namespace rehearse

#include "sim/report/timeline_fields.h"

#include <algorithm>
#include <cstddef>
#include <limits>
#include <string>
#include <vector>

#include <nlohmann/json.hpp>

namespace rehearse {
namespace {

using Json = nlohmann::ordered_json;

constexpr int64_t kMostRecordedOps = 1 << 24;
constexpr int64_t kMostRecordedChannels = 1 << 16;
constexpr int64_t kMostRanks = 1 << 24;
constexpr int64_t kMostCopies = int64_t{1} << 31;

constexpr ValueName<Provenance> kProvenances[] = {{"simulated", Provenance::kSimulated},
                                                  {"measured", Provenance::kMeasured}};

JsonShape AnyCount() { return AWhole(0, std::numeric_limits<int64_t>::max()); }

// ---- Ops ----------------------------------------------------------------------------------------

bool IsChosen(const RecordedOp& op) { return !op.algorithm.empty(); }

const Fields<RecordedOp>& RecordedOpFields() {
  static const FieldPresence kChosen = WrittenIf<IsChosen>("no collective");
  static const Fields<RecordedOp> fields(
      "recorded op", "An op of the schedule.",
      {{"name", &RecordedOp::name, AText(), Required(), "name of the op", "\"forward\""},
       {"kind", &RecordedOp::kind, AText(), Required(), "kind of the op", "\"gemm\""},
       {"axis", &RecordedOp::axis, AText(), Required(), "the communicator; \"\" for compute",
        "\"data\""},
       {"phase", &RecordedOp::phase, OneNamedOf(kRecordedPhases), Required(), "phase of the step"},
       {"layer", &RecordedOp::layer, AWhole(-1, kMostRecordedOps), Required(),
        "layer of the network; -1: none", "3"},
       {"micro_batch", &RecordedOp::micro_batch, AWhole(0, kMostRecordedOps), Required(),
        "which micro-batch it belongs to", "0"},
       {"algorithm", &RecordedOp::algorithm, AText(), kChosen, "what was chosen", "\"ring\""},
       {"protocol", &RecordedOp::protocol, AText(), kChosen, "what was chosen", "\"ring\""},
       {"channels", &RecordedOp::channels, AWhole(0, kMostRecordedChannels), kChosen,
        "how many channels were chosen", "24"}});
  return fields;
}

void ReadOps(const JsonReader& reader, std::vector<RecordedOp>* ops) {
  for (const JsonReader& element : reader.Elements()) {
    const JsonReader op = element.As(RecordedOpFields().shape());
    RecordedOpFields().ReadInto(op, &ops->emplace_back());
    if (op.Has("algorithm")) MustHave(op, {"protocol", "channels"});
  }
}
void WriteOps(const std::vector<RecordedOp>& ops, Json* to) {
  *to = Json::array();
  for (const RecordedOp& op : ops) RecordedOpFields().Write(op, &to->emplace_back());
}

// ---- Roles --------------------------------------------------------------------------------------

// Of a role whose ops are there.
void ReadRepeats(const JsonReader& reader, RecordedRole* role) {
  int64_t begin = 0;
  const auto ops = static_cast<int64_t>(role->ops.size());
  int64_t all = ops;
  for (const JsonReader& entry : reader.Elements()) {
    const std::vector<JsonReader> numbers = entry.Elements();
    if (numbers.size() != 4) entry.Expected("[begin, end, times, micro_batches]");
    Repeat repeat;
    repeat.begin = static_cast<uint32_t>(numbers[0].Integer(begin, kMostRecordedOps));
    repeat.end = static_cast<uint32_t>(numbers[1].Integer(int64_t{repeat.begin} + 1, ops));
    repeat.times =
        static_cast<uint32_t>(numbers[2].Integer(0, (kMostCopies - all) / repeat.size()));
    repeat.micro_batches =
        static_cast<int32_t>(numbers[3].Integer(0, kMostRecordedOps / std::max(repeat.times, 1u)));
    begin = repeat.end;
    all += int64_t{repeat.times} * repeat.size();
    role->repeats.push_back(repeat);
  }
}
void WriteRepeats(const RecordedRole& role, Json* to) {
  for (const Repeat& repeat : role.repeats)
    to->push_back({repeat.begin, repeat.end, repeat.times, repeat.micro_batches});
}

const Fields<RecordedRole>& RecordedRoleFields() {
  static const Fields<RecordedRole> fields(
      "recorded role", "What ranks with the same work do.",
      {{"name", &RecordedRole::name, AText(), Required(), "name of the role", "\"all\""},
       {"ops", &RecordedRole::ops,
        ReadBy(ListOf(ObjectOf(ShapeIn<RecordedOpFields>)), ReadOps, WriteOps), Required(),
        "the ops, in the order of the schedule", "[]"},
       {"repeats", kItself,
        ReadBy(ListOf(Tuple({AnyCount(), AnyCount(), AnyCount(), AnyCount()})), ReadRepeats,
               WriteRepeats),
        Default("[]"), "[begin, end, times, micro_batches] of ops that are stored once",
        "[[0, 4, 7, 1]]"}});
  return fields;
}

void ReadRecordedRoles(const JsonReader& reader, std::vector<RecordedRole>* roles) {
  for (const JsonReader& role : reader.Elements())
    roles->push_back(RecordedRoleFields().Read(role));
  if (roles->empty()) reader.Expected("at least one role");
}
void WriteRecordedRoles(const std::vector<RecordedRole>& roles, Json* to) {
  *to = Json::array();
  for (const RecordedRole& role : roles) RecordedRoleFields().Write(role, &to->emplace_back());
}

// ---- The record ---------------------------------------------------------------------------------

void WriteRoleOfRank(const TimelineRecord& record, Json* runs) {
  *runs = Json::array();
  const std::vector<uint32_t>& roles = record.role_of_rank;
  for (size_t first = 0; first < roles.size();) {
    size_t last = first;
    while (last < roles.size() && roles[last] == roles[first]) ++last;
    runs->push_back({roles[first], last - first});
    first = last;
  }
}

// Runs of consecutive ranks, as (first, how many).
void WriteLeftOut(const std::vector<uint32_t>& ranks, Json* runs) {
  for (size_t first = 0; first < ranks.size();) {
    size_t last = first;
    while (last < ranks.size() && ranks[last] - ranks[first] == last - first) ++last;
    runs->push_back({ranks[first], last - first});
    first = last;
  }
}

// Of a record whose roles are there.
void ReadRoleOfRank(const JsonReader& reader, TimelineRecord* record) {
  std::vector<uint32_t>& role_of_rank = record->role_of_rank;
  for (const JsonReader& run : reader.Elements()) {
    const std::vector<JsonReader> pair = run.Elements();
    if (pair.size() != 2) run.Expected("[role, ranks]");
    const int64_t role = pair[0].Integer(0, static_cast<int64_t>(record->roles.size()) - 1);
    const int64_t ranks =
        pair[1].Integer(1, kMostRanks - static_cast<int64_t>(role_of_rank.size()));
    role_of_rank.insert(role_of_rank.end(), static_cast<size_t>(ranks),
                        static_cast<uint32_t>(role));
  }
  if (role_of_rank.empty()) reader.Expected("at least one rank");
}

void WriteRankCount(const TimelineRecord& record, Json* to) { *to = record.ranks(); }

bool SharesSpans(const TimelineRecord& record) {
  return !record.steps.empty() && !record.steps.front().timeline.representative.empty();
}
void WriteRepresentative(const TimelineRecord& record, Json* to) {
  *to = record.steps.front().timeline.representative;
}

}  // namespace

const ObjectShape& RecordedStepShape() {
  static const ObjectShape shape = {
      "recorded step",
      "One step's spans.",
      {{"warm_up", TrueFalse(), Required(), "whether it is a warm-up step, which does not count",
        "false"},
       {"step_picoseconds", AnyCount(), Required(), "how long it took", "5"},
       {"disturbed", TrueFalse(), Default("false"),
        "whether other programs disturbed it; then it counts only if all steps were", "true"},
       {"lost", ANumber(0, 1), Optional("not known"), "share of it that other programs took",
        "0.07"},
       {"spans", ListOf(Tuple({AnyCount(), AnyCount(), AnyCount(), AnyCount(), AnyCount()})),
        Required(), "[rank, op, ready, begin, end], times in ps, sorted by rank and op",
        "[[0, 0, 0, 0, 5]]"}}};
  return shape;
}

const Fields<TimelineRecord>& TimelineFields() {
  static const Fields<TimelineRecord> fields(
      "timeline",
      "When each op of a step was ready, began and ended, on every rank that was recorded.",
      {SchemaForEditors(),
       SchemaVersion(kTimelineSchema),
       {"title", &TimelineRecord::title, AText(), Required(), "what the timeline shows",
        "\"cpu-4d\""},
       {"provenance", &TimelineRecord::provenance, OneOf(kProvenances), Required(),
        "where it is from"},
       {"ranks", kItself, WrittenBy(AnyCount(), WriteRankCount), Required(),
        "how many ranks the step has", "2"},
       {"environment", &TimelineRecord::environment, Anything("object"), Optional("simulated"),
        "what it was measured in", "{}"},
       {"given", &TimelineRecord::given, Anything("object"), Optional("not told"),
        "what the step was planned from", "{}"},
       {"roles", &TimelineRecord::roles,
        ReadBy(ListOf(ObjectOf(ShapeIn<RecordedRoleFields>)), ReadRecordedRoles,
               WriteRecordedRoles),
        Required(), "what ranks with the same work do", R"([{"name": "all", "ops": []}])"},
       {"role_of_rank", kItself,
        ReadBy(ListOf(Tuple({AnyCount(), AnyCount()})), ReadRoleOfRank, WriteRoleOfRank),
        Required(), "runs of [role, number of ranks]", "[[0, 2]]"},
       {"representative", kItself, WrittenBy(ListOf(AnyCount()), WriteRepresentative),
        WrittenIf<SharesSpans>("every rank stands for itself"),
        "for each rank: the rank whose spans stand for its own", "[0, 0]"},
       {"left_out", &TimelineRecord::left_out,
        WrittenBy(ListOf(Tuple({AnyCount(), AnyCount()})), WriteLeftOut), Default("[]"),
        "runs of [first rank, number of ranks] whose spans are not recorded", "[[1, 1]]"},
       {"steps", ListOf(ObjectOf(RecordedStepShape)), Required(),
        "one simulated step, or all measured ones",
        R"([{"warm_up": false, "step_picoseconds": 5, "spans": [[0, 0, 0, 0, 5]]}])"}});
  return fields;
}

}  // namespace rehearse

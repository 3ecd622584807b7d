#include "sim/report/fixed_ops.h"

#include <cstddef>
#include <cstdint>
#include <map>
#include <string_view>
#include <tuple>
#include <vector>

namespace rehearse {
namespace {

using OpKey = std::tuple<std::string_view, Phase, int32_t>;

OpKey KeyOf(const RecordedOp& op) { return {op.name, op.phase, op.layer}; }

bool IsFixed(const RecordedOp& op) { return op.kind == "fixed" || op.kind == kWaitKind; }

}  // namespace

void TellFixedOps(const TimelineRecord& other, TimelineRecord* record) {
  std::vector<bool> is_told(record->roles.size());
  for (uint32_t rank = 0; rank < record->ranks() && rank < other.ranks(); ++rank) {
    const uint32_t place = record->role_of_rank[rank];
    if (is_told[place]) continue;
    is_told[place] = true;
    RecordedRole& role = record->roles[place];
    const RecordedRole& model = other.roles[other.role_of_rank[rank]];
    if (!role.repeats.empty() || !model.repeats.empty()) continue;
    std::map<OpKey, std::vector<const RecordedOp*>> known;
    for (const RecordedOp& op : model.ops) known[KeyOf(op)].push_back(&op);
    std::map<OpKey, size_t> met;
    for (RecordedOp& op : role.ops) {
      const auto found = known.find(KeyOf(op));
      if (found == known.end()) continue;
      const size_t next = met[found->first]++;
      if (!IsFixed(op) || next >= found->second.size()) continue;
      op.kind = found->second[next]->kind;
      op.axis = found->second[next]->axis;
    }
  }
}

}  // namespace rehearse

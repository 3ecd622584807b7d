// The tables of a schedule file (sim/schedule/schedule_json.h says what they mean).
#pragma once

#include <string>
#include <vector>

#include "sim/base/json_shape.h"

namespace rehearse {

const ObjectShape& ScheduleShape();  // with the keys of a role, which may stand beside the others
const ObjectShape& FactsShape();
const ObjectShape& CommunicatorShape();
const ObjectShape& CommunicatorMeshShape();

const ObjectShape& RoleShape();
std::vector<std::string> RoleKeys();  // all except its name
const ObjectShape& StreamShape();
const ObjectShape& RegionShape();
const ObjectShape& SequenceOrderShape();
const ObjectShape& BufferShape();
const ObjectShape& ViewShape();
const ObjectShape& RepeatShape();

// What ops do, by the key that says it, each with the table of such an op.
struct OpTable {
  std::string work;  // "duration", "gemm", "compute", "collective", "send_to", "receive_from"
  ObjectShapeOf table;
};
const std::vector<OpTable>& OpTables();
const ObjectShape& GemmShape();

}  // namespace rehearse

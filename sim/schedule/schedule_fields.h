// The tables of a schedule file (sim/schedule/schedule_json.h says what they mean). Rows that refer
// to others by name or place are read by hand, because only the role knows what there is.
//
// Tables read, but do not write: a schedule may have millions of ops, and
// sim/schedule/schedule_write.cc makes their text without JSON values in between.
#pragma once

#include <string>
#include <vector>

#include "sim/base/json_fields.h"
#include "sim/schedule/schedule.h"
#include "sim/schedule/schedule_json.h"

namespace rehearse {

// The whole document, with the keys of a role, which may stand beside the others.
const Fields<ScheduleTitle>& ScheduleFields();
const Fields<Schedule>& FactsFields();
const ObjectShape& CommunicatorShape();
const ObjectShape& CommunicatorMeshShape();

const Fields<Role>& RoleFields();
std::vector<std::string> RoleKeys();  // all except its name
const Fields<Stream>& StreamFields();
const Fields<Region>& RegionFields();
const Fields<Buffer>& BufferFields();
const Fields<View>& ViewFields();
const Fields<Repeat>& RepeatFields();

// What ops do, by the key that says it, each with the table of such an op.
struct OpTable {
  std::string work;  // "duration", "gemm", "compute", "collective", "send_to", "receive_from"
  ObjectShapeOf table;
  void (*read)(const JsonReader& reader, Work* work);  // what the table's rows bind
};
const std::vector<OpTable>& OpTables();
const Fields<Op>& OpFields();  // rows that all these tables have
const Fields<Compute>& GemmFields();

}  // namespace rehearse

#include <fmt/format.h>
#include <nlohmann/json.hpp>

#include "sim/base/error.h"
#include "sim/base/json_parse.h"
#include "sim/base/schema_version.h"
#include "sim/schedule/buffer_check.h"
#include "sim/schedule/op_error.h"
#include "sim/schedule/schedule_check.h"
#include "sim/schedule/schedule_fields.h"
#include "sim/schedule/schedule_format.h"
#include "sim/schedule/schedule_json.h"
#include "sim/schedule/schedule_read_parts.h"

namespace rehearse {
namespace {

// Runs [role, ranks] that are repeated until each rank has one.
std::vector<uint32_t> ReadRuns(const JsonReader& reader, const ListedNames& roles, uint32_t ranks) {
  std::vector<uint32_t> list;
  for (const JsonReader& run : reader.Elements()) {
    const std::vector<JsonReader> parts = run.Elements();
    if (parts.size() != 2) run.Expected("a run as [role, number of ranks]");
    const uint32_t role = roles.Find(parts[0]);
    list.resize(list.size() + CountAt(parts[1], 1, ranks), role);
    if (list.size() > ranks)
      reader.Fail(
          fmt::format("found runs of more than {} ranks, the number that there are", ranks));
  }
  if (list.empty() || ranks % list.size() != 0)
    reader.Fail(fmt::format("found runs of {} ranks, expected all {} ranks or a divisor of them",
                            list.size(), ranks));
  list.reserve(ranks);
  const size_t period = list.size();
  while (list.size() < ranks) list.push_back(list[list.size() - period]);
  return list;
}

void ReadRoles(const JsonReader& document, const ListedNames& communicators, Schedule* schedule) {
  ListedNames roles("role");
  if (!document.Has("roles")) {
    schedule->roles.push_back(ReadRole(document, *schedule, communicators));
    schedule->roles.back().name = "all";
    roles.Add("all");
  } else {
    for (const std::string& key : RoleKeys()) {
      if (document.Has(key))
        document.At(key).Fail(
            fmt::format("found \"{}\" beside \"roles\", expected it in one of the roles", key));
    }
    const JsonReader list = document.At("roles");
    for (const JsonReader& element : list.Elements()) {
      const JsonReader reader = element.As(RoleFields().shape());
      Role named;  // a name that is missing is told before what is wrong with the ops
      RoleFields().ReadInto(reader, &named);
      schedule->roles.push_back(ReadRole(reader, *schedule, communicators));
      schedule->roles.back().name = std::move(named.name);
      roles.Add(schedule->roles.back().name);
    }
    if (schedule->roles.empty()) list.Expected("at least one role");
  }
  const uint32_t ranks = CountAt(document.At("ranks"), 1, kMostRanks);
  if (document.Has("role_of_rank"))
    schedule->role_of_rank = ReadRuns(document.At("role_of_rank"), roles, ranks);
  else if (roles.count() > 1)
    document.Fail("missing key \"role_of_rank\": there is more than one role");
  else
    schedule->role_of_rank.assign(ranks, 0);
}

// Runs the checks, and says where in the file the op is that they complain about; for a role with
// repeats only which role, because they count copies.
void Check(const JsonReader& document, const Schedule& schedule) {
  try {
    CheckSchedule(schedule);
    CheckBuffers(schedule);
  } catch (const OpError& error) {
    const JsonReader role =
        document.Has("roles") ? document.At("roles").Elements()[error.role()] : document;
    if (!schedule.roles[error.role()].repeats.empty()) role.Fail(error.what());
    role.At("ops").Elements()[error.op()].Fail(error.what());
  } catch (const Error& error) {
    document.Fail(error.what());
  }
}

}  // namespace

bool IsSchedule(const nlohmann::json& document) {
  if (!document.is_object() || !document.contains("schema")) return false;
  const nlohmann::json& schema = document["schema"];
  return schema.is_string() && schema.get<std::string>().starts_with(kScheduleSchemas);
}

Schedule ReadSchedule(const JsonReader& object) {
  CheckVersion(object.At("schema"), kScheduleSchema);
  const JsonReader document = object.As(ScheduleFields().shape());
  Schedule schedule;
  const uint32_t ranks = CountAt(document.At("ranks"), 1, kMostRanks);
  if (document.Has("facts"))
    FactsFields().ReadInto(document.At("facts").As(FactsFields().shape()), &schedule);
  ListedNames communicators("communicator");
  if (document.Has("communicators")) {
    for (const JsonReader& reader : document.At("communicators").Elements()) {
      schedule.communicators.push_back(ReadCommunicator(reader, ranks));
      communicators.Add(schedule.communicators.back().name());
    }
  }
  ReadRoles(document, communicators, &schedule);
  Check(document, schedule);
  return schedule;
}

ScheduleTitle ReadScheduleTitle(const JsonReader& document) {
  ScheduleTitle title;
  ScheduleFields().ReadInto(document, &title);
  return title;
}

}  // namespace rehearse

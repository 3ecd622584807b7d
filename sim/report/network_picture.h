// What a network did, packet by packet, in terms of a schedule's ops: queues and pauses of its
// ports over time, which port made others stand still, and whose transfers that held up.
#pragma once

#include <string>
#include <vector>

#include <nlohmann/json_fwd.hpp>

#include "sim/base/quantity.h"
#include "sim/engine/ops_of_tasks.h"
#include "sim/engine/program.h"
#include "sim/packets/packet_history.h"
#include "sim/report/op_name.h"
#include "sim/schedule/schedule.h"

namespace rehearse {

// Transfers of one op that waited in ports that stood still.
struct HeldOp {
  OpName name;
  uint32_t transfers = 0;
  Seconds longest;  // of one transfer, at one port
};

struct NamedTree {
  std::string root;  // port
  Seconds stopped;   // sum over the ports that stood still because of it
  uint32_t ports = 0;
  uint32_t depth = 0;           // cables from the root to the farthest of them
  std::vector<HeldOp> own;      // on their way over the root; the longest first
  std::vector<HeldOp> victims;  // whose way does not lead over the root
};

struct NetworkPicture {
  Seconds interval;                // of a PortInterval
  uint32_t ports = 0;              // that sent anything
  std::vector<PortHistory> shown;  // those with most to show
  std::vector<NamedTree> trees;    // most stopped first
};

NetworkPicture DrawNetwork(const PacketHistory& history, const Schedule& schedule,
                           const Program& program, const OpsOfTasks& ops);

// For people: a table of ports with their queues over time, then what held others up. At most
// `rows` of each list; `columns` characters of time.
std::vector<std::string> NetworkLines(const NetworkPicture& picture, size_t rows,
                                      size_t columns = 48);
nlohmann::ordered_json ToJson(const NetworkPicture& picture);

}  // namespace rehearse

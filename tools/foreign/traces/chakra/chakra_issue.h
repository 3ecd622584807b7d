// In which order ASTRA-sim would issue the nodes of all traces: whatever is ready, and where
// several are ready for one engine, the lowest number. Which they are depends on how long
// communication takes; that is only guessed here, since it is the simulation that will tell.
#pragma once

#include <cstdint>
#include <vector>

#include "tools/foreign/traces/chakra/chakra_order.h"

namespace rehearse {

enum class IssueKind : uint8_t {
  kWork,     // takes its time
  kSend,     // takes its time, and then what it sends is there; whether it is received or not
  kReceive,  // ends when what it receives is there
  kMeeting,  // begins when all that meet are there, and takes its time
};

struct IssueNode {
  IssueKind kind = IssueKind::kWork;
  uint32_t engine = 0;  // of its trace; an engine does one at a time
  uint32_t with = 0;    // the message or meeting
  double microseconds = 0;
};

inline constexpr uint32_t kNoMessage = 0xffffffffu;  // what is received is there from the start

struct IssueTrace {
  std::vector<IssueNode> nodes;  // as the trace has them
  // By engine: whether nodes are done in the order that they already have, since others match it.
  std::vector<bool> keeps_order;
};

// Changes the orders of all traces so that each engine's nodes come as they are issued; beyond
// that, the lowest number is still first. `meetings`: how many meet, by number; `messages`: how
// many there are.
void OrderAsIssued(const ChakraTraces& traces, const std::vector<IssueTrace>& issues,
                   const std::vector<uint32_t>& meetings, uint32_t messages,
                   std::vector<NodeOrder>* orders);

}  // namespace rehearse

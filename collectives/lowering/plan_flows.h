// The flows of one meeting at a site with a plan (collectives/lowering/rounds.h), between its
// begin and its end.
//
// fluid  a flow for each round of each part, one after the other; of a pipeline, one flow, which
//        waits for the first piece to pass and for the pieces' latencies before it moves the bytes.
// step   a flow for each message. It begins when both its ends, ranks or switches, are done with
//        all their messages of earlier steps (collectives/algorithms/steps.h). A rank is done when
//        all of its own are.
// If folded, all this happens once for each class. Only for collectives/lowering/lower.cc.
#pragma once

#include <functional>
#include <map>

#include "collectives/lowering/folding.h"
#include "collectives/lowering/transfers.h"
#include "sim/engine/program.h"

namespace rehearse {

// One meeting of the ranks of a site. Ranks and links are classes.
struct Meeting {
  TaskId begin;                     // the rendezvous
  TaskId move;                      // when the first step begins
  TaskId end;                       // everybody's, unless `ends` has one for a rank class
  std::map<uint32_t, TaskId> ends;  // step fidelity
};

// Where the flows go.
struct FlowSink {
  const TransferTable& table;
  const Folding& folding;
  ProgramBuilder& builder;
  // Adds the flow of a class of transfers: fills in its links, detour and parties, which are the
  // ranks of a site or these.
  std::function<TaskId(uint32_t transfer_class, const Flow& flow, const Site& site)> add;
  std::function<TaskId(uint32_t transfer_class, const Flow& flow,
                       const std::vector<uint32_t>& ranks)>
      add_between;
};

// The classes of the site's transfers, each once, in order.
std::vector<uint32_t> ClassesAt(const Site& site, const Folding& folding);

// Fills in `end` and `ends` of a meeting whose `begin` and `move` are set. `classes` are those at
// the site.
void AddRoundFlows(const Site& site, const std::vector<uint32_t>& classes, const GroupPlan& plan,
                   Bytes bytes, const FlowSink& sink, Meeting* meeting);
void AddMessageFlows(const Site& site, const GroupPlan& plan, Bytes bytes, const FlowSink& sink,
                     Meeting* meeting);

}  // namespace rehearse

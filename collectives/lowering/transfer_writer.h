// Writes transfers and the links that they use into a table (collectives/lowering/transfers.h), in
// each form that a collective may have. Which sites there are, what they do and which of them share
// their transfers is decided elsewhere.
#pragma once

#include <cstdint>
#include <vector>

#include "collectives/algorithms/channels.h"
#include "collectives/lowering/rounds.h"
#include "collectives/lowering/transfers.h"

namespace rehearse {

class TransferWriter {
 public:
  // `ranks` are those of the schedule. The router and the table must outlive it.
  TransferWriter(Router& router, uint32_t ranks, TransferTable* table)
      : router_(router), ranks_(ranks), table_(*table) {}

  // A ring as one coupled transfer.
  void AddRing(const Choice& choice, const Channel& channel);
  // A transfer for each edge of a ring.
  void AddEdges(const Choice& choice, const Channel& channel);
  // One for each flow of each round; those of a round begin when those of the one before are done.
  void AddRounds(uint32_t part, const std::vector<RoundFlow>& rounds);
  // One for each message of the part, step by step.
  void AddMessages(const GroupPlan& plan, uint32_t part_index);
  // From one rank to another, by themselves.
  void AddMessage(const Choice& choice, uint32_t from, uint32_t to, uint64_t phase);
  // Between a device and the memory of its host, over these links.
  void AddCopy(uint32_t rank, const std::vector<uint32_t>& links);
  // What a group in a machine does is what a similar group in another does, link by link.
  void CopyTransfers(const Site& alike, Site* site);

 private:
  Transfer OnRoute(const Choice& choice, const Route& route);
  void AddPath(const MessageWay& way, Transfer* transfer);
  void AddUses(const std::vector<LinkUse>& own, const std::vector<LinkUse>& detour,
               Transfer* transfer);

  Router& router_;
  const uint32_t ranks_;
  TransferTable& table_;
};

}  // namespace rehearse

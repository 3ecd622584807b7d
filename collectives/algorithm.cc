#include "collectives/algorithm.h"

#include <algorithm>
#include <cctype>
#include <vector>

#include "sim/error.h"

namespace rehearse {
namespace {

using enum CollectiveKind;

const Algorithm kAlgorithms[] = {
    {"ring",
     "Ring",
     "around rings, one or many channels; a pipeline for broadcast and reduce",
     {kAllReduce, kAllGather, kReduceScatter, kBroadcast, kReduce, kSendReceive}},
    {"tree",
     "Tree",
     "double binary tree across nodes, chains inside, pipelined",
     {kAllReduce, kBroadcast, kReduce}},
    {"halving-doubling",
     "",
     "halving distances, then doubling them (Rabenseifner)",
     {kAllReduce, kAllGather, kReduceScatter}},
    {"doubling",
     "",
     "doubling distances, any number of ranks: fewest steps",
     {kAllReduce, kAllGather, kBarrier}},
    {"direct",
     "",
     "everybody sends to everybody at once",
     {kAllReduce, kAllGather, kReduceScatter, kAllToAll}},
    {"pairwise", "", "one partner after the other", {kAllToAll}},
    {"bruck", "", "log p steps, each block on several ways", {kAllToAll}},
    {"pxn", "", "rail-aware: through the neighbour's NIC", {kAllToAll}},
    {"nvls",
     "NVLS",
     "the node's switch adds and multicasts",
     {kAllReduce, kAllGather, kReduceScatter}},
    {"collnet",
     "CollnetDirect",
     "the network's switches add (SHARP), the node scatters and gathers",
     {kAllReduce}},
    {"hierarchical",
     "",
     "reduce-scatter in the node, all-reduce across, all-gather in the node",
     {kAllReduce, kAllGather, kReduceScatter}},
    {"bucket",
     "",
     "all dimensions and directions of a torus at once",
     {kAllReduce, kAllGather, kReduceScatter}},
    {"chain", "", "pipelined along one path, as SUMMA needs", {kBroadcast, kReduce}},
};

std::string Lower(std::string_view text) {
  std::string lower(text);
  for (char& letter : lower) {
    letter = static_cast<char>(std::tolower(static_cast<unsigned char>(letter)));
  }
  return lower;
}

}  // namespace

std::span<const Algorithm> Algorithms() { return kAlgorithms; }

const Algorithm& FindAlgorithm(std::string_view name) {
  const std::string wanted = Lower(name);
  std::vector<std::string> names;
  for (const Algorithm& row : kAlgorithms) {
    if (!wanted.empty() && (wanted == row.name || wanted == Lower(row.nccl_name))) return row;
    names.emplace_back(row.name);
  }
  throw Error(fmt::format("unknown algorithm \"{}\", expected auto, {}{}", std::string(name),
                          fmt::join(names, ", "), DidYouMean(wanted, names)));
}

void CheckKind(const Algorithm& algorithm, CollectiveKind kind) {
  if (algorithm.kinds.Has(kind)) return;
  std::vector<std::string> able;
  for (const Algorithm& row : kAlgorithms) {
    if (row.kinds.Has(kind)) able.emplace_back(row.name);
  }
  throw Error(fmt::format("algorithm \"{}\" cannot do {}; {} can", algorithm.name, Name(kind),
                          fmt::join(able, ", ")));
}

}  // namespace rehearse

// A job's ranks from the traces of some of them.
//
// What a rank did with others says how the job's ranks are grouped: a group of ranks a, a + s, ...
// is one of many alike, which differ in the other digits of a rank's number (a digit: how often a
// stride goes into it, up to the group's size). So every rank of the job has such groups, and does
// what that traced rank did which has its place in the groups where messages pass (its stage), and
// comes nearest before it.
//
// Where only a group's size is known, groups lie next to each other in the order of how much they
// are used, as in Megatron's and torchtitan's order of tensor, context and data ranks.
//
// A job of another size keeps its groups, except that those that reach across the whole job reach
// across the whole of the other one.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "sim/schedule/communicator.h"
#include "tools/foreign/traces/kineto/kineto_transfers.h"

namespace rehearse {

struct KinetoJob {
  std::vector<Communicator> communicators;
  std::vector<std::vector<KinetoWork>> works;  // by trace, as KinetoTrace::transfers
  std::vector<uint32_t> role_of_rank;          // the trace of which it does the same
};

// The traced ranks and no others.
KinetoJob TracedJob(const KinetoRanksOfStep& ranks);

// `events`: of the step, by trace. Collectives and messages on which ranks would not agree stay as
// long as measured, which `remarks` says. Throws Error where `world` is no multiple or divisor of
// the job's ranks that its groups can have.
KinetoJob ExtrapolatedJob(const KinetoRanksOfStep& ranks,
                          const std::vector<std::vector<uint32_t>>& events, uint32_t world,
                          std::vector<std::string>* remarks);

}  // namespace rehearse

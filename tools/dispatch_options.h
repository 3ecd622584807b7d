// rehearse collective dispatch and combine: what experts send, by its numbers.
//
// A dispatch brings every token of a rank to the ranks of its experts, a combine brings the results
// back. By deepep tokens come once to a machine and once to a rank of it, the bytes that follow
// from uniform routing (collectives/algorithms/token_spread.h); by any other algorithm of an
// all-to-all, once for every expert.
#pragma once

#include <optional>
#include <string>
#include <vector>

#include <boost/program_options.hpp>

#include "collectives/algorithms/token_spread.h"
#include "tools/command.h"
#include "tools/output_format.h"
#include "topology/cluster/cluster.h"

namespace rehearse {

inline constexpr const char* kDispatch = "dispatch";
inline constexpr const char* kCombine = "combine";

// "dispatch" and "combine".
bool IsExpertExchange(const std::string& kind);

// --tokens, --hidden, --dtype, --top-k, --experts, --expert-groups, --limited-groups.
void AddDispatchOptions(CommandSyntax* syntax);
// Throws Error that names one of them if it was given, for kinds that have none.
void RefuseDispatchOptions(const boost::program_options::variables_map& values,
                           const std::string& kind);

// The whole command: times each of --tokens, and says what it said.
std::string TimeDispatch(const boost::program_options::variables_map& values,
                         const std::string& kind, const Cluster& cluster, OutputFormat format);

}  // namespace rehearse

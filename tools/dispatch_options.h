// rehearse collective dispatch and combine: what experts send, given in tokens.
//
// A dispatch brings every token of a rank to the ranks of its experts, a combine brings the results
// back. With deepep a token is sent once to a machine and once to each rank there, in the numbers
// that uniform routing gives (collectives/algorithms/token_spread.h); any other algorithm of an
// all-to-all sends it once for every expert.
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

// Whether the kind is "dispatch" or "combine".
bool IsExpertExchange(const std::string& kind);

// Adds --tokens, --hidden, --dtype, --top-k, --experts, --expert-groups, --limited-groups.
void AddDispatchOptions(CommandSyntax* syntax);
// Throws Error that names one of them if it was given, for kinds that have none.
void RefuseDispatchOptions(const boost::program_options::variables_map& values,
                           const std::string& kind);

// The whole command: it times each of --tokens, and returns what to print.
std::string TimeDispatch(const boost::program_options::variables_map& values,
                         const std::string& kind, const Cluster& cluster, OutputFormat format);

}  // namespace rehearse

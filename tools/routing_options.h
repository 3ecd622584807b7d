// Options of commands that look at routes without a scenario: how the fabric chooses among equal
// paths.
#pragma once

#include <boost/program_options.hpp>

#include "tools/command.h"
#include "topology/cluster/cluster.h"
#include "topology/fabrics/routing.h"

namespace rehearse {

// Adds --routing, --queue-pairs, --routing-seed.
void AddRoutingOptions(CommandSyntax* syntax);

// Throws Error for a choice that the cluster's fabric cannot have.
FabricRouting ReadRoutingOptions(const boost::program_options::variables_map& values,
                                 const Cluster& cluster);

}  // namespace rehearse

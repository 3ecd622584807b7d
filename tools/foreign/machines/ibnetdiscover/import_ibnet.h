// Reads a cluster from what `ibnetdiscover` prints of an InfiniBand subnet.
//
//   Switch  41 "S-b8599f0300fc6de4"   # "MF0;leaf01:MQM8700/U1" enhanced port 0 lid 5 lmc 0
//   [1]  "H-0c42a10300a1b2c4"[1](c42a10300a1b2c4)   # "node01 mlx5_0" lid 12 4xHDR
//   [21] "S-b8599f0300fc7000"[3]                    # "MF0;spine01:MQM8700/U1" lid 2 4xHDR
//
//   Ca  1 "H-0c42a10300a1b2c4"        # "node01 mlx5_0"
//   [1](c42a10300a1b2c4)  "S-b8599f0300fc6de4"[1]   # lid 12 lmc 0 "MF0;leaf01..." lid 5 4xHDR
//
// A switch is a switch, named after its system if that name is its own, else by its GUID. Channel
// adapters whose descriptions begin with the same word are the NICs of one node, in the order of
// the rest ("mlx5_2" before "mlx5_10"); nodes are ranked by their names likewise. They are matched
// with the NICs of the node (tools/foreign/machines/fabric_plan.h) in order: fewer get a remark,
// more are refused. A cable has the bandwidth of its width and speed, once for both directions in
// which it is listed.
//
// A net of ibsim has the same lines without GUIDs; a cable of it may be listed at one end only.
//
// Left out, with a remark: hosts that `hosts` does not take, or, if the user named none, those that
// clearly have no GPU: by their names, or with one or two adapters where most have many. Adapters
// that belong to no host (SHARP's aggregation nodes, those
// without a name yet), routers, cables between two adapters. Refused: a cable that its other end
// does not list, as in a file that was cut off; the same node twice.
#pragma once

#include <string>
#include <string_view>

#include "tools/foreign/machines/host_filter.h"
#include "tools/foreign/machines/imported_cluster.h"

namespace rehearse {

// The arguments are those of ImportSlurm().
ImportedCluster ImportIbnetdiscover(std::string_view text, const std::string& file,
                                    const std::string& node = "", const HostFilter& hosts = {});

}  // namespace rehearse

// Tori and meshes of any number of dimensions, with a bandwidth for each.
//
// Router n has the coordinates n = c_0 + size_0·(c_1 + size_1·(c_2 + …)): the first dimension is
// the fastest. Along a dimension each router is joined to the next, and the last to the first if
// the dimension wraps and has at least 3 (two routers have one link between them, wrapped or not).
// There is one machine per router.
//
// Routes correct one dimension after the other, the first one first; in a dimension that wraps they
// go the shorter way, and if both ways are equally long, the positive one. Such routes have the
// fewest links.
#pragma once

#include <string>
#include <vector>

#include "topology/cluster/builder.h"

namespace rehearse {

struct TorusSpec {
  struct Dimension {
    uint32_t size = 1;
    bool wraps = true;
    ClusterLink link;  // between neighbours, each way
  };
  std::vector<Dimension> dimensions;
};

struct Torus {
  struct Dimension {
    uint32_t size = 1;
    uint32_t stride = 1;
    bool wraps = true;
    uint32_t first_link = 0;
  };
  std::vector<Dimension> dimensions;
};

// Adds the routers and their links; throws Error unless there is one router for each machine.
Torus AddTorus(ClusterBuilder& cluster, const TorusSpec& spec, uint32_t machines,
               VertexId* first_switch);

void AppendPath(const Torus& torus, uint32_t from, uint32_t to, std::vector<uint32_t>* links);

}  // namespace rehearse

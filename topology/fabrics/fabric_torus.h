// Tori and meshes of any number of dimensions, with a bandwidth for each, plain or twisted.
//
// Router n has the coordinates n = c_0 + size_0·(c_1 + size_1·(c_2 + …)): the first dimension is
// the fastest. Along a dimension each router is joined to the next, and the last to the first if
// the dimension wraps and has at least 3 (two routers have one link between them, wrapped or not).
// There is one machine per router.
//
// A dimension may be twisted: its last router is then joined to the first of another line, so that
// going round it once leads by `twist` along other dimensions. With n x n x 2n routers, where both
// short dimensions lead half-way along the long one, and n x 2n x 2n, where the short one does so
// along both, all links carry equally much of an all-to-all (Camarero, Martinez & Beivide, IEEE
// Transactions on Parallel and Distributed Systems 2014: the cubic crystal lattices FCC and BCC);
// slices of TPU v4 may be so (Jouppi et al., ISCA 2023; what was measured is quoted from memory, no
// copy was at hand).
//
// Routes correct one dimension after the other, the first one first. In a dimension that wraps they
// go the shorter way, and if both ways are equally long, routers at even places go ahead and others
// back, so that both directions carry equally much. Where dimensions are twisted, all ways round
// them are compared, and of equally short ones the routers take different ones. Such routes have
// the fewest links.
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
    // How far going round it once leads along each dimension; empty: not at all. Those that it
    // leads along wrap and are not twisted themselves.
    std::vector<uint32_t> twist = {};
  };
  std::vector<Dimension> dimensions;
};

struct Torus {
  struct Dimension {
    uint32_t size = 1;
    uint32_t stride = 1;
    bool wraps = true;
    uint32_t first_link = 0;
    std::vector<uint32_t> twist;

    bool IsTwisted() const { return !twist.empty(); }
  };
  std::vector<Dimension> dimensions;
};

// What is wrong with the twist of a dimension; "" if nothing is.
std::string WrongTwist(const TorusSpec& spec, size_t dimension);

// Adds the routers and their links; throws Error unless there is one router for each machine and
// twists are as they can be.
Torus AddTorus(ClusterBuilder& cluster, const TorusSpec& spec, uint32_t machines,
               VertexId* first_switch);

void AppendPath(const Torus& torus, uint32_t from, uint32_t to, std::vector<uint32_t>* links);

}  // namespace rehearse

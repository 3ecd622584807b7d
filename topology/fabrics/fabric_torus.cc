#include "topology/fabrics/fabric_torus.h"

#include <fmt/format.h>

namespace rehearse {
namespace {

// The link from the router to the next one along the dimension; the one back follows it.
uint32_t LinkToNext(const Torus::Dimension& dimension, uint32_t router) {
  if (dimension.wraps) return dimension.first_link + 2 * router;
  const uint32_t line = router / (dimension.stride * dimension.size);
  const uint32_t within = router % (dimension.stride * dimension.size);
  return dimension.first_link + 2 * (line * dimension.stride * (dimension.size - 1) + within);
}

}  // namespace

Torus AddTorus(ClusterBuilder& cluster, const TorusSpec& spec, uint32_t machines,
               VertexId* first_switch) {
  Torus torus;
  uint64_t routers = 1;
  for (const TorusSpec::Dimension& dimension : spec.dimensions) {
    CHECK_GT(dimension.size, 0u);
    torus.dimensions.push_back(
        {dimension.size, static_cast<uint32_t>(routers), dimension.wraps && dimension.size > 2, 0});
    routers *= dimension.size;
    if (routers > machines) break;
  }
  if (routers != machines)
    throw Error(fmt::format("the torus has {}{} places, but there are {} machines",
                            routers > machines ? "at least " : "", routers, machines));

  *first_switch = cluster.vertex_count();
  for (uint32_t router = 0; router < machines; ++router) {
    std::string name = "router";
    for (const Torus::Dimension& dimension : torus.dimensions)
      name += fmt::format("{}{}", name == "router" ? "" : ".",
                          router / dimension.stride % dimension.size);
    cluster.AddVertex({name, VertexKind::kSwitch, ""});
  }
  for (size_t d = 0; d < torus.dimensions.size(); ++d) {
    Torus::Dimension& dimension = torus.dimensions[d];
    dimension.first_link = cluster.link_count();
    for (uint32_t router = 0; router < machines; ++router) {
      const uint32_t place = router / dimension.stride % dimension.size;
      if (place + 1 == dimension.size && !dimension.wraps) continue;
      const uint32_t next = place + 1 == dimension.size ? router - place * dimension.stride
                                                        : router + dimension.stride;
      CHECK_EQ(LinkToNext(dimension, router), cluster.link_count());
      cluster.AddLinks(*first_switch + router, *first_switch + next, spec.dimensions[d].link);
    }
  }
  return torus;
}

void AppendPath(const Torus& torus, uint32_t from, uint32_t to, std::vector<uint32_t>* links) {
  uint32_t router = from;
  for (const Torus::Dimension& dimension : torus.dimensions) {
    const uint32_t size = dimension.size;
    const uint32_t target = to / dimension.stride % size;
    uint32_t place = router / dimension.stride % size;
    const uint32_t line = router - place * dimension.stride;  // the router at place 0
    const uint32_t ahead = (target + size - place) % size;
    const bool forward = dimension.wraps ? ahead <= size - ahead : target >= place;
    while (place != target) {
      const uint32_t next = (place + (forward ? 1 : size - 1)) % size;
      links->push_back(forward ? LinkToNext(dimension, line + place * dimension.stride)
                               : LinkToNext(dimension, line + next * dimension.stride) + 1);
      place = next;
    }
    router = line + place * dimension.stride;
  }
}

}  // namespace rehearse

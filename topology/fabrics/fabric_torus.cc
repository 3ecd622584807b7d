#include "topology/fabrics/fabric_torus.h"

#include <algorithm>
#include <cstdint>
#include <cstdlib>
#include <string>
#include <vector>

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

uint32_t PlaceOf(const Torus::Dimension& dimension, uint32_t router) {
  return router / dimension.stride % dimension.size;
}

// So far along the other dimensions, or back.
uint32_t Shifted(const Torus& torus, const std::vector<uint32_t>& twist, bool ahead,
                 uint32_t router) {
  for (size_t d = 0; d < twist.size(); ++d) {
    const Torus::Dimension& dimension = torus.dimensions[d];
    const uint32_t place = PlaceOf(dimension, router);
    const uint32_t by = ahead ? twist[d] : dimension.size - twist[d];
    router += ((place + by) % dimension.size - place) * dimension.stride;  // wraps as it should
  }
  return router;
}

// The neighbours along a dimension, which there are.
uint32_t Next(const Torus& torus, const Torus::Dimension& dimension, uint32_t router) {
  const uint32_t place = PlaceOf(dimension, router);
  if (place + 1 < dimension.size) return router + dimension.stride;
  return Shifted(torus, dimension.twist, true, router - place * dimension.stride);
}
uint32_t Previous(const Torus& torus, const Torus::Dimension& dimension, uint32_t router) {
  if (PlaceOf(dimension, router) > 0) return router - dimension.stride;
  return Shifted(torus, dimension.twist, false, router) + (dimension.size - 1) * dimension.stride;
}

// The steps along a plain dimension from one place to another, back if below 0.
int64_t StepsAlong(const Torus::Dimension& dimension, uint32_t from, uint32_t to) {
  const int64_t ahead = (to + dimension.size - from) % dimension.size;
  const int64_t back = dimension.size - ahead;
  if (!dimension.wraps) return int64_t{to} - from;
  if (ahead == back) return from % 2 == 0 ? ahead : -back;
  return ahead < back ? ahead : -back;
}

// Steps along each dimension.
using Steps = std::vector<int64_t>;

int64_t Length(const Steps& steps) {
  int64_t length = 0;
  for (const int64_t along : steps) length += std::abs(along);
  return length;
}

// All shortest ways between two routers, tried out: each way round the twisted dimensions, and once
// round for what it leads along.
class TwistedWays {
 public:
  TwistedWays(const Torus& torus, uint32_t from, uint32_t to)
      : torus_(torus), from_(from), to_(to), steps_(torus.dimensions.size()) {
    Try(0, from);
  }

  const std::vector<Steps>& shortest() const { return shortest_; }

 private:
  // `from` has been led along by the twisted dimensions before this one.
  void Try(size_t d, uint32_t from) {
    if (d == steps_.size()) {
      Complete(from);
      return;
    }
    const Torus::Dimension& dimension = torus_.dimensions[d];
    if (!dimension.IsTwisted()) {
      Try(d + 1, from);
      return;
    }
    const int64_t size = dimension.size;
    const int64_t place = PlaceOf(dimension, from_);
    const int64_t ahead = (PlaceOf(dimension, to_) + size - place) % size;
    for (const int64_t steps : {ahead, ahead - size, size}) {
      if (steps == size && ahead != 0) continue;
      steps_[d] = steps;
      const bool goes_round = place + steps < 0 || place + steps >= size;
      Try(d + 1, goes_round ? Shifted(torus_, dimension.twist, steps > 0, from) : from);
    }
  }

  void Complete(uint32_t from) {
    for (size_t d = 0; d < steps_.size(); ++d) {
      const Torus::Dimension& dimension = torus_.dimensions[d];
      if (!dimension.IsTwisted())
        steps_[d] = StepsAlong(dimension, PlaceOf(dimension, from), PlaceOf(dimension, to_));
    }
    if (!shortest_.empty() && Length(steps_) > Length(shortest_.front())) return;
    if (!shortest_.empty() && Length(steps_) < Length(shortest_.front())) shortest_.clear();
    shortest_.push_back(steps_);
  }

  const Torus& torus_;
  uint32_t from_;
  uint32_t to_;
  Steps steps_;
  std::vector<Steps> shortest_;
};

Steps StepsOf(const Torus& torus, uint32_t from, uint32_t to) {
  const bool is_twisted =
      std::any_of(torus.dimensions.begin(), torus.dimensions.end(),
                  [](const Torus::Dimension& dimension) { return dimension.IsTwisted(); });
  if (is_twisted) {
    const TwistedWays ways(torus, from, to);
    uint32_t places = 0;
    for (const Torus::Dimension& dimension : torus.dimensions) places += PlaceOf(dimension, from);
    return ways.shortest()[places % ways.shortest().size()];
  }
  Steps steps;
  for (const Torus::Dimension& dimension : torus.dimensions)
    steps.push_back(StepsAlong(dimension, PlaceOf(dimension, from), PlaceOf(dimension, to)));
  return steps;
}

}  // namespace

std::string WrongTwist(const TorusSpec& spec, size_t dimension) {
  const TorusSpec::Dimension& own = spec.dimensions[dimension];
  if (own.twist.empty()) return "";
  if (own.twist.size() != spec.dimensions.size())
    return fmt::format("a twist has a number for each of the {} dimensions",
                       spec.dimensions.size());
  if (!own.wraps || own.size < 3)
    return "a dimension of fewer than 3 routers, or that does not wrap, has no twist";
  for (size_t d = 0; d < own.twist.size(); ++d) {
    if (own.twist[d] == 0) continue;
    const TorusSpec::Dimension& other = spec.dimensions[d];
    if (d == dimension) return "a dimension does not lead along itself";
    if (own.twist[d] >= other.size)
      return fmt::format("it leads {} along a dimension of {}", own.twist[d], other.size);
    if (!other.twist.empty() || !other.wraps || other.size < 3)
      return "a twist leads along dimensions that wrap and have none themselves";
  }
  return "";
}

Torus AddTorus(ClusterBuilder& cluster, const TorusSpec& spec, uint32_t machines,
               VertexId* first_switch) {
  Torus torus;
  uint64_t routers = 1;
  for (const TorusSpec::Dimension& dimension : spec.dimensions) {
    CHECK_GT(dimension.size, 0u);
    torus.dimensions.push_back({dimension.size, static_cast<uint32_t>(routers),
                                dimension.wraps && dimension.size > 2, 0, dimension.twist});
    routers *= dimension.size;
    if (routers > machines) break;
  }
  if (routers != machines)
    throw Error(fmt::format("the torus has {}{} places, but there are {} machines",
                            routers > machines ? "at least " : "", routers, machines));

  for (size_t d = 0; d < spec.dimensions.size(); ++d)
    if (const std::string wrong = WrongTwist(spec, d); !wrong.empty())
      throw Error(fmt::format("dimension {} of the torus: {}", d, wrong));

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
      CHECK_EQ(LinkToNext(dimension, router), cluster.link_count());
      cluster.AddLinks(*first_switch + router, *first_switch + Next(torus, dimension, router),
                       spec.dimensions[d].link);
    }
  }
  return torus;
}

void AppendPath(const Torus& torus, uint32_t from, uint32_t to, std::vector<uint32_t>* links) {
  const Steps steps = StepsOf(torus, from, to);
  uint32_t router = from;
  for (size_t d = 0; d < steps.size(); ++d) {
    const Torus::Dimension& dimension = torus.dimensions[d];
    for (int64_t step = 0; step < std::abs(steps[d]); ++step) {
      if (steps[d] > 0) {
        links->push_back(LinkToNext(dimension, router));
        router = Next(torus, dimension, router);
      } else {
        router = Previous(torus, dimension, router);
        links->push_back(LinkToNext(dimension, router) + 1);
      }
    }
  }
}

}  // namespace rehearse

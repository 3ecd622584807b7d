// Bucket algorithm on a torus of D dimensions (Barnett et al. 1995; Jain & Sabharwal 2010). The
// data are cut into 2D parts, one for each dimension and direction. Part (a, direction)
// reduce-scatters along dimension a, then a+1, ..., around rings of neighbours, and gathers back in
// the opposite order; so every link of the torus is used at any time, each by one part.
//   T = 2·Σ_t (d_t - 1)·(α + n/(2D·d_0···d_t·b)), t over the part's dimensions in its order
// with b the rate of a link; on a torus with equal extents 2Σ(d-1)·α + 2·(p-1)/p·n/(2D·b).
// Dimensions of extent 2 have both directions between the same two; where extents differ, parts get
// out of step and share links. Chunks are numbered by their owner's coordinates, with the dimension
// that is reduced first in front.
#include <optional>
#include <string>
#include <utility>

#include <fmt/format.h>

#include "collectives/algorithms/algorithm_rows.h"
#include "collectives/algorithms/torus_box.h"
#include "sim/base/error.h"

namespace rehearse {
namespace {

// The dimensions in a part's order, with the chunks that a step along each of them moves.
struct Stage {
  uint32_t axis = 0;
  uint32_t extent = 1;
  uint32_t place = 0;   // the position's coordinate
  uint32_t stride = 1;  // between positions that are neighbours along it
  uint32_t chunks = 1;
};

std::vector<Stage> StagesOf(const StepInput& input, uint32_t position) {
  const uint32_t dimensions = static_cast<uint32_t>(input.extents.size());
  std::vector<Stage> stages;
  uint32_t chunks = input.ranks();
  for (uint32_t t = 0; t < dimensions; ++t) {
    Stage stage;
    stage.axis = (input.variant + t) % dimensions;
    stage.extent = input.extents[stage.axis];
    for (uint32_t axis = 0; axis < stage.axis; ++axis) stage.stride *= input.extents[axis];
    stage.place = position / stage.stride % stage.extent;
    chunks /= stage.extent;
    stage.chunks = chunks;
    stages.push_back(stage);
  }
  return stages;
}

void BucketSteps(const StepInput& input, uint32_t position, std::vector<Leg>* legs) {
  const std::vector<Stage> stages = StagesOf(input, position);
  uint32_t step = 0;
  const auto along = [&](size_t t, Combine combine) {
    const Stage& stage = stages[t];
    const uint32_t d = stage.extent;
    if (d == 1) return;
    uint32_t base = 0;  // the chunks that this position has taken over so far begin here
    for (size_t earlier = 0; earlier < t; ++earlier) {
      base += stages[earlier].place * stages[earlier].chunks;
    }
    const uint32_t ahead = input.reversed ? d - 1 : 1;
    // Around the ring, in its own direction, a place is named by its distance.
    for (const uint32_t from : {stage.place, (stage.place + d - ahead) % d}) {
      const uint32_t to = (from + ahead) % d;
      const uint32_t lag = combine == Combine::kAdd ? d - ahead : 0;
      const auto at = [&](uint32_t place) {
        return position + place * stage.stride - stage.place * stage.stride;
      };
      const int32_t chunks = static_cast<int32_t>(stage.chunks);
      legs->push_back(InPlace(step, d - 1, at(from), at(to), combine,
                              {.base = base,
                               .cycle = d * stage.chunks,
                               .first = (from + lag) % d * stage.chunks,
                               .count = stage.chunks,
                               .stride = input.reversed ? chunks : -chunks}));
    }
    step += d - 1;
  };
  if (input.kind != CollectiveKind::kAllGather) {
    for (size_t t = 0; t < stages.size(); ++t) along(t, Combine::kAdd);
  }
  if (input.kind != CollectiveKind::kReduceScatter) {
    for (size_t t = stages.size(); t-- > 0;) along(t, Combine::kCopy);
  }
}

Block BucketBlockOfChunk(const StepInput& input, uint32_t /*position*/, uint32_t chunk) {
  uint32_t owner = 0;
  for (const Stage& stage : StagesOf(input, 0)) {
    owner += chunk / stage.chunks % stage.extent * stage.stride;
  }
  return {owner, owner};
}

// Throws Error unless the group fills a box of a torus, each member on a router of its own.
std::vector<uint32_t> ExtentsOf(const GroupOnMachine& group, std::vector<uint32_t>* order) {
  std::string why;
  std::optional<TorusBox> box = BoxOf(group.router.cluster(), group.ranks, &why);
  if (!box)
    throw Error(
        fmt::format("algorithm \"bucket\" cannot do {} here: {}; expected another, or \"auto\"",
                    Name(group.kind), why));
  *order = std::move(box->order);
  std::vector<uint32_t> extents;
  for (const TorusBox::Axis& axis : box->axes) extents.push_back(axis.extent);
  return extents;
}

std::vector<Part> ArrangeBucket(const GroupOnMachine& group) {
  Part part = AsTheyAre(group);
  part.input.extents = ExtentsOf(group, &part.order);
  const uint32_t dimensions = static_cast<uint32_t>(part.input.extents.size());
  part.share = 0.5 / dimensions;
  std::vector<Part> parts;
  for (part.input.variant = 0; part.input.variant < dimensions; ++part.input.variant) {
    for (const bool reversed : {false, true}) {
      part.input.reversed = reversed;
      parts.push_back(part);
    }
  }
  return parts;
}

Seconds BucketClosedForm(const StepInput& input, Bytes bytes, std::span<const Pace> paces) {
  const std::vector<Stage> stages = StagesOf(input, 0);
  Seconds time;
  uint32_t round = 0;
  const auto along = [&](const Stage& stage) {
    if (stage.extent == 1) return;
    time += RoundTime(PaceOf(paces, round++), stage.extent - 1,
                      static_cast<double>(stage.chunks) / input.ranks() * bytes);
  };
  if (input.kind != CollectiveKind::kAllGather) {
    for (const Stage& stage : stages) along(stage);
  }
  if (input.kind != CollectiveKind::kReduceScatter) {
    for (size_t t = stages.size(); t-- > 0;) along(stages[t]);
  }
  return time;
}

}  // namespace

Algorithm BucketRow() {
  using enum CollectiveKind;
  return {AlgorithmId::kBucket,
          "all dimensions and directions of a torus at once",
          {kAllReduce, kAllGather, kReduceScatter},
          {},
          ArrangeBucket,
          ChunkOfEach,
          BucketBlockOfChunk,
          BucketSteps,
          NoSwitches,
          BucketClosedForm};
}

}  // namespace rehearse

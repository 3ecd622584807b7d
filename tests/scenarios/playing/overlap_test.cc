// What strategies say runs beside something else does so when a whole step is played.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "tests/scenarios/small_scenario.h"

namespace rehearse {
namespace overlap_test {

using testing::Play;

// The first span of rank 0 that says so.
struct Wanted {
  std::string name;
  Phase phase = Phase::kForward;
  int32_t layer = -1;
  int32_t chunk = 0;
};

Span SpanOf(const Rehearsal& rehearsal, const Wanted& wanted) {
  const Role& role = rehearsal.schedule.roles[rehearsal.schedule.role_of_rank[0]];
  const auto [begin, end] = rehearsal.timeline.SpansOf(0);
  for (size_t i = begin; i < end; ++i) {
    const Span& span = rehearsal.timeline.spans[i];
    const Tag tag = role.TagAt(span.op);
    if (role.At(span.op).name == wanted.name && tag.phase == wanted.phase &&
        tag.layer == wanted.layer && tag.micro_batch == wanted.chunk) {
      return span;
    }
  }
  ADD_FAILURE() << "no " << wanted.name;
  return {};
}

// Slow links: an all-reduce of one chunk takes longer than a block of another.
constexpr const char* kSlow = R"(edits=[{"links": "**", "bandwidth": "0.05x"}])";

Rehearsal PlayChunks(bool overlap_backward) {
  return Play(
      {std::string(
           R"(strategy={"kind": "atp", "d1": 8, "d2": 1, "data": 1, "first": "column", "chunks": 4,
                    "overlap_all_reduce": true, "overlap_chunks_backward": )") +
           (overlap_backward ? "true}" : "false}"),
       R"(training.recomputation="none")", kSlow});
}

TEST(ChunksTest, TakeTurnsBlockByBlock) {
  const Rehearsal step = PlayChunks(true);
  // ATP's Fig. 8: the first chunk's MLP waits for its own all-reduce, not for those of the others.
  const Span reduced = SpanOf(step, {"all-reduce projection", Phase::kForward, 0, 0});
  const Span last_reduced = SpanOf(step, {"all-reduce projection", Phase::kForward, 0, 3});
  const Span norm = SpanOf(step, {"norm 2", Phase::kForward, 0, 0});
  EXPECT_GE(norm.begin, reduced.end);
  EXPECT_LT(norm.begin, last_reduced.begin);
  // And in the backward pass, where the attention block follows the MLP.
  const Span back = SpanOf(step, {"norm 2 backward", Phase::kBackward, 1, 0});
  const Span up = SpanOf(step, {"all-reduce d norm 2", Phase::kBackward, 1, 3});
  EXPECT_LT(back.begin, up.begin);
}

// Section 4.2: chunks overlap in the forward pass, in the backward pass dW hides the sum of dX.
TEST(ChunksTest, InTheBackwardPassAChunkAwaitsWhatItSums) {
  for (const bool overlap : {false, true}) {
    const Rehearsal step = PlayChunks(overlap);
    const Span sum = SpanOf(step, {"all-reduce d norm 2", Phase::kBackward, 1, 0});
    const Span next = SpanOf(step, {"down dX", Phase::kBackward, 1, 1});
    const Span forward = SpanOf(step, {"all-reduce projection", Phase::kForward, 0, 0});
    const Span other = SpanOf(step, {"norm 1", Phase::kForward, 0, 1});
    EXPECT_EQ(next.begin < sum.end, overlap);
    EXPECT_LT(other.begin, forward.end);
  }
  EXPECT_LT(PlayChunks(true).result.step, PlayChunks(false).result.step);
}

TEST(HybridShardingTest, ReplicasSumAShardOnceItIsThere) {
  const auto play = [](bool overlap) {
    return Play({std::string(R"(strategy={"kind": "fsdp", "shard": 4, "replicas": 2, "prefetch": 1,
                         "reshard_after_forward": true, "overlap_reduce_scatter": true,
                         "overlap_gradients": )") +
                     (overlap ? "true}" : "false}"),
                 "model.layers=8"});
  };
  const Rehearsal beside = play(true);
  const Rehearsal after = play(false);
  // The sum of the last layer's gradient begins as soon as its share is there and accumulated, long
  // before the first layer's backward pass.
  const Span share = SpanOf(beside, {"reduce-scatter down", Phase::kBackward, 7, 0});
  const Span sum = SpanOf(beside, {"all-reduce gradient of down", Phase::kBackward, 7, 0});
  const Span first = SpanOf(beside, {"norm 1 backward", Phase::kBackward, 0, 0});
  EXPECT_GE(sum.begin, share.end);
  EXPECT_LT(sum.end, first.begin);
  EXPECT_LT(beside.result.step, after.result.step);
  // As much is sent and computed either way.
  EXPECT_EQ(beside.result.axes[1].bytes, after.result.axes[1].bytes);
}

}  // namespace overlap_test
}  // namespace rehearse

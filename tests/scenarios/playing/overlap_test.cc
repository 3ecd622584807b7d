// What strategies say runs beside something else does so when a whole step is played.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "scenarios/playing/rehearsal.h"
#include "scenarios/readers/scenario.h"
#include "sim/base/error.h"
#include "sim/base/json_document.h"
#include "tests/scenarios/small_scenario.h"
#include "tests/support/places.h"

namespace rehearse {
namespace overlap_test {

using ::testing::HasSubstr;
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

// ---- products in pieces -------------------------------------------------------------------------

Result PlaySplit(const std::string& how) {
  return Play({R"(strategy={"kind": "megatron", "tensor": 4, "data": 2, "sequence_parallel": true,
                  "overlap_all_reduce": true, "overlap_gradients": false,
                  "distributed_optimizer": false, "split_products": ")" +
                   how + "\"}",
               R"(training.recomputation="none")", "model.hidden=8192", "model.heads=64",
               "training.batch=16", "training.sequence=2048"})
      .result;
}

Seconds ExposedOf(const Result& result, const std::string& axis) {
  for (const AxisUse& use : result.axes)
    if (use.name == axis) return use.exposed;
  ADD_FAILURE() << "no axis " << axis;
  return {};
}

TEST(SplitProductsTest, PiecesHideMostOfWhatIsExposed) {
  const Result whole = PlaySplit("none");
  for (const char* how : {"user-buffers", "async-tp", "tiles"}) {
    const Result split = PlaySplit(how);
    SCOPED_TRACE(how);
    EXPECT_LT(split.step, whole.step);
    EXPECT_LT(ExposedOf(split, "tensor"), ExposedOf(whole, "tensor") / 2);
    // No step is shorter than what is computed, which pieces do not make much less.
    EXPECT_GT(split.breakdown.compute, whole.breakdown.compute * 0.95);
    EXPECT_DOUBLE_EQ(split.model_flops_utilization * split.step.value(),
                     whole.model_flops_utilization * whole.step.value());
  }
}

// The next rows travel while products of those that are there are computed.
TEST(SplitProductsTest, RowsTravelBesideProductsOfOthers) {
  const Rehearsal step =
      Play({R"(strategy={"kind": "megatron", "tensor": 4, "data": 2, "sequence_parallel": true,
               "overlap_all_reduce": true, "overlap_gradients": false,
               "distributed_optimizer": false, "split_products": "user-buffers"})",
            R"(training.recomputation="none")", "training.batch=64"});
  const Role& role = step.schedule.roles[0];
  const auto [begin, end] = step.timeline.SpansOf(0);
  std::vector<Span> exchanges;
  std::vector<Span> products;
  for (size_t i = begin; i < end; ++i) {
    const Span& span = step.timeline.spans[i];
    const Op& op = role.At(span.op);
    if (role.TagAt(span.op).layer != 1 || role.TagAt(span.op).phase != Phase::kForward) continue;
    if (op.name == "exchange norm 2") exchanges.push_back(span);
    if (op.name == "up") products.push_back(span);
  }
  ASSERT_EQ(exchanges.size(), 3u);
  ASSERT_EQ(products.size(), 4u);
  for (size_t i = 0; i < 3; ++i) EXPECT_GE(products[i + 1].begin, exchanges[i].end);
  EXPECT_LT(products[0].begin, exchanges[0].end);
  EXPECT_LT(products[1].begin, exchanges[2].end);
}

TEST(SplitProductsTest, NothingIsSplitWithoutSequenceParallelism) {
  EXPECT_THAT(
      [] {
        Play({R"(strategy={"kind": "megatron", "tensor": 4, "data": 2, "sequence_parallel": false,
                 "overlap_all_reduce": true, "overlap_gradients": false,
                 "distributed_optimizer": false, "split_products": "tiles"})"});
      },
      ::testing::ThrowsMessage<Error>(HasSubstr("\"sequence_parallel\": true")));
}

// ---- experts in pieces --------------------------------------------------------------------------

Result PlayExperts(const std::string& pieces) {
  JsonDocument document =
      JsonDocument::FromFile(SourceDir() + "/scenarios/mixtral-8x7b-experts.json");
  document.Set("strategy.expert_pieces=" + pieces);
  return Rehearse(ReadScenario(document)).result;
}

TEST(ExpertPiecesTest, TokensTravelBesideProducts) {
  const Result whole = PlayExperts("1");
  const Result pieces = PlayExperts("2");
  EXPECT_LT(pieces.breakdown.exposed_communication, whole.breakdown.exposed_communication);
  const auto bytes = [](const Result& result) {
    double sum = 0;
    for (const AxisUse& axis : result.axes)
      if (axis.name == "expert") sum += axis.bytes.value();
    return sum;
  };
  EXPECT_GT(bytes(whole), 0);
  EXPECT_NEAR(bytes(pieces), bytes(whole), 1e-9 * bytes(whole));
}

TEST(ExpertPiecesTest, WhatCannotBeIsRefused) {
  const auto refusal = [](const std::vector<std::string>& changes) {
    JsonDocument document =
        JsonDocument::FromFile(SourceDir() + "/scenarios/mixtral-8x7b-experts.json");
    document.Set("strategy.expert_pieces=2");
    try {
      for (const std::string& change : changes) document.Set(change);
      Rehearse(ReadScenario(document));
    } catch (const Error& error) {
      return std::string(error.what());
    }
    return std::string();
  };
  EXPECT_THAT(refusal({"strategy.expert=1"}), HasSubstr("experts that are spread and not shared"));
  EXPECT_THAT(refusal({"strategy.expert_pieces=3"}), HasSubstr("one of 3 pieces"));
  EXPECT_THAT(refusal({"pipeline.pair_passes=true"}), HasSubstr("expected one of them"));
  EXPECT_THAT(refusal({"model.experts.balanced_over=3"}), HasSubstr("divisor of 8 experts"));
  EXPECT_THAT(refusal({"model.experts.balanced_over=2", "model.experts.drawn=\"micro-batch\""}),
              HasSubstr("expected \"step\""));
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

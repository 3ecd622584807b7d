#include "sim/schedule/stretches.h"

#include <functional>

#include <gtest/gtest.h>

namespace rehearse {
namespace stretches_test {

constexpr int32_t kLayers = 7;

Op OpOf(const char* name, Phase phase, int32_t layer, uint32_t stream) {
  Op op;
  op.name = name;
  op.tag = {phase, layer, 0};
  op.stream = StreamId(stream);
  return op;
}

// Three ops a layer, the last of which is a collective: there in ascending, back in descending
// order of layers, with an op before, between and after. Activations live from a layer's way there
// to its way back, and a gathered weight from one layer to the next.
Role Network(int32_t layers = kLayers) {
  Role role;
  role.streams = {{"compute", StreamKind::kCompute}, {"row", StreamKind::kCommunication}};
  const auto add_buffer = [&](BufferKind kind, double bytes) {
    Buffer buffer;
    buffer.kind = kind;
    buffer.bytes = Bytes(bytes);
    role.buffers.push_back(buffer);
    return BufferId(static_cast<uint32_t>(role.buffers.size() - 1));
  };
  const BufferId parameter = add_buffer(BufferKind::kParameter, 1000);
  std::vector<BufferId> kept;
  for (int32_t i = 0; i < layers; ++i) kept.push_back(add_buffer(BufferKind::kActivation, 64));
  role.ops.push_back(OpOf("embed", Phase::kForward, -1, 0));
  const auto add_layer = [&](Phase phase, int32_t layer) {
    Op product = OpOf("product", phase, layer, 0);
    Compute compute;
    compute.kind = ComputeKind::kGemm;
    compute.gemm = {8, 16, 24, GemmMode::kNT, 2};
    compute.tuned = GemmMode::kNN;
    compute.flops = FlopsOf(compute.gemm);
    compute.bytes = Bytes(100);
    product.work = compute;
    product.reads = {parameter};
    Op norm = OpOf("norm", phase, layer, 0);
    norm.work = Compute();
    const BufferId own = kept[static_cast<size_t>(layer)];
    (phase == Phase::kForward ? norm.writes : norm.reads) = {own};
    Op gather = OpOf("gather", phase, layer, 1);
    Collective collective;
    collective.kind = CollectiveKind::kAllGather;
    collective.communicator = CommunicatorId(0);
    collective.bytes = Bytes(100);
    collective.pair_bytes = {Bytes(1)};
    gather.work = collective;
    gather.writes = {add_buffer(BufferKind::kBuffer, 32)};
    role.ops.insert(role.ops.end(), {product, norm, gather});
  };
  for (int32_t layer = 0; layer < layers; ++layer) add_layer(Phase::kForward, layer);
  role.ops.push_back(OpOf("loss", Phase::kBackward, -1, 0));
  for (int32_t layer = layers; layer-- > 0;) add_layer(Phase::kBackward, layer);
  role.ops.push_back(OpOf("update", Phase::kUpdate, -1, 0));
  return role;
}

constexpr uint32_t kThere = 1;
constexpr uint32_t kBack = 2 + 3 * kLayers;

TEST(StretchesTest, ThereAndBackAreAStretchEach) {
  const auto stretches = FindStretches(Network(), 3);
  ASSERT_TRUE(stretches.has_value());
  ASSERT_EQ(stretches->size(), 2u);
  for (const size_t i : {0, 1}) {
    const Stretch& stretch = (*stretches)[i];
    EXPECT_EQ(stretch.begin, i == 0 ? kThere : kBack);
    EXPECT_EQ(stretch.size, 3u);
    EXPECT_EQ(stretch.bodies, static_cast<uint32_t>(kLayers));
    EXPECT_EQ(stretch.BeginOf(2), stretch.begin + 6);
  }
}

TEST(StretchesTest, TheyTakeThreeLayers) {
  EXPECT_TRUE(FindStretches(Network(3), 1).has_value());
  EXPECT_FALSE(FindStretches(Network(2), 1).has_value());
  EXPECT_FALSE(FindStretches(Network(1), 0).has_value());
  Role role = Network();
  role.repeats = {{.begin = 1, .end = 2, .times = 1}};
  EXPECT_FALSE(FindStretches(role, 3).has_value());
}

// Whatever one op of the fourth layer does otherwise, its layer is not like the one before it.
TEST(StretchesTest, AnythingThatDiffersEndsAStretch) {
  const auto compute = [](Op* op) -> Compute& { return std::get<Compute>(op->work); };
  const auto collective = [](Op* op) -> Collective& { return std::get<Collective>(op->work); };
  using Change = std::function<void(Op*)>;
  const std::vector<Change> of_all = {[](Op* op) { op->name += "x"; },
                                      [](Op* op) { op->stream = StreamId(1 - op->stream.index()); },
                                      [](Op* op) { op->tag.phase = Phase::kRecompute; },
                                      [](Op* op) { op->tag.micro_batch = 1; },
                                      [](Op* op) { op->tag.layer = 17; },
                                      [](Op* op) { op->tag.layer = -1; },
                                      [](Op* op) { op->reads.emplace_back(0); },
                                      [](Op* op) { op->writes.emplace_back(0); },
                                      [](Op* op) {
                                        op->work = Send{CommunicatorId(0), 1, Bytes(8)};
                                      },
                                      [](Op* op) {
                                        op->work = Receive{CommunicatorId(0), 1, Bytes(8)};
                                      }};
  const std::vector<Change> of_compute = {
      [&](Op* op) { compute(op).kind = ComputeKind::kFixed; },
      [&](Op* op) { compute(op).kernel = Kernel::kCopy; },
      [&](Op* op) { compute(op).dtype = DType::kFp32; },
      [&](Op* op) { ++compute(op).gemm.m; },
      [&](Op* op) { ++compute(op).gemm.n; },
      [&](Op* op) { ++compute(op).gemm.k; },
      [&](Op* op) { compute(op).gemm.mode = GemmMode::kTN; },
      [&](Op* op) { ++compute(op).gemm.batch; },
      [&](Op* op) { compute(op).tuned = GemmMode::kTN; },
      [&](Op* op) { compute(op).attention = AttentionKernel::kCudnn; },
      [&](Op* op) { compute(op).duration = Seconds(1); },
      [&](Op* op) { compute(op).flops = Flops(1); },
      [&](Op* op) { compute(op).bytes = Bytes(1); },
      [&](Op* op) { ++compute(op).kernels; },
      [&](Op* op) { compute(op).strided = 1; },
      [&](Op* op) { compute(op).strided_bytes = Bytes(1); }};
  const std::vector<Change> of_collective = {
      [&](Op* op) { collective(op).kind = CollectiveKind::kAllReduce; },
      [&](Op* op) { collective(op).communicator = CommunicatorId(1); },
      [&](Op* op) { collective(op).bytes = Bytes(1); },
      [&](Op* op) { collective(op).dtype = DType::kFp32; },
      [&](Op* op) { collective(op).algorithm = AlgorithmId::kTree; },
      [&](Op* op) { collective(op).protocol = Protocol::kLL; },
      [&](Op* op) { collective(op).root = 1; },
      [&](Op* op) { collective(op).pair_bytes = {}; },
      [&](Op* op) { collective(op).rank_share = 0.5; },
      [&](Op* op) { collective(op).machine_share = 0.5; },
      [&](Op* op) { collective(op).copied = true; }};
  for (const uint32_t first : {kThere + 9, kBack + 9}) {
    for (uint32_t op = first; op < first + 3; ++op) {
      std::vector<Change> changes = of_all;
      const auto& own = op == first + 2 ? of_collective : of_compute;
      changes.insert(changes.end(), own.begin(), own.end());
      for (size_t i = 0; i < changes.size(); ++i) {
        Role role = Network();
        changes[i](&role.ops[op]);
        EXPECT_FALSE(FindStretches(role, 1).has_value()) << "op " << op << ", change " << i;
      }
    }
  }
}

TEST(StretchesTest, MemoryIsThatOfARoleWithMoreLayers) {
  for (const uint32_t more : {0u, 1u, 5u}) {
    const Role few = Network();
    const auto stretches = FindStretches(few, 3);
    ASSERT_TRUE(stretches.has_value());
    const auto longer = MemoryOfLonger(few, *stretches, more);
    ASSERT_TRUE(longer.has_value());
    // All activations live when the loss is computed; a gathered weight at a time.
    EXPECT_EQ(longer->activations, Bytes(64.0 * (kLayers + more)));
    const MemoryUse use = MemoryOf(Network(kLayers + static_cast<int32_t>(more)));
    EXPECT_EQ(longer->parameters, use.parameters);
    EXPECT_EQ(longer->activations, use.activations);
    EXPECT_EQ(longer->buffers, use.buffers);
    EXPECT_EQ(longer->Total(), use.Total());
  }
}

TEST(StretchesTest, MemoryIsNotKnownWhereLayersKeepDifferentAmounts) {
  const auto stretches = FindStretches(Network(), 3);
  for (const uint32_t layer : {2u, 3u, 4u}) {  // of those around the middle
    Role role = Network();
    role.buffers[1 + layer].bytes = Bytes(65);
    EXPECT_FALSE(MemoryOfLonger(role, *stretches, 1).has_value()) << layer;
  }
  // What is gained on the way there is never lost.
  Role role = Network();
  for (Op& op : role.ops)
    if (op.tag.phase == Phase::kBackward) op.reads.clear();
  for (const uint32_t layer : {1u, 2u, 3u, 4u, 5u}) role.ops.back().reads.emplace_back(1 + layer);
  EXPECT_FALSE(MemoryOfLonger(role, *stretches, 1).has_value());
}

}  // namespace stretches_test
}  // namespace rehearse

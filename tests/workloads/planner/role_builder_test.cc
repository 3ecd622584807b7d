#include "workloads/planner/role_builder.h"

#include <gtest/gtest.h>

namespace rehearse {
namespace role_builder_test {

using Issue = RoleBuilder::Issue;

class RoleBuilderTest : public ::testing::Test {
 protected:
  RoleBuilderTest()
      : communicators_{Communicator::Explicit("a", {{0, 1}}),
                       Communicator::Explicit("b", {{0, 1}})},
        builder_("rank", communicators_) {}

  BufferId Buffer(const char* name) {
    return builder_.AddBuffer(name, BufferKind::kActivation, Bytes(1));
  }
  OpId Compute(const char* name, const std::vector<BufferId>& reads,
               const std::vector<BufferId>& writes) {
    return builder_.AddCompute(name, rehearse::Compute{}, reads, writes);
  }
  OpId Communicate(const char* name, uint32_t communicator, Issue issue,
                   const std::vector<BufferId>& reads, const std::vector<BufferId>& writes) {
    Collective collective;
    collective.communicator = CommunicatorId(communicator);
    return builder_.AddCollective(name, collective, issue, reads, writes);
  }

  std::vector<Communicator> communicators_;
  RoleBuilder builder_;
};

TEST_F(RoleBuilderTest, AReaderWaitsForTheWriterOnAnotherStream) {
  const BufferId x = Buffer("x");
  const OpId write = Compute("write", {}, {x});
  const OpId reduce = Communicate("reduce", 0, Issue::kAsynchronous, {x}, {x});
  const OpId other = Compute("other", {}, {});
  const OpId read = Compute("read", {x}, {});
  const Role role = builder_.Build();
  EXPECT_EQ(role.ops[reduce.index()].after, std::vector<OpId>{write});
  EXPECT_TRUE(role.ops[other.index()].after.empty());
  EXPECT_EQ(role.ops[read.index()].after, std::vector<OpId>{reduce});
}

TEST_F(RoleBuilderTest, ABlockingCollectiveStopsTheNextComputeOp) {
  const BufferId x = Buffer("x");
  Compute("write", {}, {x});
  const OpId reduce = Communicate("reduce", 0, Issue::kBlocking, {x}, {x});
  const OpId other = Compute("other", {}, {});
  const OpId later = Compute("later", {}, {});
  const Role role = builder_.Build();
  EXPECT_EQ(role.ops[other.index()].after, std::vector<OpId>{reduce});
  EXPECT_TRUE(role.ops[later.index()].after.empty());
}

TEST_F(RoleBuilderTest, ACollectiveWaitsForTheComputeIssuedBeforeIt) {
  const BufferId w = Buffer("w");
  const OpId compute = Compute("compute", {}, {});
  const OpId gather = Communicate("gather", 0, Issue::kAsynchronous, {}, {w});
  EXPECT_EQ(builder_.Build().ops[gather.index()].after, std::vector<OpId>{compute});
}

TEST_F(RoleBuilderTest, AWriterWaitsForReadersOnOtherStreams) {
  const BufferId x = Buffer("x");
  Compute("write", {}, {x});
  const OpId read = Communicate("read", 0, Issue::kAsynchronous, {x}, {});
  const OpId rewrite = Compute("rewrite", {}, {x});
  EXPECT_EQ(builder_.Build().ops[rewrite.index()].after, std::vector<OpId>{read});
}

TEST_F(RoleBuilderTest, EdgesThatOthersImplyAreLeftOut) {
  const BufferId x = Buffer("x");
  const BufferId y = Buffer("y");
  Compute("write", {}, {x});
  const OpId first = Communicate("first", 0, Issue::kAsynchronous, {x}, {y});
  const OpId second = Communicate("second", 1, Issue::kAsynchronous, {x, y}, {y});
  const OpId read = Compute("read", {x, y}, {x});
  const Role role = builder_.Build();
  EXPECT_EQ(role.ops[second.index()].after, std::vector<OpId>{first});
  EXPECT_EQ(role.ops[read.index()].after, std::vector<OpId>{second});
}

}  // namespace role_builder_test
}  // namespace rehearse

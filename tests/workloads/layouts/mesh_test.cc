#include "workloads/layouts/mesh.h"

#include <gtest/gtest.h>

namespace rehearse {
namespace mesh_test {

TEST(MeshTest, TheFirstAxisIsInnermost) {
  const DeviceMesh mesh({{"column", 2}, {"row", 3}, {"depth", 4}});
  EXPECT_EQ(mesh.size(), 24u);
  const Communicator row = mesh.AlongAxis(1);
  EXPECT_EQ(row.name(), "row");
  EXPECT_EQ(row.size(), 3u);
  EXPECT_EQ(row.group_count(), 8u);
  // The rows of column 1, depth 0: ranks 1, 3, 5.
  const auto position = row.PositionOf(1);
  ASSERT_TRUE(position.has_value());
  EXPECT_EQ(row.Rank(position->group, 0), 1u);
  EXPECT_EQ(row.Rank(position->group, 1), 3u);
  EXPECT_EQ(row.Rank(position->group, 2), 5u);
}

TEST(MeshTest, SeveralAxesMakeOneCommunicator) {
  const DeviceMesh mesh({{"column", 2}, {"row", 2}, {"depth", 2}, {"data", 3}});
  const Communicator model = mesh.AlongAxes({0, 1, 2}, "model");
  EXPECT_EQ(model.size(), 8u);
  EXPECT_EQ(model.group_count(), 3u);
  for (uint32_t rank = 0; rank < 24; ++rank) {
    const auto position = model.PositionOf(rank);
    ASSERT_TRUE(position.has_value());
    EXPECT_EQ(position->group, rank / 8);
    EXPECT_EQ(model.Rank(position->group, position->member), rank);
  }
}

}  // namespace mesh_test
}  // namespace rehearse

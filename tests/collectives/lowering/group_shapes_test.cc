#include "collectives/lowering/group_shapes.h"

#include <gtest/gtest.h>

#include "tests/topology/fabrics/small_fabrics.h"

namespace rehearse {
namespace group_shapes_test {

// Leaves of 4 machines below two levels: 0 and 1 share a leaf like 2 and 3 and like 4 and 5;
// 0 and 4 do not.
TEST(GroupShapesTest, GroupsAtTheSamePlacesOfAFabricThatSpraysAreAlike) {
  const auto cluster = Single(ClosOf(8, 2), 16);
  const Router router(*cluster);
  GroupShapes shapes(router);
  EXPECT_TRUE(shapes.AreShared());
  EXPECT_EQ(shapes.Of({0, 1}), shapes.Of({2, 3}));
  EXPECT_EQ(shapes.Of({0, 1}), shapes.Of({4, 5}));
  EXPECT_NE(shapes.Of({0, 1}), shapes.Of({0, 4}));
  EXPECT_EQ(shapes.Of({0, 4}), shapes.Of({4, 8}));
}

// A dragonfly that takes the shortest ways does not spray, and ECMP draws its ways.
TEST(GroupShapesTest, ElsewhereNoTwoGroupsAreAlike) {
  const auto dragonfly = Single(DragonflyOf(4), 16);
  const Router spraying(*dragonfly);
  EXPECT_TRUE(GroupShapes(spraying).AreShared());
  const Router shortest(*dragonfly, kMinimal);
  const auto clos = Single(ClosOf(8, 2), 16);
  const Router drawn(*clos, kEcmp);
  for (const Router* router : {&shortest, &drawn}) {
    GroupShapes shapes(*router);
    EXPECT_FALSE(shapes.AreShared());
    EXPECT_NE(shapes.Of({0, 1}), shapes.Of({2, 3}));
    EXPECT_EQ(shapes.Of({0, 1}), shapes.Of({0, 1}));
  }
}

}  // namespace group_shapes_test
}  // namespace rehearse

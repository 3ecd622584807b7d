#include "sim/engine/level_queue.h"

#include <algorithm>
#include <vector>

#include <gtest/gtest.h>

#include "tests/support/random_program.h"

namespace rehearse {
namespace level_queue_test {

TEST(LevelQueueTest, TheFirstOfTheLowestComesOut) {
  LevelQueue queue;
  EXPECT_EQ(queue.Lowest().level, LevelQueue::kNever);
  for (int i = 0; i < 3; ++i) queue.Add();
  EXPECT_EQ(queue.Lowest().level, LevelQueue::kNever);
  queue.Set(0, 7);
  queue.Set(2, 5);
  queue.Set(1, 5);
  EXPECT_EQ(queue.Lowest().level, 5);
  EXPECT_EQ(queue.Lowest().slot, 1u);
  queue.Set(1, LevelQueue::kNever);
  EXPECT_EQ(queue.Lowest().slot, 2u);
  queue.Set(2, 8);
  EXPECT_EQ(queue.Lowest().slot, 0u);
  queue.Clear();
  EXPECT_EQ(queue.size(), 0u);
  EXPECT_EQ(queue.Lowest().level, LevelQueue::kNever);
}

// Against a search through all slots; up to 2,000 slots are three levels of the tree.
TEST(LevelQueueTest, AgreesWithASearchThroughAllSlots) {
  LevelQueue queue;
  for (const uint32_t most : {1u, 20u, 33u, 100u, 2000u}) {
    Random random(most);
    queue.Clear();
    std::vector<double> levels;
    for (int i = 0; i < 20'000; ++i) {
      if (levels.size() < most && random.Chance(30)) {
        queue.Add();
        levels.push_back(LevelQueue::kNever);
      }
      if (levels.empty()) continue;
      const uint32_t slot = random.Below(static_cast<uint32_t>(levels.size()));
      levels[slot] = random.Chance(30) ? LevelQueue::kNever : random.Below(1000);
      queue.Set(slot, levels[slot]);
      const auto lowest = std::min_element(levels.begin(), levels.end());
      ASSERT_EQ(queue.Lowest().level, *lowest);
      if (*lowest == LevelQueue::kNever) continue;
      ASSERT_EQ(queue.Lowest().slot, lowest - levels.begin());
      if (random.Chance(50)) continue;
      queue.Set(queue.Lowest().slot, LevelQueue::kNever);
      *lowest = LevelQueue::kNever;
    }
  }
}

}  // namespace level_queue_test
}  // namespace rehearse

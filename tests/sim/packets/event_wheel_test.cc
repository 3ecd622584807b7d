#include "sim/packets/event_wheel.h"

#include <random>
#include <set>
#include <utility>

#include <gtest/gtest.h>

namespace rehearse {
namespace event_wheel_test {

// Near and far ones, looked at before they are due, beside an ordered set.
TEST(EventWheelTest, EventsComeByTimeAndThenAsTheyWereAdded) {
  for (uint64_t seed = 0; seed < 20; ++seed) {
    std::mt19937_64 random(seed);
    EventWheel wheel;
    std::set<std::pair<int64_t, uint32_t>> expected;
    int64_t now = 0;
    for (uint32_t i = 0; i < 20'000; ++i) {
      if (expected.empty() || random() % 2 == 0) {
        const auto ahead = static_cast<int64_t>(random() % (uint64_t{1} << random() % 31));
        wheel.Add(now + ahead, 0, i);
        expected.emplace(now + ahead, i);
        continue;
      }
      const auto [time, number] = *expected.begin();
      ASSERT_FALSE(wheel.HasBy(time - 1));
      ASSERT_TRUE(wheel.HasBy(time));
      ASSERT_EQ(wheel.NextTime(), time);
      if (random() % 3 == 0) continue;
      ASSERT_EQ(wheel.Take().a, number);
      now = time;
      expected.erase(expected.begin());
    }
  }
}

// So many at once that slots are made narrower, more than once.
TEST(EventWheelTest, ACrowdComesInTheSameOrder) {
  std::mt19937_64 random(1);
  EventWheel wheel;
  std::set<std::pair<int64_t, uint32_t>> expected;
  int64_t now = 0;
  for (uint32_t i = 0; i < 600'000; ++i) {
    if (expected.size() < 20'000 || random() % 2 == 0) {
      const int64_t far = random() % 50 == 0 ? 50'000'000 : 600'000;
      const auto ahead = static_cast<int64_t>(random() % static_cast<uint64_t>(far));
      wheel.Add(now + ahead, 0, i);
      expected.emplace(now + ahead, i);
      continue;
    }
    const auto [time, number] = *expected.begin();
    ASSERT_FALSE(wheel.HasBy(time - 1));
    ASSERT_TRUE(wheel.HasBy(time));
    ASSERT_EQ(wheel.Take().a, number);
    now = time;
    expected.erase(expected.begin());
  }
}

}  // namespace event_wheel_test
}  // namespace rehearse

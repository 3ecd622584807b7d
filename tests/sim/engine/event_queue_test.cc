#include "sim/engine/event_queue.h"

#include <map>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "sim/base/error.h"
#include "tests/support/random_program.h"

namespace rehearse {
namespace event_queue_test {

using ::testing::ElementsAre;

TEST(EventQueueTest, TheEarliestComesFirst) {
  EventQueue queue(3);
  queue.Schedule(0, Time(30));
  queue.Schedule(1, Time(10));
  queue.Schedule(2, Time(20));
  std::vector<uint32_t> batch;
  EXPECT_EQ(queue.PopBatch(&batch), Time(10));
  EXPECT_THAT(batch, ElementsAre(1u));
  EXPECT_EQ(queue.PopBatch(&batch), Time(20));
  EXPECT_EQ(queue.PopBatch(&batch), Time(30));
  EXPECT_TRUE(queue.IsEmpty());
}

TEST(EventQueueTest, OneInstantIsOneBatchInTheOrderOfScheduling) {
  EventQueue queue(4);
  queue.Schedule(2, Time(10));
  queue.Schedule(0, Time(20));
  queue.Schedule(3, Time(10));
  queue.Schedule(1, Time(10));
  std::vector<uint32_t> batch;
  EXPECT_EQ(queue.PopBatch(&batch), Time(10));
  EXPECT_THAT(batch, ElementsAre(2u, 3u, 1u));
  EXPECT_EQ(queue.size(), 1u);
}

TEST(EventQueueTest, ReschedulingMovesAnEventToTheEndOfItsInstant) {
  EventQueue queue(3);
  queue.Schedule(0, Time(10));
  queue.Schedule(1, Time(20));
  queue.Schedule(2, Time(20));
  queue.Schedule(1, Time(20));
  queue.Schedule(0, Time(20));
  std::vector<uint32_t> batch;
  EXPECT_EQ(queue.PopBatch(&batch), Time(20));
  EXPECT_THAT(batch, ElementsAre(2u, 1u, 0u));
}

TEST(EventQueueTest, ACancelledEventDoesNotCome) {
  EventQueue queue(2);
  queue.Schedule(0, Time(10));
  queue.Schedule(1, Time(20));
  queue.Cancel(0);
  std::vector<uint32_t> batch;
  EXPECT_EQ(queue.PopBatch(&batch), Time(20));
  EXPECT_THROW(queue.Cancel(1), InternalError);
}

TEST(EventQueueTest, TheInstantOfTheLastBatchMayComeAgainButNoEarlierOne) {
  EventQueue queue(1);
  std::vector<uint32_t> batch;
  queue.Schedule(0, Time(10));
  queue.PopBatch(&batch);
  EXPECT_THROW(queue.Schedule(0, Time(9)), InternalError);
  queue.Schedule(0, Time(10));
  EXPECT_EQ(queue.PopBatch(&batch), Time(10));
  EXPECT_THROW(queue.PopBatch(&batch), InternalError);
}

// Against an ordered map from (time, sequence) to task. With few times, instants are crowded; with
// many, the cache of buckets misses; with mostly cancellations, empty buckets are swept out.
TEST(EventQueueTest, BehavesAsAnOrderedMap) {
  for (const uint32_t range : {3u, 100u, 1'000'000u}) {
    constexpr uint32_t kTasks = 500;
    Random random(range);
    EventQueue queue(kTasks);
    std::map<std::pair<int64_t, uint64_t>, uint32_t> model;
    std::vector<std::pair<int64_t, uint64_t>> key(kTasks, {-1, 0});
    uint64_t sequence = 0;
    int64_t now = 0;
    std::vector<uint32_t> batch;
    for (int i = 0; i < 50'000; ++i) {
      const uint32_t task = random.Below(kTasks);
      const uint32_t what = random.Below(10);
      if (what < 7) {
        const int64_t time = now + random.Below(range);
        queue.Schedule(task, Time(time));
        model.erase(key[task]);
        key[task] = {time, sequence++};
        model[key[task]] = task;
      } else if (what < 9) {
        if (model.erase(key[task]) > 0) queue.Cancel(task);
      } else if (!model.empty()) {
        std::vector<uint32_t> expected;
        now = model.begin()->first.first;
        while (!model.empty() && model.begin()->first.first == now) {
          expected.push_back(model.begin()->second);
          model.erase(model.begin());
        }
        ASSERT_EQ(queue.PopBatch(&batch), Time(now));
        ASSERT_EQ(batch, expected);
      }
      ASSERT_EQ(queue.size(), model.size());
    }
  }
}

}  // namespace event_queue_test
}  // namespace rehearse

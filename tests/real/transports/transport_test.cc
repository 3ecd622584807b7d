// Messages between thread ranks; small talk; clocks; what happens when a rank gives up.
#include <chrono>
#include <numeric>
#include <thread>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "real/transports/clock_alignment.h"
#include "real/transports/control.h"
#include "real/transports/transport_threads.h"
#include "sim/base/error.h"

namespace rehearse {
namespace transport_test {

using ::testing::HasSubstr;

TEST(ThreadTransportTest, MessagesOfOneTagArriveInOrderAndTagsDoNotMix) {
  RunAsThreads(2, [](Transport& transport) {
    constexpr int kMessages = 100;
    std::vector<int> numbers(2 * kMessages);
    std::iota(numbers.begin(), numbers.end(), 0);
    std::vector<Transport::Handle> handles;
    if (transport.rank() == 0) {
      for (int i = 0; i < 2 * kMessages; ++i) {
        handles.push_back(transport.Send(1, static_cast<uint32_t>(i % 2),
                                         &numbers[static_cast<size_t>(i)], sizeof(int)));
      }
      for (auto& handle : handles) transport.Wait(std::move(handle));
      return;
    }
    for (const int tag : {1, 0}) {  // the odd ones first
      for (int i = 0; i < kMessages; ++i) {
        int number = -1;
        transport.Wait(transport.Receive(0, static_cast<uint32_t>(tag), &number, sizeof number));
        EXPECT_EQ(number, 2 * i + tag);
      }
    }
  });
}

TEST(ThreadTransportTest, ABarrierIsPassedByAllOrNone) {
  std::atomic<int> arrived{0};
  RunAsThreads(5, [&](Transport& transport) {
    for (int round = 1; round <= 50; ++round) {
      arrived.fetch_add(1);
      transport.Barrier();
      EXPECT_GE(arrived.load(), 5 * round);
      transport.Barrier();
    }
  });
}

TEST(ThreadTransportTest, WhenARankFailsTheOthersStopWaitingAndItsReasonIsToldFirst) {
  const auto start = std::chrono::steady_clock::now();
  std::atomic<int> lost{0};
  try {
    RunAsThreads(4, [&](Transport& transport) {
      if (transport.rank() == 2) throw Error("rank 2, op 7 \"qkv\": out of paper");
      try {
        if (transport.rank() == 3) transport.Barrier();
        int number = 0;
        transport.Wait(transport.Receive(2, 1, &number, sizeof number));
      } catch (const RankLost& error) {
        EXPECT_THAT(error.what(), HasSubstr("out of paper"));
        ++lost;
        throw;
      }
    });
    FAIL();
  } catch (const Error& error) {
    EXPECT_THAT(error.what(), HasSubstr("op 7"));
  }
  EXPECT_EQ(lost.load(), 3);
  EXPECT_LT(std::chrono::steady_clock::now() - start, std::chrono::seconds(10));
}

TEST(ThreadTransportTest, ASendThatNobodyTakesIsWithdrawn) {
  EXPECT_THROW(RunAsThreads(2,
                            [](Transport& transport) {
                              if (transport.rank() == 1) throw Error("gone");
                              const std::vector<double> data(1000);
                              transport.Wait(transport.Send(1, 0, data.data(), 8000));
                            }),
               Error);
}

TEST(ControlTest, GatherAndBroadcast) {
  RunAsThreads(3, [](Transport& transport) {
    const std::string own(transport.rank(), 'x');  // rank 0's is empty
    const auto all = GatherBytes(transport, own);
    if (transport.rank() == 0) {
      EXPECT_EQ(all, (std::vector<std::string>{"", "x", "xx"}));
    } else {
      EXPECT_TRUE(all.empty());
    }
    EXPECT_EQ(BroadcastBytes(transport, "from " + std::to_string(transport.rank())), "from 0");
  });
}

TEST(ControlTest, RanksThatDisagreeAllLearnWhoDoes) {
  std::atomic<int> told{0};
  EXPECT_THROW(RunAsThreads(3,
                            [&](Transport& transport) {
                              try {
                                RequireSame(transport, "scenario",
                                            transport.rank() == 2 ? "b" : "a");
                              } catch (const Error& error) {
                                EXPECT_THAT(error.what(), HasSubstr("rank 2 has scenario b"));
                                ++told;
                                throw;
                              }
                            }),
               Error);
  EXPECT_EQ(told.load(), 3);
}

TEST(ClockTest, ThreadsReadTheSameClock) {
  RunAsThreads(3, [](Transport& transport) {
    const auto samples = MeasureClocks(transport);
    if (transport.rank() != 0) return;
    ASSERT_EQ(samples.size(), 3u);
    // True offset 0; wrong by at most half of the kept round trips, which a loaded
    // machine stretches.
    for (const ClockSample& sample : samples) EXPECT_LT(std::abs(sample.offset), 1e7);
  });
}

TEST(ClockTest, ADriftingClockIsMappedLinearly) {
  // The rank's clock is 1000 ns behind at first and loses 500 ns in a second.
  ClockMap map;
  map.before = {.at = 0, .offset = 1000, .round_trip = 0};
  map.after = {.at = 1'000'000'000, .offset = 1500, .round_trip = 0};
  EXPECT_NEAR(map.Drift(), 500, 1e-9);
  EXPECT_EQ(map.ToRank0(0), 1000);
  EXPECT_EQ(map.ToRank0(500'000'000), 500'000'000 + 1250);
}

}  // namespace transport_test
}  // namespace rehearse

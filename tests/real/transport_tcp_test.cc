#include "real/transport_tcp.h"

#include <atomic>
#include <functional>
#include <thread>
#include <vector>

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <unistd.h>

#include "sim/error.h"

namespace rehearse {
namespace {

using ::testing::HasSubstr;

// A port that tests running beside this one do not use:
// below the ports that Linux gives to connections (32768 and up), eight for each process.
TcpAddress FreeAddress() {
  static std::atomic<int> next{0};
  return {"127.0.0.1", static_cast<uint16_t>(20000 + 8 * (getpid() % 1500) + next++ % 8)};
}

// Each rank a thread with a transport of its own; what a rank threw, by rank.
std::vector<std::string> RunRanks(uint32_t ranks, const std::function<void(Transport&)>& body) {
  const TcpAddress address = FreeAddress();
  std::vector<std::string> failures(ranks);
  std::vector<std::thread> threads;
  for (uint32_t rank = 0; rank < ranks; ++rank) {
    threads.emplace_back([&, rank] {
      try {
        const auto transport = JoinTcp({"test", "test", rank, ranks, rank, ranks}, address, 5);
        body(*transport);
      } catch (const std::exception& error) {
        failures[rank] = error.what();
      }
    });
  }
  for (std::thread& thread : threads) thread.join();
  return failures;
}

TEST(TcpTransportTest, MessagesArriveInOrderBetweenAllPairs) {
  const auto failures = RunRanks(4, [](Transport& transport) {
    for (uint32_t to = 0; to < 4; ++to) {
      for (uint32_t i = 0; i < 3; ++i) {
        const uint32_t number = 100 * transport.rank() + 10 * to + i;
        transport.Wait(transport.Send(to, 7, &number, sizeof number));
      }
    }
    for (uint32_t from = 0; from < 4; ++from) {
      for (uint32_t i = 0; i < 3; ++i) {
        uint32_t number = 0;
        transport.Wait(transport.Receive(from, 7, &number, sizeof number));
        EXPECT_EQ(number, 100 * from + 10 * transport.rank() + i);
      }
    }
    transport.Barrier();
    EXPECT_TRUE(transport.has_common_clock());
  });
  for (const std::string& failure : failures) EXPECT_EQ(failure, "");
}

TEST(TcpTransportTest, NobodyPassesABarrierBeforeTheLastCame) {
  std::atomic<int> arrived{0};
  RunRanks(3, [&](Transport& transport) {
    std::this_thread::sleep_for(std::chrono::milliseconds(10 * transport.rank()));
    ++arrived;
    transport.Barrier();
    EXPECT_EQ(arrived, 3);
  });
}

TEST(TcpTransportTest, WhatARankGivesUpForIsToldToAll) {
  const auto failures = RunRanks(3, [](Transport& transport) {
    if (transport.rank() == 2) {
      transport.Abort("rank 2 has no memory");
      return;
    }
    transport.Barrier();
  });
  EXPECT_THAT(failures[0], HasSubstr("rank 2 has no memory"));
  EXPECT_THAT(failures[1], HasSubstr("rank 2 has no memory"));
}

TEST(TcpTransportTest, RanksThatNeverComeAreNamed) {
  const TcpAddress address = FreeAddress();
  try {
    JoinTcp({"test", "test", 0, 3, 0, 3}, address, 0.3);
    FAIL();
  } catch (const Error& error) {
    EXPECT_THAT(error.what(), HasSubstr("waited in vain for rank 1, 2"));
  }
}

}  // namespace
}  // namespace rehearse

#include "real/transports/transport_tcp.h"

#include <atomic>
#include <chrono>
#include <cstdlib>
#include <functional>
#include <thread>
#include <vector>

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <netinet/in.h>
#include <sys/socket.h>
#include <unistd.h>

#include "sim/base/error.h"

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

std::string FailureToJoin(uint32_t rank, uint32_t ranks, const TcpAddress& address) {
  try {
    JoinTcp({"test", "test", rank, ranks, rank, ranks}, address, 0.5);
  } catch (const Error& error) {
    return error.what();
  }
  return "";
}

TEST(TcpTransportTest, RanksThatNeverComeAreNamedOnAllThatDid) {
  const TcpAddress address = FreeAddress();
  std::string of_rank_2;
  std::thread rank_2([&] { of_rank_2 = FailureToJoin(2, 4, address); });
  const std::string of_rank_0 = FailureToJoin(0, 4, address);
  rank_2.join();
  EXPECT_THAT(of_rank_0, HasSubstr("rank 1, 3 did not come within 0.5 s"));
  EXPECT_EQ(of_rank_2, of_rank_0);
  EXPECT_THAT(FailureToJoin(1, 4, FreeAddress()),
              HasSubstr("rank 0 does not answer at 127.0.0.1:"));
}

// Whatever else connects to the port is not waited for.
TEST(TcpTransportTest, AStrangerThatSaysNothingDoesNotKeepRank0) {
  const TcpAddress address = FreeAddress();
  std::thread stranger([&] {
    const int socket = ::socket(AF_INET, SOCK_STREAM, 0);
    sockaddr_in to{};
    to.sin_family = AF_INET;
    to.sin_port = htons(address.port);
    to.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
    for (int i = 0; i < 100; ++i) {
      if (connect(socket, reinterpret_cast<const sockaddr*>(&to), sizeof to) == 0) break;
      std::this_thread::sleep_for(std::chrono::milliseconds(10));
    }
    std::this_thread::sleep_for(std::chrono::seconds(3));
    close(socket);
  });
  const auto begin = std::chrono::steady_clock::now();
  EXPECT_THAT(FailureToJoin(0, 2, address), HasSubstr("rank 1 did not come"));
  const std::chrono::duration<double> took = std::chrono::steady_clock::now() - begin;
  EXPECT_LT(took.count(), 2.9);  // 2 s for the stranger
  stranger.join();
}

class TcpAddressTest : public ::testing::Test {
 protected:
  void TearDown() override {
    for (const char* name : {"MASTER_ADDR", "MASTER_PORT", "SLURM_STEP_NODELIST",
                             "TORCHELASTIC_USE_AGENT_STORE", "REHEARSE_PATIENCE"}) {
      unsetenv(name);
    }
  }
};

TEST_F(TcpAddressTest, SlurmsFirstNodeIsWhereRank0Is) {
  setenv("SLURM_STEP_NODELIST", "gpu[07-09,12],cpu3", 1);
  EXPECT_EQ(TcpAddressFromEnvironment().host, "gpu07");
  setenv("SLURM_STEP_NODELIST", "nid001,nid002", 1);
  EXPECT_EQ(TcpAddressFromEnvironment().host, "nid001");
  setenv("SLURM_STEP_NODELIST", "one", 1);
  EXPECT_EQ(TcpAddressFromEnvironment().host, "one");
  setenv("MASTER_ADDR", "here", 1);
  EXPECT_EQ(TcpAddressFromEnvironment().host, "here");
}

TEST_F(TcpAddressTest, TorchrunsAgentKeepsItsPort) {
  setenv("MASTER_PORT", "29500", 1);
  EXPECT_EQ(TcpAddressFromEnvironment().port, 29500);
  setenv("TORCHELASTIC_USE_AGENT_STORE", "True", 1);
  EXPECT_EQ(TcpAddressFromEnvironment().port, 29501);
}

TEST_F(TcpAddressTest, PatienceIsSeconds) {
  EXPECT_EQ(PatienceFromEnvironment(), 30);
  setenv("REHEARSE_PATIENCE", "2.5", 1);
  EXPECT_EQ(PatienceFromEnvironment(), 2.5);
  setenv("REHEARSE_PATIENCE", "soon", 1);
  EXPECT_THROW(PatienceFromEnvironment(), Error);
}

}  // namespace
}  // namespace rehearse

#include "real/transports/transport_tcp.h"

#include <atomic>
#include <chrono>
#include <cstdlib>
#include <fstream>
#include <functional>
#include <memory>
#include <thread>
#include <vector>

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <netinet/in.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <unistd.h>

#include "real/transports/tcp_wire.h"
#include "sim/base/error.h"

namespace rehearse {
namespace transport_tcp_test {

using ::testing::HasSubstr;
using ::testing::Not;

// A port that tests running beside this one do not use:
// below the ports that Linux gives to connections (32768 and up), eight for each process.
TcpAddress FreeAddress() {
  static std::atomic<int> next{0};
  return {"127.0.0.1", static_cast<uint16_t>(20000 + 8 * (getpid() % 1500) + next++ % 8)};
}

// Each rank is a thread with a transport of its own; what a rank threw, by rank.
std::vector<std::string> RunRanks(uint32_t ranks, const std::function<void(Transport&)>& body) {
  const TcpAddress address = FreeAddress();
  std::vector<std::string> failures(ranks);
  std::vector<std::thread> threads;
  for (uint32_t rank = 0; rank < ranks; ++rank) {
    threads.emplace_back([&, rank] {
      try {
        const auto transport =
            JoinTcp({"test", "test", rank, ranks, rank, ranks}, {address, 5, {}});
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
    JoinTcp({"test", "test", rank, ranks, rank, ranks}, {address, 0.5, {}});
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

// ---- what is no rank of the run -----------------------------------------------------------------

constexpr const char* kSecret = "0123456789abcdeffedcba9876543210";

// A rank that is alone on its machine.
Launch OnMachineOfItsOwn(uint32_t rank, uint32_t ranks) {
  return {"srun", "test", rank, ranks, 0, 1};
}
TcpMeeting MeetingAt(const TcpAddress& address, double patience) {
  return {address, patience, SplitSecret(kSecret, "test")};
}

// Whoever connects to the port.
class Stranger {
 public:
  explicit Stranger(const TcpAddress& address, uint32_t host = INADDR_LOOPBACK) {
    sockaddr_in to{};
    to.sin_family = AF_INET;
    to.sin_port = htons(address.port);
    to.sin_addr.s_addr = htonl(host);
    for (int i = 0; i < 200 && !socket_; ++i) {
      auto socket = std::make_unique<Socket>(::socket(AF_INET, SOCK_STREAM, 0));
      is_connected_ =
          connect(socket->descriptor(), reinterpret_cast<const sockaddr*>(&to), sizeof to) == 0;
      if (is_connected_) socket_ = std::move(socket);
      if (!is_connected_ && host != INADDR_LOOPBACK) return;
      if (!is_connected_) std::this_thread::sleep_for(std::chrono::milliseconds(10));
    }
  }
  bool is_connected() const { return is_connected_; }
  void Say(const void* data, size_t bytes) {
    if (socket_) socket_->Send(data, bytes);
  }
  // Nothing more comes, and that is known before ten seconds are over.
  bool IsDropped() {
    if (!socket_) return false;
    char byte = 0;
    const auto until = WireClock::now() + std::chrono::seconds(10);
    return !socket_->ReceiveBy(until, &byte, 1) && WireClock::now() < until;
  }
  Answer Hear() {
    Answer answer;
    if (!socket_) return answer;
    socket_->ReceiveBy(WireClock::now() + std::chrono::seconds(2), &answer, sizeof answer);
    return answer;
  }
  // Connects as a rank does.
  void ComeIn(uint32_t rank, uint32_t ranks) {
    Hello hello = HelloOf(rank, ranks);
    Say(&hello, sizeof hello);
    Hear();
    WireFrame welcome;
    char one = 0;
    const auto soon = WireClock::now() + std::chrono::seconds(5);
    EXPECT_TRUE(socket_->ReceiveBy(soon, &welcome, sizeof welcome));
    EXPECT_TRUE(socket_->ReceiveBy(soon, &one, 1));
  }
  static Hello HelloOf(uint32_t rank, uint32_t ranks) {
    Hello hello;
    hello.rank = rank;
    hello.ranks = ranks;
    hello.secret = SplitSecret(kSecret, "test").of_ranks;
    return hello;
  }

 private:
  std::unique_ptr<Socket> socket_;
  bool is_connected_ = false;
};

double SecondsSince(WireClock::time_point begin) {
  return std::chrono::duration<double>(WireClock::now() - begin).count();
}

// What rank 0 of two threw, with that patience; "" if it met rank 1 and passed a barrier with it.
std::string FailureOfRank0(const TcpAddress& address, double patience) {
  try {
    const auto transport = JoinTcp(OnMachineOfItsOwn(0, 2), MeetingAt(address, patience));
    transport->Barrier();
  } catch (const std::exception& error) {
    return error.what();
  }
  return "";
}
std::string FailureOfRank1(const TcpAddress& address, double patience) {
  try {
    const auto transport = JoinTcp(OnMachineOfItsOwn(1, 2), MeetingAt(address, patience));
    transport->Barrier();
  } catch (const std::exception& error) {
    return error.what();
  }
  return "";
}

TEST(TcpTransportTest, RanksOfSeveralMachinesNeedASecret) {
  try {
    JoinTcp(OnMachineOfItsOwn(1, 2), {FreeAddress(), 0.5, {}});
    FAIL();
  } catch (const Error& error) {
    EXPECT_THAT(error.what(),
                HasSubstr("found no REHEARSE_SECRET for 2 ranks on several machines"));
    EXPECT_THAT(error.what(), HasSubstr("before srun: export REHEARSE_SECRET="));
    EXPECT_THAT(error.what(), Not(HasSubstr("MASTER_ADDR")));
  }
  Launch by_hand{"torchrun", "test", 1, 2, 1, 2};
  by_hand.knows_local_ranks = false;
  try {
    JoinTcp(by_hand, {{"node7", 29500}, 0.5, {}});
    FAIL();
  } catch (const Error& error) {
    EXPECT_THAT(error.what(), HasSubstr("if all are on this one, set MASTER_ADDR=127.0.0.1"));
  }
}

// Rank 0 listens on 127.0.0.1 alone: 127.0.0.2 is also this machine, like its other addresses.
TEST(TcpTransportTest, RanksOfOneMachineAreNotReachedFromElsewhere) {
  const TcpAddress address = FreeAddress();
  std::thread rank_0([&] { FailureToJoin(0, 2, address); });
  EXPECT_TRUE(Stranger(address).is_connected());
  EXPECT_FALSE(Stranger(address, INADDR_LOOPBACK + 1).is_connected());
  rank_0.join();
}

// Not waited for, whatever it sends: nothing at all, or a byte now and then.
TEST(TcpTransportTest, AStrangerThatSaysNothingOrLittleDoesNotKeepRank0) {
  const TcpAddress address = FreeAddress();
  std::atomic<bool> is_over{false};
  std::thread strangers([&] {
    Stranger silent(address);
    Stranger slow(address);
    const Hello hello = Stranger::HelloOf(1, 2);
    for (size_t i = 0; i < sizeof hello && !is_over; ++i) {
      slow.Say(reinterpret_cast<const char*>(&hello) + i, 1);
      std::this_thread::sleep_for(std::chrono::milliseconds(100));
    }
  });
  const auto begin = WireClock::now();
  EXPECT_THAT(FailureOfRank0(address, 1), HasSubstr("rank 1 did not come within 1 s"));
  EXPECT_LT(SecondsSince(begin), 3);  // the slow one alone would take longer
  is_over = true;
  strangers.join();
}

// Each is dropped or refused, and then rank 1 comes, and the run goes on.
TEST(TcpTransportTest, BadHellosAreDroppedAndTheRunGoesOn) {
  const TcpAddress address = FreeAddress();
  std::string of_rank_0;
  testing::internal::CaptureStderr();
  std::thread rank_0([&] { of_rank_0 = FailureOfRank0(address, 20); });
  const auto say = [&](const Hello& hello) {
    auto stranger = std::make_unique<Stranger>(address);
    stranger->Say(&hello, sizeof hello);
    return stranger;
  };
  Hello hello = Stranger::HelloOf(1, 2);
  hello.secret.front() ^= 1;
  EXPECT_TRUE(say(hello)->IsDropped());
  hello = Stranger::HelloOf(1, 2);
  hello.magic.back() = '!';
  EXPECT_TRUE(say(hello)->IsDropped());
  hello = Stranger::HelloOf(1, 2);
  hello.version = 1;
  EXPECT_TRUE(say(hello)->IsDropped());
  // Whoever knows the secret is told why.
  EXPECT_STREQ(say(Stranger::HelloOf(1, 3))->Hear().reason.data(),
               "rank 1 of 3 came to rank 0 of 2: they belong to other runs");
  EXPECT_EQ(say(Stranger::HelloOf(7, 2))->Hear().is_refused, 1u);
  EXPECT_EQ(say(Stranger::HelloOf(0, 2))->Hear().is_refused, 1u);
  // One that stops in the middle of its hello.
  Stranger(address).Say(&hello, sizeof hello / 2);

  EXPECT_EQ(FailureOfRank1(address, 5), "");
  rank_0.join();
  EXPECT_EQ(of_rank_0, "");
  const std::string said = testing::internal::GetCapturedStderr();
  EXPECT_THAT(said, HasSubstr("dropped a connection from 127.0.0.1, port "));
  EXPECT_THAT(said, HasSubstr("it does not know the secret of the run"));
  EXPECT_EQ(said.find("dropped"), said.rfind("dropped"));  // once, not seven times
}

TEST(TcpTransportTest, ARankThatGoesBeforeAllHaveComeMayComeAgain) {
  const TcpAddress address = FreeAddress();
  std::string of_rank_0 = "?";
  std::thread rank_0([&] {
    try {
      JoinTcp(OnMachineOfItsOwn(0, 3), MeetingAt(address, 10))->Barrier();
      of_rank_0 = "";
    } catch (const std::exception& error) {
      of_rank_0 = error.what();
    }
  });
  {
    Stranger first(address);
    const Hello hello = Stranger::HelloOf(1, 3);
    first.Say(&hello, sizeof hello);
    EXPECT_EQ(first.Hear().is_refused, 0u);
  }
  std::this_thread::sleep_for(std::chrono::milliseconds(300));
  std::vector<std::thread> others;
  for (const uint32_t rank : {1u, 2u}) {
    others.emplace_back([&, rank] {
      EXPECT_NO_THROW(JoinTcp(OnMachineOfItsOwn(rank, 3), MeetingAt(address, 10))->Barrier());
    });
  }
  for (std::thread& other : others) other.join();
  rank_0.join();
  EXPECT_EQ(of_rank_0, "");
}

// It knows only what the rank has sent it, and answers with that, or with nothing.
TEST(TcpTransportTest, AnImpostorInRank0sPlaceIsNotBelieved) {
  for (const bool answers : {false, true}) {
    const TcpAddress address = FreeAddress();
    const int listener = ::socket(AF_INET, SOCK_STREAM, 0);
    sockaddr_in own{};
    own.sin_family = AF_INET;
    own.sin_port = htons(address.port);
    const int on = 1;
    setsockopt(listener, SOL_SOCKET, SO_REUSEADDR, &on, sizeof on);
    ASSERT_EQ(bind(listener, reinterpret_cast<const sockaddr*>(&own), sizeof own), 0);
    ASSERT_EQ(listen(listener, 8), 0);
    std::thread impostor([&] {
      Socket rank_1(accept(listener, nullptr, nullptr));
      Hello hello;
      rank_1.ReceiveAll(&hello, sizeof hello);
      Answer answer;
      answer.milliseconds = 3'600'000;
      answer.secret = hello.secret;
      if (answers) rank_1.Send(&answer, sizeof answer);
      char byte = 0;
      rank_1.ReceiveAll(&byte, 1);  // until it goes
    });
    const auto begin = WireClock::now();
    EXPECT_THAT(FailureOfRank1(address, 1), HasSubstr("does not answer like rank 0 of this run"));
    EXPECT_LT(SecondsSince(begin), 4);
    shutdown(listener, SHUT_RDWR);
    impostor.join();
    close(listener);
  }
}

// ---- a rank of the run that says what none says -------------------------------------------------

std::string FaultOfFrame(const WireFrame& frame) {
  const TcpAddress address = FreeAddress();
  std::string of_rank_0;
  std::thread rank_0([&] { of_rank_0 = FailureOfRank0(address, 10); });
  Stranger rank_1(address);
  rank_1.ComeIn(1, 2);
  rank_1.Say(&frame, sizeof frame);
  rank_0.join();
  return of_rank_0;
}

TEST(TcpTransportTest, AFrameThatNoRankSendsIsOneErrorThatNamesTheRank) {
  const std::string sent = "rank 1 sent what no rank sends: a frame ";
  constexpr uint64_t kHuge = uint64_t{1} << 40;
  EXPECT_EQ(FaultOfFrame({FrameKind::kMessage, 1, 0, 5, kHuge}), sent + "of 1099511627776 bytes");
  EXPECT_EQ(FaultOfFrame({FrameKind::kMessage, 1, 7, 5, 8}), sent + "to rank 7 of 2");
  EXPECT_EQ(FaultOfFrame({FrameKind{99}, 1, 0, 0, 0}), sent + "of kind 99");
}

TEST(TcpWireTest, FramesAreCheckedByWhoSendsAndWhoReceives) {
  const WireFrame right{FrameKind::kMessage, 2, 3, 5, 8};
  EXPECT_EQ(FaultOf(right, 2, 0, 4), "");  // rank 0 passes it on
  EXPECT_EQ(FaultOf(right, 0, 3, 4), "");  // and there it comes by way of rank 0
  EXPECT_EQ(FaultOf(right, 1, 0, 4), "from rank 2");
  EXPECT_EQ(FaultOf(right, 0, 1, 4), "to rank 3 of 4");
  EXPECT_EQ(FaultOf({FrameKind::kMessage, 2, 2, 5, 8}, 2, 0, 4), "to rank 2 of 4");
  EXPECT_EQ(FaultOf({FrameKind::kMessage, 4, 3, 5, 8}, 0, 3, 4), "from rank 4");
  EXPECT_EQ(FaultOf({FrameKind::kMessage, 3, 3, 5, 8}, 0, 3, 4), "from rank 3");
  EXPECT_EQ(FaultOf({FrameKind::kMessage, 2, 0, 2 * kControlTag, 8}, 2, 0, 4), "with tag 2097152");
  EXPECT_EQ(FaultOf({FrameKind::kMessage, 2, 0, kBarrierTag, 1}, 2, 0, 4), "");
  EXPECT_EQ(FaultOf({FrameKind::kMessage, 2, 0, 5, kLongestMessage}, 2, 0, 4), "");
  EXPECT_EQ(FaultOf({FrameKind::kAlive, 2, 0, 0, 1}, 2, 0, 4), "of 1 bytes");
  EXPECT_EQ(FaultOf({FrameKind::kAbort, 2, 0, 0, 65537}, 2, 0, 4), "of 65537 bytes");
  EXPECT_EQ(FaultOf({FrameKind::kWelcome, 0, 3, 0, 1}, 0, 3, 4), "of kind 1");
}

TEST(TcpTransportTest, AMessageOfAnotherSizeIsOneErrorThatNamesTheRank) {
  const auto failures = RunRanks(2, [](Transport& transport) {
    uint64_t number = 0;
    if (transport.rank() == 1) {
      transport.Wait(transport.Send(0, 7, &number, sizeof number));
      transport.Barrier();
      return;
    }
    try {
      transport.Wait(transport.Receive(1, 7, &number, 4));
    } catch (const Error& error) {
      transport.Abort(error.what());
      throw;
    }
  });
  EXPECT_EQ(failures[0], "rank 1 sent a message of 8 bytes with tag 7, expected 4 bytes");
  EXPECT_EQ(failures[1], failures[0]);
}

// A process that is stopped keeps its connections and says nothing.
TEST(TcpTransportTest, ARankThatFallsSilentIsNamedWithinTenSeconds) {
  const TcpAddress address = FreeAddress();
  std::string of_rank_0;
  std::thread rank_0([&] { of_rank_0 = FailureOfRank0(address, 10); });
  Stranger rank_1(address);
  rank_1.ComeIn(1, 2);
  const auto begin = WireClock::now();
  rank_0.join();
  EXPECT_THAT(of_rank_0, HasSubstr("rank 1 has given no sign of life for 5 s"));
  EXPECT_LT(SecondsSince(begin), 9);
}

TEST(TcpTransportTest, ARankThatComputesForLongIsNotLost) {
  const auto failures = RunRanks(2, [](Transport& transport) {
    if (transport.rank() == 1) std::this_thread::sleep_for(std::chrono::milliseconds(6500));
    transport.Barrier();
  });
  EXPECT_EQ(failures, (std::vector<std::string>{"", ""}));
}

// ---- the secret ---------------------------------------------------------------------------------

class RunSecretTest : public ::testing::Test {
 protected:
  RunSecretTest() { Forget(); }
  ~RunSecretTest() override { Forget(); }
  static void Forget() {
    unsetenv("REHEARSE_SECRET");
    unsetenv("REHEARSE_SECRET_FILE");
  }
  static std::string Mistake() {
    try {
      SecretFromEnvironment();
    } catch (const Error& error) {
      return error.what();
    }
    return "";
  }
};

TEST_F(RunSecretTest, IsInTheEnvironmentOrInAFileOfOnesOwn) {
  EXPECT_FALSE(SecretFromEnvironment().has_value());
  setenv("REHEARSE_SECRET", kSecret, 1);
  const RunSecret given = *SecretFromEnvironment();
  EXPECT_TRUE(IsSame(given.of_ranks, SplitSecret(kSecret, "").of_ranks));
  // Neither half reveals the other.
  EXPECT_EQ(std::string(SplitSecret("the first 16 chs; and the others", "").of_rank_0.data()),
            "; and the others");
  Forget();

  const std::string path = ::testing::TempDir() + "secret-" + std::to_string(getpid());
  std::ofstream(path) << kSecret << "\n";
  setenv("REHEARSE_SECRET_FILE", path.c_str(), 1);
  chmod(path.c_str(), 0640);
  EXPECT_THAT(Mistake(), HasSubstr("mode 640"));
  chmod(path.c_str(), 0600);
  EXPECT_TRUE(IsSame(SecretFromEnvironment()->of_rank_0, given.of_rank_0));
  unlink(path.c_str());
  EXPECT_THAT(Mistake(), HasSubstr(path + ": the secret of the run"));
}

TEST_F(RunSecretTest, AShortOneAndOneThatRepeatsItselfAreRefused) {
  setenv("REHEARSE_SECRET", "1234", 1);
  EXPECT_EQ(Mistake(),
            "environment: REHEARSE_SECRET: found a secret of 4 characters, expected 16 to 128");
  setenv("REHEARSE_SECRET", "swordfishswordfish", 1);
  EXPECT_THAT(Mistake(), HasSubstr("two equal halves"));
}

TEST_F(RunSecretTest, Rank0sOwnIsReplacedAndGoesWithIt) {
  const std::string run = "test-" + std::to_string(getpid());
  EXPECT_FALSE(SharedSecret::Find(run).has_value());
  {
    const SharedSecret earlier(run);
    const SharedSecret own(run);
    EXPECT_TRUE(IsSame(SharedSecret::Find(run)->of_ranks, own.secret().of_ranks));
    EXPECT_FALSE(IsSame(earlier.secret().of_ranks, own.secret().of_ranks));
  }
  EXPECT_FALSE(SharedSecret::Find(run).has_value());
}

// When started by hand, there are only RANK and WORLD_SIZE, which do not say where the ranks are.
TEST(TcpMeetingTest, AnAddressThatOthersReachMeansSeveralMachines) {
  Launch launch{"torchrun", "test", 1, 2, 1, 2};
  EXPECT_TRUE(MeetOnOneMachine(launch, {"node7", 29500}));
  launch.knows_local_ranks = false;
  EXPECT_FALSE(MeetOnOneMachine(launch, {"node7", 29500}));
  EXPECT_TRUE(MeetOnOneMachine(launch, {"127.0.0.1", 29500}));
  EXPECT_FALSE(MeetOnOneMachine(OnMachineOfItsOwn(0, 2), {"127.0.0.1", 29500}));
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

}  // namespace transport_tcp_test
}  // namespace rehearse

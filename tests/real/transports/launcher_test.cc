// Which rank a process is, from the variables of the launchers; roll calls of real processes.
#include "real/transports/launcher.h"

#include <atomic>
#include <chrono>
#include <csignal>
#include <cstdlib>
#include <thread>

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <sys/wait.h>
#include <unistd.h>

#include "real/transports/lost_rank_watch.h"
#include "real/transports/roll_call.h"
#include "sim/base/error.h"

namespace rehearse {
namespace launcher_test {

using ::testing::HasSubstr;

constexpr const char* kVariables[] = {"RANK",
                                      "WORLD_SIZE",
                                      "LOCAL_RANK",
                                      "LOCAL_WORLD_SIZE",
                                      "MASTER_PORT",
                                      "PMI_RANK",
                                      "PMI_SIZE",
                                      "OMPI_COMM_WORLD_RANK",
                                      "SLURM_PROCID",
                                      "SLURM_NTASKS",
                                      "SLURM_LOCALID",
                                      "SLURM_STEP_TASKS_PER_NODE",
                                      "SLURM_JOB_ID",
                                      "SLURM_STEP_ID",
                                      "OMPI_COMM_WORLD_SIZE",
                                      "OMPI_COMM_WORLD_LOCAL_RANK",
                                      "PMIX_NAMESPACE",
                                      "SLURM_NODEID",
                                      "TORCHELASTIC_RESTART_COUNT",
                                      "TORCHELASTIC_RUN_ID"};

class LauncherTest : public ::testing::Test {
 protected:
  LauncherTest() {
    for (const char* variable : kVariables) unsetenv(variable);
  }
  ~LauncherTest() override {
    for (const char* variable : kVariables) unsetenv(variable);
  }
  static void Set(const char* variable, const char* value) { setenv(variable, value, 1); }
};

TEST_F(LauncherTest, NobodyStartedThisProcess) { EXPECT_FALSE(DetectLaunch().has_value()); }

TEST_F(LauncherTest, Mpirun) {
  Set("OMPI_COMM_WORLD_RANK", "3");
  Set("OMPI_COMM_WORLD_SIZE", "8");
  Set("OMPI_COMM_WORLD_LOCAL_RANK", "1");
  Set("PMIX_NAMESPACE", "42/1");
  const auto launch = DetectLaunch();
  ASSERT_TRUE(launch.has_value());
  EXPECT_EQ(launch->launcher, "mpirun");
  EXPECT_EQ(launch->rank, 3u);
  EXPECT_EQ(launch->ranks, 8u);
  EXPECT_EQ(launch->local_rank, 1u);
  EXPECT_THAT(launch->job, HasSubstr("42.1"));  // a name that a file may have
}

TEST_F(LauncherTest, SrunCountsTasksOfEachNode) {
  Set("SLURM_PROCID", "5");
  Set("SLURM_NTASKS", "8");
  Set("SLURM_LOCALID", "1");
  Set("SLURM_STEP_TASKS_PER_NODE", "4(x2)");
  const auto launch = DetectLaunch();
  ASSERT_TRUE(launch.has_value());
  EXPECT_EQ(launch->launcher, "srun");
  EXPECT_EQ(launch->local_ranks, 4u);
}

TEST_F(LauncherTest, Torchrun) {
  Set("RANK", "1");
  Set("WORLD_SIZE", "2");
  Set("LOCAL_RANK", "1");
  Set("LOCAL_WORLD_SIZE", "2");
  EXPECT_EQ(DetectLaunch()->launcher, "torchrun");
}

TEST_F(LauncherTest, SlurmsNodesMayHaveDifferentNumbersOfTasks) {
  Set("SLURM_PROCID", "9");
  Set("SLURM_NTASKS", "11");
  Set("SLURM_LOCALID", "1");
  Set("SLURM_STEP_TASKS_PER_NODE", "4(x2),3");
  Set("SLURM_NODEID", "1");
  EXPECT_EQ(DetectLaunch()->local_ranks, 4u);
  Set("SLURM_NODEID", "2");
  EXPECT_EQ(DetectLaunch()->local_ranks, 3u);
  Set("SLURM_STEP_TASKS_PER_NODE", "4(y2)");
  EXPECT_THROW(DetectLaunch(), Error);
}

// torchrun restarts its ranks after a failure: that is another run.
TEST_F(LauncherTest, ARestartHasANameOfItsOwn) {
  Set("RANK", "0");
  Set("WORLD_SIZE", "2");
  Set("TORCHELASTIC_RUN_ID", std::string(300, 'n').c_str());
  EXPECT_LT(DetectLaunch()->job.size(), 200u);
  Set("TORCHELASTIC_RUN_ID", "none");
  Set("TORCHELASTIC_RESTART_COUNT", "0");
  const Launch first = *DetectLaunch();
  EXPECT_FALSE(first.knows_local_ranks);
  Set("TORCHELASTIC_RESTART_COUNT", "1");
  EXPECT_NE(DetectLaunch()->job, first.job);
}

TEST_F(LauncherTest, NonsenseIsRefused) {
  Set("RANK", "two");
  Set("WORLD_SIZE", "2");
  EXPECT_THROW(DetectLaunch(), Error);
  Set("RANK", "2");
  EXPECT_THROW(DetectLaunch(), Error);  // not below 2
}

// Runs `body` in a process of its own, which exits with what it returns.
template <typename Body>
pid_t Fork(Body body) {
  const pid_t child = fork();
  if (child == 0) _exit(body());
  return child;
}

int ExitCode(pid_t child) {
  int status = 0;
  waitpid(child, &status, 0);
  return WIFEXITED(status) ? WEXITSTATUS(status) : -1;
}

std::string JobName(const char* name) { return std::string(name) + std::to_string(getpid()); }

TEST(RollCallTest, ARankThatNeverStartsIsNamed) {
  try {
    const RollCall alone(JobName("absent"), 0, 3, 0, 0.2);
    FAIL();
  } catch (const Error& error) {
    EXPECT_THAT(error.what(), HasSubstr("local rank 1, 2 of 3 has not started within 0.2 s"));
  }
}

TEST(RollCallTest, AKilledRankIsNamedWithWhatItDid) {
  const std::string job = JobName("killed");
  const pid_t victim = Fork([&] {
    RollCall roll(job, 1, 2, 17, 10);
    roll.set_activity("op 4 \"all-reduce\"");
    raise(SIGKILL);
    return 0;
  });
  std::optional<std::string> trouble;
  try {
    RollCall roll(job, 0, 2, 0, 10);
    const auto start = std::chrono::steady_clock::now();
    while (!trouble && std::chrono::steady_clock::now() - start < std::chrono::seconds(10)) {
      trouble = roll.Trouble();
    }
  } catch (const Error& error) {  // it was gone before this rank had seen that it came
    trouble = error.what();
  }
  EXPECT_EQ(ExitCode(victim), -1);
  ASSERT_TRUE(trouble.has_value());
  EXPECT_THAT(*trouble, HasSubstr("rank 17"));
  EXPECT_THAT(*trouble, HasSubstr("op 4 \"all-reduce\""));
}

// It keeps its process, and everything that the system says about it except its state.
TEST(RollCallTest, AStoppedRankIsNamedWithinTenSeconds) {
  const std::string job = JobName("stopped");
  const pid_t victim = Fork([&] {
    RollCall roll(job, 1, 2, 17, 10);
    roll.set_activity("op 4 \"all-reduce\"");
    raise(SIGSTOP);
    return 0;
  });
  RollCall roll(job, 0, 2, 0, 10);
  const auto start = std::chrono::steady_clock::now();
  std::optional<std::string> trouble;
  while (!trouble && std::chrono::steady_clock::now() - start < std::chrono::seconds(15)) {
    std::this_thread::sleep_for(std::chrono::milliseconds(20));
    trouble = roll.Trouble();
  }
  EXPECT_LT(std::chrono::steady_clock::now() - start, std::chrono::seconds(9));
  EXPECT_THAT(trouble.value_or(""),
              HasSubstr("rank 17 (process " + std::to_string(victim) +
                        ") has given no sign of life for 5 s: it is stopped; it was at op 4"));
  // Nobody waits for it to leave.
  const auto leaves = std::chrono::steady_clock::now();
  roll.LeaveTogether(30);
  EXPECT_LT(std::chrono::steady_clock::now() - leaves, std::chrono::seconds(2));
  kill(victim, SIGKILL);
  EXPECT_EQ(ExitCode(victim), -1);
}

TEST(RollCallTest, ARankThatComputesForLongIsNotLost) {
  const std::string job = JobName("long");
  const pid_t other = Fork([&] {
    const RollCall roll(job, 1, 2, 1, 10);
    std::this_thread::sleep_for(std::chrono::milliseconds(6500));
    return 0;
  });
  RollCall roll(job, 0, 2, 0, 10);
  EXPECT_EQ(ExitCode(other), 0);
  EXPECT_FALSE(roll.Trouble().has_value());
}

// Both are alive, and what is between them is broken. Of a third, which has signed off, nothing is
// expected.
TEST(RollCallTest, RanksThatAllWaitInVainEndAfter20Seconds) {
  const std::string job = JobName("waits");
  const pid_t third = Fork([&] {
    const RollCall roll(job, 2, 3, 2, 10);
    return 0;
  });
  const pid_t other = Fork([&] {
    RollCall roll(job, 1, 3, 1, 10);
    roll.set_activity("op 4 \"all-reduce\"");
    roll.BeginWait(0);
    for (int i = 0; i < 3000 && !roll.Trouble(); ++i)
      std::this_thread::sleep_for(std::chrono::milliseconds(10));
    roll.EndWait();
    return roll.Trouble() ? 0 : 1;
  });
  RollCall roll(job, 0, 3, 0, 10);
  EXPECT_EQ(ExitCode(third), 0);
  roll.set_activity("op 3 \"all-gather\"");
  roll.BeginWait(1);
  std::this_thread::sleep_for(std::chrono::seconds(1));
  roll.EndWait();  // a message came
  const auto start = std::chrono::steady_clock::now();
  roll.BeginWait(1);
  EXPECT_EQ(ExitCode(other), 0);
  const std::chrono::duration<double> passed = std::chrono::steady_clock::now() - start;
  EXPECT_GT(passed.count(), 18);
  EXPECT_EQ(roll.Trouble().value_or(""),
            "every rank waits for a message, and none has come for 20 s: rank 0 for rank 1 at op 3 "
            "\"all-gather\"; rank 1 for rank 0 at op 4 \"all-reduce\"");
  roll.EndWait();
}

TEST(RollCallTest, ARankThatIsToldToStopWhileItWaitsForOthersLeavesNothing) {
  const std::string job = JobName("told");
  try {
    const RollCall alone(job, 0, 2, 0, 30, [] { return true; });
    FAIL();
  } catch (const Error& error) {
    EXPECT_THAT(error.what(), HasSubstr("local rank 1 of 2 has not started when the others were "));
  }
  const std::string memory = "/dev/shm/rehearse-" + std::to_string(getuid()) + "-" + job;
  EXPECT_NE(access(memory.c_str(), F_OK), 0);
}

// A launcher may reuse the name of a run whose ranks it killed.
TEST(RollCallTest, WhatAKilledRunLeftDoesNotMatterToTheNext) {
  const std::string job = JobName("again");
  const std::string memory = "/dev/shm/rehearse-" + std::to_string(getuid()) + "-" + job;
  const pid_t victim = Fork([&] {
    const RollCall roll(job, 0, 3, 0, 30);  // of three: the name lives on
    return 0;
  });
  for (int i = 0; i < 500 && access(memory.c_str(), F_OK) != 0; ++i)
    std::this_thread::sleep_for(std::chrono::milliseconds(10));
  std::this_thread::sleep_for(std::chrono::milliseconds(100));
  kill(victim, SIGKILL);
  EXPECT_EQ(ExitCode(victim), -1);
  EXPECT_EQ(access(memory.c_str(), F_OK), 0);
  const pid_t other = Fork([&] {
    const RollCall roll(job, 1, 2, 1, 10);
    return 0;
  });
  RollCall roll(job, 0, 2, 0, 10);
  EXPECT_EQ(ExitCode(other), 0);
  EXPECT_FALSE(roll.Trouble().has_value());
  EXPECT_NE(access(memory.c_str(), F_OK), 0);
}

TEST(RollCallTest, ARankThatSignsOffIsNotMissed) {
  const std::string job = JobName("orderly");
  const pid_t other = Fork([&] {
    const RollCall roll(job, 1, 2, 1, 10);
    return 0;
  });
  RollCall roll(job, 0, 2, 0, 10);
  EXPECT_EQ(ExitCode(other), 0);
  EXPECT_FALSE(roll.Trouble().has_value());
}

TEST(RollCallTest, AReasonReachesTheOthers) {
  const std::string job = JobName("reason");
  const pid_t other = Fork([&] {
    RollCall roll(job, 1, 2, 1, 10);
    roll.GiveUp("rank 1: out of paper");
    roll.GiveUp("rank 1: out of ink");  // the first one counts
    return 0;
  });
  RollCall roll(job, 0, 2, 0, 10);
  EXPECT_EQ(ExitCode(other), 0);
  EXPECT_EQ(roll.Trouble().value_or(""), "rank 1: out of paper");
}

// A transport that only knows whether a rank is lost.
class Losing final : public Transport {
 public:
  const char* name() const override { return "losing"; }
  uint32_t rank() const override { return 1; }
  uint32_t size() const override { return 4; }
  uint32_t ranks_on_host() const override { return 4; }
  bool has_common_clock() const override { return true; }
  Handle Send(uint32_t, uint32_t, const void*, size_t) override { return nullptr; }
  Handle Receive(uint32_t, uint32_t, void*, size_t) override { return nullptr; }
  void Wait(Handle) override {}
  void Barrier() override {}
  void Check() override {
    if (is_lost.load()) throw RankLost("rank 3 is gone");
  }
  void Abort(const std::string&) noexcept override {}
  void set_activity(const char*) noexcept override {}

  std::atomic<bool> is_lost{true};
};

// A few seconds after a rank is lost, while the process is inside a call, and not before.
TEST(LostRankWatchTest, ACallThatDoesNotReturnEndsTheProcess) {
  const auto start = [](bool is_lost, bool is_inside) {
    return Fork([=] {
      Losing transport;
      transport.is_lost = is_lost;
      const LostRankWatch watch(transport, "MPI", [=] { return is_inside; });
      std::this_thread::sleep_for(std::chrono::seconds(5));
      return 7;
    });
  };
  const pid_t stuck = start(true, true);
  const pid_t outside = start(true, false);
  const pid_t waits = start(false, true);
  EXPECT_EQ(ExitCode(stuck), 1);
  EXPECT_EQ(ExitCode(outside), 7);
  EXPECT_EQ(ExitCode(waits), 7);
}

}  // namespace launcher_test
}  // namespace rehearse

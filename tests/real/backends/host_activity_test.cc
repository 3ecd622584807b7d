#include "real/backends/host_activity.h"

#include <filesystem>
#include <fstream>

#include <fmt/format.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <unistd.h>

#include "real/backends/host.h"

namespace rehearse {
namespace host_activity_test {

namespace fs = std::filesystem;
using ::testing::HasSubstr;

// A made-up /proc of two cores, at one moment.
class MadeUpHost {
 public:
  explicit MadeUpHost(const std::string& name)
      : root_(fs::temp_directory_path() / fmt::format("rehearse-{}-{}", name, getpid())) {
    fs::create_directories(root_ / "proc");
    Write("stat", "cpu  100 0 50 1000 0 0 0 7 0 0\ncpu0 1\ncpu1 2\nintr 5\n");
    Write("loadavg", "1.50 1.0 0.5 3/200 999\n");
    Write("cpuinfo", "model name : a\ncpu MHz\t\t: 2400.000\n");
  }
  ~MadeUpHost() { fs::remove_all(root_); }
  MadeUpHost(const MadeUpHost&) = delete;
  MadeUpHost& operator=(const MadeUpHost&) = delete;

  void Write(const std::string& name, const std::string& text) const {
    fs::create_directories((root_ / "proc" / name).parent_path());
    std::ofstream(root_ / "proc" / name) << text;
  }
  void Process(int number, const std::string& name, int user, int system, int begun = 10) const {
    Write(fmt::format("{}/stat", number),
          fmt::format("{} ({}) S 1 1 1 0 -1 0 0 0 0 0 {} {} 0 0 20 0 1 0 {} 0\n", number, name,
                      user, system, begun));
  }
  HostSnapshot Now() const { return SnapshotOfHost(root_.string()); }

 private:
  fs::path root_;
};

TEST(HostActivityTest, TicksAndProgramsAreThoseOfProc) {
  const MadeUpHost host("ticks");
  host.Process(17, "a (strange) name", 30, 4);
  const HostSnapshot now = host.Now();
  EXPECT_EQ(now.busy, 150);
  EXPECT_EQ(now.stolen, 7);
  EXPECT_EQ(now.cores, 2);
  EXPECT_EQ(now.load, 1.5);
  EXPECT_EQ(now.frequency, 2.4e9);
  EXPECT_EQ(now.processes.at(17).name, "a (strange) name");
  EXPECT_EQ(now.processes.at(17).ticks, 34);
  EXPECT_EQ(now.processes.at(17).begun, 10);
}

// In ten seconds 100 ticks each: 1500 of two cores, of which 900 are ours.
TEST(HostActivityTest, OthersAreNamedByWhatTheyTook) {
  const MadeUpHost host("others");
  const auto ticks = static_cast<int>(sysconf(_SC_CLK_TCK));
  host.Process(5, "rehearse", 0, 0);
  host.Process(6, "rehearse", 0, 0);  // another rank
  host.Process(7, "cc1plus", 50, 0);
  host.Process(8, "sleep", 0, 0);
  host.Process(9, "gone", 0, 0);
  HostSnapshot before = host.Now();
  host.Write("stat", fmt::format("cpu  {} 0 50 1000 0 0 0 {} 0 0\ncpu0 1\ncpu1 2\n",
                                 100 + 15 * ticks, 7 + 1 * ticks));
  host.Process(5, "rehearse", 5 * ticks, 0);
  host.Process(6, "rehearse", 3 * ticks, ticks);
  host.Process(7, "cc1plus", 50 + 4 * ticks, 0);
  host.Process(8, "sleep", 1, 0);
  host.Process(9, "ld", 2 * ticks, 0, /*begun=*/99);  // a new process of an old number
  HostSnapshot after = host.Now();
  after.at = before.at + 10'000'000'000;
  const HostActivity activity = ActivityBetween(before, after, 5);
  EXPECT_DOUBLE_EQ(activity.wall.value(), 10);
  EXPECT_DOUBLE_EQ(activity.others, 0.6);   // 15 s of cores, less 9
  EXPECT_DOUBLE_EQ(activity.stolen, 0.05);  // 1 s of 20
  ASSERT_EQ(activity.programs.size(), 2u);
  EXPECT_EQ(activity.programs[0].name, "cc1plus");
  EXPECT_DOUBLE_EQ(activity.programs[0].cores, 0.4);
  EXPECT_EQ(WhoWasInTheWay(activity),
            "cc1plus (process 7) took 0.4 cores, ld (process 9) 0.2; other machines took 5 % of "
            "the cores");
  EXPECT_EQ(ToJson(activity)["programs"][1]["process"], 9);
}

TEST(HostActivityTest, WhatIsNotThereIsNotTold) {
  const HostSnapshot none = SnapshotOfHost("/nowhere");
  EXPECT_EQ(none.frequency, 0);
  EXPECT_TRUE(none.processes.empty());
  const HostActivity activity = ActivityBetween(none, none, 1);
  EXPECT_EQ(WhoWasInTheWay(activity), "");
  EXPECT_FALSE(ToJson(activity).contains("frequency_hertz"));
}

HostShares Shares(double processor, double queued, double stolen = 0) {
  HostShares shares;
  shares.wall = Seconds(1);
  shares.processor = processor;
  shares.queued = queued;
  shares.stolen = stolen;
  shares.was_stolen = stolen > 0;
  return shares;
}

TEST(HostSharesTest, ARankLosesWhatItIsQueued) {
  const HostShares alone = Shares(0.5, 0.01);
  const HostShares queued = Shares(0.5, 0.2);
  EXPECT_TRUE(WereLeftAlone(std::vector{alone, alone}, 2));
  EXPECT_FALSE(WereLeftAlone(std::vector{alone, queued}, 2));
  EXPECT_DOUBLE_EQ(LostShare(std::vector{alone, queued}, 2), 0.2);
  EXPECT_FALSE(WereLeftAlone(std::vector{Shares(1, 0, 0.1)}, 2));
  EXPECT_DOUBLE_EQ(LostShare(std::vector{Shares(1, 0, 0.1)}, 2), 0.1);
}

// Four ranks on two cores wait for each other: half of their time, which nobody took.
TEST(HostSharesTest, RanksThatShareCoresLoseWhatTheseDoForNoneOfThem) {
  const std::vector<HostShares> ours(4, Shares(0.5, 0.5));
  EXPECT_TRUE(WereLeftAlone(ours, 2));
  EXPECT_DOUBLE_EQ(LostShare(ours, 2), 0);
  const std::vector<HostShares> disturbed(4, Shares(0.3, 0.7));
  EXPECT_FALSE(WereLeftAlone(disturbed, 2));
  EXPECT_DOUBLE_EQ(LostShare(disturbed, 2), 0.4);  // cores did 4 · 0.3 of 2
  const std::vector<HostShares> idle(4, Shares(0.1, 0.05));
  EXPECT_DOUBLE_EQ(LostShare(idle, 2), 0.1);  // at most as long as they were queued
}

}  // namespace host_activity_test
}  // namespace rehearse

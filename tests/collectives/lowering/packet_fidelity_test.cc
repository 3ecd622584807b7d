// Fidelity packet beside the fidelities without packets.
#include <algorithm>
#include <numeric>
#include <vector>

#include <gtest/gtest.h>

#include "collectives/lowering/trial.h"
#include "sim/base/error.h"
#include "tests/collectives/schedules.h"

namespace rehearse {
namespace packet_fidelity_test {

using testing::Preset;

Seconds TimeAt(Trial trial, Fidelity fidelity, Bytes bytes, const Cluster& cluster,
               PacketReport* report = nullptr) {
  trial.fidelity = fidelity;
  return TimesOverSeeds(trial, {bytes}, cluster, report).front().median;
}

Trial Of(CollectiveKind kind, uint32_t ranks) {
  Trial trial;
  trial.kind = kind;
  trial.groups = {std::vector<uint32_t>(ranks)};
  std::iota(trial.groups[0].begin(), trial.groups[0].end(), 0u);
  if (kind == CollectiveKind::kAllToAll) trial.algorithm = AlgorithmId::kDirect;
  return trial;
}

// One message of 256 MB and what each network does by itself.
TEST(PacketFidelityTest, AMessageAloneTakesWhatStepsTake) {
  for (const char* preset : {"roce-h100", "dgx-h100", "dgx-a100", "aws-p5", "gcp-a3-mega"}) {
    const auto cluster = Preset(preset, "nodes", 2);
    Trial trial = Of(CollectiveKind::kSendReceive, 2);
    trial.algorithm = AlgorithmId::kDirect;
    trial.groups = {{0, 8}};
    const double step = TimeAt(trial, Fidelity::kStep, Bytes(256e6), *cluster).value();
    PacketReport report;
    const double packet = TimeAt(trial, Fidelity::kPacket, Bytes(256e6), *cluster, &report).value();
    EXPECT_NEAR(packet, step, 0.01 * step) << preset;
    EXPECT_EQ(report.stats.dropped, 0u) << preset;
    EXPECT_GT(report.stats.packets, 0u) << preset;
  }
}

TEST(PacketFidelityTest, RingsAloneTakeWhatStepsTake) {
  for (const char* preset : {"roce-h100", "dgx-h100"}) {
    const auto cluster = Preset(preset, "nodes", 4);
    const Trial trial = Of(CollectiveKind::kAllReduce, 32);
    const double step = TimeAt(trial, Fidelity::kStep, Bytes(256e6), *cluster).value();
    const double packet = TimeAt(trial, Fidelity::kPacket, Bytes(256e6), *cluster).value();
    EXPECT_NEAR(packet, step, 0.02 * step) << preset;
  }
}

// Two senders into one NIC get half each: twice as long, at every control.
TEST(PacketFidelityTest, TwoThatShareANicTakeTwiceAsLong) {
  const auto cluster = Preset("switch", "devices", 4);
  for (const LinkControl control : {LinkControl::kPfc, LinkControl::kCredits, LinkControl::kDrop}) {
    Trial trial = Of(CollectiveKind::kAllToAll, 3);
    trial.network.link_control = control;
    if (control == LinkControl::kDrop) trial.network.rate_control = RateControl::kWindow;
    trial.network.recovery = Recovery::kSelective;
    const double step = TimeAt(trial, Fidelity::kStep, Bytes(96e6), *cluster).value();
    const double packet = TimeAt(trial, Fidelity::kPacket, Bytes(96e6), *cluster).value();
    EXPECT_NEAR(packet, step, 0.05 * step) << Name(control);
  }
}

TEST(PacketFidelityTest, WhatIsRememberedTakesAsLong) {
  const auto cluster = Preset("roce-h100", "nodes", 4);
  Trial trial = Of(CollectiveKind::kAllReduce, 32);
  trial.fidelity = Fidelity::kPacket;
  const std::vector<Bytes> sizes(3, Bytes(8e6));
  Router router(*cluster, trial.routing);
  PacketReport with;
  const std::vector<Seconds> remembered = TimesOf(trial, sizes, router, &with);
  trial.network.remembers = false;
  PacketReport without;
  EXPECT_EQ(TimesOf(trial, sizes, router, &without), remembered);
  EXPECT_EQ(without.skipped_hops, 0u);
  // The second and third of three at least.
  EXPECT_GE(3 * with.skipped_hops, 2 * with.stats.hops);
}

TEST(PacketFidelityTest, ACollectiveInsideAMachineSendsNoPackets) {
  const auto cluster = Preset("dgx-h100", "nodes", 2);
  const Trial trial = Of(CollectiveKind::kAllReduce, 8);
  PacketReport report;
  EXPECT_EQ(TimeAt(trial, Fidelity::kPacket, Bytes(64e6), *cluster, &report),
            TimeAt(trial, Fidelity::kFluid, Bytes(64e6), *cluster));
  EXPECT_EQ(report.stats.packets, 0u);
}

TEST(PacketFidelityTest, WhatTheNetworkCannotHaveIsRefused) {
  const auto cluster = Preset("dgx-h100", "nodes", 2);
  Trial trial = Of(CollectiveKind::kAllReduce, 16);
  trial.network.rate_control = RateControl::kDcqcn;
  EXPECT_THROW(TimeAt(trial, Fidelity::kPacket, Bytes(1e6), *cluster), Error);
  trial.network.rate_control = RateControl::kNone;
  trial.network.buffer = Bytes(1000);
  EXPECT_THROW(TimeAt(trial, Fidelity::kPacket, Bytes(1e6), *cluster), Error);
}

}  // namespace packet_fidelity_test
}  // namespace rehearse

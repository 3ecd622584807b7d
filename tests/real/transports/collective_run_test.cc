// Collectives on real memory over thread ranks, against what they should give, computed directly.
#include "real/transports/collective_run.h"

#include <atomic>
#include <numeric>
#include <vector>

#include <gtest/gtest.h>

#include "real/transports/transport_threads.h"
#include "sim/base/error.h"

namespace rehearse {
namespace collective_run_test {

constexpr uint32_t kTag = 3;

// What member m has in element i: small whole numbers, so sums are exact in any order.
double Input(uint32_t member, uint64_t i) {
  return static_cast<double>((member * 31 + i * 7) % 101);
}

std::vector<double> InputOf(uint32_t member, uint64_t n) {
  std::vector<double> values(n);
  for (uint64_t i = 0; i < n; ++i) values[i] = Input(member, i);
  return values;
}

// Runs one collective on p thread ranks; returns every member's output, which begins as -1.
std::vector<std::vector<double>> RunOn(const Collective& collective, uint32_t p, uint64_t from,
                                       uint64_t to) {
  std::vector<std::vector<double>> outputs(p, std::vector<double>(to, -1));
  Group everybody;
  everybody.ranks.resize(p);
  std::iota(everybody.ranks.begin(), everybody.ranks.end(), 0u);
  RunAsThreads(p, [&](Transport& transport) {
    Group group = everybody;
    group.member = transport.rank();
    const std::vector<double> input = InputOf(group.member, from);
    CollectiveCall<double> call;
    call.collective = &collective;
    call.group = &group;
    call.tag = kTag;
    call.from = input.data();
    call.from_elements = from;
    call.to = outputs[group.member].data();
    call.to_elements = to;
    RunCollective(transport, call);
  });
  return outputs;
}

double SumAt(uint32_t p, uint64_t i) {
  double sum = 0;
  for (uint32_t member = 0; member < p; ++member) sum += Input(member, i);
  return sum;
}

Collective Make(CollectiveKind kind, const std::string& algorithm) {
  Collective collective;
  collective.kind = kind;
  collective.algorithm = ParseAlgorithm(algorithm);
  return collective;
}

struct Case {
  std::string algorithm;
  uint32_t p;
};

TEST(CollectiveRunTest, AllReduceSums) {
  for (const std::string algorithm : {"ring", "tree", "halving-doubling", "doubling", "direct"}) {
    for (const uint32_t p : {1u, 2u, 3u, 4u, 5u, 8u}) {
      for (const uint64_t n :
           {1u, 3u, 64u, 1001u}) {  // fewer elements than ranks, and uneven parts
        const auto outputs = RunOn(Make(CollectiveKind::kAllReduce, algorithm), p, n, n);
        for (uint32_t member = 0; member < p; ++member) {
          for (uint64_t i = 0; i < n; ++i) {
            ASSERT_EQ(outputs[member][i], SumAt(p, i))
                << algorithm << " of " << n << " on " << p << ", member " << member;
          }
        }
      }
    }
  }
}

TEST(CollectiveRunTest, AllReduceTakesTheMaximum) {
  Collective collective = Make(CollectiveKind::kAllReduce, "auto");
  collective.reduction = Reduction::kMaximum;
  const auto outputs = RunOn(collective, 5, 17, 17);
  for (uint64_t i = 0; i < 17; ++i) {
    double largest = 0;
    for (uint32_t member = 0; member < 5; ++member) largest = std::max(largest, Input(member, i));
    for (const auto& output : outputs) EXPECT_EQ(output[i], largest);
  }
}

TEST(CollectiveRunTest, AllGatherPutsBlocksInMemberOrder) {
  for (const std::string algorithm : {"ring", "doubling", "halving-doubling", "direct", "pat"}) {
    for (const uint32_t p : {2u, 3u, 4u, 7u, 8u}) {
      const auto outputs = RunOn(Make(CollectiveKind::kAllGather, algorithm), p, 5, 5 * p);
      for (const auto& output : outputs) {
        for (uint64_t i = 0; i < output.size(); ++i) {
          ASSERT_EQ(output[i], Input(static_cast<uint32_t>(i / 5), i % 5)) << algorithm << " " << p;
        }
      }
    }
  }
}

TEST(CollectiveRunTest, ReduceScatterGivesEachMemberItsBlock) {
  for (const std::string algorithm : {"ring", "halving-doubling", "direct", "pat"}) {
    for (const uint32_t p : {2u, 3u, 4u, 7u, 8u}) {
      const auto outputs = RunOn(Make(CollectiveKind::kReduceScatter, algorithm), p, 5 * p, 5);
      for (uint32_t member = 0; member < p; ++member) {
        for (uint64_t i = 0; i < 5; ++i) {
          ASSERT_EQ(outputs[member][i], SumAt(p, member * 5 + i)) << algorithm << " " << p;
        }
      }
    }
  }
}

TEST(CollectiveRunTest, AllToAllTransposesBlocks) {
  for (const std::string algorithm : {"pairwise", "bruck", "direct", "auto"}) {
    for (const uint32_t p : {2u, 3u, 4u, 7u, 8u}) {
      const auto outputs = RunOn(Make(CollectiveKind::kAllToAll, algorithm), p, 3 * p, 3 * p);
      for (uint32_t member = 0; member < p; ++member) {
        for (uint64_t i = 0; i < 3 * p; ++i) {
          const auto from = static_cast<uint32_t>(i / 3);
          ASSERT_EQ(outputs[member][i], Input(from, member * 3 + i % 3)) << algorithm << " " << p;
        }
      }
    }
  }
}

TEST(CollectiveRunTest, BroadcastAndReduceKnowTheirRoot) {
  for (const std::string algorithm : {"ring", "tree", "chain"}) {
    for (const uint32_t p : {2u, 3u, 5u, 8u}) {
      for (const uint32_t root : {0u, p - 1}) {
        Collective broadcast = Make(CollectiveKind::kBroadcast, algorithm);
        broadcast.root = root;
        for (const auto& output : RunOn(broadcast, p, 100, 100)) {
          ASSERT_EQ(output, InputOf(root, 100)) << algorithm << " " << p;
        }
        Collective reduce = Make(CollectiveKind::kReduce, algorithm);
        reduce.root = root;
        const auto outputs = RunOn(reduce, p, 100, 100);
        for (uint64_t i = 0; i < 100; ++i) ASSERT_EQ(outputs[root][i], SumAt(p, i)) << algorithm;
        // Only the root's output is written.
        ASSERT_EQ(outputs[(root + 1) % p], std::vector<double>(100, -1));
      }
    }
  }
}

TEST(CollectiveRunTest, LongBroadcastsFollowEachOtherInPieces) {
  constexpr uint64_t kElements = 200'000;  // 1.6 MB: six pieces
  for (const auto& output :
       RunOn(Make(CollectiveKind::kBroadcast, "ring"), 4, kElements, kElements)) {
    ASSERT_EQ(output, InputOf(0, kElements));
  }
}

TEST(CollectiveRunTest, AShiftTakesFromTheMemberBefore) {
  for (const uint32_t p : {1u, 2u, 3u, 5u}) {
    const auto outputs = RunOn(Make(CollectiveKind::kSendReceive, "ring"), p, 7, 7);
    for (uint32_t member = 0; member < p; ++member)
      EXPECT_EQ(outputs[member], InputOf((member + p - 1) % p, 7));
  }
}

TEST(CollectiveRunTest, NobodyLeavesABarrierBeforeAllHaveCome) {
  for (const uint32_t p : {2u, 3u, 4u, 7u}) {
    const Collective barrier = Make(CollectiveKind::kBarrier, "ring");
    std::atomic<uint32_t> arrived = 0;
    RunAsThreads(p, [&](Transport& transport) {
      Group group;
      group.ranks.resize(p);
      std::iota(group.ranks.begin(), group.ranks.end(), 0u);
      group.member = transport.rank();
      CollectiveCall<double> call;
      call.collective = &barrier;
      call.group = &group;
      call.tag = kTag;
      ++arrived;
      RunCollective(transport, call);
      EXPECT_EQ(arrived.load(), p);
    });
  }
}

TEST(CollectiveRunTest, AlgorithmsOfLinksAreRefused) {
  try {
    RunOn(Make(CollectiveKind::kAllReduce, "nvls"), 4, 16, 16);
    FAIL();
  } catch (const Error& error) {
    EXPECT_NE(std::string(error.what()).find("nvls"), std::string::npos);
  }
}

}  // namespace collective_run_test
}  // namespace rehearse

#include "sim/schedule/buffer_check.h"

#include <algorithm>
#include <string>
#include <utility>
#include <vector>

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <rapidcheck/gtest.h>

#include "sim/base/error.h"

namespace rehearse {
namespace buffer_check_test {

using ::testing::HasSubstr;
using ::testing::StrEq;
using ::testing::ThrowsMessage;

constexpr BufferId kW(0);
constexpr BufferId kX(1);

// One role with three streams and two buffers, "w" and "x".
class BufferCheckTest : public testing::Test {
 protected:
  BufferCheckTest() {
    Role role;
    role.name = "gpu";
    role.streams = {{"compute", StreamKind::kCompute},
                    {"depth", StreamKind::kCommunication},
                    {"row", StreamKind::kCommunication}};
    role.buffers = {{"w", BufferKind::kBuffer, Bytes(1)}, {"x", BufferKind::kActivation, Bytes(1)}};
    schedule_.roles.push_back(std::move(role));
    schedule_.role_of_rank = {0};
  }

  OpId Add(const std::string& name, uint32_t stream, std::vector<BufferId> reads,
           std::vector<BufferId> writes, std::vector<OpId> after = {}) {
    std::vector<Op>& ops = schedule_.roles[0].ops;
    Op op;
    op.name = name;
    op.stream = StreamId(stream);
    op.reads = std::move(reads);
    op.writes = std::move(writes);
    op.after = std::move(after);
    ops.push_back(std::move(op));
    return OpId(static_cast<uint32_t>(ops.size() - 1));
  }

  Schedule schedule_;
};

TEST_F(BufferCheckTest, AReadThatDoesNotWaitForTheWriteIsARace) {
  Add("all-gather w", 1, {}, {kW});
  Add("qkv", 0, {kW}, {});
  EXPECT_THAT(
      [&] { CheckBuffers(schedule_); },
      ThrowsMessage<Error>(StrEq(
          "role \"gpu\": race on buffer \"w\": op 0 \"all-gather w\" (stream \"depth\") writes "
          "it and op 1 \"qkv\" (stream \"compute\") reads it, and neither is ordered before "
          "the other")));
}

TEST_F(BufferCheckTest, AReadAfterTheWriteIsFine) {
  const OpId gather = Add("all-gather w", 1, {}, {kW});
  Add("qkv", 0, {kW}, {}, {gather});
  EXPECT_NO_THROW(CheckBuffers(schedule_));
}

TEST_F(BufferCheckTest, AWriteThatDoesNotWaitForTheReadIsARace) {
  const OpId gather = Add("all-gather w", 1, {}, {kW});
  Add("qkv", 0, {kW}, {}, {gather});
  Add("all-gather next w", 1, {}, {kW});  // overwrites w while qkv may still read it
  EXPECT_THAT(
      [&] { CheckBuffers(schedule_); },
      ThrowsMessage<Error>(HasSubstr("op 1 \"qkv\" (stream \"compute\") reads it and op 2")));
}

TEST_F(BufferCheckTest, TwoWritesOnTwoStreamsAreARace) {
  Add("a", 0, {}, {kX});
  Add("b", 1, {}, {kX});
  EXPECT_THROW(CheckBuffers(schedule_), Error);
}

TEST_F(BufferCheckTest, TwoReadsAreFine) {
  Add("a", 0, {kX}, {});
  Add("b", 1, {kX}, {});
  EXPECT_NO_THROW(CheckBuffers(schedule_));
}

TEST_F(BufferCheckTest, OneStreamIsInOrder) {
  Add("a", 0, {}, {kX});
  Add("b", 0, {kX}, {kX});
  Add("c", 0, {kX}, {});
  EXPECT_NO_THROW(CheckBuffers(schedule_));
}

TEST_F(BufferCheckTest, OrderIsTransitive) {
  // write (compute), then its stream's next, then a third stream, then the reader.
  Add("write", 0, {}, {kX});
  const OpId next = Add("next", 0, {}, {});
  const OpId other = Add("other", 2, {}, {}, {next});
  Add("read", 1, {kX}, {}, {other});
  EXPECT_NO_THROW(CheckBuffers(schedule_));
}

TEST_F(BufferCheckTest, AnEarlierOpOfTheStreamDoesNotCarryTheOrder) {
  // The reader waits for what comes before the write, not for the write.
  const OpId before = Add("before", 0, {}, {});
  Add("write", 0, {}, {kX});
  Add("read", 1, {kX}, {}, {before});
  EXPECT_THROW(CheckBuffers(schedule_), Error);
}

TEST_F(BufferCheckTest, DifferentBuffersDoNotMeet) {
  Add("a", 0, {}, {kW});
  Add("b", 1, {}, {kX});
  EXPECT_NO_THROW(CheckBuffers(schedule_));
}

TEST_F(BufferCheckTest, ARoleOfFiftyThousandOpsCostsLittle) {
  // A layer: gather into w, compute with w, reduce x. 50,001 ops; pairs of ops would be 1.25e9.
  OpId free_again = Add("start", 0, {}, {kW, kX});
  for (int layer = 0; layer < 12'500; ++layer) {
    const OpId gather = Add("gather", 1, {}, {kW}, {free_again});
    const OpId gemm = Add("gemm", 0, {kW}, {kX}, {gather});
    const OpId reduce = Add("reduce", 2, {kX}, {kX}, {gemm});
    free_again = Add("norm", 0, {kX}, {kX}, {reduce});
  }
  EXPECT_NO_THROW(CheckBuffers(schedule_));
  Add("late", 1, {kX}, {});
  EXPECT_THROW(CheckBuffers(schedule_), Error);
}

// The rule itself: the transitive closure of stream order and `after`, and every pair of ops.
bool HasRaceByTheRule(const Role& role) {
  const size_t n = role.ops.size();
  std::vector<std::vector<bool>> before(n, std::vector<bool>(n));
  for (size_t b = 0; b < n; ++b) {
    for (const OpId a : role.ops[b].after) before[a.index()][b] = true;
    for (size_t a = 0; a < b; ++a) {
      if (role.ops[a].stream == role.ops[b].stream) before[a][b] = true;
    }
  }
  for (size_t k = 0; k < n; ++k) {
    for (size_t a = 0; a < n; ++a) {
      for (size_t b = 0; b < n; ++b) {
        if (before[a][k] && before[k][b]) before[a][b] = true;
      }
    }
  }
  const auto touches = [](const std::vector<BufferId>& list, BufferId buffer) {
    return std::find(list.begin(), list.end(), buffer) != list.end();
  };
  for (size_t a = 0; a < n; ++a) {
    for (size_t b = a + 1; b < n; ++b) {
      if (before[a][b]) continue;
      for (const BufferId buffer : {kW, kX}) {
        const bool a_writes = touches(role.ops[a].writes, buffer);
        const bool b_writes = touches(role.ops[b].writes, buffer);
        const bool a_touches = a_writes || touches(role.ops[a].reads, buffer);
        const bool b_touches = b_writes || touches(role.ops[b].reads, buffer);
        if (a_touches && b_touches && (a_writes || b_writes)) return true;
      }
    }
  }
  return false;
}

// Below `count`, evenly; RapidCheck's own ranges begin small.
uint32_t Below(uint32_t count) {
  return *rc::gen::resize(rc::kNominalSize, rc::gen::inRange(0u, count));
}

RC_GTEST_FIXTURE_PROP(BufferCheckTest, ARaceIsFoundExactlyWhenThereIsOne, ()) {
  schedule_.roles[0].ops.clear();
  const uint32_t count = 2 + Below(10);
  for (uint32_t i = 0; i < count; ++i) {
    std::vector<BufferId> reads;
    std::vector<BufferId> writes;
    for (const BufferId buffer : {kW, kX}) {
      const uint32_t use = Below(8);
      if (use == 0 || use == 1) reads.push_back(buffer);
      if (use == 1 || use == 2) writes.push_back(buffer);
    }
    std::vector<OpId> after;
    for (uint32_t edges = Below(4); i > 0 && edges > 0; --edges) after.emplace_back(Below(i));
    Add("op", Below(3), reads, writes, after);
  }
  bool found = false;
  try {
    CheckBuffers(schedule_);
  } catch (const Error&) {
    found = true;
  }
  RC_CLASSIFY(found);
  RC_ASSERT(found == HasRaceByTheRule(schedule_.roles[0]));
}

}  // namespace buffer_check_test
}  // namespace rehearse

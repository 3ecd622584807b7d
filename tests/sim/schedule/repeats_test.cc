#include "sim/schedule/repeats.h"

#include <algorithm>
#include <string>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "sim/base/error.h"
#include "sim/schedule/buffer_check.h"
#include "sim/schedule/memory.h"
#include "sim/schedule/schedule_check.h"
#include "tests/support/random_program.h"

namespace rehearse {
namespace repeats_test {

using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::IsEmpty;

Op OpOn(uint32_t stream, std::vector<uint32_t> after, int32_t micro_batch) {
  Op op;
  op.name = "op";
  op.stream = StreamId(stream);
  op.tag.micro_batch = micro_batch;
  for (const uint32_t earlier : after) op.after.emplace_back(earlier);
  return op;
}

// Micro-batches of two ops on two streams: the second op waits for the first, the first for the
// second of the micro-batch before. Three are written out, the second of them stands for `times`
// more; one op ends the step.
//
//   kept       0 1 | 2 3 (+ times copies) | 4 5 | 6
//   positions  0 1 | 2 3 | 4 5 | ...      | ... | last
Role Chain(uint32_t times) {
  Role role;
  role.name = "rank";
  role.streams = {{"a", StreamKind::kCompute}, {"b", StreamKind::kCompute}};
  role.ops = {OpOn(0, {}, 0),  OpOn(1, {0}, 0), OpOn(0, {1}, 1), OpOn(1, {2}, 1),
              OpOn(0, {3}, 2), OpOn(1, {4}, 2), OpOn(0, {5}, 0)};
  role.repeats = {{.begin = 2, .end = 4, .times = times}};
  for (size_t i = 0; i + 1 < role.ops.size(); ++i) {
    const BufferId buffer(static_cast<uint32_t>(i));
    role.buffers.push_back({"b" + std::to_string(i), BufferKind::kActivation, Bytes(1)});
    role.ops[i].writes = {buffer};
    if (i > 0) role.ops[i].reads = {BufferId(static_cast<uint32_t>(i - 1))};
  }
  role.repeats[0].first_buffer = 2;
  role.repeats[0].end_buffer = 4;
  return role;
}

Schedule OnOneRank(Role role) {
  Schedule schedule;
  schedule.roles.push_back(std::move(role));
  schedule.role_of_rank = {0};
  return schedule;
}

TEST(RepeatsTest, PositionsCountCopies) {
  const Role role = Chain(3);
  EXPECT_EQ(role.OpCount(), 7u + 3 * 2);
  std::vector<uint32_t> places;
  std::vector<int32_t> micro_batches;
  for (uint32_t position = 0; position < role.OpCount(); ++position) {
    places.push_back(role.PlaceAt(position));
    micro_batches.push_back(role.TagAt(position).micro_batch);
  }
  EXPECT_THAT(places, ElementsAre(0, 1, 2, 3, 2, 3, 2, 3, 2, 3, 4, 5, 6));
  // What comes after the copies has the numbers that the planner gave it.
  EXPECT_THAT(micro_batches, ElementsAre(0, 0, 1, 1, 2, 2, 3, 3, 4, 4, 2, 2, 0));
}

TEST(RepeatsTest, ACopyWaitsForTheOneBeforeAndWhatFollowsForTheLast) {
  const Role role = Chain(3);
  EXPECT_THAT(role.AfterAt(0), IsEmpty());
  for (uint32_t position = 1; position < role.OpCount(); ++position)
    EXPECT_THAT(role.AfterAt(position), ElementsAre(position - 1)) << position;
}

TEST(RepeatsTest, ExpandedIsTheChainWrittenOut) {
  const Role role = Expanded(Chain(3));
  ASSERT_EQ(role.ops.size(), 13u);
  EXPECT_TRUE(role.repeats.empty());
  EXPECT_EQ(role.buffers.size(), 6u + 3 * 2);
  for (uint32_t i = 1; i < role.ops.size(); ++i) {
    EXPECT_THAT(role.ops[i].after, ElementsAre(OpId(i - 1)));
    // The last op touches nothing.
    if (i + 1 == role.ops.size()) break;
    EXPECT_THAT(role.ops[i].writes, ElementsAre(BufferId(i)));
    EXPECT_THAT(role.ops[i].reads, ElementsAre(BufferId(i - 1)));
  }
}

// Micro-batch m has an op on each stream; the second one waits for the first one of micro-batch
// m - 2. Six are written out, the fourth of them stands for `times` more. Two ops at the end wait
// for the first ones of the last two micro-batches but one and the last one.
Role TwoUnderWay(uint32_t times) {
  Role role;
  role.name = "rank";
  role.streams = {{"a", StreamKind::kCompute}, {"b", StreamKind::kCompute}};
  for (uint32_t m = 0; m < 4; ++m) {
    role.ops.push_back(OpOn(0, {}, static_cast<int32_t>(m)));
    role.ops.push_back(OpOn(1, m < 2 ? std::vector<uint32_t>() : std::vector{2 * (m - 2)}, 0));
  }
  role.ops.push_back(OpOn(1, {4}, 0));
  role.ops.push_back(OpOn(1, {6}, 0));
  for (uint32_t i = 0; i < 8; ++i) {
    role.buffers.push_back({"b" + std::to_string(i), BufferKind::kActivation, Bytes(1)});
    role.ops[i].writes = {BufferId(i)};
  }
  for (uint32_t i : {5u, 7u, 8u, 9u}) {
    role.ops[i].reads = {BufferId(role.ops[i].after.front().index())};
  }
  role.repeats = {{.begin = 6,
                   .end = 8,
                   .times = times,
                   .first_buffer = 6,
                   .end_buffer = 8,
                   .micro_batches = 1,
                   .back = 2}};
  return role;
}

TEST(RepeatsTest, ACopyMayWaitForTheLastButOneAndWhatFollowsToo) {
  const Role role = TwoUnderWay(3);
  const Role expanded = Expanded(role);
  ASSERT_EQ(role.OpCount(), 16u);
  for (uint32_t m = 2; m < 7; ++m) {
    EXPECT_THAT(role.AfterAt(2 * m + 1), ElementsAre(2 * (m - 2)));
    EXPECT_THAT(expanded.ops[2 * m + 1].after, ElementsAre(OpId(2 * (m - 2))));
    EXPECT_THAT(expanded.ops[2 * m + 1].reads, ElementsAre(BufferId(2 * (m - 2))));
  }
  EXPECT_THAT(role.AfterAt(14), ElementsAre(10));
  EXPECT_THAT(role.AfterAt(15), ElementsAre(12));
  EXPECT_THAT(expanded.ops[14].reads, ElementsAre(BufferId(10)));
  EXPECT_THAT(expanded.ops[15].reads, ElementsAre(BufferId(12)));
  EXPECT_NO_THROW(CheckSchedule(OnOneRank(TwoUnderWay(1000))));
  EXPECT_NO_THROW(CheckBuffers(OnOneRank(TwoUnderWay(1000))));
  EXPECT_EQ(MemoryOf(TwoUnderWay(1000)).activations, MemoryOf(Expanded(role)).activations);
}

TEST(RepeatsTest, ThePeakOfAFewCopiesIsThatOfAll) {
  // Each buffer lives from its own op to the next: two at a time, whatever the number of copies.
  for (const uint32_t times : {1u, 7u, 1000u}) {
    EXPECT_EQ(MemoryOf(Chain(times)).activations, Bytes(2));
    EXPECT_EQ(MemoryOf(Expanded(Chain(times))).activations, Bytes(2));
  }
}

TEST(RepeatsTest, ChecksSeeCopies) {
  EXPECT_NO_THROW(CheckSchedule(OnOneRank(Chain(1000))));
  EXPECT_NO_THROW(CheckBuffers(OnOneRank(Chain(1000))));
  // Without waiting for the copy before it, an op reads what the other stream may not have written.
  Role role = Chain(1000);
  role.ops[2].after.clear();
  EXPECT_THROW(CheckBuffers(OnOneRank(role)), Error);
}

TEST(RepeatsTest, MistakesAreNamed) {
  const auto message = [](const Role& role) -> std::string {
    try {
      CheckSchedule(OnOneRank(role));
    } catch (const Error& error) {
      return error.what();
    }
    return "";
  };
  Role role = Chain(3);
  role.repeats[0].end = 9;
  EXPECT_THAT(message(role), HasSubstr("repeat 0 is of ops 2 to 9, expected some of 0 to 7"));
  role = Chain(3);
  role.repeats[0].end_buffer = 9;
  EXPECT_THAT(message(role), HasSubstr("repeat 0 is of buffers 2 to 9, expected some of 0 to 6"));
  role = Chain(3);
  role.repeats.push_back(role.repeats[0]);
  EXPECT_THAT(message(role), HasSubstr("repeat 1 is of ops 2 to 4, expected some of 4 to 7"));
  role = Chain(3);
  role.repeats[0].begin = 3;
  role.ops[3].after = {OpId(1)};  // two ops back, but the body is one op long
  EXPECT_THAT(message(role), HasSubstr("which is after op 1: further back than the 1 ops"));
  role = Chain(3);
  role.repeats[0].back = 3;
  EXPECT_THAT(message(role), HasSubstr("repeat 0 refers to 3 pieces before it"));
}

// All small ones, in a role of three ops and three buffers.
TEST(RepeatsTest, OpsAndBuffersOfARepeatLieInTheRole) {
  constexpr uint32_t kMost = 3;
  Role role;
  role.streams = {{"a", StreamKind::kCompute}};
  role.ops.resize(kMost);
  role.buffers.resize(kMost);
  const auto is_right = [&](const std::vector<Repeat>& repeats) {
    role.repeats = repeats;
    try {
      CheckRepeats(role);
    } catch (const Error&) {
      return false;
    }
    return true;
  };
  Repeat repeat{.begin = 0, .end = 0, .times = 2};
  for (repeat.begin = 0; repeat.begin <= kMost + 1; ++repeat.begin) {
    for (repeat.end = 0; repeat.end <= kMost + 1; ++repeat.end) {
      const bool has_ops = repeat.begin < repeat.end && repeat.end <= kMost;
      for (repeat.first_buffer = 0; repeat.first_buffer <= kMost + 1; ++repeat.first_buffer) {
        for (repeat.end_buffer = 0; repeat.end_buffer <= kMost + 1; ++repeat.end_buffer) {
          const bool has_buffers =
              repeat.first_buffer <= repeat.end_buffer && repeat.end_buffer <= kMost;
          for (repeat.back = 0; repeat.back <= 3; ++repeat.back) {
            const uint32_t pieces = repeat.back - 1;
            const bool has_pieces = repeat.back > 0 && has_ops && has_buffers &&
                                    pieces * repeat.size() <= repeat.begin &&
                                    pieces * repeat.buffers() <= repeat.first_buffer;
            EXPECT_EQ(is_right({repeat}), has_pieces)
                << repeat.begin << " " << repeat.end << " " << repeat.first_buffer << " "
                << repeat.end_buffer << " " << repeat.back;
          }
        }
      }
    }
  }
  // Of two, the second begins where the first ends, or later.
  const Repeat first{.begin = 0, .end = 1, .times = 2, .first_buffer = 0, .end_buffer = 1};
  for (const uint32_t begin : {0u, 1u, 2u}) {
    for (const uint32_t buffer : {0u, 1u, 2u}) {
      const Repeat second{.begin = begin,
                          .end = begin + 1,
                          .times = 2,
                          .first_buffer = buffer,
                          .end_buffer = buffer + 1};
      EXPECT_EQ(is_right({first, second}), begin >= 1 && buffer >= 1) << begin << " " << buffer;
    }
  }
}

TEST(RepeatsTest, ExpandedKeepsWhatARoleHas) {
  Role role = Chain(3);
  role.name = "chain";
  role.regions = {Region{{8, {}}, {4, {}}, {}, {}}};
  role.buffers[2].region = 0;
  role.buffers.push_back({"part", BufferKind::kActivation, Bytes(0)});
  role.buffers.back().view = View{};
  role.buffers.back().view->of = BufferId(5);
  const Role expanded = Expanded(role);
  EXPECT_EQ(expanded.name, "chain");
  ASSERT_EQ(expanded.streams.size(), 2u);
  EXPECT_EQ(expanded.streams[1].name, "b");
  ASSERT_EQ(expanded.regions.size(), 1u);
  EXPECT_EQ(expanded.regions[0].rows.size, 8u);
  EXPECT_EQ(expanded.buffers[2].region, 0u);
  // The copies' buffers come before those of what follows.
  EXPECT_EQ(expanded.buffers.back().view->of, BufferId(5 + 3 * 2));
  // Micro-batches count on.
  for (uint32_t copy = 0; copy <= 3; ++copy)
    EXPECT_EQ(expanded.ops[2 + 2 * copy].tag.micro_batch, 1 + static_cast<int32_t>(copy));
}

// Two ranks that send to and receive from each other in a body; the other's body may be
// written as two.
Schedule Exchange(uint32_t times, bool other_is_split) {
  Schedule schedule;
  schedule.communicators.push_back(Communicator::Explicit("pair", {{0, 1}}));
  for (uint32_t rank = 0; rank < 2; ++rank) {
    Role role;
    role.name = "role " + std::to_string(rank);
    role.streams = {{"pair", StreamKind::kCommunication}};
    const uint32_t bodies = rank == 1 && other_is_split ? 2 : 1;
    for (uint32_t body = 0; body < bodies; ++body) {
      Op op = OpOn(0, {}, 0);
      if (rank == 0) op.work = Send{CommunicatorId(0), 1, Bytes(8)};
      if (rank == 1) op.work = Receive{CommunicatorId(0), 0, Bytes(8)};
      role.ops.push_back(op);
    }
    role.repeats = {{.begin = 0, .end = bodies, .times = (times + 1) / bodies - 1}};
    schedule.roles.push_back(role);
  }
  schedule.role_of_rank = {0, 1};
  return schedule;
}

TEST(RepeatsTest, RolesThatRepeatTogetherAreCheckedByAFewCopies) {
  EXPECT_NO_THROW(CheckSchedule(Exchange(1'000'000, false)));
  Schedule schedule = Exchange(1'000'000, false);
  ++schedule.roles[0].repeats[0].times;  // one send that nobody receives
  EXPECT_THROW(CheckSchedule(schedule), Error);
}

TEST(RepeatsTest, RolesThatRepeatDifferentPiecesAreCheckedAsAWhole) {
  EXPECT_NO_THROW(CheckSchedule(Exchange(199, true)));
  Schedule schedule = Exchange(199, true);
  ++schedule.roles[1].repeats[0].times;
  EXPECT_THROW(CheckSchedule(schedule), Error);
}

// Random bodies: AfterAt says what the expanded role has, even for several repeats in a row.
TEST(RepeatsTest, PositionsOfRandomRolesAreThoseOfTheExpandedOnes) {
  for (uint64_t seed = 0; seed < 200; ++seed) {
    Random random(seed);
    Role role;
    role.streams = {{"a", StreamKind::kCompute}, {"b", StreamKind::kCompute}};
    const uint32_t repeats = random.Below(3);
    const auto add = [&](uint32_t count, uint32_t furthest) {
      for (uint32_t i = 0; i < count; ++i) {
        const auto own = static_cast<uint32_t>(role.ops.size());
        std::vector<uint32_t> after;
        for (uint32_t n = random.Below(3); n > 0 && own > furthest; --n)
          after.push_back(furthest + random.Below(own - furthest));
        role.ops.push_back(OpOn(random.Below(2), after, 0));
      }
    };
    add(1 + random.Below(4), 0);
    for (uint32_t i = 0; i < repeats; ++i) {
      const auto begin = static_cast<uint32_t>(role.ops.size());
      const uint32_t size = 1 + random.Below(5);
      const uint32_t back = 1 + random.Below(begin / size + 1);
      add(size, begin - std::min(begin, back * size));
      role.repeats.push_back({.begin = begin, .end = begin + size, .times = 1 + random.Below(4)});
      role.repeats.back().back = back;
      add(random.Below(4), 0);
    }
    CheckRepeats(role);
    const Role expanded = Expanded(role);
    ASSERT_EQ(expanded.ops.size(), role.OpCount());
    for (uint32_t position = 0; position < role.OpCount(); ++position) {
      EXPECT_EQ(expanded.ops[position].stream, role.At(position).stream);
      std::vector<uint32_t> after;
      for (const OpId before : expanded.ops[position].after) after.push_back(before.index());
      EXPECT_EQ(after, role.AfterAt(position));
      for (const uint32_t before : after) EXPECT_LT(before, position);
    }
  }
}

// Of 7 kept ops and 100 copies of 2, 207 in all, some 47 are to be left: (47 - 7)/200 of the copies
// are 20. The body (copy 0) and ten more stay at the beginning, ten at the end.
TEST(RepeatsTest, CopiesAreLeftOutOfTheMiddle) {
  const std::vector<MiddleCopies> middle = MiddleCopiesOf(Chain(100), 47);
  ASSERT_EQ(middle.size(), 1u);
  EXPECT_EQ(middle[0].begin, 2u + 2 * 11);
  EXPECT_EQ(middle[0].copies, 80u);
  EXPECT_EQ(middle[0].end, 2u + 2 * 91);
  EXPECT_EQ(middle[0].micro_batches, 80);
  const Role role = Chain(100);
  EXPECT_EQ(role.TagAt(middle[0].begin).micro_batch, 12);  // the body's are 1, a copy's one more
  EXPECT_EQ(role.TagAt(middle[0].end - 1).micro_batch, 91);
}

// A second piece of two ops, of which there are 101 in a row: it begins after the op before, the
// 101 of the first piece and one op between.
TEST(RepeatsTest, WhatIsLeftOutOfALaterPieceLiesBehindAllOfTheEarlierOne) {
  Role role;
  role.streams = {{"a", StreamKind::kCompute}};
  for (int i = 0; i < 6; ++i) role.ops.push_back(OpOn(0, {}, 0));
  role.repeats = {{.begin = 1, .end = 2, .times = 100}, {.begin = 3, .end = 5, .times = 100}};
  const std::vector<MiddleCopies> middle = MiddleCopiesOf(role, 30);
  ASSERT_EQ(middle.size(), 2u);
  EXPECT_GT(middle[0].begin, 1u);
  EXPECT_LT(middle[0].end, 1u + 101);
  const uint32_t second = 1 + 101 + 1;
  EXPECT_GT(middle[1].begin, second);
  EXPECT_LT(middle[1].end, second + 2 * 101);
  EXPECT_EQ((middle[1].begin - second) % 2, 0u);  // whole copies
  // As many stay before as after, or one more.
  const uint32_t before = (middle[1].begin - second) / 2;
  const uint32_t after = (second + 2 * 101 - middle[1].end) / 2;
  EXPECT_GE(before, after);
  EXPECT_LE(before, after + 2);
}

// Of 5 copies 2 stay; where there is one, it stays.
TEST(RepeatsTest, FewerCopiesAreAtMostThatMany) {
  EXPECT_EQ(FewerCopies(Chain(5), 2)[0].times, 2u);
  EXPECT_EQ(FewerCopies(Chain(1), 2)[0].times, 1u);
}

TEST(RepeatsTest, FourCopiesStayHoweverFewOpsAreWanted) {
  const std::vector<MiddleCopies> middle = MiddleCopiesOf(Chain(100), 0);
  ASSERT_EQ(middle.size(), 1u);
  EXPECT_EQ(middle[0].copies, 96u);
  EXPECT_THAT(MiddleCopiesOf(Chain(4), 0), IsEmpty());
  EXPECT_THAT(MiddleCopiesOf(Chain(100), 207), IsEmpty());
}

// 2^29 copies of 2 ops are within the limit; twice as many are not, nor are two such repeats.
TEST(RepeatsTest, RepeatsTogetherMakeAtMostAsManyCopiesAsCanBeNumbered) {
  Role role = Chain(1u << 29);
  EXPECT_NO_THROW(CheckRepeats(role));
  role.repeats.push_back({.begin = 4, .end = 6, .times = 1, .first_buffer = 4, .end_buffer = 6});
  try {
    CheckRepeats(role);
    FAIL();
  } catch (const Error& error) {
    EXPECT_THAT(error.what(), HasSubstr("repeat 1 makes 1073741826 ops of copies"));
  }
}

}  // namespace repeats_test
}  // namespace rehearse

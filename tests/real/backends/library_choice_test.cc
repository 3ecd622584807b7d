#include "real/backends/library_choice.h"

#include <cstring>

#include <gtest/gtest.h>

#include "tests/support/gpu_schedules.h"

namespace rehearse {
namespace library_choice_test {

LibraryChoice ChoiceOf(const char* algorithm, const char* protocol, uint32_t op = 0) {
  LibraryChoice choice;
  choice.op = op;
  choice.channels = 4;
  std::strncpy(choice.algorithm.data(), algorithm, choice.algorithm.size() - 1);
  std::strncpy(choice.protocol.data(), protocol, choice.protocol.size() - 1);
  return choice;
}

TEST(LibraryChoiceTest, NcclsWordsAreOurs) {
  EXPECT_EQ(AlgorithmOf(ChoiceOf("RING", "LL")), "ring");
  EXPECT_EQ(AlgorithmOf(ChoiceOf("NVLS_TREE", "SIMPLE")), "nvls-tree");
  EXPECT_EQ(AlgorithmOf(ChoiceOf("PAT", "SIMPLE")), "pat");
  EXPECT_EQ(ProtocolOf(ChoiceOf("RING", "LL128")), "ll128");
  EXPECT_EQ(ProtocolOf(ChoiceOf("RING", "SIMPLE")), "simple");
  EXPECT_EQ(AlgorithmOf(ChoiceOf("NEWEST_THING", "SIMPLE")), "newestthing");
}

TEST(LibraryChoiceTest, WhatRanksWereToldIsListedOnce) {
  const Schedule schedule = EveryCollective(2);
  uint32_t sum = 0;
  while (schedule.roles[0].ops[sum].name != "sum") ++sum;
  const auto both =
      ChosenCollectives(schedule, {{ChoiceOf("TREE", "LL", sum)}, {ChoiceOf("TREE", "LL", sum)}});
  ASSERT_EQ(both.size(), 1u);
  EXPECT_EQ(both[0].kind, "all-reduce");
  EXPECT_EQ(both[0].algorithm, "tree");
  EXPECT_EQ(both[0].channels, 4u);
  // Groups on other links may differ.
  EXPECT_EQ(
      ChosenCollectives(schedule, {{ChoiceOf("TREE", "LL", sum)}, {ChoiceOf("RING", "LL", sum)}})
          .size(),
      2u);
}

}  // namespace library_choice_test
}  // namespace rehearse

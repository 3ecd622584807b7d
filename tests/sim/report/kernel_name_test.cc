#include "sim/report/kernel_name.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "sim/report/comparison.h"
#include "tests/sim/sample_step.h"

namespace rehearse {
namespace kernel_name_test {

using ::testing::HasSubstr;
using ::testing::Not;

TEST(KernelNameTest, NamesInCxxAreShort) {
  EXPECT_EQ(ShortKernelName("void cutlass::Kernel<float, 8>(int*)"), "cutlass::Kernel");
  EXPECT_EQ(ShortKernelName("void (anonymous namespace)::a<b::c<d>>::e<1>(f)"), "a::e");
  EXPECT_EQ(ShortKernelName("void at::native::add(int, (anonymous namespace)::B)"),
            "at::native::add");
}

TEST(KernelNameTest, OthersStayAsTheyAre) {
  for (const char* name : {"all-reduce", "ampere_bf16_gemm_128x64", "a<b", "", "(", "<", "a > b",
                           "send (to 3)", "loss <scaled>", "void "}) {
    const std::string expected = name;
    EXPECT_EQ(ShortKernelName(name), expected);
  }
}

TEST(KernelNameTest, WhatIsToldApartByNameStaysApart) {
  ShortNames names;
  EXPECT_EQ(names.Of("void k<float>(int)"), "k");
  EXPECT_EQ(names.Of("void k<double>(int)"), "k #2");
  EXPECT_EQ(names.Of("void k<float>(int)"), "k");
  EXPECT_EQ(names.Of("k"), "k #3");
}

// Text has the short name, what programs read the whole one.
TEST(KernelNameTest, AComparisonShortensItInTextOnly) {
  TwoRankStep step;
  constexpr const char* kLong = "void k::Kernel<cutlass::gemm::Threadblock<float, 8>>(P)";
  for (Role& role : step.schedule.roles)
    for (Op& op : role.ops)
      if (op.name == "gemm") op.name = kLong;
  const TimelineRecord record = MakeRecord("step", step.schedule, step.timeline);
  const Comparison comparison = Compare(record, record);
  const std::string text = ToText(comparison, false);
  EXPECT_THAT(text, HasSubstr("k::Kernel layer 0 forward"));
  EXPECT_THAT(text, Not(HasSubstr("Threadblock")));
  bool found = false;
  for (const ComparedOp& op : comparison.ops) found = found || op.op.name == kLong;
  EXPECT_TRUE(found);
}

}  // namespace kernel_name_test
}  // namespace rehearse

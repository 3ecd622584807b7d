#include "sim/base/growing_array.h"

#include <cstdint>
#include <utility>
#include <vector>

#include <gtest/gtest.h>

namespace rehearse {
namespace growing_array_test {

// 64 MiB: it outgrows what comes from the heap, and its pages move several times.
TEST(GrowingArrayTest, KeepsWhatItHasWhileItGrows) {
  constexpr uint64_t kMany = uint64_t{8} << 20;
  GrowingArray<uint64_t> array;
  for (uint64_t i = 0; i < kMany; ++i) array.Add(i * i);
  ASSERT_EQ(array.size(), kMany);
  array.Add(std::vector<uint64_t>(1000, 7));
  array.Add(array[5]);
  GrowingArray<uint64_t> moved = std::move(array);
  uint64_t wrong = 0;
  for (uint64_t i = 0; i < kMany; ++i) wrong += moved[i] != i * i ? 1 : 0;
  EXPECT_EQ(wrong, 0u);
  EXPECT_EQ(moved[kMany + 999], 7u);
  EXPECT_EQ(moved[kMany + 1000], 25u);
}

TEST(GrowingArrayTest, GrowsByManyAtOnce) {
  GrowingArray<uint32_t> array;
  array.Add(std::vector<uint32_t>(size_t{10} << 20, 3));
  array.Add(std::vector<uint32_t>(size_t{20} << 20, 4));
  EXPECT_EQ(array.size(), size_t{30} << 20);
  EXPECT_EQ(array[(size_t{10} << 20) - 1], 3u);
  EXPECT_EQ(array[size_t{10} << 20], 4u);
}

}  // namespace growing_array_test
}  // namespace rehearse

#include "sim/base/fnv.h"

#include <string>

#include <gtest/gtest.h>

namespace rehearse {
namespace fnv_test {
namespace {

uint64_t HashOfText(const std::string& text) {
  Fnv1a hash;
  hash.Add(text);
  return hash.hash();
}

// Test vectors of the algorithm's authors
// (http://www.isthe.com/chongo/tech/comp/fnv/#FNV-1a, test_fnv.c).
TEST(FnvTest, TextsHaveThePublishedHashes) {
  EXPECT_EQ(HashOfText(""), 0xcbf29ce484222325u);
  EXPECT_EQ(HashOfText("a"), 0xaf63dc4c8601ec8cu);
  EXPECT_EQ(HashOfText("foobar"), 0x85944171f73967e8u);
}

// Whatever how many of the highest ones are zero.
TEST(FnvTest, ANumberIsItsEightBytesFromTheLowestOn) {
  for (uint64_t value = 0xfedcba9876543210u;; value >>= 4) {
    std::string bytes;
    for (int i = 0; i < 8; ++i) bytes.push_back(static_cast<char>(value >> (8 * i)));
    Fnv1a hash;
    hash.Add(value);
    EXPECT_EQ(hash.hash(), HashOfText(bytes)) << value;
    if (value == 0) break;
  }
}

}  // namespace
}  // namespace fnv_test
}  // namespace rehearse

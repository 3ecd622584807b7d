#include "sim/base/gzip.h"

#include <string>

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <rapidcheck/gtest.h>

#include "sim/base/error.h"

namespace rehearse {
namespace gzip_test {

using ::testing::HasSubstr;
using ::testing::ThrowsMessage;

constexpr size_t kMost = size_t{1} << 30;

RC_GTEST_PROP(GzipTest, WhatIsPackedIsUnpacked, (const std::string& text)) {
  const std::string bytes = Gzip(text);
  RC_ASSERT(IsGzip(bytes));
  RC_ASSERT(Gunzip(bytes, kMost) == text);
}

TEST(GzipTest, LongTextsGoThroughInPieces) {
  std::string text;
  for (int i = 0; i < 100'000; ++i) text += std::to_string(i * 7919 % 100'003) + "\n";
  const std::string bytes = Gzip(text);
  EXPECT_LT(bytes.size(), text.size());
  EXPECT_EQ(Gunzip(bytes, text.size()), text);
  EXPECT_EQ(Gzip(text), bytes);
  EXPECT_THAT([&] { Gunzip(bytes, text.size() - 1); },
              ThrowsMessage<Error>(HasSubstr("more than")));
}

TEST(GzipTest, DamageIsSeen) {
  std::string bytes = Gzip("a text that is long enough to be cut");
  EXPECT_THAT([&] { Gunzip(bytes.substr(0, 25), kMost); },
              ThrowsMessage<Error>(HasSubstr("truncated")));
  EXPECT_THAT([&] { Gunzip(bytes + "x", kMost); }, ThrowsMessage<Error>(HasSubstr("damaged")));
  bytes[15] ^= 0x55;
  EXPECT_THROW(Gunzip(bytes, kMost), Error);
  EXPECT_FALSE(IsGzip("{"));
  EXPECT_FALSE(IsGzip(""));
}

}  // namespace gzip_test
}  // namespace rehearse

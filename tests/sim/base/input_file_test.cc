#include "sim/base/input_file.h"

#include <filesystem>
#include <fstream>

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <unistd.h>

#include "sim/base/error.h"
#include "sim/base/json_document.h"

namespace rehearse {
namespace input_file_test {

using ::testing::HasSubstr;

std::string ErrorOfReading(const std::string& path) {
  try {
    ReadInputFile(path, "table");
  } catch (const Error& error) {
    return error.what();
  }
  return "no error";
}

TEST(InputFileTest, AFileIsReadWhole) {
  const auto path = std::filesystem::temp_directory_path() /
                    ("rehearse-input-file-test-" + std::to_string(getpid()));
  std::string text("a\0b\n", 4);
  text.resize(3 << 20, 'x');
  std::ofstream(path, std::ios::binary) << text;
  EXPECT_EQ(ReadInputFile(path.string()), text);
  std::filesystem::resize_file(path, (size_t{64} << 20) + 1);
  EXPECT_THAT(ErrorOfReading(path.string()), HasSubstr("found more than 64 MiB"));
  std::filesystem::remove(path);
}

// It has no size and no end.
TEST(InputFileTest, ADeviceWithoutEndIsRefused) {
  EXPECT_EQ(ErrorOfReading("/dev/zero"),
            "/dev/zero: found more than 64 MiB, the largest table that is read");
}

TEST(InputFileTest, WhatIsNoFileIsRefused) {
  EXPECT_THAT(ErrorOfReading("/"), HasSubstr("found a directory, expected a table"));
  EXPECT_THAT(ErrorOfReading("/no/such/file"), HasSubstr("cannot be read: No such file"));
}

// What the user names as the thing to play may be larger.
TEST(InputFileTest, ALargeDocumentIsReadWhereOneIsAskedFor) {
  const auto path = std::filesystem::temp_directory_path() /
                    ("rehearse-large-document-" + std::to_string(getpid()));
  std::ofstream(path, std::ios::binary) << std::string((size_t{64} << 20) + 1, ' ') << "[7]";
  std::string ones = "[1";
  for (int i = 0; i < 4'000'000; ++i) ones += ",1";
  ones += "]";
  const ReadOptions large = {.size = InputSize::kLarge};
  EXPECT_EQ(JsonDocument::FromFile(path.string(), large).value()[0], 7);
  EXPECT_EQ(JsonDocument::FromText(ones, "ones", large).value().size(), 4'000'001u);
  EXPECT_THROW(JsonDocument::FromFile(path.string()), Error);
  EXPECT_THROW(JsonDocument::FromText(ones, "ones"), Error);
  std::filesystem::remove(path);
}

}  // namespace input_file_test
}  // namespace rehearse

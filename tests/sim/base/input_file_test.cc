#include "sim/base/input_file.h"

#include <filesystem>
#include <fstream>

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <unistd.h>

#include "sim/base/error.h"

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

}  // namespace input_file_test
}  // namespace rehearse

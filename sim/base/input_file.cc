#include "sim/base/input_file.h"

#include <cerrno>
#include <cstdint>
#include <cstdio>
#include <filesystem>
#include <memory>
#include <system_error>

#include <fmt/format.h>

#include "sim/base/error.h"
#include "sim/base/units.h"

namespace rehearse {

std::string ReadInputFile(const std::string& path, const std::string& kind) {
  const Place place{path, 0, ""};
  const auto fail = [&](int reason) {
    throw Error(place, "cannot be read: " + std::generic_category().message(reason));
  };
  const auto refuse_larger = [&](uintmax_t size) {
    if (size <= kLargestInput) return;
    throw Error(place, fmt::format("found more than {}, which is the largest {} that is read",
                                   Print(Bytes(static_cast<double>(kLargestInput))), kind));
  };
  std::error_code fault;
  const std::filesystem::file_status status = std::filesystem::status(path, fault);
  if (fault) fail(fault.value());
  if (std::filesystem::is_directory(status))
    throw Error(place, "found a directory, expected a " + kind);
  if (std::filesystem::is_regular_file(status)) {
    const uintmax_t size = std::filesystem::file_size(path, fault);
    if (!fault) refuse_larger(size);
  }

  // A pipe has no size: read at most a piece too much.
  const std::unique_ptr<FILE, int (*)(FILE*)> file(std::fopen(path.c_str(), "rb"), &std::fclose);
  if (file == nullptr) fail(errno);
  std::string text;
  constexpr size_t kPiece = size_t{1} << 20;
  while (text.size() <= kLargestInput) {
    const size_t before = text.size();
    text.resize(before + kPiece);
    text.resize(before + std::fread(&text[before], 1, kPiece, file.get()));
    if (std::ferror(file.get()) != 0) fail(errno);
    if (text.size() == before) break;
  }
  refuse_larger(text.size());
  return text;
}

}  // namespace rehearse

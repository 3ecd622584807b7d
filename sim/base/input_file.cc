#include "sim/base/input_file.h"

#include <atomic>
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

std::string InputName(const std::string& path) {
  return path == kStandardInput ? kStandardInputName : path;
}

namespace {

// Does not close stdin, which is not ours.
struct Closer {
  void operator()(FILE* file) const {
    if (file != stdin) std::fclose(file);
  }
};

FILE* OpenStandardInput() {
  static std::atomic<bool> is_taken = false;
  if (is_taken.exchange(true)) {
    throw Error({kStandardInputName, 0, ""},
                "has been read already; \"-\" can stand for only one file of a command");
  }
  return stdin;
}

// The text that is given in place of the file; null if there is none.
const std::string* GivenText(const std::string& path, const ReadOptions& options) {
  if (options.given == nullptr) return nullptr;
  const auto given = options.given->find(path);
  return given == options.given->end() ? nullptr : &given->second;
}

}  // namespace

bool InputExists(const std::string& path, const ReadOptions& options) {
  if (GivenText(path, options) != nullptr) return true;
  std::error_code fault;
  return std::filesystem::exists(path, fault);
}

std::string ReadInputFile(const std::string& path, const std::string& kind,
                          const ReadOptions& options) {
  if (const std::string* const given = GivenText(path, options)) return *given;
  const Place place{InputName(path), 0, ""};
  const auto fail = [&](int reason) {
    throw Error(place, "cannot be read: " + std::generic_category().message(reason));
  };
  const size_t largest = LargestInput(options.size);
  const auto refuse_larger = [&](uintmax_t size) {
    if (size <= largest) return;
    throw Error(place, fmt::format("found more than {}, the largest {} that is read",
                                   Print(Bytes(static_cast<double>(largest))), kind));
  };
  const bool is_standard = path == kStandardInput;
  if (!is_standard) {
    std::error_code fault;
    const std::filesystem::file_status status = std::filesystem::status(path, fault);
    if (fault) fail(fault.value());
    if (std::filesystem::is_directory(status))
      throw Error(place, "found a directory, expected a " + kind);
    if (std::filesystem::is_regular_file(status)) {
      const uintmax_t size = std::filesystem::file_size(path, fault);
      if (!fault) refuse_larger(size);
    }
  }

  // A pipe has no size: at most one piece too much is read.
  const std::unique_ptr<FILE, Closer> file(is_standard ? OpenStandardInput()
                                                       : std::fopen(path.c_str(), "rb"));
  if (file == nullptr) fail(errno);
  std::string text;
  constexpr size_t kPiece = size_t{1} << 20;
  while (text.size() <= largest) {
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

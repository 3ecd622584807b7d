// A folder of its own for a test, in the system's folder for temporary files. It goes with it.
#pragma once

#include <filesystem>
#include <string>
#include <string_view>

namespace rehearse {

class TemporaryFolder {
 public:
  // `name` says in the file system whose it is.
  explicit TemporaryFolder(std::string_view name = "test");
  ~TemporaryFolder();
  TemporaryFolder(const TemporaryFolder&) = delete;
  TemporaryFolder& operator=(const TemporaryFolder&) = delete;

  const std::filesystem::path& path() const { return path_; }
  std::string operator/(std::string_view name) const { return (path_ / name).string(); }

 private:
  std::filesystem::path path_;
};

}  // namespace rehearse

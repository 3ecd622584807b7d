#include "sim/base/moved_paths.h"

#include <filesystem>
#include <system_error>

namespace rehearse {
namespace {

namespace fs = std::filesystem;

fs::path FolderOf(const std::string& file) {
  std::error_code ignored;
  const fs::path folder = fs::absolute(file, ignored).parent_path();
  return fs::weakly_canonical(folder, ignored);
}

}  // namespace

void MakeAbsolute(nlohmann::json* object, std::span<const char* const> keys,
                  const std::string& from) {
  if (!object->is_object()) return;
  const fs::path folder = fs::path(from).parent_path();
  for (const char* key : keys) {
    const auto found = object->find(key);
    if (found == object->end() || !found->is_string()) continue;
    const auto text = found->get<std::string>();
    const std::string file = text.substr(0, text.find(':'));
    std::error_code missing;
    if (file.find_first_of("./") == std::string::npos || !fs::exists(folder / file, missing))
      continue;
    *found = fs::absolute(folder / file).lexically_normal().string() + text.substr(file.size());
  }
}

bool InOneFolder(const std::string& a, const std::string& b) { return FolderOf(a) == FolderOf(b); }

}  // namespace rehearse

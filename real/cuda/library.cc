#include "real/cuda/library.h"

#include <cstdlib>

#include <dlfcn.h>
#include <fmt/format.h>
#include <link.h>

namespace rehearse {

Library::Library(const std::vector<std::string>& names, const char* override, const char* purpose) {
  std::vector<std::string> tried = names;
  if (const char* chosen = std::getenv(override); chosen != nullptr && *chosen != '\0') {
    tried = {chosen};
  }
  std::string reasons;
  for (const std::string& name : tried) {
    handle_ = dlopen(name.c_str(), RTLD_NOW | RTLD_LOCAL);
    if (handle_ != nullptr) break;
    reasons += fmt::format("\n  {}", dlerror());
  }
  if (handle_ == nullptr) {
    throw Error(
        fmt::format("no {} was found, which is needed for {} (set LD_LIBRARY_PATH, or {} to the "
                    "file):{}",
                    tried.front(), purpose, override, reasons));
  }
  link_map* map = nullptr;
  path_ = dlinfo(handle_, RTLD_DI_LINKMAP, &map) == 0 ? map->l_name : tried.front();
}

// A library stays open: its threads may outlive us, and unloading CUDA is not supported.
Library::~Library() = default;

void* Library::Find(const char* name) const {
  void* found = dlsym(handle_, name);
  if (found == nullptr) {
    throw Error(fmt::format("{} has no function {}: it is too old for Rehearse", path_, name));
  }
  return found;
}

std::string Library::Describe(int status) const {
  if (describe_ == nullptr) return fmt::format("status {}", status);
  return fmt::format("{} (status {})", describe_(status), status);
}

void internal::FailCall(const Library& library, const char* name, int status) {
  throw Error(fmt::format("{} failed: {}", name, library.Describe(status)));
}

}  // namespace rehearse

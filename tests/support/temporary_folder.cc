#include "tests/support/temporary_folder.h"

#include <cstdlib>
#include <system_error>

#include <fmt/format.h>

#include "sim/base/error.h"

namespace rehearse {

namespace fs = std::filesystem;

TemporaryFolder::TemporaryFolder(std::string_view name) {
  std::string pattern = (fs::temp_directory_path() / fmt::format("rehearse-{}-XXXXXX", name));
  CHECK(mkdtemp(pattern.data()) != nullptr);
  path_ = pattern;
}

TemporaryFolder::~TemporaryFolder() {
  std::error_code error;  // a destructor does not throw; what is left shows in the folder
  fs::remove_all(path_, error);
}

}  // namespace rehearse

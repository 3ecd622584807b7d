#include <filesystem>
#include <fstream>
#include <regex>
#include <set>
#include <sstream>

#include <gtest/gtest.h>

#include "real/cuda/launch.h"
#include "tests/support/places.h"

namespace rehearse {
namespace kernel_functions_test {

// A name that is in the table but not among the kernels would only be noticed on a GPU.
TEST(KernelFunctionsTest, TheTableNamesExactlyTheKernelsThatAreWritten) {
  std::set<std::string> written;
  const std::filesystem::path folder = std::filesystem::path(SourceDir()) / "real/cuda/kernels";
  for (const auto& entry : std::filesystem::directory_iterator(folder)) {
    std::stringstream text;
    text << std::ifstream(entry.path()).rdbuf();
    const std::string source = text.str();
    const std::regex kernel("extern \"C\" __global__ void (\\w+)\\(");
    for (std::sregex_iterator found(source.begin(), source.end(), kernel), end; found != end;
         ++found) {
      written.insert((*found)[1]);
    }
  }
  std::set<std::string> named;
  for (const char* name : KernelFunctions()) named.insert(name);
  EXPECT_EQ(named, written);
}

}  // namespace kernel_functions_test
}  // namespace rehearse

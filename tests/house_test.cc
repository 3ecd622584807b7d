// Rules of the house that no compiler checks: which folder may include which.
#include <filesystem>
#include <fstream>
#include <map>
#include <regex>
#include <set>
#include <string>

#include <gtest/gtest.h>

namespace rehearse {
namespace {

namespace fs = std::filesystem;

// tools -> scenarios -> { workloads, real } -> collectives -> topology -> sim; only to the right, and
// workloads and real never see each other.
const std::map<std::string, std::set<std::string>>& MayInclude() {
  static const std::map<std::string, std::set<std::string>> rules = {
      {"sim", {"sim"}},
      {"topology", {"topology", "sim"}},
      {"collectives", {"collectives", "topology", "sim"}},
      {"workloads", {"workloads", "collectives", "topology", "sim"}},
      {"real", {"real", "collectives", "topology", "sim"}},
      {"scenarios", {"scenarios", "workloads", "real", "collectives", "topology", "sim"}},
      {"tools", {"tools", "scenarios", "workloads", "real", "collectives", "topology", "sim"}},
  };
  return rules;
}

struct Include {
  std::string file;
  std::string target;
};

std::vector<Include> IncludesOf(const std::string& folder) {
  std::vector<Include> includes;
  const fs::path root = fs::path(REHEARSE_SOURCE_DIR) / folder;
  for (const auto& entry : fs::recursive_directory_iterator(root)) {
    const std::string extension = entry.path().extension();
    if (extension != ".h" && extension != ".cc" && extension != ".cu") continue;
    std::ifstream file(entry.path());
    std::string line;
    while (std::getline(file, line)) {
      if (line.rfind("#include \"", 0) != 0) continue;
      const std::string target = line.substr(10, line.find('"', 10) - 10);
      includes.push_back({fs::relative(entry.path(), REHEARSE_SOURCE_DIR), target});
    }
  }
  return includes;
}

TEST(LayeringTest, FoldersIncludeOnlyToTheRight) {
  size_t count = 0;
  for (const auto& [folder, allowed] : MayInclude()) {
    if (!fs::exists(fs::path(REHEARSE_SOURCE_DIR) / folder)) continue;
    for (const Include& include : IncludesOf(folder)) {
      const std::string target = include.target.substr(0, include.target.find('/'));
      EXPECT_TRUE(allowed.count(target) == 1)
          << include.file << " includes \"" << include.target << "\"";
      ++count;
    }
  }
  EXPECT_GT(count, 50u);  // the test itself must have found something
}

TEST(LayeringTest, HeadersBeginWithWhatTheyAre) {
  for (const auto& [folder, allowed] : MayInclude()) {
    if (!fs::exists(fs::path(REHEARSE_SOURCE_DIR) / folder)) continue;
    for (const auto& entry : fs::directory_iterator(fs::path(REHEARSE_SOURCE_DIR) / folder)) {
      if (entry.path().extension() != ".h") continue;
      std::ifstream file(entry.path());
      std::string line;
      std::getline(file, line);
      EXPECT_EQ(line.rfind("// ", 0), 0u) << entry.path();
      bool once = false;
      while (std::getline(file, line)) once = once || line == "#pragma once";
      EXPECT_TRUE(once) << entry.path();
    }
  }
}

// There is one namespace: two types of one name in two headers would be one to the linker, which takes the destructor
// of either for both.
TEST(LayeringTest, EveryTypeOfAHeaderHasANameOfItsOwn) {
  std::map<std::string, std::string> header_of;
  const std::regex definition(
      "^(?:struct|class|enum class) ([A-Z][A-Za-z0-9]*)( final)?( :.*)? \\{.*");
  for (const auto& [folder, allowed] : MayInclude()) {
    for (const auto& entry : fs::directory_iterator(fs::path(REHEARSE_SOURCE_DIR) / folder)) {
      if (entry.path().extension() != ".h") continue;
      std::ifstream file(entry.path());
      std::string line;
      std::smatch match;
      while (std::getline(file, line)) {
        if (!std::regex_match(line, match, definition)) continue;
        const auto [known, is_new] = header_of.emplace(match[1], entry.path());
        EXPECT_TRUE(is_new) << match[1] << " in " << entry.path() << " and in " << known->second;
      }
    }
  }
  EXPECT_GT(header_of.size(), 200u);
}

}  // namespace
}  // namespace rehearse

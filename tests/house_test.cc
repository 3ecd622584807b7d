// Rules of the project that no compiler checks: which folder may include which, how files look.
#include <algorithm>
#include <filesystem>
#include <fstream>
#include <map>
#include <regex>
#include <set>
#include <string>
#include <utility>
#include <vector>

#include <gtest/gtest.h>

#include "tests/support/places.h"

namespace rehearse {
namespace {

namespace fs = std::filesystem;

// tools -> tools/foreign -> scenarios -> { workloads, real -> collectives } -> topology -> sim;
// only to the right, and workloads sees neither real nor collectives, nor they it.
const std::map<std::string, std::set<std::string>>& MayInclude() {
  static const std::map<std::string, std::set<std::string>> rules = {
      {"sim", {"sim"}},
      {"topology", {"topology", "sim"}},
      {"collectives", {"collectives", "topology", "sim"}},
      {"workloads", {"workloads", "topology", "sim"}},
      {"real", {"real", "collectives", "topology", "sim"}},
      {"scenarios", {"scenarios", "workloads", "real", "collectives", "topology", "sim"}},
      {"tools/foreign",
       {"tools/foreign", "scenarios", "workloads", "real", "collectives", "topology", "sim"}},
      {"tools",
       {"tools", "tools/foreign", "scenarios", "workloads", "real", "collectives", "topology",
        "sim"}},
  };
  return rules;
}

// The rooms of a folder; each may include itself and those that stand before it.
const std::map<std::string, std::vector<std::string>>& Rooms() {
  static const std::map<std::string, std::vector<std::string>> rooms = {
      {"sim", {"base", "schedule", "packets", "engine", "report"}},
      {"topology", {"devices", "cluster", "fabrics", "presets", "files", "view"}},
      {"collectives", {"algorithms", "nccl", "lowering"}},
      {"workloads", {"networks", "layouts", "strategies", "planner", "cost_models"}},
      {"real", {"kernels", "transports", "backends", "cpu", "cuda", "execution", "calibration"}},
      {"scenarios",
       {"readers", "playing", "campaign", "queueing", "explaining", "evaluating", "sweeping",
        "searching", "diagnosing", "reporting", "trials", "library"}},
      {"tools/foreign", {"machines", "traces", "runs", "logs", "jobs"}},
      {"tools", {"", "viewer", "python"}},  // also what is compiled for the page, and for Python
  };
  return rooms;
}

bool IsHeader(const fs::path& path) { return path.extension() == ".h"; }

bool IsSource(const fs::path& path) {
  return IsHeader(path) || path.extension() == ".cc" || path.extension() == ".cu" ||
         path.extension() == ".cuh";
}

// The formats of others are a library, and so a folder, of their own.
constexpr const char* kForeign = "tools/foreign";

// Files of a folder and its rooms, in order, as paths below the root.
std::vector<fs::path> FilesOf(const std::string& folder, bool (*wanted)(const fs::path&)) {
  std::vector<fs::path> files;
  const fs::path root(SourceDir());
  for (const auto& entry : fs::recursive_directory_iterator(root / folder)) {
    // What npm brings for tools/viewer is not ours.
    if (entry.path().string().find("/node_modules/") != std::string::npos) continue;
    const fs::path path = fs::relative(entry.path(), root);
    if (folder == "tools" && path.string().rfind(kForeign + std::string("/"), 0) == 0) continue;
    if (wanted(path)) files.push_back(path);
  }
  std::sort(files.begin(), files.end());
  return files;
}

// "sim" and "base" of sim/base/error.h; no room for tools/run.cc.
struct FolderAndRoom {
  std::string folder;
  std::string room;
};
FolderAndRoom PlaceOf(const fs::path& path) {
  auto part = path.begin();
  FolderAndRoom place{(part++)->string(), ""};
  if (path.string().rfind(kForeign + std::string("/"), 0) == 0)
    place.folder += "/" + (part++)->string();
  if (std::next(part) != path.end()) place.room = part->string();
  return place;
}

struct Include {
  std::string file;
  std::string target;
};

std::vector<Include> IncludesOf(const std::string& folder) {
  std::vector<Include> includes;
  for (const fs::path& path : FilesOf(folder, IsSource)) {
    std::ifstream file(fs::path(SourceDir()) / path);
    std::string line;
    while (std::getline(file, line)) {
      if (line.rfind("#include \"", 0) != 0) continue;
      includes.push_back({path, line.substr(10, line.find('"', 10) - 10)});
    }
  }
  return includes;
}

TEST(LayeringTest, FoldersIncludeOnlyToTheRight) {
  size_t count = 0;
  for (const auto& [folder, allowed] : MayInclude()) {
    for (const Include& include : IncludesOf(folder)) {
      // A fuzz target stands beside the reader of a foreign format, and is a part of tests/fuzz.
      const bool is_test = include.file.find("_fuzz.cc") != std::string::npos;
      if (is_test && PlaceOf(include.target).folder == "tests") continue;
      EXPECT_TRUE(allowed.count(PlaceOf(include.target).folder) == 1)
          << include.file << " includes \"" << include.target << "\"";
      ++count;
    }
  }
  EXPECT_GT(count, 500u);  // the test itself must have found something
}

TEST(LayeringTest, RoomsIncludeOnlyThoseBeforeThem) {
  size_t count = 0;
  for (const auto& [folder, ordered] : Rooms()) {
    const auto position = [&rooms = ordered](const std::string& room) {
      return std::find(rooms.begin(), rooms.end(), room) - rooms.begin();
    };
    for (const Include& include : IncludesOf(folder)) {
      const FolderAndRoom target = PlaceOf(include.target);
      if (target.folder != folder) continue;
      EXPECT_LE(position(target.room), position(PlaceOf(include.file).room))
          << include.file << " includes \"" << include.target << "\"";
      ++count;
    }
  }
  EXPECT_GT(count, 500u);
}

TEST(LayeringTest, EveryFileIsInARoomThatHasAPlaceInTheOrder) {
  for (const auto& [folder, rooms] : Rooms()) {
    for (const fs::path& path : FilesOf(folder, IsSource)) {
      const std::string room = PlaceOf(path).room;
      const bool has_a_place =
          rooms.empty() ? room.empty() : std::count(rooms.begin(), rooms.end(), room) == 1;
      EXPECT_TRUE(has_a_place) << path;
    }
  }
}

TEST(LayeringTest, HeadersBeginWithWhatTheyAre) {
  for (const auto& [folder, rooms] : Rooms()) {
    for (const fs::path& path : FilesOf(folder, IsHeader)) {
      std::ifstream file(fs::path(SourceDir()) / path);
      std::string line;
      std::getline(file, line);
      EXPECT_EQ(line.rfind("// ", 0), 0u) << path;
      bool once = false;
      while (std::getline(file, line)) once = once || line == "#pragma once";
      EXPECT_TRUE(once) << path;
    }
  }
}

// Only CMake joins sources (CMakeLists.txt), and then each is in one program once.
TEST(LayeringTest, NobodyIncludesASource) {
  std::vector<std::string> folders = {"tests"};
  for (const auto& [folder, rooms] : Rooms()) folders.push_back(folder);
  for (const std::string& folder : folders) {
    for (const Include& include : IncludesOf(folder))
      EXPECT_NE(fs::path(include.target).extension(), ".cc") << include.file;
  }
}

// It takes longer to compile than most code that uses clusters, so only sources that search include
// it.
TEST(LayeringTest, NoHeaderBringsBoostGraphToThoseWhoDoNotSearch) {
  const fs::path graph = "topology/cluster/graph.h";
  size_t searching = 0;
  for (const auto& [folder, rooms] : Rooms()) {
    for (const fs::path& path : FilesOf(folder, IsSource)) {
      std::ifstream file(fs::path(SourceDir()) / path);
      std::string line;
      while (std::getline(file, line)) {
        if (line.rfind("#include <boost/graph/", 0) != 0 &&
            line.rfind("#include \"" + graph.string() + "\"", 0) != 0)
          continue;
        EXPECT_TRUE(path == graph || !IsHeader(path)) << path << ": " << line;
        ++searching;
      }
    }
  }
  EXPECT_GT(searching, 5u);
}

// Lines of a source file with their numbers, except those inside raw strings, which may quote
// anything.
std::vector<std::pair<size_t, std::string>> LinesOutsideRawStrings(const fs::path& path) {
  std::vector<std::pair<size_t, std::string>> lines;
  std::ifstream file(fs::path(SourceDir()) / path);
  std::string end;  // of the raw string that the line is in
  std::string line;
  for (size_t number = 1; std::getline(file, line); ++number) {
    if (end.empty()) {
      const size_t begin = line.find("R\"");
      const size_t text = begin == std::string::npos ? begin : line.find('(', begin);
      if (text != std::string::npos) {
        end = ")" + line.substr(begin + 2, text - begin - 2) + "\"";
        if (line.find(end, text) != std::string::npos) end.clear();
      } else {
        lines.emplace_back(number, line);
      }
    } else if (line.find(end) != std::string::npos) {
      end.clear();
    }
  }
  return lines;
}

// clang-format takes care of code, but leaves comments as they are.
TEST(LayoutTest, LinesFitAHundredColumns) {
  size_t count = 0;
  std::vector<std::string> folders = {"tests"};
  for (const auto& [folder, rooms] : Rooms()) folders.push_back(folder);
  for (const std::string& folder : folders) {
    for (const fs::path& path : FilesOf(folder, IsSource)) {
      for (const auto& [number, line] : LinesOutsideRawStrings(path)) {
        // Characters of UTF-8: bytes that do not continue one.
        const auto columns =
            std::count_if(line.begin(), line.end(), [](char c) { return (c & 0xC0) != 0x80; });
        EXPECT_LE(columns, 100) << path.string() << ":" << number;
        ++count;
      }
    }
  }
  EXPECT_GT(count, 50000u);
}

// Whether there is a file or folder of that name; `*` stands for anything but '/'.
bool IsThere(const fs::path& path) {
  const std::string name = path.filename();
  if (name.find('*') == std::string::npos) return fs::exists(path);
  std::string pattern;
  for (const char c : name) pattern += c == '*' ? "[^/]*" : c == '.' ? "\\." : std::string(1, c);
  if (!fs::is_directory(path.parent_path())) return false;
  return std::any_of(fs::directory_iterator(path.parent_path()), fs::directory_iterator(),
                     [&](const fs::directory_entry& entry) {
                       return std::regex_match(entry.path().filename().string(),
                                               std::regex(pattern));
                     });
}

// What the expression finds in the text: its first group.
std::vector<std::string> AllOf(const std::string& text, const std::regex& expression) {
  std::vector<std::string> found;
  for (std::sregex_iterator match(text.begin(), text.end(), expression), end; match != end; ++match)
    found.push_back((*match)[1]);
  return found;
}

// A path from the root as comments and documents write it: it begins with a folder and ends like a
// file.
const std::regex& PathFromTheRoot() {
  static const std::regex path(
      R"((?:^|[^\w/.])((?:sim|topology|collectives|workloads|real|scenarios|tools|tests)/[\w*./-]+)"
      R"(\.(?:h|cc|cu|cuh|json|md|py|svg))(?![\w*]))");
  return path;
}

TEST(DocumentsTest, FilesThatCommentsNameAreThere) {
  const fs::path root(SourceDir());
  size_t count = 0;
  std::vector<std::string> folders = {"tests"};
  for (const auto& [folder, rooms] : Rooms()) folders.push_back(folder);
  for (const std::string& folder : folders) {
    for (const fs::path& file : FilesOf(folder, IsSource)) {
      for (const auto& [number, line] : LinesOutsideRawStrings(file)) {
        const size_t comment = line.find("//");
        if (comment == std::string::npos) continue;
        for (const std::string& path : AllOf(line.substr(comment), PathFromTheRoot())) {
          EXPECT_TRUE(IsThere(root / path)) << file.string() << ":" << number << " names " << path;
          ++count;
        }
      }
    }
  }
  EXPECT_GT(count, 150u);
}

// Links, and names of files in `...`, are relative to the document's own folder or to the root.
TEST(DocumentsTest, FilesThatDocumentsNameAreThere) {
  const fs::path root(SourceDir());
  std::vector<fs::path> documents = {root / "README.md", root / "CONTRIBUTING.md"};
  std::vector<std::string> folders = {"tests"};
  for (const auto& [folder, rooms] : Rooms()) folders.push_back(folder);
  for (const std::string& folder : folders) {
    for (const fs::path& path :
         FilesOf(folder, [](const fs::path& file) { return file.extension() == ".md"; }))
      documents.push_back(root / path);
  }
  const std::regex link(R"re((?:\]\(|src=")(?!http)([^)"#]+))re");
  const std::regex name(R"(`([\w*./-]+\.(?:h|cc|cu|cuh|cmake|md|py|sh|svg))`)");
  const std::regex folder(
      R"(`((?:sim|topology|collectives|workloads|real|scenarios|tools|tests)/[\w*./-]*)`)");
  size_t count = 0;
  for (const fs::path& document : documents) {
    std::ifstream file(document);
    std::string line;
    for (size_t number = 1; std::getline(file, line); ++number) {
      std::vector<std::string> named;
      for (const std::regex& kind : {link, name, folder, PathFromTheRoot()}) {
        for (const std::string& path : AllOf(line, kind)) named.push_back(path);
      }
      for (const std::string& path : named) {
        if (path.find("NAME") != std::string::npos) continue;  // stands for any
        EXPECT_TRUE(IsThere(document.parent_path() / path) || IsThere(root / path))
            << document.string() << ":" << number << " names " << path;
        ++count;
      }
    }
  }
  EXPECT_GT(count, 200u);
}

// There is one namespace, so the linker would take two types of the same name in two headers for
// one, and use the destructor of either for both.
TEST(LayeringTest, EveryTypeOfAHeaderHasANameOfItsOwn) {
  std::map<std::string, std::string> header_of;
  const std::regex definition(
      "^(?:struct|class|enum class) ([A-Z][A-Za-z0-9]*)( final)?( :.*)? \\{.*");
  for (const auto& [folder, rooms] : Rooms()) {
    for (const fs::path& path : FilesOf(folder, IsHeader)) {
      if (PlaceOf(path).room == "library") continue;  // rehearse::v1
      std::ifstream file(fs::path(SourceDir()) / path);
      std::string line;
      std::smatch match;
      while (std::getline(file, line)) {
        if (!std::regex_match(line, match, definition)) continue;
        const auto [known, is_new] = header_of.emplace(match[1], path);
        EXPECT_TRUE(is_new) << match[1] << " in " << path << " and in " << known->second;
      }
    }
  }
  EXPECT_GT(header_of.size(), 200u);
}

// All commands play what Prepare() makes, so all play the same.
TEST(LayeringTest, OnlyPrepareAsksThePlanner) {
  size_t count = 0;
  for (const char* folder : {"scenarios", kForeign, "tools"}) {
    for (const fs::path& path : FilesOf(folder, IsSource)) {
      std::ifstream file(fs::path(SourceDir()) / path);
      const std::string text(std::istreambuf_iterator<char>(file), {});
      if (text.find("PlanStep(") == std::string::npos) continue;
      EXPECT_EQ(path, "scenarios/playing/prepare.cc");
      ++count;
    }
  }
  EXPECT_EQ(count, 1u);
}

// Where these words stand in sources, but for programs of others.
void ExpectNoSourceHas(const std::vector<std::string>& words, const std::string& instead,
                       const fs::path& except = {}) {
  const auto is_part_of_name = [](char c) { return std::isalnum(c) != 0 || c == '_'; };
  for (const auto& [folder, allowed] : MayInclude()) {
    for (const fs::path& file : FilesOf(folder, IsSource)) {
      if (file.parent_path().filename() == "examples" || file == except) continue;
      std::ifstream source(fs::path(SourceDir()) / file);
      const std::string text = " " + std::string{std::istreambuf_iterator<char>(source), {}} + " ";
      for (const std::string& word : words) {
        for (size_t at = text.find(word); at != std::string::npos; at = text.find(word, at + 1)) {
          EXPECT_TRUE(is_part_of_name(text[at - 1]) || is_part_of_name(text[at + word.size()]))
              << file << " has " << word << "; " << instead;
        }
      }
    }
  }
}

// fmt::print and streams throw where standard error is full.
TEST(LayeringTest, OnlySayWritesToStandardError) {
  ExpectNoSourceHas({"stderr", "std::cerr", "std::clog"}, "sim/base/say.h is for that");
}

// What is timed and waited for does not notice when the time of day is set.
TEST(LayeringTest, OnlyTheDateOfACalibrationIsATimeOfDay) {
  ExpectNoSourceHas(
      {"system_clock", "high_resolution_clock", "std::time", "gettimeofday", "CLOCK_REALTIME"},
      "expected std::chrono::steady_clock", "tools/calibrate.cc");
}

}  // namespace
}  // namespace rehearse

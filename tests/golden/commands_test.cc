// What commands print and write, beside golden records: the same functions that the program calls,
// without a process for each.
#include <algorithm>
#include <cstdio>
#include <filesystem>
#include <fstream>
#include <map>
#include <optional>

#include <fmt/format.h>
#include <gtest/gtest.h>
#include <sys/mman.h>
#include <unistd.h>

#include "sim/base/error.h"
#include "sim/base/gzip.h"
#include "sim/base/input_file.h"
#include "tests/golden/record.h"
#include "tests/support/places.h"
#include "tests/support/temporary_folder.h"
#include "tools/command.h"

namespace rehearse {
namespace commands_test {

namespace fs = std::filesystem;

std::vector<std::string> Lists() {
  std::vector<std::string> names;
  for (const auto& entry : fs::directory_iterator(SourceDir() + "/tests/golden/commands"))
    if (entry.path().extension() == ".txt") names.push_back(entry.path().stem().string());
  std::sort(names.begin(), names.end());
  return names;
}

// As a shell does it, with '...' around blanks.
std::vector<std::string> WordsOf(const std::string& line) {
  std::vector<std::string> words;
  bool is_quoted = false;
  bool is_word = false;
  for (const char c : line) {
    if (c == '\'') {
      is_quoted = !is_quoted;
    } else if (c == ' ' && !is_quoted) {
      is_word = false;
      continue;
    }
    if (!is_word) words.emplace_back();
    is_word = true;
    if (c != '\'') words.back() += c;
  }
  return words;
}

void ReplaceAll(const std::string& what, const std::string& with, std::string* text) {
  for (size_t at = text->find(what); at != std::string::npos; at = text->find(what, at)) {
    text->replace(at, what.size(), with);
    at += with.size();
  }
}

// While it lives, what is written to the stream goes here.
class Captured {
 public:
  explicit Captured(FILE* stream) : stream_(stream), file_(memfd_create("captured", MFD_CLOEXEC)) {
    CHECK(file_ >= 0);
    std::fflush(stream_);
    before_ = dup(fileno(stream_));
    dup2(file_, fileno(stream_));
  }
  ~Captured() {
    Restore();
    close(file_);
  }
  Captured(const Captured&) = delete;
  Captured& operator=(const Captured&) = delete;

  std::string Text() {
    Restore();
    std::string text(static_cast<size_t>(lseek(file_, 0, SEEK_END)), '\0');
    CHECK(pread(file_, text.data(), text.size(), 0) == static_cast<ssize_t>(text.size()));
    return text;
  }

 private:
  void Restore() {
    if (before_ < 0) return;
    std::fflush(stream_);
    dup2(before_, fileno(stream_));
    close(before_);
    before_ = -1;
  }

  FILE* stream_;
  int file_;
  int before_ = -1;
};

std::string FromBase64(std::string_view text) {
  constexpr std::string_view kDigits =
      "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/";
  std::string bytes;
  uint32_t bits = 0;
  int count = 0;
  for (const char c : text) {
    const size_t digit = kDigits.find(c);
    if (digit == std::string_view::npos) break;
    bits = bits << 6 | static_cast<uint32_t>(digit);
    count += 6;
    if (count < 8) continue;
    count -= 8;
    bytes += static_cast<char>(bits >> count & 0xff);
  }
  return bytes;
}

// Of a page, only the data: not the program that shows them.
std::string DataOfPage(const std::string& page) {
  constexpr std::string_view kBegin = "<script type=\"text/plain\"";
  constexpr size_t kMost = size_t{1} << 28;
  std::string data;
  for (size_t at = page.find(kBegin); at != std::string::npos; at = page.find(kBegin, at + 1)) {
    const size_t begin = page.find('>', at) + 1;
    data += page.substr(at, begin - at);
    if (data.find("simulator") != std::string::npos) break;  // as WebAssembly
    const std::string bytes = FromBase64(std::string_view(page).substr(begin));
    data += IsGzip(bytes) ? Gunzip(bytes, kMost) : bytes;
  }
  return data;
}

// In a folder of its own, from where the sources are seen under the same names, so that no text
// says where either is.
class Commands {
 public:
  Commands() : before_(fs::current_path()) {
    fs::current_path(folder_.path());
    for (const char* name : {"LICENSE", "scenarios", "tests"})
      fs::create_symlink(fs::path(SourceDir()) / name, name);
    fs::create_directory(kOutput);
  }
  ~Commands() { fs::current_path(before_); }
  Commands(const Commands&) = delete;
  Commands& operator=(const Commands&) = delete;

  // The lines of the record.
  std::string Run(const std::string& line) {
    std::vector<std::string> words = WordsOf(line);
    for (std::string& word : words) ReplaceAll("{tmp}", kOutput, &word);
    const std::string name = words.front();
    words.erase(words.begin());
    std::string file;  // "> FILE" keeps what is printed
    if (words.size() > 2 && words[words.size() - 2] == ">") {
      file = words.back();
      words.resize(words.size() - 2);
    }
    std::string text;
    std::string out;
    {
      Captured error(stderr);
      Captured output(stdout);
      std::string mistake;
      int code = 0;
      try {
        const auto command = std::find_if(Commands_().begin(), Commands_().end(),
                                          [&](const Command& c) { return c.name == name; });
        CHECK(command != Commands_().end());
        code = command->run(words);
      } catch (const Error& caught) {
        mistake = caught.what();
      }
      out = output.Text();
      if (!file.empty()) std::ofstream(file, std::ios::binary) << out;
      out = file.empty() ? Shown(out) : "";
      if (code != 0) text += fmt::format("code {}\n", code);
      if (!mistake.empty()) text += fmt::format("mistake: {}\n", Shown(mistake));
      const std::string said = Shown(WithoutProgress(error.Text()));
      if (!said.empty()) text += said + (said.back() == '\n' ? "" : "\n");
    }
    if (!out.empty())
      text += Beginning(out) + "printed " + SizeOf(out) + DigestOfText("printed", out) + "\n";
    return text + Written();
  }

 private:
  static const std::vector<Command>& Commands_() { return rehearse::Commands(); }

  std::string Shown(std::string text) const {
    ReplaceAll(folder_.path().string() + "/", "", &text);
    ReplaceAll(SourceDir() + "/", "", &text);
    return WithoutCosts(text);
  }
  // On a busy machine a command may take long enough to tell how far it is: "rehearse: simulating
  // weeks: 0 of 100 runs".
  static std::string WithoutProgress(const std::string& text) {
    std::string kept;
    for (size_t begin = 0; begin < text.size();) {
      const size_t end = std::min(text.find('\n', begin), text.size() - 1) + 1;
      const std::string line = text.substr(begin, end - begin);
      const size_t of = line.find(" of ");
      const size_t colon = line.rfind(": ", of);
      const bool is_count = of != std::string::npos && colon != std::string::npos &&
                            line.find_first_not_of("0123456789,.", colon + 2) == of;
      if (!line.starts_with("rehearse: ") || !is_count) kept += line;
      begin = end;
    }
    return kept;
  }
  static std::string SizeOf(const std::string& text) {
    return fmt::format("{} lines", std::count(text.begin(), text.end(), '\n'));
  }
  // The first lines that say something.
  static std::string Beginning(const std::string& text) {
    constexpr int kMostLines = 2;
    constexpr size_t kMostBytes = 64;
    std::string lines;
    size_t at = 0;
    for (int shown = 0; shown < kMostLines && at < text.size();) {
      const size_t end = std::min(text.find('\n', at), text.size());
      std::string line = text.substr(at, end - at);
      at = end + 1;
      if (line.find_first_not_of(" {[]}") == std::string::npos) continue;
      if (line.size() > kMostBytes) {
        line.resize(kMostBytes);
        while (!line.empty() && (static_cast<uint8_t>(line.back()) & 0xc0) == 0x80) line.pop_back();
        if (static_cast<uint8_t>(line.back()) >= 0xc0) line.pop_back();
      }
      lines += "  " + line + "\n";
      ++shown;
    }
    return lines;
  }
  // Files that are new, or have changed.
  std::string Written() {
    std::string text;
    std::vector<fs::path> files;
    for (const auto& entry : fs::recursive_directory_iterator(kOutput))
      if (entry.is_regular_file()) files.push_back(entry.path());
    std::sort(files.begin(), files.end());
    for (const fs::path& file : files) {
      const auto time = fs::last_write_time(file);
      if (const auto read = read_.find(file.string()); read != read_.end() && read->second == time)
        continue;
      read_[file.string()] = time;
      std::string content = "kept";
      if (file.extension() != ".sqlite") content = ReadInputFile(file.string());
      if (IsGzip(content)) content = Gunzip(content, size_t{1} << 28);
      if (file.extension() == ".html") content = DataOfPage(content);
      content = Shown(content);
      const std::string digest = DigestOfText("written", content);
      std::string& known = known_[file.string()];
      if (known == digest) continue;
      known = digest;
      text += fmt::format("wrote {} {}{}\n", file.string(), SizeOf(content), digest);
    }
    return text;
  }

  static constexpr const char* kOutput = "out";

  TemporaryFolder folder_{"golden"};
  fs::path before_;
  std::map<std::string, std::string> known_;  // by path, what was written
  std::map<std::string, fs::file_time_type> read_;
};

class GoldenCommandsTest : public ::testing::TestWithParam<std::string> {};

// Each file of tests/golden/commands is a list: a command on each line. Later ones may read what
// earlier ones wrote into {tmp}.
TEST_P(GoldenCommandsTest, SayAndWriteWhatIsRecorded) {
  GoldenRecord record("commands-" + GetParam());
  Commands commands;
  std::ifstream list(SourceDir() + "/tests/golden/commands/" + GetParam() + ".txt");
  size_t number = 0;
  for (std::string line; std::getline(list, line);) {
    if (line.empty() || line.starts_with('#')) continue;
    if (line.find("{tmp}") == std::string::npos && record.IsLeftOut(number++)) continue;
    record.Add(line, commands.Run(line));
  }
  record.End();
}

INSTANTIATE_TEST_SUITE_P(Lists, GoldenCommandsTest, ::testing::ValuesIn(Lists()),
                         [](const auto& info_of_list) { return info_of_list.param; });

}  // namespace commands_test
}  // namespace rehearse

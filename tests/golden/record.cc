#include "tests/golden/record.h"

#include <algorithm>
#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <string_view>

#include <fmt/format.h>
#include <gtest/gtest.h>

#include "tests/support/places.h"
#include "tests/support/sanitizers.h"

namespace rehearse {
namespace {

constexpr std::string_view kBegin = "== ";
constexpr const char* kDigestsKey = "digests of all entries, and of those made under sanitizers";
// Around a digest within lines: nothing that is recorded has these characters.
constexpr char kDigestBegin = '\x01';
constexpr char kDigestEnd = '\x02';
constexpr int kMostShown = 3;

std::vector<std::string_view> LinesOf(std::string_view text) {
  std::vector<std::string_view> lines;
  while (!text.empty()) {
    const size_t end = text.find('\n');
    lines.push_back(text.substr(0, end));
    text.remove_prefix(end == std::string_view::npos ? text.size() : end + 1);
  }
  return lines;
}

std::map<std::string, std::string> ReadRecord(const std::string& path) {
  std::ifstream file(path, std::ios::binary);
  std::map<std::string, std::string> entries;
  std::string* entry = nullptr;
  for (std::string line; std::getline(file, line);) {
    if (line.starts_with(kBegin)) {
      entry = &entries[line.substr(kBegin.size())];
    } else if (entry != nullptr) {
      *entry += line + "\n";
    }
  }
  return entries;
}

// The lines that only one of them has.
std::string DifferenceOf(std::string_view recorded, std::string_view made) {
  const auto lines = [](std::string_view text, std::string_view other, std::string_view mark) {
    const std::vector<std::string_view> others = LinesOf(other);
    std::string shown;
    for (const std::string_view line : LinesOf(text)) {
      if (std::find(others.begin(), others.end(), line) == others.end())
        shown += fmt::format("  {} {}\n", mark, line);
    }
    return shown;
  };
  return lines(recorded, made, "-") + lines(made, recorded, "+");
}

bool IsWordCharacter(char c) {
  return (c >= '0' && c <= '9') || (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || c == '_';
}
bool IsDigit(char c) { return c >= '0' && c <= '9'; }

// The end of the number that begins at `at`; `at` if there is none.
size_t EndOfNumber(std::string_view text, size_t at, bool* is_exact, size_t* digits) {
  size_t end = at;
  *is_exact = true;
  *digits = 0;
  const auto skip = [&](bool count) {
    for (; end < text.size() && IsDigit(text[end]); ++end) *digits += count ? 1 : 0;
  };
  skip(true);
  if (end + 1 < text.size() && text[end] == '.' && IsDigit(text[end + 1])) {
    *is_exact = false;
    ++end;
    skip(true);
  }
  if (end + 1 < text.size() && text[end] == 'e') {
    size_t exponent = end + 1;
    if (text[exponent] == '-' || text[exponent] == '+') ++exponent;
    if (exponent < text.size() && IsDigit(text[exponent])) {
      *is_exact = false;
      end = exponent;
      skip(false);
    }
  }
  return end < text.size() && IsWordCharacter(text[end]) ? at : end;
}

// Puts 0 in the place of the number after each of these words; of hexadecimal ones too.
void ReplaceNumbersAfter(std::string_view word, std::string* text) {
  for (size_t at = text->find(word); at != std::string::npos; at = text->find(word, at)) {
    at += word.size();
    const size_t end = std::min(text->find_first_not_of("0123456789abcdef.+-", at), text->size());
    if (end > at) text->replace(at, end - at, "0");
  }
}

// Without those columns of a CSV table that say what simulating cost.
std::string WithoutColumns(std::string_view text) {
  const std::vector<std::string_view> lines = LinesOf(text);
  const auto split = [](std::string_view line) {
    std::vector<std::string_view> cells;
    bool is_quoted = false;
    size_t begin = 0;
    for (size_t i = 0; i <= line.size(); ++i) {
      if (i < line.size() && line[i] == '"') is_quoted = !is_quoted;
      if (i == line.size() || (line[i] == ',' && !is_quoted)) {
        cells.push_back(line.substr(begin, i - begin));
        begin = i + 1;
      }
    }
    return cells;
  };
  if (lines.empty() || lines[0].find("wall_seconds") == std::string_view::npos)
    return std::string(text);
  const std::vector<std::string_view> names = split(lines[0]);
  std::string kept;
  for (const std::string_view line : lines) {
    const std::vector<std::string_view> cells = split(line);
    for (size_t i = 0; i < cells.size(); ++i) {
      if (i < names.size() &&
          (names[i].ends_with("wall_seconds") || names[i].ends_with("peak_rss_bytes")))
        continue;
      kept += cells[i];
      kept += ',';
    }
    kept += '\n';
  }
  return kept;
}

}  // namespace

GoldenRecord::GoldenRecord(const std::string& name)
    : path_(SourceDir() + "/tests/golden/records/" + name + ".txt") {
  const char* asked = std::getenv("REHEARSE_GOLDEN");
  writes_ = asked != nullptr && std::string_view(asked) == "write";
  prints_ = asked != nullptr && std::string_view(asked) == "digests";
  is_partial_ = kIsSanitized;
  if (!writes_) known_ = ReadRecord(path_);
}

bool GoldenRecord::IsLeftOut(size_t number) {
  constexpr size_t kShare = 12;
  is_of_few_ = number % kShare == 0;
  const bool is_left_out = is_partial_ && !is_of_few_;
  if (is_left_out) is_of_few_ = true;  // what comes next need not ask
  return is_left_out;
}

std::string GoldenRecord::WithoutDigests(const std::string& key, std::string_view lines) {
  std::string text;
  for (size_t at = 0; at < lines.size();) {
    const size_t begin = std::min(lines.find(kDigestBegin, at), lines.size());
    text += lines.substr(at, begin - at);
    if (begin == lines.size()) break;
    const size_t end = lines.find(kDigestEnd, begin);
    const std::string_view digest = lines.substr(begin + 1, end - begin - 1);  // "name 89abcdef"
    Digests& sums = digests_[std::string(digest.substr(0, digest.rfind(' ')))];
    sums.all.Add(digest);
    if (is_of_few_) sums.of_few.Add(digest);
    if (prints_) fmt::print("{}: {}: {}\n", path_.substr(path_.rfind('/') + 1), key, digest);
    at = end + 1;
  }
  return text;
}

void GoldenRecord::Add(const std::string& key, const std::string& lines) {
  std::string text = WithoutDigests(key, lines);
  if (!text.empty() && text.back() != '\n') text += '\n';
  made_.emplace_back(key, text);
  is_of_few_ = true;
  if (!writes_) Compare(key, text);
}

void GoldenRecord::Compare(const std::string& key, const std::string& text) {
  const auto found = known_.find(key);
  if (found != known_.end() && found->second == text) return;
  if (++shown_ > kMostShown) return;
  ADD_FAILURE() << path_ << "\n  " << kBegin << key << "\n"
                << DifferenceOf(found == known_.end() ? "" : found->second, text)
                << "If this was meant: REHEARSE_GOLDEN=write build/release/tests/test_golden\n"
                << "Where a digest moved: REHEARSE_GOLDEN=digests, before and after";
}

void GoldenRecord::End() {
  std::string digests;
  for (const auto& [name, sums] : digests_) {
    if (is_partial_) {
      const auto known = LinesOf(known_[kDigestsKey]);
      const std::string end = fmt::format(" {:016x}", sums.of_few.hash());
      const bool is_known = std::any_of(known.begin(), known.end(), [&, &digest = name](auto line) {
        return line.starts_with(digest + " ") && line.ends_with(end);
      });
      if (!is_known) ADD_FAILURE() << path_ << ": the digest \"" << name << "\" differs";
    }
    digests += fmt::format("{} {:016x} {:016x}\n", name, sums.all.hash(), sums.of_few.hash());
  }
  if (!is_partial_ && !digests.empty()) Add(kDigestsKey, digests);
  if (writes_ && !is_partial_) {
    std::string text;
    for (const auto& [key, lines] : made_) text += fmt::format("{}{}\n{}", kBegin, key, lines);
    std::filesystem::create_directories(std::filesystem::path(path_).parent_path());
    std::ofstream(path_, std::ios::binary) << text;
    return;
  }
  if (shown_ > kMostShown)
    ADD_FAILURE() << path_ << ": " << shown_ - kMostShown << " more entries differ";
  for (const auto& [key, lines] : made_) known_.erase(key);
  if (!is_partial_ && !known_.empty())
    ADD_FAILURE() << path_ << ": " << known_.size() << " entries are no longer made, the first is "
                  << known_.begin()->first;
}

std::string RoundedNumbers(std::string_view text) {
  constexpr size_t kDigits = 9;
  std::string rounded;
  rounded.reserve(text.size());
  for (size_t at = 0; at < text.size();) {
    if (!IsDigit(text[at])) {
      rounded += text[at++];
      continue;
    }
    bool is_exact = true;
    size_t digits = 0;
    const size_t end = EndOfNumber(text, at, &is_exact, &digits);
    const bool begins = at == 0 || !(IsWordCharacter(text[at - 1]) || text[at - 1] == '.');
    if (begins && end > at && !is_exact && digits > kDigits) {
      rounded += fmt::format(
          "{:.{}g}", std::strtod(std::string(text.substr(at, end - at)).c_str(), nullptr), kDigits);
      at = end;
    } else {
      while (at < text.size() && IsWordCharacter(text[at])) rounded += text[at++];
    }
  }
  return rounded;
}

std::string DigestOf(std::string_view name, const Fnv1a& hash) {
  return fmt::format("{}{} {:016x}{}", kDigestBegin, name, hash.hash(), kDigestEnd);
}

std::string DigestOfBytes(std::string_view name, std::string_view bytes) {
  Fnv1a hash;
  hash.Add(bytes);
  return DigestOf(name, hash);
}

std::string DigestOfText(std::string_view name, std::string_view text) {
  return DigestOfBytes(name, RoundedNumbers(text));
}

std::string WithoutCosts(std::string_view text) {
  std::string kept = WithoutColumns(text);
  for (const std::string_view word : {"wall_seconds\": ", "wall_seconds\":", "peak_rss_bytes\": ",
                                      "peak_rss_bytes\":", "scenario_hash\": \""})
    ReplaceNumbersAfter(word, &kept);
  constexpr std::string_view kCost = "Simulated in ";
  for (size_t at = kept.find(kCost); at != std::string::npos; at = kept.find(kCost, at + 1)) {
    const size_t end = kept.find(':', at);  // the unit
    if (end != std::string::npos) kept.erase(at, end - at);
  }
  return kept;
}

}  // namespace rehearse

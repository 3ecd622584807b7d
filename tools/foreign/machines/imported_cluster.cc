#include "tools/foreign/machines/imported_cluster.h"

#include <algorithm>
#include <filesystem>

#include <fmt/format.h>

namespace rehearse {

void Remarks::Add(const std::string& what, const std::string& who) {
  constexpr size_t kNamed = 4;
  auto line = std::find_if(lines_.begin(), lines_.end(),
                           [&](const Line& known) { return known.what == what; });
  if (line == lines_.end()) line = lines_.insert(lines_.end(), {what, {}, 0});
  if (who.empty()) return;
  ++line->count;
  if (line->who.size() < kNamed) line->who.push_back(who);
}

std::vector<std::string> Remarks::Lines() const {
  std::vector<std::string> texts;
  for (const Line& line : lines_) {
    std::string text;
    for (size_t i = 0; i < line.who.size(); ++i) {
      const bool is_last = i + 1 == line.count;
      if (i > 0) text += is_last ? " and " : ", ";
      text += line.who[i];
    }
    if (line.count > line.who.size())
      text += fmt::format(" and {} more", line.count - line.who.size());
    texts.push_back(text.empty() ? line.what : text + ": " + line.what);
  }
  return texts;
}

std::string Quoted(std::string_view text) {
  constexpr size_t kLongest = 60;
  if (text.size() <= kLongest) return fmt::format("{:?}", text);
  return fmt::format("{:?}...", text.substr(0, kLongest));
}

std::string Printable(std::string_view text) {
  constexpr size_t kLongest = 100;
  std::string name(text.substr(0, kLongest));
  for (char& c : name)
    if (c < ' ' || c > '~') c = '?';
  return name;
}

void RefuseNonText(std::string_view text, const std::string& file, const std::string& what,
                   Escapes escapes) {
  constexpr size_t kLargest = size_t{64} << 20;
  if (text.find_first_not_of(" \t\r\n") == std::string_view::npos)
    throw Error({file, 0, ""}, fmt::format("the file is empty, expected {}", what));
  if (text.size() > kLargest)
    throw Error({file, 0, ""}, fmt::format("the file has {} bytes, expected {} of at most 64 MiB",
                                           text.size(), what));
  int line = 1;
  for (const char c : text) {
    if (c == '\n') ++line;
    const auto byte = static_cast<unsigned char>(c);
    constexpr unsigned char kEscape = 0x1b;
    if (byte >= ' ' || c == '\t' || c == '\r' || c == '\n') continue;
    if (byte == kEscape && escapes == Escapes::kAllowed) continue;
    throw Error({file, line, ""},
                fmt::format("found the byte 0x{:02x}, expected {}: this is not text", byte, what));
  }
}

std::string ClusterNameOf(const std::string& file) {
  const std::string stem = Printable(std::filesystem::path(file).stem().string());
  return stem.empty() ? "imported" : stem;
}

std::unique_ptr<Cluster> FinishImported(ClusterBuilder& cluster, const std::string& file) {
  try {
    return std::make_unique<Cluster>(cluster.Finish());
  } catch (const Error& error) {
    throw Error({file, 0, ""}, error.what());
  }
}

}  // namespace rehearse

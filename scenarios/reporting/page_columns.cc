#include "scenarios/reporting/page_columns.h"

#include <algorithm>
#include <array>

#include <nlohmann/json.hpp>

namespace rehearse {
namespace {

constexpr size_t kLongest = 10;  // bytes of a number

// Returns the end of what it wrote.
char* WriteNumber(int64_t value, char* to) {
  uint64_t rest = (static_cast<uint64_t>(value) << 1) ^ (value < 0 ? ~uint64_t{0} : 0);
  constexpr uint64_t kMore = 0x80;
  for (; rest >= kMore; rest >>= 7) *to++ = static_cast<char>(rest | kMore);
  *to++ = static_cast<char>(rest);
  return to;
}

}  // namespace

size_t PageColumns::AddColumn(const std::vector<int64_t>& values, bool rises) {
  const size_t begin = bytes_.size();
  constexpr size_t kAtOnce = 512;
  std::array<char, kAtOnce * kLongest> some{};
  int64_t before = 0;
  for (size_t i = 0; i < values.size();) {
    char* end = some.data();
    for (const size_t last = std::min(i + kAtOnce, values.size()); i < last; ++i) {
      end = WriteNumber(values[i] - before, end);
      if (rises) before = values[i];
    }
    bytes_.append(some.data(), end);
  }
  columns_.push_back({values.size(), bytes_.size() - begin, rises});
  return columns_.size() - 1;
}

size_t PageColumns::Add(const std::vector<int64_t>& values) { return AddColumn(values, false); }

size_t PageColumns::AddRising(const std::vector<int64_t>& values) {
  return AddColumn(values, true);
}

std::string PageColumns::Finish(nlohmann::ordered_json header) const {
  header["columns"] = nlohmann::ordered_json::array();
  for (const Column& column : columns_)
    header["columns"].push_back({column.values, column.bytes, column.rises});
  // Names may hold any bytes.
  const std::string text =
      header.dump(-1, ' ', false, nlohmann::ordered_json::error_handler_t::replace);
  std::string all;
  all.reserve(sizeof(uint32_t) + text.size() + bytes_.size());
  for (unsigned bit = 0; bit < 32; bit += 8) all += static_cast<char>((text.size() >> bit) & 0xff);
  all += text;
  all += bytes_;
  return all;
}

std::string Base64(std::string_view bytes) {
  constexpr std::string_view kLetters =
      "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/";
  std::string text;
  text.reserve((bytes.size() + 2) / 3 * 4);
  for (size_t i = 0; i < bytes.size(); i += 3) {
    uint32_t three = 0;
    for (size_t j = 0; j < 3; ++j)
      three = three << 8 | (i + j < bytes.size() ? static_cast<unsigned char>(bytes[i + j]) : 0);
    for (size_t j = 0; j < 4; ++j)
      text += i + j <= bytes.size() ? kLetters[three >> (18 - 6 * j) & 63] : '=';
  }
  return text;
}

}  // namespace rehearse

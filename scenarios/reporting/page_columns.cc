#include "scenarios/reporting/page_columns.h"

#include <nlohmann/json.hpp>

namespace rehearse {
namespace {

void AppendNumber(int64_t value, std::string* bytes) {
  uint64_t rest = (static_cast<uint64_t>(value) << 1) ^ (value < 0 ? ~uint64_t{0} : 0);
  constexpr uint64_t kMore = 0x80;
  for (; rest >= kMore; rest >>= 7) *bytes += static_cast<char>(rest | kMore);
  *bytes += static_cast<char>(rest);
}

}  // namespace

size_t PageColumns::AddColumn(const std::vector<int64_t>& values, bool rises) {
  const size_t begin = bytes_.size();
  int64_t before = 0;
  for (const int64_t value : values) {
    AppendNumber(value - before, &bytes_);
    if (rises) before = value;
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

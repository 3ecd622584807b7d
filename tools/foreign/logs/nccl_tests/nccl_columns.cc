#include "tools/foreign/logs/nccl_tests/nccl_columns.h"

#include <algorithm>
#include <cctype>
#include <charconv>
#include <cmath>
#include <utility>

namespace rehearse {
namespace {

constexpr double kLargestSize = 1125899906842624.0;  // 2^50, as in rehearse collective

constexpr std::pair<std::string_view, double> kTypes[] = {
    {"int8", 1},  {"uint8", 1},  {"char", 1},    {"int32", 4},    {"uint32", 4},  {"int", 4},
    {"int64", 8}, {"uint64", 8}, {"half", 2},    {"float16", 2},  {"fp16", 2},    {"bfloat16", 2},
    {"bf16", 2},  {"float", 4},  {"float32", 4}, {"fp32", 4},     {"double", 8},  {"float64", 8},
    {"fp64", 8},  {"f8e4m3", 1}, {"f8e5m2", 1},  {"fp8_e4m3", 1}, {"fp8_e5m2", 1}};
constexpr std::string_view kReductions[] = {"sum", "prod", "max", "min", "avg", "none", "mulsum"};

constexpr std::string_view kBlanks = " \t\r";

std::string_view TrimmedWord(std::string_view text) {
  const size_t begin = text.find_first_not_of(kBlanks);
  if (begin == std::string_view::npos) return {};
  return text.substr(begin, text.find_last_not_of(kBlanks) - begin + 1);
}

std::string Lower(std::string_view text) {
  std::string lower;
  for (const char c : text) lower += static_cast<char>(std::tolower(static_cast<unsigned char>(c)));
  return lower;
}

// The letters of "time(us)", "time_us_oop", "algbw (GB/s)" behind the name, piece by piece.
std::vector<std::string> Pieces(std::string_view text) {
  std::vector<std::string> pieces = {""};
  for (const char c : text) {
    if (std::isalpha(static_cast<unsigned char>(c)) != 0 || c == '/') {
      pieces.back() += c;
    } else if (!pieces.back().empty()) {
      pieces.emplace_back();
    }
  }
  return pieces;
}

std::optional<double> TimeUnitOf(std::string_view text) {
  for (const std::string& piece : Pieces(Lower(text))) {
    if (piece == "ns" || piece == "nsec") return 1e-9;
    if (piece == "us" || piece == "usec" || piece == "microseconds") return 1e-6;
    if (piece == "ms" || piece == "msec" || piece == "milliseconds") return 1e-3;
    if (piece == "s" || piece == "sec" || piece == "seconds") return 1;
  }
  return std::nullopt;
}

std::optional<double> SizeUnitOf(std::string_view text) {
  for (const std::string& piece : Pieces(Lower(text))) {
    if (piece == "b" || piece == "bytes") return 1;
    double unit = 1024;
    for (const char* prefix : {"k", "m", "g"}) {
      if (piece == std::string(prefix) + "b" || piece == std::string(prefix) + "ib") return unit;
      unit *= 1024;
    }
  }
  return std::nullopt;
}

// Bits or bytes, so capitals matter.
std::optional<double> BandwidthUnitOf(std::string_view text) {
  for (const std::string& piece : Pieces(text)) {
    if (piece == "GB/s" || piece == "GBps" || piece == "GBs") return 1e9;
    if (piece == "MB/s" || piece == "MBps" || piece == "MBs") return 1e6;
    if (piece == "Gb/s" || piece == "Gbps" || piece == "Gbit/s") return 1e9 / 8;
  }
  return std::nullopt;
}

}  // namespace

std::vector<std::string_view> NcclWords(std::string_view line, bool has_commas) {
  const std::string_view separators = has_commas ? "," : kBlanks;
  std::vector<std::string_view> words;
  size_t begin = 0;
  while (begin <= line.size()) {
    const size_t end = std::min(line.find_first_of(separators, begin), line.size());
    if (has_commas || end > begin) words.push_back(TrimmedWord(line.substr(begin, end - begin)));
    begin = end + 1;
  }
  return words;
}

std::optional<NcclColumns> ReadNcclHeading(std::string_view line) {
  NcclColumns columns;
  line = TrimmedWord(line);
  const bool is_comment = line.starts_with('#');
  if (is_comment) line.remove_prefix(1);
  columns.has_commas = line.find(',') != std::string_view::npos;
  if (is_comment && columns.has_commas) return std::nullopt;
  const auto names = NcclWords(line, columns.has_commas);
  for (size_t i = 0; i < names.size(); ++i) {
    const std::string name = Lower(names[i]);
    const auto first = [&](std::optional<size_t>& column) {
      if (column) return false;
      column = i;
      return true;
    };
    const auto unit_after = [&](size_t letters) { return names[i].substr(letters); };
    if (name.starts_with("size") && first(columns.size))
      columns.size_unit = SizeUnitOf(unit_after(4)).value_or(1);
    if (name.starts_with("count")) first(columns.count);
    if (name == "type") first(columns.type);
    if (name == "redop") first(columns.redop);
    if (name == "root") first(columns.root);
    if (name == "#wrong" || name == "wrong" || name == "error") first(columns.wrong);
    if (name.starts_with("algbw") && first(columns.algorithm_bandwidth))
      columns.bandwidth_unit = BandwidthUnitOf(unit_after(5)).value_or(1e9);
    if (name.starts_with("busbw") && first(columns.bus_bandwidth) && !columns.algorithm_bandwidth)
      columns.bandwidth_unit = BandwidthUnitOf(unit_after(5)).value_or(1e9);
    if (name.starts_with("timestamp")) {
      columns.has_timestamp = true;
    } else if (name.starts_with("time") || name == "cputime") {
      columns.is_cpu_time |= name == "cputime";
      if (first(columns.time)) {
        if (name != "cputime") columns.time_unit = TimeUnitOf(unit_after(4));
      } else if (columns.second == 0) {
        columns.second = i - *columns.time;
      }
    }
  }
  columns.count_of_columns = names.size();
  const bool has_figures = columns.time || columns.algorithm_bandwidth || columns.bus_bandwidth;
  if (!columns.size || !has_figures) return std::nullopt;
  // If "#" was lost or never there, words of a sentence must not be taken for names.
  const bool is_plain = !is_comment && !columns.has_commas;
  const bool has_bandwidth = columns.algorithm_bandwidth || columns.bus_bandwidth;
  if (is_plain && (*columns.size != 0 || !has_bandwidth)) return std::nullopt;
  return columns;
}

bool ReadNcclUnits(std::string_view line, NcclColumns& columns) {
  if (line.starts_with('#')) line.remove_prefix(1);
  line = TrimmedWord(line);
  if (!line.starts_with('(')) return false;
  bool has_size = false;
  bool has_time = false;
  bool has_bandwidth = false;
  for (const std::string_view word : NcclWords(line, columns.has_commas)) {
    if (const auto unit = SizeUnitOf(word); unit && !has_size) {
      columns.size_unit = *unit;
      has_size = true;
    } else if (const auto time = TimeUnitOf(word); time && !has_time) {
      columns.time_unit = time;
      has_time = true;
    } else if (const auto bandwidth = BandwidthUnitOf(word); bandwidth && !has_bandwidth) {
      columns.bandwidth_unit = *bandwidth;
      has_bandwidth = true;
    }
  }
  return true;
}

std::optional<std::vector<std::string_view>> NcclCells(const std::vector<std::string_view>& words,
                                                       const NcclColumns& columns) {
  const size_t all = columns.count_of_columns + (columns.has_timestamp ? 1 : 0);
  const auto fits = [&](size_t count) {
    return count == all || (columns.second > 0 && count + columns.second == all);
  };
  std::vector<std::string_view> cells = words;
  if (fits(words.size())) return cells;
  const bool may_be_blank = columns.redop && !columns.has_commas && words.size() > *columns.redop;
  if (!may_be_blank || !fits(words.size() + 1) || !NcclNumber(words[*columns.redop]))
    return std::nullopt;
  cells.insert(cells.begin() + static_cast<ptrdiff_t>(*columns.redop), std::string_view());
  return cells;
}

std::optional<double> NcclNumber(std::string_view word) {
  double value = 0;
  const auto [stop, fault] = std::from_chars(word.data(), word.data() + word.size(), value);
  if (word.empty() || fault != std::errc() || stop != word.data() + word.size() ||
      !std::isfinite(value))
    return std::nullopt;
  return value;
}

std::optional<Bytes> NcclSize(std::string_view word, double unit) {
  size_t digits = word.find_first_not_of("0123456789.");
  if (digits == std::string_view::npos) digits = word.size();
  const auto whole = NcclNumber(word);
  const auto number = whole ? whole : NcclNumber(word.substr(0, digits));
  std::string letters = whole ? "" : Lower(word.substr(digits));
  if (!number) return std::nullopt;
  double factor = unit;
  if (!letters.empty()) {
    factor = 1;
    if (letters.ends_with('b')) letters.pop_back();
    if (letters.size() == 2 && letters.ends_with('i')) letters.pop_back();
    constexpr std::string_view kPrefixes = "kmgt";
    if (letters.size() > 1 ||
        (letters.size() == 1 && kPrefixes.find(letters) == std::string_view::npos))
      return std::nullopt;
    if (!letters.empty())
      factor = std::pow(1024.0, static_cast<double>(1 + kPrefixes.find(letters)));
  }
  const double bytes = *number * factor;
  if (bytes < 0 || bytes > kLargestSize || bytes != std::floor(bytes)) return std::nullopt;
  return Bytes(bytes);
}

std::optional<double> NcclTypeSize(std::string_view type) {
  for (const auto& [name, size] : kTypes)
    if (name == type) return size;
  return std::nullopt;
}

std::string_view CellBefore(std::string_view word, size_t column, const NcclColumns& columns) {
  std::string_view longest;
  const auto consider = [&](std::string_view name) {
    if (word.starts_with(name) && name.size() > longest.size())
      longest = word.substr(0, name.size());
  };
  if (column == columns.type)
    for (const auto& [name, size] : kTypes) consider(name);
  if (column == columns.redop)
    for (const std::string_view name : kReductions) consider(name);
  if (column == columns.root) consider("-1");
  const bool counts_errors =
      columns.wrong && (column == *columns.wrong || column == *columns.wrong + columns.second);
  if (counts_errors) consider("N/A");
  if (longest.empty() && (column == columns.root || counts_errors)) {
    const size_t digits = std::min(word.find_first_not_of("0123456789"), word.size());
    longest = word.substr(0, digits);
  }
  return longest;
}

}  // namespace rehearse

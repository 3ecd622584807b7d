#include "tools/foreign/logs/nccl_tests/nccl_log.h"

#include <algorithm>
#include <cmath>
#include <utility>

#include <fmt/format.h>

#include "collectives/algorithms/ring.h"
#include "sim/base/error.h"
#include "tools/foreign/logs/nccl_tests/nccl_sections.h"

namespace rehearse {
namespace {

using enum CollectiveKind;

constexpr double kShortest = 1e-12;  // seconds: the clock's tick
constexpr double kLongest = 1e6;     // seconds

// ---- What the columns say about the collective --------------------------------------------------

struct Inferred {
  std::optional<CollectiveKind> kind;
  std::optional<uint32_t> share;  // of a size that the count is: 1 or the number of ranks
  std::string why_not;
};

// size / (count x type), the same in all rows; nothing if they disagree.
std::optional<uint32_t> ShareOf(const std::vector<NcclLogRow>& rows) {
  const NcclLogRow* largest = nullptr;
  for (const NcclLogRow& row : rows) {
    if (row.count > 0 && row.type_size > 0 && (largest == nullptr || row.count > largest->count))
      largest = &row;
  }
  if (largest == nullptr) return std::nullopt;
  const double share = std::round(largest->bytes.value() / (largest->count * largest->type_size));
  const bool all_agree = std::all_of(rows.begin(), rows.end(), [&](const NcclLogRow& row) {
    if (row.count == 0 || row.type_size == 0) return true;
    return std::floor(row.bytes.value() / (row.type_size * share)) == row.count;
  });
  if (share < 1 || share > 1e9 || !all_agree) return std::nullopt;
  return static_cast<uint32_t>(share);
}

Inferred InferKind(const NcclSection& section, std::optional<uint32_t> ranks) {
  Inferred inferred;
  const std::vector<NcclLogRow>& rows = section.rows;
  inferred.share = ShareOf(rows);
  if (!inferred.share) return inferred;
  const uint32_t share = *inferred.share;
  if (share > 1 && ranks && share != *ranks) {
    inferred.why_not =
        fmt::format("a size is {} times its count, but {} ranks take part", share, *ranks);
    return inferred;
  }
  const std::string& reduction = rows.front().reduction;
  const bool reduces = !reduction.empty() && reduction != "none";
  const bool has_root = rows.front().root >= 0;
  const bool is_whole = share == 1;
  if (reduces) {
    if (has_root && is_whole) inferred.kind = kReduce;
    if (!has_root) inferred.kind = is_whole ? kAllReduce : kReduceScatter;
  } else if (has_root) {
    if (is_whole) inferred.kind = kBroadcast;
    if (!is_whole) inferred.why_not = "gather and scatter are not simulated";
  } else if (is_whole) {
    // A CSV table may have left out the columns that would tell.
    if (section.columns.redop) inferred.kind = kSendReceive;
  } else if (!section.columns.redop) {
    inferred.kind = kAllGather;
  } else if (reduction.empty()) {
    inferred.kind = kAllToAll;
  } else {
    const auto checked = [&](bool NcclLogRow::*where) {
      return std::any_of(rows.begin(), rows.end(),
                         [&](const NcclLogRow& row) { return row.*where; });
    };
    if (checked(&NcclLogRow::is_checked_in_place)) {
      inferred.kind = kAllGather;
    } else if (checked(&NcclLogRow::is_checked)) {
      inferred.kind = kAllToAll;
    } else {
      inferred.why_not = "all-gather and all-to-all look alike if results are not checked";
    }
  }
  return inferred;
}
// ---- From sections to tables --------------------------------------------------------------------

// The unit with which size / time is nearest to algbw.
double TimeUnitOf(const NcclSection& section) {
  constexpr double kMicro = 1e-6;
  if (section.columns.time_unit) return *section.columns.time_unit;
  const NcclLogRow* fastest = nullptr;  // which has the most digits
  for (const NcclLogRow& row : section.rows) {
    if (!row.time || !row.algorithm_bandwidth) continue;
    if (fastest == nullptr || *row.algorithm_bandwidth > *fastest->algorithm_bandwidth)
      fastest = &row;
  }
  if (fastest == nullptr) return kMicro;
  const double seconds = fastest->bytes.value() / *fastest->algorithm_bandwidth;
  double best = kMicro;
  for (const double unit : {1e-9, 1e-3, 1.0}) {
    const auto distance = [&](double candidate) {
      return std::abs(std::log(*fastest->time * candidate / seconds));
    };
    if (distance(unit) < distance(best)) best = unit;
  }
  return best;
}

class TableMaker {
 public:
  TableMaker(const std::string& file, const NcclSection& section)
      : file_(file), section_(section) {}

  // `ranks` override the text.
  NcclTable Make(std::optional<CollectiveKind> kind, std::optional<uint32_t> ranks) {
    NcclTable table;
    table.line = section_.line;
    TakeRanks(ranks, &table);
    const Inferred inferred = InferKind(section_, table.ranks);
    if (!table.ranks && inferred.share > 1u) table.ranks = inferred.share;
    table.kind = kind;
    if (!table.kind && section_.program) table.kind = section_.program->kind;
    if (!table.kind) table.kind = inferred.kind;
    if (!table.kind) table.why_no_kind = inferred.why_not;
    const double time_unit = TimeUnitOf(section_);
    for (const NcclLogRow& row : section_.rows)
      table.rows.push_back({row.bytes, TimeOf(row, table, time_unit)});
    return table;
  }

 private:
  void TakeRanks(std::optional<uint32_t> ranks, NcclTable* table) const {
    table->ranks = ranks ? ranks : section_.written_ranks;
    if (table->ranks || section_.ranks.groups.empty()) return;
    std::vector<std::vector<uint32_t>> groups = section_.ranks.Groups();
    if (groups.size() == 1) {
      table->ranks = groups.front().back() + 1;  // a long list may be cut
      return;
    }
    const size_t size = groups.front().size();
    const bool are_alike = std::all_of(groups.begin(), groups.end(),
                                       [&](const auto& group) { return group.size() == size; });
    if (!are_alike) return;
    table->ranks = static_cast<uint32_t>(size);
    table->groups = std::move(groups);
  }

  Seconds TimeOf(const NcclLogRow& row, const NcclTable& table, double time_unit) const {
    double seconds = 0;
    if (row.time) {
      // 16.31 us are 16.31 / 1e6, to the last digit.
      seconds = time_unit < 1 ? *row.time / std::round(1 / time_unit) : *row.time * time_unit;
    } else if (row.algorithm_bandwidth) {
      seconds = row.bytes.value() / *row.algorithm_bandwidth;
    } else if (row.bus_bandwidth) {
      if (!table.kind || !table.ranks)
        Fail(row.line,
             "a bus bandwidth alone gives the time only if the kind and the ranks are known; give "
             "--kind all-reduce --ranks 0-7, for example");
      // busbw = algbw times a factor that does not depend on the time.
      const BytesPerSecond factor = BusBandwidth(*table.kind, *table.ranks, Bytes(1), Seconds(1));
      seconds = row.bytes.value() * factor.value() / *row.bus_bandwidth;
    } else {
      Fail(row.line, "found neither a time nor a bandwidth above 0");
    }
    if (!(seconds >= kShortest) || seconds > kLongest)
      Fail(row.line, fmt::format("a time of {} s makes no sense", seconds));
    return Seconds(seconds);
  }

  [[noreturn]] void Fail(int line, const std::string& message) const {
    throw Error({file_, line, ""}, message);
  }

  const std::string& file_;
  const NcclSection& section_;
};

}  // namespace

bool LooksLikeNcclLog(std::string_view text) { return NamesNcclColumns(text); }

NcclLog ReadNcclLog(std::string_view text, const std::string& file,
                    std::optional<CollectiveKind> kind, std::optional<uint32_t> ranks) {
  NcclSections read = ReadNcclSections(text, file);
  const std::vector<NcclSection>& sections = read.sections;
  NcclLog log;
  log.remarks = std::move(read.remarks);
  std::string why_none;
  const auto leave_out = [&](const NcclSection& section, const std::string& why) {
    if (why_none.empty()) why_none = why;
    log.remarks.push_back(fmt::format("{}:{}: {}; the table is left out", file, section.line, why));
  };
  for (const NcclSection& section : sections) {
    const bool overrides = kind && sections.size() == 1;
    if (!overrides && section.program && !section.program->kind) {
      leave_out(section, fmt::format("{} is not simulated", section.program->name));
      continue;
    }
    NcclTable table = TableMaker(file, section).Make(overrides ? kind : std::nullopt, ranks);
    if (kind && table.kind && *table.kind != *kind) {
      leave_out(section, fmt::format("found {}, expected {}", Name(*table.kind), Name(*kind)));
      continue;
    }
    if (kind && !table.kind) table = TableMaker(file, section).Make(kind, ranks);
    if (!table.kind && sections.size() > 1) {
      leave_out(section, table.why_no_kind.empty() ? "it is not known which collective it is for"
                                                   : table.why_no_kind);
      continue;
    }
    if (section.columns.is_cpu_time)
      log.remarks.push_back(fmt::format(
          "{}:{}: times under \"cputime\" are those of launching, not of the collective", file,
          section.line));
    log.tables.push_back(std::move(table));
  }
  if (log.tables.empty()) {
    throw Error({file, sections.front().line, ""},
                kind ? fmt::format("found no table of {}", Name(*kind))
                     : why_none + ", and there is no other table");
  }
  return log;
}

}  // namespace rehearse

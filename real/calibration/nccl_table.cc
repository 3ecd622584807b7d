#include "real/calibration/nccl_table.h"

#include <cmath>

#include <fmt/format.h>

#include "collectives/algorithms/ring.h"
#include "sim/base/error.h"

namespace rehearse {
namespace {

constexpr NcclTest kTests[] = {
    {CollectiveKind::kAllReduce, "all_reduce_perf", "sum", false, false},
    {CollectiveKind::kAllGather, "all_gather_perf", "none", false, true},
    {CollectiveKind::kReduceScatter, "reduce_scatter_perf", "sum", false, true},
    {CollectiveKind::kAllToAll, "alltoall_perf", "none", false, true},
    {CollectiveKind::kBroadcast, "broadcast_perf", "none", true, false},
    {CollectiveKind::kReduce, "reduce_perf", "sum", true, false},
    {CollectiveKind::kSendReceive, "sendrecv_perf", "none", false, false},
};

// Writes as many digits as nccl-tests do: two decimals below 100 us, one below 10 ms.
std::string TimeText(Seconds time) {
  const double microseconds = time.value() * 1e6;
  if (microseconds < 100) return fmt::format("{:.2f}", microseconds);
  if (microseconds < 10000) return fmt::format("{:.1f}", microseconds);
  return fmt::format("{:.0f}", microseconds);
}

}  // namespace

const NcclTest* FindNcclTest(CollectiveKind kind) {
  for (const NcclTest& test : kTests) {
    if (test.kind == kind) return &test;
  }
  return nullptr;
}

std::string WriteNcclTable(const NcclTable& table, uint32_t root,
                           const std::vector<std::string>& comments) {
  CHECK(table.kind && table.ranks && !table.rows.empty());
  const NcclTest* const test = FindNcclTest(*table.kind);
  std::string text;
  if (test) text += fmt::format("# Collective test starting: {}\n", test->program);
  for (const std::string& comment : comments) text += "# " + comment + "\n";
  text +=
      "#\n"
      "#                                                              out-of-place                "
      "       in-place          \n"
      "#       size         count      type   redop    root     time   algbw   busbw #wrong     "
      "time   algbw   busbw #wrong\n"
      "#        (B)    (elements)                               (us)  (GB/s)  (GB/s)            "
      "(us)  (GB/s)  (GB/s)       \n";
  const double parts = test && test->counts_a_part ? *table.ranks : 1;
  const std::string place = test && test->has_root ? fmt::format("{}", root) : std::string("-1");
  // nccl-tests cannot check these results in place.
  const bool is_paired =
      table.kind == CollectiveKind::kAllToAll || table.kind == CollectiveKind::kSendReceive;
  const char* const in_place = is_paired ? "N/A" : "0";
  double sum = 0;
  for (const NcclRow& row : table.rows) {
    const double algorithm = (row.bytes / row.time).value() / 1e9;
    const double bus = BusBandwidth(*table.kind, *table.ranks, row.bytes, row.time).value() / 1e9;
    const std::string numbers =
        fmt::format(" {:>8} {:>7.2f} {:>7.2f}", TimeText(row.time), algorithm, bus);
    text += fmt::format("{:>12.0f} {:>13.0f} {:>9} {:>7} {:>7}{} {:>6}{} {:>6}\n",
                        row.bytes.value(), std::floor(row.bytes.value() / 4 / parts), "float",
                        test ? test->reduction : "none", place, numbers, 0, numbers, in_place);
    sum += bus;
  }
  text += "# Out of bounds values : 0 OK\n";
  text += fmt::format("# Avg bus bandwidth    : {:.4f}\n",
                      sum / static_cast<double>(table.rows.size()));
  return text;
}

}  // namespace rehearse

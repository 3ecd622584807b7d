// What nccl-tests prints, and tables with commas.
#include <optional>

#include "real/calibration/nccl_table.h"
#include "tests/fuzz/corpus.h"
#include "tests/fuzz/fuzz_target.h"
#include "tools/foreign/logs/nccl_tests/nccl_log.h"

namespace rehearse {
namespace {

void ReadLog(std::string_view input) {
  LooksLikeNcclLog(input);
  ReadNcclLog(input, "nccl.log", std::nullopt, std::nullopt);
}

std::vector<std::string> LogSeeds() {
  const NcclTable table{.kind = CollectiveKind::kAllReduce,
                        .ranks = 8,
                        .rows = {{Bytes(1024), Seconds(2e-5)}, {Bytes(1 << 20), Seconds(5e-5)}}};
  const std::string ours = WriteNcclTable(table, 0, {"dgx-a100"});
  return {
      ours,
      "# nThread 1 nGpus 8 minBytes 8 maxBytes 134217728 step: 2(factor)\n#  Rank  0 Group  0 Pid  "
      "1 "
      "on box device  0 [0x07] A100\n#  Rank  1 Group  0 Pid  1 on box device  1 [0x0f] A100\n" +
          ours,
      "[1,0]<stdout>:" + ours,
      "#   size   count   type  redop  root   time  algbw  busbw #wrong   time  algbw  busbw "
      "#wrong\n"
      "  1048576   32768 float none -1 50.0 20.97 36.70 0  51.0 20.56 35.98 N/A\n"
      "# Avg bus bandwidth    : 36.0\n",
      "size,time,algbw,busbw\n1MiB,50us,20.97,36.7\n2MiB,80us,26.2,45.9\n",
      "collective;bytes;busbw (GB/s)\nall_reduce_perf;1048576;36.7\n"};
}

std::vector<std::string> LogWords() {
  return {"#",
          "size",
          "count",
          "type",
          "redop",
          "root",
          "time",
          "algbw",
          "busbw",
          "#wrong",
          "(us)",
          "(GB/s)",
          "(B)",
          "float",
          "half",
          "bfloat16",
          "sum",
          "none",
          "-1",
          "N/A",
          "all_reduce_perf",
          "all_gather_perf",
          "reduce_scatter_perf",
          "alltoall_perf",
          "sendrecv_perf",
          "gather_perf",
          "# nThread 1 nGpus 8",
          "Rank  0 Group  0 Pid 1 on",
          "nan",
          "inf",
          "0.00",
          "1e308",
          "\n",
          ",",
          ";",
          "\t",
          "# Out of bounds values : 0 OK",
          "NCCL INFO",
          "[1,0]<stdout>:",
          "0: ",
          "[pod/a/b] ",
          "2024-05-01T12:34:56.789Z ",
          "May  1 12:34:56 ",
          "node-01: ",
          "worker-0 | ",
          "\x1b[32m",
          "[0m",
          "out-of-place",
          "in-place"};
}

const FuzzTargetRow kLogRow({"nccl_log", ReadLog, LogSeeds, LogWords});

}  // namespace
}  // namespace rehearse

// Measured times of operators, a CSV file, applied to two machines.
#include "sim/base/csv_file.h"
#include "tests/fuzz/corpus.h"
#include "tests/fuzz/fuzz_target.h"
#include "topology/files/device_points_file.h"

namespace rehearse {
namespace {

void ReadPointsText(std::string_view input) {
  const DevicePointsFile file = ReadDevicePoints(ParseCsvFile(input, "points.csv"));
  ReadDevicePoints(ParseCsvFile(ToCsv(file.points), "written.csv"));
  ApplyDevicePoints(TwoMachines(), file);
}

std::vector<std::string> PointsSeeds() {
  return {
      "op,m,n,k,heads,head_dim,sequence,dtype,microseconds\n"
      "gemm,4096,8192,8192,,,,bf16,2400.5\nattention,,,,32,128,4096,bf16,1300\n"
      "attention-backward,,,,32,128,4096,bf16,3500\n",
      "# mine\nop,mode,batch,m,n,k,causal,dtype,microseconds,heads,head_dim,sequence\n"
      "gemm,NT,4,1024,1024,1024,,fp32,900,,,\n\"attention\",,2,,,,0,bf16,500,16,64,2048\n"};
}

std::vector<std::string> PointsWords() {
  return {"op",
          "gemm",
          "attention",
          "attention-backward",
          "m",
          "n",
          "k",
          "heads",
          "mode",
          "NN",
          "NT",
          "TN",
          "bf16",
          "fp32",
          ",",
          "\n",
          "\"",
          "\"\"",
          "#",
          "batch",
          "causal",
          "dtype",
          "sequence",
          "head_dim",
          "microseconds",
          "1e9",
          "0",
          "-1",
          "1099511627777",
          "\r\n",
          "\xef\xbb\xbf"};
}

const FuzzTargetRow kPointsRow({"device_points", ReadPointsText, PointsSeeds, PointsWords});

}  // namespace
}  // namespace rehearse

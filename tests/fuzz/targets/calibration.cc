// A machine as measured, applied to two machines.
#include "topology/files/calibration.h"

#include "sim/base/json_document.h"
#include "sim/base/json_reader.h"
#include "tests/fuzz/corpus.h"
#include "tests/fuzz/fuzz_target.h"

namespace rehearse {
namespace {

void ReadCalibrationText(std::string_view input) {
  const JsonDocument document = JsonDocument::FromText(input, "calibration.json");
  const Calibration calibration = ReadCalibration(document.Root());
  ApplyCalibration(TwoMachines(), calibration);
}

std::vector<std::string> CalibrationSeeds() {
  return {R"({"schema": "rehearse.calibration.v1", "cluster": "dgx-a100",
 "about": {"machine": {"processor": "a", "cores": 2}, "representative": true},
 "links": [{"kind": "nvlink", "bandwidth": "300GBps", "efficiency": 0.742}],
 "collective_overhead": "26.8us", "channel_overhead": "1.3us", "host_cores": 2,
 "launch_overhead": "2.1us", "slowdown": {"gemm": 0.1}})",
          R"({"schema": "rehearse.calibration.v1",
 "kernels": {"launch": "1us", "products": [{"mode": "NN", "dtype": "bf16",
  "points": [{"m": 8, "n": 8, "k": 8, "time": "5us"}]}],
  "bytes": [{"kernel": "gelu", "bandwidth": "1GBps", "overhead": "1us"}]},
 "collectives": [{"ranks": 2, "kinds": [{"kind": "all-reduce",
  "points": [{"bytes": "1KiB", "time": "5us"}, {"bytes": "1MiB", "time": "50us"}]}]}],
 "samples": [], "fit": {}})"};
}

std::vector<std::string> CalibrationWords() { return SchemaWords("calibration"); }

const FuzzTargetRow kCalibrationRow({"calibration", ReadCalibrationText, CalibrationSeeds,
                                     CalibrationWords, FuzzLanguage::kJson});

}  // namespace
}  // namespace rehearse

// How much compute and communication slow each other down on a device, from probes in which they
// meet (MakeEncounterProbe).
//
// In one encounter on one rank, the compute takes T alone and T' beside the all-reduce, which is
// active for o of it. If the compute runs at 1/(1 + s) meanwhile,
//   T = (T' − o) + o/(1 + s),   so   s = o/(T − T' + o) − 1,   at least 0;
// and the same for the all-reduce beside the compute. If o is less than half of T', the encounter
// says nothing. For products, 1 + s = (1 + gemm) · waves beside / waves alone
// (topology/devices/device.h).
// A search tries tiles and numbers of multiprocessors taken; for each, `gemm` is the median of what
// waves leave unexplained. The smallest mean relative error of 1 + s wins, and waves are used only
// if they halve the error of a plain factor. A calibration records both errors.
#pragma once

#include <cstdint>
#include <optional>
#include <vector>

#include <nlohmann/json_fwd.hpp>

#include "real/calibration/calibration_fit.h"
#include "real/calibration/probe.h"
#include "real/calibration/probe_schedule.h"
#include "topology/devices/device.h"

namespace rehearse {

struct EncounterSamples {
  Encounter encounter;
  std::vector<double> compute;  // s, of each step and rank where they met
  std::vector<double> communication;
  uint32_t apart = 0;  // where they did not
};

// All ranks call it; rank 0 knows.
std::vector<EncounterSamples> MeasureEncounters(const std::vector<Encounter>& encounters,
                                                DType dtype, Transport& transport,
                                                const ProbeOptions& options);

struct InterferenceFit {
  Slowdown slowdown;
  ErrorSummary plain_errors;  // of 1 + s of products, by one factor for all
  ErrorSummary wave_errors;   // by waves
};
// Returns nothing if nothing met. `multiprocessors` is the device's.
std::optional<InterferenceFit> FitInterference(const std::vector<EncounterSamples>& samples,
                                               uint32_t multiprocessors);

// s for one duration; nothing if they did not meet for long enough, or if it stood still.
std::optional<double> SlowdownFrom(Seconds alone, Seconds beside, Seconds overlap);

nlohmann::ordered_json ToJson(const EncounterSamples& samples);

}  // namespace rehearse

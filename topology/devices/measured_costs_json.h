// Measured costs as part of a calibration file: exactly topology/devices/measured_costs.h, sizes
// and times in SI.
//
//   "kernels": { "computes_in": "fp32",
//     "costs": [ {"kernel": "gemm", "mode": "NN", "dtype": "fp32",
//                 "terms": ["constant", "2mnk", ...], "coefficients": [1e-6, ...],
//                 "points": [{"m": 64, "n": 64, "k": 64, "seconds": 1e-5}, ...]},
//                {"kernel": "norm", "dtype": "fp32", "knots_bytes": [1048576], "terms": [...],
//                 "coefficients": [...],
//                 "points": [{"bytes": 65536, "flops": 0, "seconds": 2e-5}, ...]} ] }
//   "collectives": [ { "ranks": 2, "transport": "threads", "computes_in": "fp32",
//     "costs": [ {"kind": "all-reduce", "ranks": 2, "steps": [[bytes, seconds], ...]} ],
//     "message": [[bytes, seconds], ...] } ]
//
// "terms", "held_out_errors", "in_place" and "straight_line" are for the reader of the file.
#pragma once

#include <nlohmann/json_fwd.hpp>

#include "sim/base/json_fields.h"
#include "topology/devices/measured_costs.h"

namespace rehearse {

const Fields<MeasuredKernels>& MeasuredKernelsFields();
const Fields<MeasuredCollectives>& MeasuredCollectivesFields();

nlohmann::ordered_json ToJson(const CostCurve& curve);

}  // namespace rehearse

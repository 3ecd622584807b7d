// The tables of a scenario's "strategy", one for each kind, which bind its keys to the options of
// the strategies. Sizes must all be given, and switches unless a software stack sets them: nothing
// is silently defaulted.
#pragma once

#include "sim/base/json_fields.h"
#include "sim/base/json_shape.h"
#include "workloads/strategies/strategy_4d.h"
#include "workloads/strategies/strategy_atp.h"
#include "workloads/strategies/strategy_combined.h"
#include "workloads/strategies/strategy_summa.h"

namespace rehearse {

inline constexpr int64_t kMostMeshRanks = 1 << 22;

// AxoNN's grid is given by the first paper's names (column, row, depth) or the second's (y, x, z).
inline constexpr const char* kColumnRowDepth = "named column, row, depth";
inline constexpr const char* kXyz = "named x, y, z";

const Fields<FourDOptions>& FourDFields();
const Fields<AtpOptions>& AtpFields();
const Fields<SummaOptions>& SummaFields();
// Presets of the combined strategy (workloads/strategies/strategy_presets.h), and all of it.
const Fields<CombinedOptions>& MegatronFields();
const Fields<CombinedOptions>& DataParallelFields();
const Fields<CombinedOptions>& Zero1Fields();
const Fields<CombinedOptions>& Zero2Fields();
const Fields<CombinedOptions>& FsdpFields();
const Fields<CombinedOptions>& CombinedFields();
// SBP by numbers of ranks, by layouts on a mesh, and the layouts of one product.
const ObjectShape& SbpNumbersShape();
const ObjectShape& SbpLayoutsShape();
const ObjectShape& SbpProductShape();

}  // namespace rehearse

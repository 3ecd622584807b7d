// The tables of a scenario's "strategy", one for each kind. Sizes must all be given, and switches
// unless a software stack sets them: nothing is silently defaulted.
#pragma once

#include "sim/base/json_shape.h"

namespace rehearse {

inline constexpr int64_t kMostMeshRanks = 1 << 22;

// AxoNN's grid is given by the first paper's names (column, row, depth) or the second's (y, x, z).
inline constexpr const char* kColumnRowDepth = "named column, row, depth";
inline constexpr const char* kXyz = "named x, y, z";

const ObjectShape& FourDShape();
const ObjectShape& MegatronShape();
const ObjectShape& DataParallelShape();
const ObjectShape& Zero1Shape();
const ObjectShape& Zero2Shape();
const ObjectShape& FsdpShape();
const ObjectShape& CombinedShape();
const ObjectShape& AtpShape();
const ObjectShape& SummaShape();
// SBP by numbers of ranks, by layouts on a mesh, and the layouts of one product.
const ObjectShape& SbpNumbersShape();
const ObjectShape& SbpLayoutsShape();
const ObjectShape& SbpProductShape();

}  // namespace rehearse

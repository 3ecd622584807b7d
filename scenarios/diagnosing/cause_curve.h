// What a cause makes of a log's times, at all of its strengths: it is simulated at some of them,
// and interpolated between.
#pragma once

#include <optional>
#include <vector>

#include "scenarios/diagnosing/collective_cause.h"
#include "scenarios/diagnosing/weighing.h"
#include "sim/base/quantity.h"

namespace rehearse {

// The sizes of each table of a run.
using SizesOfTables = std::vector<std::vector<Bytes>>;

// The natural logarithms of the times in seconds, table after table. Throws Error where the run
// cannot be.
std::vector<double> SimulateLogTimes(const CollectiveRun& run, const SizesOfTables& sizes);

// Where a seed decides and none is given: the run with the one, of kRoutingSeeds, whose times are
// nearest to the medians over all of them, and the standard deviation of each row's logarithm over
// them. A cause is simulated with that seed, rather than with all. Else the run, and no deviation.
struct SeededRun {
  CollectiveRun run;
  std::vector<double> deviation;
};
SeededRun WithTypicalSeed(const CollectiveRun& run, const SizesOfTables& sizes);

struct CauseCurve : StrengthCurve {
  const CollectiveCause* cause = nullptr;
};

// Nothing if the cause cannot be here, or changes no time by more than a fiftieth.
std::optional<CauseCurve> SimulateCause(const CollectiveCause& cause, const CollectiveRun& run,
                                        const SizesOfTables& sizes,
                                        const std::vector<double>& expected);

// Of all rows of the table, in its order, several at once.
std::vector<CauseCurve> SimulateCauses(const CollectiveRun& run, const SizesOfTables& sizes,
                                       const std::vector<double>& expected);

}  // namespace rehearse

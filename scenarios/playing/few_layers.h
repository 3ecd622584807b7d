// A step of a network with many equal layers, worked out from one with few.
//
// Layers that equal each other take equally long, to the picosecond, once the first ones have
// passed: the engine's state when a layer begins is the same as when the one before it began. So
// the network is planned and played with a handful of its layers (workloads/planner/fewer_layers.h;
// the norm of the gradients and Adam have the size of all), and what lies between two layers of the
// timeline is repeated as often as layers are missing. The result is that of the whole step, its
// hash included, except for the engine's counts of what it played.
//
// Nothing is assumed about the timeline, it is looked at: for each stretch of the role in which
// layers follow each other (sim/schedule/stretches.h), two neighbouring layers on every rank must
// do everything at the same times, one layer's time later, and nothing else may be under way
// meanwhile. Then whatever determines how the second one goes on also determined the first. Only
// where gradients are summed up behind the way back, all layers are played, as others' last
// gradients may still be on their way.
// Wherever that does not hold, or layers are not equal, there is no answer, and the caller plays
// the whole step. Spans of the missing layers are written out only for the timeline's hash: without
// it, sums over the timeline count what is repeated as often as it would be.
#pragma once

#include <optional>

#include "collectives/lowering/group_memory.h"
#include "scenarios/playing/layer_memory.h"
#include "scenarios/readers/scenario.h"
#include "sim/base/progress.h"
#include "sim/report/result.h"
#include "workloads/planner/fewer_layers.h"

namespace rehearse {

struct FewLayersOptions {
  ProgressObserver* observer = &NoObserver();
  GroupMemory* memory = nullptr;  // as for PlayJobs()
  LayerMemory* layers = nullptr;  // likewise optional
  bool hash = true;               // Result::timeline_hash
  // What keeps too much for any device is not planned to the end: KeepsTooMuch is thrown
  // (scenarios/playing/memory_fit.h).
  bool bounds_memory = false;
};

// The scenario, whose only job is planned, with fewer layers: a part of it that is played in order
// to tell how the whole goes.
Scenario WithFewer(const Scenario& scenario, FewerLayers fewer);

// Throws Error if the step does not fit into the devices' memory, as Prepare() does, and whatever
// the observer throws.
std::optional<Result> RehearseFewLayers(const Scenario& scenario,
                                        const FewLayersOptions& options = {});

}  // namespace rehearse

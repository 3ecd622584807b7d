// How many layers each stage of a pipeline gets: the rules of the software that cuts networks.
//
// A unit is one layer, or what comes before the layers (the embedding) or after them (the last
// norm, the output layer, the loss): workloads/planner/stages.h. All return the units of each
// stage, in order, and throw Error at `place` if the rule cannot be kept. Pure functions.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "sim/base/error.h"
#include "workloads/networks/network.h"

namespace rehearse {

// In what respect stages are made equal.
enum class StageSplit : uint8_t {
  // Layers; embedding and output layer come on top at the ends (Megatron-LM). They must divide.
  kLayers,
  // Layers, embedding and output layer counting as one each (torchtitan's input_weight and
  // output_weight; Megatron-LM's account-for-...-in-pipeline-split). The first stages have one more
  // if they do not divide.
  kLayersAndEnds,
  kParameters,  // the largest number is as small as possible (DeepSpeed's PipelineModule)
  // Of products and attention cores; the others are then as equal as that allows.
  kFlops,
};
std::vector<uint32_t> SplitIntoStages(const Network& network, StageSplit split, uint32_t stages,
                                      const Place& place = {});

// Cuts weights into `runs` runs of at least one, whose heaviest is as light as possible; of such
// cuts, that with the least sum of squares (a long output layer would otherwise leave the stages
// before it almost empty). Weights are not negative, and at least as many as runs. Time: weights
// times what a run holds, times runs.
std::vector<uint32_t> EvenRuns(const std::vector<double>& weights, uint32_t runs);

// Layers as evenly as possible, the first stages with one more if they do not divide; embedding and
// output layer on top.
std::vector<uint32_t> EvenStages(const Network& network, uint32_t stages, const Place& place = {});

// So many layers each, embedding and output layer on top. A stage with one of these may have no
// layers.
std::vector<uint32_t> StagesOfLayers(const Network& network, const std::vector<uint32_t>& layers,
                                     const Place& place = {});

// Megatron-LM's --pipeline-model-parallel-layout: stages are separated by '|', E is the embedding,
// t a layer, m the one that predicts further ahead, L the output layer with the loss; a symbol or a
// group in parentheses may be followed by *N. "Et*3|(tt|)*6L". m is in the stage of L.
uint32_t CountStagesOfLayout(const std::string& layout, const Place& place = {});
std::vector<uint32_t> StagesOfLayout(const Network& network, const std::string& layout,
                                     uint32_t stages, const Place& place = {});

}  // namespace rehearse

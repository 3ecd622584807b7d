// Reads a scenario's "pipeline": each of its ranks is a mesh of the strategy.
//
//   "pipeline": {"stages": 8,                ranks of the pipeline, each a mesh of the strategy
//                "schedule": "1f1b",         workloads/planner/pipeline.h has them all
//                "virtual": 1,               stages of a rank; 2 where the schedule says so
//                "split": "layers",          or "layers-and-ends", "parameters", "flops":
//                                            workloads/planner/stage_sizes.h
//                "layers": [4, 5, 5, 4],     instead: of every stage
//                "first_layers": 3,          or of the first and the last stage only, the others
//                "last_layers": 3,           equal (Megatron-LM's decoder-first-...)
//                "layout": "Et*3|(tt|)*6L",  or as Megatron-LM writes stages
//                "order": "mine.csv",        instead of a schedule: a line a rank, as
//                                            torch.distributed.pipelining writes it; or a list of
//                                            such lines
//                "overlap_messages": true,   false: kernels wait for them (Megatron-LM's 1F1B)
//                "keep_messages": false,     true: all stay until the step ends (PyTorch)
//                "scatter": ["tensor"],      axes whose ranks send a part each of what all hold
//                "times": {...}}             of a stage, for orders by times ("zb-1p", "zb-2p")
//
// An order's cells are stage, action, micro-batch: 0F3 forward, 0B3 backward, 0I3 the input's
// gradient, 0W3 the weights', 0R3 recomputation. Empty cells are skipped, and so are those of
// torch's messages and shards (0SEND_F3, 1UNSHARD), which follow from the others here.
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "sim/base/json_reader.h"
#include "workloads/networks/network.h"
#include "workloads/networks/training.h"
#include "workloads/planner/pipeline.h"
#include "workloads/strategies/strategy.h"

namespace rehearse {

const ObjectShape& PipelineShape();

// Throws Error for stages that the network cannot be cut into, impossible orders, and numbers of
// micro-batches that a schedule does not take.
StagePipeline ReadPipeline(const JsonReader& object, const Network& network,
                           const Training& training, const Strategy& strategy);

// A row of cells for each rank. Throws Error at `place` for a cell that is not understood.
PipelineOrder ParsePipelineOrder(const std::vector<std::vector<std::string>>& rows,
                                 const Place& place);
// The reverse, one line for each rank.
std::string ToPipelineCsv(const PipelineOrder& order);

}  // namespace rehearse

// Reads SBP strategies, in one of two forms.
//
// Numbers, (p0, p1, p2) of every product by the name of its weight, each a number of ranks or a
// pair [machines, ranks of a machine]; "default" stands for the rest:
//   {"kind": "sbp", "nodes": 16, "gpus": 4, "overlap_all_reduce": true, "overlap_gradients": false,
//    "products": {"default": [[4, 1], [4, 1], [1, 4]], "down": [[4, 1], [1, 4], [4, 1]]}}
// With one rank per machine: "products": {"default": [4, 4, 4]}. A tied output layer follows from
// "embedding".
//
// Layouts in OneFlow's notation on a mesh whose first axis is the outermost; "rest" may be left out
// (partial sums are then reduce-scattered to columns):
//   {"kind": "sbp", "mesh": [2, 3, 4], "overlap_all_reduce": true, "overlap_gradients": false,
//    "products": {"default": {"x": ["S(0)", "B", "S(1)"], "w": ["B", "S(1)", "S(0)"],
//                             "rest": ["S(0)", "S(1)", "S(1)"]}}}
#pragma once

#include "sim/base/json_reader.h"
#include "workloads/strategies/strategy.h"

namespace rehearse {

Strategy ReadSbp(const JsonReader& reader, const Network& network);

}  // namespace rehearse

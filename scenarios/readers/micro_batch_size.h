// The size of a micro-batch instead of the number of them, as Megatron-LM's --micro-batch-size says
// it: "training": {"micro_batch_size": 2}.
//
// The batch is divided among the groups of ranks that have rows of their own (data, replicas and
// shard; of 4D data and depth), and each group's part into micro-batches of this many samples:
// micro_batches = batch / (groups x size).
#pragma once

#include <cstdint>
#include <optional>

#include <nlohmann/json_fwd.hpp>

#include "sim/base/json_document.h"

namespace rehearse {

// How many groups of ranks have rows of their own, by the sizes that a strategy gives; nothing for
// kinds whose products each divide the rows in their own way (sbp, summa).
std::optional<uint64_t> GroupsOfRows(const nlohmann::json& strategy);

// Sets "training.micro_batches" where a scenario says "micro_batch_size". Throws Error if it says
// both, if the batch is not a multiple of groups x size, and for strategies without such groups.
void ResolveMicroBatchSize(JsonDocument* scenario);

}  // namespace rehearse

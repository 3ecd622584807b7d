// A Schedule from a workload of ASTRA-sim 1.0, or of SimAI and aicb, whose texts are of that form.
//
// The first line says how the work is shared (a row of kPolicies in the .cc), and what the groups
// are: "model_parallel_NPU_group: 8 ep: 2 pp: 4 all_gpus: 64"; the second how many layers there
// are; then one a line: its name, -1, and compute (ns), collective and bytes of forward, of the
// gradients of inputs and of weights, and how long what arrived is used afterwards (ns).
//
// The layers are gone through as ASTRA-sim's loops do (its Workload.cc): forward, where compute
// waits for each collective; then backward from the last layer, where collectives of weights'
// gradients run beside what follows. Groups are as SimAI numbers ranks: tensor first, then data,
// whose first ranks share experts, then stages. Bytes are those of the whole array, as aicb writes
// them. Of stages, one is played, as in SimAI: what they send is not in the layers.
//
// HYBRID_CUSTOMIZED says behind each layer how that one is shared, over the network's first
// dimension ("near", model_parallel_NPU_group ranks), over the others ("far") or over all. In
// HYBRID_DLRM the first layer is an embedding, whose all-to-alls run beside the bottom layers, up
// to DLRM_LAST_BOTTOM_LAYER; the others share data. (In HYBRID_DLRM_ENHANCED the next step need
// not wait for the last of them, which one step does not show.)
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

namespace rehearse {

using WorkloadSettings = std::vector<std::pair<std::string, std::string>>;

struct ImportedWorkload {
  std::string text;  // of the schedule
  uint32_t ranks = 0;
  std::vector<std::string> remarks;
};

// Whether the text begins as such a workload does.
bool IsAstraWorkload(std::string_view text);

// `file` is its name in messages; `settings` change what the first line says: all_gpus=64. `ranks`
// are those of --cluster, 0 if none is given. Throws Error with file and line.
ImportedWorkload ImportAstraWorkload(std::string_view text, const std::string& file, uint32_t ranks,
                                     const WorkloadSettings& settings = {});

}  // namespace rehearse

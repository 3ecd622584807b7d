// A step of what trains models of Hugging Face on PyTorch, whoever starts it (axolotl, torchtune,
// accelerate, DeepSpeed's JSON): what they share, and how it becomes a scenario.
#pragma once

#include <cstdint>
#include <optional>
#include <string>

#include "tools/foreign/runs/flat_keys.h"
#include "tools/foreign/runs/scenario_draft.h"

namespace rehearse {

// Who keeps the ranks' parameters alike.
enum class TrainerSharing : uint8_t { kDdp, kFsdp1, kFsdp2, kDeepSpeed };

struct TrainerStep {
  TrainerSharing sharing = TrainerSharing::kDdp;
  Origin sharing_from;
  uint64_t zero = 0;  // stage
  bool is_bf16 = true;
  bool compiles = false;
  Degree tensor;
  Degree context;
  Degree expert;
  Degree replicas;              // of what is sharded
  std::optional<Degree> shard;  // all ranks that are left if not given
  Degree micro_batch;           // of a rank
  Degree passes;                // micro-batches of a step
  uint64_t sequence = 0;
  Origin sequence_from;
  bool is_hybrid = false;  // sharded within each machine
  bool is_of_one_device = false;
};

// The machine and the axes; `ranks` and `from` as PutOnMachine() has them. Returns how many ranks
// have samples of their own.
uint64_t PutTrainerOnMachine(const std::string& cluster, std::optional<uint64_t> ranks,
                             const Origin& from, const std::string& hint, TrainerStep* step,
                             ScenarioDraft* draft);

// Batch, sequence and strategy, over `data` ranks with samples of their own.
void SetTrainerStep(const TrainerStep& step, uint64_t data, ScenarioDraft* draft);

// An optimizer that is not Adam by its name in small letters: "lamb", "sgd", "muon". Returns
// whether there is one; if it cannot be played with the model, that is remarked, and Adam stays.
bool SetUpdateRule(const std::string& name, const std::string& given, const Origin& from,
                   ScenarioDraft* draft);

// "adamw_torch_fused", "torch.optim.AdamW", "bitsandbytes.optim.PagedAdamW8bit".
void SetTrainerOptimizer(const std::string& given, const Origin& from, ScenarioDraft* draft);

// "flash_attention_2", "sdpa", "eager", ... as transformers calls them.
void SetTrainerAttention(const std::string& name, const Origin& from, ScenarioDraft* draft);

// The optimizer, and with ZeRO-3 perhaps parameters, are on the host.
void SetOnHost(const Origin& from, bool parameters, ScenarioDraft* draft);

// FSDP's settings as accelerate and axolotl have them, under "fsdp_config.".
void ReadFsdpConfig(FlatKeys& keys, TrainerStep* step, ScenarioDraft* draft);

// The keys of DeepSpeed's JSON that say how ranks share parameters.
void ReadDeepSpeed(FlatKeys& keys, TrainerStep* step, ScenarioDraft* draft);
// What of it is set once the model and the strategy are.
void SetDeepSpeedBuckets(FlatKeys& keys, const TrainerStep& step, ScenarioDraft* draft);
// Lists what of it nobody has read.
void RemarkOnRestOfDeepSpeed(FlatKeys& keys, ScenarioDraft* draft);

}  // namespace rehearse

// Configurations of accelerate.
#include "tests/fuzz/corpus.h"
#include "tests/fuzz/fuzz_target.h"
#include "tools/foreign/runs/accelerate/accelerate_import.h"

namespace rehearse {
namespace {

void ReadAccelerate(std::string_view input) {
  RunSource source;
  source.text = input;
  source.file = "accelerate.yaml";
  source.settings = {{"sequence", "512"}, {"micro_batch_size", "1"}};
  source.model = FindModelByName("llama-3.2-1b");
  ImportAccelerate(source);
}

std::vector<std::string> AccelerateSeeds() {
  return {
      "compute_environment: LOCAL_MACHINE\ndistributed_type: FSDP\nmixed_precision: bf16\n"
      "num_processes: 4\nfsdp_config:\n  fsdp_version: 2\n"
      "  fsdp_reshard_after_forward: false\n  fsdp_activation_checkpointing: true\n"
      "parallelism_config:\n  parallelism_config_tp_size: 2\n"
      "  parallelism_config_dp_shard_size: 2\n",
      "distributed_type: DEEPSPEED\nnum_processes: 8\ndeepspeed_config:\n  zero_stage: 2\n"
      "  offload_optimizer_device: cpu\n  gradient_accumulation_steps: 4\n"
      "mixed_precision: 'no'\n",
      "distributed_type: MEGATRON_LM\nnum_processes: 8\nmegatron_lm_config:\n"
      "  megatron_lm_tp_degree: 2\n  megatron_lm_use_distributed_optimizer: true\n"};
}

std::vector<std::string> AccelerateWords() {
  return {"fsdp_sharding_strategy: HYBRID_SHARD\n",
          "fsdp_sharding_strategy: 2\n",
          "mixed_precision: fp8\n",
          "deepspeed_config_file: a.json\n",
          "parallelism_config_cp_size: 2\n",
          "distributed_type: MULTI_GPU\n",
          "use_cpu: true\n",
          "auto",
          "null",
          "-1",
          "4294967296",
          "[",
          "{}",
          "\n"};
}

const FuzzTargetRow kAccelerateRow({"accelerate", ReadAccelerate, AccelerateSeeds,
                                    AccelerateWords});

}  // namespace
}  // namespace rehearse

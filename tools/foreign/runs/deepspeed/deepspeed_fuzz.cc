// DeepSpeed's JSON.
#include "tests/fuzz/corpus.h"
#include "tests/fuzz/fuzz_target.h"
#include "tools/foreign/runs/deepspeed/deepspeed_import.h"

namespace rehearse {
namespace {

void ReadDeepSpeedJson(std::string_view input) {
  RunSource source;
  source.text = input;
  source.file = "ds_config.json";
  source.settings = {{"sequence", "512"}};
  source.model = FindModelByName("llama-3.2-1b");
  ImportDeepSpeed(source);
}

std::vector<std::string> DeepSpeedSeeds() {
  return {R"({"train_batch_size": 32, "train_micro_batch_size_per_gpu": 2,
  "gradient_accumulation_steps": 2, "bf16": {"enabled": true},
  "zero_optimization": {"stage": 3, "overlap_comm": true, "zero_hpz_partition_size": 8,
    "reduce_bucket_size": 5e8, "stage3_prefetch_bucket_size": "auto",
    "offload_optimizer": {"device": "cpu"}, "offload_param": {"device": "none"}},
  "activation_checkpointing": {"partition_activations": true, "cpu_checkpointing": false}})",
          R"({"train_batch_size": 8, "gradient_accumulation_steps": 1,
  "train_micro_batch_size_per_gpu": 1, "fp16": {"enabled": "auto"},
  "zero_optimization": {"stage": 1, "mics_shard_size": 4, "overlap_comm": false},
  "optimizer": {"type": "Lamb"}, "tensor_parallel": {"autotp_size": 2}})"};
}

std::vector<std::string> DeepSpeedWords() {
  return {"\"stage\"",
          "\"sequence_parallel_size\"",
          "\"mics_shard_size\"",
          "\"auto\"",
          "1e18",
          "-1",
          "4294967296",
          "null",
          "[]",
          "{}"};
}

const FuzzTargetRow kDeepSpeedRow({"deepspeed", ReadDeepSpeedJson, DeepSpeedSeeds, DeepSpeedWords,
                                   FuzzLanguage::kJson});

}  // namespace
}  // namespace rehearse

// A torchtitan job's TOML.
#include "tests/fuzz/corpus.h"
#include "tests/fuzz/fuzz_target.h"
#include "tools/foreign/runs/torchtitan/torchtitan_import.h"

namespace rehearse {
namespace {

void ReadTorchtitan(std::string_view input) {
  ImportTorchtitan(input, "job.toml", "dgx-h100:nodes=2");
}

std::vector<std::string> TorchtitanSeeds() {
  return {
      "[job]\ndescription = \"a job\"\n[model]\nname = \"llama3\"\nflavor = \"debugmodel\"\n"
      "converters = [\"float8\"]\n[training]\nlocal_batch_size = 8\nglobal_batch_size = 128\n"
      "seq_len = 2048 # tokens\n[parallelism]\ndata_parallel_shard_degree = -1\n"
      "tensor_parallel_degree = 2\npipeline_parallel_degree = 2\n"
      "pipeline_parallel_schedule = \"Interleaved1F1B\"\n[activation_checkpoint]\n"
      "mode = \"selective\"\nselective_ac_option = \"op\"\n[compile]\nenable = true\n"
      "components = [\"model\", \"loss\"]\n",
      "model.name = 'deepseek_v3'\nmodel.flavor = 'debugmodel'\nparallelism = { "
      "data_parallel_replicate_degree = 2, expert_parallel_degree = 4 }\n"
      "[float8]\nfilter_fqns = \"output,layers.1\"\n[optimizer]\nimplementation = \"foreach\"\n",
      "[model]\nname = \"qwen3\"\nflavor = \"0.6B\"\n[training]\nbatch_size = 4\n"
      "data_parallel_degree = 4\n[experimental]\npipeline_parallel_degree = 4\n"
      "pipeline_parallel_split_points = [\"layers.7\", \"layers.14\", \"layers.21\"]\n"
      "[activation_checkpoint]\nmode = 'selective'\nselective_ac_option = '2'\n",
      "def llama3_8b() -> Trainer.Config:\n    m = model_registry(\"8B\", converters=[\n"
      "        Float8LinearConverter.Config(a=1)])  # narrow\n    return Trainer.Config(\n"
      "        training=TrainingConfig(num_tokens_per_microbatch_per_dp_rank=2 * 8192,\n"
      "            max_context_length=8192), activation_checkpoint=FullAC.Config())\n"};
}

std::vector<std::string> TorchtitanWords() {
  return {"[model]\n",
          "[training]\n",
          "[parallelism]\n",
          "[[parallelism]]\n",
          "[experimental]\n",
          "flavor = \"8B\"\n",
          "name = \"llama4\"\n",
          "flavor = \"17bx16e\"\n",
          "context_parallel_degree = 2\n",
          "data_parallel_shard_degree = 0\n",
          "pipeline_parallel_layers_per_stage = 2\n",
          "pipeline_parallel_microbatch_size = 2\n",
          "pipeline_parallel_schedule = \"DualPipeV\"\n",
          "fsdp_reshard_after_forward = \"never\"\n",
          "mixed_precision_param = \"float32\"\n",
          "selective_ac_option = 3\n",
          "\"\"\"",
          "'''",
          "1979-05-27T07:32:00Z",
          "0x10",
          "1_000",
          "1e9",
          "inf",
          "nan",
          "-1",
          "true",
          "[",
          "]",
          "{",
          "}",
          "=",
          ".",
          "\"",
          "'",
          "#",
          "\n"};
}

const FuzzTargetRow kTorchtitanRow({"torchtitan", ReadTorchtitan, TorchtitanSeeds,
                                    TorchtitanWords});

}  // namespace
}  // namespace rehearse

// A script that starts Megatron-LM, a list of its arguments, its log.
#include "tests/fuzz/corpus.h"
#include "tests/fuzz/fuzz_target.h"
#include "tools/foreign/runs/megatron/megatron_import.h"

namespace rehearse {
namespace {

// A script that is read in reads itself in.
void ReadMegatron(std::string_view input) {
  ImportMegatron(input, "run.sh", "dgx-h100:nodes=2", {},
                 [](const std::string& name) -> std::optional<std::string> {
                   if (name != "conf.sh") return std::nullopt;
                   return "#SBATCH -N 2\nC=\"--num-layers 8 $C\"\n. $D/conf.sh\n";
                 });
}

std::vector<std::string> MegatronSeeds() {
  return {
      "#!/bin/bash\n#SBATCH --nodes=2\nN=8\nWORLD_SIZE=$(($N*2))\nA=(\n  --num-layers 8 # deep\n"
      "  --hidden-size 1024\n)\nA+=(--num-attention-heads 16)\nif [ $N -gt 1 ]; then B=\"--bf16 "
      "\\\n"
      "--tensor-model-parallel-size 2\"; else B=; fi\ntorchrun --nproc_per_node ${N:-8} x.py "
      "${A[@]} $B --seq-length 512 --micro-batch-size 1 --global-batch-size 32 --vocab-size 50257 "
      "--pipeline-model-parallel-size 4 --num-layers-per-virtual-pipeline-stage 1 2>&1 | tee log\n",
      "--num-layers 8 --hidden-size 1024 --num-attention-heads 16 --seq-length 512 --swiglu\n"
      "--micro-batch-size 1 --bf16 --vocab-size 32000 --num-experts 8 --moe-router-topk 2\n"
      "--expert-model-parallel-size 4 --moe-layer-freq ([0]*2+[1]*6) --context-parallel-size 2\n"
      "--use-distributed-optimizer --fp8-format hybrid --recompute-granularity full\n"
      "--recompute-method block --recompute-num-layers 1 --window-size (127,0)\n",
      "------------------------ arguments ------------------------\n  num_layers ........ 4\n"
      "  hidden_size ....... 256\n[rank0]:  num_attention_heads .... 4\n  seq_length ..... 128\n"
      "  micro_batch_size .... 1\n  vocab_size ...... 1000\n  bf16 .... True\n"
      "  cp_comm_type .... ['p2p']\n  multi_latent_attention ... True\n  swiglu .... True\n"
      "  world_size ... 16\n-------------------- end of arguments ---------------------\n",
      "cat <<E > f\n'(\nE\nrun=\"python p.py --zero-stage 3 --num-layers 4 --hidden-size 64 "
      "--num-attention-heads 4 --seq-length 64 --micro-batch-size 2 --vocab-size 99\"\n"
      "for i in 1 2; do srun sh -c \"$run $@\" &> log; done\n",
      "A=${1:-x}\nif [[ $A == x* ]] || [[ -z \"$B\" && ! -n $A ]]; then L=(--mock-data "
      "\"--vocab-size 99\"); fi\ncase $A in x|y) C=\"--num-layers 4\" ;; *) C= ;; esac\n((N = 2 * "
      "4))\n"
      "export CMD=\"p.py $C --hidden-size 64 --num-attention-heads 4 --seq-length 64 "
      "--micro-batch-size 1\"\nL+=(--gas ${#L[@]} ${L[0]} ${N:+--bf16})\n"
      "srun bash -c '$X torchrun --nproc_per_node $N $CMD '\"${L[*]} $(expr 2 \\* $N)\"\n",
      "ENV_VARS:\n  CUDA_DEVICE_MAX_CONNECTIONS: 1\n  NVTE_FLASH_ATTN: 0\nMODEL_ARGS:\n"
      "  --num-layers: 4\n  --hidden-size: 64\n  --num-attention-heads: 4\n  --seq-length: 64\n"
      "  --micro-batch-size: 1\n  --vocab-size: 99\n  --bf16: true\n  --num-experts: 4\n"
      "  --recompute-modules: '[moe_act]'\n  --bf16: false\n  --moe-layer-freq: ([0,1]*2)\n",
      "trainer:\n  devices: 8\n  num_nodes: 2\n  precision: bf16\nmodel:\n  num_layers: 4\n"
      "  hidden_size: 64\n  num_attention_heads: 4\n  encoder_seq_length: 64\n  vocab_size: 99\n"
      "  micro_batch_size: 1\n  activation: swiglu\n  optim: {name: distributed_fused_adam}\n",
      ". `pwd`/conf.sh; source conf.sh && sbatch --nodes 2 x/conf.sh\npython pretrain_gpt.py $C "
      "--hidden-size 64 --num-attention-heads 4 --seq-length 64 --vocab-size 9 "
      "--micro-batch-size 1\n",
      "sbatch <<E\nsrun python p.py --num-layers 4 --hidden-size 64 --num-attention-heads 4 "
      "--pp-partition-method type:transformer|embedding --seq-length 64\nE\n"};
}

std::vector<std::string> MegatronWords() {
  return {"--num-layers",
          ". conf.sh",
          "sbatch x.sh",
          "--hidden-size",
          "--num-attention-heads",
          "--seq-length",
          "--micro-batch-size",
          "--global-batch-size",
          "--vocab-size",
          "--swiglu",
          "--bf16",
          "--fp16",
          "--tensor-model-parallel-size",
          "--pipeline-model-parallel-size",
          "--context-parallel-size",
          "--expert-model-parallel-size",
          "--expert-tensor-parallel-size",
          "--num-experts",
          "--moe-layer-freq",
          "--moe-router-topk",
          "--sequence-parallel",
          "--use-distributed-optimizer",
          "--group-query-attention",
          "--num-query-groups",
          "--pipeline-model-parallel-layout",
          "--decoder-first-pipeline-num-layers",
          "--account-for-loss-in-pipeline-split",
          "--num-distributed-optimizer-instances",
          "--use-megatron-fsdp",
          "--data-parallel-sharding-strategy",
          "optim_grads_params",
          "--mtp-num-layers",
          "--multi-latent-attention",
          "--fp8-recipe",
          "blockwise",
          "--zero-stage",
          "--recompute-modules",
          "core_attn",
          "--tokenizer-type",
          "GPT2BPETokenizer",
          "\"Et*3|(tt|)*6L\"",
          "([0]*3+[1]*5)",
          "MODEL_ARGS:\n",
          "  --bf16: true\n",
          "bash -c '",
          "case $A in ",
          "a|*) ",
          ";;\n",
          "esac\n",
          "[[ ",
          " ]] || ",
          "${#A[@]}",
          "${A[1]}",
          "${A:+",
          "$(expr ",
          "((N = 1))",
          "--pp-partition-method",
          "type:transformer|embedding",
          "$((",
          "))",
          "${A:-",
          "}",
          "${A[@]}",
          "A=(",
          ")",
          "A+=",
          "\"",
          "'",
          "`",
          "\\\n",
          "\n",
          "<<E\n",
          "E\n",
          " 2>&1",
          "|",
          "&&",
          "if [ $N -gt 1 ]; then ",
          "elif",
          "else ",
          "fi\n",
          "for x in y; do ",
          "done\n",
          "#SBATCH --nodes=4\n",
          "WORLD_SIZE=16\n",
          "- arguments -\n",
          "- end of arguments -\n",
          " ..... ",
          "None",
          "True",
          "False",
          "['p2p']",
          "0",
          "1",
          "2",
          "-1",
          "65536",
          "18446744073709551616"};
}

const FuzzTargetRow kMegatronRow({"megatron", ReadMegatron, MegatronSeeds, MegatronWords});

}  // namespace
}  // namespace rehearse

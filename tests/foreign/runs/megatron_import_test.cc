// Scripts like those that Megatron-LM publishes, beside scenarios written by hand.
#include "tools/foreign/runs/megatron/megatron_import.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <nlohmann/json.hpp>

#include "sim/base/error.h"
#include "sim/base/json_document.h"
#include "tests/foreign/runs/same_run.h"
#include "tools/foreign/machines/infragraph/yaml_text.h"
#include "workloads/networks/model.h"

namespace rehearse {
namespace megatron_import_test {

using ::testing::AllOf;
using ::testing::Contains;
using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::Not;
using ::testing::StartsWith;

constexpr const char* kGpt3 = R"(#!/bin/bash
export CUDA_DEVICE_MAX_CONNECTIONS=1
GPUS_PER_NODE=8
NNODES=128
WORLD_SIZE=$(($GPUS_PER_NODE*$NNODES))
CHECKPOINTS=$1 # where they are kept
LAUNCHER=(
    --nproc_per_node $GPUS_PER_NODE
    --nnodes $NNODES
    --master_addr ${MASTER_ADDR:-localhost}
)
MODEL=(
    --num-layers 96
    --hidden-size 12288
    --num-attention-heads 96
    --seq-length 2048
    --max-position-embeddings 2048
)
TRAINING="--micro-batch-size 1 --global-batch-size 1536 \
    --train-iters 500000 --lr 6.0e-5 --lr-decay-style cosine --bf16 \
    --recompute-activations --clip-grad 1.0"
PARALLEL=(
	--tensor-model-parallel-size 8
	--pipeline-model-parallel-size 16   # 8 x 16 x 8
	--num-layers-per-virtual-pipeline-stage 3
	--sequence-parallel --use-distributed-optimizer --overlap-grad-reduce
)
torchrun "${LAUNCHER[@]}" pretrain_gpt.py ${MODEL[@]} $TRAINING ${PARALLEL[@]} \
    --data-path ${DATA:-/data/pile} --vocab-file vocab.json --merge-file merges.txt \
    --save $CHECKPOINTS --split 949,50,1 2>&1 | tee train.log
)";

TEST(MegatronImportTest, Gpt3On128NodesIsTheScenarioByHand) {
  const ImportedScenario imported = ImportMegatron(kGpt3, "runs/gpt3.sh", "");
  EXPECT_EQ(DescribeRun(imported.text), DescribeRun(R"({
    "name": "hand", "software": "megatron-core", "cluster": "dgx-h100:nodes=128",
    "model": {"preset": "gpt-175b"},
    "training": {"batch": 1536, "sequence": 2048, "micro_batches": 192,
                 "recomputation": "selective", "recomputed_ops": ["core-attention"]},
    "strategy": {"kind": "megatron", "tensor": 8, "data": 8, "sequence_parallel": true,
                 "distributed_optimizer": true, "overlap_gradients": true},
    "pipeline": {"stages": 16, "schedule": "interleaved", "virtual": 2}})"));
  EXPECT_EQ(imported.ranks, 1024u);
  EXPECT_NEAR(imported.parameters, 174.6e9, 0.05e9);
  EXPECT_THAT(
      imported.remarks,
      ElementsAre("the machine is assumed: dgx-h100:nodes=128 for 1024 ranks (--nnodes x "
                  "--nproc_per_node); --cluster names another",
                  "a vocabulary of 50257 tokens, that of GPT-2's merge file",
                  "not supported: CUDA_DEVICE_MAX_CONNECTIONS=1; there kernels of all streams "
                  "begin in the order in which they are launched; here they only wait for "
                  "what they need"));
}

// 32 layers of 4096 columns with groups of four heads; fp8 by delayed scaling.
constexpr const char* kLlama3 = R"(WORLD_SIZE=64
python pretrain_gpt.py --num-layers 32 --hidden-size 4096 --ffn-hidden-size 14336 \
  --num-attention-heads 32 --group-query-attention --num-query-groups 8 --kv-channels 128 \
  --seq-length 8192 --max-position-embeddings 8192 --position-embedding-type rope \
  --rotary-base 1000000 --normalization RMSNorm --swiglu --disable-bias-linear \
  --attention-dropout 0.0 --hidden-dropout 0.0 --untie-embeddings-and-output-weights \
  --micro-batch-size 1 --global-batch-size 128 --bf16 --fp8-format hybrid --fp8-param-gather \
  --tensor-model-parallel-size 1 --context-parallel-size 2 --use-distributed-optimizer \
  --overlap-grad-reduce --overlap-param-gather --cross-entropy-loss-fusion \
  --tokenizer-type HuggingFaceTokenizer --tokenizer-model meta-llama/Meta-Llama-3-8B \
  --make-vocab-size-divisible-by 128 --attention-backend fused --tp-comm-overlap --qk-layernorm \
  --some-new-switch --another 4
)";

TEST(MegatronImportTest, Llama3WithContextParallelismIsTheScenarioByHand) {
  const ImportedScenario imported = ImportMegatron(kLlama3, "llama3.sh", "dgx-h200:nodes=8");
  EXPECT_EQ(DescribeRun(imported.text), DescribeRun(R"({
    "name": "hand", "software": "megatron-core", "cluster": "dgx-h200:nodes=8",
    "model": {"preset": "llama-3-8b", "head_norms": true},
    "training": {"batch": 128, "sequence": 8192, "micro_batches": 4, "recomputation": "none",
                 "products": "fp8", "narrow_parameters": true, "cross_entropy": "fused",
                 "attention": "cudnn"},
    "strategy": {"kind": "combined", "context": 2, "shard": 32, "zero": 1,
                 "overlap_gradients": true, "overlap_parameter_gathers": true}})"));
  EXPECT_THAT(imported.remarks,
              ElementsAre("--qk-layernorm: norms of queries and keys only take time",
                          "a vocabulary of 128256 tokens, that of meta-llama/Meta-Llama-3-8B",
                          "not understood: --some-new-switch, --another 4"));
}

// A list of arguments, without a script around it.
constexpr const char* kMixtral = R"(
--disable-bias-linear --seq-length 4096 --num-layers 32 --hidden-size 4096
--ffn-hidden-size 14336 --num-attention-heads 32 --normalization RMSNorm --swiglu
--attention-dropout 0.0 --hidden-dropout 0.0 --untie-embeddings-and-output-weights
--group-query-attention --num-query-groups 8
--num-experts 8 --moe-router-topk 2 --moe-aux-loss-coeff 1e-2 --moe-grouped-gemm
--moe-token-dispatcher-type alltoall --tokenizer-type Llama2Tokenizer --tokenizer-model t.model
--micro-batch-size 1 --global-batch-size 256 --bf16 --vocab-size 32000
--tensor-model-parallel-size 2 --pipeline-model-parallel-size 4
--expert-model-parallel-size 4 --expert-tensor-parallel-size 1
--use-distributed-optimizer --sequence-parallel --overlap-grad-reduce --overlap-param-gather
)";

TEST(MegatronImportTest, MixtralIsTheShippedScenario) {
  const ImportedScenario imported = ImportMegatron(kMixtral, "mixtral.txt", "dgx-h100:nodes=8");
  EXPECT_EQ(DescribeRun(imported.text), DescribeRun(R"({
    "name": "hand", "software": "megatron-core", "cluster": "dgx-h100:nodes=8",
    "model": {"preset": "mixtral-8x7b"},
    "training": {"batch": 256, "sequence": 4096, "micro_batches": 32, "recomputation": "none"},
    "strategy": {"kind": "combined", "tensor": 2, "sequence_parallel": true, "shard": 8, "zero": 1,
                 "overlap_gradients": true, "overlap_parameter_gathers": true, "expert": 4},
    "pipeline": {"stages": 4, "schedule": "1f1b"}})"));
  EXPECT_THAT(imported.remarks, ElementsAre());
}

TEST(MegatronImportTest, ExpertsOneByOneAndFusedPermutationsAreCarried) {
  std::string arguments = kMixtral;
  const std::string grouped = "--moe-grouped-gemm";
  arguments.replace(arguments.find(grouped), grouped.size(), "--moe-permute-fusion");
  const ImportedScenario imported = ImportMegatron(arguments, "mixtral.txt", "dgx-h100:nodes=8");
  EXPECT_EQ(DescribeRun(imported.text), DescribeRun(R"({
    "name": "hand", "software": "megatron-core", "cluster": "dgx-h100:nodes=8",
    "model": {"preset": "mixtral-8x7b"},
    "training": {"batch": 256, "sequence": 4096, "micro_batches": 32, "recomputation": "none",
                 "expert_kernels": "sequential", "permutation": "fused"},
    "strategy": {"kind": "combined", "tensor": 2, "sequence_parallel": true, "shard": 8, "zero": 1,
                 "overlap_gradients": true, "overlap_parameter_gathers": true, "expert": 4},
    "pipeline": {"stages": 4, "schedule": "1f1b"}})"));
  EXPECT_THAT(imported.remarks, ElementsAre());
}

constexpr const char* kDeepSeek = R"run(NNODES=16
GPUS_PER_NODE=8
EXPERT_LAYERS="([0]*3+[1]*58)"
torchrun pretrain_gpt.py --num-layers 61 --hidden-size 7168 --ffn-hidden-size 18432 \
  --num-attention-heads 128 --swiglu --normalization RMSNorm --disable-bias-linear \
  --attention-dropout 0 --hidden-dropout 0 --untie-embeddings-and-output-weights \
  --seq-length 4096 --micro-batch-size 1 --global-batch-size 1024 --bf16 \
  --vocab-size 129280 --multi-latent-attention --q-lora-rank 1536 --kv-lora-rank 512 \
  --qk-head-dim 128 --qk-pos-emb-head-dim 64 --v-head-dim 128 --num-experts 256 \
  --moe-layer-freq "$EXPERT_LAYERS" --moe-ffn-hidden-size 2048 --moe-router-topk 8 \
  --moe-shared-expert-intermediate-size 2048 --moe-router-num-groups 8 \
  --moe-router-group-topk 4 --moe-router-score-function sigmoid --moe-aux-loss-coeff 1e-4 \
  --moe-grouped-gemm --moe-token-dispatcher-type flex --moe-enable-deepep \
  --mtp-num-layers 1 --mtp-loss-scaling-factor 0.3 --expert-model-parallel-size 32 \
  --expert-tensor-parallel-size 1 --pipeline-model-parallel-size 4 \
  --decoder-last-pipeline-num-layers 13 --use-distributed-optimizer \
  --recompute-granularity selective --recompute-modules mla_up_proj layernorm moe_act
)run";

TEST(MegatronImportTest, DeepSeeksLayersHeadsAndExpertsAreCarried) {
  const ImportedScenario imported = ImportMegatron(kDeepSeek, "deepseek.sh", "");
  EXPECT_EQ(DescribeRun(imported.text), DescribeRun(R"({
    "name": "hand", "software": "megatron-core", "cluster": "dgx-h100:nodes=16",
    "model": {"preset": "deepseek-v3"},
    "training": {"batch": 1024, "sequence": 4096, "micro_batches": 32,
                 "recomputation": "selective",
                 "recomputed_ops": ["latent-projections", "norms", "activations"]},
    "strategy": {"kind": "combined", "shard": 32, "zero": 1, "expert": 32},
    "pipeline": {"stages": 4, "schedule": "1f1b", "last_layers": 13},
    "simulator": {"collectives": [{"kind": "all-to-all", "algorithm": "deepep"}]}})"));
  EXPECT_THAT(imported.text, AllOf(HasSubstr("\"first_dense\": 3"), HasSubstr("\"deepep\""),
                                   HasSubstr("\"sigmoid\""), HasSubstr("\"limited_groups\": 4")));
  EXPECT_THAT(imported.remarks, ElementsAre(HasSubstr("the machine is assumed")));
}

// Every argument is printed by Megatron-LM, with its default where it is not given.
constexpr const char* kLog = R"(using world size: 4
------------------------ arguments ------------------------
[default0]:  add_bias_linear ................................. False
[default0]:  async_tensor_model_parallel_allreduce ........... False
  attention_backend ............................... AttnBackend.auto
  attention_dropout ............................... 0.0
  bf16 ............................................ True
  bias_swiglu_fusion .............................. True
  cp_comm_type .................................... ['p2p']
  ffn_hidden_size ................................. 10752
  global_batch_size ............................... 512
  group_query_attention ........................... True
  hidden_dropout .................................. 0.0
  hidden_size ..................................... 3072
  kv_channels ..................................... 128
  micro_batch_size ................................ 1
  moe_layer_freq .................................. 1
  moe_router_topk ................................. 2
  mystery_knob .................................... 3
  normalization ................................... RMSNorm
  num_attention_heads ............................. 24
  num_experts ..................................... None
  num_layers ...................................... 28
  num_query_groups ................................ 24
  recompute_granularity ........................... selective
  seq_length ...................................... 2048
  sequence_parallel ............................... True
  swiglu .......................................... True
  tensor_model_parallel_size ...................... 4
  tokenizer_type .................................. GPT2BPETokenizer
  untie_embeddings_and_output_weights ............. True
  use_distributed_optimizer ....................... True
  virtual_pipeline_model_parallel_size ............ None
  vocab_size ...................................... None
  wandb_project ................................... 
  world_size ...................................... 4
-------------------- end of arguments ---------------------
num_layers ...................................... 99
)";

TEST(MegatronImportTest, TheLogOfARunTellsIt) {
  const ImportedScenario imported = ImportMegatron(kLog, "run.log", "");
  EXPECT_EQ(DescribeRun(imported.text), DescribeRun(R"({
    "name": "hand", "software": "megatron-core", "cluster": "dgx-h100",
    "model": {"style": "llama", "layers": 28, "hidden": 3072, "heads": 24, "feed_forward": 10752,
              "vocabulary": 50688, "tied": false},
    "training": {"batch": 512, "sequence": 2048, "micro_batches": 512,
                 "recomputation": "selective", "recomputed_ops": ["core-attention"]},
    "strategy": {"kind": "megatron", "tensor": 4, "data": 1, "sequence_parallel": true,
                 "distributed_optimizer": true},
    "placement": "block"})"));
  EXPECT_THAT(imported.remarks, Contains("not understood: --mystery-knob 3"));
}

constexpr const char* kDeepSpeed = R"(#!/bin/bash
#SBATCH --nodes=4
#SBATCH --gpus-per-node=a100:8
TP=4; PP=2; ZERO=1
if [[ $PP -gt 1 ]]; then NO_PP=""; else NO_PP="--no-pipeline-parallel"; fi
cat <<END > ds.json
{ "train_batch_size": 'x, "zero": ( }
END
ds_args="--zero-stage=$ZERO --deepspeed_config=ds.json --deepspeed $NO_PP"
options=" --tensor-model-parallel-size ${TP} --pipeline-model-parallel-size $PP \
  --num-layers 32 --hidden-size 4096 --ffn-hidden-size 11008 --num-attention-heads 32 \
  --num-key-value-heads 32 --micro-batch-size 2 --global-batch-size 256 --seq-length 4096 --bf16 \
  --swiglu --normalization rmsnorm --disable-bias-linear --use-flash-attn-v2 --vocab-size 32000 \
  --make-vocab-size-divisible-by 1 --attention-dropout 0 --hidden-dropout 0 \
  --untie-embeddings-and-output-weights --checkpoint-activations"
run_cmd="python -u pretrain_gpt.py ${options} ${ds_args}"
srun -l sh -c "${run_cmd}" &> log
)";

TEST(MegatronImportTest, MegatronDeepSpeedOnSlurmIsTheScenarioByHand) {
  const ImportedScenario imported = ImportMegatron(kDeepSpeed, "-", "dgx-a100-80g:nodes=4");
  EXPECT_EQ(DescribeRun(imported.text), DescribeRun(R"({
    "name": "hand", "software": "megatron-core", "cluster": "dgx-a100-80g:nodes=4",
    "model": {"preset": "llama-2-7b"},
    "training": {"batch": 256, "sequence": 4096, "micro_batches": 32, "recomputation": "full",
                 "attention": "flash-2"},
    "strategy": {"kind": "megatron", "tensor": 4, "data": 4, "distributed_optimizer": true},
    "pipeline": {"stages": 2, "schedule": "1f1b"}})"));
  EXPECT_THAT(imported.text, HasSubstr("\"name\": \"imported\""));
  EXPECT_THAT(
      imported.remarks,
      ElementsAre(
          "--deepspeed_config: the file is not read, so what it says about the step is left out"));
}

// ---- what is not given --------------------------------------------------------------------------

constexpr const char* kSmall =
    "--num-layers 24 --hidden-size 1024 --num-attention-heads 16 --seq-length 1024 "
    "--micro-batch-size 2 --vocab-size 50257 ";

ImportedScenario Small(const std::string& more) {
  return ImportMegatron("WORLD_SIZE=16\npython pretrain_gpt.py " + (kSmall + more), "run.sh", "");
}

TEST(MegatronImportTest, DefaultsAreMegatrons) {
  // SwiGLU has two thirds of 4096 columns, in units of 64: 2730 becomes 2688.
  EXPECT_THAT(Small("--bf16 --swiglu").text, HasSubstr("\"feed_forward\": 2688"));
  EXPECT_THAT(Small("--bf16").text, Not(HasSubstr("feed_forward")));
  // 50257 padded to 128 x 4.
  EXPECT_THAT(Small("--bf16 --tensor-model-parallel-size 4").text,
              HasSubstr("\"vocabulary\": 50688"));
  // One pass over all ranks.
  EXPECT_THAT(Small("--bf16").text,
              AllOf(HasSubstr("\"batch\": 32"), HasSubstr("\"micro_batches\": 1")));
  EXPECT_THAT(Small("").text,
              AllOf(HasSubstr("\"precision\": \"fp32\""), HasSubstr("\"unfused\"")));
  EXPECT_THAT(Small("--fp16").text, HasSubstr("\"gradients\": \"bf16\""));
  EXPECT_THAT(Small("--fp16 --accumulate-allreduce-grads-in-fp32").text,
              HasSubstr("\"gradients\": \"fp32\""));
  EXPECT_THAT(Small("--bf16 --bf16").text, HasSubstr("\"tied\": true"));
  EXPECT_THAT(Small("--bf16 --recompute-granularity full --recompute-method block "
                    "--recompute-num-layers 4 --pipeline-model-parallel-size 2")
                  .text,
              HasSubstr("\"recomputed_layers\""));
  EXPECT_THAT(Small("--bf16 --pipeline-model-parallel-size 2 "
                    "--num-virtual-stages-per-pipeline-rank 2 --global-batch-size 128 "
                    "--overlap-moe-expert-parallel-comm")
                  .text,
              AllOf(HasSubstr("\"pair_passes\": true"), HasSubstr("\"megatron-core-beside\"")));
  EXPECT_THAT(Small("--bf16 --global-batch-size 128 --overlap-moe-expert-parallel-comm "
                    "--delay-wgrad-compute")
                  .text,
              AllOf(HasSubstr("\"pair_passes\": true"), HasSubstr("\"megatron-core\"")));
  EXPECT_THAT(Small("--bf16 --delay-wgrad-compute").remarks,
              Contains(HasSubstr("--delay-wgrad-compute without")));
  std::string hybrid = kDeepSeek;
  hybrid.replace(hybrid.find("--moe-enable-deepep"), std::string("--moe-enable-deepep").size(),
                 "--moe-flex-dispatcher-backend hybridep");
  const ImportedScenario imported = ImportMegatron(hybrid, "deepseek.sh", "");
  EXPECT_THAT(imported.text, HasSubstr("\"deepep\""));
  EXPECT_THAT(imported.remarks, Contains(HasSubstr("hybridep is played as DeepEP")));
  EXPECT_THAT(Small("--bf16 --pipeline-model-parallel-size 2 --global-batch-size 128 "
                    "--pipeline-model-parallel-layout Et*6\\|\\(t*6\\|\\)*2t*6L")
                  .text,
              AllOf(HasSubstr("\"virtual\": 2"), HasSubstr("\"Et*6|(t*6|)*2t*6L\"")));
  EXPECT_THAT(
      Small("--bf16 --cpu-offloading-num-layers 3 --offload-optimizer-states").text,
      AllOf(HasSubstr("\"offloaded_layers\": 3"), HasSubstr("\"offloaded_optimizer\": true")));
  const ImportedScenario on_host =
      Small("--bf16 --optimizer-cpu-offload --optimizer-offload-fraction 0.5");
  EXPECT_THAT(on_host.text, HasSubstr("\"optimizer_on_host\": true"));
  EXPECT_THAT(on_host.remarks, Contains(HasSubstr("optimizer-offload-fraction 0.5")));
  EXPECT_THAT(Small("--bf16 --use-precision-aware-optimizer --exp-avg-dtype bf16 "
                    "--exp-avg-sq-dtype bf16")
                  .text,
              HasSubstr("\"moments\": \"bf16\""));
  EXPECT_THAT(Small("--bf16 --use-precision-aware-optimizer --exp-avg-dtype torch.bfloat16 "
                    "--exp-avg-sq-dtype torch.bfloat16")  // as logs have it
                  .text,
              HasSubstr("\"moments\": \"bf16\""));
  EXPECT_THAT(Small("--use-precision-aware-optimizer --exp-avg-dtype torch.float32").remarks,
              Not(Contains(HasSubstr("32 bits"))));
  EXPECT_THAT(Small("--bf16 --exp-avg-dtype bf16").text, Not(HasSubstr("moments")));
  // Beside parameters in bf16 Transformer Engine keeps what they lack of their masters.
  EXPECT_THAT(Small("--bf16 --use-precision-aware-optimizer").text,
              HasSubstr("\"masters\": \"remainders\""));
  EXPECT_THAT(Small("--bf16 --use-precision-aware-optimizer --fp8-format hybrid "
                    "--fp8-param-gather")
                  .text,
              Not(HasSubstr("masters")));
  // Other optimizers have states of their own.
  EXPECT_THAT(Small("--bf16 --use-precision-aware-optimizer --optimizer muon").text,
              AllOf(HasSubstr("\"update_rule\": \"muon\""), Not(HasSubstr("masters"))));
  EXPECT_THAT(Small("--bf16 --optimizer sgd --sgd-momentum 0.9").text,
              HasSubstr("\"update_rule\": \"sgd\""));
  EXPECT_THAT(Small("--bf16 --optimizer lamb").text, HasSubstr("\"update_rule\": \"lamb\""));
  EXPECT_THAT(Small("--bf16 --optimizer dist_muon").remarks, Contains(HasSubstr("dist_muon")));
  EXPECT_THAT(Small("--bf16 --optimizer lion").remarks,
              Contains("not supported: --optimizer lion; played as Adam"));
  EXPECT_THAT(Small("--bf16 --fp8-format hybrid --activation-func-fp8-input-store").text,
              HasSubstr("narrow_kept"));
  EXPECT_THAT(Small("--bf16 --recompute-granularity selective --recompute-modules mlp").text,
              AllOf(HasSubstr("first-products"), HasSubstr("activations")));
  EXPECT_THAT(Small("--bf16 --activations-checkpoint-method uniform").text,
              AllOf(HasSubstr("megatron-lm-2021"), HasSubstr("\"full\"")));
  EXPECT_THAT(Small("--bf16 --use-megatron-fsdp --data-parallel-sharding-strategy "
                    "optim_grads_params")
                  .text,
              AllOf(HasSubstr("\"zero\": 3"), HasSubstr("\"gather\": \"layer\"")));
  EXPECT_THAT(Small("--bf16 --window-size 511,0").text, HasSubstr("\"window\": 512"));
  EXPECT_THAT(Small("--bf16 --pipeline-model-parallel-size 2 --num-layers 22 "
                    "--account-for-embedding-in-pipeline-split "
                    "--account-for-loss-in-pipeline-split")
                  .text,
              HasSubstr("\"layers\": [\n      11,\n      11\n    ]"));
}

// ---- mistakes -----------------------------------------------------------------------------------

std::string MistakeIn(const std::string& script, const std::string& cluster = "") {
  try {
    ImportMegatron(script, "run.sh", cluster);
  } catch (const Error& error) {
    return error.what();
  }
  return "none";
}

TEST(MegatronImportTest, MistakesNameTheArgumentAndItsLine) {
  const auto with = [](const std::string& more) {
    return MistakeIn("WORLD_SIZE=16\npython pretrain_gpt.py " + std::string(kSmall) + " \\\n" +
                     more);
  };
  EXPECT_EQ(with("--num-layers --bf16"),
            "run.sh:3: --num-layers: found no value, expected a whole number from 1 to 10000");
  EXPECT_EQ(with("--bf16 --num-layers=$LAYERS"),
            "run.sh:3: --num-layers: found \"$LAYERS\", to which the file gives no value; expected "
            "a whole number from 1 to 10000");
  EXPECT_THAT(with("--num-layers 24 25"), HasSubstr("--num-layers: found 2 values"));
  EXPECT_EQ(with("--tensor-model-parallel-size 3"),
            "run.sh:3: 16 ranks (WORLD_SIZE) cannot be shared by --tensor-model-parallel-size 3; "
            "expected a multiple of 3");
  EXPECT_EQ(MistakeIn("python p.py " + std::string(kSmall) + "--tensor-model-parallel-size 3",
                      "dgx-h100:nodes=3"),
            "run.sh:1: --tensor-model-parallel-size: 16 attention heads cannot be shared by 3 "
            "ranks");
  EXPECT_THAT(with("--group-query-attention --num-query-groups 3"),
              StartsWith("run.sh:2: --num-attention-heads: 3 groups do not divide 16 heads"));
  EXPECT_THAT(with("--pipeline-model-parallel-size 16"),
              HasSubstr("24 layers cannot be shared by 16 stages"));
  EXPECT_THAT(
      with("--pipeline-model-parallel-size 2 --pipeline-model-parallel-layout 'Et*8|t*8|t*8L'"),
      HasSubstr("layout: its 3 stages are not a multiple of 2 ranks"));
  EXPECT_THAT(
      with("--pipeline-model-parallel-size 2 --pipeline-model-parallel-layout 'Et*12|t*12)L'"),
      HasSubstr("\")\" without \"(\""));
  EXPECT_THAT(with("--global-batch-size 31"), HasSubstr("31 sequences are not a multiple of"));
  EXPECT_THAT(with("--swiglu --num-experts 9 --expert-model-parallel-size 4"),
              StartsWith("run.sh:3: --expert-model-parallel-size: 9 experts"));
  EXPECT_THAT(with("--swiglu --num-experts 8 --moe-layer-freq [0]*2+[1]*3"),
              HasSubstr("--moe-layer-freq: found a list of 5 layers, expected 24"));
  EXPECT_THAT(with("--recompute-granularity most"),
              HasSubstr("--recompute-granularity: found \"most\""));
  EXPECT_THAT(with("--hybrid-override-pattern M*"),
              HasSubstr("--num-layers: found 24, expected 2, the letters of the pattern"));
  EXPECT_THAT(MistakeIn("python p.py " + std::string(kSmall)),
              HasSubstr("nothing says how many ranks there are; expected --cluster"));
  EXPECT_THAT(MistakeIn("python p.py --lr 3"), HasSubstr("no command with --num-layers"));
  EXPECT_THAT(MistakeIn("--num-layers 2 --hidden-size 64", "dgx-h100"),
              HasSubstr("no --num-attention-heads given"));
  EXPECT_THAT(MistakeIn("- arguments -\n num_layers .... 3\n"), HasSubstr("the log is cut off"));
  EXPECT_THAT(MistakeIn("python p.py '--num-layers 3"), HasSubstr("run.sh:1: a quote"));
  EXPECT_THAT(MistakeIn(kSmall, "dgx-h1000"), HasSubstr("dgx-h1000"));
}

TEST(MegatronImportTest, ALoopsCommandIsTakenWithARemark) {
  const ImportedScenario imported =
      ImportMegatron("for T in 1 2; do\npython p.py --bf16 " + std::string(kSmall) + "\ndone\n",
                     "run.sh", "dgx-h100");
  EXPECT_THAT(imported.remarks, Contains(HasSubstr("line 2: the command stands in a loop")));
}

constexpr const char* kFourLayers =
    "--num-layers 4 --hidden-size 512 --num-attention-heads 8 --seq-length 1024 "
    "--micro-batch-size 1 --global-batch-size 64 --bf16 ";

nlohmann::json ScenarioOf(const std::string& text, const std::string& cluster = "",
                          const RunSettings& settings = {}) {
  return nlohmann::json::parse(ImportMegatron(text, "run.sh", cluster, settings).text);
}

std::vector<std::string> RemarksOf(const std::string& text) {
  return ImportMegatron(text, "run.sh", "dgx-h100").remarks;
}

TEST(MegatronImportTest, ALauncherInVariablesStartsARankForEachDevice) {
  const std::string run = std::string("pretrain_gpt.py --vocab-size 1000 ") + kFourLayers;
  const std::string script =
      "#SBATCH --nodes=16\n#SBATCH --ntasks-per-node=1\n#SBATCH --gres=gpu:4\nGPUS=4\nN=16\n"
      "export LAUNCH=\"python -m torch.distributed.run --nproc_per_node $GPUS --nnodes $N\"\n"
      "export CMD=\"" +
      run + "\"\necho $CMD\nsrun bash -c '$LAUNCH --node_rank $SLURM_PROCID $CMD'\n";
  EXPECT_EQ(ImportMegatron(script, "run.sh", "").ranks, 64u);
  // Where the launcher does not say it, Slurm's devices count, not its tasks.
  EXPECT_EQ(ImportMegatron("#SBATCH -N4\n#SBATCH --ntasks-per-node=1\n#SBATCH --gres=gpu:h100:4\n"
                           "srun sh -c \"torchrun --nproc_per_node $GPUS " +
                               run + "\"\n",
                           "run.sh", "")
                .ranks,
            16u);
  EXPECT_EQ(
      ImportMegatron("#SBATCH -N4\n#SBATCH --ntasks-per-node=8\nsrun python " + run, "run.sh", "")
          .ranks,
      32u);
  EXPECT_EQ(ImportMegatron("sbatch -N2 <<EOF\nsrun -N 2 torchrun --nproc_per_node 4 --nnodes 2 " +
                               run + "\nEOF\n",
                           "run.sh", "")
                .ranks,
            8u);
}

TEST(MegatronImportTest, WhatTheFileLeavesOpenCanBeGivenBeside) {
  const std::string script = std::string("NODES=${NODES:-1}\nSIZE=$1\n") +
                             "torchrun --nproc_per_node 8 --nnodes $NODES pretrain_gpt.py " +
                             kFourLayers +
                             "--num-layers $SIZE --tokenizer-type HuggingFaceTokenizer "
                             "--tokenizer-model /mine\n";
  EXPECT_THROW(ScenarioOf(script), Error);
  const nlohmann::json scenario = ScenarioOf(
      script, "", {{"NODES", "2"}, {"1", "6"}, {"vocab-size", "1000"}, {"bf16", "true"}});
  EXPECT_EQ(scenario["model"]["layers"], 6);
  EXPECT_EQ(scenario["model"]["vocabulary"], 1024);
  EXPECT_EQ(scenario["cluster"], "dgx-h100:nodes=2");
  // Names of models tell their vocabulary, whatever the tokenizer.
  const auto vocabulary = [](const std::string& more) {
    return ScenarioOf(kFourLayers + more, "dgx-h100")["model"]["vocabulary"].get<int64_t>();
  };
  EXPECT_EQ(vocabulary("--tokenizer-type HuggingFaceTokenizer --tokenizer-model Qwen/Qwen2.5-7B"),
            151936);
  EXPECT_EQ(vocabulary("--tokenizer-type TikTokenizer"), 131072);
}

TEST(MegatronImportTest, WhatIsNoTrainingOfADecoderIsRefused) {
  const auto refused = [](const std::string& text) {
    try {
      ImportMegatron(text, "run.sh", "dgx-h100");
    } catch (const Error& error) {
      return std::string(error.what());
    }
    return std::string("no error");
  };
  const std::string arguments = std::string(kFourLayers) + "--vocab-size 1000 ";
  EXPECT_THAT(refused("python tools/generate_samples_gpt.py " + arguments),
              HasSubstr("generate_samples_gpt.py: it does not train"));
  EXPECT_THAT(refused("python pretrain_bert.py " + arguments), HasSubstr("no decoder"));
  EXPECT_THAT(refused("python tasks/main.py " + arguments), HasSubstr("tunes for a task"));
  EXPECT_THAT(refused(arguments + "--num-tokens-to-generate 8"), HasSubstr("generates text"));
  EXPECT_THAT(refused(arguments + "--skip-train"), HasSubstr("does not train"));
  EXPECT_THAT(refused(arguments + "--vocab-file vocab.txt"), HasSubstr("BERT's"));
  EXPECT_THAT(refused(arguments + "--vocab-size 9 --tokenizer-type BertWordPieceLowerCase"),
              HasSubstr("is BERT's, and nothing says pretrain_gpt.py"));
  EXPECT_EQ(refused(arguments + "--vocab-file vocab.json --merge-file merges.txt"), "no error");
  EXPECT_EQ(refused(arguments + "--vocab-file tokenizer.model"), "no error");
  EXPECT_THAT(refused("MODE: inference\nMODEL_ARGS:\n  --num-layers: 2\n"),
              HasSubstr("does not pretrain"));
  EXPECT_THAT(refused("MODEL_ARGS:\n  --hidden-size: 2\n  --num-attention-heads: 1\n"
                      "  --hybrid-layer-pattern: M-MG\n"),
              HasSubstr("layers \"G\" are not supported"));
}

TEST(MegatronImportTest, ATestsConfigurationIsARunOnAMachineOfEight) {
  const std::string text =
      "ENV_VARS:\n  CUDA_DEVICE_MAX_CONNECTIONS: 1\n  NCCL_ALGO: Ring\n  NCCL_DEBUG: INFO\n"
      "  NVTE_FLASH_ATTN: 0\nMODEL_ARGS:\n  --num-layers: 4\n  --hidden-size: 512\n"
      "  --num-attention-heads: 8\n  --hidden-size: 1024\n  --seq-length: 1024\n"
      "  --micro-batch-size: 1\n  --global-batch-size: 64\n  --bf16: true\n  --swiglu: false\n"
      "  --vocab-size: 1000\n  --tensor-model-parallel-size: 2\n"
      "  --recompute-granularity: selective\n  --recompute-modules: '[core_attn layernorm]'\n";
  const ImportedScenario imported = ImportMegatron(text, "model_config.yaml", "");
  const nlohmann::json scenario = nlohmann::json::parse(imported.text);
  EXPECT_EQ(imported.ranks, 8u);
  EXPECT_EQ(scenario["model"]["hidden"], 1024);  // the last counts
  EXPECT_EQ(scenario["model"]["style"], "gpt");
  EXPECT_EQ(scenario["training"]["attention"], "cudnn");
  EXPECT_EQ(scenario["training"]["recomputed_ops"],
            nlohmann::json::parse(R"(["core-attention", "norms"])"));
  EXPECT_THAT(imported.remarks, Contains(HasSubstr("CUDA_DEVICE_MAX_CONNECTIONS=1")));
  EXPECT_EQ(scenario["simulator"]["collectives"], nlohmann::json::parse(R"([
    {"kind": "all-reduce", "algorithm": "ring"}, {"kind": "all-gather", "algorithm": "ring"},
    {"kind": "reduce-scatter", "algorithm": "ring"}])"));
  EXPECT_THAT(imported.remarks, Not(Contains(HasSubstr("NCCL_DEBUG"))));
}

TEST(MegatronImportTest, VariablesOfNcclAreHonouredWhereTheSimulatorHasAKey) {
  const auto imported = [](const std::string& variables) {
    return ImportMegatron(
        variables +
            "torchrun --nproc_per_node 8 pretrain_gpt.py --num-layers 4 --hidden-size 512 "
            "--num-attention-heads 8 --seq-length 64 --micro-batch-size 1 --vocab-size 1000 --bf16",
        "train.sh", "");
  };
  const ImportedScenario all = imported(
      "export NCCL_ALGO=Tree NCCL_PROTO=LL128 NCCL_NVLS_ENABLE=0 NCCL_PXN_DISABLE=1\n"
      "export NCCL_MAX_NCHANNELS=8 NCCL_MIN_NCHANNELS=4 NCCL_CROSS_NIC=1\n");
  EXPECT_EQ(nlohmann::json::parse(all.text)["simulator"], nlohmann::json::parse(R"({
    "nvls": false, "pxn": false, "channels": 8, "cross_nic": true, "collectives": [
      {"kind": "all-reduce", "algorithm": "tree", "protocol": "ll128"},
      {"kind": "all-gather", "protocol": "ll128"},
      {"kind": "reduce-scatter", "protocol": "ll128"}]})"));
  EXPECT_THAT(all.remarks, Contains(HasSubstr("NCCL_MIN_NCHANNELS=4")));
  EXPECT_THAT(all.remarks, Not(Contains(HasSubstr("NCCL_CROSS_NIC"))));
  const ImportedScenario without = imported("export NCCL_ALGO=^NVLS NCCL_PROTO=^LL\n");
  EXPECT_EQ(nlohmann::json::parse(without.text)["simulator"],
            nlohmann::json::parse(R"({"nvls": false})"));
  EXPECT_THAT(without.remarks, Contains(HasSubstr("NCCL_PROTO=^LL")));
}

TEST(MegatronImportTest, MlpsHaveAsManyWeightsWithAGateAsWithout) {
  const std::string arguments = std::string(kFourLayers) + "--vocab-size 1000 ";
  const auto billions = [&](const std::string& more) {
    return ImportMegatron(arguments + more, "run.sh", "dgx-h100").parameters / 1e9;
  };
  EXPECT_EQ(
      ScenarioOf(arguments + "--quick-geglu --ffn-hidden-size 768", "dgx-h100")["model"]["style"],
      "llama");
  // Four layers of eight experts of 2 · 512 · 2048.
  const double plain = billions("--num-experts 8 --moe-router-topk 2");
  EXPECT_NEAR(plain, billions("") + 4 * 7 * 2 * 512 * 2048e-9, 0.005 * plain);
  EXPECT_THAT(RemarksOf(arguments + "--num-experts 8"), Contains(HasSubstr("two thirds")));
  EXPECT_EQ(ScenarioOf(arguments + "--num-experts 8 --swiglu --moe-layer-freq ([0,1]*2)",
                       "dgx-h100")["model"]["experts"]["every"],
            2);
}

TEST(MegatronImportTest, OlderNamesAndDeepSpeedsPartsAreKnown) {
  const nlohmann::json scenario = ScenarioOf(
      "--num-layers 6 --hidden-size 512 --num-attention-heads 8 --seq-length 1024 --vocab-size "
      "1000 "
      "--model-parallel-size 2 --pipe-parallel-size 4 --micro-batch-size 2 --gas 16 --fp16 "
      "--pp-partition-method type:transformer|embedding",
      "dgx-h100");
  EXPECT_EQ(scenario["pipeline"]["stages"], 4);
  EXPECT_EQ(scenario["pipeline"]["layers"], nlohmann::json::parse("[1, 2, 2, 1]"));
  EXPECT_EQ(scenario["training"]["batch"], 32);
  EXPECT_THAT(RemarksOf(std::string(kFourLayers) + "--vocab-size 1000 --deterministic-mode"),
              Contains(HasSubstr("--deterministic-mode")));
}

TEST(MegatronImportTest, AScriptThatOnlySetsVariablesSaysTheArguments) {
  EXPECT_THAT(RemarksOf("if [ -z $MODEL ]; then V=1000; else V=$MODEL; fi\nMODEL_ARGS=\"" +
                        std::string(kFourLayers) + "--vocab-size $V\"\n"),
              Contains(HasSubstr("those in MODEL_ARGS")));
}

TEST(MegatronImportTest, RecipesOfProgramsBuiltOnItAreItsArguments) {
  if (!HasYaml()) GTEST_SKIP() << "built without yaml-cpp";
  const ImportedScenario nemo = ImportMegatron(
      "trainer:\n  devices: 8\n  num_nodes: 2\n  precision: bf16-mixed\nmodel:\n"
      "  micro_batch_size: 1\n  global_batch_size: 128\n  tensor_model_parallel_size: 4\n"
      "  pipeline_model_parallel_size: 2\n  encoder_seq_length: 4096\n  num_layers: 32\n"
      "  hidden_size: 4096\n  ffn_hidden_size: 11008\n  num_attention_heads: 32\n"
      "  activation: fast-swiglu\n  normalization: rmsnorm\n  bias: false\n"
      "  share_embeddings_and_output_weights: false\n  sequence_parallel: true\n"
      "  virtual_pipeline_model_parallel_size: null\n  max_position_embeddings: "
      "${.encoder_seq_length}\n"
      "  tokenizer:\n    type: Llama2Tokenizer\n  optim:\n    name: distributed_fused_adam\n"
      "  something_new: 3\n",
      "llama2_7b.yaml", "");
  EXPECT_EQ(DescribeRun(nemo.text), DescribeRun(R"({
    "name": "hand", "software": "megatron-core", "cluster": "dgx-h100:nodes=2",
    "model": {"style": "llama", "layers": 32, "hidden": 4096, "heads": 32, "feed_forward": 11008,
              "vocabulary": 32256, "tied": false},
    "training": {"batch": 128, "sequence": 4096, "micro_batches": 64, "recomputation": "none"},
    "strategy": {"kind": "megatron", "tensor": 4, "data": 2, "sequence_parallel": true,
                 "distributed_optimizer": true, "overlap_gradients": false},
    "pipeline": {"stages": 2, "schedule": "1f1b"}})"));
  EXPECT_EQ(nemo.ranks, 16u);
  EXPECT_THAT(nemo.remarks, Contains(HasSubstr("model.something_new")));
  const nlohmann::json neox = nlohmann::json::parse(
      ImportMegatron(
          "{\n  # a comment\n  \"num-layers\": 12,\n  \"hidden-size\": 768,\n"
          "  \"num-attention-heads\": 12, \"seq-length\": 2048,\n"
          "  \"pipe-parallel-size\": 2, \"model-parallel-size\": 1,\n"
          "  \"train_micro_batch_size_per_gpu\": 4, \"gradient_accumulation_steps\": 8,\n"
          "  \"fp16\": {\"enabled\": true}, \"no-weight-tying\": true,\n"
          "  \"zero_optimization\": {\"stage\": 1}\n}\n",
          "small.yml", "dgx-h100", {{"vocab-size", "50257"}})
          .text);
  EXPECT_EQ(neox["training"]["batch"], 128);
  EXPECT_EQ(neox["model"]["tied"], false);
  EXPECT_EQ(neox["pipeline"]["stages"], 2);
}

TEST(MegatronImportTest, WhatOfRecipesIsNotUnderstoodIsListed) {
  if (!HasYaml()) GTEST_SKIP() << "built without yaml-cpp";
  const std::string recipe =
      "trainer:\n  precision: bf16\nmodel:\n  micro_batch_size: 1\n  global_batch_size: 8\n"
      "  encoder_seq_length: 64\n  num_layers: 2\n  hidden_size: 64\n  num_attention_heads: 4\n"
      "  vocab_size: 128\n  optim:\n    name: distributed_fused_adam\n    lr: 0.1\n";
  const auto import = [&](const std::string& more) {
    return ImportMegatron(recipe + more, "tiny.yaml", "dgx-h100");
  };
  EXPECT_THAT(import("").text, HasSubstr("\"gradients\": \"fp32\""));
  const ImportedScenario narrow = import(
      "    grad_sync_dtype: bf16\n    bucket_cap_mb: 125\n"
      "  zero_optimization:\n    cpu_offload: true\n");
  EXPECT_THAT(narrow.text, HasSubstr("\"gradients\": \"bf16\""));
  EXPECT_THAT(narrow.remarks, Contains(AllOf(HasSubstr("model.optim.bucket_cap_mb 125"),
                                             HasSubstr("zero_optimization.cpu_offload"))));
}

TEST(MegatronImportTest, LayersThatAreNoUsualAttentionAreRefusedByName) {
  for (const std::string more :
       {"--experimental-attention-variant gated_delta_net", "--linear-attention-freq 3",
        "--heterogeneous-layers-config-path layers.json"}) {
    try {
      Small(more);
      ADD_FAILURE() << more;
    } catch (const Error& error) {
      EXPECT_THAT(error.what(),
                  AllOf(HasSubstr(more.substr(0, more.find(' '))), HasSubstr("not supported")));
    }
  }
}

// examples/post_training/modelopt/conf/nvidia/Nemotron-H-56B-Base-8K.sh, with a batch.
TEST(MegatronImportTest, PatternsOfLayersAreRead) {
  const std::string pattern =
      "M-M-M-M*-M-M-M-M-M*-M-M-M-M-M*-M-M-M-M-M*-M-M-M-M-M*-M-M-M-M-M*-M-M-M-M-M*-M-M-M-M-M*-"
      "M-M-M-M-M*-M-M-M-M-M*-M-M-M-M-M-";
  const ImportedScenario imported = ImportMegatron(
      "torchrun --nproc-per-node 8 --nnodes 4 pretrain_mamba.py --hybrid-layer-pattern " + pattern +
          " --mamba-state-dim 256 --is-hybrid-model --use-mcore-models "
          "--untie-embeddings-and-output-weights --disable-bias-linear "
          "--position-embedding-type none --squared-relu --hidden-size 8192 "
          "--num-attention-heads 64 --group-query-attention --num-query-groups 8 "
          "--ffn-hidden-size 32768 --kv-channels 128 --normalization RMSNorm "
          "--tensor-model-parallel-size 8 --sequence-parallel --seq-length 8192 "
          "--micro-batch-size 1 --global-batch-size 96 --vocab-size 131072 --bf16 "
          "--hidden-dropout 0 --attention-dropout 0",
      "nemotron.sh", "dgx-h100");
  const auto model = nlohmann::json::parse(imported.text)["model"];
  EXPECT_EQ(model["layer_pattern"], pattern);
  EXPECT_EQ(model["mamba"]["state"], 256);
  EXPECT_EQ(model["activation"], "squared-relu");
  EXPECT_EQ(model["rotary"], false);
  const JsonDocument document = JsonDocument::FromValue(model, {"nemotron.sh", 0, ""});
  EXPECT_EQ(ReadModel(document.Root()).Parameters(), 56324350464);
  EXPECT_THAT(imported.remarks, Not(Contains(HasSubstr("two thirds"))));
}

// Behind slashes, or by --mtp-num-layers and --mtp-hybrid-override-pattern.
TEST(MegatronImportTest, LayersThatPredictAheadAreReadOfPatterns) {
  const std::string rest =
      "torchrun --nproc-per-node 8 pretrain_mamba.py --untie-embeddings-and-output-weights "
      "--disable-bias-linear --position-embedding-type none --squared-relu --hidden-size 512 "
      "--num-attention-heads 8 --normalization RMSNorm --seq-length 512 --micro-batch-size 1 "
      "--global-batch-size 16 --vocab-size 1024 --bf16 --hidden-dropout 0 --attention-dropout 0 "
      "--num-experts 16 --moe-router-topk 4 --moe-ffn-hidden-size 256 --moe-latent-size 128 "
      "--moe-grouped-gemm --expert-model-parallel-size 8 --hybrid-layer-pattern ";
  const auto model = [&](const std::string& more) {
    return nlohmann::json::parse(ImportMegatron(rest + more, "x.sh", "dgx-h100").text)["model"];
  };
  for (const char* more : {"ME*E/*E/*E --mtp-use-repeated-layer",
                           "ME*E --mtp-num-layers 2 --mtp-hybrid-override-pattern *E "
                           "--mtp-use-repeated-layer"}) {
    const auto read = model(more);
    EXPECT_EQ(read["layer_pattern"], "ME*E");
    EXPECT_EQ(read["predict_ahead"], 2);
    EXPECT_EQ(read["ahead_pattern"], "*E");
    EXPECT_EQ(read["ahead_weights"], "shared");
    EXPECT_EQ(read["experts"]["latent"], 128);
  }
  EXPECT_FALSE(model("ME*E --mtp-num-layers 1").contains("predict_ahead"));
  try {
    model("ME*E/*E/M");
    ADD_FAILURE();
  } catch (const Error& error) {
    EXPECT_THAT(error.what(), HasSubstr("layers behind the slashes differ"));
  }
}

TEST(MegatronImportTest, ABatchThatGrowsIsTheLastOne) {
  const ImportedScenario imported = Small("--step-batch-size-schedule '0:64 200B:128'");
  EXPECT_EQ(nlohmann::json::parse(imported.text)["training"]["batch"], 128);
  EXPECT_THAT(imported.remarks, Contains(HasSubstr("the step has the full batch")));
  try {
    Small("--step-batch-size-schedule all");
    ADD_FAILURE();
  } catch (const Error& error) {
    EXPECT_THAT(error.what(), HasSubstr("expected sizes of batches"));
  }
}

}  // namespace megatron_import_test
}  // namespace rehearse

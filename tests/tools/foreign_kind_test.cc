// What files of other programs are, told by how they begin; and nothing of the rest.
#include "tools/foreign_kind.h"

#include <string>

#include <gtest/gtest.h>

#include "tests/support/places.h"
#include "tools/import_kinds.h"

namespace rehearse {
namespace foreign_kind_test {

struct Sample {
  const char* name;
  const char* head;
  const char* kind;
};

constexpr Sample kSamples[] = {
    {"a.xml", "<system version=\"1\">\n  <cpu numaid=\"0\">", "nccl"},
    {"a.xml", "<graphs version=\"1\">", "nccl-graph"},
    {"a", "<?xml version=\"1.0\"?>\n<!DOCTYPE topology SYSTEM \"hwloc2.dtd\">", "lstopo"},
    {"a.txt", "\tGPU0\tGPU1\tCPU Affinity\nGPU0\t X \tNV12", "smi"},
    {"nvlink.txt", "GPU 0: NVIDIA H100 80GB HBM3 (UUID: GPU-1)\n\t Link 0: 26.562 GB/s", "smi"},
    {"amd.txt", "LINK TYPE TABLE:\n 0000:0c:00.0\n", "smi"},
    {"amd.json",
     "[{\"gpu\": 0, \"bdf\": \"0000:01:00.0\", \"links\": [{\"link_type\": \"SELF\"}]}]", "smi"},
    {"topology.conf", "# racks\nSwitchName=leaf0 Nodes=n[0-3]", "slurm"},
    {"blocks", "BlockName=b1 Nodes=n[0-17]\nBlockSizes=18", "slurm"},
    {"topology.yaml", "- topology: t\n  tree:\n    switches:\n", "slurm"},
    {"net", "#\n# Topology file\n#\nvendid=0x2c9\nswitchguid=0xa01(a01)\nSwitch\t41",
     "ibnetdiscover"},
    {"infra.yaml", "name: x\ndevices:\n- name: host\ninstances:\n- name: h", "infragraph"},
    {"network.yml", "# rings\ntopology: [ Ring ]\nnpus_count: [ 8 ]\n", "astra-sim"},
    {"gpt.txt", "HYBRID_TRANSFORMER\tmodel_parallel_NPU_group: 8\n12\n", "astra-workload"},
    {"infra.json", "{\"name\": \"x\", \"devices\": [], \"instances\": []}", "infragraph"},
    {"config.json", "{\"architectures\": [\"LlamaForCausalLM\"]}", "hf"},
    {"train.sh", "#!/bin/bash\ntorchrun pretrain_gpt.py --num-layers 32 --hidden-size 64",
     "megatron"},
    {"run.log", "------------------------ arguments ------------------------\n  bf16 ... True",
     "megatron"},
    {"model_config.yaml", "ENV_VARS:\n  X: 1\nMODEL_ARGS:\n  --num-layers: 12", "megatron"},
    {"llama3.toml", "[job]\ndump_folder = \"x\"\n", "torchtitan"},
    {"base.yml", "base_emb_dim: 2048\nbase_num_decoder_layers: 16\n", "maxtext"},
    {"tiny.yaml", "model:\n  model_config:\n    a: 1\nparallelism:\n  dp: 1\ntokens:\n",
     "nanotron"},
    {"run.yml", "base_model: a/b\nsequence_len: 8\nmicro_batch_size: 1\n", "axolotl"},
    {"full.yaml", "model:\n  _component_: torchtune.models.llama3.llama3_8b\n", "torchtune"},
    {"default.yaml", "compute_environment: LOCAL_MACHINE\ndistributed_type: FSDP\n", "accelerate"},
    {"llama3.py", "from megatron.bridge import AutoBridge\n", "nemo"},
    {"ds.json", "{\"zero_optimization\": {\"stage\": 3}}", "deepspeed"},
    {"rank0.json", "{\"schemaVersion\": 1, \"deviceProperties\": [], \"traceEvents\": [", "kineto"},
    {"report.sqlite", "SQLite format 3\1\2", "nsys"},
    {"step.0.et", "\1\2", "chakra"},
    {"a.log",
     "#       size         count      type   redop    root     time   algbw   busbw\n"
     "#        (B)    (elements)                               (us)  (GB/s)  (GB/s)\n",
     "nccl-tests"},
    {"cluster_job_log", "[\n  {\"jobid\": \"a\", \"attempts\": [], \"submitted_time\": null}]",
     "philly"},
    {"pai_task_table.csv",
     "4f05,tensorflow,1.0,Terminated,1739162.0,1739200.0,600.0,29.2,50.0,MISC", "pai"},
    {"tasks.csv",
     "job_name,task_name,inst_num,status,start_time,end_time,plan_cpu,plan_mem,plan_gpu,gpu_type",
     "pai"},
    {"pods.csv",
     "name,cpu_milli,memory_mib,num_gpu,gpu_milli,gpu_spec,qos,pod_phase,creation_time,"
     "deletion_time,scheduled_time",
     "openb"},
    {"cluster_log.csv",
     "job_id,user,vc,gpu_num,cpu_num,node_num,state,submit_time,start_time,end_time,duration,queue",
     "helios"},
    {"trace_seren.csv",
     "job_id,user,node_num,gpu_num,cpu_num,type,state,submit_time,start_time,end_time,duration",
     "acme"},
};

TEST(ForeignKindTest, FilesAreKnownByWhatTheyHold) {
  for (const Sample& sample : kSamples) {
    const std::optional<std::string> kind = ForeignKindOf(sample.name, sample.head);
    ASSERT_TRUE(kind) << sample.head;
    EXPECT_EQ(*kind, sample.kind) << sample.head;
    EXPECT_NE(FindImportKind(*kind), nullptr);
  }
}

TEST(ForeignKindTest, OurOwnFilesAreNobodyElses) {
  for (const char* name : {"strategy-fsdp.json", "studies/zero-bubble.json", "gpu-one.json"})
    EXPECT_FALSE(ForeignKind(SourceDir() + "/scenarios/" + name)) << name;
  EXPECT_FALSE(ForeignKindOf("table.csv", "size,time\n32,35.03\n").value_or("nccl-tests") !=
               "nccl-tests");
  EXPECT_FALSE(ForeignKindOf("letter.txt", "Dear all,\nthe cluster is slow.\n"));
  EXPECT_FALSE(ForeignKind("no-such-file"));
  EXPECT_FALSE(ForeignKind("-"));
}

}  // namespace foreign_kind_test
}  // namespace rehearse

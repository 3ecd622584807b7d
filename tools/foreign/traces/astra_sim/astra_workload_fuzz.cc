// Workloads of ASTRA-sim 1.0 and SimAI.
#include "tests/fuzz/corpus.h"
#include "tests/fuzz/fuzz_target.h"
#include "tools/foreign/traces/astra_sim/workload_text.h"

namespace rehearse {
namespace {

void ReadAstraWorkload(std::string_view input) {
  ImportAstraWorkload(input, "gpt.txt", 8, {{"model_parallel_NPU_group", "2"}});
}

std::vector<std::string> AstraWorkloadSeeds() {
  return {
      "HYBRID_TRANSFORMER_FWD_IN_BCKWD model_parallel_NPU_group: 2 ep: 2 pp: 2 all_gpus: 16 "
      "checkpoints: 1 0 checkpoint_initiates: 1 1\n2\n"
      "a -1 10 ALLGATHER 64 10 REDUCESCATTER 64 10 ALLREDUCE 64 1\n"
      "b -1 10 ALLTOALL_EP 64 10 NONE 0 10 REDUCESCATTER_DP_EP 64 1\n",
      "DATA\n1\nconv1 -1 10 NONE 0 10 NONE 0 10 ALLREDUCE 64 1\n",
      "HYBRID_CUSTOMIZED model_parallel_NPU_group: 2\n1\n"
      "a -1 10 ALLGATHER 64 10 REDUCESCATTER 64 10 ALLREDUCE 64 1 HYBRID_MODEL_DATA\n",
      "HYBRID_DLRM 1\n3\ne -1 5 ALLTOALL 64 6 ALLTOALL 64 7 NONE 0 0\n"
      "m -1 10 NONE 0 20 NONE 0 30 ALLREDUCE 128 0\nt -1 11 NONE 0 21 NONE 0 31 ALLREDUCE 8 0\n",
      "MICRO\n1\nmicro_test\t-1\t1\tNONE\t0\t1\tNONE\t0\t1\tALLREDUCE\t4096\t1\n"};
}

std::vector<std::string> AstraWorkloadWords() {
  return {"HYBRID_TRANSFORMER ",
          "HYBRID_DATA_MODEL ",
          "HYBRID_MODEL_DATA ",
          "MODEL ",
          "DISTRIBUTED_INFERENCE ",
          "HYBRID_DLRM ",
          "HYBRID_CUSTOMIZED ",
          "DLRM_LAST_BOTTOM_LAYER: ",
          "all_gpus: ",
          "checkpoints: ",
          "checkpoint_initiates: ",
          "BROADCAST",
          "ALLREDUCE",
          "_EP",
          "-1",
          "1048576",
          "1125899906842624",
          "\n"};
}

const FuzzTargetRow kAstraWorkloadRow({"astra_workload", ReadAstraWorkload, AstraWorkloadSeeds,
                                       AstraWorkloadWords});

}  // namespace
}  // namespace rehearse

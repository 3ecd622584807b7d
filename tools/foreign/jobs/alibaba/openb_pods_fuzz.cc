// Lists of pods of Alibaba's trace of 2023.
#include "tests/fuzz/corpus.h"
#include "tests/fuzz/fuzz_target.h"
#include "tools/foreign/jobs/alibaba/openb_pods.h"

namespace rehearse {
namespace {

void ReadPodList(std::string_view input) { ReadOpenbPods(WriteFuzzFile("pods.csv", input)); }

std::vector<std::string> PodSeeds() {
  return {
      "name,cpu_milli,memory_mib,num_gpu,gpu_milli,gpu_spec,qos,pod_phase,creation_time,"
      "deletion_time,scheduled_time\n"
      "p0,4000,1024,1,1000,,LS,Running,0,500,0\n"
      "p1,4000,1024,8,1000,A|B,Burstable,Succeeded,10,70,20\n"
      "p2,4000,1024,1,460,,BE,Failed,20,500,30\n"
      "p3,4000,1024,0,0,,LS,Pending,20,500,\n"};
}

std::vector<std::string> PodWords() {
  return {"name",
          "num_gpu",
          "gpu_milli",
          "creation_time",
          "deletion_time",
          "scheduled_time",
          ",",
          "\n",
          "\"",
          "0",
          "1000",
          "460",
          "nan",
          "1e9",
          "-1"};
}

const FuzzTargetRow kOpenbPodsRow({"openb_pods", ReadPodList, PodSeeds, PodWords});

}  // namespace
}  // namespace rehearse

// Lists of pods as Alibaba's trace of 2023 has them, with made-up pods.
#include "tools/foreign/jobs/alibaba/openb_pods.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "tests/foreign/jobs/imported_jobs.h"

namespace rehearse {
namespace openb_pods_test {

using ::testing::ElementsAre;

const std::string kColumns =
    "name,cpu_milli,memory_mib,num_gpu,gpu_milli,gpu_spec,qos,pod_phase,creation_time,"
    "deletion_time,scheduled_time\n";

TEST(OpenbPodsTest, APodIsAJob) {
  const ImportedJobs imported =
      ImportedFrom(ReadOpenbPods, kColumns +
                                      "p0,4000,1024,1,1000,,LS,Running,0,500,0\n"
                                      "p1,4000,1024,8,1000,A|B,Burstable,Succeeded,10,70,20\n"
                                      "p2,4000,1024,1,460,,BE,Failed,20,500,30\n"
                                      "p3,4000,1024,0,0,,LS,Running,20,500,30\n"
                                      "p4,4000,1024,1,1000,,LS,Pending,20,500,\n");
  EXPECT_THAT(LinesOf(imported),
              ElementsAre("p0 at 0 on 1 for 500", "p1 at 10 on 8 for 50", "p2 at 20 on 1 for 470"));
  EXPECT_THAT(imported.trace.notes,
              ElementsAre("left out: 1 job without GPUs", "left out: 1 job that never started",
                          "1 job on a share of one GPU: it counts as a whole one",
                          "2 jobs that were there until the last was deleted, and may have run "
                          "longer"));
}

TEST(OpenbPodsTest, MistakesAreSaidWithTheirLine) {
  EXPECT_EQ(MistakeOf(ReadOpenbPods, kColumns + "p0,4000,1024,1,1001,,LS,Running,0,500,0\n"),
            "trace:2: gpu_milli: found \"1001\", expected a number from 0 to 1000");
}

}  // namespace openb_pods_test
}  // namespace rehearse

// Tasks of Alibaba's PAI, with and without names of the columns; all made up.
#include "tools/foreign/jobs/alibaba/pai_tasks.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "tests/foreign/jobs/imported_jobs.h"

namespace rehearse {
namespace pai_tasks_test {

using ::testing::Contains;
using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::StartsWith;

ImportedJobs ReadPaiTasks(const std::string& path, const JobWindow& window) {
  return ReadPai({path}, window);
}

const std::string kNames =
    "job_name,task_name,inst_num,status,start_time,end_time,plan_cpu,plan_mem,plan_gpu,gpu_type\n";
const std::string kWorker = "j1,worker,2.0,Terminated,1000.0,1600.0,600.0,29.3,100.0,V100\n";

TEST(PaiTasksTest, AJobHoldsTheGpusOfAllItsTasks) {
  // The second task begins later and ends earlier; its 3 GPUs are held all the same. The parameter
  // server has none.
  const std::string rows = kWorker +
                           "j2,tensorflow,1.0,Failed,1100.0,1160.0,600.0,29.3,100.0,MISC\n"
                           "j1,evaluator,1.0,Terminated,1200.0,1500.0,600.0,29.3,300.0,V100\n"
                           "j1,ps,4.0,Terminated,900.0,1700.0,600.0,29.3,,CPU\n";
  for (const std::string& names : {std::string(), kNames}) {
    const ImportedJobs imported = ImportedFrom(ReadPaiTasks, names + rows);
    EXPECT_THAT(LinesOf(imported), ElementsAre("j1 at 0 on 5 for 600", "j2 at 100 on 1 for 60"));
    EXPECT_THAT(imported.trace.notes, ElementsAre(HasSubstr("when their first task was launched")));
  }
}

TEST(PaiTasksTest, FractionsAreRoundedUpAndSaid) {
  // 2 * 0.5 is whole, 3 * 0.5 becomes 2, and 0.1 becomes 1: 1.6 become 3.
  const ImportedJobs imported =
      ImportedFrom(ReadPaiTasks, kNames +
                                     "a,w,2,Terminated,1000,1001,,,50.0,T4\n"
                                     "b,w,3,Terminated,1000,1001,,,50.0,T4\n"
                                     "c,w,1,Terminated,1000,1001,,,10.0,T4\n");
  EXPECT_THAT(LinesOf(imported),
              ElementsAre("a at 0 on 1 for 1", "b at 0 on 2 for 1", "c at 0 on 1 for 1"));
  EXPECT_THAT(imported.trace.notes,
              Contains("2 jobs on fractions of a GPU, 2 GPUs in all, each rounded up to whole "
                       "ones, 3 in all"));
}

TEST(PaiTasksTest, WhatIsLeftOutIsCounted) {
  const ImportedJobs imported =
      ImportedFrom(ReadPaiTasks, kNames + kWorker +
                                     "cpu,w,1,Terminated,1000,1001,600,29,,CPU\n"
                                     "waits,w,1,Waiting,,,600,29,100,T4\n"
                                     "runs,w,1,Running,1000,0,600,29,100,T4\n"
                                     "half,w,1,Terminated,1000,1500,600,29,100,T4\n"
                                     "half,v,1,Running,1000,,600,29,100,T4\n"
                                     "j1,late,1,Waiting,0,0,600,29,100,T4\n");
  EXPECT_THAT(LinesOf(imported), ElementsAre("j1 at 0 on 2 for 600"));
  EXPECT_THAT(imported.trace.notes,
              ElementsAre("left out: 1 job without GPUs", "left out: 1 job that never started",
                          "left out: 2 jobs whose end is missing",
                          "1 job with tasks that never started, whose GPUs are not counted",
                          HasSubstr("first task was launched")));
}

// j1 was submitted 100 s before its tasks were launched; j3 is in one table only, j4 in the other.
TEST(PaiTasksTest, ATableOfJobsSaysWhenTheyWereSubmittedAndByWhom) {
  const TemporaryFolder folder("pai");
  std::ofstream(folder / "tasks") << kWorker << "j2,w,1,Failed,910,920,600,29,100,T4\n"
                                  << "j3,w,1,Failed,910,920,600,29,100,T4\n";
  for (const char* names : {"", "job_name,inst_id,user,status,start_time,end_time\n"}) {
    std::ofstream(folder / "jobs") << names << "j2,i2,u2,Failed,905.0,920.0\n"
                                   << "j4,i4,u2,Failed,905.0,920.0\n"
                                   << "j1,i1,u1,Terminated,900.0,1600.0\n";
    const ImportedJobs imported = ReadPai({folder / "tasks", folder / "jobs"});
    EXPECT_THAT(LinesOf(imported),
                ElementsAre("j1 at 0 on 2 for 600 by u1", "j2 at 5 on 1 for 10 by u2"));
    EXPECT_THAT(imported.trace.notes, ElementsAre("left out: 1 job without a time of submission"));
  }
  EXPECT_THAT(ErrorOf([&] {
                ReadPai({folder / "tasks", folder / "tasks"});
              }),
              HasSubstr("tasks:1: expected the pai_job_table.csv of Alibaba's PAI"));
  EXPECT_THAT(ErrorOf([&] { ReadPai({"a", "b", "c"}); }), StartsWith("found 3 files, expected"));
}

TEST(PaiTasksTest, MistakesAreSaidWithTheirLine) {
  EXPECT_EQ(MistakeOf(ReadPaiTasks, kWorker + "j2,w,x,Failed,1,2,600,29,100,T4\n"),
            "trace:2: inst_num: found \"x\", expected a number from 0 to 1048576");
  EXPECT_EQ(MistakeOf(ReadPaiTasks, kWorker + ",w,1,Failed,1,2,600,29,100,T4\n"),
            "trace:2: job_name: found \"\", expected the name of a job");
  EXPECT_EQ(MistakeOf(ReadPaiTasks, kWorker + "j2,w,1,Failed,-1,2,600,29,100,T4\n"),
            "trace:2: start_time: found \"-1\", expected a number from 0 to 3200000000");
  EXPECT_EQ(MistakeOf(ReadPaiTasks, kWorker + "j2,w,1048576,Failed,1,2,600,29,100000,T4\n"),
            "trace:2: plan_gpu: found \"100000\", expected at most 16777216 GPUs in a job");
  EXPECT_THAT(MistakeOf(ReadPaiTasks, "a,b,c,d,e,f,g,h,i,secret\n"),
              StartsWith("trace:1: expected the pai_task_table.csv of Alibaba's PAI"));
}

}  // namespace pai_tasks_test
}  // namespace rehearse

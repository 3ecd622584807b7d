// Tables of Slurm's jobs, as Helios and Acme have them.
#include "tests/fuzz/corpus.h"
#include "tests/fuzz/fuzz_target.h"
#include "tools/foreign/jobs/helios/cluster_log.h"

namespace rehearse {
namespace {

void ReadClusterLogs(std::string_view input) {
  const std::string path = WriteFuzzFile("cluster_log.csv", input);
  JobWindow window;
  window.first = 2;
  window.from_day = 0.5;
  ReadAcme(path, window);
  ReadHelios(path);
}

std::vector<std::string> ClusterLogSeeds() {
  return {
      "job_id,user,vc,gpu_num,cpu_num,node_num,state,submit_time,start_time,end_time,duration,"
      "queue\n"
      "7,ua,vcb,8,32,1,COMPLETED,2020-05-01 01:00:00,2020-05-01 01:00:10,2020-05-01 "
      "01:01:10,60,10\n"
      "8,ub,vcb,0,4,1,FAILED,2020-05-02 01:00:00,2020-05-02 01:00:10,2020-05-02 01:01:10,60,10\n"
      "9,ub,vcb,1,4,1,CANCELLED,2020-05-03 01:00:00,2020-05-03 01:00:10,2020-05-03 "
      "01:01:10,60,10\n"
      "10,ub,vcb,1,4,1,RUNNING,2020-05-03 01:00:00,,,,\n",
      "job_id,user,node_num,gpu_num,cpu_num,type,state,submit_time,start_time,end_time,duration,"
      "queue,gpu_time\n"
      "5778,u1,1,8,128,Other,FAILED,2023-03-01 00:18:22+08:00,2023-03-01 "
      "00:18:54+08:00,2023-03-01 00:20:51+08:00,117,32,936.0\r\n"
      "\"5,7\",\"u\"\"2\",2,16,128,Other,COMPLETED,2023-03-02 00:18:22Z,2023-03-02 "
      "00:18:54,2023-03-02 00:20:51,117,32,936.0\n"};
}

std::vector<std::string> ClusterLogWords() {
  return {"gpu_num",  "state",  "submit_time", "start_time", "end_time",   "duration",
          "job_id",   "user",   "RUNNING",     "PENDING",    "COMPLETED",  ",",
          "\n",       "\r\n",   "\"",          "\"\"",       "nan",        "None",
          "-1",       "1.5",    "1e9",         "1048577",    "2069-12-31", "1969-12-31",
          "24:00:00", "+08:00", "-14:59",      "Z",          " PST",       ".999999999999",
          "T"};
}

const FuzzTargetRow kClusterLogRow({"cluster_log", ReadClusterLogs, ClusterLogSeeds,
                                    ClusterLogWords});

}  // namespace
}  // namespace rehearse

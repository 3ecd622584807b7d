// Tables of the tasks of Alibaba's PAI, with and without names of their columns, and with a table
// of its jobs.
#include "tests/fuzz/corpus.h"
#include "tests/fuzz/fuzz_target.h"
#include "tools/foreign/jobs/alibaba/pai_tasks.h"

namespace rehearse {
namespace {

constexpr std::string_view kBetweenTables = "\n--8<--\n";

void ReadPaiTable(std::string_view input) {
  const size_t end = input.find(kBetweenTables);
  std::vector<std::string> paths = {WriteFuzzFile("pai_task_table.csv", input.substr(0, end))};
  if (end != std::string_view::npos) {
    paths.push_back(WriteFuzzFile("pai_job_table.csv", input.substr(end + kBetweenTables.size())));
  }
  ReadPai(paths);
}

std::vector<std::string> PaiSeeds() {
  const std::string rows =
      "a1,worker,2.0,Terminated,1000.0,1600.0,600.0,29.3,50.0,V100\n"
      "a1,ps,1.0,Terminated,1000.0,1600.0,600.0,29.3,,CPU\n"
      "b2,tensorflow,1.0,Failed,900.0,1100.0,600.0,29.3,100.0,MISC\n"
      "c3,tensorflow,1.0,Waiting,,,600.0,29.3,100.0,T4\n";
  return {rows,
          rows + std::string(kBetweenTables) +
              "a1,i1,u1,Terminated,990.0,1600.0\nb2,i2,u2,Failed,1000.0,1100.0\n",
          "job_name,task_name,inst_num,status,start_time,end_time,plan_cpu,plan_mem,plan_gpu,"
          "gpu_type\n" +
              rows};
}

std::vector<std::string> PaiWords() {
  return {"job_name",   "inst_num", "status",  "start_time", "end_time", "plan_gpu",
          "Terminated", "Failed",   "Running", "Waiting",    "0",        "0.0",
          "50.0",       "25",       "102400",  "1048576",    "3.2e9",    "nan",
          ",",          "\n",       "\"",      "a1,",        "-1"};
}

const FuzzTargetRow kPaiTasksRow({"pai_tasks", ReadPaiTable, PaiSeeds, PaiWords});

}  // namespace
}  // namespace rehearse

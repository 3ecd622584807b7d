// What one rank did, written line by line during the run, so that a run that ends early leaves what
// it had. Every rank writes its own file:
//
//   {"schema": "rehearse.steps.v1", "scenario": "...", "rank": 1, "ranks": 4}
//   {"step": 0, "warm_up": true, "ops": [[op, ready, end], ...]}
//   {"step": 3, "warm_up": false, "ops": [...], "failure": "rank 0 ..."}
//
// Times are nanoseconds of the rank's own clock; a step that failed has the ops that ended.
// A line is written as a whole or not at all: if the disk is full, an incomplete line is removed.
#pragma once

#include <string>

#include "real/execution/execute.h"

namespace rehearse {

class StepLog {
 public:
  // Throws Error("cannot write ...") if the file cannot be made, as Write does if the disk is full.
  StepLog(std::string path, const std::string& scenario, uint32_t rank, uint32_t ranks);
  ~StepLog();
  StepLog(const StepLog&) = delete;
  StepLog& operator=(const StepLog&) = delete;

  void Write(const StepOfRank& step);

 private:
  void Append(const std::string& line);

  std::string path_;
  int file_ = -1;
};

}  // namespace rehearse

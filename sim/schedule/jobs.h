// Jobs: schedules that are played at the same time on one machine, each on ranks of its own.
//
// Engine and reports know only one Schedule. So jobs are joined into one whose ranks are the
// machine's devices, this is played, and each job's part is cut out of the result
// (sim/report/job_part.h).
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "sim/base/quantity.h"
#include "sim/schedule/schedule.h"

namespace rehearse {

// A schedule, and where and when it is played.
struct Job {
  std::string name;                 // without '/', and different from the others'
  Schedule schedule;                // of one step
  std::vector<uint32_t> placement;  // rank -> device, each once
  Seconds start;                    // nothing of the job begins before it
  // Whole steps: a rank begins one when it has ended the previous one on all of its streams.
  uint32_t repeat = 1;
};

// Whether it is a single job on all devices, rank by rank, played once from the start: then the
// joint schedule is its own.
bool IsWhole(const std::vector<Job>& jobs, uint32_t devices);

// Whether it is a single job that takes one step from the start, on whichever devices: the joint
// schedule then does what its own does.
bool IsOneStep(const std::vector<Job>& jobs);

// One schedule with a rank for each device. Roles are those of the jobs, one after the other, and a
// last one without ops where devices are spare. Communicators name devices; of several jobs they
// are called "job/axis", roles "job/role".
//
// A rank that starts late first does one op that lasts until then and occupies nothing; the ops of
// its steps follow, step by step, so that position i of step s is FirstOp(job) + s·OpCount() + i.
// Steps share their buffers. CHECKs that a device has at most one rank.
Schedule Join(const std::vector<Job>& jobs, uint32_t devices);

// How many ops of a rank come before those of its first step.
uint32_t FirstOp(const Job& job);
// What the joint schedule calls an axis of a job.
std::string JointName(const std::vector<Job>& jobs, const Job& job, const std::string& name);
// The steps of a job back to back on its own ranks, beginning at 0.
Schedule StepsOf(const Job& job);

}  // namespace rehearse

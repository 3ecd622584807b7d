// Which rank of how many this process is, as mpirun, srun or torchrun say in the environment.
#pragma once

#include <cstdint>
#include <optional>
#include <string>

namespace rehearse {

struct Launch {
  std::string launcher;  // "mpirun", "srun", "torchrun"
  std::string job;       // a name for the run that no other on this machine has
  uint32_t rank = 0;
  uint32_t ranks = 1;
  uint32_t local_rank = 0;  // on this machine
  uint32_t local_ranks = 1;
  // If not, all are assumed to be on this machine.
  bool knows_local_ranks = true;
};

// Returns nothing if none of them started this process. Throws Error if their variables contradict
// each other.
std::optional<Launch> DetectLaunch();

}  // namespace rehearse

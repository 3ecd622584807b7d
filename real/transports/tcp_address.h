// Where processes without MPI meet, and for how long they wait, as their launcher or user says it
// in the environment.
#pragma once

#include <cstdint>
#include <string>

namespace rehearse {

struct TcpAddress {
  std::string host = "127.0.0.1";
  uint16_t port = 29500;
};
// MASTER_ADDR and MASTER_PORT; the first node of the step where only Slurm speaks. Where torchrun's
// agent listens on that port itself (TORCHELASTIC_USE_AGENT_STORE), the next one. Throws Error for
// a port that is none.
TcpAddress TcpAddressFromEnvironment();

// Seconds that ranks wait for each other to start: REHEARSE_PATIENCE, or 30. Throws Error for
// what is no time.
double PatienceFromEnvironment();

}  // namespace rehearse

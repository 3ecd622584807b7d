// Where processes without MPI meet, and how long they wait, as their launcher or user says in the
// environment.
#pragma once

#include <cstdint>
#include <string>

namespace rehearse {

struct TcpAddress {
  std::string host = "127.0.0.1";
  uint16_t port = 29500;
};
// Reads MASTER_ADDR and MASTER_PORT or, with only Slurm's variables, the first node of the step. If
// torchrun's agent itself listens on that port (TORCHELASTIC_USE_AGENT_STORE), the next one is
// taken. Throws Error for an invalid port.
TcpAddress TcpAddressFromEnvironment();

// Seconds that ranks wait for each other to start: REHEARSE_PATIENCE, or 30. Throws Error for an
// invalid time.
double PatienceFromEnvironment();

}  // namespace rehearse

// Ranks as processes that need no MPI: started by torchrun, srun or anything else that sets RANK,
// WORLD_SIZE and where rank 0 listens (MASTER_ADDR, MASTER_PORT).
//
// A star: every rank has one connection, to rank 0, which passes messages on. Meant for what ranks
// say around a run (NCCL's unique id, clocks, results); for the data of a run on GPUs there is
// NCCL. A rank whose connection ends without a farewell is lost, and all others are told at once.
#pragma once

#include <memory>

#include "real/transports/launcher.h"
#include "real/transports/tcp_address.h"
#include "real/transports/transport.h"

namespace rehearse {

// Waits until all ranks are there. Throws Error, naming those that are not, on every rank that is,
// after `patience` seconds.
std::unique_ptr<Transport> JoinTcp(const Launch& launch, const TcpAddress& address,
                                   double patience);

}  // namespace rehearse

// Ranks as processes that need no MPI: started by torchrun, srun or anything else that sets RANK,
// WORLD_SIZE and where rank 0 listens (MASTER_ADDR, MASTER_PORT). real/transports/tcp_meeting.h
// says how they meet, and who is let in.
//
// Connections form a star: every rank has one, to rank 0, which passes messages on. This is meant
// for what ranks say around a run (NCCL's unique id, clocks, results); for the data of a run on
// GPUs there is NCCL. A rank is lost, and all others are told at once, if its connection ends
// without a farewell, if it says what no rank says, or if it gives no sign of life for five
// seconds: a separate thread gives one every second, whatever the rank computes.
#pragma once

#include <memory>

#include "real/transports/tcp_meeting.h"
#include "real/transports/transport.h"

namespace rehearse {

// Waits until all ranks are there; throws Error as Meet does.
std::unique_ptr<Transport> JoinTcp(const Launch& launch, const TcpMeeting& meeting);

}  // namespace rehearse

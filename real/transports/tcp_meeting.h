// How ranks without MPI come together: each connects to rank 0, says who it is, and waits until all
// have done so.
//
// Ranks of one machine meet on its loopback interface, which no other machine reaches; those of
// several machines meet at rank 0's port on all interfaces, and then a secret must have been given.
// A connection that does not say it within two seconds is dropped, even if it is still talking, and
// others are let in meanwhile; one deadline is for all. A rank that leaves before all are there may
// come again.
#pragma once

#include <memory>
#include <optional>
#include <vector>

#include "real/transports/launcher.h"
#include "real/transports/run_secret.h"
#include "real/transports/tcp_address.h"
#include "real/transports/tcp_socket.h"

namespace rehearse {

struct TcpMeeting {
  TcpAddress address;
  double patience = 30;             // seconds
  std::optional<RunSecret> secret;  // on one machine rank 0 makes one if there is none
};
// Reads MASTER_ADDR, MASTER_PORT, REHEARSE_PATIENCE, REHEARSE_SECRET and the like.
TcpMeeting TcpMeetingFromEnvironment();

// If the launcher does not say how many ranks are on a machine, an address that other machines
// reach means several machines.
bool MeetOnOneMachine(const Launch& launch, const TcpAddress& address);

struct MetRanks {
  std::vector<std::unique_ptr<Socket>> neighbours;  // on rank 0: by rank; on others: only rank 0
  bool have_one_clock = false;                      // one machine, whatever the launcher says
};

// Throws Error without a secret on several machines, and for what rank 0 refuses. If some ranks do
// not come within `patience` seconds, it throws Error that names them on every rank that came.
MetRanks Meet(const Launch& launch, const TcpMeeting& meeting);

}  // namespace rehearse

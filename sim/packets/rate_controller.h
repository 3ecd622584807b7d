// How a sender finds its rate from what acknowledgements bring back: the one interface of HPCC,
// Swift, TIMELY and NSCC.
//
// The network asks for limits when a flow begins from rest, and after each acknowledgement: of what
// arrived, or of a packet that was trimmed on its way. It sends a packet of the flow if nothing of
// it is in flight, or if what is in flight and the packet fit into the window, and not before what
// was sent last has had its time. A controller keeps what it knows of each flow.
//
// Times are picoseconds. Not thread-safe.
#pragma once

#include <cstdint>
#include <limits>
#include <memory>
#include <span>

#include "sim/packets/packet_options.h"

namespace rehearse {

// What a port writes into a packet that it sends.
struct HopTelemetry {
  int64_t time = 0;
  uint64_t sent = 0;    // bytes, before this packet
  uint32_t queued = 0;  // bytes that stay behind
  uint32_t port = 0;
  double time_per_byte = 0;
};

// What a sender knows of a flow from the beginning.
struct SenderPath {
  double time_per_byte = 0;  // of its own port
  int64_t base_rtt = 0;      // of a full packet that waits nowhere, and its acknowledgement
  uint32_t packet = 0;       // bytes of a full packet on the wire

  // What its port sends in a round trip.
  double Product() const { return static_cast<double>(base_rtt) / time_per_byte; }
};

struct Acknowledgement {
  int64_t now = 0;
  int64_t sent = 0;        // when the packet left
  uint32_t bytes = 0;      // of the packet when it left
  uint64_t in_flight = 0;  // bytes, without this packet
  bool marked = false;
  bool trimmed = false;  // it has to be sent again
  std::span<const HopTelemetry> hops;

  int64_t Rtt() const { return now - sent; }
};

struct SendingLimits {
  double window = std::numeric_limits<double>::infinity();  // bytes
  double time_per_byte = 0;                                 // between packets; 0: as the port can
};

class RateController {
 public:
  virtual ~RateController() = default;

  // Forgets what it knew of the flow.
  virtual SendingLimits Begin(uint32_t flow, const SenderPath& path) = 0;
  virtual SendingLimits Acknowledged(uint32_t flow, const Acknowledgement& what) = 0;
  // Nothing came back for as long as the sender waits.
  virtual SendingLimits TimedOut(uint32_t flow, int64_t now) = 0;
};

// Null for controls that do not learn from acknowledgements. `flows`: how many there are.
std::unique_ptr<RateController> MakeRateController(const PacketOptions& options, uint32_t flows);

// One for each control.
std::unique_ptr<RateController> MakeHpcc(const HpccFigures& figures, uint32_t flows);
std::unique_ptr<RateController> MakeSwift(const SwiftFigures& figures, uint32_t flows);
std::unique_ptr<RateController> MakeTimely(const TimelyFigures& figures, uint32_t flows);
std::unique_ptr<RateController> MakeNscc(const NsccFigures& figures, bool trims, uint32_t flows);

}  // namespace rehearse

// What packets do in a network: how large they are, what keeps queues from overflowing, which of
// several equal cables they take, and how senders find their rate and repair what was lost.
//
//   link control   pfc      Ethernet without loss: an ingress that holds more than `pause_above`
//                           stops the port that feeds it, until it holds less than `resume_below`
//                           (IEEE 802.1Qbb); what is on its way meanwhile needs `headroom`
//                  credits  InfiniBand: a port sends only what the buffer behind its cable has room
//                           for (one virtual lane)
//                  drop     what finds its output queue full is lost
//                  trim     what finds its output queue full loses its payload; the header goes
//                           ahead of all data, and its receiver asks for the packet again
//   path choice    hash     a hash of the flow at each switch (ECMP)
//                  flowlet  the same until the flow pauses for `flowlet_gap`; then, every other
//                           time, a cable whose queue is in a lower class: below 5, 10, 20 % of
//                           `buffer`, or above
//                  spray    each packet the next cable
//                  adaptive each packet the cable with the shortest queue
//   rate control   none     line rate
//                  dcqcn    Zhu et al., SIGCOMM 2015: marks, notifications, cuts and recovery
//                  window   at most `window` bytes that are not acknowledged
//   recovery       go-back-n  a receiver takes packets in order only, and asks for the first that
//                             it misses (RoCE)
//                  selective  it takes them in any order, and asks for single ones (SRD, Ultra
//                             Ethernet)
#pragma once

#include <cstdint>

#include "sim/base/clock.h"

namespace rehearse {

enum class LinkControl : uint8_t { kPfc, kCredits, kDrop, kTrim };
enum class PathChoice : uint8_t { kHash, kFlowlet, kSpray, kAdaptive };
enum class RateControl : uint8_t { kNone, kDcqcn, kWindow };
enum class Recovery : uint8_t { kGoBackN, kSelective };

// "pfc", "hash", "dcqcn", "go-back-n", ...
const char* Name(LinkControl control);
const char* Name(PathChoice choice);
const char* Name(RateControl control);
const char* Name(Recovery recovery);

// Figures of DCQCN, of the paper's table 2 and section 5 where it gives them. Thresholds and
// increases are for 40 Gb/s and grow with the rate of the port. Of cuts that follow each other
// without a rise, the first sets the target, as NVIDIA's NICs do (clamp_tgt_rate 0).
struct DcqcnFigures {
  uint32_t mark_from = 5'000;   // bytes queued; 0 to most_marked of packets between the two
  uint32_t mark_all = 200'000;  // above this, all
  double most_marked = 0.01;
  double gain = 1.0 / 256;
  Time notification_gap = Time(50'000'000);  // of one flow
  Time timer = Time(55'000'000);
  uint64_t byte_counter = 10'000'000;
  uint32_t fast_steps = 5;
  double additive_increase = 5e6;  // bytes per second
  double hyper_increase = 62.5e6;  // bytes per second, 0.5 Gb/s
  double least_rate = 1.25e6;      // bytes per second
};

struct PacketOptions {
  uint32_t mtu = 4096;  // bytes of payload
  uint32_t header = 0;  // bytes beside them on the wire; links' efficiencies contain it already
  bool cut_through = false;

  LinkControl link_control = LinkControl::kPfc;
  uint32_t buffer = 1'000'000;       // bytes of an output queue, or behind a cable with credits
  uint64_t shared_buffer = 0;        // bytes of a switch that its ports share; 0: none
  double dynamic_threshold = 0.125;  // a queue may take this share of what is free of it
  uint32_t pause_above = 200'000;    // bytes
  uint32_t resume_below = 180'000;
  uint32_t headroom = 200'000;

  PathChoice path_choice = PathChoice::kHash;
  uint64_t seed = 0;
  Time flowlet_gap = Time(10'000'000);

  RateControl rate_control = RateControl::kNone;
  DcqcnFigures dcqcn = {};
  uint32_t window = 0;  // bytes; with RateControl::kWindow

  Recovery recovery = Recovery::kGoBackN;
  // Whether every packet out of order asks again, and not only the first of a gap.
  bool ask_each_time = false;
  Time timeout = Time(500'000'000);  // without progress, the sender begins again
};

// The least headroom that a port of this rate and cable needs: what is on its way when it is told
// to stop, both ways, and a packet that was just begun at either end.
uint64_t NeededHeadroom(const PacketOptions& options, double bytes_per_second, Time delay);

// Throws Error for what no network can be: a buffer that does not hold a packet, PFC without
// headroom, thresholds the wrong way round, a control without what it needs.
void CheckPacketOptions(const PacketOptions& options);

}  // namespace rehearse

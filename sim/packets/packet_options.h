// What packets do in a network: how large they are, what keeps queues from overflowing, which of
// several equal cables they take, and how senders find their rate and repair what was lost.
//
//   link control   pfc      Ethernet without loss: an ingress that holds more than `pause_above`
//                           stops the port that feeds it, until it holds less than `resume_below`
//                           (IEEE 802.1Qbb); what is on its way meanwhile needs `headroom`
//                  credits  InfiniBand: a port sends only what the buffer behind its cable has room
//                           for, by lane
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
//                  hpcc     Li et al., SIGCOMM 2019: what each port writes into packets
//                  swift    Kumar et al., SIGCOMM 2020: a window that keeps a target delay
//                  timely   Mittal et al., SIGCOMM 2015: a rate, by how round trips change
//                  nscc     Ultra Ethernet 1.0: a window, by delays, marks and trimmed packets
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
enum class RateControl : uint8_t { kNone, kDcqcn, kWindow, kHpcc, kSwift, kTimely, kNscc };
enum class Recovery : uint8_t { kGoBackN, kSelective };

// "pfc", "hash", "dcqcn", "go-back-n", ...
const char* Name(LinkControl control);
const char* Name(PathChoice choice);
const char* Name(RateControl control);
const char* Name(Recovery recovery);

// Whether senders learn from what acknowledgements bring (sim/packets/rate_controller.h).
bool LearnsFromAcknowledgements(RateControl control);

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

// The papers of the four controls below, and the specification, were not at hand: where htsim is
// not named, sections and values are from memory.
//
// Figures of HPCC, of the paper's section 5.1. Its W_AI of 80 B at 100 Gb/s and a round trip of
// 13 us is what section 3.3 gives for 100 flows.
struct HpccFigures {
  double utilisation = 0.95;  // eta
  uint32_t most_stages = 5;
  double flows = 100;         // that the additive increase is meant for
  double least_share = 1e-3;  // of the port's rate: 100 Mb/s of 100 Gb/s, as in the authors' ns-3
};

// Figures of Swift. The paper says which there are, and few values: those of increase, beta, the
// cut, and the range are htsim's (swift.cpp, whose authors call them guesses), the windows that
// scaling goes from and to are of the paper's section 3.5. The target is chosen here, half a round
// trip: the paper's 25 us are for 100 Gb/s and hosts' stacks.
struct SwiftFigures {
  Time target_delay;  // in queues; 0: target_share round trips
  double target_share = 0.5;
  double increase = 1;  // packets a round trip
  double beta = 0.8;
  double most_cut = 0.5;
  double range_share = 5;  // of the target: most that scaling by flows adds
  double scales_from = 0.1;
  double scales_to = 100;
  double least_window = 0.001;  // packets
  double most_products = 2;     // of rate and round trip, the largest window; chosen here
};

// Figures of TIMELY, of the paper's sections 4.3 and 5; the gradient's weight is of Zhu et al.,
// ECN or Delay, CoNEXT 2016 (0.875 on what was before). Segments are of 64 KB.
struct TimelyFigures {
  Time rtt_low;   // 0: the base round trip and a segment's time
  Time rtt_high;  // 0: the base round trip and high_segments of them
  double high_segments = 10;
  uint32_t segment = 65'536;
  double beta = 0.8;
  double gradient_weight = 0.125;
  double step = 0.001;  // of the port's rate: 10 Mb/s of 10 Gb/s
  uint32_t hyper_after = 5;
  double hyper_steps = 5;
  double most_cut = 0.5;      // chosen here: a gradient above 1/beta would end the flow
  double least_rate = 0.001;  // of the port's; chosen here, as for the others
};

// Figures of NSCC as htsim (uec.cpp, initNsccParams and main_uec.cpp) has them beside the
// specification: increases are scaled by the flow's product of rate and round trip over that of
// 100 Gb/s and 12 us.
struct NsccFigures {
  Time target_delay;  // in queues; 0: a share of the round trip
  double target_share = 1;
  double target_share_trimming = 0.75;
  double reference_product = 150'000;  // bytes
  double reference_rtt = 12e6;         // picoseconds
  double most_products = 1.5;          // the largest window, and the first
  double fair_packets = 5;
  double proportional_packets = 4;
  double eta_packets = 0.15;
  double gamma = 0.8;
  double most_cut = 0.5;
  double fast = 0.25;
  Time quiet_delay = Time(1'000'000);
  double mean_weight = 0.0125;
  double late_share = 0.25;
  double adjust_packets = 8;
  double adapt_targets = 4;
  double adapt_share = 0.125;
  // Marks: of products of the port's rate and the longest round trip, none below and all above.
  double mark_from = 0.2;
  double mark_all = 0.8;
};

struct PacketOptions {
  uint32_t mtu = 4096;  // bytes of payload
  uint32_t header = 0;  // bytes beside them on the wire; links' efficiencies contain it already
  bool cut_through = false;
  // Which lane of a cable sends: the one with the least PacketPort::priority, or each in turn.
  bool lanes_are_strict = false;

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
  HpccFigures hpcc = {};
  SwiftFigures swift = {};
  TimelyFigures timely = {};
  NsccFigures nscc = {};

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

// A network of ports and cables on which messages travel as packets.
//
// Model: a port sends one packet at a time at its rate, first come first served; after its cable's
// delay the packet stands at the next vertex, whole (cut through, from its header on), and joins
// the queue of the port that its way, or a choice among equal ports, says. Bytes count at ingress
// (the far end of the port that brought them) until the next port begins to send them. Senders put
// the packets of their messages on their first port in turn. What goes back (acknowledgements,
// requests to repeat, notifications of congestion, pauses, credits) takes the time of the way back
// and no bandwidth: 64 B a packet at most, sent ahead of data.
// Buffers of hosts (what is no switch) never lose anything: a NIC that is full stops its PCIe.
//
// One message of a flow is under way at a time. When nothing at all is under way any more (packets,
// pauses, timers of rates that recover), switches and senders forget what they knew, so that the
// same messages take the same time whenever they find the network at rest.
//
// What repeats itself is not played (sim/packets/packet_steady.h), unless it is asked for.
//
// Integer picoseconds, ties in the order of causes: same input, same bits. Flat arrays and a
// calendar queue (sim/packets/event_wheel.h); no allocation per packet. Not thread-safe. Knows
// nothing of ranks, programs or clusters.
#pragma once

#include <cstdint>
#include <limits>
#include <memory>
#include <span>
#include <string>
#include <vector>

#include "sim/base/clock.h"
#include "sim/packets/event_wheel.h"
#include "sim/packets/packet_options.h"
#include "sim/packets/rate_controller.h"

namespace rehearse {

class PacketWatch;

// One direction of a cable.
struct PacketPort {
  double bytes_per_second = 0;
  Time delay;         // of the cable
  uint32_t from = 0;  // vertices
  uint32_t to = 0;
  std::string name = {};
  // Lanes of one cable are ports of their own, with queues, buffers, pauses and credits of their
  // own, that send in turns or by priority: the port whose cable it is, at most its own position.
  // kNone: its own.
  uint32_t cable_of = kNone;
  uint32_t priority = 0;  // the least goes first, if PacketOptions says so
  // Of ports before and behind it that hold nobody up (sim/packets/packet_chains.h): what a packet
  // spends there, for each byte of its message's first packet.
  double passed_seconds_per_byte = 0;

  static constexpr uint32_t kNone = 0xffffffffu;
};

// What is wired. A way is a list of hops: a port, or one of the ports of a bundle that leave the
// vertex where the packet stands (ports.size() + the bundle).
struct PacketWiring {
  std::vector<PacketPort> ports;
  std::vector<bool> is_switch;                 // by vertex
  std::vector<std::vector<uint32_t>> bundles;  // ports
  std::vector<uint32_t> way_begin = {0};       // flow f goes by hops[way_begin[f] .. [f + 1])
  std::vector<uint32_t> hops;
  // By flow: true if its cables take it no time and switches send it on at once, since who sends it
  // has counted their delays already (collectives that keep several steps under way). Empty: none.
  std::vector<bool> hides_delays;

  uint32_t flows() const { return static_cast<uint32_t>(way_begin.size() - 1); }
};

struct PacketStats {
  uint64_t packets = 0;  // sent by their senders, repetitions included
  uint64_t hops = 0;     // packets times cables
  uint64_t marked = 0;
  uint64_t dropped = 0;
  uint64_t trimmed = 0;
  uint64_t repeated = 0;
  uint64_t reordered = 0;  // arrived ahead of one that was sent before
  uint64_t pauses = 0;
  Time paused;               // sum over ports
  uint64_t most_queued = 0;  // bytes, of any port
  uint32_t most_queued_at = 0;
  Time longest_pause;           // of one port, in all
  uint32_t longest_paused = 0;  // port

  void Add(const PacketStats& other);
  // What was counted since; the longest and most are those of all.
  void Subtract(const PacketStats& before);
};

class PacketNetwork {
 public:
  // CHECKs that ways are connected. Throws Error for options that CheckPacketOptions refuses, and
  // for ports that need more headroom, or more of a buffer, than there is.
  // Without `skips_steady_states` every packet is played.
  PacketNetwork(PacketWiring wiring, const PacketOptions& options,
                bool skips_steady_states = false);
  ~PacketNetwork();

  // The flow sends so many bytes (at least one) from now on, which must not be before what was
  // played; it must be idle.
  void Begin(uint32_t flow, uint64_t bytes, Time now);
  // Tells the watch what happens from now on; it must outlive the network, which must not skip
  // anything.
  void Watch(PacketWatch* watch) { watch_ = watch; }
  // Plays until the first instant in which a message arrives, or all that happens up to `until`.
  // Returns whether one arrived; then now() says when, and arrived() which, ascending. Throws Error
  // if what is under way can never arrive, naming the ports that wait for each other.
  bool Run(Time until);
  Time now() const { return Time(now_); }
  std::span<const uint32_t> arrived() const { return arrived_; }
  uint32_t under_way() const { return under_way_; }  // messages
  // Whether nothing is under way, of all that began up to now.
  bool IsAtRest() const { return under_way_ == 0 && events_.IsEmpty(); }

  // How long a packet's acknowledgement takes back to the flow's sender.
  Time AcknowledgementDelay(uint32_t flow) const { return Time(flows_[flow].way_back); }

  const PacketWiring& wiring() const { return wiring_; }
  // What was skipped is counted when it is over, at the latest when a message arrives that was part
  // of it; so are the figures of ports.
  const PacketStats& stats() const { return stats_; }
  uint64_t SkippedHops() const;
  // What a port has sent, and how long it was told to stop.
  uint64_t BytesOf(uint32_t port) const { return ports_[port].sent; }
  Time PausedOf(uint32_t port) const { return Time(ports_[port].paused_for); }
  uint64_t MostQueuedAt(uint32_t port) const { return ports_[port].most_queued; }
  // Of what a port brought, how much waited behind it at most.
  uint64_t MostHeldBehind(uint32_t port) const { return ports_[port].most_held; }

 private:
  static constexpr uint32_t kNone = 0xffffffffu;
  static constexpr int64_t kLongAgo = std::numeric_limits<int64_t>::min() / 2;

  enum Kind : uint32_t {
    kArrival,       // a: packet
    kPortFree,      // a: port
    kPause,         // a: port
    kResume,        // a: port
    kCredit,        // a: port, b: bytes
    kAcknowledged,  // a: flow, b: packets
    kAskedAgain,    // a: flow, b: packet
    kNotified,      // a: flow
    kRateTimer,     // a: flow, b: its epoch
    kTimeout,       // a: flow, b: its message
    kEchoed,        // a: packet, which is back as an acknowledgement
    kPaced,         // a: port
    kUnpark,        // a: a group that was parked, b: its number
  };
  // Above its kind, an event that may come late has the message that it is of.
  static constexpr uint32_t kKindMask = 0xff;
  static constexpr int kMessageBits = 8;

  struct Packet {
    uint32_t flow = 0;
    uint32_t number = 0;
    uint32_t next = kNone;     // in its queue, or the list of free ones
    uint32_t ingress = kNone;  // the port that brought it
    uint32_t port = 0;         // where it is queued or under way
    uint32_t spread = 0;       // what is left of the number that chooses cables
    uint32_t size = 0;         // on the wire
    uint16_t message = 0;
    uint8_t hop = 0;
    bool marked = false;
    bool trimmed = false;
    bool has_tail = true;  // false: only its header has arrived
  };

  struct Queue {
    uint32_t head = kNone;
    uint32_t tail = kNone;
  };

  struct Port {
    double time_per_byte = 0;  // picoseconds
    int64_t delay = 0;
    double passed_time_per_byte = 0;  // PacketPort::passed_seconds_per_byte
    int64_t whole_time = 0;           // of a whole packet
    int64_t passed_time = 0;          // likewise
    int64_t free_at = 0;
    Queue data;
    Queue headers;                // trimmed: ahead of data
    uint32_t first_flow = kNone;  // a ring of flows that have something to send from here
    uint32_t queued = 0;          // bytes
    uint32_t held = 0;            // bytes that it brought and that wait behind it
    int64_t credits = 0;
    uint32_t from = 0;
    uint32_t to = 0;
    uint32_t cable = 0;    // the port that has free_at, and the next two, for all its lanes
    uint32_t waiting = 0;  // lanes that wait for the cable
    uint32_t priority = 0;
    uint32_t next_lane = kNone;  // of the same cable, in a ring
    int64_t waits_until = 0;
    uint32_t sent_last = kNone;
    uint64_t mark_from = 0;
    uint64_t mark_all = 0;
    bool waits = false;         // for an event that looks at it
    bool stopped = false;       // by what is behind it
    bool told_to_stop = false;  // by its ingress, which may still be on its way
    bool no_credits = false;
    bool into_switch = false;
    int64_t stopped_at = 0;
    int64_t paused_for = 0;
    uint64_t sent = 0;
    uint32_t pauses = 0;   // that it was told
    uint32_t chances = 0;  // draws, marks, losses and repetitions here
    uint64_t most_queued = 0;
    uint32_t most_held = 0;
  };

  struct FlowState {
    uint32_t first_port = 0;
    uint32_t next = kNone;  // in the ring of its port
    uint32_t previous = kNone;
    bool listed = false;
    bool hides_delays = false;
    bool active = false;
    bool begun = false;  // is in to_forget_
    bool asked = false;  // the receiver has asked for the packet that it expects
    uint16_t message = 0;
    uint32_t packets = 0;    // of the message
    uint32_t last_size = 0;  // payload of the last
    uint32_t next_packet = 0;
    uint32_t acknowledged = 0;
    uint32_t highest_sent = 0;
    uint32_t highest_seen = 0;
    uint32_t expected = 0;  // go-back-n: the first that the receiver misses; selective: how many
    uint32_t retry_mark = 0;
    uint32_t hash = 0;
    uint32_t offset = 0;
    uint32_t reordered = 0;
    uint32_t until_look = 0;  // packets, until its group is looked at
    int64_t next_time = 0;    // paced
    int64_t way_back = 0;
    std::vector<uint32_t> asked_for;  // selective: to be sent again
    std::vector<uint64_t> received;   // selective, where something may be lost: a bit a packet

    // DCQCN. Rates are shares of the first port's.
    double rate = 1;
    double target = 1;
    double alpha = 1;
    uint64_t bytes_since = 0;
    uint32_t timer_steps = 0;
    uint32_t byte_steps = 0;
    uint32_t epoch = 0;
    bool notified = false;  // since the last timer
    bool raised = true;     // since the last cut
    int64_t last_notice = kLongAgo;
  };

  // What a switch remembers of a flow, by hop.
  struct Flowlet {
    uint32_t vertex = kNone;
    uint32_t port = 0;
    int64_t last = 0;
  };

  // Where a RateController says what may be sent: of a flow.
  struct Controlled {
    SendingLimits limits;
    SenderPath path;
    uint64_t in_flight = 0;     // bytes
    bool has_repeated = false;  // in this message
  };

  struct Choices {
    uint32_t begin = 0;  // candidates_[begin .. begin + count)
    uint32_t count = 0;
  };

  void Handle(const PacketEvent& event);
  void Arrive(uint32_t packet);
  void Enqueue(uint32_t packet, uint32_t index);  // of a port, here and below
  void Look(uint32_t index);
  void WaitUntil(uint32_t index, int64_t time);
  bool LetsOthersSend(uint32_t index);
  bool GoesAhead(const Port& port) const;
  bool SendFlow(uint32_t index);
  void Send(uint32_t index, uint32_t packet);
  int64_t PassedTime(const Port& port, const FlowState& flow, bool cuts) const;
  void LeaveIngress(const Packet& packet);
  void Deliver(uint32_t packet);
  void Lose(uint32_t packet);
  void Complete(uint32_t flow);
  uint32_t Choose(Packet& packet, uint32_t hop, uint32_t vertex);
  uint32_t ChooseFlowlet(const Packet& packet, uint32_t hop, uint32_t vertex, Choices choices);
  uint32_t LeastQueued(Choices choices, uint32_t start) const;
  uint32_t ClassOf(uint32_t port) const;
  uint64_t PauseAbove(uint32_t vertex) const;
  bool IsFull(const Port& port, uint32_t size) const;
  bool IsMarked(Port& port);
  void List(uint32_t flow);
  void Unlist(uint32_t flow);
  void AskAgain(uint32_t flow, uint32_t packet);
  bool MayStillSend(const FlowState& flow) const {
    return flow.active && (flow.next_packet < flow.packets || !flow.asked_for.empty());
  }
  void CutRate(uint32_t flow);
  void RateTimer(uint32_t flow);
  void RaiseRate(uint32_t flow);
  void StartRateTimer(uint32_t flow);
  bool FitsWindow(uint32_t flow, uint32_t size) const;
  void Control(uint32_t packet, uint32_t index);
  void WriteTelemetry(uint32_t packet, uint32_t index);
  void Echo(uint32_t packet);
  void Learn(uint32_t packet);
  void WakeAt(uint32_t port, int64_t time);
  void StartControl();
  void LearnOfTimeout(uint32_t flow);
  uint64_t Random();
  uint32_t NewPacket();
  void Forget();
  [[noreturn]] void FailStuck() const;
  void NotePaused(uint32_t port);
  uint32_t OfMessage(Kind kind, uint32_t flow) const {
    return kind | uint32_t{flows_[flow].message} << kMessageBits;
  }
  bool IsOfMessage(const PacketEvent& event) const {
    return event.kind >> kMessageBits == flows_[event.a].message;
  }

  struct SteadyStates;
  struct SteadySnapshot;
  void StartSteadyStates();
  void BeginSteady(uint32_t flow);
  void EndSteady(uint32_t flow);
  void LookForSteadyStates();
  uint32_t PortOf(const PacketEvent& event) const;
  void AppendPacket(uint32_t packet, std::vector<int64_t>* state) const;
  bool AppendFlow(uint32_t index, std::vector<int64_t>* state) const;
  void AppendPort(uint32_t index, std::vector<int64_t>* state) const;
  bool AppendEvent(const PacketEvent& event, std::vector<int64_t>* state) const;
  bool Describe(std::vector<PacketEvent>* events, SteadySnapshot* snapshot) const;
  uint32_t PeriodsToSkip(const SteadySnapshot& before, const SteadySnapshot& now) const;
  void Park(const SteadySnapshot& before, uint32_t periods, SteadySnapshot* now);
  void TakeOutParked();
  void Unpark(uint32_t slot, int64_t time);
  static void MoveReceived(FlowState* flow, uint32_t step);

  const PacketWiring wiring_;
  const PacketOptions options_;
  const uint32_t whole_;  // bytes of a packet on the wire, except a message's last
  const bool may_lose_;
  const bool acknowledges_;
  std::vector<Port> ports_;
  std::vector<FlowState> flows_;
  std::vector<Packet> packets_;
  uint32_t free_packet_ = kNone;
  // Of bundle b at vertex v: choices_[bundle_base_[b] + v - bundle_vertex_[b]].
  std::vector<uint32_t> bundle_base_;
  std::vector<uint32_t> bundle_vertex_;
  std::vector<Choices> choices_;
  std::vector<uint32_t> candidates_;
  std::vector<Flowlet> flowlets_;  // by hop; empty unless needed
  std::vector<uint64_t> used_;     // by vertex, bytes of the shared buffer
  EventWheel events_;
  std::vector<uint32_t> arrived_;
  PacketStats stats_;
  int64_t now_ = 0;
  uint32_t under_way_ = 0;
  uint64_t random_ = 0;
  // Empty unless senders learn from acknowledgements.
  std::unique_ptr<RateController> controller_;
  std::vector<Controlled> controlled_;   // by flow
  std::vector<int64_t> wakes_at_;        // by port: when it looks again for who is paced
  std::vector<int64_t> sent_at_;         // by packet
  std::vector<HopTelemetry> telemetry_;  // by packet, most_hops_ each; with HPCC
  uint32_t most_hops_ = 0;
  bool marks_ = false;
  bool inspects_ = false;                 // what leaves a port: marks, or writes into it
  std::unique_ptr<SteadyStates> steady_;  // null: every packet is played
  bool asks_for_look_ = false;
  PacketWatch* watch_ = nullptr;
  double most_marked_ = 0;
  std::vector<uint32_t> to_forget_;  // flows that have begun since all was at rest
};

}  // namespace rehearse

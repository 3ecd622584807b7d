#include "collectives/lowering/packet_settings.h"

#include <string>

#include "topology/fabrics/router.h"

namespace rehearse {
namespace {

constexpr uint32_t kBufferOfPort = 1'000'000;
constexpr uint32_t kBufferOfLane = 256'000;

uint32_t WholeBytes(Bytes bytes) { return static_cast<uint32_t>(bytes.value()); }

// What the network does by itself.
PacketOptions OwnOptions(const Cluster& cluster, RouteChoice choice) {
  PacketOptions options;
  const std::string& plugin = cluster.network_plugin().name;
  const bool is_hashed = choice == RouteChoice::kEcmp || choice == RouteChoice::kFlowlet;
  if (plugin == "ib" && is_hashed) {
    options.rate_control = RateControl::kDcqcn;
  } else if (plugin == "ib" || plugin == "cxi") {  // Slingshot's links have credits, too
    options.link_control = LinkControl::kCredits;
    options.recovery = Recovery::kSelective;
  } else {
    options.link_control = LinkControl::kDrop;
    options.rate_control = RateControl::kWindow;
    options.recovery = Recovery::kSelective;
  }
  const bool is_efa = plugin.starts_with("efa");
  if (choice == RouteChoice::kFlowlet) options.path_choice = PathChoice::kFlowlet;
  if (choice == RouteChoice::kSpray)
    options.path_choice = is_efa ? PathChoice::kSpray : PathChoice::kAdaptive;
  return options;
}

}  // namespace

PacketSettings SettingsOf(const Cluster& cluster, const std::optional<RoutingRule>& rule,
                          uint64_t seed, const NetworkOptions& own) {
  PacketOptions options = OwnOptions(cluster, rule ? rule->choice : RouteChoice::kSpray);
  if (own.link_control) {
    options.link_control = *own.link_control;
    // What goes with it, unless it is said as well: controls of another kind of network do not.
    if (options.link_control == LinkControl::kCredits &&
        options.rate_control == RateControl::kDcqcn)
      options.rate_control = RateControl::kNone;
    if (options.link_control == LinkControl::kTrim) options.recovery = Recovery::kSelective;
  }
  options.rate_control = own.rate_control.value_or(options.rate_control);
  options.recovery = own.recovery.value_or(options.recovery);
  if (own.sprays_blindly && options.path_choice == PathChoice::kAdaptive)
    options.path_choice = PathChoice::kSpray;
  options.mtu = WholeBytes(own.mtu);
  options.header = WholeBytes(own.header);
  options.buffer =
      own.buffer ? WholeBytes(*own.buffer)
                 : (options.link_control == LinkControl::kCredits ? kBufferOfLane : kBufferOfPort);
  options.shared_buffer = static_cast<uint64_t>(own.shared_buffer.value());
  options.dynamic_threshold = own.dynamic_threshold;
  options.pause_above = WholeBytes(own.pause_above);
  options.resume_below = WholeBytes(own.resume_below);
  options.headroom = WholeBytes(own.headroom);
  options.window = WholeBytes(own.window);
  if (own.target_delay)
    options.swift.target_delay = options.nscc.target_delay = ToTime(*own.target_delay);
  options.hpcc.utilisation = own.utilisation;
  if (own.rtt_low) options.timely.rtt_low = ToTime(*own.rtt_low);
  if (own.rtt_high) options.timely.rtt_high = ToTime(*own.rtt_high);
  options.cut_through = own.cut_through;
  options.flowlet_gap = ToTime(own.flowlet_gap);
  options.lanes_are_strict = own.lanes_are_strict;
  options.seed = seed;
  CheckPacketOptions(options);
  return {options, own.cable_delay, own.remembers, own.lanes};
}

FabricRouting RoutingOfPackets(const FabricRouting& routing, const Cluster& cluster) {
  const std::optional<RoutingRule> rule = Router(cluster, routing).rule();
  if (!rule || rule->choice != RouteChoice::kFlowlet) return routing;
  return {RouteChoice::kSpray, std::nullopt, std::nullopt};
}

}  // namespace rehearse

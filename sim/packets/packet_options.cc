#include "sim/packets/packet_options.h"

#include <cmath>

#include <fmt/format.h>

#include "sim/base/error.h"

namespace rehearse {

const char* Name(LinkControl control) {
  switch (control) {
    case LinkControl::kPfc:
      return "pfc";
    case LinkControl::kCredits:
      return "credits";
    case LinkControl::kDrop:
      return "drop";
    case LinkControl::kTrim:
      return "trim";
  }
  return "?";
}

const char* Name(PathChoice choice) {
  switch (choice) {
    case PathChoice::kHash:
      return "hash";
    case PathChoice::kFlowlet:
      return "flowlet";
    case PathChoice::kSpray:
      return "spray";
    case PathChoice::kAdaptive:
      return "adaptive";
  }
  return "?";
}

const char* Name(RateControl control) {
  switch (control) {
    case RateControl::kNone:
      return "none";
    case RateControl::kDcqcn:
      return "dcqcn";
    case RateControl::kWindow:
      return "window";
    case RateControl::kHpcc:
      return "hpcc";
    case RateControl::kSwift:
      return "swift";
    case RateControl::kTimely:
      return "timely";
    case RateControl::kNscc:
      return "nscc";
  }
  return "?";
}

const char* Name(Recovery recovery) {
  return recovery == Recovery::kGoBackN ? "go-back-n" : "selective";
}

bool LearnsFromAcknowledgements(RateControl control) {
  return control == RateControl::kHpcc || control == RateControl::kSwift ||
         control == RateControl::kTimely || control == RateControl::kNscc;
}

uint64_t NeededHeadroom(const PacketOptions& options, double bytes_per_second, Time delay) {
  const double on_its_way = 2 * bytes_per_second * ToSeconds(delay).value();
  return static_cast<uint64_t>(std::ceil(on_its_way)) +
         uint64_t{2} * (options.mtu + options.header);
}

void CheckPacketOptions(const PacketOptions& options) {
  const uint32_t packet = options.mtu + options.header;
  const auto fail = [](const std::string& message) { throw Error("network: " + message); };
  if (options.mtu == 0) fail("a packet carries at least 1 byte, found an mtu of 0");
  if (options.buffer < packet)
    fail(fmt::format("the buffer of {} B does not hold a packet of {} B", options.buffer, packet));
  if (options.shared_buffer > 0 && options.shared_buffer < packet)
    fail(fmt::format("the shared buffer of {} B does not hold a packet of {} B",
                     options.shared_buffer, packet));
  if (options.link_control == LinkControl::kPfc) {
    if (options.headroom == 0)
      fail("pfc needs headroom, for what is on its way when a port is told to stop; found none");
    if (options.resume_below > options.pause_above)
      fail(fmt::format("pfc resumes below {} B, which is above the {} B that pause",
                       options.resume_below, options.pause_above));
  }
  if (options.rate_control == RateControl::kWindow && options.window < options.mtu)
    fail(fmt::format("a window of {} B does not let a packet of {} B go", options.window,
                     options.mtu));
  if (options.rate_control == RateControl::kDcqcn &&
      options.dcqcn.mark_from >= options.dcqcn.mark_all)
    fail(fmt::format("dcqcn marks from {} B on, which is not below the {} B that mark all",
                     options.dcqcn.mark_from, options.dcqcn.mark_all));
  if (options.rate_control == RateControl::kDcqcn && options.link_control == LinkControl::kCredits)
    fail("dcqcn is a control of RoCE; with credits, choose none or window");
  if (LearnsFromAcknowledgements(options.rate_control) &&
      options.link_control == LinkControl::kCredits)
    fail(fmt::format("{} is a control of Ethernet; with credits, choose none or window",
                     Name(options.rate_control)));
  if (options.rate_control == RateControl::kHpcc &&
      (options.path_choice == PathChoice::kSpray || options.path_choice == PathChoice::kAdaptive))
    fail(
        fmt::format("hpcc compares what one way told before, and {} takes many; choose swift, "
                    "timely or nscc",
                    Name(options.path_choice)));
  if (options.timely.rtt_high > Time() && options.timely.rtt_high < options.timely.rtt_low)
    fail(fmt::format("timely's rtt_high of {} us is below its rtt_low of {} us",
                     ToSeconds(options.timely.rtt_high).value() * 1e6,
                     ToSeconds(options.timely.rtt_low).value() * 1e6));
  if (options.path_choice == PathChoice::kSpray || options.path_choice == PathChoice::kAdaptive) {
    if (options.recovery == Recovery::kGoBackN)
      fail(
          fmt::format("{} brings packets out of order, which go-back-n does not bear; choose "
                      "selective",
                      Name(options.path_choice)));
  }
  if (options.link_control == LinkControl::kTrim && options.recovery == Recovery::kGoBackN)
    fail("trim asks for single packets again, which go-back-n cannot; choose selective");
}

}  // namespace rehearse

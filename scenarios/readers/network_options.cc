#include "scenarios/readers/network_options.h"

#include <algorithm>
#include <cmath>
#include <string_view>

#include <fmt/format.h>

#include "sim/base/error.h"
#include "sim/base/json_document.h"

namespace rehearse {
namespace {

constexpr ValueName<LinkControl> kLinkControls[] = {{"pfc", LinkControl::kPfc},
                                                    {"credits", LinkControl::kCredits},
                                                    {"drop", LinkControl::kDrop},
                                                    {"trim", LinkControl::kTrim}};
constexpr ValueName<RateControl> kRateControls[] = {
    {"none", RateControl::kNone}, {"dcqcn", RateControl::kDcqcn}, {"window", RateControl::kWindow},
    {"hpcc", RateControl::kHpcc}, {"swift", RateControl::kSwift}, {"timely", RateControl::kTimely},
    {"nscc", RateControl::kNscc}};
constexpr ValueName<Recovery> kRecoveries[] = {{"go-back-n", Recovery::kGoBackN},
                                               {"selective", Recovery::kSelective}};
constexpr ValueName<bool> kLaneOrders[] = {{"turns", false}, {"strict", true}};
constexpr ValueName<bool> kSprays[] = {{"adaptive", false}, {"oblivious", true}};

constexpr double kMostBytes = 1e9;
constexpr double kLargestPacket = 65000;
constexpr double kLongestDelay = 1e-3;  // seconds

void CheckOptions(const JsonReader& reader, NetworkOptions* options) {
  const auto whole = [&](const char* key, Bytes value, double least, double most) {
    if (value.value() < least || value.value() > most || value != Bytes(std::floor(value.value())))
      reader.At(key).Expected(fmt::format("whole bytes from {:.0f} to {:.0f}", least, most));
  };
  whole("mtu", options->mtu, 64, kLargestPacket);
  whole("header", options->header, 0, kLargestPacket);
  if (options->buffer) whole("buffer", *options->buffer, 1, kMostBytes);
  whole("shared_buffer", options->shared_buffer, 0, kMostBytes);
  whole("pause_above", options->pause_above, 0, kMostBytes);
  whole("resume_below", options->resume_below, 0, kMostBytes);
  whole("headroom", options->headroom, 0, kMostBytes);
  whole("window", options->window, 1, kMostBytes);
  if (options->lanes.size() >= kMostLanes)
    reader.At("lanes").Expected(fmt::format("at most {} axes", kMostLanes - 1));
  for (size_t i = 1; i < options->lanes.size(); ++i)
    if (std::find(options->lanes.begin(), options->lanes.begin() + static_cast<std::ptrdiff_t>(i),
                  options->lanes[i]) != options->lanes.begin() + static_cast<std::ptrdiff_t>(i))
      reader.At("lanes").Expected("each axis once");
  if (options->lanes_are_strict && options->lanes.empty())
    reader.At("lane_order").Expected("\"turns\", unless \"lanes\" names axes");
  // Where both are said; what the cluster says by itself is known later.
  if (!options->rate_control || !options->link_control) return;
  if (*options->link_control == LinkControl::kCredits &&
      *options->rate_control != RateControl::kNone &&
      *options->rate_control != RateControl::kWindow)
    reader.At("rate_control").Expected("\"none\" or \"window\" with link_control credits");
}

}  // namespace

const Fields<NetworkOptions>& NetworkOptionsFields() {
  using Options = NetworkOptions;
  static const Fields<Options> fields(
      "network", "How packets travel between machines, at fidelity packet.",
      {{"link_control", &Options::link_control, OneOf(kLinkControls),
        Optional("credits for InfiniBand, pfc for RoCE (hashed routes and flowlets), else drop"),
        "what keeps queues from overflowing: Ethernet's pauses, InfiniBand's credits; or what is "
        "lost when they do: packets, or their payload"},
       {"rate_control", &Options::rate_control, OneOf(kRateControls),
        Optional("dcqcn for RoCE, window for EFA and TCP, else none"),
        "how a sender finds its rate; none: the rate of its port; from what acknowledgements "
        "bring: hpcc by what ports write into packets, swift and timely by round trips, nscc by "
        "these, marks and trimmed packets"},
       {"recovery", &Options::recovery, OneOf(kRecoveries),
        Optional("go-back-n for RoCE, else selective"),
        "what is sent again: all from the first that is missing, or what is missing"},
       {"spraying", &Options::sprays_blindly, OneOf(kSprays), Usual(),
        "where routes are sprayed over equal cables: the shortest queue, or the next cable"},
       {"mtu", &Options::mtu, ASize(), Usual(), "payload of a packet", "\"4096B\""},
       {"header", &Options::header, ASize(), Optional("none"),
        "bytes of a packet beside its payload, where bandwidths do not contain them", "\"64B\""},
       {"buffer", &Options::buffer, ASize(), Optional("\"1MB\"; with credits \"256kB\""),
        "of an output queue; with credits, behind each cable", "\"400kB\""},
       {"shared_buffer", &Options::shared_buffer, ASize(), Optional("each port has its own"),
        "of a switch, which its ports share", "\"64MB\""},
       {"dynamic_threshold", &Options::dynamic_threshold, ANumberAbove(0, 64), Usual(),
        "how much of what is free of the shared buffer one queue may take"},
       {"pause_above", &Options::pause_above, ASize(), Usual(),
        "pfc: an ingress that holds more stops what feeds it"},
       {"resume_below", &Options::resume_below, ASize(), Usual(),
        "pfc: when it holds less, that goes on"},
       {"headroom", &Options::headroom, ASize(), Usual(), "pfc: for what is on its way meanwhile"},
       {"window", &Options::window, ASize(), Usual(),
        "rate control window: most bytes of a flow that are not acknowledged"},
       {"target_delay", &Options::target_delay, ADurationUpTo(Seconds(kLongestDelay)),
        Optional("half a round trip for swift; one for nscc, with trim three quarters"),
        "rate controls swift and nscc: time in queues that they aim at", "\"2us\""},
       {"utilisation", &Options::utilisation, ANumberAbove(0, 1), Usual(),
        "rate control hpcc: of a link, what it aims at"},
       {"rtt_low", &Options::rtt_low, ADurationUpTo(Seconds(kLongestDelay)),
        Optional("the round trip without queues and 64 KiB more"),
        "rate control timely: below it a rate grows, whatever its gradient", "\"8us\""},
       {"rtt_high", &Options::rtt_high, ADurationUpTo(Seconds(kLongestDelay)),
        Optional("the round trip without queues and 640 KiB more"),
        "rate control timely: above it a rate shrinks, whatever its gradient", "\"40us\""},
       {"cable_delay", &Options::cable_delay, ADurationUpTo(Seconds(kLongestDelay)), Usual(),
        "of each cable between machines, with the switch behind it"},
       {"flowlet_gap", &Options::flowlet_gap, ADurationUpTo(Seconds(kLongestDelay)), Usual(),
        "routing flowlet: a flow that pauses for longer may take another cable"},
       {"cut_through", &Options::cut_through, TrueFalse(), Usual(),
        "whether switches send a packet on before all of it has arrived"},
       {"lanes", &Options::lanes, ListOf(AText()), Usual(),
        "axes whose messages have a lane of their own (a priority, a virtual lane), with its "
        "queues, pauses and credits; all other axes share one",
        "[\"stages\"]"},
       {"lane_order", &Options::lanes_are_strict, OneOf(kLaneOrders), Usual(),
        "turns: lanes of a cable send in turns; strict: the first of `lanes` goes ahead of the "
        "second, and all of them of the rest"},
       {"remember", &Options::remembers, TrueFalse(), Usual(),
        "whether what was played is not played again: from rest, or in a steady state; the times "
        "are the same"}},
      CheckOptions);
  return fields;
}

NetworkOptions ParseNetworkOptions(const std::string& option, const std::string& text) {
  JsonDocument document = JsonDocument::FromText("{}", option);
  std::string_view rest = text;
  while (!rest.empty()) {
    const size_t comma = rest.find(',');
    const std::string_view assignment = rest.substr(0, comma);
    if (assignment.find('=') == std::string_view::npos)
      throw Error(fmt::format("{}: found \"{}\", expected KEY=VALUE,KEY=VALUE", option, text));
    document.Set(assignment, {option, 0, ""});
    rest = comma == std::string_view::npos ? std::string_view() : rest.substr(comma + 1);
  }
  return NetworkOptionsFields().Read(document.Root());
}

}  // namespace rehearse

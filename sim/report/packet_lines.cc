#include "sim/report/packet_lines.h"

#include <fmt/format.h>

namespace rehearse {
namespace {

double Microseconds(Time time) { return ToSeconds(time).value() * 1e6; }

}  // namespace

std::vector<std::string> PacketLines(const PacketOptions& options, const PacketReport& report) {
  const PacketStats& stats = report.stats;
  std::vector<std::string> lines = {
      fmt::format("packets of {} B: {}, rate control {}, {}, cables by {}", options.mtu,
                  Name(options.link_control), Name(options.rate_control), Name(options.recovery),
                  Name(options.path_choice))};
  if (stats.packets == 0) {
    lines.emplace_back("no message left its machine");
    return lines;
  }
  lines.push_back(fmt::format(
      "{} messages in {} packets over {} cables: {} marked, {} lost, {} trimmed, {} sent again, {} "
      "out of order",
      report.messages, stats.packets, stats.hops, stats.marked, stats.dropped, stats.trimmed,
      stats.repeated, stats.reordered));
  if (report.skipped_hops > 0)
    lines.push_back(fmt::format("{} of these happened again as before, and were not played again",
                                report.skipped_hops));
  if (stats.most_queued > 0)
    lines.push_back(
        fmt::format("longest queue: {} B at {}", stats.most_queued, report.most_queued_at));
  if (stats.longest_pause > Time())
    lines.push_back(fmt::format("{} pauses; {} stood still for {:.1f} us, the longest",
                                stats.pauses, report.longest_paused,
                                Microseconds(stats.longest_pause)));
  return lines;
}

nlohmann::ordered_json PacketJson(const PacketOptions& options, const PacketReport& report) {
  const PacketStats& stats = report.stats;
  return {{"mtu", options.mtu},
          {"link_control", Name(options.link_control)},
          {"rate_control", Name(options.rate_control)},
          {"recovery", Name(options.recovery)},
          {"path_choice", Name(options.path_choice)},
          {"messages", report.messages},
          {"packets", stats.packets},
          {"hops", stats.hops},
          {"hops_not_played_again", report.skipped_hops},
          {"marked", stats.marked},
          {"lost", stats.dropped},
          {"trimmed", stats.trimmed},
          {"sent_again", stats.repeated},
          {"out_of_order", stats.reordered},
          {"pauses", stats.pauses},
          {"paused_seconds", ToSeconds(stats.paused).value()},
          {"longest_queue_bytes", stats.most_queued},
          {"longest_queue", report.most_queued_at},
          {"longest_paused", report.longest_paused}};
}

}  // namespace rehearse

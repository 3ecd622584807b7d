#include "sim/report/network_picture.h"

#include <algorithm>
#include <cmath>
#include <map>
#include <tuple>
#include <utility>

#include <fmt/format.h>
#include <nlohmann/json.hpp>

#include "sim/base/units.h"
#include "sim/report/kernel_name.h"
#include "sim/report/span_classes.h"
#include "sim/report/text_page.h"

namespace rehearse {
namespace {

using Json = nlohmann::ordered_json;

constexpr const char* kHeights[] = {" ", "▁", "▂", "▃", "▄", "▅", "▆", "▇", "█"};
constexpr size_t kFull = std::size(kHeights) - 1;

double Busy(const PortHistory& port, Time time) {
  return static_cast<double>(port.all.sent) / (port.bytes_per_second * ToSeconds(time).value());
}

// How far a port's queue is filled over time, as a share of the longest of all ports; "x" while it
// stood still for most of the time.
std::string Curve(const PortHistory& port, Time interval, double longest, size_t columns) {
  std::string text;
  const size_t count = port.intervals.size();
  for (size_t column = 0; column < columns; ++column) {
    const size_t begin = column * count / columns;
    const size_t end = std::max(begin + 1, (column + 1) * count / columns);
    uint32_t most = 0;
    Time stopped;
    for (size_t i = begin; i < std::min(end, count); ++i) {
      most = std::max(most, port.intervals[i].most_queued);
      stopped += port.intervals[i].stopped;
    }
    if (2 * stopped.picoseconds() > static_cast<int64_t>(end - begin) * interval.picoseconds()) {
      text += "x";
      continue;
    }
    const double share = longest > 0 ? most / longest : 0;
    const auto height = static_cast<size_t>(std::lround(share * static_cast<double>(kFull)));
    text += kHeights[most > 0 ? std::max<size_t>(height, 1) : 0];
  }
  return text;
}

void AddHeld(std::vector<std::string>* lines, const char* what, const std::vector<HeldOp>& held,
             size_t rows) {
  if (held.empty()) return;
  lines->push_back(fmt::format("    {}", what));
  for (size_t i = 0; i < std::min(rows, held.size()); ++i)
    lines->push_back(fmt::format(
        "      {:<34}{:<16}{:>8} {}, up to {}", Shortened(ShortKernelName(held[i].name.op), 33),
        Shortened(held[i].name.kind, 15), Grouped(held[i].transfers),
        held[i].transfers == 1 ? "transfer" : "transfers", Print(held[i].longest)));
  if (held.size() > rows) lines->push_back(fmt::format("      … and {} more", held.size() - rows));
}

Json Held(const std::vector<HeldOp>& held) {
  Json array = Json::array();
  for (const HeldOp& op : held)
    array.push_back({{"op", op.name.op},
                     {"kind", op.name.kind},
                     {"transfers", op.transfers},
                     {"longest_seconds", op.longest.value()}});
  return array;
}

}  // namespace

NetworkPicture DrawNetwork(const PacketHistory& history, const Schedule& schedule,
                           const Program& program, const OpsOfTasks& ops) {
  NetworkPicture picture = {ToSeconds(history.interval), history.ports, history.shown, {}};
  if (history.trees.empty()) return picture;
  const SpanClasses classes(schedule);
  std::vector<uint32_t> task_of_flow(program.flows.size(), 0);
  for (uint32_t task = 0; task < program.tasks.size(); ++task)
    if (program.tasks[task].kind == TaskKind::kFlow)
      task_of_flow[program.tasks[task].payload] = task;
  const auto name_of = [&](uint32_t flow) {
    const SpanSpec& span = program.spans[ops.Of(TaskId(task_of_flow[flow])).front()];
    const Op& op = schedule.roles[schedule.role_of_rank[span.rank]].At(span.op);
    return OpName{classes.all()[classes.Of(op)].name, op.name};
  };
  for (const CongestionTree& tree : history.trees) {
    NamedTree named = {tree.root, ToSeconds(tree.stopped), tree.ports, tree.depth, {}, {}};
    std::map<std::pair<bool, OpName>, HeldOp> by_name;
    for (const HeldFlow& held : tree.held) {
      const OpName name = name_of(held.flow);
      HeldOp& op = by_name[{held.goes_there, name}];
      op.name = name;
      ++op.transfers;
      op.longest = std::max(op.longest, ToSeconds(held.held));
    }
    for (auto& [key, op] : by_name) (key.first ? named.own : named.victims).push_back(op);
    for (auto* held : {&named.own, &named.victims})
      std::stable_sort(held->begin(), held->end(),
                       [](const HeldOp& a, const HeldOp& b) { return a.longest > b.longest; });
    picture.trees.push_back(std::move(named));
  }
  return picture;
}

std::vector<std::string> NetworkLines(const NetworkPicture& picture, size_t rows, size_t columns) {
  std::vector<std::string> lines;
  if (picture.shown.empty()) return {"no message left its machine"};
  size_t intervals = 0;
  double longest = 0;
  for (const PortHistory& port : picture.shown) {
    intervals = std::max(intervals, port.intervals.size());
    longest = std::max(longest, static_cast<double>(port.all.most_queued));
  }
  const Time time = Time(ToTime(picture.interval).picoseconds() * static_cast<int64_t>(intervals));
  const auto lost = [](const PortHistory& port) { return port.all.lost > 0; };
  const bool loses = std::any_of(picture.shown.begin(), picture.shown.end(), lost);
  lines.push_back(fmt::format("{:<36}{:>10}{:>7}{:>12}{:>9}{}  {}", "port", "queue", "busy",
                              "stood still", "marked", loses ? "     lost" : "",
                              fmt::format("0 to {}", Print(ToSeconds(time)))));
  for (size_t i = 0; i < std::min(rows, picture.shown.size()); ++i) {
    PortHistory port = picture.shown[i];
    port.intervals.resize(intervals);
    lines.push_back(fmt::format(
        "{:<36}{:>10}{:>7}{:>12}{:>9}{}  {}", Shortened(port.name, 35),
        Print(Bytes(port.all.most_queued)), Percent(Busy(port, time)),
        port.all.stopped > Time() ? Print(ToSeconds(port.all.stopped)) : "-",
        port.all.marked > 0 ? Grouped(port.all.marked) : "-",
        loses ? fmt::format("{:>9}", port.all.lost > 0 ? Grouped(port.all.lost) : "-") : "",
        Curve(port, ToTime(picture.interval), longest, columns)));
  }
  if (picture.ports > std::min(rows, picture.shown.size()))
    lines.push_back(
        fmt::format("… and {} more", picture.ports - std::min(rows, picture.shown.size())));
  if (picture.trees.empty()) {
    lines.emplace_back("no port had to stand still");
    return lines;
  }
  for (size_t i = 0; i < std::min(rows, picture.trees.size()); ++i) {
    const NamedTree& tree = picture.trees[i];
    lines.push_back(fmt::format(
        "because of {}, {} stood still, {} in all{}", tree.root,
        tree.ports == 1 ? "1 port" : Grouped(tree.ports) + " ports", Print(tree.stopped),
        tree.depth > 1 ? fmt::format(", up to {} cables away", tree.depth) : ""));
    AddHeld(&lines, "held up on their way over it:", tree.own, rows);
    AddHeld(&lines, "victims, whose way does not lead over it:", tree.victims, rows);
  }
  if (picture.trees.size() > rows)
    lines.push_back(fmt::format("… and because of {} more", picture.trees.size() - rows));
  return lines;
}

nlohmann::ordered_json ToJson(const NetworkPicture& picture) {
  Json ports = Json::array();
  for (const PortHistory& port : picture.shown) {
    Json queued = Json::array();
    Json stopped = Json::array();
    Json sent = Json::array();
    for (const PortInterval& interval : port.intervals) {
      queued.push_back(interval.most_queued);
      stopped.push_back(ToSeconds(interval.stopped).value());
      sent.push_back(interval.sent);
    }
    ports.push_back({{"name", port.name},
                     {"bytes_per_second", port.bytes_per_second},
                     {"longest_queue_bytes", port.all.most_queued},
                     {"sent_bytes", port.all.sent},
                     {"stopped_seconds", ToSeconds(port.all.stopped).value()},
                     {"marked", port.all.marked},
                     {"lost", port.all.lost},
                     {"queued_bytes_over_time", std::move(queued)},
                     {"stopped_seconds_over_time", std::move(stopped)},
                     {"sent_bytes_over_time", std::move(sent)}});
  }
  Json trees = Json::array();
  for (const NamedTree& tree : picture.trees)
    trees.push_back({{"root", tree.root},
                     {"stopped_seconds", tree.stopped.value()},
                     {"ports", tree.ports},
                     {"depth", tree.depth},
                     {"held_on_their_way", Held(tree.own)},
                     {"victims", Held(tree.victims)}});
  return {{"interval_seconds", picture.interval.value()},
          {"ports", picture.ports},
          {"shown", std::move(ports)},
          {"trees", std::move(trees)}};
}

}  // namespace rehearse

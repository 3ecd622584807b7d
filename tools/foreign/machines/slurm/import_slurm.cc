#include "tools/foreign/machines/slurm/import_slurm.h"

#include <algorithm>
#include <map>
#include <optional>
#include <utility>
#include <vector>

#include <fmt/format.h>

#include "sim/base/error.h"
#include "tools/foreign/machines/fabric_plan.h"
#include "tools/foreign/machines/slurm/hostlist.h"

namespace rehearse {
namespace {

constexpr const char* kSlurmExpected = "Slurm's topology.conf";
constexpr size_t kMostSlurmSwitches = 100'000;

struct SlurmSwitch {
  std::string name;
  int line = 0;
  std::vector<std::string> nodes;
  std::vector<std::string> child_names;
  std::vector<uint32_t> children;  // positions, once all are known
  uint32_t parents = 0;            // how many
};

// ---- Lines --------------------------------------------------------------------------------------

struct SlurmLine {
  int number = 0;  // of its first
  std::string text;
};

// Lines without comments; one that ends with a backslash continues on the next.
std::vector<SlurmLine> SlurmLines(std::string_view text) {
  std::vector<SlurmLine> lines;
  std::optional<SlurmLine> open;
  int number = 0;
  while (!text.empty()) {
    ++number;
    const size_t end = std::min(text.find('\n'), text.size());
    std::string_view line = text.substr(0, end);
    text.remove_prefix(std::min(end + 1, text.size()));
    line = line.substr(0, line.find('#'));
    const size_t last = line.find_last_not_of(" \t\r");
    line = line.substr(0, last == std::string_view::npos ? 0 : last + 1);
    const bool goes_on = line.ends_with('\\');
    if (goes_on) line.remove_suffix(1);
    if (!open) open = SlurmLine{number, ""};
    open->text += line;
    open->text += ' ';
    if (goes_on && !text.empty()) continue;
    if (open->text.find_first_not_of(" \t\r") != std::string::npos)
      lines.push_back(std::move(*open));
    open.reset();
  }
  return lines;
}

std::string InLowerCase(std::string_view text) {
  std::string lower(text);
  for (char& c : lower)
    if (c >= 'A' && c <= 'Z') c = static_cast<char>(c - 'A' + 'a');
  return lower;
}

class SlurmReader {
 public:
  SlurmReader(const std::string& file, Remarks& remarks) : file_(file), remarks_(remarks) {}

  std::vector<SlurmSwitch> Read(std::string_view text) {
    for (const SlurmLine& line : SlurmLines(text)) ReadLine(line);
    if (switches_.empty())
      throw Error({file_, 0, ""},
                  fmt::format("there is no SwitchName= in this file, expected {}", kSlurmExpected));
    Resolve();
    RefuseCycles();
    return std::move(switches_);
  }

 private:
  [[noreturn]] void Fail(int line, const std::string& message) const {
    throw Error({file_, line, ""}, message);
  }

  std::vector<std::string> Names(int line, std::string_view key, std::string_view value,
                                 size_t most) const {
    if (InLowerCase(value) == "all")
      Fail(line, fmt::format("{}=ALL stands for names that only slurm.conf has; expected the names",
                             key));
    return ExpandHostlist(value, most, [&](const std::string& what) {
      Fail(line, fmt::format("{}: {}", key, what));
    });
  }

  void ReadLine(const SlurmLine& line) {
    SlurmSwitch found;
    found.line = line.number;
    std::string_view rest = line.text;
    size_t begin = 0;
    while ((begin = rest.find_first_not_of(" \t\r")) != std::string_view::npos) {
      rest.remove_prefix(begin);
      const size_t equals = rest.find('=');
      const size_t blank = rest.find_first_of(" \t\r");
      if (equals == std::string_view::npos || equals == 0 || blank < equals)
        Fail(line.number, fmt::format("found {}, expected KEY=VALUE such as SwitchName=leaf0 of {}",
                                      Kind(rest.substr(0, blank)), kSlurmExpected));
      const std::string_view key = rest.substr(0, equals);
      rest.remove_prefix(equals + 1);
      ReadPair(line.number, key, TakeValue(line.number, key, &rest), &found);
    }
    if (found.name.empty())
      Fail(line.number, fmt::format("this line has no SwitchName=, expected one in each line of {}",
                                    kSlurmExpected));
    if (found.nodes.empty() && found.child_names.empty())
      Fail(line.number,
           fmt::format("switch {} has neither Nodes= nor Switches=", Quoted(found.name)));
    if (switches_.size() == kMostSlurmSwitches)
      Fail(line.number, fmt::format("there are more than {} switches", kMostSlurmSwitches));
    const auto position = static_cast<uint32_t>(switches_.size());
    const auto [twin, is_new] = by_name_.emplace(found.name, position);
    if (!is_new)
      Fail(line.number, fmt::format("switch {} appears already in line {}", Quoted(found.name),
                                    switches_[twin->second].line));
    for (const std::string& node : found.nodes) {
      const auto [first, is_new_node] = node_lines_.emplace(node, line.number);
      if (!is_new_node)
        Fail(line.number,
             fmt::format("node {} appears already in line {}", Quoted(node), first->second));
    }
    switches_.push_back(std::move(found));
  }

  // A file that is not ours is not shown.
  static std::string Kind(std::string_view word) {
    return fmt::format("a word of {} bytes without =", word.size());
  }

  std::string TakeValue(int line, std::string_view key, std::string_view* rest) const {
    const bool is_quoted = rest->starts_with('"');
    if (is_quoted) rest->remove_prefix(1);
    const size_t end =
        is_quoted ? rest->find('"') : std::min(rest->find_first_of(" \t\r"), rest->size());
    if (end == std::string_view::npos)
      Fail(line, fmt::format("the value of {} has no closing quote", Quoted(key)));
    std::string value(rest->substr(0, end));
    rest->remove_prefix(end + (is_quoted ? 1 : 0));
    if (value.empty()) Fail(line, fmt::format("{} has no value", Quoted(key)));
    return value;
  }

  void ReadPair(int line, std::string_view key, const std::string& value, SlurmSwitch* found) {
    const std::string lower = InLowerCase(key);
    const auto refuse_second = [&](bool is_there) {
      if (is_there) Fail(line, fmt::format("{} appears twice in this line", Quoted(key)));
    };
    if (lower == "switchname") {
      refuse_second(!found->name.empty());
      const std::vector<std::string> names = Names(line, key, value, 2);
      if (names.size() != 1)
        Fail(line, fmt::format("SwitchName is {}, expected one name", Quoted(value)));
      found->name = names.front();
    } else if (lower == "nodes") {
      refuse_second(!found->nodes.empty());
      found->nodes = Names(line, key, value, kMostPlannedNodes - node_lines_.size());
    } else if (lower == "switches") {
      refuse_second(!found->child_names.empty());
      const size_t left = 10 * kMostSlurmSwitches - child_count_;
      found->child_names = Names(line, key, value, std::min(left, kMostSlurmSwitches));
      child_count_ += found->child_names.size();
    } else if (lower == "linkspeed") {
      remarks_.Add("LinkSpeed, which has no unit, is left out: a NIC has the speed of the node's",
                   fmt::format("line {}", line));
    } else if (lower.starts_with("block")) {
      Fail(line, fmt::format("found {} of topology/block, which has blocks instead of switches; "
                             "expected SwitchName of topology/tree",
                             Quoted(key)));
    } else {
      remarks_.Add(fmt::format("{} is left out", Quoted(key)), fmt::format("line {}", line));
    }
  }

  void Resolve() {
    for (SlurmSwitch& above : switches_) {
      for (const std::string& name : above.child_names) {
        const auto child = by_name_.find(name);
        if (child == by_name_.end())
          Fail(above.line, fmt::format("switch {} is cabled to {}, which no line describes",
                                       Quoted(above.name), Quoted(name)));
        above.children.push_back(child->second);
      }
      std::vector<uint32_t> sorted = above.children;
      std::sort(sorted.begin(), sorted.end());
      const auto twin = std::adjacent_find(sorted.begin(), sorted.end());
      if (twin != sorted.end())
        Fail(above.line, fmt::format("switch {} names {} twice", Quoted(above.name),
                                     Quoted(switches_[*twin].name)));
      for (const uint32_t child : above.children) ++switches_[child].parents;
    }
  }

  // Removes switches with nothing above them until only those of a cycle are left.
  void RefuseCycles() const {
    std::vector<uint32_t> above;
    std::vector<uint32_t> free;
    for (uint32_t i = 0; i < switches_.size(); ++i) {
      above.push_back(switches_[i].parents);
      if (above.back() == 0) free.push_back(i);
    }
    for (size_t next = 0; next < free.size(); ++next)
      for (const uint32_t child : switches_[free[next]].children)
        if (--above[child] == 0) free.push_back(child);
    for (uint32_t i = 0; i < switches_.size(); ++i)
      if (above[i] > 0 && free.size() < switches_.size())
        Fail(switches_[i].line, fmt::format("switch {} is below itself, or below one that is",
                                            Quoted(switches_[i].name)));
  }

  const std::string file_;
  Remarks& remarks_;
  std::vector<SlurmSwitch> switches_;
  size_t child_count_ = 0;
  std::map<std::string, uint32_t> by_name_;
  std::map<std::string, int> node_lines_;
};

// ---- The plan -----------------------------------------------------------------------------------

// How much leads upwards from each switch, in bandwidths of a node: what its own nodes have, and
// what comes from the switches below, each of which deals its own to all switches above it.
std::vector<double> UpwardsOf(const std::vector<SlurmSwitch>& switches) {
  std::vector<double> upwards(switches.size());
  std::vector<uint32_t> waits;  // for how many switches below
  std::vector<std::vector<uint32_t>> parents(switches.size());
  std::vector<uint32_t> ready;
  for (uint32_t i = 0; i < switches.size(); ++i) {
    upwards[i] = static_cast<double>(switches[i].nodes.size());
    waits.push_back(static_cast<uint32_t>(switches[i].children.size()));
    if (waits.back() == 0) ready.push_back(i);
    for (const uint32_t child : switches[i].children) parents[child].push_back(i);
  }
  for (size_t next = 0; next < ready.size(); ++next) {
    const uint32_t child = ready[next];
    for (const uint32_t parent : parents[child]) {
      upwards[parent] += upwards[child] / switches[child].parents;
      if (--waits[parent] == 0) ready.push_back(parent);
    }
  }
  return upwards;
}

// Refuses two switches with nodes if nothing joins them.
void CheckJoined(const std::vector<SlurmSwitch>& switches, const std::string& file) {
  std::vector<std::vector<uint32_t>> beside(switches.size());
  for (uint32_t i = 0; i < switches.size(); ++i) {
    for (const uint32_t child : switches[i].children) {
      beside[i].push_back(child);
      beside[child].push_back(i);
    }
  }
  std::vector<bool> is_reached(switches.size(), false);
  std::vector<uint32_t> reached = {0};
  is_reached[0] = true;
  for (size_t next = 0; next < reached.size(); ++next) {
    for (const uint32_t other : beside[reached[next]]) {
      if (is_reached[other]) continue;
      is_reached[other] = true;
      reached.push_back(other);
    }
  }
  const auto apart = std::find(is_reached.begin(), is_reached.end(), false);
  if (apart == is_reached.end()) return;
  const SlurmSwitch& other = switches[static_cast<size_t>(apart - is_reached.begin())];
  throw Error(
      {file, other.line, ""},
      fmt::format("no switch joins {} and {}; expected one above them all, since a cluster needs a "
                  "way between any two nodes (to Slurm these are separate clusters)",
                  Quoted(switches.front().name), Quoted(other.name)));
}

FabricPlan PlanOf(const std::vector<SlurmSwitch>& switches, const NodeTemplate& kind) {
  FabricPlan plan;
  const std::vector<double> upwards = UpwardsOf(switches);
  for (uint32_t i = 0; i < switches.size(); ++i) {
    const SlurmSwitch& one = switches[i];
    plan.switches.push_back({PlanName(one.name), one.line});
    for (const uint32_t child : one.children) {
      const double nodes = upwards[child] / switches[child].parents;
      if (nodes > 0) plan.trunks.push_back({child, i, kind.bandwidth * nodes});
    }
    for (const std::string& name : one.nodes) {
      FabricPlan::Node node = {PlanName(name), one.line, {}};
      for (uint32_t port = 0; port < kind.shape.ports.size(); ++port)
        node.ports.push_back({port, i, kind.shape.ports[port].cable.bandwidth});
      plan.nodes.push_back(std::move(node));
    }
  }
  return plan;
}

}  // namespace

ImportedCluster ImportSlurm(std::string_view text, const std::string& file,
                            const std::string& node) {
  RefuseNonText(text, file, kSlurmExpected, Escapes::kRefused);
  Remarks remarks;
  const NodeTemplate kind = NodeTemplateOf(node, remarks);
  const std::vector<SlurmSwitch> switches = SlurmReader(file, remarks).Read(text);
  CheckJoined(switches, file);
  if (switches.size() > 1)
    remarks.Add(
        "the file does not say how many cables lead upwards: as many as lead to a switch from "
        "below, "
        "so that nothing is oversubscribed (\"edits\" of a cluster file make links slower)");
  return DrawPlan(PlanOf(switches, kind), kind, std::move(remarks), file, kSlurmExpected);
}

}  // namespace rehearse

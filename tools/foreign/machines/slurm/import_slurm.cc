#include "tools/foreign/machines/slurm/import_slurm.h"

#include <algorithm>
#include <charconv>
#include <map>
#include <optional>
#include <utility>
#include <vector>

#include <fmt/format.h>

#include "sim/base/error.h"
#include "sim/base/json_document.h"
#include "sim/base/json_reader.h"
#include "tools/foreign/machines/fabric_plan.h"
#include "tools/foreign/machines/infragraph/yaml_text.h"
#include "tools/foreign/machines/slurm/hostlist.h"

namespace rehearse {
namespace {

constexpr const char* kSlurmExpected = "Slurm's topology.conf or topology.yaml";
constexpr size_t kMostSlurmSwitches = 100'000;

struct SlurmSwitch {
  std::string name;
  int line = 0;
  std::vector<std::string> nodes;
  std::vector<std::string> child_names;
  std::string block;               // the name of a block, as a file has it
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
    if (switches_.empty() && blocks_.empty() && block_sizes_.empty())
      throw Error({file_, 0, ""},
                  fmt::format("there is no SwitchName= and no BlockName= in this file, expected {}",
                              kSlurmExpected));
    return Finish();
  }

  // What topology.yaml has: a list of topologies, or one of them.
  std::vector<SlurmSwitch> ReadYamlText(std::string_view text) {
    const JsonDocument document = ReadYaml(text, file_);
    const JsonReader root = document.Root();
    std::vector<JsonReader> all = root.IsArray() ? root.Elements() : std::vector{root};
    if (all.empty()) root.Expected("a topology");
    size_t chosen = 0;
    for (size_t i = 0; i < all.size(); ++i) {
      if (all[i].Has("cluster_default") && all[i].At("cluster_default").value() == true) {
        chosen = i;
        break;
      }
    }
    const auto name_of = [](const JsonReader& one) {
      return one.Has("topology") ? TextOf(one.At("topology")) : std::string("without a name");
    };
    for (size_t i = 0; i < all.size(); ++i) {
      if (i != chosen)
        remarks_.Add("another topology of this file; left out", Printable(name_of(all[i])));
    }
    const JsonReader& topology = all[chosen];
    if (topology.Has("tree")) {
      for (const JsonReader& one : topology.At("tree").At("switches").Elements())
        ReadYamlSwitch(one);
      if (switches_.empty()) topology.At("tree").Expected("at least one switch");
    } else if (topology.Has("block")) {
      const JsonReader block = topology.At("block");
      for (const JsonReader& one : block.At("blocks").Elements()) ReadYamlBlock(one);
      if (blocks_.empty()) block.Expected("at least one block");
      if (block.Has("block_sizes")) {
        for (const JsonReader& size : block.At("block_sizes").Elements())
          block_sizes_.push_back(static_cast<uint64_t>(size.Integer(1, kMostPlannedNodes)));
      }
    } else {
      topology.Fail("expected \"tree\" or \"block\" (a flat topology says nothing of switches)");
    }
    return Finish();
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
    if (!found.block.empty()) {
      if (found.nodes.empty())
        Fail(line.number, fmt::format("block {} has no Nodes=", Quoted(found.block)));
      found.name = found.block;
      blocks_.push_back(std::move(found));
      return;
    }
    if (found.name.empty() && !block_sizes_.empty()) return;  // BlockSizes alone
    if (found.name.empty())
      Fail(line.number, fmt::format("this line has no SwitchName=, expected one in each line of {}",
                                    kSlurmExpected));
    if (found.nodes.empty() && found.child_names.empty())
      Fail(line.number,
           fmt::format("switch {} has neither Nodes= nor Switches=", Quoted(found.name)));
    AddSwitch(std::move(found));
  }

  static std::string TextOf(const JsonReader& value) {
    return value.value().is_string() ? value.String() : value.value().dump();
  }
  std::vector<std::string> YamlNames(const JsonReader& object, const char* key, size_t most) const {
    if (!object.Has(key)) return {};
    const JsonReader value = object.At(key);
    std::string names;
    for (const JsonReader& one : value.IsArray() ? value.Elements() : std::vector{value})
      names += (names.empty() ? "" : ",") + TextOf(one);
    return ExpandHostlist(names, most, [&](const std::string& what) { value.Fail(what); });
  }

  void ReadYamlSwitch(const JsonReader& object) {
    SlurmSwitch found;
    found.name = TextOf(object.At("switch"));
    found.nodes = YamlNames(object, "nodes", kMostPlannedNodes - node_lines_.size());
    found.child_names = YamlNames(object, "children", kMostSlurmSwitches);
    if (found.nodes.empty() && found.child_names.empty())
      object.Expected("\"nodes\" or \"children\"");
    AddSwitch(std::move(found));
  }
  void ReadYamlBlock(const JsonReader& object) {
    SlurmSwitch found;
    found.name = found.block = TextOf(object.At("block"));
    found.nodes = YamlNames(object, "nodes", kMostPlannedNodes - node_lines_.size());
    if (found.nodes.empty()) object.Expected("\"nodes\"");
    blocks_.push_back(std::move(found));
  }

  std::vector<SlurmSwitch> Finish() {
    if (!blocks_.empty()) {
      if (!switches_.empty()) {
        Fail(blocks_.front().line,
             "found blocks beside switches, expected topology/tree or "
             "topology/block");
      }
      JoinBlocks();
    } else if (!block_sizes_.empty()) {
      throw Error({file_, 0, ""}, "found BlockSizes, but no BlockName=");
    }
    Resolve();
    RefuseCycles();
    return std::move(switches_);
  }

  // A switch for each block, and above them one for as many as each larger size takes; at last one
  // for all.
  void JoinBlocks() {
    std::vector<std::string> below;
    const uint64_t least = block_sizes_.empty() ? 0 : block_sizes_.front();
    for (SlurmSwitch& block : blocks_) {
      below.push_back(block.name);
      AddSwitch(std::move(block));
    }
    std::vector<uint64_t> groups;  // of how many blocks
    for (const uint64_t size : block_sizes_)
      if (size > least) groups.push_back(size / least);
    uint64_t before = 1;
    uint32_t level = 0;
    const auto join = [&](uint64_t count) {
      std::vector<std::string> above;
      ++level;
      for (size_t first = 0; first < below.size(); first += count) {
        SlurmSwitch upper;
        upper.name = fmt::format("blocks-{}-{}", level, above.size());
        for (size_t i = first; i < std::min<size_t>(first + count, below.size()); ++i)
          upper.child_names.push_back(below[i]);
        above.push_back(upper.name);
        AddSwitch(std::move(upper));
      }
      below = std::move(above);
    };
    for (const uint64_t group : groups) {
      if (below.size() < 2 || group <= before || group % before != 0) continue;
      join(group / before);
      before = group;
    }
    if (below.size() > 1) join(below.size());
  }

  void AddSwitch(SlurmSwitch found) {
    const int line = found.line;
    if (switches_.size() == kMostSlurmSwitches)
      Fail(line, fmt::format("there are more than {} switches", kMostSlurmSwitches));
    const auto position = static_cast<uint32_t>(switches_.size());
    const auto [twin, is_new] = by_name_.emplace(found.name, position);
    if (!is_new)
      Fail(line, fmt::format("switch {} appears already in line {}", Quoted(found.name),
                             switches_[twin->second].line));
    for (const std::string& node : found.nodes) {
      const auto [first, is_new_node] = node_lines_.emplace(node, line);
      if (!is_new_node)
        Fail(line, fmt::format("node {} appears already in line {}", Quoted(node), first->second));
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
    } else if (lower == "blockname") {
      refuse_second(!found->block.empty());
      found->block = value;
    } else if (lower == "blocksizes") {
      refuse_second(!block_sizes_.empty());
      ReadBlockSizes(line, value);
    } else {
      remarks_.Add(fmt::format("{} is left out", Quoted(key)), fmt::format("line {}", line));
    }
  }

  void ReadBlockSizes(int line, std::string_view text) {
    while (!text.empty()) {
      uint64_t size = 0;
      const auto [stop, fault] = std::from_chars(text.data(), text.data() + text.size(), size);
      if (fault != std::errc() || size == 0 || size > kMostPlannedNodes)
        Fail(line, fmt::format("found {} in BlockSizes, expected numbers of nodes", Quoted(text)));
      block_sizes_.push_back(size);
      text.remove_prefix(static_cast<size_t>(stop - text.data()));
      if (!text.empty() && text[0] == ',') text.remove_prefix(1);
    }
    std::sort(block_sizes_.begin(), block_sizes_.end());
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
  std::vector<SlurmSwitch> blocks_;
  std::vector<uint64_t> block_sizes_;
  size_t child_count_ = 0;
  std::map<std::string, uint32_t> by_name_;
  std::map<std::string, int> node_lines_;
};

// topology.yaml begins with a document, a list or a key; a line of topology.conf has an equals
// sign.
bool IsTopologyYaml(std::string_view text) {
  while (!text.empty()) {
    const size_t end = std::min(text.find('\n'), text.size());
    std::string_view line = text.substr(0, end);
    text.remove_prefix(std::min(end + 1, text.size()));
    line = line.substr(0, line.find('#'));
    const size_t first = line.find_first_not_of(" \t\r");
    if (first == std::string_view::npos) continue;
    line.remove_prefix(first);
    return line.starts_with("---") || line.starts_with("- ") || line.find(':') < line.find('=');
  }
  return false;
}

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

// A preset whose node is a rack takes a block for a node: its trays are the rack's.
void MakeRacksOfBlocks(const NodeTemplate& kind, std::vector<SlurmSwitch>* switches,
                       Remarks* remarks) {
  if (!kind.preset.ends_with("-nvl72")) return;
  for (SlurmSwitch& one : *switches) {
    if (one.block.empty()) continue;
    const size_t trays = one.nodes.size();
    constexpr size_t kTrays = 18;
    if (trays != kTrays)
      remarks->Add(
          fmt::format("a block of {} nodes, drawn as a whole rack of {} trays", trays, kTrays),
          one.block);
    one.nodes = {one.block + "-rack"};
  }
  remarks->Add(fmt::format("each block is one rack, a node of {}", kind.preset));
}

// Leaves out nodes that the user does not want, and switches that then have nothing below them
// stay.
void KeepHosts(const HostFilter& hosts, const std::string& file, std::vector<SlurmSwitch>* switches,
               Remarks* remarks) {
  if (!hosts.is_given()) return;
  size_t kept = 0;
  for (SlurmSwitch& one : *switches) {
    std::vector<std::string> nodes;
    for (const std::string& node : one.nodes) {
      if (hosts.Takes(node))
        nodes.push_back(node);
      else
        remarks->Add("left out: --hosts does not name it", node);
    }
    one.nodes = std::move(nodes);
    kept += one.nodes.size();
  }
  if (kept == 0) throw Error({file, 0, ""}, "--hosts takes none of the nodes of this file");
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

ImportedCluster ImportSlurm(std::string_view text, const std::string& file, const std::string& node,
                            const HostFilter& hosts) {
  RefuseNonText(text, file, kSlurmExpected, Escapes::kRefused);
  Remarks remarks;
  const NodeTemplate kind = NodeTemplateOf(node, remarks);
  SlurmReader reader(file, remarks);
  std::vector<SlurmSwitch> switches =
      IsTopologyYaml(text) ? reader.ReadYamlText(text) : reader.Read(text);
  CheckJoined(switches, file);
  KeepHosts(hosts, file, &switches, &remarks);
  const bool has_blocks = std::any_of(switches.begin(), switches.end(),
                                      [](const SlurmSwitch& one) { return !one.block.empty(); });
  if (has_blocks && kind.preset.ends_with("-nvl72")) {
    MakeRacksOfBlocks(kind, &switches, &remarks);
  } else if (has_blocks) {
    remarks.Add(fmt::format(
        "blocks are NVLink domains of several nodes; drawn as switches with nodes of {} "
        "(--node gb200-nvl72 makes each block a rack)",
        kind.preset));
  }
  if (switches.size() > 1)
    remarks.Add(
        "the file does not say how many cables lead upwards: as many as lead to a switch from "
        "below, "
        "so that nothing is oversubscribed (\"edits\" of a cluster file make links slower)");
  return DrawPlan(PlanOf(switches, kind), kind, std::move(remarks), file, kSlurmExpected);
}

}  // namespace rehearse

#include "tools/foreign/machines/ibnetdiscover/ibnet_file.h"

#include <algorithm>
#include <array>
#include <charconv>
#include <map>
#include <utility>

#include <fmt/format.h>

#include "sim/base/error.h"

namespace rehearse {
namespace {

constexpr const char* kIbExpected = "the output of ibnetdiscover, or a net of ibsim";
constexpr size_t kMostIbNodes = 1'000'000;

// The rate of a lane in Gbit/s, after coding: 8 of 10 bits up to QDR, 64 of 66 from there on, and
// with HDR two bits at a time. Figures: the InfiniBand Trade Association's roadmap and the names in
// its specification (ports of 4 lanes: 8, 16, 32, 40, 56, 100, 200, 400 and 800 Gb/s nominally).
struct IbSpeed {
  std::string_view name;
  double gigabits;
};
constexpr std::array kIbSpeeds = {
    IbSpeed{"SDR", 2},
    IbSpeed{"DDR", 4},
    IbSpeed{"QDR", 8},
    IbSpeed{"FDR10", 10},
    IbSpeed{"FDR", 14.0625 * 64 / 66},
    IbSpeed{"EDR", 25},
    IbSpeed{"HDR", 50},
    IbSpeed{"NDR", 100},
    IbSpeed{"XDR", 200},
};
constexpr std::array kIbWidths = {1u, 2u, 4u, 8u, 12u};

// Reads a line from its beginning.
class Cursor {
 public:
  explicit Cursor(std::string_view text) : rest_(text) { SkipBlanks(); }

  bool Take(std::string_view what) {
    if (!rest_.starts_with(what)) return false;
    rest_.remove_prefix(what.size());
    return true;
  }

  // Also takes the blanks after it, of which there must be at least one.
  bool TakeWord(std::string_view word) {
    const size_t end = rest_.find_first_of(" \t\r");
    if (rest_.substr(0, end) != word) return false;
    rest_.remove_prefix(word.size());
    SkipBlanks();
    return true;
  }

  void SkipBlanks() {
    while (!rest_.empty() && (rest_[0] == ' ' || rest_[0] == '\t' || rest_[0] == '\r'))
      rest_.remove_prefix(1);
  }

  std::optional<uint32_t> TakeNumber() {
    uint32_t value = 0;
    const auto [stop, fault] = std::from_chars(rest_.data(), rest_.data() + rest_.size(), value);
    if (fault != std::errc()) return std::nullopt;
    rest_.remove_prefix(static_cast<size_t>(stop - rest_.data()));
    return value;
  }

  // The text before the next `end`, which is taken too.
  std::optional<std::string_view> TakeUpTo(char end) {
    const size_t at = rest_.find(end);
    if (at == std::string_view::npos) return std::nullopt;
    const std::string_view before = rest_.substr(0, at);
    rest_.remove_prefix(at + 1);
    return before;
  }

  std::string_view rest() const { return rest_; }

 private:
  std::string_view rest_;
};

class IbReader {
 public:
  IbReader(const std::string& file, Remarks& remarks) : file_(file), remarks_(remarks) {}

  std::vector<IbNode> Read(std::string_view text) {
    // A net that ibsim plays has names instead of GUIDs, and needs a cable at one of its ends only.
    is_net_ = text.find("guid=") == std::string_view::npos;
    while (!text.empty()) {
      ++line_;
      const size_t end = std::min(text.find('\n'), text.size());
      ReadLine(text.substr(0, end));
      text.remove_prefix(std::min(end + 1, text.size()));
    }
    if (nodes_.empty())
      throw Error(
          {file_, 0, ""},
          fmt::format("there is no Switch and no Ca in this file, expected {}", kIbExpected));
    Join();
    return std::move(nodes_);
  }

 private:
  [[noreturn]] void Fail(int line, const std::string& message) const {
    throw Error({file_, line, ""}, message);
  }

  void ReadLine(std::string_view line) {
    Cursor cursor(line);
    if (cursor.rest().empty() || cursor.Take("#")) return;
    if (cursor.TakeWord("Switch")) return BeginNode(IbNode::Kind::kSwitch, "S-", cursor);
    if (cursor.TakeWord("Ca") || (is_net_ && (cursor.TakeWord("Hca") || cursor.TakeWord("HCA"))))
      return BeginNode(IbNode::Kind::kAdapter, "H-", cursor);
    if (cursor.TakeWord("Rt")) return BeginNode(IbNode::Kind::kRouter, "R-", cursor);
    if (cursor.Take("[")) return ReadPort(cursor);
    constexpr std::string_view kProperties[] = {
        "vendid=", "devid=", "sysimgguid=", "switchguid=", "caguid=", "rtguid="};
    for (const std::string_view property : kProperties)
      if (cursor.Take(property)) return;
    // Chassis and warnings appear among the rest.
    remarks_.Add("neither a node nor a port of one; left out", fmt::format("line {}", line_));
  }

  void BeginNode(IbNode::Kind kind, std::string_view prefix, Cursor cursor) {
    const auto ports = cursor.TakeNumber();
    cursor.SkipBlanks();
    const auto id = cursor.Take("\"") ? cursor.TakeUpTo('"') : std::nullopt;
    const bool is_id = id && (IsId(*id) ? id->starts_with(prefix) : is_net_ && !id->empty());
    if (!ports || !is_id)
      Fail(line_, fmt::format("found no number of ports and GUID after the kind of a node, "
                              "expected something like: Switch 41 \"S-b8599f0300fc6de4\""));
    if (nodes_.size() == kMostIbNodes)
      Fail(line_, fmt::format("there are more than {} nodes", kMostIbNodes));
    const auto [twin, is_new] =
        by_id_.emplace(std::string(*id), static_cast<uint32_t>(nodes_.size()));
    if (!is_new)
      Fail(line_,
           fmt::format("{} appears already in line {}", Quoted(*id), nodes_[twin->second].line));
    IbNode node = {
        .kind = kind, .line = line_, .id = std::string(*id), .description = {}, .ports = {}};
    if (!IsId(*id)) node.description = node.id;
    if (cursor.TakeUpTo('"'))
      if (const auto description = cursor.TakeUpTo('"')) node.description = *description;
    nodes_.push_back(std::move(node));
    peers_.emplace_back();
  }

  // "S-", "H-" or "R-", and a GUID.
  static bool IsId(std::string_view id) {
    constexpr size_t kLongest = 2 + 16;
    if (id.size() < 3 || id.size() > kLongest || id[1] != '-') return false;
    if (id[0] != 'S' && id[0] != 'H' && id[0] != 'R') return false;
    return std::all_of(id.begin() + 2, id.end(), [](char c) {
      return (c >= '0' && c <= '9') || (c >= 'a' && c <= 'f') || (c >= 'A' && c <= 'F');
    });
  }

  // What may follow a port's number: "[ext 4]" in a chassis, "(GUID)".
  static bool TakeMore(Cursor& cursor) {
    if (cursor.Take("[ext") && !cursor.TakeUpTo(']')) return false;
    return !cursor.Take("(") || cursor.TakeUpTo(')').has_value();
  }

  void ReadPort(Cursor cursor) {
    if (nodes_.empty())
      Fail(line_, fmt::format("found a port before any node, expected {}", kIbExpected));
    IbPort port;
    port.line = line_;
    const auto refuse = [&] {
      Fail(line_,
           "this line of a port does not end as it should, expected something like: [1] "
           "\"S-b8599f0300fc6de4\"[3] # \"leaf01\" lid 5 4xHDR (was the file cut off?)");
    };
    const auto number = cursor.TakeNumber();
    if (!number || !cursor.Take("]") || !TakeMore(cursor)) refuse();
    cursor.SkipBlanks();
    const auto peer = cursor.Take("\"") ? cursor.TakeUpTo('"') : std::nullopt;
    if (!peer || !(IsId(*peer) || is_net_) || !cursor.Take("[")) refuse();
    const auto peer_port = cursor.TakeNumber();
    if (!peer_port || !cursor.Take("]") || !TakeMore(cursor)) refuse();
    cursor.SkipBlanks();
    if (!cursor.Take("#") && !(is_net_ && cursor.rest().empty())) refuse();
    port.number = *number;
    port.peer_port = *peer_port;
    port.bandwidth = RateIn(cursor.rest());
    IbNode& node = nodes_.back();
    if (!port.bandwidth)
      remarks_.Add(
          "the width and speed of its cable are not given, or not known; taken as the node's",
          fmt::format("line {}", line_));
    const auto [twin, is_new] = ports_.emplace(
        std::pair(static_cast<uint32_t>(nodes_.size() - 1), port.number), node.ports.size());
    if (!is_new)
      Fail(line_, fmt::format("port {} of {} appears already in line {}", port.number, node.id,
                              node.ports[twin->second].line));
    node.ports.push_back(port);
    peers_.back().emplace_back(*peer);
  }

  // The last word that looks like a rate.
  static std::optional<BytesPerSecond> RateIn(std::string_view comment) {
    std::optional<BytesPerSecond> rate;
    for (Cursor cursor(comment); !cursor.rest().empty(); cursor.SkipBlanks()) {
      const std::string_view rest = cursor.rest();
      const std::string_view word = rest.substr(0, rest.find_first_of(" \t\r"));
      if (const auto known = IbRate(word)) rate = known;
      cursor.Take(word);
    }
    return rate;
  }

  // Replaces GUIDs by positions, and joins both ends of every cable.
  void Join() {
    for (uint32_t i = 0; i < nodes_.size(); ++i) {
      for (size_t j = 0; j < nodes_[i].ports.size(); ++j) {
        IbPort& port = nodes_[i].ports[j];
        const auto peer = by_id_.find(peers_[i][j]);
        if (peer == by_id_.end())
          Fail(port.line, fmt::format("{} is cabled to {}, which has no lines of its own: was the "
                                      "file cut off?",
                                      nodes_[i].id, peers_[i][j]));
        port.peer = peer->second;
      }
    }
    if (is_net_) AddOtherEnds();
    for (uint32_t i = 0; i < nodes_.size(); ++i)
      for (const IbPort& port : nodes_[i].ports) CheckOtherEnd(i, port);
  }

  void AddOtherEnds() {
    for (uint32_t i = 0; i < nodes_.size(); ++i) {
      for (size_t j = 0; j < nodes_[i].ports.size(); ++j) {
        const IbPort port = nodes_[i].ports[j];
        const auto [twin, is_new] =
            ports_.emplace(std::pair(port.peer, port.peer_port), nodes_[port.peer].ports.size());
        if (!is_new) continue;
        IbPort other = port;
        other.number = port.peer_port;
        other.peer = i;
        other.peer_port = port.number;
        nodes_[port.peer].ports.push_back(other);
      }
    }
  }

  void CheckOtherEnd(uint32_t from, const IbPort& port) const {
    const IbNode& peer = nodes_[port.peer];
    const auto back = ports_.find({port.peer, port.peer_port});
    if (back == ports_.end())
      Fail(port.line,
           fmt::format("{} is cabled to port {} of {}, but that has no such port: was the "
                       "file cut off?",
                       nodes_[from].id, port.peer_port, peer.id));
    const IbPort& other = peer.ports[back->second];
    if (other.peer != from || other.peer_port != port.number)
      Fail(port.line,
           fmt::format("{} is cabled to port {} of {}, but that is cabled to another one, "
                       "in line {}",
                       nodes_[from].id, port.peer_port, peer.id, other.line));
  }

  const std::string file_;
  Remarks& remarks_;
  int line_ = 0;
  bool is_net_ = false;
  std::vector<IbNode> nodes_;
  std::vector<std::vector<std::string>> peers_;  // GUIDs, by node and port
  std::map<std::string, uint32_t> by_id_;
  // Node and its port's number -> its place among the ports.
  std::map<std::pair<uint32_t, uint32_t>, size_t> ports_;
};

}  // namespace

std::optional<BytesPerSecond> IbRate(std::string_view text) {
  uint32_t width = 0;
  const auto [stop, fault] = std::from_chars(text.data(), text.data() + text.size(), width);
  if (fault != std::errc() ||
      std::find(kIbWidths.begin(), kIbWidths.end(), width) == kIbWidths.end())
    return std::nullopt;
  text.remove_prefix(static_cast<size_t>(stop - text.data()));
  for (const IbSpeed& speed : kIbSpeeds)
    if (text.starts_with('x') && text.substr(1) == speed.name)
      return BytesPerSecond(width * speed.gigabits * 1e9 / 8);
  return std::nullopt;
}

std::vector<IbNode> ReadIbnetdiscover(std::string_view text, const std::string& file,
                                      Remarks& remarks) {
  RefuseNonText(text, file, kIbExpected, Escapes::kRefused);
  return IbReader(file, remarks).Read(text);
}

}  // namespace rehearse

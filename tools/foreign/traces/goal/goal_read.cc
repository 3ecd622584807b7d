#include <algorithm>
#include <charconv>
#include <map>
#include <optional>
#include <string>
#include <string_view>
#include <unordered_map>
#include <utility>
#include <vector>

#include <fmt/format.h>

#include "sim/base/error.h"
#include "sim/base/visible_text.h"
#include "tools/foreign/traces/chakra/chakra_foreign.h"
#include "tools/foreign/traces/chakra/chakra_format.h"
#include "tools/foreign/traces/goal/goal.h"

namespace rehearse {
namespace {

constexpr uint32_t kMostGoalRanks = 1u << 20;
constexpr std::string_view kSpaces = " \t\r";

// A line's words; a colon is one of its own, and comments are none.
class GoalLines {
 public:
  GoalLines(std::string_view text, const std::string& name) : left_(text), name_(name) {}

  // False at the end of the text.
  bool Next() {
    while (!left_.empty()) {
      const size_t end = std::min(left_.find('\n'), left_.size());
      const std::string_view line = left_.substr(0, end);
      offset_ += before_;
      before_ = std::min(end + 1, left_.size());
      left_.remove_prefix(before_);
      ++number_;
      Split(line);
      if (!words_.empty()) return true;
    }
    return false;
  }
  const std::vector<std::string_view>& words() const { return words_; }
  uint64_t offset() const { return offset_; }

  [[noreturn]] void Fail(const std::string& what) const {
    throw Error(fmt::format("{}:{}: {}", name_, number_, what));
  }
  [[noreturn]] void FailHere(const char* expected) const {
    constexpr size_t kMost = 60;
    std::string found = fmt::format("{}", fmt::join(words_, " "));
    if (found.size() > kMost) found = found.substr(0, kMost) + "...";
    Fail(fmt::format("found \"{}\", expected {}", VisibleText(found), expected));
  }

 private:
  void Split(std::string_view line) {
    words_.clear();
    size_t at = 0;
    while (at < line.size()) {
      if (in_comment_) {
        const size_t end = line.find("*/", at);
        if (end == std::string_view::npos) return;
        at = end + 2;
        in_comment_ = false;
        continue;
      }
      if (kSpaces.find(line[at]) != std::string_view::npos) {
        ++at;
      } else if (line.substr(at).starts_with("//")) {
        return;
      } else if (line.substr(at).starts_with("/*")) {
        in_comment_ = true;
        at += 2;
      } else if (line[at] == ':' || line[at] == '{' || line[at] == '}') {
        words_.push_back(line.substr(at++, 1));
      } else {
        const size_t end = std::min(line.find_first_of(" \t\r:{}", at), line.size());
        words_.push_back(line.substr(at, end - at));
        at = end;
      }
    }
  }

  std::string_view left_;
  const std::string& name_;
  uint64_t number_ = 0;
  uint64_t offset_ = 0;
  uint64_t before_ = 0;  // bytes of the line, which the next one comes after
  bool in_comment_ = false;
  std::vector<std::string_view> words_;
};

std::optional<uint64_t> WholeOf(std::string_view word) {
  uint64_t value = 0;
  const auto [end, error] = std::from_chars(word.data(), word.data() + word.size(), value);
  if (error != std::errc() || end != word.data() + word.size() || word.empty()) return std::nullopt;
  return value;
}

struct GoalNode {
  KeptNode node;
  std::vector<uint32_t> before;
  std::vector<uint32_t> begins_with;  // those that it comes after only as far as they have begun
};

class GoalReader {
 public:
  GoalReader(std::string_view text, const std::string& name) : lines_(text, name) {
    traces_.name = name;
  }

  Schedule Read(std::vector<std::string>* remarks) {
    if (!lines_.Next()) throw Error(fmt::format("{}: is empty, expected \"num_ranks N\"", name()));
    const std::vector<std::string_view>& words = lines_.words();
    const std::optional<uint64_t> ranks =
        words.size() == 2 && words[0] == "num_ranks" ? WholeOf(words[1]) : std::nullopt;
    if (!ranks || *ranks == 0 || *ranks > kMostGoalRanks)
      lines_.FailHere("\"num_ranks N\" of at least 1 and at most 1048576 ranks");
    ranks_ = static_cast<uint32_t>(*ranks);
    traces_.trace_of_rank.assign(ranks_, kNoTrace);
    while (lines_.Next()) ReadRank();
    // Ranks that are not there do nothing, all alike.
    std::optional<uint32_t> idle;
    for (uint32_t rank = 0; rank < ranks_; ++rank) {
      if (traces_.trace_of_rank[rank] != kNoTrace) continue;
      if (!idle) {
        EmptyTrace(rank);
        idle = traces_.trace_of_rank[rank];
      }
      traces_.trace_of_rank[rank] = *idle;
    }
    if (begins_with_ > 0) {
      remarks->push_back(
          fmt::format("{} \"irequires\": wait for what that waits for, and not for a cpu that it "
                      "may have waited for",
                      begins_with_));
    }
    return ScheduleOfForeign(traces_, remarks);
  }

 private:
  static constexpr uint32_t kNoTrace = 0xffffffffu;

  const std::string& name() const { return traces_.name; }

  ChakraTrace& EmptyTrace(uint32_t rank) {
    traces_.trace_of_rank[rank] = static_cast<uint32_t>(traces_.traces.size());
    ChakraTrace& trace = traces_.traces.emplace_back();
    trace.file = name();
    trace.rank = rank;
    return trace;
  }

  void ReadRank() {
    const std::vector<std::string_view>& words = lines_.words();
    const std::optional<uint64_t> rank = words.size() == 3 && words[0] == "rank" && words[2] == "{"
                                             ? WholeOf(words[1])
                                             : std::nullopt;
    if (!rank) lines_.FailHere("\"rank R {\"");
    if (*rank >= ranks_)
      lines_.Fail(fmt::format("found rank {}, expected one of {} ranks", *rank, ranks_));
    const auto own = static_cast<uint32_t>(*rank);
    if (traces_.trace_of_rank[own] != kNoTrace)
      lines_.Fail(fmt::format("found rank {} a second time", own));
    nodes_.clear();
    labels_.clear();
    ChakraTrace& trace = EmptyTrace(own);
    while (lines_.Next()) {
      if (words.size() == 1 && words[0] == "}") {
        Keep(&trace);
        return;
      }
      ReadLine(&trace);
    }
    throw Error(fmt::format("{}: rank {} has no end, expected \"}}\"", name(), own));
  }

  void ReadLine(ChakraTrace* trace) {
    const std::vector<std::string_view>& words = lines_.words();
    if (words.size() == 3 && (words[1] == "requires" || words[1] == "irequires")) {
      GoalNode& node = nodes_[Find(words[0])];
      (words[1] == "requires" ? node.before : node.begins_with).push_back(Find(words[2]));
      begins_with_ += words[1] == "requires" ? 0 : 1;
      return;
    }
    size_t at = 0;
    if (words.size() > 2 && words[1] == ":") {
      const auto place = static_cast<uint32_t>(nodes_.size());
      if (!labels_.emplace(words[0], place).second)
        lines_.Fail(fmt::format("found the label \"{}\" a second time",
                                VisibleText(std::string(words[0]))));
      at = 2;
    }
    ReadOp(trace, at);
  }

  uint32_t Find(std::string_view label) const {
    const auto found = labels_.find(label);
    if (found == labels_.end()) {
      lines_.Fail(fmt::format("found the label \"{}\", which no earlier line of this rank has",
                              VisibleText(std::string(label))));
    }
    return found->second;
  }

  // calc N; send Nb to R, recv Nb from R; then tag T, cpu S, nic K in any order.
  void ReadOp(ChakraTrace* trace, size_t at) {
    constexpr const char* kExpected =
        "\"calc NANOSECONDS\", \"send BYTESb to RANK\" or \"recv BYTESb from RANK\", then \"tag "
        "N\", \"cpu N\" or \"nic N\"";
    const std::vector<std::string_view>& words = lines_.words();
    const auto whole_at = [&](size_t place) -> uint64_t {
      const std::optional<uint64_t> value =
          place < words.size() ? WholeOf(words[place]) : std::nullopt;
      if (!value) lines_.FailHere(kExpected);
      return *value;
    };
    GoalNode& added = nodes_.emplace_back();
    KeptNode& node = added.node;
    node.id = nodes_.size();
    node.offset = lines_.offset();
    node.group = &*trace->texts.insert("").first;
    const std::string_view kind = at < words.size() ? words[at] : "";
    size_t next = 0;
    if (kind == "calc") {
      node.type = chakra::kCompute;
      node.nanoseconds = whole_at(at + 1);
      next = at + 2;
    } else if (kind == "send" || kind == "recv") {
      const bool sends = kind == "send";
      if (at + 3 >= words.size() || !words[at + 1].ends_with("b") ||
          words[at + 2] != (sends ? "to" : "from"))
        lines_.FailHere(kExpected);
      const std::optional<uint64_t> bytes =
          WholeOf(words[at + 1].substr(0, words[at + 1].size() - 1));
      if (!bytes) lines_.FailHere(kExpected);
      if (words[at + 3] == "-1")
        lines_.Fail("found \"-1\", any sender: which one it will be is not known here");
      const auto peer = static_cast<double>(whole_at(at + 3));
      node.type = sends ? chakra::kSend : chakra::kReceive;
      (sends ? node.comm_target : node.comm_source) = GivenNumber(peer);
      node.comm_size = GivenNumber(static_cast<double>(*bytes));
      node.comm_tag = GivenNumber(0.0);
      next = at + 4;
    } else {
      lines_.FailHere(kExpected);
    }
    node.name = &*trace->texts.insert(std::string(kind)).first;
    for (; next < words.size(); next += 2) {
      if (words[next] == "tag" && node.type != chakra::kCompute) {
        node.comm_tag = GivenNumber(static_cast<double>(whole_at(next + 1)));
      } else if (words[next] == "cpu") {
        const uint64_t cpu = whole_at(next + 1);
        if (node.type == chakra::kCompute)
          node.engine = &*trace->texts.insert(fmt::format("cpu {}", cpu)).first;
      } else if (words[next] == "nic") {
        whole_at(next + 1);
      } else {
        lines_.FailHere(kExpected);
      }
    }
    if (node.type == chakra::kCompute && node.engine == nullptr)
      node.engine = &*trace->texts.insert("cpu 0").first;
  }

  // What one begins with is waited for by what begins with it.
  void Keep(ChakraTrace* trace) {
    for (GoalNode& node : nodes_) {
      std::vector<uint32_t> begins = std::exchange(node.begins_with, {});
      std::vector<bool> is_known(begins.empty() ? 0 : nodes_.size());
      for (size_t i = 0; i < begins.size(); ++i) {
        if (is_known[begins[i]]) continue;
        is_known[begins[i]] = true;
        const GoalNode& other = nodes_[begins[i]];
        node.before.insert(node.before.end(), other.before.begin(), other.before.end());
        begins.insert(begins.end(), other.begins_with.begin(), other.begins_with.end());
      }
    }
    for (GoalNode& node : nodes_) {
      std::sort(node.before.begin(), node.before.end());
      node.before.erase(std::unique(node.before.begin(), node.before.end()), node.before.end());
      for (const uint32_t one : node.before) trace->before.Add(nodes_[one].node.id);
      trace->before_end.push_back(trace->before.size());
      trace->nodes.push_back(node.node);
    }
  }

  GoalLines lines_;
  ChakraTraces traces_;
  uint32_t ranks_ = 0;
  uint64_t begins_with_ = 0;
  // Of the rank that is being read.
  std::vector<GoalNode> nodes_;
  std::unordered_map<std::string_view, uint32_t> labels_;
};

}  // namespace

Schedule ReadGoal(std::string_view text, const std::string& name,
                  std::vector<std::string>* remarks) {
  return GoalReader(text, name).Read(remarks);
}

bool IsGoal(std::string_view text) {
  const std::string none;
  GoalLines lines(text.substr(0, std::min<size_t>(text.size(), size_t{1} << 16)), none);
  return lines.Next() && lines.words()[0] == "num_ranks";
}

}  // namespace rehearse

#include "tools/foreign/traces/chakra/chakra_read.h"

#include <algorithm>
#include <filesystem>
#include <map>
#include <optional>
#include <utility>

#include <fmt/format.h>
#include <sys/stat.h>

#include "sim/base/error.h"
#include "sim/base/json_document.h"
#include "sim/base/json_reader.h"
#include "sim/schedule/schedule_json.h"
#include "tools/foreign/traces/chakra/chakra_foreign.h"
#include "tools/foreign/traces/chakra/chakra_json.h"
#include "tools/foreign/traces/trace_files.h"

namespace rehearse {
namespace {

namespace fs = std::filesystem;

// NAME and RANK of DIR/NAME.RANK.et, or of a trace as JSON.
struct TraceName {
  std::string name;
  uint32_t rank = 0;
};
TraceName NameOf(const std::string& path) {
  constexpr size_t kMostDigits = 7;
  const fs::path file = fs::path(path).filename();
  const std::string stem = file.stem().string();
  const size_t dot = stem.rfind('.');
  const std::string rank = dot == std::string::npos ? "" : stem.substr(dot + 1);
  if ((file.extension() != ".et" && file.extension() != ".json") || rank.empty() ||
      rank.size() > kMostDigits || rank.find_first_not_of("0123456789") != std::string::npos)
    throw Error(fmt::format("{}: expected a file NAME.RANK.et, such as step.0.et", path));
  return {stem.substr(0, dot), static_cast<uint32_t>(std::stoul(rank))};
}

struct NamedFiles {
  std::string name;
  std::vector<std::string> of_rank;
  std::string groups;
};

NamedFiles Named(const std::vector<std::string>& files) {
  std::map<uint32_t, std::string> by_rank;
  std::optional<std::string> name;
  NamedFiles named;
  for (const std::string& file : files) {
    const bool is_json = fs::path(file).extension() == ".json";
    const ChakraJson json = is_json ? ChakraJsonOf(file) : ChakraJson::kTrace;
    if (json == ChakraJson::kHostTrace) {
      throw Error(fmt::format(
          "{}: is what PyTorch's ExecutionTraceObserver writes, which has the host's part only; "
          "Chakra links it with the profiler's trace and converts both: chakra_trace_link "
          "--chakra-host-trace {} --chakra-device-trace kineto.json --rank 0 --output-file "
          "linked.json, then chakra_converter PyTorch --input linked.json --output step.0.et",
          file, file));
    }
    if (json == ChakraJson::kGroups) {
      if (!named.groups.empty()) {
        throw Error(fmt::format("found {} and {}, expected one JSON of groups of ranks",
                                named.groups, file));
      }
      named.groups = file;
      continue;
    }
    const TraceName trace = NameOf(file);
    if (name && *name != trace.name)
      throw Error(fmt::format("{}: expected a trace of \"{}\" like the others", file, *name));
    name = trace.name;
    const auto [known, is_new] = by_rank.emplace(trace.rank, file);
    if (!is_new)
      throw Error(fmt::format("found {} and {}, both of rank {}", known->second, file, trace.rank));
  }
  if (by_rank.empty())
    throw Error(
        "found no file named NAME.RANK.et, expected a trace of each rank, from NAME.0.et on");
  named.name = *name;
  for (const auto& entry : by_rank) {
    const size_t expected = named.of_rank.size();
    if (entry.first != expected) {
      throw Error(fmt::format("missing rank {} of \"{}\": found traces up to rank {}", expected,
                              *name, by_rank.rbegin()->first));
    }
    named.of_rank.push_back(entry.second);
  }
  return named;
}

// Traces as they are read, one after the other. What the traces that Rehearse wrote have in common
// is kept once: there may be thousands.
class TraceSet {
 public:
  explicit TraceSet(const NamedFiles& files) {
    traces_.name = files.name;
    traces_.groups = files.groups;
    traces_.traces.reserve(files.of_rank.size());  // else their nodes are copied as it grows
    for (uint32_t rank = 0; rank < files.of_rank.size(); ++rank) Add(files.of_rank[rank], rank);
  }

  const ChakraTraces& traces() const { return traces_; }
  bool is_own() const { return traces_.traces.front().contents.header.schedule.has_value(); }
  // By place, the first trace.
  const std::map<uint64_t, uint32_t>& roles() const { return roles_; }

 private:
  void Add(const std::string& path, uint32_t rank) {
    struct stat status = {};
    std::optional<std::pair<uint64_t, uint64_t>> identity;
    if (stat(path.c_str(), &status) == 0)
      identity.emplace(static_cast<uint64_t>(status.st_dev), static_cast<uint64_t>(status.st_ino));
    if (identity) {
      const auto known = by_file_.find(*identity);
      if (known != by_file_.end()) {
        traces_.trace_of_rank.push_back(known->second);
        return;
      }
    }
    ChakraTrace trace;
    trace.file = path;
    trace.rank = rank;
    uint64_t count = 0;
    const bool is_json = fs::path(path).extension() == ".json";
    const auto read = is_json ? ReadChakraJson : ReadChakraFile;
    trace.contents = read(path, rank, [&](const ChakraHeader& header, ChakraNode&& node) {
      ++count;
      if (!header.schedule) {
        trace.Keep(node);
      } else if (node.op) {
        if (!trace.ops.empty()) trace.ops += ",\n";
        trace.ops += *node.op;
      }
    });
    const auto next = static_cast<uint32_t>(traces_.traces.size());
    const auto [place, is_new] =
        by_contents_.emplace(std::make_pair(trace.contents.fingerprint, count), next);
    if (identity) by_file_[*identity] = place->second;
    traces_.trace_of_rank.push_back(place->second);
    if (!is_new) return;
    traces_.traces.push_back(std::move(trace));
    CompareWithOthers(&traces_.traces.back());
  }

  void CompareWithOthers(ChakraTrace* trace) {
    ChakraHeader& header = trace->contents.header;
    const ChakraTrace& first = traces_.traces.front();
    const ChakraHeader& common = first.contents.header;
    if (header.schedule != common.schedule || header.ranks != common.ranks ||
        header.roles != common.roles) {
      throw Error(fmt::format("{}: rank {} is of another schedule than {}", trace->file,
                              trace->rank, first.file));
    }
    if (!header.schedule) return;
    const auto [known, is_new] =
        roles_.emplace(header.place, static_cast<uint32_t>(traces_.traces.size() - 1));
    if (!is_new) {
      const ChakraTrace& other = traces_.traces[known->second];
      if (other.ops != trace->ops || other.contents.header.role != header.role) {
        throw Error(
            fmt::format("{}: rank {} does not do the same as rank {}, though it has the same role",
                        trace->file, trace->rank, other.rank));
      }
      std::string().swap(trace->ops);  // its memory too
      std::string().swap(header.role);
    }
    if (trace != &traces_.traces.front()) header.schedule.reset();  // the first one's
  }

  ChakraTraces traces_;
  std::map<std::pair<uint64_t, uint64_t>, uint32_t> by_file_;      // device and inode
  std::map<std::pair<uint64_t, uint64_t>, uint32_t> by_contents_;  // fingerprint, nodes
  std::map<uint64_t, uint32_t> roles_;
};

// An object's text with one more key.
std::string WithKey(const std::string& object, const char* key, const std::string& list,
                    const std::string& file) {
  const size_t end = object.rfind('}');
  if (end == std::string::npos || end == 0)
    throw Error(fmt::format("{}: found no schedule in its GlobalMetadata", file));
  return fmt::format("{}, \"{}\": [{}]}}", object.substr(0, end), key, list);
}

// The schedule that Rehearse wrote, put together.
ImportedChakra ReadOwn(const TraceSet& set) {
  const ChakraTraces& traces = set.traces();
  const ChakraTrace& first = traces.traces.front();
  const ChakraHeader& common = first.contents.header;
  if (common.ranks != traces.trace_of_rank.size()) {
    throw Error(fmt::format("missing ranks: found {} of the {} traces of \"{}\"",
                            traces.trace_of_rank.size(), common.ranks, traces.name));
  }
  if (set.roles().size() != common.roles || set.roles().rbegin()->first + 1 != common.roles) {
    throw Error(fmt::format("{}: the traces have {} of the schedule's {} roles", first.file,
                            set.roles().size(), common.roles));
  }
  std::string list;
  for (const auto& entry : set.roles()) {
    const ChakraTrace& trace = traces.traces[entry.second];
    if (!list.empty()) list += ",\n";
    list += WithKey(trace.contents.header.role, "ops", trace.ops, trace.file);
  }
  const std::string text = WithKey(*common.schedule, "roles", list, first.file);
  const JsonDocument document = JsonDocument::FromText(text, "the schedule in " + first.file);
  Schedule schedule = ReadSchedule(document.Root());
  for (uint32_t rank = 0; rank < traces.trace_of_rank.size(); ++rank) {
    const ChakraTrace& trace = traces.traces[traces.trace_of_rank[rank]];
    if (rank >= schedule.ranks() || schedule.role_of_rank[rank] != trace.contents.header.place)
      throw Error(fmt::format("{}: rank {} has the trace of another role", trace.file, rank));
  }
  const uint32_t ranks = schedule.ranks();
  return {WriteSchedule(std::move(schedule), ReadScheduleTitle(document.Root())), ranks, {}};
}

}  // namespace

ImportedChakra ImportChakra(const std::vector<std::string>& paths) {
  // A folder's traces may be JSON; then there is none that ends otherwise.
  std::vector<std::string> files;
  try {
    files = TraceFiles(paths, {".et"}, {".json"}, "NAME.RANK.et");
  } catch (const Error&) {
    files = TraceFiles(paths, {".json"}, {}, "NAME.RANK.et");
  }
  std::optional<TraceSet> set(Named(files));
  if (set->is_own()) return ReadOwn(*set);
  ImportedChakra imported;
  Schedule schedule = ScheduleOfForeign(set->traces(), &imported.remarks);
  const ScheduleTitle title = {set->traces().name, ""};
  set.reset();  // its memory is large enough for the text
  imported.ranks = schedule.ranks();
  imported.text = WriteSchedule(std::move(schedule), title);
  return imported;
}

}  // namespace rehearse

#include "topology/edits.h"

#include <charconv>
#include <cmath>
#include <functional>
#include <map>
#include <utility>

#include <fmt/format.h>

#include "sim/units.h"
#include "topology/rebuild.h"

namespace rehearse {
namespace {

using VertexId = Cluster::VertexId;

constexpr std::string_view kArrow = "->";

// ---- Reading --------------------------------------------------------------------------------------

// The number of "0.5x"; nothing when the text is no such thing.
std::optional<double> ParseFactor(std::string_view text) {
  if (!text.ends_with('x')) return std::nullopt;
  text.remove_suffix(1);
  double factor = 0;
  const char* const end = text.data() + text.size();
  const auto [stop, fault] = std::from_chars(text.data(), end, factor);
  if (text.empty() || fault != std::errc() || stop != end) return std::nullopt;
  if (!(factor > 0) || !std::isfinite(factor)) return std::nullopt;
  return factor;
}

// `parse` reads a value with its unit.
template <typename Parse>
Change ReadChange(const JsonReader& reader, const char* example, Parse parse) {
  const std::string text = reader.String();
  if (const std::optional<double> factor = ParseFactor(text)) return {*factor, 0};
  try {
    if (text.starts_with('+')) return {1, parse(std::string_view(text).substr(1)).value()};
    if (text.starts_with('-')) return {1, -parse(std::string_view(text).substr(1)).value()};
    return {0, parse(text).value()};
  } catch (const Error& error) {
    reader.Fail(fmt::format("{} (or a factor such as \"0.5x\", or a difference such as \"+{}\")",
                            error.what(), example));
  }
}

Change ReadBandwidthChange(const JsonReader& reader) {
  return ReadChange(reader, "5GBps", ParseBandwidth);
}

Change ReadFactor(const JsonReader& reader) {
  const std::optional<double> factor = ParseFactor(reader.String());
  if (!factor) reader.Expected("a factor above 0 such as \"0.8x\"");
  return {*factor, 0};
}

// "x": true; false would say nothing.
bool ReadFlag(const JsonReader& edit, const char* key) {
  if (!edit.Has(key)) return false;
  if (!edit.At(key).Bool()) edit.At(key).Expected("true, or no such key");
  return true;
}

std::string ReadSelector(const JsonReader& reader) {
  std::string selector = reader.String();
  if (selector.empty()) reader.Expected("a pattern such as \"node3/nic*\"");
  return selector;
}

Edit ReadEdit(const JsonReader& reader) {
  Edit edit;
  edit.place = reader.place();
  if (reader.IsObject() && reader.Has("links") == reader.Has("devices"))
    reader.Fail("an edit has either \"links\" or \"devices\", a pattern that selects them");
  if (reader.IsObject() && reader.Has("devices")) {
    reader.AllowKeys({"devices", "compute", "memory_bandwidth"});
    edit.target = Edit::Target::kDevices;
    edit.selector = ReadSelector(reader.At("devices"));
    if (reader.Has("compute")) edit.compute = ReadFactor(reader.At("compute"));
    if (reader.Has("memory_bandwidth"))
      edit.memory_bandwidth = ReadBandwidthChange(reader.At("memory_bandwidth"));
    if (!edit.compute && !edit.memory_bandwidth)
      reader.Fail("the edit changes nothing; expected \"compute\" or \"memory_bandwidth\"");
    return edit;
  }
  reader.AllowKeys({"links", "bandwidth", "latency", "down", "one_way"});
  edit.selector = ReadSelector(reader.At("links"));
  edit.one_way = ReadFlag(reader, "one_way");
  edit.down = ReadFlag(reader, "down");
  if (reader.Has("bandwidth")) edit.bandwidth = ReadBandwidthChange(reader.At("bandwidth"));
  if (reader.Has("latency")) edit.latency = ReadChange(reader.At("latency"), "2us", ParseDuration);
  const bool changes = edit.bandwidth || edit.latency;
  if (!changes && !edit.down)
    reader.Fail("the edit changes nothing; expected \"bandwidth\", \"latency\" or \"down\"");
  if (changes && edit.down) reader.Fail("links that are down have no bandwidth or latency");
  if (edit.one_way && edit.selector.find(kArrow) == std::string::npos)
    reader.At("one_way").Fail("needs a selector with a direction, such as \"node0/nic0->leaf*\"");
  return edit;
}

// ---- Selecting ------------------------------------------------------------------------------------

std::vector<bool> Matching(const Cluster::Graph& graph, std::string_view pattern) {
  std::vector<bool> matching(boost::num_vertices(graph));
  for (VertexId vertex = 0; vertex < matching.size(); ++vertex)
    matching[vertex] = MatchesPattern(pattern, graph[vertex].name);
  return matching;
}

// Which vertex may the user have meant?
std::string Suggest(const Cluster::Graph& graph, const std::string& pattern,
                    const std::function<bool(const Vertex&)>& eligible) {
  std::vector<std::string> names;
  for (VertexId vertex = 0; vertex < boost::num_vertices(graph); ++vertex) {
    if (!eligible(graph[vertex])) continue;
    if (graph[vertex].name.starts_with(pattern + "/"))
      return fmt::format("; did you mean \"{}/**\"?", pattern);
    names.push_back(graph[vertex].name);
  }
  std::string literal = pattern.substr(0, pattern.find("/**"));
  const std::string suggestion = DidYouMean(pattern, names);
  return suggestion.empty() ? DidYouMean(literal, names) : suggestion;
}

class Editor {
 public:
  explicit Editor(const Cluster& cluster)
      : cluster_(cluster), graph_(cluster.graph()), parts_(PartsOf(cluster)) {}

  void Apply(const Edit& edit) {
    if (edit.target == Edit::Target::kDevices) {
      ApplyToDevices(edit);
    } else {
      ApplyToLinks(edit);
    }
  }

  // Not finished yet.
  std::unique_ptr<Cluster> Build() const { return Rebuild(cluster_, parts_); }

 private:
  // Throws unless some vertex matches.
  std::vector<bool> MatchingOrFail(const Edit& edit, const std::string& pattern) const {
    std::vector<bool> matching = Matching(graph_, pattern);
    for (const bool matches : matching)
      if (matches) return matching;
    throw Error(
        edit.place,
        fmt::format("\"{}\" matches no vertex of cluster \"{}\"{}", pattern, cluster_.name(),
                    Suggest(graph_, pattern, [](const Vertex&) { return true; })));
  }

  std::vector<uint32_t> SelectLinks(const Edit& edit) const {
    std::vector<uint32_t> selected;
    const auto select = [&](const auto& wanted) {
      for (uint32_t i = 0; i < parts_.links.size(); ++i) {
        const auto edge = cluster_.Edge(i);
        if (!parts_.is_down[i] && wanted(boost::source(edge, graph_), boost::target(edge, graph_)))
          selected.push_back(i);
      }
    };
    const size_t arrow = edit.selector.find(kArrow);
    if (arrow == std::string::npos) {
      const std::vector<bool> ends = MatchingOrFail(edit, edit.selector);
      select([&](VertexId from, VertexId to) { return ends[from] || ends[to]; });
    } else {
      const std::vector<bool> sources = MatchingOrFail(edit, edit.selector.substr(0, arrow));
      const std::vector<bool> targets =
          MatchingOrFail(edit, edit.selector.substr(arrow + kArrow.size()));
      select([&](VertexId from, VertexId to) {
        return (sources[from] && targets[to]) || (!edit.one_way && sources[to] && targets[from]);
      });
    }
    if (selected.empty())
      throw Error(edit.place, fmt::format("\"{}\" selects no link of cluster \"{}\" that is up",
                                          edit.selector, cluster_.name()));
    return selected;
  }

  void ApplyToLinks(const Edit& edit) {
    for (const uint32_t i : SelectLinks(edit)) {
      ClusterLink& link = parts_.links[i];
      if (edit.down) parts_.is_down[i] = true;
      if (edit.bandwidth) {
        const double changed = edit.bandwidth->Of(link.bandwidth.value());
        if (!(changed > 0) || !std::isfinite(changed))
          throw Error(edit.place, fmt::format("would give link {} a bandwidth of {} (from {})",
                                              cluster_.LinkName(i), Print(BytesPerSecond(changed)),
                                              Print(link.bandwidth)));
        link.bandwidth = BytesPerSecond(changed);
      }
      if (edit.latency) {
        const Seconds changed(edit.latency->Of(link.latency.value()));
        if (!(changed >= Seconds(0) && changed <= kLongestLatency))
          throw Error(edit.place,
                      fmt::format("would give link {} a latency of {} (from {}), expected 0 to {}",
                                  cluster_.LinkName(i), Print(changed), Print(link.latency),
                                  Print(kLongestLatency)));
        link.latency = changed;
      }
    }
  }

  void ApplyToDevices(const Edit& edit) {
    const std::vector<bool> matching = Matching(graph_, edit.selector);
    std::map<uint32_t, uint32_t> edited;  // spec -> its edited copy
    for (uint32_t rank = 0; rank < parts_.spec_of_rank.size(); ++rank) {
      if (!matching[cluster_.devices()[rank]]) continue;
      const uint32_t old = parts_.spec_of_rank[rank];
      const auto [copy, is_new] = edited.emplace(old, static_cast<uint32_t>(parts_.specs.size()));
      if (is_new) parts_.specs.push_back(Changed(parts_.specs[old], edit));
      parts_.spec_of_rank[rank] = copy->second;
    }
    if (edited.empty()) {
      const auto is_device = [](const Vertex& vertex) {
        return vertex.kind == VertexKind::kDevice;
      };
      throw Error(edit.place,
                  fmt::format("\"{}\" matches no device of cluster \"{}\"{}", edit.selector,
                              cluster_.name(), Suggest(graph_, edit.selector, is_device)));
    }
  }

  static DeviceSpec Changed(const DeviceSpec& spec, const Edit& edit) {
    DeviceSpec changed = spec;
    std::string what;
    if (edit.compute) {
      for (FlopsPerSecond* peak : {&changed.matrix_peak_16, &changed.matrix_peak_32,
                                   &changed.vector_peak_32, &changed.vector_peak_64})
        *peak *= edit.compute->factor;
      what = fmt::format("compute {}x", edit.compute->factor);
    }
    if (edit.memory_bandwidth) {
      const double bandwidth = edit.memory_bandwidth->Of(spec.memory_bandwidth.value());
      if (!(bandwidth > 0) || !std::isfinite(bandwidth))
        throw Error(
            edit.place,
            fmt::format("would give device {} a memory bandwidth of {} (from {})", spec.name,
                        Print(BytesPerSecond(bandwidth)), Print(spec.memory_bandwidth)));
      changed.memory_bandwidth = BytesPerSecond(bandwidth);
      what += fmt::format("{}memory {}", what.empty() ? "" : ", ", Print(changed.memory_bandwidth));
    }
    // No longer what is known by that name.
    changed.name = fmt::format("{} ({})", spec.name, what);
    changed.sources.emplace_back("what-if edit", what);
    return changed;
  }

  const Cluster& cluster_;
  const Cluster::Graph& graph_;
  ClusterParts parts_;
};

}  // namespace

bool MatchesPattern(std::string_view pattern, std::string_view name) {
  // The positions of the pattern at which a match may stand after the characters read so far. A star is
  // passed without reading anything, and stays where it is when it reads a character.
  const size_t size = pattern.size();
  const auto is_any = [&](size_t at) { return pattern.substr(at, 2) == "**"; };
  const auto pass_stars = [&](std::vector<bool>& positions) {
    for (size_t at = 0; at < size; ++at)
      if (positions[at] && pattern[at] == '*') positions[at + (is_any(at) ? 2 : 1)] = true;
  };
  std::vector<bool> positions(size + 1);
  positions[0] = true;
  pass_stars(positions);
  for (const char c : name) {
    std::vector<bool> next(size + 1);
    for (size_t at = 0; at < size; ++at) {
      if (!positions[at]) continue;
      if (pattern[at] == '*') {
        if (c != '/' || is_any(at)) next[at] = true;
      } else if (pattern[at] == c || (pattern[at] == '?' && c != '/')) {
        next[at + 1] = true;
      }
    }
    pass_stars(next);
    positions = std::move(next);
  }
  return positions[size];
}

std::vector<Edit> ReadEdits(const JsonReader& reader) {
  std::vector<Edit> edits;
  for (const JsonReader& edit : reader.Elements()) edits.push_back(ReadEdit(edit));
  return edits;
}

std::unique_ptr<Cluster> ApplyEdits(const Cluster& cluster, const std::vector<Edit>& edits) {
  Editor editor(cluster);
  for (const Edit& edit : edits) editor.Apply(edit);
  std::unique_ptr<Cluster> edited = editor.Build();
  try {
    edited->Finish();
    return edited;
  } catch (const Error&) {
    // Which cut was it? Asked only now, because the answer takes a cluster for each cut.
    Editor again(cluster);
    for (const Edit& edit : edits) {
      again.Apply(edit);
      if (!edit.down) continue;
      try {
        again.Build()->Finish();
      } catch (const Error& error) {
        throw Error(edit.place, fmt::format("without {}, {}", edit.selector, error.what()));
      }
    }
    throw;
  }
}

}  // namespace rehearse

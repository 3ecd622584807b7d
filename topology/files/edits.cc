#include "topology/files/edits.h"

#include <algorithm>
#include <charconv>
#include <cmath>
#include <map>
#include <utility>

#include <fmt/format.h>

#include "sim/base/units.h"
#include "topology/cluster/selectors.h"
#include "topology/fabrics/structure.h"

namespace rehearse {
namespace {

using VertexId = Cluster::VertexId;

// ---- Reading ------------------------------------------------------------------------------------

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
  if (!reader.IsString())
    reader.Expected(fmt::format("a string such as \"{}\", \"0.5x\" or \"+{}\"", example, example));
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

Edit ReadEdit(const JsonReader& reader) {
  Edit edit;
  edit.place = reader.place();
  if (reader.IsObject() && reader.Has("links") == reader.Has("devices"))
    reader.Fail("an edit has either \"links\" or \"devices\", a pattern that selects them");
  if (reader.IsObject() && reader.Has("devices")) {
    reader.AllowKeys({"devices", "compute", "memory_bandwidth"});
    edit.target = Edit::Target::kDevices;
    edit.selector = ReadSelector(reader.At("devices"));
    if (reader.Has("compute")) edit.compute = {ReadFactor(reader.At("compute")), 0};
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
  if (edit.one_way && !HasDirection(edit.selector))
    reader.At("one_way").Fail("needs a selector with a direction, such as \"node0/nic0->leaf*\"");
  return edit;
}

// ---- Applying -----------------------------------------------------------------------------------

class Editor {
 public:
  explicit Editor(const Cluster& cluster)
      : cluster_(cluster), graph_(cluster.graph()), specs_(cluster.device_specs()) {
    for (uint32_t i = 0; i < cluster.link_count(); ++i) links_.push_back(cluster.Link(i));
    is_down_.resize(links_.size());
    for (const VertexId device : cluster.devices()) spec_of_rank_.push_back(graph_[device].device);
  }

  void Apply(const Edit& edit) {
    if (edit.target == Edit::Target::kDevices) {
      ApplyToDevices(edit);
    } else {
      ApplyToLinks(edit);
    }
  }

  bool TakesLinksAway() const {
    return std::find(is_down_.begin(), is_down_.end(), true) != is_down_.end();
  }

  // Makes `cluster`, which is what was edited, so. Only where no link is taken away.
  void ChangeFigures(Cluster& cluster) const {
    for (size_t i = cluster.device_specs().size(); i < specs_.size(); ++i)
      cluster.AddDeviceSpec(specs_[i]);
    for (uint32_t rank = 0; rank < spec_of_rank_.size(); ++rank)
      cluster.ChangeDevice(rank, spec_of_rank_[rank]);
    for (uint32_t i = 0; i < links_.size(); ++i)
      cluster.ChangeLink(i, links_[i].bandwidth, links_[i].latency);
  }

  // Not finished yet.
  std::unique_ptr<Cluster> Build() const {
    auto edited = std::make_unique<Cluster>(cluster_.name());
    for (const DeviceSpec& spec : specs_) edited->AddDeviceSpec(spec);
    size_t rank = 0;
    for (VertexId vertex = 0; vertex < boost::num_vertices(graph_); ++vertex) {
      Vertex copy = graph_[vertex];
      if (copy.kind == VertexKind::kDevice) copy.device = spec_of_rank_[rank++];
      edited->AddVertex(copy);
    }
    for (uint32_t i = 0; i < links_.size(); ++i) {
      if (is_down_[i]) continue;
      const auto edge = cluster_.Edge(i);
      edited->AddLink(boost::source(edge, graph_), boost::target(edge, graph_), links_[i]);
    }
    edited->set_step_overhead(cluster_.step_overhead());
    edited->set_collective_overhead(cluster_.collective_overhead());
    edited->set_channel_overhead(cluster_.channel_overhead());
    for (const std::string& note : cluster_.notes()) edited->AddNote(note);
    if (cluster_.structure() != nullptr)
      SetStructure(*edited, std::make_shared<ClusterStructure>(
                                WithoutLinks(*cluster_.structure(), is_down_)));
    return edited;
  }

 private:
  // The links that are up.
  std::vector<uint32_t> SelectedLinks(const Edit& edit) const {
    std::vector<uint32_t> selected = SelectLinks(cluster_, edit.selector, edit.one_way, edit.place);
    std::erase_if(selected, [this](uint32_t link) { return is_down_[link]; });
    if (selected.empty())
      throw Error(edit.place, fmt::format("\"{}\" selects no link of cluster \"{}\" that is up",
                                          edit.selector, cluster_.name()));
    return selected;
  }

  void ApplyToLinks(const Edit& edit) {
    for (const uint32_t i : SelectedLinks(edit)) {
      ClusterLink& link = links_[i];
      if (edit.down) is_down_[i] = true;
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
    std::map<uint32_t, uint32_t> edited;  // spec -> its edited copy
    for (const uint32_t rank : SelectRanks(cluster_, edit.selector, edit.place)) {
      const uint32_t old = spec_of_rank_[rank];
      const auto [copy, is_new] = edited.emplace(old, static_cast<uint32_t>(specs_.size()));
      if (is_new) specs_.push_back(Changed(specs_[old], edit));
      spec_of_rank_[rank] = copy->second;
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
  std::vector<DeviceSpec> specs_;
  std::vector<uint32_t> spec_of_rank_;
  std::vector<ClusterLink> links_;
  std::vector<bool> is_down_;
};

}  // namespace

Change ReadBandwidthChange(const JsonReader& reader) {
  return ReadChange(reader, "5GBps", ParseBandwidth);
}

double ReadFactor(const JsonReader& reader) {
  const std::optional<double> factor = ParseFactor(reader.String());
  if (!factor) reader.Expected("a factor above 0 such as \"0.8x\"");
  return *factor;
}

bool ReadFlag(const JsonReader& object, const char* key) {
  if (!object.Has(key)) return false;
  if (!object.At(key).Bool()) object.At(key).Expected("true, or no such key");
  return true;
}

std::vector<Edit> ReadEdits(const JsonReader& reader) {
  std::vector<Edit> edits;
  for (const JsonReader& edit : reader.Elements()) edits.push_back(ReadEdit(edit));
  return edits;
}

std::unique_ptr<Cluster> ApplyEdits(std::unique_ptr<Cluster> cluster,
                                    const std::vector<Edit>& edits) {
  Editor editor(*cluster);
  for (const Edit& edit : edits) editor.Apply(edit);
  if (!editor.TakesLinksAway()) {
    editor.ChangeFigures(*cluster);
    return cluster;
  }
  std::unique_ptr<Cluster> edited = editor.Build();
  try {
    edited->Finish();
    return edited;
  } catch (const Error&) {
    // Which cut was it? Asked only now, because the answer takes a cluster for each cut.
    Editor again(*cluster);
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

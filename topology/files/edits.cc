#include "topology/files/edits.h"

#include <algorithm>
#include <array>
#include <charconv>
#include <cmath>
#include <map>
#include <utility>
#include <vector>

#include <fmt/format.h>

#include "sim/base/say.h"
#include "sim/base/units.h"
#include "sim/base/visible_text.h"
#include "topology/cluster/selectors.h"
#include "topology/fabrics/structure.h"
#include "topology/files/cluster_shapes.h"

namespace rehearse {
namespace {

std::array<FlopsPerSecond*, 6> PeaksOf(DeviceSpec* device) {
  return {&device->matrix_peak_4,  &device->matrix_peak_8,  &device->matrix_peak_16,
          &device->matrix_peak_32, &device->vector_peak_32, &device->vector_peak_64};
}

// ---- Reading ------------------------------------------------------------------------------------

// Whether a cluster may have this bandwidth, in bytes per second; not NaN.
bool IsBandwidth(double value) {
  return value >= kLeastBandwidth.value() && value <= kMostBandwidth.value();
}

// The number in "0.5x"; nothing if the text is not of that form.
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

const ObjectShape& DeviceEditShape() {
  static const ObjectShape shape = {
      "edit of devices",
      "Changes the devices that the pattern selects.",
      {{"devices", AText("pattern"), Required(), "which devices (topology/cluster/selectors.h)",
        "\"node7/gpu2\""},
       {"compute", AText("factor"), Optional("as it is"), "factor on all peaks, at the same watts",
        "\"0.8x\""},
       {"memory_bandwidth", AText("bandwidth, factor or difference"), Optional("as it is"),
        "bandwidth of the devices' memory", "\"0.9x\""}}};
  return shape;
}

JsonShape LinkKindShape() {
  std::vector<std::string> names;
  for (const LinkKind kind : kLinkKindChoices) names.emplace_back(Name(kind));
  return OneOf(std::move(names));
}

const ObjectShape& LinkEditShape() {
  static const ObjectShape shape = {
      "edit of links",
      "Changes the links that the pattern selects, starting from what earlier edits left.",
      {{"links", AText("pattern"), Required(), "which links (topology/cluster/selectors.h)",
        "\"node3/nic*\""},
       {"one_way", TrueFalse(), Default("false"), "only in the pattern's direction", "true"},
       {"kind", LinkKindShape(), Optional("all that the pattern selects"),
        "only links of this kind: a NIC's cable (network) or its PCIe", "\"network\""},
       {"bandwidth", AText("bandwidth, factor or difference"), Optional("as it is"),
        "nominal bandwidth; the efficiency stays", "\"0.5x\""},
       {"latency", AText("time, factor or difference"), Optional("as it is"),
        "latency of the first byte", "\"+2us\""},
       {"down", TrueFalse(), Default("false"), "the links are removed", "true"}}};
  return shape;
}

Edit ReadDeviceEdit(const JsonReader& object) {
  const JsonReader reader = object.As(DeviceEditShape());
  Edit edit;
  edit.place = reader.place();
  edit.target = Edit::Target::kDevices;
  edit.selector = ReadSelector(reader.At("devices"));
  if (reader.Has("compute")) edit.compute = {ReadFactor(reader.At("compute")), 0};
  if (reader.Has("memory_bandwidth"))
    edit.memory_bandwidth = ReadBandwidthChange(reader.At("memory_bandwidth"));
  if (!edit.compute && !edit.memory_bandwidth)
    reader.Fail("the edit changes nothing; expected \"compute\" or \"memory_bandwidth\"");
  return edit;
}

Edit ReadEdit(const JsonReader& object) {
  if (object.IsObject() && object.Has("links") == object.Has("devices"))
    object.Fail("an edit has either \"links\" or \"devices\", a pattern that selects them");
  if (object.IsObject() && object.Has("devices")) return ReadDeviceEdit(object);
  const JsonReader reader = object.As(LinkEditShape());
  Edit edit;
  edit.place = reader.place();
  edit.selector = ReadSelector(reader.At("links"));
  edit.one_way = ReadFlag(reader, "one_way");
  edit.down = ReadFlag(reader, "down");
  if (reader.Has("kind")) edit.kind = kLinkKindChoices[reader.At("kind").Choice()];
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
      : cluster_(cluster),
        figures_(cluster.figures()),
        links_(figures_.links->OneByOne()),
        is_down_(links_.size()) {}

  void Apply(const Edit& edit) {
    if (edit.target == Edit::Target::kDevices) {
      ApplyToDevices(edit);
    } else {
      ApplyToLinks(edit);
    }
  }

  // Throws Error if the links that are left do not join all devices.
  Cluster Edited() const {
    Figures figures = figures_;
    if (std::find(is_down_.begin(), is_down_.end(), true) == is_down_.end()) {
      if (links_changed_) figures.links = std::make_shared<const FigureTable>(links_);
      return cluster_.With(std::move(figures));
    }
    std::vector<LinkFigures> links;
    for (uint32_t i = 0; i < links_.size(); ++i)
      if (!is_down_[i]) links.push_back(links_[i]);
    figures.links = std::make_shared<const FigureTable>(std::move(links));
    return Cut().With(std::move(figures));
  }

 private:
  // The cluster as it was drawn, without the links that are down.
  Cluster Cut() const {
    ClusterBuilder rest(cluster_.name());
    rest.AddVerticesOf(cluster_);
    for (uint32_t i = 0; i < links_.size(); ++i) {
      if (is_down_[i]) continue;
      const LinkFigures& figures = FiguresForRoutes(cluster_, i);
      rest.AddLink(cluster_.SourceOf(i), cluster_.TargetOf(i),
                   {cluster_.KindOf(i), i, figures.bandwidth, figures.efficiency, figures.latency});
    }
    if (cluster_.structure() != nullptr)
      SetStructure(
          rest, std::make_shared<ClusterStructure>(WithoutLinks(*cluster_.structure(), is_down_)));
    return rest.Finish();
  }

  // The links that are up.
  std::vector<uint32_t> SelectedLinks(const Edit& edit) const {
    std::vector<uint32_t> selected = SelectLinks(cluster_, edit.selector, edit.one_way, edit.place);
    std::erase_if(selected, [&](uint32_t link) {
      return is_down_[link] || (edit.kind && cluster_.KindOf(link) != *edit.kind);
    });
    if (selected.empty())
      throw Error(
          edit.place,
          fmt::format("\"{}\" selects no {}link of cluster \"{}\" that is up", edit.selector,
                      edit.kind ? fmt::format("{} ", Name(*edit.kind)) : "", cluster_.name()));
    return selected;
  }

  // Of figures that change for a NIC's cable and for its PCIe at once, one is rarely meant.
  void SayIfBothSidesOfANic(const Edit& edit, const std::vector<uint32_t>& selected) const {
    if (edit.kind || HasDirection(edit.selector)) return;
    std::optional<uint32_t> cable;
    std::optional<uint32_t> inner;
    for (const uint32_t link : selected) {
      const VertexId from = cluster_.SourceOf(link);
      if (cluster_.KindOfVertex(from) != VertexKind::kNic ||
          !MatchesPattern(edit.selector, cluster_.VertexAt(from).name))
        continue;
      const bool is_cable = cluster_.KindOf(link) == LinkKind::kNetwork;
      std::optional<uint32_t>& first = is_cable ? cable : inner;
      if (!first) first = link;
      if (cable && inner) break;
    }
    // A pattern for whole machines, or for everything, means both.
    const bool is_for_nics = selected.size() < links_.size() && MatchesNoDevice(edit.selector);
    if (!cable || !inner || !is_for_nics) return;
    Say(fmt::format(
        "{}the edit of \"{}\" changes {} ({}) and {} ({}) alike; \"kind\": \"network\" "
        "would leave it at the cables",
        edit.place.file.empty() ? "" : edit.place.file + ": ", VisibleText(edit.selector),
        cluster_.LinkName(*cable), Name(cluster_.KindOf(*cable)), cluster_.LinkName(*inner),
        Name(cluster_.KindOf(*inner))));
  }
  bool MatchesNoDevice(const std::string& pattern) const {
    return std::none_of(cluster_.devices().begin(), cluster_.devices().end(), [&](VertexId device) {
      return MatchesPattern(pattern, cluster_.VertexAt(device).name);
    });
  }

  void ApplyToLinks(const Edit& edit) {
    links_changed_ = links_changed_ || edit.bandwidth || edit.latency;
    const std::vector<uint32_t> selected = SelectedLinks(edit);
    if (!edit.down) SayIfBothSidesOfANic(edit, selected);
    for (const uint32_t i : selected) {
      LinkFigures& link = links_[i];
      if (edit.down) is_down_[i] = true;
      if (edit.bandwidth) {
        const double changed = edit.bandwidth->Of(link.bandwidth.value());
        if (!IsBandwidth(changed))
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
    std::vector<DeviceSpec>& specs = figures_.device_specs;
    for (const uint32_t rank : SelectRanks(cluster_, edit.selector, edit.place)) {
      uint32_t& spec = figures_.spec_of_rank[rank];
      const auto [copy, is_new] = edited.emplace(spec, static_cast<uint32_t>(specs.size()));
      if (is_new) specs.push_back(Changed(specs[spec], edit));
      spec = copy->second;
    }
  }

  static DeviceSpec Changed(const DeviceSpec& spec, const Edit& edit) {
    DeviceSpec changed = spec;
    std::string what;
    if (edit.compute) {
      MultiplyCompute(edit.compute->factor, &changed);
      constexpr FlopsPerSecond kMost(1e30);
      for (const FlopsPerSecond* peak : PeaksOf(&changed))
        if (*peak > kMost)
          throw Error(edit.place,
                      fmt::format("would give device {} a peak of {}", spec.name, Print(*peak)));
      what = fmt::format("compute {}x", edit.compute->factor);
    }
    if (edit.memory_bandwidth) {
      const double bandwidth = edit.memory_bandwidth->Of(spec.memory_bandwidth.value());
      if (!IsBandwidth(bandwidth))
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
  Figures figures_;  // all except the links'
  std::vector<LinkFigures> links_;
  std::vector<bool> is_down_;
  bool links_changed_ = false;
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

JsonShape EditsShape() {
  return ListOf(Either({ObjectOf(LinkEditShape), ObjectOf(DeviceEditShape)}));
}

void MultiplyCompute(double factor, DeviceSpec* device) {
  for (FlopsPerSecond* peak : PeaksOf(device)) *peak *= factor;
  for (double* energy : {&device->energy_16, &device->energy_8, &device->energy_4})
    *energy /= factor;
  device->strided_element = device->strided_element / factor;
}

std::vector<Edit> ReadEdits(const JsonReader& reader) {
  std::vector<Edit> edits;
  for (const JsonReader& edit : reader.Elements()) edits.push_back(ReadEdit(edit));
  return edits;
}

std::unique_ptr<Cluster> ApplyEdits(const Cluster& cluster, const std::vector<Edit>& edits) {
  Editor editor(cluster);
  for (const Edit& edit : edits) editor.Apply(edit);
  try {
    return std::make_unique<Cluster>(editor.Edited());
  } catch (const Error&) {
    // Finds out which cut it was, only now, because this takes a cluster for each cut.
    Editor again(cluster);
    for (const Edit& edit : edits) {
      again.Apply(edit);
      if (!edit.down) continue;
      try {
        again.Edited();
      } catch (const Error& error) {
        throw Error(edit.place, fmt::format("without {}, {}", edit.selector, error.what()));
      }
    }
    throw;
  }
}

}  // namespace rehearse

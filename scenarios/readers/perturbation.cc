#include "scenarios/readers/perturbation.h"

#include <fmt/format.h>

#include "sim/base/error.h"
#include "sim/base/json_fields.h"
#include "sim/base/units.h"
#include "topology/cluster/selectors.h"
#include "topology/files/edits.h"

namespace rehearse {
namespace {

constexpr double kMostStraggling = 1e12;

const ObjectShape& StragglerShape() {
  static const ObjectShape shape = {
      "straggler",
      "Devices that compute slower, or faster, than their kind.",
      {{"devices", AText("pattern"), Required(), "which devices (topology/cluster/selectors.h)",
        "\"node3/gpu1\""},
       {"compute_time", AText("factor"), Required(), "factor on the time of each kernel",
        "\"1.5x\""}}};
  return shape;
}

const ObjectShape& EventShape() {
  static const ObjectShape shape = {
      "event",
      "What happens to links during the step; one of bandwidth, fail and recover.",
      {{"at", ADuration(), Required(), "when, counted from the beginning of the step", "\"12ms\""},
       {"links", AText("pattern"), Required(), "which links (topology/cluster/selectors.h)",
        "\"node3/nic*\""},
       {"one_way", TrueFalse(), Default("false"), "only in the pattern's direction", "true"},
       {"bandwidth", AText("bandwidth, factor or difference"), Optional("fail or recover"),
        "bandwidth of each link from then on, or a change of its own", "\"0.5x\""},
       {"fail", TrueFalse(), Default("false"), "the links carry nothing from then on", "true"},
       {"recover", TrueFalse(), Default("false"), "the links work again", "true"}}};
  return shape;
}

std::vector<double> ReadStragglers(const JsonReader& reader, const Cluster& cluster) {
  std::vector<double> straggling(cluster.device_count(), 1.0);
  for (const JsonReader& element : reader.Elements()) {
    const JsonReader straggler = element.As(StragglerShape());
    const JsonReader devices = straggler.At("devices");
    const double factor = ReadFactor(straggler.At("compute_time"));
    for (const uint32_t rank : SelectRanks(cluster, ReadSelector(devices), devices.place())) {
      straggling[rank] *= factor;
      if (straggling[rank] > kMostStraggling || straggling[rank] < 1 / kMostStraggling) {
        straggler.At("compute_time")
            .Fail(fmt::format("makes {} {} times as slow, expected at most {}",
                              cluster.DeviceName(rank), straggling[rank], kMostStraggling));
      }
    }
  }
  return straggling;
}

// What the event does to a link's bandwidth.
Change ReadLinkChange(const JsonReader& event) {
  const int said = int{event.Has("bandwidth")} + int{event.Has("fail")} + int{event.Has("recover")};
  if (said != 1) {
    event.Fail("expected exactly one of \"bandwidth\", \"fail\": true and \"recover\": true");
  }
  if (ReadFlag(event, "fail")) return {0, 0};
  if (ReadFlag(event, "recover")) return {1, 0};
  return ReadBandwidthChange(event.At("bandwidth"));
}

void ReadEvent(const JsonReader& object, const Cluster& cluster, std::vector<LinkEvent>* events) {
  const JsonReader event = object.As(EventShape());
  const Time at = ToTime(event.At("at").Duration());
  const JsonReader links = event.At("links");
  const std::string pattern = ReadSelector(links);
  const bool one_way = ReadFlag(event, "one_way");
  if (one_way && !HasDirection(pattern)) {
    event.At("one_way").Fail("needs a pattern with a direction, such as \"node0/nic0->leaf*\"");
  }
  const Change change = ReadLinkChange(event);
  const std::vector<uint32_t> selected = SelectLinks(cluster, pattern, one_way, links.place());
  if (selected.empty()) {
    links.Fail(fmt::format("\"{}\" selects no link of cluster \"{}\"", pattern, cluster.name()));
  }
  for (const uint32_t link : selected) {
    const double old = cluster.Link(link).bandwidth.value();
    const double changed = change.Of(old);
    if (event.Has("bandwidth") && !(changed > 0 && changed <= kMostBandwidth.value())) {
      event.At("bandwidth")
          .Fail(fmt::format("would give link {} a bandwidth of {} B/s; expected more than 0 and at "
                            "most {}, or \"fail\": true",
                            cluster.LinkName(link), changed, kMostBandwidth.value()));
    }
    events->push_back({at, link, changed / old});
  }
}

// Where links do not change.
void RefuseFidelity(const JsonReader& reader, Fidelity fidelity) {
  if (fidelity == Fidelity::kPacket)
    reader.Fail("at fidelity packet links are steady; use fluid or step");
  if (fidelity != Fidelity::kFormula) return;
  reader.Fail("the fidelity formula has closed forms, not single links; use fluid or step");
}

// Which devices and links are meant depends on the cluster: stragglers and events are read by hand.
const Fields<Perturbation>& PerturbationFields() {
  static const Fields<Perturbation> fields(
      "perturbation", "What is not as steady as the model: jitter, slow devices, links that fail.",
      {{"seed", &Perturbation::seed, AWhole(0, int64_t{1} << 53), Optional("no jitter"),
        "seed of the jitter", "7"},
       {"compute_jitter", &Perturbation::compute_jitter, ANumber(0, kMostJitter), Usual(),
        "relative standard deviation of each kernel's time", "0.03"},
       {"link_jitter", &Perturbation::link_jitter, ANumber(0, kMostJitter), Usual(),
        "relative standard deviation of each link's rate", "0.05"},
       {"stragglers", ListOf(ObjectOf(StragglerShape)), Default("[]"), "slow devices",
        R"([{"devices": "node3/gpu1", "compute_time": "1.5x"}])"},
       {"events", ListOf(ObjectOf(EventShape)), Default("[]"), "what happens to links",
        R"([{"at": "20ms", "links": "node3/nic0", "fail": true}])"}});
  return fields;
}

}  // namespace

const ObjectShape& PerturbationShape() { return PerturbationFields().shape(); }

Perturbation ReadPerturbation(const JsonReader& object, const Cluster& cluster, Fidelity fidelity) {
  const JsonReader reader = object.As(PerturbationShape());
  Perturbation perturbation;
  PerturbationFields().ReadInto(reader, &perturbation);
  // No randomness without a seed.
  if (reader.Has("compute_jitter") || reader.Has("link_jitter")) MustHave(reader, {"seed"});
  if (perturbation.link_jitter > 0) RefuseFidelity(reader.At("link_jitter"), fidelity);
  if (reader.Has("stragglers")) {
    perturbation.straggling = ReadStragglers(reader.At("stragglers"), cluster);
  }
  if (reader.Has("events")) {
    for (const JsonReader& event : reader.At("events").Elements()) {
      ReadEvent(event, cluster, &perturbation.events);
      RefuseFidelity(event, fidelity);
    }
  }
  return perturbation;
}

}  // namespace rehearse

// Simulate(): one step, as `rehearse run` simulates it.
#include <optional>
#include <utility>

#include "scenarios/campaign/campaign.h"
#include "scenarios/campaign/costs.h"
#include "scenarios/library/state.h"
#include "scenarios/playing/rehearsal.h"
#include "sim/report/timeline_record.h"

namespace rehearse::v1 {

struct Simulation::State {
  double step_seconds = 0;
  std::string hash;
  std::string json;
  std::string text;
  std::vector<Span> spans;
  std::vector<Op> ops;
  std::vector<Link> links;
  uint32_t ranks = 0;
  std::vector<uint32_t> representative;  // empty: each rank is its own
};

namespace {

std::vector<Op> OpsOf(const Schedule& schedule) {
  std::vector<Op> ops;
  for (const Role& role : schedule.roles) {
    for (const ::rehearse::Op& op : role.ops) {
      const CommunicatorId axis = CommunicatorOf(op.work);
      ops.push_back({op.name, KindOf(op.work),
                     axis.IsSet() ? schedule.communicators[axis.index()].name() : "",
                     Name(op.tag.phase), op.tag.layer});
    }
  }
  return ops;
}

std::vector<Span> SpansOf(const Schedule& schedule, const Timeline& timeline) {
  std::vector<uint32_t> first_op;  // by role, in OpsOf()
  uint32_t ops = 0;
  for (const Role& role : schedule.roles) {
    first_op.push_back(ops);
    ops += static_cast<uint32_t>(role.ops.size());
  }
  std::vector<Span> spans;
  spans.reserve(timeline.spans.size());
  for (const ::rehearse::Span& span : timeline.spans) {
    const uint32_t role_id = schedule.role_of_rank[span.rank];
    const Role& role = schedule.roles[role_id];
    const uint32_t place = role.PlaceAt(span.op);
    spans.push_back({span.rank, first_op[role_id] + place, role.TagAt(span.op).micro_batch,
                     static_cast<int32_t>(role.ops[place].stream.index()), span.ready.picoseconds(),
                     span.begin.picoseconds(), span.end.picoseconds()});
  }
  return spans;
}

std::vector<Link> LinksOf(const Timeline& timeline) {
  const double step = ToSeconds(timeline.step).value();
  std::vector<Link> links;
  links.reserve(timeline.links.size());
  for (const LinkRecord& link : timeline.links) {
    const double could_carry = link.capacity.value() * step;
    links.push_back({link.name, link.kind, link.bytes.value(), link.capacity.value(),
                     could_carry > 0 ? link.bytes.value() / could_carry : 0, link.count});
  }
  return links;
}

}  // namespace

double Simulation::step_seconds() const { return state_->step_seconds; }
const std::string& Simulation::hash() const { return state_->hash; }
const std::string& Simulation::Json() const { return state_->json; }
std::string Simulation::Text() const { return state_->text; }
const std::vector<Span>& Simulation::spans() const { return state_->spans; }
const std::vector<Op>& Simulation::ops() const { return state_->ops; }
const std::vector<Link>& Simulation::links() const { return state_->links; }
uint32_t Simulation::ranks() const { return state_->ranks; }

uint32_t Simulation::representative_of(uint32_t rank) const {
  if (rank >= state_->ranks)
    throw Error("there is no rank " + std::to_string(rank) + ": the last of " +
                    std::to_string(state_->ranks) + " is " + std::to_string(state_->ranks - 1),
                "", 0, "");
  return state_->representative.empty() ? rank : state_->representative[rank];
}

Simulation Simulate(const Scenario& scenario, const RunOptions& options) {
  return Guarded([&] {
    CallerObserver observer(options.progress);
    std::shared_ptr<const ::rehearse::Scenario> read = scenario.state().Read();
    if (!options.fold) {
      auto unfolded = std::make_shared<::rehearse::Scenario>(*read);
      unfolded->lowering.fold = false;
      read = std::move(unfolded);
    }
    Rehearsal played = Rehearse(*read, {.observer = &observer,
                                        .threads = options.threads,
                                        .allocations = true,
                                        .best_placement = true});
    auto state = std::make_shared<Simulation::State>();
    nlohmann::ordered_json json = played.jobs ? ToJson(*played.jobs) : ToJson(played.result);
    state->text = played.jobs ? ToText(*played.jobs, false) : ToText(played.result, false);
    std::optional<RunOutcome> run;
    if (read->run != nullptr) {
      run = PlayCampaign(*read, played, observer).outcome;
      json["run"] = ToJson(*run);
      state->text += ToText(*run, false);
    }
    if (read->costs != nullptr) {
      const CostOutcome costs = CostsOf(*read, played.result, run ? &*run : nullptr);
      json["costs"] = ToJson(costs);
      state->text += ToText(costs, false);
    }
    if (read->given) json["given"] = *read->given;
    state->json = json.dump(2) + "\n";
    state->step_seconds = StepOf(played.schedule, played.timeline).value();
    state->hash = HashOf(played.timeline);
    state->spans = SpansOf(played.schedule, played.timeline);
    state->ops = OpsOf(played.schedule);
    state->links = LinksOf(played.timeline);
    state->ranks = played.timeline.ranks;
    state->representative = std::move(played.timeline.representative);
    return Simulation(std::move(state));
  });
}

}  // namespace rehearse::v1

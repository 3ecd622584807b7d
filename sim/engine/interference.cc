#include "sim/engine/interference.h"

#include <algorithm>

#include "sim/base/error.h"

namespace rehearse {
namespace {

void Erase(std::vector<uint32_t>& list, uint32_t value) {
  const auto it = std::find(list.begin(), list.end(), value);
  CHECK(it != list.end());
  list.erase(it);
}

}  // namespace

Interference::Interference(const Program& program)
    : program_(program),
      delays_(program.delay_owners.size()),
      factors_(program.party_sets.size(), 1.0),
      flow_touched_(program.party_sets.size(), 0),
      processors_(program.processors.size()),
      hosts_(program.host_cores.size()) {
  for (uint32_t i = 0; i < program.processors.size(); ++i) {
    const Processor& processor = program.processors[i];
    if (processor.host != Program::kNone) hosts_[processor.host].processors.push_back(i);
    slows_flows_ = slows_flows_ || processor.host != Program::kNone || processor.slowdown > 0;
  }
}

std::span<const uint32_t> Interference::PartiesOf(uint32_t flow) const {
  const uint32_t set = program_.party_sets[flow];
  return {program_.parties.data() + program_.party_set_begin[set],
          program_.parties.data() + program_.party_set_begin[set + 1]};
}

void Interference::BeginDelay(uint32_t delay) {
  const uint32_t processor = program_.delay_owners[delay].processor;
  const Time duration = program_.delays[delay];
  delays_[delay] = {static_cast<double>(duration.picoseconds()), 0, Time()};
  processors_[processor].delays.push_back(delay);
  ChangeActive(processor, +1);
  Touch(processor);
}

void Interference::EndDelay(uint32_t delay) {
  const uint32_t processor = program_.delay_owners[delay].processor;
  Erase(processors_[processor].delays, delay);
  ChangeActive(processor, -1);
  Touch(processor);
}

void Interference::BeginFlow(uint32_t flow) {
  for (const uint32_t processor : PartiesOf(flow)) {
    std::vector<uint32_t>& flows = processors_[processor].flows;
    if (flows.empty()) ChangeActive(processor, +1);
    flows.push_back(flow);
    Touch(processor);
  }
}

void Interference::EndFlow(uint32_t flow) {
  for (const uint32_t processor : PartiesOf(flow)) {
    std::vector<uint32_t>& flows = processors_[processor].flows;
    Erase(flows, flow);
    if (flows.empty()) ChangeActive(processor, -1);
    Touch(processor);
  }
}

void Interference::Touch(uint32_t processor) {
  if (processors_[processor].touched) return;
  processors_[processor].touched = true;
  touched_.push_back(processor);
}

void Interference::ChangeActive(uint32_t processor, int change) {
  const Processor& what = program_.processors[processor];
  if (what.host == Program::kNone) return;
  HostState& host = hosts_[what.host];
  host.active += static_cast<uint64_t>(static_cast<int64_t>(change) * what.copies);
  if (host.touched) return;
  host.touched = true;
  touched_hosts_.push_back(what.host);
}

void Interference::Settle(Time now) {
  delay_ends_.clear();
  flow_factors_.clear();
  TouchProcessorsOfHosts();
  for (const uint32_t processor : touched_) {
    processors_[processor].touched = false;
    SettleDelays(processor, now);
    if (!slows_flows_) continue;
    for (const uint32_t flow : processors_[processor].flows) {
      if (flow_touched_[flow]) continue;
      flow_touched_[flow] = 1;
      touched_flows_.push_back(flow);
    }
  }
  touched_.clear();
  for (const uint32_t flow : touched_flows_) SettleFlow(flow);
  touched_flows_.clear();
}

void Interference::TouchProcessorsOfHosts() {
  for (const uint32_t index : touched_hosts_) {
    HostState& host = hosts_[index];
    host.touched = false;
    const double wanted = static_cast<double>(host.active);
    const double cores = program_.host_cores[index];
    const double share = wanted <= cores ? 1.0 : cores / wanted;
    if (share == host.share) continue;
    host.share = share;
    for (const uint32_t processor : host.processors) Touch(processor);
  }
  touched_hosts_.clear();
}

double Interference::ShareOf(uint32_t processor) const {
  const uint32_t host = program_.processors[processor].host;
  return host == Program::kNone ? 1.0 : hosts_[host].share;
}

void Interference::SettleDelays(uint32_t processor, Time now) {
  const bool communicates = !processors_[processor].flows.empty();
  const double share = ShareOf(processor);
  for (const uint32_t delay : processors_[processor].delays) {
    DelayState& state = delays_[delay];
    const double speed = communicates ? share / (1 + program_.delay_owners[delay].slowdown) : share;
    if (speed == state.speed) continue;
    const double elapsed = static_cast<double>((now - state.since).picoseconds());
    state.left = std::max(0.0, state.left - state.speed * elapsed);
    state.since = now;
    state.speed = speed;
    // Halves are rounded up whatever rounding errors came before, as for flows.
    const double duration = static_cast<double>(program_.delays[delay].picoseconds());
    const double slack = std::min(0.25, duration * 0x1p-48);
    delay_ends_.push_back({delay, now + RoundedTime((state.left + slack) / speed)});
  }
}

void Interference::SettleFlow(uint32_t flow) {
  flow_touched_[flow] = 0;
  double factor = 1;
  for (const uint32_t processor : PartiesOf(flow)) {
    const bool computes = !processors_[processor].delays.empty();
    const double share = ShareOf(processor);
    factor =
        std::min(factor, computes ? share / (1 + program_.processors[processor].slowdown) : share);
  }
  if (factor == factors_[flow]) return;
  factors_[flow] = factor;
  flow_factors_.push_back({flow, factor});
}

}  // namespace rehearse

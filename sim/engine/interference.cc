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

void Interference::BeginDelays(uint32_t task, const Series& series, Time now) {
  Running running;
  running.task = task;
  running.first = series.first;
  running.last = series.last;
  running.begin = now;
  Enter(running, series.first);
  while (running.left == 0) Enter(running, running.delay + 1);
  processors_[series.processor].running.push_back(running);
  ChangeActive(series.processor, +1);
  Touch(series.processor);
}

bool Interference::EndDelay(uint32_t task, uint32_t processor, Time now, uint32_t* kept) {
  std::vector<Running>& all = processors_[processor].running;
  const size_t place = PlaceOf(task, processor);
  Running& running = all[place];
  if (running.undisturbed) PassAllUntil(running, now);
  Touch(processor);
  while (running.delay < running.last) {
    Pass(running, now);
    if (program_.delays[running.delay] > Time()) return false;
  }
  *kept = running.kept;
  all.erase(all.begin() + static_cast<std::ptrdiff_t>(place));
  ChangeActive(processor, -1);
  return true;
}

uint32_t Interference::LateDelay(uint32_t task, uint32_t processor) const {
  const Running& running = processors_[processor].running[PlaceOf(task, processor)];
  uint32_t delay = running.delay;
  Time end = running.end;
  while (running.undisturbed && delay < running.last && end < kBeyondTime) {
    end += program_.delays[++delay];
  }
  return delay;
}

Interference::Progress Interference::ProgressOf(uint32_t task, uint32_t processor) const {
  const Running& running = processors_[processor].running[PlaceOf(task, processor)];
  return {running.delay - running.first,
          running.undisturbed,
          running.left,
          running.speed,
          running.since,
          running.end};
}

size_t Interference::PlaceOf(uint32_t task, uint32_t processor) const {
  const std::vector<Running>& all = processors_[processor].running;
  const auto running =
      std::find_if(all.begin(), all.end(), [&](const Running& one) { return one.task == task; });
  CHECK(running != all.end());
  return static_cast<size_t>(running - all.begin());
}

// The task comes to this delay.
void Interference::Enter(Running& running, uint32_t delay) const {
  running.delay = delay;
  running.left = static_cast<double>(program_.delays[delay].picoseconds());
  running.speed = 0;
}

// The delay that runs has ended now, and the next one begins.
void Interference::Pass(Running& running, Time now) {
  if (running.kept != kNone) ends_[running.kept + running.delay - running.first] = now;
  Enter(running, running.delay + 1);
}

// Passes delays that have followed one another at full speed.
void Interference::PassAllUntil(Running& running, Time now) {
  while (running.delay < running.last && running.end <= now) {
    const Time begin = running.end;
    Pass(running, begin);
    running.speed = 1;
    running.since = begin;
    running.end = begin + program_.delays[running.delay];
  }
}

// From now on the ends of the task's delays are not plain. Those until now are.
void Interference::KeepEnds(Running& running) {
  running.kept = static_cast<uint32_t>(ends_.size());
  Time end = running.begin;
  for (uint32_t delay = running.first; delay < running.last; ++delay) {
    end += program_.delays[delay];
    ends_.push_back(end);
  }
}

Time Interference::DurationAfter(const Running& running) const {
  Time duration;
  for (uint32_t delay = running.delay + 1; delay <= running.last; ++delay) {
    duration += program_.delays[delay];
  }
  return duration;
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
  for (Running& running : processors_[processor].running) {
    if (running.undisturbed) PassAllUntil(running, now);
    const double slowdown = program_.delay_owners[running.delay].slowdown;
    const double speed = communicates ? share / (1 + slowdown) : share;
    const bool undisturbed = !communicates && share == 1 && running.delay < running.last;
    if (speed == running.speed && undisturbed == running.undisturbed) continue;
    if (speed != running.speed) {
      const double elapsed = static_cast<double>((now - running.since).picoseconds());
      running.left = std::max(0.0, running.left - running.speed * elapsed);
      running.since = now;
      running.speed = speed;
      // Halves are rounded up whatever rounding errors came before, as for flows.
      const double duration = static_cast<double>(program_.delays[running.delay].picoseconds());
      const double slack = std::min(0.25, duration * 0x1p-48);
      running.end = now + RoundedTime((running.left + slack) / speed);
    }
    running.undisturbed = undisturbed;
    if (!undisturbed && running.delay < running.last && running.kept == kNone) KeepEnds(running);
    delay_ends_.push_back(
        {running.task, undisturbed ? running.end + DurationAfter(running) : running.end});
  }
}

void Interference::SettleFlow(uint32_t flow) {
  flow_touched_[flow] = 0;
  double factor = 1;
  for (const uint32_t processor : PartiesOf(flow)) {
    const bool computes = !processors_[processor].running.empty();
    const double share = ShareOf(processor);
    factor =
        std::min(factor, computes ? share / (1 + program_.processors[processor].slowdown) : share);
  }
  if (factor == factors_[flow]) return;
  factors_[flow] = factor;
  flow_factors_.push_back({flow, factor});
}

}  // namespace rehearse

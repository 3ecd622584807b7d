#include "sim/packets/packet_play.h"

#include <algorithm>
#include <cmath>

namespace rehearse {

void PacketReport::Add(const PacketReport& other) {
  if (other.stats.most_queued > stats.most_queued) most_queued_at = other.most_queued_at;
  if (other.stats.longest_pause > stats.longest_pause) longest_paused = other.longest_paused;
  stats.Add(other.stats);
  messages += other.messages;
  skipped_hops += other.skipped_hops;
}

PacketPlay::PacketPlay(const PacketProgram& program, bool watches)
    : program_(program),
      network_(program.wiring, program.options, program.remembers && !watches),
      queues_(program.wiring.flows()),
      parts_left_(program.set_of_flow.size(), 0) {
  if (!watches) return;
  watch_ = std::make_unique<PacketWatch>(program.wiring);
  network_.Watch(watch_.get());
}

// The first of the connection's messages.
void PacketPlay::Send(uint32_t connection, Time now) {
  const Message& message = queues_[connection].front();
  if (watch_ != nullptr) watch_->Begins(connection, message.flow, now);
  network_.Begin(connection, message.bytes, now);
}

void PacketPlay::Begin(uint32_t flow, double bytes, Time now) {
  const uint32_t set = program_.set_of_flow[flow];
  const uint32_t end = program_.set_begin[set + 1];
  const auto size =
      static_cast<uint64_t>(std::max<int64_t>(1, std::llround(bytes * program_.parts[set])));
  for (uint32_t connection = program_.set_begin[set]; connection < end; ++connection) {
    ++parts_left_[flow];
    ++messages_;
    queues_[connection].push_back({flow, size});
    if (queues_[connection].size() == 1) Send(connection, now);
  }
}

bool PacketPlay::Run(Time until) {
  arrived_.clear();
  while (arrived_.empty()) {
    if (!network_.Run(until)) return false;
    for (const uint32_t connection : network_.arrived()) {
      const uint32_t flow = queues_[connection].front().flow;
      queues_[connection].pop_front();
      if (--parts_left_[flow] == 0) arrived_.push_back(flow);
    }
    for (const uint32_t connection : network_.arrived()) {
      if (!queues_[connection].empty()) Send(connection, network_.now());
    }
  }
  return true;
}

PacketReport PacketPlay::Report() const {
  const PacketStats stats = network_.Stats();
  PacketReport report{stats, messages_, network_.SkippedHops(), "", "", nullptr};
  if (watch_ != nullptr)
    report.history = std::make_shared<PacketHistory>(watch_->History(network_.now()));
  const std::vector<PacketPort>& ports = network_.wiring().ports;
  if (stats.most_queued > 0) report.most_queued_at = ports[stats.most_queued_at].name;
  if (stats.paused > Time()) report.longest_paused = ports[stats.longest_paused].name;
  return report;
}

}  // namespace rehearse

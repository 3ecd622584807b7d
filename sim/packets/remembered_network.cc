#include "sim/packets/remembered_network.h"

#include <algorithm>

#include "sim/base/error.h"

namespace rehearse {

void RememberedNetwork::Begin(uint32_t flow, uint64_t bytes, Time now) {
  now_ = now;
  if (!remembers_) {
    network_.Begin(flow, bytes, now);
    ++under_way_;
    return;
  }
  if (under_way_ == 0 && (messages_.empty() || IsAtRest(now))) {
    if (IsFollowing()) skipped_.Add(nodes_[node_].stats);
    messages_.clear();
    node_ = position_ = 0;
    start_ = now;
    plays_ = false;
    keeps_ = true;
    at_start_ = network_.stats();
  }
  ++under_way_;
  messages_.push_back({(now - start_).picoseconds(), flow, bytes});
  if (IsFollowing()) {
    const uint32_t next = Find(messages_.back());
    if (next != kNone) {
      node_ = next;
      position_ = 0;
      return;
    }
    PlayFrom(messages_.size() - 1, now);
  }
  network_.Begin(flow, bytes, now);
  if (!keeps_) return;
  if (nodes_.size() == kMostNodes) {
    keeps_ = false;
    return;
  }
  nodes_[node_].stats = OfEpisode();
  nodes_[node_].known = std::max(nodes_[node_].known, messages_.back().time);
  nodes_[node_].next.push_back(static_cast<uint32_t>(nodes_.size()));
  Node node;
  node.message = messages_.back();
  node.after = position_;
  node_ = static_cast<uint32_t>(nodes_.size());
  position_ = 0;
  nodes_.push_back(std::move(node));
}

bool RememberedNetwork::Run(Time until) {
  arrived_.clear();
  if (remembers_ && IsFollowing()) {
    const Node& node = nodes_[node_];
    if (position_ < node.arrivals.size()) {
      const int64_t time = node.arrivals[position_].time;
      if (start_ + Time(time) > until) return false;
      now_ = start_ + Time(time);
      for (; position_ < node.arrivals.size() && node.arrivals[position_].time == time; ++position_)
        arrived_.push_back(node.arrivals[position_].flow);
      under_way_ -= static_cast<uint32_t>(arrived_.size());
      return true;
    }
    if (under_way_ == 0 || until <= start_ + Time(node.known)) return false;
    PlayFrom(messages_.size(), now_);
  }
  if (!network_.Run(until)) return false;
  now_ = network_.now();
  arrived_.assign(network_.arrived().begin(), network_.arrived().end());
  under_way_ -= static_cast<uint32_t>(arrived_.size());
  if (remembers_ && keeps_) {
    Node& node = nodes_[node_];
    for (const uint32_t flow : arrived_)
      node.arrivals.push_back({(now_ - start_).picoseconds(), flow});
    position_ = static_cast<uint32_t>(node.arrivals.size());
    if (under_way_ == 0) node.stats = OfEpisode();
  }
  return true;
}

// Where nothing is known of it, the episode is played up to now.
bool RememberedNetwork::IsAtRest(Time now) {
  if (IsFollowing()) {
    const int64_t rest = nodes_[node_].rest;
    if (rest >= 0) return now >= start_ + Time(rest);
    PlayFrom(messages_.size(), now);
  }
  if (!network_.IsAtRest()) return false;
  if (keeps_) {
    nodes_[node_].rest = (network_.now() - start_).picoseconds();
    nodes_[node_].stats = OfEpisode();
  }
  return true;
}

// Plays the first messages of the episode, which it has followed so far, and on until this time.
void RememberedNetwork::PlayFrom(size_t messages, Time until) {
  plays_ = true;
  for (size_t i = 0; i < messages; ++i) {
    const Time time = start_ + Time(messages_[i].time);
    if (i == 0 || messages_[i].time > messages_[i - 1].time) {
      while (network_.Run(time)) {
      }
    }
    network_.Begin(messages_[i].flow, messages_[i].bytes, time);
  }
  if (messages == 0) return;
  while (network_.Run(until)) {
  }
}

uint32_t RememberedNetwork::Find(const Message& message) const {
  for (const uint32_t next : nodes_[node_].next)
    if (nodes_[next].after == position_ && nodes_[next].message == message) return next;
  return kNone;
}

PacketStats RememberedNetwork::OfEpisode() const {
  PacketStats stats = network_.stats();
  stats.Subtract(at_start_);
  return stats;
}

PacketStats RememberedNetwork::Stats() const {
  PacketStats stats = network_.stats();
  stats.Add(skipped_);
  if (remembers_ && IsFollowing()) stats.Add(nodes_[node_].stats);
  return stats;
}

uint64_t RememberedNetwork::SkippedHops() const {
  return Stats().hops - network_.stats().hops + network_.SkippedHops();
}

}  // namespace rehearse

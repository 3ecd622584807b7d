// A fat tree of three tiers with k³/4 hosts, full bisection, and ways between its hosts: the
// network of packet tests.
#pragma once

#include <cstdint>
#include <vector>

#include "sim/packets/packet_network.h"

namespace rehearse {

class PacketTree {
 public:
  PacketTree(uint32_t radix, double bytes_per_second, Time delay)
      : half_(radix / 2), hosts_(radix * half_ * half_), rate_(bytes_per_second), delay_(delay) {
    const uint32_t leaves = radix * half_;
    wiring_.is_switch.assign(hosts_, false);
    wiring_.is_switch.resize(hosts_ + 2 * leaves + half_ * half_, true);
    for (uint32_t host = 0; host < hosts_; ++host) {
      Cable(host, Leaf(host / half_));
      Cable(Leaf(host / half_), host);
    }
    leaf_up_.resize(radix);
    spine_up_.resize(radix);
    core_down_.resize(radix);
    spine_down_.resize(leaves);
    for (uint32_t pod = 0; pod < radix; ++pod) {
      for (uint32_t spine = pod * half_; spine < (pod + 1) * half_; ++spine) {
        for (uint32_t leaf = pod * half_; leaf < (pod + 1) * half_; ++leaf) {
          leaf_up_[pod].push_back(Cable(Leaf(leaf), Spine(spine)));
          spine_down_[leaf].push_back(Cable(Spine(spine), Leaf(leaf)));
        }
        for (uint32_t i = 0; i < half_; ++i) {
          const uint32_t core = hosts_ + 2 * leaves + (spine % half_) * half_ + i;
          spine_up_[pod].push_back(Cable(Spine(spine), core));
          core_down_[pod].push_back(Cable(core, Spine(spine)));
        }
      }
    }
    for (const auto* bundles : {&leaf_up_, &spine_up_, &core_down_, &spine_down_})
      for (const std::vector<uint32_t>& bundle : *bundles) wiring_.bundles.push_back(bundle);
  }

  uint32_t hosts() const { return hosts_; }
  const PacketWiring& wiring() const { return wiring_; }

  // Returns the flow.
  uint32_t AddFlow(uint32_t from, uint32_t to) {
    const auto ports = static_cast<uint32_t>(wiring_.ports.size());
    const uint32_t pods = 2 * half_;
    const uint32_t from_leaf = from / half_;
    const uint32_t to_leaf = to / half_;
    wiring_.hops.push_back(2 * from);
    if (from_leaf != to_leaf) {
      const uint32_t from_pod = from_leaf / half_;
      const uint32_t to_pod = to_leaf / half_;
      wiring_.hops.push_back(ports + from_pod);
      if (from_pod != to_pod) {
        wiring_.hops.push_back(ports + pods + from_pod);
        wiring_.hops.push_back(ports + 2 * pods + to_pod);
      }
      wiring_.hops.push_back(ports + 3 * pods + to_leaf);
    }
    wiring_.hops.push_back(2 * to + 1);
    wiring_.way_begin.push_back(static_cast<uint32_t>(wiring_.hops.size()));
    return wiring_.flows() - 1;
  }

 private:
  uint32_t Leaf(uint32_t leaf) const { return hosts_ + leaf; }
  uint32_t Spine(uint32_t spine) const { return hosts_ + 2 * half_ * half_ + spine; }
  uint32_t Cable(uint32_t from, uint32_t to) {
    wiring_.ports.push_back(
        {rate_, delay_, from, to, std::to_string(from) + "->" + std::to_string(to)});
    return static_cast<uint32_t>(wiring_.ports.size() - 1);
  }

  const uint32_t half_;
  const uint32_t hosts_;
  const double rate_;
  const Time delay_;
  PacketWiring wiring_;
  std::vector<std::vector<uint32_t>> leaf_up_;
  std::vector<std::vector<uint32_t>> spine_up_;
  std::vector<std::vector<uint32_t>> core_down_;
  std::vector<std::vector<uint32_t>> spine_down_;
};

}  // namespace rehearse

#include "topology/presets/node.h"

#include <fmt/format.h>

namespace rehearse {
namespace {

class Drawing {
 public:
  explicit Drawing(const NodeSpec& spec) : spec_(spec) {}

  NodeShape Draw() {
    CHECK_GT(spec_.devices, 0u);
    shape_.prefix = spec_.prefix;
    for (uint32_t i = 0; i < spec_.devices; ++i)
      Add(fmt::format("{}{}", spec_.device_name, i), VertexKind::kDevice);
    if (spec_.nvswitch) {
      const uint32_t nvswitch = Add("nvswitch", VertexKind::kNvSwitch);
      for (uint32_t i = 0; i < spec_.devices; ++i) JoinBoth(i, nvswitch, *spec_.nvswitch);
    }
    for (const DeviceLanes& pair : spec_.lanes) {
      CHECK(spec_.lane.has_value());
      ClusterLink link = *spec_.lane;
      link.bandwidth = link.bandwidth * pair.lanes;
      JoinBoth(pair.a, pair.b, link);
    }
    if (spec_.host) DrawHost(*spec_.host);
    if (spec_.cable && shape_.ports.empty())
      for (uint32_t i = 0; i < spec_.devices; ++i) shape_.ports.push_back({i, *spec_.cable});
    return std::move(shape_);
  }

 private:
  // A switch or socket is entered at one vertex and left at another, which may be the same.
  struct Stop {
    uint32_t in = 0;
    uint32_t out = 0;
  };

  uint32_t Add(std::string name, VertexKind kind) {
    shape_.parts.push_back({std::move(name), kind});
    return static_cast<uint32_t>(shape_.parts.size() - 1);
  }

  void Join(uint32_t from, uint32_t to, const ClusterLink& link) {
    shape_.wires.push_back({from, to, link});
  }
  void JoinBoth(uint32_t a, uint32_t b, const ClusterLink& link) {
    Join(a, b, link);
    Join(b, a, link);
  }
  // Joins a leaf of the host's tree to a stop above it, or one stop to the next.
  void Hang(Stop below, Stop above, const ClusterLink& link) {
    Join(below.in, above.in, link);
    Join(above.out, below.out, link);
  }

  void DrawHost(const Host& host) {
    const bool staged = host.memory.has_value();
    std::vector<Stop> sockets;
    for (uint32_t i = 0; i < host.sockets; ++i) {
      Stop stop;
      stop.in = Add(fmt::format("{}{}", host.socket_name, i), VertexKind::kSocket);
      stop.out = staged ? Add(fmt::format("memory{}", i), VertexKind::kSocket) : stop.in;
      if (staged) Join(stop.in, stop.out, *host.memory);
      sockets.push_back(stop);
    }
    if (host.between_sockets)
      for (uint32_t i = 0; i < host.sockets; ++i)
        for (uint32_t j = i + 1; j < host.sockets; ++j)
          JoinBoth(sockets[i].out, sockets[j].out, *host.between_sockets);

    std::vector<Stop> switches;
    for (uint32_t i = 0; i < host.switches; ++i) {
      const std::string name = fmt::format("{}{}", host.switch_name, i);
      Stop stop;
      stop.in = Add(staged ? name + "/up" : name, VertexKind::kPcieSwitch);
      stop.out = staged ? Add(name + "/down", VertexKind::kPcieSwitch) : stop.in;
      if (host.root_port)
        Hang(stop, sockets[Deal(i, host.switches, host.sockets)], *host.root_port);
      switches.push_back(stop);
    }

    CHECK(host.device.has_value());
    const std::vector<Stop>& above = switches.empty() ? sockets : switches;
    for (uint32_t i = 0; i < spec_.devices; ++i) {
      Hang({i, i}, above[Deal(i, spec_.devices, above.size())], *host.device);
      if (host.device_to_socket)
        Hang({i, i}, sockets[Deal(i, spec_.devices, host.sockets)], *host.device_to_socket);
    }

    const auto stops_of = [&](NicPlace place) -> const std::vector<Stop>& {
      return place == NicPlace::kSwitch && !switches.empty() ? switches : sockets;
    };
    if (host.nics > 0) {
      CHECK(host.nic.has_value());
      CHECK(spec_.cable.has_value());
      DrawNics({host.nics, host.nic_place, *host.nic, *spec_.cable}, stops_of(host.nic_place));
    }
    for (const MoreNics& more : host.more_nics) DrawNics(more, stops_of(more.place));
  }

  void DrawNics(const MoreNics& nics, const std::vector<Stop>& stops) {
    for (uint32_t i = 0; i < nics.count; ++i) {
      const uint32_t nic = Add(fmt::format("nic{}", nics_++), VertexKind::kNic);
      Hang({nic, nic}, stops[Deal(i, nics.count, stops.size())], nics.pcie);
      for (uint32_t port = 0; port < spec_.host->nic_ports; ++port)
        shape_.ports.push_back({nic, nics.cable});
    }
  }

  // Which of `above` gets the i-th of `below`, dealt evenly and in order.
  static uint32_t Deal(uint32_t i, uint32_t below, size_t above) {
    return static_cast<uint32_t>(uint64_t{i} * above / below);
  }

  const NodeSpec& spec_;
  NodeShape shape_;
  uint32_t nics_ = 0;
};

}  // namespace

NodeSize SizeOf(const NodeSpec& spec) {
  NodeSize size;
  const uint64_t devices = spec.devices;
  size.parts = devices + (spec.nvswitch ? 1 : 0);
  size.wires = (spec.nvswitch ? 2 * devices : 0) + 2 * spec.lanes.size();
  if (spec.host) {
    const Host& host = *spec.host;
    const uint64_t sockets = host.sockets;
    const uint64_t stops = host.memory ? 2 : 1;  // vertices of a socket or switch
    uint64_t nics = host.nics;
    for (const MoreNics& more : host.more_nics) nics += more.count;
    size.parts += stops * (sockets + host.switches) + nics;
    size.wires += (host.memory ? sockets : 0) +
                  (host.between_sockets ? sockets * (sockets - 1) : 0) +
                  (host.root_port ? 2 * uint64_t{host.switches} : 0) +
                  (host.device_to_socket ? 4 : 2) * devices + 2 * nics;
    size.ports = nics * host.nic_ports;
  }
  if (spec.cable && size.ports == 0) size.ports = devices;
  return size;
}

NodeShape DrawNode(const NodeSpec& spec) { return Drawing(spec).Draw(); }

ClusterLink MakeLink(LinkKind kind, BytesPerSecond bandwidth, double efficiency, Seconds latency) {
  ClusterLink link;
  link.kind = kind;
  link.bandwidth = bandwidth;
  link.efficiency = efficiency;
  link.latency = latency;
  return link;
}

std::vector<DeviceLanes> AllToAll(uint32_t devices, uint32_t lanes) {
  std::vector<DeviceLanes> pairs;
  for (uint32_t i = 0; i < devices; ++i)
    for (uint32_t j = i + 1; j < devices; ++j) pairs.push_back({i, j, lanes});
  return pairs;
}

}  // namespace rehearse

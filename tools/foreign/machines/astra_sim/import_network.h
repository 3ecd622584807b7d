// Networks of ASTRA-sim and SimAI as clusters.
//
// Of ASTRA-sim's analytical backend, YAML: a product of dimensions, the first of which has the
// nearest neighbours. A Ring joins each NPU with the next, FullyConnected each with each, and a
// Switch each with one vertex; every link has the dimension's bandwidth, where 1 GB is 2^30 bytes
// as there, and its latency, so that what crosses a switch takes the latency twice.
//
// Of its ns-3 backend and of SimAI, a text: "nodes switches links", or "nodes GPUs-per-server
// NVSwitches switches links GPU"; the numbers of all switches; and links "from to 400Gbps 0.0005ms
// 0". Links of an NVSwitch are NVLinks.
//
// Formats: astra-sim/astra-sim, extern/network_backend/analytical; aliyun/SimAI, inputs/topo. What
// NPUs compute with is in neither. With bare links (--algorithm ring --protocol none) a collective
// takes the closed form that ASTRA-sim's logical ring has on one dimension.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "sim/base/quantity.h"
#include "tools/foreign/machines/imported_cluster.h"

namespace rehearse {

enum class AstraShape : uint8_t { kRing, kFullyConnected, kSwitch };

struct AstraDimension {
  AstraShape shape = AstraShape::kRing;
  uint32_t size = 1;
  BytesPerSecond bandwidth;  // of a link, one way
  Seconds latency;
};

// The dimensions of a network, the nearest first; of ns-3's logical topology ("logical-dims") their
// sizes, and of a network given link by link one with all NPUs. Throws Error with file and line.
std::vector<AstraDimension> ReadAstraDimensions(std::string_view text, const std::string& file);

// `file` is its name in messages. `device` is what NPUs are; "" leaves it to the file. Throws Error
// with file and line.
ImportedCluster ImportAstraNetwork(std::string_view text, const std::string& file,
                                   const std::string& device);

}  // namespace rehearse

// InfraGraph, Keysight's schema of infrastructures (OpenAPI 2.4.0), as it stands in a YAML or JSON
// file: devices of components, links and edges; instances of devices, and edges between them.
// Nothing is expanded yet (tools/foreign/machines/infragraph/infragraph_expand.h).
//
// Of older versions "npu" is read as xpu, "type" as choice, "many2many": true as a scheme, and a
// link's bandwidth without "physical" around it, and "connections" such as "xpu.0.pcie.nic.1", by
// whose numbers components and instances are counted where they do not say. The scheme "ring" is
// refused, whose meaning InfraGraph leaves open.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "sim/base/error.h"
#include "sim/base/quantity.h"
#include "tools/foreign/machines/imported_cluster.h"
#include "tools/foreign/machines/infragraph/infragraph_words.h"

namespace rehearse {

struct InfraLink {
  std::string name;
  std::string text;  // name and description, in small letters
  Place place = {};
  std::optional<BytesPerSecond> bandwidth = {};
  std::optional<double> gigatransfers = {};
  std::optional<Seconds> latency = {};
  InfraWords words = {};
};

enum class InfraChoice : uint8_t { kCpu, kXpu, kNic, kMemory, kPort, kSwitch, kCustom, kDevice };

struct InfraComponent {
  std::string name;
  std::string description;
  std::string text;  // name, description and a custom type, in small letters
  Place place = {};
  InfraChoice choice = InfraChoice::kCustom;
  uint32_t count = 1;
  InfraWords words = {};
};

// "gpu", "gpu[3]" or "gpu[0:8:2]".
struct InfraSlice {
  std::string name;
  std::optional<uint32_t> begin = {};
  std::optional<uint32_t> end = {};
  uint32_t step = 1;
};

struct InfraEnd {
  Place place = {};
  std::vector<InfraSlice> steps = {};  // from outside in; of instances, the instance first
};

struct InfraEdge {
  Place place = {};
  InfraEnd from = {};
  InfraEnd to = {};
  bool is_many_to_many = false;
  uint32_t link = 0;  // position in the links beside it
};

struct InfraDevice {
  std::string name;
  std::string text;  // name and description, in small letters
  Place place = {};
  std::vector<InfraComponent> components = {};
  std::vector<InfraLink> links = {};
  std::vector<InfraEdge> edges = {};
};

struct InfraInstance {
  std::string name;
  std::string device;
  Place place = {};
  uint32_t count = 1;
};

struct InfraGraph {
  std::string name;  // "" where it has none
  Place place = {};
  InfraWords words = {};
  std::vector<InfraDevice> devices = {};
  std::vector<InfraLink> links = {};
  std::vector<InfraInstance> instances = {};
  std::vector<InfraEdge> edges = {};
};

inline constexpr uint32_t kMostInfraCount = 1'000'000;

// A text that begins with { is JSON, any other YAML. Keys that are not understood are remarked.
// Throws Error with line and pointer.
InfraGraph ReadInfraGraph(std::string_view text, const std::string& file, Remarks& remarks);

// In small letters.
std::string InfraText(std::string_view text);

}  // namespace rehearse

// What `ibnetdiscover` prints: adapters, switches and routers with their cables, checked.
// tools/foreign/machines/ibnetdiscover/import_ibnet.h says what it looks like.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "sim/base/quantity.h"
#include "tools/foreign/machines/imported_cluster.h"

namespace rehearse {

struct IbPort {
  int line = 0;
  uint32_t number = 0;
  uint32_t peer = 0;  // position
  uint32_t peer_port = 0;
  std::optional<BytesPerSecond> bandwidth;  // each way; nothing if the file does not say
};

struct IbNode {
  enum class Kind : uint8_t { kSwitch, kAdapter, kRouter };

  Kind kind = Kind::kSwitch;
  int line = 0;
  std::string id;             // "S-b8599f0300fc6de4"
  std::string description;    // "node01 mlx5_0"
  std::vector<IbPort> ports;  // each cable is listed at both its ends
};

// What a port of that width and speed carries, each way: "4xHDR". Nothing when it is not known.
std::optional<BytesPerSecond> IbRate(std::string_view text);

// In the order of the file. Throws Error with file and line.
std::vector<IbNode> ReadIbnetdiscover(std::string_view text, const std::string& file,
                                      Remarks& remarks);

}  // namespace rehearse

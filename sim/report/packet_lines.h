// What travelled as packets, for people and as JSON.
#pragma once

#include <string>
#include <vector>

#include <nlohmann/json.hpp>

#include "sim/packets/packet_options.h"
#include "sim/packets/packet_play.h"

namespace rehearse {

// "packets of 4096 B: pfc, dcqcn, go-back-n, hash", and what happened to them.
std::vector<std::string> PacketLines(const PacketOptions& options, const PacketReport& report);
nlohmann::ordered_json PacketJson(const PacketOptions& options, const PacketReport& report);

}  // namespace rehearse

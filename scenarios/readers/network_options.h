// The key "network" of a scenario's "simulator", and --network: how packets travel at fidelity
// packet (collectives/lowering/packet_settings.h).
#pragma once

#include <string>

#include "collectives/lowering/packet_settings.h"
#include "sim/base/json_fields.h"

namespace rehearse {

const Fields<NetworkOptions>& NetworkOptionsFields();

// "link_control=drop,buffer=400kB". Throws Error, which names the option.
NetworkOptions ParseNetworkOptions(const std::string& option, const std::string& text);

}  // namespace rehearse

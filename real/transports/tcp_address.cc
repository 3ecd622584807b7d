#include "real/transports/tcp_address.h"

#include <cstdlib>
#include <string_view>

#include <fmt/format.h>

#include "sim/base/error.h"

namespace rehearse {
namespace {

// Turns "gpu[07-09,12],cpu3" into "gpu07".
std::string FirstOfNodeList(const std::string& list) {
  const size_t end = list.find_first_of(",[");
  if (end == std::string::npos || list[end] == ',') return list.substr(0, end);
  const size_t last = list.find_first_of("-,]", end);
  return list.substr(0, end) + list.substr(end + 1, last - end - 1);
}

}  // namespace

TcpAddress TcpAddressFromEnvironment() {
  TcpAddress address;
  if (const char* text = std::getenv("SLURM_STEP_NODELIST")) address.host = FirstOfNodeList(text);
  if (const char* text = std::getenv("MASTER_ADDR")) address.host = text;
  if (const char* text = std::getenv("MASTER_PORT")) {
    char* end = nullptr;
    const long port = std::strtol(text, &end, 10);
    if (*text == '\0' || *end != '\0' || port < 1 || port > 65535) {
      throw Error(fmt::format("environment: found MASTER_PORT=\"{}\", expected a port", text));
    }
    address.port = static_cast<uint16_t>(port);
  }
  const char* agent = std::getenv("TORCHELASTIC_USE_AGENT_STORE");
  if (agent != nullptr && std::string_view(agent) == "True") {
    address.port = static_cast<uint16_t>(address.port == 65535 ? 65534 : address.port + 1);
  }
  return address;
}

double PatienceFromEnvironment() {
  constexpr double kUsual = 30;
  const char* text = std::getenv("REHEARSE_PATIENCE");
  if (text == nullptr) return kUsual;
  char* end = nullptr;
  const double seconds = std::strtod(text, &end);
  if (*text == '\0' || *end != '\0' || !(seconds > 0) || seconds > 86400) {
    throw Error(fmt::format("environment: found REHEARSE_PATIENCE=\"{}\", expected seconds", text));
  }
  return seconds;
}

}  // namespace rehearse

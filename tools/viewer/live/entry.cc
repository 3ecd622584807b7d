// The simulator's one function that the page calls: a request in, an answer out.
#include <cstdint>
#include <string>
#include <string_view>

#include "scenarios/reporting/live.h"

namespace {

std::string answer;  // of the last call

}  // namespace

extern "C" {

// `request` is a rehearse.live.v1 text of `size` bytes. Returns the answer (LiveSession::Play()),
// which stays valid until the next call; rehearse_size() says how many bytes it has.
const char* rehearse_play(const char* request, uint32_t size) {
  static rehearse::LiveSession session;
  answer = session.Play(std::string_view(request, size));
  return answer.data();
}

uint32_t rehearse_size() { return static_cast<uint32_t>(answer.size()); }
}

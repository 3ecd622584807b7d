#include "sim/schedule/stream_waits.h"

#include <algorithm>

namespace rehearse {

StreamWaits StreamWaitsOf(const Role& role) {
  StreamWaits result;
  result.waits.resize(role.ops.size());
  result.awaited.resize(role.ops.size());
  for (uint32_t place = 0; place < role.ops.size(); ++place) {
    for (const OpId before : role.ops[place].after) {
      if (role.ops[before.index()].stream == role.ops[place].stream) continue;
      result.waits[place] = true;
      result.awaited[before.index()] = true;
    }
  }
  // What the body waits for in a piece before it, copies wait for in the pieces and copies that
  // follow that one, and what comes later for the last of these.
  for (const Repeat& repeat : role.repeats) {
    const uint32_t size = repeat.size();
    const uint32_t furthest = repeat.FirstOp() - std::min(size, repeat.FirstOp());
    for (uint32_t place = repeat.begin; place < role.ops.size(); ++place) {
      const uint32_t first = place < repeat.end ? furthest : repeat.FirstOp();
      for (const OpId before : role.ops[place].after) {
        const bool is_other = role.ops[before.index()].stream != role.ops[place].stream;
        if (before.index() < first || before.index() >= repeat.begin || !is_other) continue;
        for (uint32_t later = before.index(); later < repeat.end; later += size)
          result.awaited[later] = true;
      }
    }
  }
  return result;
}

}  // namespace rehearse

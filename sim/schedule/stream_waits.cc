#include "sim/schedule/stream_waits.h"

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
  // What the body waits for in the piece before it, each copy waits for in the copy before.
  for (const Repeat& repeat : role.repeats) {
    for (uint32_t place = repeat.begin; place < repeat.end; ++place) {
      for (const OpId before : role.ops[place].after) {
        const bool is_other = role.ops[before.index()].stream != role.ops[place].stream;
        if (before.index() < repeat.begin && is_other)
          result.awaited[before.index() + repeat.size()] = true;
      }
    }
  }
  return result;
}

}  // namespace rehearse

// Where a value of an imported scenario is from, for messages.
#pragma once

#include <string>

namespace rehearse {

struct Origin {
  std::string name;  // "--num-layers", or "training.seq_len"
  int line = 0;      // in the file; 0: it is a default
};

}  // namespace rehearse

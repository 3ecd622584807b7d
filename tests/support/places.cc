#include "tests/support/places.h"

namespace rehearse {

std::string SourceDir() { return REHEARSE_SOURCE_DIR; }

std::string ProgramPath() { return REHEARSE_BINARY; }

}  // namespace rehearse

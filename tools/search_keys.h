// The options of `rehearse search`, and of the page that `rehearse report` makes of one, that stand
// for keys of a scenario's "search".
#pragma once

#include "sim/base/json_document.h"
#include "tools/command.h"

namespace rehearse {

void AddSearchKeys(CommandSyntax* syntax);
// Whether one of them is given.
bool HasSearchKeys(const boost::program_options::variables_map& values);
void SetSearchKeys(const boost::program_options::variables_map& values, JsonDocument* document);

}  // namespace rehearse

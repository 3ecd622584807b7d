// The traces that a user names: files, and folders of them.
#pragma once

#include <string>
#include <vector>

namespace rehearse {

// The paths; a folder is replaced by its files whose names end as traces do, or as the files beside
// them do, in order. `called` is what messages call traces ("NAME.RANK.et"). Throws Error for a
// folder that cannot be read or has no traces.
std::vector<std::string> TraceFiles(const std::vector<std::string>& paths,
                                    const std::vector<std::string>& traces,
                                    const std::vector<std::string>& beside,
                                    const std::string& called);

}  // namespace rehearse

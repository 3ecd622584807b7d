// What an importer returns: the machine, and what it had to fill in because the input
// does not say it.
#pragma once

#include <cstdint>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "topology/cluster/builder.h"

namespace rehearse {

struct ImportedCluster {
  std::unique_ptr<Cluster> cluster;  // finished; its notes hold the remarks too
  std::vector<std::string> remarks;  // one line each, in the order of finding
};

// Collects what was filled in. One line says one thing about everything it concerns: "gpu0, gpu1
// and 6 more: no link_width; taken as 16 lanes, as NCCL does".
class Remarks {
 public:
  void Add(const std::string& what, const std::string& who = "");
  std::vector<std::string> Lines() const;

 private:
  struct Line {
    std::string what;
    std::vector<std::string> who;  // the first few
    uint64_t count = 0;
  };
  std::vector<Line> lines_;
};

// Text that somebody else wrote: escaped, quoted and shortened for a message; and, for a name, with
// everything but printable ASCII replaced.
std::string Quoted(std::string_view text);
std::string Printable(std::string_view text);

// Refuses what cannot be a text of at most 64 MiB: empty, too large, or with control characters.
// `what` says what was expected ("the output of nvidia-smi topo -m"). ESC is let through if
// terminal colours are allowed.
enum class Escapes { kRefused, kAllowed };
void RefuseNonText(std::string_view text, const std::string& file, const std::string& what,
                   Escapes escapes);

// A cluster's name from its file's: "dumps/box7.xml" is "box7".
std::string ClusterNameOf(const std::string& file);

// Finish(), with the file's name in front of what it throws.
std::unique_ptr<Cluster> FinishImported(ClusterBuilder& cluster, const std::string& file);

}  // namespace rehearse

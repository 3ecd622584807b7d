// NCCL's graphs.
#include "tests/fuzz/fuzz_target.h"
#include "tools/foreign/machines/nccl/nccl_graph.h"

namespace rehearse {
namespace {

void ReadGraphs(std::string_view input) { ReadNcclGraph(input, "graph.xml"); }

std::vector<std::string> NcclGraphSeeds() {
  return {R"(<graphs version="1">
  <graph id="0" pattern="4" crossnic="0" nchannels="1" speedintra="20" typeintra="NVL">
    <channel><net dev="0"/><gpu dev="0"/><gpu dev="2"/><gpu dev="1"/><net dev="0"/></channel>
  </graph>
  <graph id="1" pattern="1" nchannels="0"/>
</graphs>
)"};
}

std::vector<std::string> NcclGraphWords() {
  return {"<channel>",     "</channel>",         "<gpu dev=\"1\"/>", "pattern=\"4\"",
          "pattern=\"5\"", "speedintra=\"1e9\"", "<!DOCTYPE",        "&lt;"};
}

const FuzzTargetRow kGraphsRow({"nccl_graph", ReadGraphs, NcclGraphSeeds, NcclGraphWords,
                                FuzzLanguage::kText});

}  // namespace
}  // namespace rehearse

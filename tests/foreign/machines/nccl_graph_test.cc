#include "tools/foreign/machines/nccl/nccl_graph.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "sim/base/error.h"

namespace rehearse {
namespace nccl_graph_test {

using ::testing::Contains;
using ::testing::ElementsAre;
using ::testing::HasSubstr;

// As NCCL writes it for `rings`, with trees behind.
std::string GraphText(const std::string& channels) {
  return R"(<graphs version="1">
  <graph id="0" pattern="4" crossnic="0" nchannels="2" speedintra="20" speedinter="20" typeintra="NVL" typeinter="PIX">
)" + channels +
         R"(  </graph>
  <graph id="1" pattern="1" nchannels="2" speedintra="40"/>
  <graph id="3" pattern="5" nchannels="0"/>
</graphs>
)";
}

std::string MistakeOf(const std::string& text) {
  try {
    ReadNcclGraph(text, "graph.xml");
  } catch (const Error& error) {
    return error.what();
  }
  return "";
}

TEST(NcclGraphTest, ChannelsAreRingsInTheirOrder) {
  const NcclGraphRings graph = ReadNcclGraph(
      GraphText(
          R"(<channel><net dev="0"/><gpu dev="0"/><gpu dev="2"/><gpu dev="1"/><net dev="0"/></channel>
<channel><gpu dev="2"/><gpu dev="0"/><gpu dev="1"/></channel>)"),
      "graph.xml");
  EXPECT_THAT(graph.rings, ElementsAre(ElementsAre(0, 2, 1), ElementsAre(2, 0, 1)));
  EXPECT_EQ(graph.gigabytes_per_second, 20);
  EXPECT_THAT(graph.remarks, Contains(HasSubstr("the graph of trees is left out")));
  EXPECT_THAT(graph.remarks, Contains(HasSubstr("which NIC a channel takes is left out")));
}

TEST(NcclGraphTest, WhatAreNoRingsIsAMistake) {
  EXPECT_THAT(MistakeOf("<system version=\"1\"/>"),
              HasSubstr("graph.xml:1: found <system>, expected NCCL's graphs"));
  EXPECT_THAT(MistakeOf(GraphText("")), HasSubstr("found no graph of rings"));
  EXPECT_THAT(MistakeOf(GraphText("<channel><gpu dev=\"0\"/><gpu dev=\"0\"/></channel>\n")),
              HasSubstr("graph.xml:3: a ring of 2 devices has 0 twice"));
  EXPECT_THAT(MistakeOf(GraphText("<channel><gpu dev=\"0\"/><gpu dev=\"2\"/></channel>\n")),
              HasSubstr("a ring of 2 devices lacks device 1"));
  EXPECT_THAT(MistakeOf(GraphText("<channel><gpu/></channel>\n")),
              HasSubstr("a <gpu> without dev"));
  EXPECT_THAT(MistakeOf(GraphText("<channel><gpu dev=\"0\"/></channel><channel/>\n")),
              HasSubstr("found a ring of 0 devices"));
  const std::string whole = GraphText("<channel><gpu dev=\"0\"/><gpu dev=\"1\"/></channel>\n");
  EXPECT_THAT(MistakeOf(whole.substr(0, whole.size() / 2)), HasSubstr("graph.xml:"));
}

}  // namespace nccl_graph_test
}  // namespace rehearse

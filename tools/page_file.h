// The HTML file of `rehearse report` and `rehearse lessons`: the page's program and its data;
// nothing is loaded from a network.
#pragma once

#include <string>
#include <utility>
#include <vector>

namespace rehearse {

struct PageFile {
  std::string title;
  // What the program finds by name, such as "rehearse-data"; base64 only.
  std::vector<std::pair<std::string, std::string>> texts;
  bool is_live = false;  // with the simulator
  // Where viewer.js and simulator.js lie, as seen from the page; "": in the page itself.
  std::string beside = {};
};

std::string ToHtml(const PageFile& page);

// Packs the text as the page unpacks it: gzipped, in base64.
std::string PackedForPage(const std::string& text);

// Prints "lessons.html: 12 KiB, open it in a browser", beside the output.
void TellOfPage(const std::string& output, size_t bytes);

}  // namespace rehearse

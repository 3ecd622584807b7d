#include "tools/page_file.h"

#include <fmt/format.h>

#include "scenarios/reporting/page_columns.h"
#include "sim/base/gzip.h"
#include "sim/base/output_file.h"
#include "sim/base/units.h"
#include "sim/base/visible_text.h"
#include "sim/report/svg.h"
#include "tools/command.h"
#include "tools/viewer_bundle.h"

namespace rehearse {

// The page contains no text of the user's but the title, since names come with the data, in base64.
// The policy keeps a page from any access to the network; a live one may start its simulator.
std::string ToHtml(const PageFile& page) {
  std::string html = fmt::format(
      "<!doctype html>\n<html lang=\"en\"><head><meta charset=\"utf-8\">\n"
      "<meta name=\"viewport\" content=\"width=device-width, initial-scale=1\">\n"
      "<meta http-equiv=\"Content-Security-Policy\" content=\"default-src 'none'; "
      "script-src 'unsafe-inline'{}; style-src 'unsafe-inline'; img-src data: blob:\">\n"
      "<title>{}</title></head>\n<body><noscript>This page draws with JavaScript, which is off "
      "here.</noscript>\n",
      std::string(page.beside.empty() ? "" : " 'self' file:") +
          (page.is_live ? " 'wasm-unsafe-eval'; worker-src blob:" : ""),
      svg::Escape(page.title));
  if (!page.beside.empty())
    html += fmt::format(
        "<p>If you still read this, the page has not found its program. It belongs into its "
        "repository, where that is in {}.</p>\n",
        svg::Escape(page.beside));
  const auto add = [&](const std::string& name, const std::string& text) {
    html += "<script type=\"text/plain\" id=\"" + name + "\">";
    html += text;
    html += "</script>\n";
  };
  for (const auto& [name, text] : page.texts) add(name, text);
  if (!page.beside.empty()) {
    for (const char* script : {"simulator.js", "viewer.js"})
      if (page.is_live || std::string_view(script) != "simulator.js")
        html += fmt::format("<script src=\"{}/{}\"></script>\n", svg::Escape(page.beside), script);
    return html + "</body></html>\n";
  }
  if (page.is_live) add("rehearse-simulator", Base64(ViewerBundle("simulator")));
  html += "<script>";
  html += ViewerBundle("viewer");
  html += "</script></body></html>\n";
  return html;
}

std::string PackedForPage(const std::string& text) { return Base64(Gzip(text)); }

void TellOfPage(const std::string& output, size_t bytes) {
  if (IsStandardOutput(output)) return;
  PrintBeside(output, fmt::format("{}: {}, open it in a browser\n", VisibleText(output),
                                  Print(Bytes(static_cast<double>(bytes)))));
}

}  // namespace rehearse
